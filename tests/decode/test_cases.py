"""Every case of the two tables: as text under every chunking, and by token id through a tokenizer."""

from __future__ import annotations

from typing import Any

import pytest

from mlx_reasoning import Generation, GenerationEvent, StartState, start_state
from mlx_reasoning.decode.decoder import make_token_stream_decoder
from mlx_reasoning.decode.split import TextSplitter
from mlx_reasoning.decode.tables import DecoderTables
from mlx_reasoning.events import Completion, GenerationInfo, gather
from mlx_reasoning.protocols.families import FAMILIES

from ..cuts import case_profile, cases, every_cut
from ..vocab import byte_tokenizer, spelled

ALL = [case for name in ("splitter", "laws") for case in cases(name) if case["family"] in FAMILIES]
TEXT = [case for case in ALL if "needs_token_ids" not in (case.get("tags") or [])]
IDS = [case for case in ALL if "needs_token_ids" in (case.get("tags") or [])]


def start_of(case: dict[str, Any]) -> StartState | bool:
    if case.get("prompt_tail"):
        return start_state(case["prompt_tail"], case_profile(case))
    return bool(case["primed"])


def split(case: dict[str, Any], chunks: list[str]) -> Completion:
    splitter = TextSplitter(case_profile(case), start_of(case))
    events: list[GenerationEvent] = [event for chunk in chunks for event in splitter.push(chunk)]
    events += splitter.finish(case.get("ended", "stop"))
    return gather([*events, Generation.info(GenerationInfo("stop"))])


def check(case: dict[str, Any], got: Completion) -> None:
    want = case["expect"]
    assert (got.reasoning, got.content) == (want["reasoning"], want["content"])
    calls = want.get("tool_calls") or []
    assert [call.name for call in got.tool_calls] == [call["name"] for call in calls]
    for call, wanted in zip(got.tool_calls, calls, strict=True):
        assert call.arguments == wanted.get("arguments", call.arguments)
    if "rejected" in want:
        assert len(got.rejected) == want["rejected"]


@pytest.mark.parametrize("case", TEXT, ids=lambda case: case["id"])
def test_a_case_splits_as_the_laws_say_however_it_is_cut(case: dict[str, Any]) -> None:
    for chunks in [*every_cut(case["text"]), *([case["chunks"]] if case.get("chunks") else [])]:
        check(case, split(case, chunks))


def by_id(case: dict[str, Any], *, quoted: bool) -> Completion:
    """The case through a tokenizer in which the family's markers are single tokens.

    With `quoted`, the answer's mention of the markers is spelled in ordinary tokens, as a model does that quotes them.
    """
    profile = case_profile(case)
    markers: list[str] = []
    if profile.frames is not None:
        markers += profile.frames.markers
    if profile.reasoning is not None:
        markers += [*profile.reasoning.starts, *profile.reasoning.ends]
    if profile.tool_calls is not None:
        markers += [*profile.tool_calls.openers, *profile.tool_calls.closers]
    tokenizer = byte_tokenizer(dict.fromkeys(filter(None, markers)), special=[])
    text = case["text"]
    cut = text.index(case["end"]) + len(case["end"]) if quoted else len(text)
    ids = tokenizer.encode(text[:cut], add_special_tokens=False) + spelled(tokenizer, text[cut:])
    decoder = make_token_stream_decoder(tokenizer, profile, start=start_of(case), tables=DecoderTables(tokenizer))
    events = [event for token in ids for event in decoder.push(token)]
    events += decoder.finish(case.get("ended", "stop"))
    return gather([*events, Generation.info(GenerationInfo("stop"))])


@pytest.mark.parametrize("case", IDS, ids=lambda case: case["id"])
def test_markers_spelled_in_ordinary_tokens_are_text(case: dict[str, Any]) -> None:
    check(case, by_id(case, quoted=True))


@pytest.mark.parametrize(
    "case",
    [case for case in TEXT if case["text"] and "quality" not in (case.get("tags") or []) and case["start"]
     and "law" not in case],
    ids=lambda case: case["id"],
)  # fmt: skip
def test_a_case_splits_the_same_by_token_id(case: dict[str, Any]) -> None:
    check(case, by_id(case, quoted=False))


def test_no_case_of_a_known_family_is_left_out() -> None:
    assert len(TEXT) + len(IDS) == len(ALL)
    assert len(IDS) == 9
