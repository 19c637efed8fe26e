"""Protocols of message frames: a header says where the body behind it goes, and is never text itself.

The counterpart of `reasoning.py` for gpt-oss, Muse, Kimi K3, Solar and Inkling, driven by a `FrameProtocol`. The walk
of a character: behind a marker that opens a header it is kept as header; where the header turns out to be none, it goes
back to the body it interrupted; in a body it goes to the thought, the answer or a call.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from enum import Enum, auto
from typing import Any, Literal

from ..protocols.config import FrameKind, FrameProtocol, StartState, ToolCallFormat
from .calls import CallEnd, CallGrammar, CallReader
from .scan import Hit, Scanner
from .segment import Output, Segment
from .spans import ThoughtWriter
from .spelling import Spelling
from .stop import Marker

_HEADER = re.compile(r"[\w.:\-/ =\"]*")
_LONGEST_HEADER = 256
_LONGEST_STATE = 48


class _Mode(Enum):
    header = auto()  # behind an opener, or at the start of the turn, or between two frames
    closing = auto()  # behind a close that has a name
    body = auto()
    call = auto()


class FrameMarks:
    """A `FrameProtocol` laid out for scanning."""

    def __init__(self, frames: FrameProtocol, calls: ToolCallFormat | None, by_id: Collection[str] = ()) -> None:
        self.spelling = spell = Spelling(by_id)
        self.frames = frames
        self.opens, self.parts, self.bodies, self.closes = (
            frozenset(map(spell.pattern, markers))
            for markers in (frames.opens, frames.parts, frames.bodies, frames.closes)
        )
        self.direct = {spell.pattern(marker): kind for marker, kind in frames.direct}
        self.inline = frozenset(calls.openers if calls is not None and frames.calls_in_answers else ())
        self.all = Scanner([*self.opens, *self.parts, *self.bodies, *self.closes, *self.direct, *self.inline])
        self.thought = self.answer = self.all  # where text flows, any marker takes a closer look
        self.tracks_lines = False
        self.routes = [(re.compile(pattern), kind) for pattern, kind in frames.routes]
        ends = [self._row(end) for end in frames.call_ends]
        self.calls = CallGrammar(calls, ends) if calls else None
        self.inline_calls = CallGrammar(calls, calls.closers, ends) if calls and self.inline else None

    def _row(self, text: str) -> str:
        for marker in self.frames.markers:
            text = text.replace(marker, self.spelling.pattern(marker))
        return text

    def route(self, header: str) -> FrameKind:
        for marker in self.opens:
            header = header.replace(marker, "")
        header = self.spelling.decode(header).strip()
        for pattern, kind in self.routes:
            if pattern.search(header):
                return kind
        return "response"


class FramedEmitter:
    """Splits framed text into segments, however it is cut; the same interface as `ReasoningEventEmitter`.

    Args:
        marks: the protocol, laid out.
        start: inside means in the body of a thought; outside, at the start of a turn's header or in an answer.

    Limits: bodies of an answer stay as they are, byte for byte; a header longer than 256 characters is text.
    """

    def __init__(self, marks: FrameMarks, start: StartState | bool = StartState.outside) -> None:
        start = StartState.of(start)
        self._marks = marks
        self._buffer = ""
        self._at = 0
        self._out = Output(marks.spelling)
        self._mode = _Mode.header if start is StartState.outside else _Mode.body
        self._kind: FrameKind = "response" if start is StartState.outside else "reasoning"
        self._header = ""
        self._opened = False  # the header has a marker of its own
        self._thinking = ThoughtWriter(self._out.reasoning, spoken=start is StartState.continued)
        self._call: CallReader | None = None
        self.ended_inside_reasoning = False
        self.deciding = False
        self._steps = {
            _Mode.header: self._read_header,
            _Mode.closing: self._read_header,
            _Mode.body: self._read_body,
            _Mode.call: self._read_call,
        }

    @property
    def inside_reasoning(self) -> bool:
        return self._kind == "reasoning"

    @property
    def spoken(self) -> bool:
        return self._thinking.spoken

    @property
    def holding(self) -> bool:
        return bool(self._buffer or self._header)

    @property
    def waiting(self) -> int:
        return len(self._buffer) + len(self._header)

    @property
    def flowing(self) -> Literal["reasoning", "response"] | None:
        if self._mode is not _Mode.body or self._buffer:
            return None
        if self._kind == "reasoning":
            return "reasoning" if self._thinking.flowing else None
        return "response" if self._kind == "response" else None

    @property
    def state(self) -> tuple[object, ...] | None:
        if self._mode is _Mode.call or len(self._buffer) + len(self._header) > _LONGEST_STATE:
            return None
        if self._thinking.waiting > _LONGEST_STATE:
            return None
        return self._mode, self._kind, self._buffer, self._header, self._opened, self._thinking.state

    def restore(self, state: tuple[Any, ...]) -> None:
        self._mode, self._kind, self._buffer, self._header, self._opened, thought = state
        self._thinking.restore(thought)

    def push(self, piece: str | Marker) -> list[Segment]:
        """The segments that are certain after this piece."""
        self._buffer += self._marks.spelling.encode(piece)
        self._run(final=False)
        return self._out.take()

    def finish(self, reason: str = "stop") -> list[Segment]:
        """What was held back; a header that the end cuts is no text, and a call that it cuts does not run."""
        self._run(final=True)
        if self._call is not None:
            self._out.add("call", self._call.text, "open" if reason in ("stop", "tool_calls") else "cut")
            self._call = None
        elif self._mode is _Mode.header and not self._opened and self._header.strip():
            self._out.add("response", self._header)
        self._header = ""
        self.ended_inside_reasoning = self._kind == "reasoning"
        return self._out.take()

    def _run(self, *, final: bool) -> None:
        self._at = 0
        while self._at < len(self._buffer) and self._steps[self._mode](final):
            pass
        self._buffer = self._buffer[self._at :]

    def _text(self, text: str) -> None:
        if self._kind == "reasoning":
            self._thinking.push(text)
        else:
            self._out.add("response", text)

    def _enter(self, kind: FrameKind, opener: str) -> None:
        """A body begins, and the one before it is over. `opener` is what a call's text keeps of its header."""
        self._thinking.close()
        if kind == "call" and self._marks.calls is None:
            kind = "response"
        if kind == "reasoning":
            self._thinking.start()
        self._kind = kind
        self._mode = _Mode.call if kind == "call" else _Mode.body
        if kind == "call":
            assert self._marks.calls is not None
            self._call = CallReader(self._marks.calls, opener)
        self._header, self._opened = "", False

    def _between(self) -> None:
        """A frame is over: what follows is a header, or text that has none."""
        self._thinking.close()
        self._kind, self._mode, self._header, self._opened = "response", _Mode.header, "", False

    # Headers.

    def _read_header(self, final: bool) -> bool:
        marks, buffer, at = self._marks, self._buffer, self._at
        hit = marks.all.search(buffer, at)
        end = hit.start if hit else len(buffer) - (0 if final else marks.all.held(buffer, at))
        self._at = end
        self._header += buffer[at:end]
        if not self._may_be_header():
            self._mode = _Mode.body
            text, self._header, self._opened = self._header, "", False
            self._text(text)
            return True
        if hit is None:
            return False
        self._at = hit.end
        if self._mode is _Mode.closing:
            if hit.literal in marks.bodies:
                self._between()
            else:
                self._header += hit.literal
        elif hit.literal in marks.bodies:
            self._enter(marks.route(self._header), self._header + hit.literal)
        elif hit.literal in marks.direct:
            self._enter(marks.direct[hit.literal], hit.literal)
        elif hit.literal in marks.closes:
            self._close()
        elif hit.literal in marks.opens:
            self._header, self._opened = hit.literal, True
        elif hit.literal in marks.inline:
            self._mode, self._at, self._header = _Mode.body, hit.start, ""
        else:
            self._header, self._opened = self._header + hit.literal, True
        return True

    def _may_be_header(self) -> bool:
        """Whether what stands behind the last frame can still become a header."""
        plain = self._header
        for marker in (*self._marks.opens, *self._marks.parts, *self._marks.closes):
            plain = plain.replace(marker, "")
        if len(plain) > _LONGEST_HEADER:
            return False
        if self._opened or self._mode is _Mode.closing:
            return _HEADER.fullmatch(plain) is not None
        word = plain.lstrip()
        if not word:
            return True
        begins = any(word.startswith(bare) or bare.startswith(word) for bare in self._marks.frames.bare)
        return begins and _HEADER.fullmatch(plain) is not None

    # Bodies.

    def _read_body(self, final: bool) -> bool:
        marks, buffer, at = self._marks, self._buffer, self._at
        hit = marks.all.search(buffer, at)
        end = hit.start if hit else len(buffer) - (0 if final else marks.all.held(buffer, at))
        self._text(buffer[at:end])
        self._at = end
        if hit is None:
            return False
        if hit.literal in marks.inline:
            return self._may_call(hit, final)
        self._at = hit.end
        self._marked(hit)
        return True

    def _may_call(self, hit: Hit, final: bool) -> bool:
        """A call's opener without a header of its own: a call in an answer if it grows into one, else text."""
        grammar = self._marks.inline_calls
        grown = grammar.grows(self._buffer, hit.end) if grammar is not None and self._kind == "response" else False
        if grammar is None or not grown:
            if grown is None and not final:
                return False
            self._text(hit.literal)
        else:
            self._call, self._mode = CallReader(grammar, hit.literal), _Mode.call
        self._at = hit.end
        return True

    def _marked(self, hit: Hit) -> None:
        marks = self._marks
        if hit.literal in marks.closes:
            self._close()
        elif hit.literal in marks.direct:
            self._enter(marks.direct[hit.literal], hit.literal)
        elif hit.literal in marks.bodies:
            self._text(hit.literal)
        else:  # perhaps a header, whose frame's close is missing
            self._mode, self._header, self._opened = _Mode.header, hit.literal, True

    def _close(self) -> None:
        if self._marks.frames.named_closes:
            self._mode, self._header, self._opened = _Mode.closing, "", True
        else:
            self._between()

    def _read_call(self, final: bool) -> bool:
        assert self._call is not None
        found, self._at = self._call.push(self._buffer, self._at, final=final)
        if found is CallEnd.waiting:
            return False
        text, self._call = self._call.text, None
        self._out.add("response" if found is CallEnd.overfull else "call", text)
        if self._kind == "response":  # the call stood in an answer, which goes on
            self._mode = _Mode.body
        else:
            self._between()
        return True
