"""Law 5: the start state comes from the prompt's last assistant turn, by one rule for text and ids."""

from __future__ import annotations

from typing import Any

import pytest

from mlx_reasoning import OptionError, StartState, family, prompt_ends_inside_reasoning, start_state
from mlx_reasoning.protocols.families import FAMILIES

from ..cuts import cases
from ..vocab import CHATML, QWEN, byte_tokenizer

PROMPTS = [case for case in cases("prompts") if case["family"] in FAMILIES]
FIRST = {"qwen3", "qwen3-thinking-2507", "qwen3.5", "deepseek-r1", "gemma4"}


def rendered(case: dict[str, Any]) -> str:
    """The whole prompt, or the end of it where the case has no more."""
    return str(case["prompt"] or case["prompt_tail"])


@pytest.mark.parametrize("case", PROMPTS, ids=lambda case: case["id"])
def test_a_rendered_prompt_gives_its_start_state(case: dict[str, Any]) -> None:
    assert prompt_ends_inside_reasoning(rendered(case), case["family"]) is case["primed"]


def markers_of(name: str) -> list[str]:
    config = family(name).reasoning
    assert config is not None
    return [*config.starts, *config.ends, *config.end_of_turn]


@pytest.mark.parametrize("case", [case for case in PROMPTS if case["family"] in FIRST], ids=lambda case: case["id"])
def test_and_by_token_id_it_gives_the_same(case: dict[str, Any]) -> None:
    """A literal tag in a user's text would be the same token here, and must not count either."""
    name = case["family"]
    header = family(name).turn_header
    assert header is not None
    pieces = [header.removesuffix("assistant").removesuffix("model"), *markers_of(name)]
    tokenizer = byte_tokenizer([], special=dict.fromkeys(piece for piece in pieces if piece))
    ids = tokenizer.encode(rendered(case), add_special_tokens=False)
    assert prompt_ends_inside_reasoning(ids, name, tokenizer=tokenizer) is case["primed"]


@pytest.mark.parametrize(
    ("tail", "state"),
    [
        ("<|im_start|>assistant\n", StartState.outside),
        ("<|im_start|>assistant\n<think>\n", StartState.inside),
        ("<|im_start|>assistant\n<think>", StartState.inside),
        ("<|im_start|>assistant\n<think>  \n\n", StartState.inside),
        ("<|im_start|>assistant\n<think>\n\n</think>\n\n", StartState.outside),
        ("<|im_start|>assistant\n<think>\nFirst, ", StartState.continued),
        ("<|im_start|>assistant\n<think>\na</think>\nb", StartState.outside),
        ("<|im_start|>assistant\nThe tag <think>", StartState.outside),
        ("<|im_start|>assistant\n</think>", StartState.outside),
        ("<|im_start|>user\nwhat does <think>", StartState.outside),  # no header: mid-line ...
        ("<think>\n", StartState.inside),  # ... or the last visible thing
    ],
)
def test_the_tail_of_a_prompt(tail: str, state: StartState) -> None:
    if tail.startswith("<|im_start|>user"):
        tail += "?"
    assert start_state(tail, "qwen3") is state
    tokenizer = byte_tokenizer(QWEN, special=CHATML)
    assert start_state(tokenizer.encode(tail, add_special_tokens=False), "qwen3", tokenizer=tokenizer) is state


def test_a_family_without_an_opener_starts_inside_until_its_closer_is_there() -> None:
    assert start_state("<|assistant|>\n", "apriel-1.5") is StartState.inside
    assert start_state("<|assistant|>\nplan\n[BEGIN FINAL RESPONSE]\n", "apriel-1.5") is StartState.outside
    assert start_state("no header", "apriel-1.5") is StartState.inside


def test_a_half_open_channel_is_open_and_a_response_channel_is_not() -> None:
    assert start_state("<|turn>model\n<|channel>thought\n", "gemma4") is StartState.inside
    assert start_state("<|turn>model\n<|channel>thought\n<channel|>", "gemma4") is StartState.outside
    assert start_state("<|turn>model\n<|channel>content\n", "gemma4") is StartState.outside


def test_a_model_without_thoughts_is_always_outside_and_ids_need_a_tokenizer() -> None:
    assert start_state("<think>", None) is StartState.outside
    assert start_state("<think>", "qwen3-instruct-2507") is StartState.outside
    with pytest.raises(OptionError, match="tokenizer="):
        start_state([1, 2], "qwen3")
