"""Sampling options: checked, and over the model's own defaults."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import pytest

from mlx_reasoning.engine.sampling import SamplingKeywords, SamplingOptions, check_ids
from mlx_reasoning.errors import OptionError

WRONG: list[tuple[str, Any, str]] = [
    ("temperature", -0.1, "at least 0"),
    ("temperature", "hot", "a number"),
    ("temperature", None, "a number"),
    ("temperature", math.nan, "a number"),
    ("temperature", True, "a number"),
    ("top_p", 1.1, "from 0 to 1"),
    ("top_k", -1, "at least 0"),
    ("top_k", 1.5, "a whole number"),
    ("min_p", 2, "from 0 to 1"),
    ("xtc_probability", -1, "from 0 to 1"),
    ("xtc_threshold", 0.6, "from 0 to 0.5"),
    ("repetition_penalty", -1, "at least 0"),
    ("repetition_context_size", 0, "at least 1"),
    ("presence_penalty", math.inf, "a number"),
    ("frequency_penalty", "x", "a number"),
    ("seed", -3, "at least 0"),
    ("seed", 1.0, "a whole number"),
    ("logit_bias", [1, 2], "must map"),
    ("logit_bias", {"a": 1}, "a whole number"),
    ("logit_bias", {-1: 1}, "at least 0"),
    ("logit_bias", {1: "x"}, "a number"),
    ("logit_bias", {1: math.nan}, "a number"),
]


@pytest.mark.parametrize(("name", "value", "message"), WRONG)
def test_a_wrong_value_says_what_is_right(name: str, value: Any, message: str) -> None:
    with pytest.raises(OptionError, match=f"{name}.*{message}"):
        SamplingOptions(**{name: value})


def test_keywords_and_options_have_the_same_names() -> None:
    assert SamplingKeywords.__optional_keys__ == {field.name for field in fields(SamplingOptions)}


FILES: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ({}, {}, {"temperature": 0.0, "top_p": 1.0, "top_k": 0}),
    ({"temperature": 0.6, "top_p": 0.9}, {}, {"temperature": 0.0, "top_p": 0.9}),
    ({"do_sample": False, "temperature": 0.6}, {}, {"temperature": 0.0}),
    (
        {"do_sample": True, "temperature": 0.6, "top_k": 20, "min_p": 0.05},
        {},
        {"temperature": 0.6, "top_k": 20, "min_p": 0.05},
    ),
    ({"do_sample": True}, {}, {"temperature": 1.0}),
    ({"do_sample": True, "temperature": 0.6, "top_p": 0.9}, {"temperature": 0.2}, {"temperature": 0.2, "top_p": 0.9}),
    ({"do_sample": True, "temperature": 0.6}, {"temperature": 0}, {"temperature": 0}),
    ({"repetition_penalty": 1.1}, {}, {"repetition_penalty": 1.1}),
    ({"repetition_penalty": 1.1}, {"repetition_penalty": None}, {"repetition_penalty": 1.1}),
    ({}, {"temperature": None, "seed": None}, {"temperature": 0.0, "seed": None}),
    ({"do_sample": True, "temperature": "warm", "top_p": 7}, {}, {"temperature": 0.0, "top_p": 1.0}),
]


@pytest.mark.parametrize(("file", "given", "expected"), FILES)
def test_what_is_given_wins_over_the_file_and_the_file_over_greedy(
    file: dict[str, Any], given: dict[str, Any], expected: dict[str, Any]
) -> None:
    options = SamplingOptions.of(given, file)
    assert {name: getattr(options, name) for name in expected} == expected


def test_a_bias_may_have_the_string_keys_of_json() -> None:
    assert SamplingOptions(logit_bias={"12": 3, 4: -math.inf}).logit_bias == {12: 3.0, 4: -math.inf}  # type: ignore[dict-item]
    assert SamplingOptions(logit_bias={}).logit_bias is None


def test_what_is_off_makes_no_processor() -> None:
    assert SamplingOptions(repetition_penalty=1, presence_penalty=0).logits_processors() == []
    assert len(SamplingOptions(repetition_penalty=1.2, frequency_penalty=1).logits_processors()) == 2


def test_top_k_of_the_whole_vocabulary_is_off() -> None:
    import mlx.core as mx

    logits = mx.array([[0.0, 9.0, 0.0]])
    sampler = SamplingOptions(temperature=0.01, top_k=3).sampler(3)
    assert sampler(logits).tolist() == [1]


def test_ids_outside_the_vocabulary() -> None:
    check_ids("x", [0, 9], 10)
    check_ids("x", [10**9], None)
    for wrong in ([10], [-1]):
        with pytest.raises(OptionError, match="the vocabulary has 10"):
            check_ids("x", wrong, 10)
