"""The splitter without a model: text in, thought, answer and calls out. No token ids, no mlx."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from ..errors import OptionError
from ..events import Generation, GenerationEvent
from ..messages import FinishReason, RejectedToolCall, Tool, ToolCall
from ..protocols.config import FrameProtocol, ModelProfile, ReasoningConfig, StartState, ToolCallFormat
from ..protocols.families import as_profile
from .frames import FramedEmitter, FrameMarks
from .prompt_state import start_state
from .reasoning import ReasoningEventEmitter
from .tool_calls import ToolCallProcessor

SplitProtocol: TypeAlias = "str | ModelProfile | ReasoningConfig"


@dataclass(frozen=True, slots=True)
class Split:
    """A text, split. Several spans of one kind stand concatenated; `events` has them in order."""

    reasoning: str
    content: str
    tool_calls: tuple[ToolCall, ...]
    rejected: tuple[RejectedToolCall, ...]
    events: tuple[GenerationEvent, ...]
    ended_inside_reasoning: bool


class TextSplitter:
    """Pushes text through the splitter, a piece at a time.

    Args:
        protocol: a family's name, a profile, or the markers alone.
        start: where the first character stands.
        tools: the declared tools; None takes every call of the family's format, an empty list none.

    Raises:
        UnknownFamilyError: there is no such family.
        MissingDependencyError: calls are wanted, and mlx-lm, whose parser it takes, is not installed.
    """

    def __init__(
        self, protocol: SplitProtocol, start: StartState | bool = StartState.outside, tools: list[Tool] | None = None
    ) -> None:
        markers, calls = protocol_parts(protocol)
        calls = None if tools is not None and not tools else calls
        self._processor = ToolCallProcessor(calls, tools)
        self._emitter: ReasoningEventEmitter | FramedEmitter
        if isinstance(markers, FrameProtocol):
            self._emitter = FramedEmitter(FrameMarks(markers, calls), start)
        else:
            self._emitter = ReasoningEventEmitter(markers, start, calls=calls)

    @property
    def ended_inside_reasoning(self) -> bool:
        return self._emitter.ended_inside_reasoning

    def push(self, text: str) -> list[GenerationEvent]:
        return [event for segment in self._emitter.push(text) for event in self._processor.push(segment)]

    def finish(self, reason: FinishReason = "stop") -> list[GenerationEvent]:
        return [event for segment in self._emitter.finish(reason) for event in self._processor.push(segment)]


def split_reasoning(
    text_or_chunks: str | Iterable[str],
    protocol: SplitProtocol,
    *,
    prompt_tail: str | None = None,
    primed: bool | None = None,
    tools: list[Tool] | None = None,
    finish_reason: FinishReason = "stop",
) -> Split:
    """Splits a model's raw text into its thought, its answer and its calls.

    Args:
        text_or_chunks: the text, or any pieces of it; how it is cut makes no difference.
        protocol: a family's name (see `family`), a profile, or the markers alone.
        prompt_tail: the end of the prompt, which says whether the text starts inside a thought; wins over `primed`.
        primed: whether the text starts inside a thought; False unless given, but True for a family without an opener.
        tools: the declared tools; None takes every call of the family's format, an empty list none.
        finish_reason: how the turn ended; what a model did not end by itself ("length", "cancelled") runs no call.

    Raises:
        UnknownFamilyError: there is no such family.
        OptionError: something that is no protocol, no tool or no text.
        MissingDependencyError: calls are wanted, and mlx-lm, whose parser it takes, is not installed.
    """
    chunks = [text_or_chunks] if isinstance(text_or_chunks, str) else text_or_chunks
    if prompt_tail is not None:
        protocol = protocol if isinstance(protocol, ReasoningConfig) else as_profile(protocol).read(prompt_tail)
        start: StartState | bool = start_state(prompt_tail, protocol)
    elif primed is None:
        markers, _ = protocol_parts(protocol)
        start = isinstance(markers, ReasoningConfig) and markers.start_delimiter is None
    else:
        start = primed
    splitter = TextSplitter(protocol, start, tools)
    events: list[GenerationEvent] = []
    for chunk in chunks:
        if not isinstance(chunk, str):
            raise OptionError(f"a piece of the text is {type(chunk).__name__}: give strings")
        events += splitter.push(chunk)
    events += splitter.finish(finish_reason)
    return Split(
        "".join(event.text for event in events if isinstance(event, Generation.reasoning)),
        "".join(event.text for event in events if isinstance(event, Generation.chunk)),
        tuple(event.call for event in events if isinstance(event, Generation.tool_call)),
        tuple(event.rejection for event in events if isinstance(event, Generation.rejected_tool_call)),
        tuple(events),
        splitter.ended_inside_reasoning,
    )


def protocol_parts(
    protocol: SplitProtocol,
) -> tuple[ReasoningConfig | FrameProtocol | None, ToolCallFormat | None]:
    """A protocol's markers, found in text, and its call format."""
    if protocol is None:
        raise OptionError("the protocol is None: give a family's name, a profile or the markers")
    if isinstance(protocol, ReasoningConfig):
        return replace(protocol, detection="text"), None
    protocol = as_profile(protocol)
    config = protocol.reasoning
    markers = protocol.frames or (replace(config, detection="text") if config else None)
    return markers, protocol.tool_calls
