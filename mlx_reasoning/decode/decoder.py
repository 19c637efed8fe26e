"""Token ids to events: detokenizer, stop strings, splitter and calls in one decoder.

The decoder owns the response protocol and nothing else: it neither samples nor iterates. Most tokens are ordinary text
in the middle of a thought or an answer; for those a table by id, filled as tokens are first seen and shared by all
streams of one model, gives the finished event without any search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

from ..errors import OptionError
from ..events import Generation, GenerationEvent
from ..messages import Tool
from ..protocols.config import ModelProfile, ReasoningConfig, StartState, ToolCallFormat
from .detokenizer import Vocabulary, vocabulary_of
from .marks import Marks
from .reasoning import ReasoningEventEmitter
from .scan import Scanner
from .segment import Segment
from .stop import Marker, StopStringFilter, check_stop_strings
from .tool_calls import ToolCallProcessor

StopScope: TypeAlias = Literal["all", "response"]
_Plain: TypeAlias = dict[int, tuple[GenerationEvent, ...]]
_NOTHING: _Plain = {}


class TokenStreamDecoder(Protocol):
    """What a loop needs of any decoder."""

    stop_sequence: str | None

    @property
    def inside_reasoning(self) -> bool: ...
    @property
    def ended_inside_reasoning(self) -> bool: ...
    @property
    def reasoning_tokens(self) -> int | None: ...
    def push(self, token: int) -> Sequence[GenerationEvent]: ...
    def finish(self, reason: str = "stop") -> Sequence[GenerationEvent]: ...


class DecoderTables:
    """What all streams of one model share: the vocabulary's bytes, the markers' ids, and the tables by token id."""

    def __init__(self, tokenizer: Any) -> None:
        self.vocabulary: Vocabulary = vocabulary_of(tokenizer)
        self._ids: dict[str, int] = dict(tokenizer.get_vocab())
        self._layouts: dict[object, Layout] = {}

    def layout(
        self, config: ReasoningConfig | None, calls: ToolCallFormat | None, stop_strings: tuple[str, ...], scope: StopScope
    ) -> Layout:
        """The layout for one combination of options; the newest few are kept."""
        key = (config, calls, stop_strings, scope)
        found = self._layouts.get(key)
        if found is None:
            if len(self._layouts) >= 16:
                self._layouts.pop(next(iter(self._layouts)))
            found = self._layouts[key] = Layout(config, calls, stop_strings, scope, self._ids)
        return found


class Layout:
    """The markers by id and by text for one combination of options, and the tables of plain tokens that follow."""

    def __init__(
        self,
        config: ReasoningConfig | None,
        calls: ToolCallFormat | None,
        stop_strings: tuple[str, ...],
        scope: StopScope,
        ids: Mapping[str, int],
    ) -> None:
        self.markers = _markers(config, calls, ids)
        self.marks = Marks(config, calls, {marker.text for marker in self.markers.values()})
        self.reasoning: _Plain = {}
        self.response: _Plain = {}
        stops = Scanner(stop_strings)
        self._thought = (self.marks.thought, stops) if scope == "all" else (self.marks.thought,)
        self._answer = (self.marks.answer, stops)
        self._any_ending = config is None and calls is None

    def learn(self, token: int, text: str | None, kind: str) -> None:
        """Enters a token into the table of its kind, if its text passes unchanged wherever text flows."""
        if not text or token in self.markers:
            return
        ends_open = text[-1].isspace() and not self._any_ending
        if kind == "reasoning":
            if not ends_open and text[-1] != "`" and not any(scanner.touches(text) for scanner in self._thought):
                self.reasoning[token] = (Generation.reasoning(text),)
        elif not ends_open and not (self.marks.tracks_lines and "\n" in text):
            if not any(scanner.touches(text) for scanner in self._answer):
                self.response[token] = (Generation.chunk(text),)


def _markers(
    config: ReasoningConfig | None, calls: ToolCallFormat | None, ids: Mapping[str, int]
) -> dict[int, Marker]:
    """The markers that are one token each.

    Raises:
        OptionError: detection is "token", and the vocabulary lacks the thought's markers.
    """
    if config is not None and config.detection == "text":
        return {}
    texts: list[str] = []
    if config is not None:
        texts += [*config.starts, *config.ends, *config.end_of_turn, *config.dropped]
        texts += [text for frame in config.answer_frames for text in (frame.start, frame.end)]
        if config.detection == "token":
            missing = [text for text in (*config.starts[:1], config.end_delimiter) if text not in ids]
            if missing:
                raise OptionError(f"detection='token', but {missing[0]!r} is no token of this vocabulary: use 'auto'")
    if calls is not None:
        texts += [*calls.openers, *calls.closers]
    return {ids[text]: Marker(text) for text in texts if text in ids}


class StandardTokenStreamDecoder:
    """The decoder of every family that marks thoughts with tags, labels or frames, and of models without thoughts.

    Args:
        tables: what the model's streams share.
        config, calls: the family's protocol; None for what it does not have.
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
        config: ReasoningConfig | None = None,
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
        self._layout = tables.layout(config, calls, stops, stop_scope)
        self._processor = ToolCallProcessor(calls, tools)
        self._emitter = (
            ReasoningEventEmitter(config, start, marks=self._layout.marks)
            if config is not None or calls is not None
            else None
        )
        self._detokenizer = tables.vocabulary.stream()
        self._stop = StopStringFilter(stops) if stops else None
        self._response_scope = stop_scope == "response"
        self._counts = config is not None
        self._plain = _NOTHING
        self._flow: Literal["reasoning", "response"] | None = None
        self._thinks = 0  # what an ordinary token adds to the count
        self._count = 0
        self._held = 0  # tokens of an opener that is not yet complete
        self._deciding = 0  # tokens of a candidate call
        self.stop_sequence: str | None = None
        if self._emitter is None:
            self._follow()

    @property
    def inside_reasoning(self) -> bool:
        return self._emitter is not None and self._emitter.inside_reasoning

    @property
    def ended_inside_reasoning(self) -> bool:
        return self._emitter is not None and self._emitter.ended_inside_reasoning

    @property
    def reasoning_tokens(self) -> int | None:
        return self._count + self._deciding

    def push(self, token: int) -> Sequence[GenerationEvent]:
        """The events that are certain after this token."""
        events = self._plain.get(token)
        if events is not None:
            self._count += self._thinks
            return events
        return self._push(token)

    def finish(self, reason: str = "stop") -> Sequence[GenerationEvent]:
        """What was held back, drained through each stage in order."""
        events: list[GenerationEvent] = []
        if self.stop_sequence is None or not self._response_scope:
            events += self._text(self._detokenizer.finish())
            if self._stop is not None and not self._response_scope:
                for piece in self._stop.finish(reason):
                    events += self._split(piece)
        deciding = self._deciding
        self._deciding = 0
        if self._emitter is not None:
            events += self._process(self._emitter.finish(reason))
            if self._emitter.ended_inside_reasoning:
                self._count += deciding
        if self._stop is not None and self._response_scope:
            events += [Generation.chunk(piece) for piece in self._stop.finish(reason) if isinstance(piece, str)]
        return events

    def _push(self, token: int) -> Sequence[GenerationEvent]:
        if self.stop_sequence is not None:
            return ()
        emitter = self._emitter
        before = emitter.inside_reasoning if emitter else False
        marker = self._layout.markers.get(token)
        if marker is not None:
            events = self._text(self._detokenizer.finish()) + self._stopped(marker)
        else:
            if self._flow:
                self._layout.learn(token, self._detokenizer.plain(token), self._flow)
            events = self._text(self._detokenizer.push(token))
        if emitter is not None and self._counts:
            self._tally(before, emitter)
        self._follow()
        return events

    def _tally(self, before: bool, emitter: ReasoningEventEmitter) -> None:
        inside = emitter.inside_reasoning
        if emitter.deciding:
            self._deciding += 1
            return
        self._count += self._deciding
        self._deciding = 0
        if before or inside:
            self._count += 1 + (0 if before else self._held)
            self._held = 0
        else:
            self._held = self._held + 1 if emitter.holding else 0

    def _follow(self) -> None:
        """Chooses the table for the next token."""
        self._thinks = 0
        self._plain = _NOTHING
        self._flow = None
        if self._detokenizer.holding or (self._stop is not None and self._stop.holding) or self.stop_sequence is not None:
            return
        self._flow = "response" if self._emitter is None else self._emitter.flowing
        if self._flow == "reasoning":
            self._plain, self._thinks = self._layout.reasoning, 1
        elif self._flow == "response":
            self._plain = self._layout.response

    def _text(self, text: str) -> list[GenerationEvent]:
        return self._stopped(text) if text else []

    def _stopped(self, piece: str | Marker) -> list[GenerationEvent]:
        """The first stage, where stop strings look at every text."""
        if self._stop is None or self._response_scope:
            return self._split(piece)
        events: list[GenerationEvent] = []
        for part in self._stop.push(piece):
            events += self._split(part)
        self.stop_sequence = self._stop.stop_sequence
        return events

    def _split(self, piece: str | Marker) -> list[GenerationEvent]:
        if self._emitter is None:
            return self._process([Segment("response", piece if isinstance(piece, str) else piece.text)])
        return self._process(self._emitter.push(piece))

    def _process(self, segments: list[Segment]) -> list[GenerationEvent]:
        """The last stages: calls, and stop strings that look at answers only."""
        events: list[GenerationEvent] = []
        for segment in segments:
            if self._stop is not None and self._response_scope:
                if self.stop_sequence is not None:
                    break
                pieces = self._stop.push(segment.text) if segment.kind == "response" else (
                    self._stop.finish() if segment.kind == "call" else []
                )  # fmt: skip
                events += [Generation.chunk(piece) for piece in pieces if isinstance(piece, str) and piece]
                self.stop_sequence = self._stop.stop_sequence
                if segment.kind == "response":
                    continue
            events += self._processor.push(segment)
        return events


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
        tables: shared by the streams of one model; made here if not given, which reads the whole vocabulary.
    """
    return StandardTokenStreamDecoder(
        tables or DecoderTables(tokenizer),
        profile.reasoning,
        profile.tool_calls,
        start=start,
        tools=tools,
        stop_strings=stop_strings,
        stop_scope=stop_scope,
    )
