"""Routes decoded text into reasoning, response and calls: the one splitter, laws 1 to 10 of its contract.

The walk of a character: it waits in the buffer while it may belong to a marker; `_answer` or `_thought` takes it,
white space waits in `_space`, a call's text in a `CallReader`; then it leaves in a `Segment`. What is emitted is never
taken back. The emitter does not know token ids, stop strings, or what a call's payload means.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from itertools import groupby
from typing import Literal, TypeAlias

from ..protocols.config import ReasoningConfig, StartState, ToolCallFormat
from .calls import CAP, CallEnd, CallReader
from .label import LabelFound, read_label
from .lines import Lines
from .marks import Mark, Marks
from .scan import Hit
from .space import Space, after_closer, after_frame
from .stop import Marker

SegmentKind: TypeAlias = Literal["reasoning", "response", "call"]
CallState: TypeAlias = Literal["closed", "open", "cut"]


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of output. A call is whole; `state` says if its closer came, or how the turn ended before it."""

    kind: SegmentKind
    text: str
    state: CallState = "closed"


class Before(Enum):
    """What stands directly before the waiting white space of an answer."""

    turn = auto()
    closer = auto()
    glued_closer = auto()  # of a thought that interrupted a line of the answer
    frame = auto()
    call = auto()
    end_of_turn = auto()
    text = auto()


class _Mode(Enum):
    answer = auto()
    thought = auto()
    label = auto()
    call = auto()  # reading a call; in a thought, a candidate
    settling = auto()  # candidates are complete, and what follows decides


class ReasoningEventEmitter:
    """Splits a text into segments, however it is cut.

    Args:
        config: the family's markers; None looks for calls alone.
        start: where the first character stands, from the prompt.
        calls: the family's call format; None leaves tool syntax in the text.
        marks: the same two, laid out by someone who knows which markers are token ids.

    Limits: a word-like tag at column 0 of an answer, outside a code fence, opens a thought. A candidate call that
        outgrows 1 MiB is text, and markers in it are text too.
    Source: mlx-swift-lm ReasoningEventEmitter; differs: white space by law, late decision of calls, labels.
    """

    def __init__(
        self,
        config: ReasoningConfig | None,
        start: StartState | bool = StartState.outside,
        *,
        calls: ToolCallFormat | None = None,
        marks: Marks | None = None,
    ) -> None:
        start = StartState.of(start)
        self._config = config
        self._marks = marks or Marks(config, calls)
        self._buffer = ""
        self._at = 0
        self._out: list[Segment] = []
        self._space = Space()
        self._mode = _Mode.answer if start is StartState.outside else _Mode.thought
        self._before = Before.turn
        self._in_frame = False
        self._in_channel_response = False
        self._ends_visible = False  # the last character of the answer is visible
        self._glued = False
        self.spoken = start is StartState.continued  # the running thought has visible text
        self._previous = ""  # the last character of the thought
        self._lines = Lines()
        self._call: CallReader | None = None
        self._call_in_thought = False
        self._group: list[str] = []  # a thought's candidates, and the space between them
        self._closer: Mark | None = None  # the thought's closer, after candidates
        self.ended_inside_reasoning = False
        self._steps = {
            _Mode.answer: self._answer,
            _Mode.thought: self._thought,
            _Mode.label: self._label,
            _Mode.call: self._read_call,
            _Mode.settling: self._settle,
        }

    @property
    def inside_reasoning(self) -> bool:
        if self._mode in (_Mode.call, _Mode.settling):
            return self._call_in_thought and self._closer is None
        return self._mode is not _Mode.answer

    @property
    def deciding(self) -> bool:
        """A candidate call in a thought waits for what follows."""
        return self._call_in_thought and self._mode in (_Mode.call, _Mode.settling) and self._late

    @property
    def holding(self) -> bool:
        """Characters wait that may belong to a marker."""
        return bool(self._buffer)

    @property
    def flowing(self) -> Literal["reasoning", "response"] | None:
        """The kind of the next segment, if ordinary text ending in a visible character would pass unchanged."""
        if self._buffer or self._space.size:
            return None
        if self._mode is _Mode.thought and self.spoken and self._previous != "`":
            return "reasoning"
        if self._mode is _Mode.answer and self._before is Before.text and self._ends_visible:
            return "response" if self._lines.settled or not self._marks.tracks_lines else None
        return None

    def push(self, piece: str | Marker) -> list[Segment]:
        """The segments that are certain after this piece."""
        self._buffer += self._marks.encode(piece)
        return self._run(final=False)

    def finish(self, reason: str = "stop") -> list[Segment]:
        """What was held back. "stop" and "tool_calls" say that the turn ended by itself; else nothing runs."""
        segments = self._run(final=True)
        self._end(natural=reason in ("stop", "tool_calls"))
        return segments + self._taken()

    def _run(self, *, final: bool) -> list[Segment]:
        self._at = 0
        while self._at < len(self._buffer) and self._steps[self._mode](final):
            pass
        self._buffer = self._buffer[self._at :]
        return self._taken()

    def _taken(self) -> list[Segment]:
        out, self._out = self._out, []
        if len(out) < 2:
            return out
        merged: list[Segment] = []
        for kind, run in groupby(out, key=lambda segment: segment.kind):
            if kind == "call":
                merged.extend(run)
            else:
                merged.append(Segment(kind, "".join(segment.text for segment in run)))
        return merged

    def _emit(self, kind: SegmentKind, text: str, state: CallState = "closed") -> None:
        if text:
            self._out.append(Segment(kind, self._marks.decode(text), state))

    @property
    def _late(self) -> bool:
        return self._config is not None and self._config.calls_in_reasoning == "late"

    # The answer.

    def _answer(self, final: bool) -> bool:
        buffer, at, scanner = self._buffer, self._at, self._marks.answer
        hit = scanner.search(buffer, at)
        end = hit.start if hit else len(buffer) - (0 if final else scanner.held(buffer, at))
        self._respond(buffer[at:end])
        self._at = end
        if hit is None:
            return False
        mark = self._marks.in_answer[hit.literal]
        if mark.kind == "call":
            return self._may_call(hit, final, in_thought=False)
        if not self._counts(mark):
            self._respond(buffer[end : end + 1])
            self._at = end + 1
            return True
        self._at = hit.end
        if mark.kind == "start":
            self._open()
        elif mark.kind == "frame_start":
            self._enter_frame()
        elif mark.kind == "frame_end" or (mark.kind == "end" and self._in_channel_response):
            self._leave_frame()
        elif mark.kind == "end" and self._before is not Before.text:
            self._space.drop()
            self._follow(Before.closer)
        elif mark.kind == "end_of_turn" and self._before is Before.text:
            self._flush_frame_space()
            self._before = Before.end_of_turn
        return True

    def _counts(self, mark: Mark) -> bool:
        """Whether a marker found in the answer is one, standing where it stands."""
        if mark.free:
            return True
        first = self._before is Before.turn
        fresh = first or self._before in (Before.closer, Before.glued_closer, Before.call)
        if mark.kind == "start" and self._config is not None:
            anchor = self._config.anchor
            at_line = anchor == "line" and self._lines.column0 and not self._lines.fenced
            return fresh or at_line or anchor == "anywhere"
        if mark.kind == "frame_start":
            return fresh
        return first if mark.kind == "end" else self._in_frame

    def _respond(self, text: str) -> None:
        if not text:
            return
        if self._marks.tracks_lines:
            self._lines.push(text)
        if self._before is not Before.text:
            body = text.lstrip()
            self._space.add(text[: len(text) - len(body)])
            if not body and self._space.size <= CAP:
                return
            self._emit("response", self._leading_space())
            self._before = Before.text
            text = body
        if self._in_frame:
            body = text.rstrip()
            if body or self._space.size > CAP:
                self._flush_frame_space()
            self._space.add(text[len(body) :])
            text = body
        if text:
            self._emit("response", text)
            self._ends_visible = not text[-1].isspace()

    def _leading_space(self) -> str:
        space = self._space.take()
        if self._before is Before.closer:
            return after_closer(space)
        return after_frame(space) if self._before is Before.frame else space

    def _flush_frame_space(self) -> None:
        """The white space that waited at the end of an answer frame is text after all."""
        if self._space.size:
            self._emit("response", self._space.take())
            self._ends_visible = False

    def _follow(self, before: Before) -> None:
        self._before = before
        if before is not Before.glued_closer:
            self._lines.restart()

    def _enter_frame(self) -> None:
        if self._before is Before.text:
            self._flush_frame_space()
        self._space.drop()
        self._in_frame = True
        self._follow(Before.frame)

    def _leave_frame(self) -> None:
        self._space.drop()
        self._in_frame = self._in_channel_response = False
        self._follow(Before.closer)

    # The thought.

    def _open(self) -> None:
        if self._before is Before.text:
            self._flush_frame_space()
        self._glued = self._before is Before.text and self._ends_visible
        self._space.drop()
        self.spoken, self._previous = False, ""
        self._mode = _Mode.label if self._config and self._config.channel else _Mode.thought

    def _close(self, mark: Mark) -> None:
        self._space.drop()
        self._mode = _Mode.answer
        if mark.text in self._marks.frame_starts:
            self._in_frame = True
            self._follow(Before.frame)
        else:
            self._follow(Before.glued_closer if self._glued else Before.closer)
        self._glued = False

    def _thought(self, final: bool) -> bool:
        buffer, at, scanner = self._buffer, self._at, self._marks.thought
        hit = scanner.search(buffer, at)
        end = hit.start if hit else len(buffer) - (0 if final else scanner.held(buffer, at))
        self._think(buffer[at:end])
        self._at = end
        if hit is None:
            return False
        mark = self._marks.in_thought[hit.literal]
        if mark.kind == "call":
            return self._may_call(hit, final, in_thought=True)
        if mark.kind == "end":
            return self._may_close(hit, mark, final)
        if mark.kind == "start":
            if not mark.free and self.spoken:
                self._think(buffer[end : end + 1])
                self._at = end + 1
                return True
            if self._config and self._config.channel:
                self._mode = _Mode.label
        self._at = hit.end
        return True

    def _may_close(self, hit: Hit, mark: Mark, final: bool) -> bool:
        """A closer that was found in text closes, unless it stands directly between two backticks."""
        if not mark.by_id and self._previous == "`":
            if hit.end == len(self._buffer) and not final:
                return False
            if self._buffer[hit.end : hit.end + 1] == "`":
                self._think(self._buffer[hit.start : hit.end])
                self._at = hit.end
                return True
        self._at = hit.end
        self._close(mark)
        return True

    def _think(self, text: str) -> None:
        if not text:
            return
        self._previous = text[-1]
        body = text.rstrip()
        tail = text[len(body) :]
        if not self.spoken:
            body = body.lstrip()
        if body:
            self._emit("reasoning", self._space.take() + body)
            self.spoken = True
        if self.spoken:
            self._space.add(tail)
            if self._space.size > CAP:
                self._emit("reasoning", self._space.take())

    def _label(self, final: bool) -> bool:
        assert self._config is not None and self._config.channel is not None
        found, self._at = read_label(self._buffer, self._at, self._config.channel, self._marks, final=final)
        if found is LabelFound.waiting:
            return False
        if found is LabelFound.response:
            self._space.drop()
            self._mode = _Mode.answer
            self._in_frame = self._in_channel_response = True
            self._follow(Before.frame)
        elif found is not LabelFound.again:
            self._mode = _Mode.thought
        return True

    # Calls.

    def _may_call(self, hit: Hit, final: bool, *, in_thought: bool) -> bool:
        """An opener was found: a call if it grows into one, text if it does not, and until that is known it waits."""
        grammar = self._marks.thought_calls if in_thought else self._marks.answer_calls
        assert grammar is not None
        grown = grammar.grows(self._buffer, hit.end)
        opener = self._buffer[hit.start : hit.end]
        if grown is None and not final:
            return False
        self._at = hit.end
        if not grown:
            (self._think if in_thought else self._respond)(opener)
            return True
        if not in_thought and self._before is Before.text:
            self._flush_frame_space()
        elif in_thought and not self._late:
            self._emit("reasoning", self._space.take())
        self._call = CallReader(grammar, opener)
        self._call_in_thought = in_thought
        self._mode = _Mode.call
        return True

    def _read_call(self, final: bool) -> bool:
        assert self._call is not None
        found, self._at = self._call.push(self._buffer, self._at, final=final)
        if found is CallEnd.waiting:
            return False
        text = self._call.text
        if found in (CallEnd.overfull, CallEnd.aborted) or sum(map(len, self._group)) + len(text) > CAP:
            self._uncall(text)
        elif self._call_in_thought and self._late:
            self._group.append(text)
            self._mode = _Mode.settling
        else:
            self._emit("call", text)
            self._after_call(in_thought=self._call_in_thought)
        self._call = None
        return True

    def _after_call(self, *, in_thought: bool) -> None:
        if in_thought:
            self._mode = _Mode.thought
            return
        self._space.drop()
        self._mode = _Mode.answer
        self._before = Before.call

    def _uncall(self, text: str) -> None:
        """What looked like a call is text of the thought, or of the answer."""
        if self._call_in_thought:
            self._mode = _Mode.thought
            self._think("".join(self._group) + text)
            self._group = []
        else:
            self._mode = _Mode.answer
            self._respond(text)

    def _settle(self, final: bool) -> bool:
        """Candidates stand complete: white space, a closer and further candidates wait with them, all else decides."""
        buffer, at = self._buffer, self._at
        end = len(buffer) - len(buffer[at:].lstrip())
        self._group.append(buffer[at:end])
        self._at = end
        if end == len(buffer):
            return False
        hit = self._marks.thought.search(buffer, end)
        if hit is None or hit.start != end:
            if not final and self._marks.thought.held(buffer, end) == len(buffer) - end:
                return False
            return self._draft()
        mark = self._marks.in_thought[hit.literal]
        if mark.kind == "call" and self._closer is None:
            grammar = self._marks.thought_calls
            assert grammar is not None
            grown = grammar.grows(buffer, hit.end)
            if grown is None and not final:
                return False
            return self._may_call(hit, final, in_thought=True) if grown else self._draft()
        if mark.kind == "end" and (self._closer is None or mark.free):
            if self._closer is None:
                self._closer = mark
                self._group.append("")  # what follows stands behind the closer
                self._after = len(self._group)
        elif mark.kind not in ("end_of_turn", "dropped"):
            return self._draft()
        self._at = hit.end
        return True

    def _draft(self) -> bool:
        """The candidates were drafts: reasoning, and the closer behind them closes."""
        closer, group, self._closer, self._group = self._closer, self._group, None, []
        self._mode = _Mode.thought
        self._think("".join(group if closer is None else group[: self._after]))
        if closer is not None:
            self._close(closer)
            self._respond("".join(group[self._after :]))
        return True

    def _end(self, *, natural: bool) -> None:
        text = self._call.text if self._call else None
        if self.deciding and not natural:
            if self._mode is _Mode.settling:
                self._draft()
            else:
                self._uncall(text or "")
        elif self._mode in (_Mode.call, _Mode.settling):
            for candidate in self._group:
                if candidate.strip():
                    self._emit("call", candidate)
            if text is not None:
                self._emit("call", text, "open" if natural else "cut")
            self._after_call(in_thought=False)
        self._group, self._call = [], None
        self.ended_inside_reasoning = self._mode in (_Mode.thought, _Mode.label)
        kept = Before.text if self._config is not None else Before.turn
        if self._mode is _Mode.answer and self._before in (Before.text, kept):
            self._emit("response", self._space.take())
        self._space.drop()
