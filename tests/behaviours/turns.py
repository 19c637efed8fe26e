"""Turns as each family writes them, for situations that every family can get into."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from mlx_reasoning import Generation, GenerationEvent, StartState, family, make_token_stream_decoder
from mlx_reasoning.decode.split import TextSplitter
from mlx_reasoning.decode.tables import DecoderTables
from mlx_reasoning.events import Completion, GenerationInfo, gather
from mlx_reasoning.messages import FinishReason, Tool
from mlx_reasoning.protocols.config import ModelProfile, ReasoningConfig
from mlx_reasoning.protocols.families import FAMILIES

from ..cuts import cases, every_cut
from ..vocab import byte_tokenizer

TAGGED = [
    name
    for name, row in FAMILIES.items()
    if row.reasoning is not None
    and row.reasoning.start_delimiter is not None
    and row.reasoning.channel is None
    and not row.reasoning.answer_frames
]


def markers(name: str) -> tuple[str, str]:
    """The opener and the closer of a family of tags."""
    config = config_of(name)
    assert config.start_delimiter is not None
    return config.start_delimiter, config.end_delimiter


def config_of(name: str) -> ReasoningConfig:
    config = family(name).reasoning
    assert config is not None
    return config


def header_of(name: str) -> str:
    """What opens the family's turn in a prompt; the row may know only the beginning of its tag."""
    header = family(name).turn_header or ""
    return header + ("｜>" if "<" in header and ">" not in header else "")


def _calls() -> dict[str, tuple[str, str, Any]]:
    """For each family that calls tools: the call as it writes it, the tool's name and the arguments."""
    found: dict[str, tuple[str, str, Any]] = {}
    for case in cases("splitter"):
        calls = case["expect"].get("tool_calls") or []
        row = FAMILIES.get(case["family"])
        if len(calls) != 1 or row is None or row.reasoning is None or row.reasoning.channel is not None:
            continue
        behind = case["text"].rpartition(case["end"])[2].strip() if case["end"] in case["text"] else ""
        opens = row.tool_calls is not None and behind.startswith(row.tool_calls.openers)
        if opens and not case["expect"]["content"]:
            found.setdefault(case["family"], (behind, calls[0]["name"], calls[0].get("arguments", {})))
    return found


CALLS = {name: call for name, call in _calls().items() if name in TAGGED}


def split(
    protocol: str | ModelProfile,
    chunks: Iterable[str],
    start: StartState | bool = StartState.outside,
    *,
    tools: list[Tool] | None = None,
    reason: FinishReason = "stop",
) -> Completion:
    """The events of a text in pieces, gathered."""
    splitter = TextSplitter(protocol, start, tools)
    events: list[GenerationEvent] = [event for chunk in chunks for event in splitter.push(chunk)]
    events += splitter.finish(reason)
    return gather([*events, Generation.info(GenerationInfo("stop"))])


def always(
    protocol: str | ModelProfile, text: str, start: StartState | bool = StartState.outside, **keywords: Any
) -> Completion:
    """The split of a text, the same for every way of cutting it."""
    results = [split(protocol, chunks, start, **keywords) for chunks in every_cut(text)]
    for got in results:
        assert parts(got) == parts(results[0])
    return results[0]


def parts(got: Completion) -> tuple[Any, ...]:
    calls = [(call.name, call.arguments) for call in got.tool_calls]
    return got.reasoning, got.content, calls, [(rejected.text, rejected.reason) for rejected in got.rejected]


def by_id(
    name: str, text: str, start: StartState | bool = StartState.outside, reason: FinishReason = "stop"
) -> Completion:
    """The split of a text whose markers are one token each, token by token."""
    profile = family(name)
    config = config_of(name)
    texts = [*config.starts, *config.ends, *(profile.tool_calls.openers if profile.tool_calls else ())]
    tokenizer = byte_tokenizer(dict.fromkeys(filter(None, texts)), special=[])
    profile = replace(profile, reasoning=replace(config, detection="auto"))
    decoder = make_token_stream_decoder(tokenizer, profile, start=start, tables=DecoderTables(tokenizer))
    events = [event for token in tokenizer.encode(text, add_special_tokens=False) for event in decoder.push(token)]
    return gather([*events, *decoder.finish(reason), Generation.info(GenerationInfo("stop"))])
