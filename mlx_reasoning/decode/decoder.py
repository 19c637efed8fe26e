"""Token ids to events: detokenizer, stop strings, splitter and calls in one decoder.

The decoder owns the response protocol and nothing else: it neither samples nor iterates. A token that was met before in
the same state costs one look-up in the model's tables; any other goes through the stages, and is remembered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from ..errors import OptionError
from ..events import Generation, GenerationEvent
from ..messages import Tool
from ..protocols.config import FrameProtocol, ModelProfile, ReasoningConfig, StartState, ToolCallFormat
from .segment import Segment
from .stop import Marker, StopStringFilter, check_stop_strings
from .tables import NOWHERE, DecoderTables, Emitter, Node, StopScope, tables_of
from .tool_calls import ToolCallProcessor

_TEXT = (Generation.chunk, Generation.reasoning)


class TokenStreamDecoder(Protocol):
    """What a loop needs of any decoder."""

    stop_sequence: str | None

    @property
    def inside_reasoning(self) -> bool: ...
    @property
    def can_close(self) -> bool: ...
    @property
    def ended_inside_reasoning(self) -> bool: ...
    @property
    def reasoning_tokens(self) -> int | None: ...
    def push(self, token: int) -> Sequence[GenerationEvent]: ...
    def finish(self, reason: str = "stop") -> Sequence[GenerationEvent]: ...


class StandardTokenStreamDecoder:
    """The decoder of every family: tags, labels, message frames, and models without thoughts.

    Args:
        tables: what the model's streams share.
        protocol, calls: the family's markers or frames, and its calls; None for what it does not have.
        start: where the first token stands.
        tools: the declared tools; None takes every call, an empty list leaves tool syntax in the text.
        stop_strings, stop_scope: what ends the turn; "all" looks at every text, "response" at answers only.

    Raises:
        OptionError: an empty stop string, or an unknown scope.
        MissingDependencyError: calls are wanted, and their parser is not installed.
    """

    def __init__(
        self,
        tables: DecoderTables,
        protocol: ReasoningConfig | FrameProtocol | None = None,
        calls: ToolCallFormat | None = None,
        *,
        start: StartState | bool = StartState.outside,
        tools: list[Tool] | None = None,
        stop_strings: Sequence[str] = (),
        stop_scope: StopScope = "all",
    ) -> None:
        if stop_scope not in ("all", "response"):
            raise OptionError(f"stop_scope is {stop_scope!r}: choose 'all' or 'response'")
        stops = check_stop_strings(stop_strings)
        calls = None if tools is not None and not tools else calls
        self._layout = tables.layout(protocol, calls, stops, stop_scope)
        self._processor = ToolCallProcessor(calls, tools)
        self._emitter = self._layout.emitter(start)
        self._detokenizer = tables.vocabulary.stream()
        self._stop = StopStringFilter(stops) if stops else None
        self._response_scope = stop_scope == "response"
        self._count = 0
        self._recent: list[int] = []  # characters of each newest token that still waits
        self._deciding = 0  # tokens of a candidate call
        self.stop_sequence: str | None = None
        self._node = self._synced = self._state()

    @property
    def inside_reasoning(self) -> bool:
        if self._node is not NOWHERE:
            return self._node.inside
        return self._emitter is not None and self._emitter.inside_reasoning

    @property
    def can_close(self) -> bool:
        """Whether a thought runs in which no character, marker or call is half written."""
        if self._node.flow is not None:
            return self._node.flow == "reasoning"
        self._sync()
        emitter = self._emitter
        if emitter is None or emitter.holding or emitter.deciding:
            return False
        return emitter.inside_reasoning and self._detokenizer.settled

    @property
    def ended_inside_reasoning(self) -> bool:
        return self._emitter is not None and self._emitter.ended_inside_reasoning

    @property
    def reasoning_tokens(self) -> int | None:
        recent = self._recent if self._node is NOWHERE else self._node.key[3]
        return self._count + self._deciding + (len(recent) if self.inside_reasoning else 0)

    def push(self, token: int) -> Sequence[GenerationEvent]:
        """The events that are certain after this token."""
        move = self._node.get(token)
        if move is None:
            return self._push(token)
        events, self._node, thinks = move
        self._count += thinks
        return events

    def finish(self, reason: str = "stop") -> Sequence[GenerationEvent]:
        """What was held back, drained through each stage in order."""
        self._sync()
        self._node = NOWHERE
        events: list[GenerationEvent] = []
        if self.stop_sequence is None:
            events += self._first(self._detokenizer.finish())
            if self._stop is not None and not self._response_scope:
                for piece in self._stop.finish():
                    events += self._split(piece)
        if self._emitter is not None:
            events += self._last(self._emitter.finish(reason))
            if self._emitter.ended_inside_reasoning or reason not in ("stop", "tool_calls"):
                self._count += self._deciding
            self._count += len(self._recent) if self._emitter.ended_inside_reasoning else 0
        self._deciding, self._recent = 0, []
        if self._stop is not None and self._response_scope:
            events += [Generation.chunk(piece) for piece in self._stop.finish() if isinstance(piece, str)]
        return events

    def _push(self, token: int) -> Sequence[GenerationEvent]:
        node = self._node
        if node.flow is not None:
            move = self._layout.plain(node, token, self._detokenizer.plain(token))
            if move is not None:
                self._layout.remember(node, token, move)
                self._count += move[2]
                return move[0]
        if self.stop_sequence is not None:
            return ()
        self._sync()
        count = self._count
        events = self._through(token)
        self._node = self._synced = self._state()
        if node is not NOWHERE and self._node is not NOWHERE and all(isinstance(event, _TEXT) for event in events):
            self._layout.remember(node, token, (tuple(events), self._node, self._count - count))
        return events

    def _through(self, token: int) -> list[GenerationEvent]:
        """One token through the stages."""
        emitter = self._emitter
        before = emitter is not None and emitter.inside_reasoning
        marker = self._layout.markers.get(token)
        if marker is None:
            text = self._detokenizer.push(token)
            events = self._first(text)
        else:
            text = "\0"  # one character, as a marker is
            events = self._first(self._detokenizer.finish()) + self._first(marker)
        if emitter is not None:
            self._tally(before, emitter, len(text))
        return events

    def _tally(self, before: bool, emitter: Emitter, size: int) -> None:
        """Counts a token if it was sampled inside a thought, its delimiters included.

        A token whose characters still wait is counted when it is known where they belong.
        """
        self._recent.append(size)
        if emitter.deciding:
            self._deciding += len(self._recent)
            self._recent = []
            return
        self._count += self._deciding
        self._deciding = 0
        waits = emitter.waiting
        keep = 0
        while keep < len(self._recent) and waits > 0:
            keep += 1
            waits -= max(1, self._recent[-keep])
        settled = len(self._recent) - keep
        if before or emitter.inside_reasoning:
            self._count += settled
        self._recent = self._recent[settled:]

    def _state(self) -> Node:
        """The node of the state that the stages are in."""
        detokenizer = self._detokenizer.state
        emitter = self._emitter.state if self._emitter is not None else ()
        if detokenizer is None or emitter is None or self.stop_sequence is not None or len(self._recent) > 8:
            return NOWHERE
        stop = self._stop.state if self._stop is not None else ()
        flow = self._emitter.flowing if self._emitter is not None else "response"
        inside = self._emitter is not None and self._emitter.inside_reasoning
        settled = not stop and not self._recent and self._detokenizer.settled
        return self._layout.node((detokenizer, stop, emitter, tuple(self._recent)), flow if settled else None, inside)

    def _sync(self) -> None:
        """Brings the stages to the state that look-ups have led to."""
        if self._node is self._synced or self._node is NOWHERE:
            return
        detokenizer, stop, emitter, recent = self._node.key
        self._recent = list(recent)
        self._detokenizer.restore(detokenizer)
        if self._stop is not None:
            self._stop.restore(stop)
        if self._emitter is not None:
            self._emitter.restore(emitter)
        self._synced = self._node

    def _first(self, piece: str | Marker) -> list[GenerationEvent]:
        """The first stage after the detokenizer, where stop strings look at every text."""
        if not piece:
            return []
        if self._stop is None or self._response_scope:
            return self._split(piece)
        events: list[GenerationEvent] = []
        for part in self._stop.push(piece):
            events += self._split(part)
        self.stop_sequence = self._stop.stop_sequence
        return events

    def _split(self, piece: str | Marker) -> list[GenerationEvent]:
        if self._emitter is None:
            return self._last([Segment("response", piece.text if isinstance(piece, Marker) else piece)])
        return self._last(self._emitter.push(piece))

    def _last(self, segments: list[Segment]) -> list[GenerationEvent]:
        """The last stages: calls, and stop strings that look at answers only."""
        events: list[GenerationEvent] = []
        for segment in segments:
            if self._stop is not None and self._response_scope:
                events += self._answer_stopped(segment)
                if self.stop_sequence is not None:
                    break
                if segment.kind == "response":
                    continue
            events += self._processor.push(segment)
        return events

    def _answer_stopped(self, segment: Segment) -> list[GenerationEvent]:
        """An answer's text less what may be a stop string; a call or a thought lets go of what was held."""
        assert self._stop is not None
        pieces = self._stop.push(segment.text) if segment.kind == "response" else self._stop.finish()
        self.stop_sequence = self._stop.stop_sequence
        return [Generation.chunk(piece) for piece in pieces if isinstance(piece, str) and piece]


def make_token_stream_decoder(
    tokenizer: Any,
    profile: ModelProfile,
    *,
    start: StartState | bool = StartState.outside,
    tools: list[Tool] | None = None,
    stop_strings: Sequence[str] = (),
    stop_scope: StopScope = "all",
    tables: DecoderTables | None = None,
) -> TokenStreamDecoder:
    """The decoder for a model's profile.

    Args:
        tokenizer: a Hugging Face tokenizer, or mlx-lm's wrapper around one.
        tables: shared by the streams of one model; the tokenizer's own, made once, if not given.
    """
    return StandardTokenStreamDecoder(
        tables or tables_of(tokenizer),
        profile.frames or profile.reasoning,
        profile.tool_calls,
        start=start,
        tools=tools,
        stop_strings=stop_strings,
        stop_scope=stop_scope,
    )
