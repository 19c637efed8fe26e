"""What a generation is made of: a closed union of ordered events, and the same events gathered.

Nothing here knows where events come from (a local loop, a remote server) or where they go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

from .messages import FinishReason, RejectedToolCall, ToolCall


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of one turn. `None` means that a count cannot be known, never zero.

    prompt_tokens is the whole prompt: cached_tokens of it were in the cache, prefilled_tokens were computed.
    reasoning_tokens counts the sampled ids that belong to thoughts, sampled delimiters included.
    """

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    prefilled_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class GenerationInfo:
    """How a turn ended and what it cost.

    Args:
        finish_reason: "stop", "length", "tool_calls" or "cancelled".
        stop_sequence: the stop string that ended the turn.
        ended_inside_reasoning: the turn ended in a thought, so that there is no answer.
        prompt_tps, generation_tps: tokens a second; None where nothing was measured.
        peak_memory: bytes.
        notes: what the caller should know, such as an effort that a switch-only family takes as "on".
    """

    finish_reason: FinishReason
    stop_sequence: str | None = None
    ended_inside_reasoning: bool = False
    usage: Usage = field(default_factory=Usage)
    prompt_tps: float | None = None
    generation_tps: float | None = None
    peak_memory: int | None = None
    notes: tuple[str, ...] = ()


class Generation:
    """The namespace of events; `GenerationEvent` is their union.

    ```python
    match event:
        case Generation.reasoning(text): ...
        case Generation.chunk(text): ...
        case Generation.tool_call(call): ...
        case Generation.rejected_tool_call(rejection): ...
        case Generation.info(info): ...
    ```
    """

    @dataclass(frozen=True, slots=True)
    class chunk:
        """A piece of the answer."""

        text: str

    @dataclass(frozen=True, slots=True)
    class reasoning:
        """A piece of the thought."""

        text: str

    @dataclass(frozen=True, slots=True)
    class tool_call:
        """A complete call."""

        call: ToolCall

    @dataclass(frozen=True, slots=True)
    class rejected_tool_call:
        """A call that cannot be used: its text, and why."""

        rejection: RejectedToolCall

    @dataclass(frozen=True, slots=True)
    class info:
        """The last event of a turn."""

        info: GenerationInfo


GenerationEvent: TypeAlias = (
    Generation.chunk | Generation.reasoning | Generation.tool_call | Generation.rejected_tool_call | Generation.info
)


@dataclass(frozen=True, slots=True)
class Completion:
    """A whole turn: the stream's events, gathered. Several spans of one kind stand concatenated."""

    content: str
    reasoning: str
    tool_calls: tuple[ToolCall, ...]
    rejected: tuple[RejectedToolCall, ...]
    info: GenerationInfo

    @property
    def finish_reason(self) -> FinishReason:
        return self.info.finish_reason

    @property
    def usage(self) -> Usage:
        return self.info.usage


def gather(events: Iterable[GenerationEvent]) -> Completion:
    """Gathers a stream into a `Completion`; a stream that was cut off before its info counts as cancelled."""
    content: list[str] = []
    reasoning: list[str] = []
    calls: list[ToolCall] = []
    rejected: list[RejectedToolCall] = []
    final = GenerationInfo("cancelled")
    for event in events:
        match event:
            case Generation.chunk(text):
                content.append(text)
            case Generation.reasoning(text):
                reasoning.append(text)
            case Generation.tool_call(call):
                calls.append(call)
            case Generation.rejected_tool_call(rejection):
                rejected.append(rejection)
            case Generation.info(info):
                final = info
    return Completion("".join(content), "".join(reasoning), tuple(calls), tuple(rejected), final)


def event_to_dict(event: GenerationEvent) -> dict[str, Any]:
    """The event as JSON-ready data: `{"type": "reasoning", "text": …}` and so on."""
    match event:
        case Generation.chunk(text):
            return {"type": "chunk", "text": text}
        case Generation.reasoning(text):
            return {"type": "reasoning", "text": text}
        case Generation.tool_call(call):
            return {"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments}
        case Generation.rejected_tool_call(rejection):
            return {"type": "rejected_tool_call", **asdict(rejection)}
        case Generation.info(info):
            return {"type": "info", **asdict(info)}
