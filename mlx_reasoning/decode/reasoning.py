"""Routes decoded text into reasoning, response and calls: the one splitter, laws 1 to 10 of its contract.

The walk of a character: it waits in the buffer while it may belong to a marker; `_answer` or `_thought` hands it to a
writer, or a `CallReader` keeps it; then it leaves in a `Segment`. What is emitted is never taken back. The emitter
does not know token ids, stop strings, or what a call's payload means.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import Any, Literal

from ..protocols.config import ReasoningConfig, StartState, ToolCallFormat
from .calls import CAP, CallEnd, CallReader
from .candidates import Candidates
from .label import LabelFound, read_label
from .marks import LONGEST_MIDDLE, Mark, Marks
from .scan import Hit
from .segment import CallState, Output, Segment
from .spans import AnswerWriter, Before, ThoughtWriter
from .stop import Marker

_SPACE = re.compile(r"\s+")
_LONGEST_STATE = 48  # characters that a remembered state may hold


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
        self._late = config is not None and config.calls_in_reasoning == "late"
        self._buffer = ""
        self._at = 0
        self._out = Output(self._marks.spelling)
        self._mode = _Mode.answer if start is StartState.outside else _Mode.thought
        self._written = AnswerWriter(self._out.response, tracks_lines=self._marks.tracks_lines)
        self._thinking = ThoughtWriter(self._out.reasoning, spoken=start is StartState.continued)
        self._in_channel_response = False
        self._glued = False  # the thought interrupts a line of the answer
        self._relabelled = False  # the label that is being read stands inside a thought
        self._opener = 0  # the length of the opener before the label
        self._call: CallReader | None = None
        self._call_in_thought = False
        self._waiting = Candidates()
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
            return self._call_in_thought and self._waiting.closer is None
        return self._mode is _Mode.thought or (self._mode is _Mode.label and self._relabelled)

    @property
    def spoken(self) -> bool:
        """The running thought has visible text."""
        return self._thinking.spoken

    @property
    def deciding(self) -> bool:
        """A candidate call in a thought waits for what follows."""
        return self._late and self._call_in_thought and self._mode in (_Mode.call, _Mode.settling)

    @property
    def holding(self) -> bool:
        """Characters wait that may belong to a marker."""
        return bool(self._buffer) or self._mode is _Mode.label

    @property
    def waiting(self) -> int:
        """How many characters of the newest tokens those are, an opener that waits for its label among them."""
        return len(self._buffer) + (self._opener if self._mode is _Mode.label else 0)

    @property
    def flowing(self) -> Literal["reasoning", "response"] | None:
        """The kind of the next segment, if ordinary text ending in a visible character would pass unchanged."""
        if self._buffer:
            return None
        if self._mode is _Mode.thought and self._thinking.flowing:
            return "reasoning"
        return "response" if self._mode is _Mode.answer and self._written.flowing else None

    @property
    def state(self) -> tuple[object, ...] | None:
        """Everything that the next piece depends on, to compare and to `restore`; None inside a call or label."""
        if self._mode not in (_Mode.answer, _Mode.thought) or len(self._buffer) > _LONGEST_STATE:
            return None
        if self._written.waiting + self._thinking.waiting > _LONGEST_STATE:
            return None
        thought = self._thinking.state if self._mode is _Mode.thought else None
        return self._mode, self._buffer, self._in_channel_response, self._glued, self._written.state, thought

    def restore(self, state: tuple[Any, ...]) -> None:
        self._mode, self._buffer, self._in_channel_response, self._glued, answer, thought = state
        self._written.restore(answer)
        if thought is not None:
            self._thinking.restore(thought)

    def push(self, piece: str | Marker) -> list[Segment]:
        """The segments that are certain after this piece."""
        self._buffer += self._marks.spelling.encode(piece)
        self._run(final=False)
        return self._out.take()

    def finish(self, reason: str = "stop") -> list[Segment]:
        """What was held back. "stop" and "tool_calls" say that the turn ended by itself; else nothing runs."""
        self._run(final=True)
        self._end(natural=reason in ("stop", "tool_calls"))
        return self._out.take()

    def _run(self, *, final: bool) -> None:
        self._at = 0
        while self._at < len(self._buffer) and self._steps[self._mode](final):
            pass
        self._buffer = self._buffer[self._at :]

    # The answer.

    def _answer(self, final: bool) -> bool:
        buffer, at, scanner = self._buffer, self._at, self._marks.answer
        hit = scanner.search(buffer, at)
        end = hit.start if hit else len(buffer) - (0 if final else scanner.held(buffer, at))
        self._written.push(buffer[at:end])
        self._at = end
        if hit is None:
            return False
        mark = self._marks.in_answer[hit.literal]
        if mark.kind == "call":
            return self._may_call(hit, final, in_thought=False)
        if mark.kind == "dropped":
            return self._may_drop(hit, mark, final, self._written)
        if not self._counts(mark):
            self._written.push(buffer[end : end + 1])
            self._at = end + 1
            return True
        self._at = hit.end
        if mark.kind == "start":
            self._opener = hit.end - hit.start
            self._open()
        elif mark.kind == "frame_start":
            self._written.follow(Before.frame)
            self._written.in_frame = True
        elif mark.kind == "frame_end" or (mark.kind == "end" and self._in_channel_response):
            self._written.follow(Before.glued_closer if self._glued and self._in_channel_response else Before.closer)
            self._written.in_frame = self._in_channel_response = self._glued = False
        elif mark.kind == "end":
            self._written.stray()
        elif mark.kind == "end_of_turn" and self._written.before is Before.text:
            self._written.follow(Before.end_of_turn)
        return True

    def _counts(self, mark: Mark) -> bool:
        """Whether a marker found in the answer is one, standing where it stands."""
        if mark.free:
            return True
        before = self._written.before
        fresh = before in (Before.turn, Before.closer, Before.glued_closer, Before.call)
        if mark.kind == "start" and self._config is not None:
            anchor = self._config.anchor
            return fresh or anchor == "anywhere" or (anchor == "line" and self._written.at_line_start)
        if mark.kind == "frame_start":
            return fresh
        return before is Before.turn if mark.kind == "end" else self._written.in_frame

    # The thought.

    def _open(self) -> None:
        self._glued = self._written.interrupt()
        self._thinking.start()
        self._relabelled = False
        self._mode = _Mode.label if self._config and self._config.channel else _Mode.thought

    def _close(self, mark: Mark) -> None:
        self._thinking.close()
        self._mode = _Mode.answer
        if mark.text in self._marks.frame_starts:
            self._written.follow(Before.frame)
            self._written.in_frame = True
        else:
            self._written.follow(Before.glued_closer if self._glued else Before.closer)
        self._glued = False

    def _thought(self, final: bool) -> bool:
        buffer, at, scanner = self._buffer, self._at, self._marks.thought
        hit = scanner.search(buffer, at)
        end = hit.start if hit else len(buffer) - (0 if final else scanner.held(buffer, at))
        self._thinking.push(buffer[at:end])
        self._at = end
        if hit is None:
            return False
        mark = self._marks.in_thought[hit.literal]
        if mark.kind == "call":
            return self._may_call(hit, final, in_thought=True)
        if mark.kind == "end":
            return self._may_close(hit, mark, final)
        if mark.kind == "dropped":
            return self._may_drop(hit, mark, final, self._thinking)
        if mark.kind == "start":
            if not mark.free and self.spoken:
                self._thinking.push(buffer[end : end + 1])
                self._at = end + 1
                return True
            if self._config and self._config.channel:
                self._mode, self._relabelled = _Mode.label, True
        self._at = hit.end
        return True

    def _may_close(self, hit: Hit, mark: Mark, final: bool) -> bool:
        """A closer that was found in text closes, unless it stands directly between two backticks."""
        if not mark.by_id and self._thinking.previous == "`":
            if hit.end == len(self._buffer) and not final:
                return False
            if self._buffer[hit.end : hit.end + 1] == "`":
                self._thinking.push(self._buffer[hit.start : hit.end])
                self._at = hit.end
                return True
        self._at = hit.end
        self._close(mark)
        return True

    def _may_drop(self, hit: Hit, mark: Mark, final: bool, writer: AnswerWriter | ThoughtWriter) -> bool:
        """A marker that is swallowed; one with an open middle needs its end near by, on its line."""
        middle = self._buffer[hit.end : hit.end + LONGEST_MIDDLE]
        end = middle.find(mark.until) + len(mark.until)
        broken = min((at for at in map(middle.find, "<\n") if at >= 0), default=-1)
        if end < len(mark.until) or 0 <= broken < end:
            if not final and broken < 0 and len(middle) < LONGEST_MIDDLE:
                return False
            writer.push(self._buffer[hit.start : hit.end])
            end = 0
        self._at = hit.end + end
        return True

    def _label(self, final: bool) -> bool:
        assert self._config is not None and self._config.channel is not None
        found, self._at = read_label(self._buffer, self._at, self._config.channel, self._marks, final=final)
        if found is LabelFound.waiting:
            return False
        if found is LabelFound.response:
            self._thinking.close()
            self._mode = _Mode.answer
            self._written.follow(Before.frame)
            self._written.in_frame = self._in_channel_response = True
        elif found is not LabelFound.again:
            self._mode = _Mode.thought
        return True

    # Calls.

    def _may_call(self, hit: Hit, final: bool, *, in_thought: bool) -> bool:
        """An opener was found: a call if it grows into one, text if it does not, and until that is known it waits."""
        grammar = self._marks.thought_calls if in_thought else self._marks.answer_calls
        assert grammar is not None
        grown = grammar.grows(self._buffer, hit.end)
        if grown is None and not final:
            return False
        opener = self._buffer[hit.start : hit.end]
        self._at = hit.end
        if not grown:
            (self._thinking if in_thought else self._written).push(opener)
            return True
        if not in_thought:
            self._written.keep_space()
        elif not self._late:
            self._thinking.keep_space()
        self._call = CallReader(grammar, opener)
        self._call_in_thought = in_thought
        self._mode = _Mode.call
        return True

    def _read_call(self, final: bool) -> bool:
        assert self._call is not None
        found, self._at = self._call.push(self._buffer, self._at, final=final)
        if found is CallEnd.waiting:
            return False
        text, self._call = self._call.text, None
        state: CallState = "closed" if found is CallEnd.closed else "open"
        if found in (CallEnd.aborted, CallEnd.overfull) or self._waiting.size + len(text) > CAP:
            self._uncall(text)
        elif self.deciding:
            self._waiting.add_call(text, state)
            self._mode = _Mode.settling
        elif self._call_in_thought:
            self._out.add("call", text, state)
            self._mode = _Mode.thought
            self._thinking.spoken = True  # the space around such a call is text of the thought
        else:
            self._out.add("call", text, state)
            self._mode = _Mode.answer
            self._written.follow(Before.call)
        return True

    def _uncall(self, text: str) -> None:
        """What looked like a call is text of the thought, or of the answer."""
        if self._call_in_thought:
            self._mode = _Mode.thought
            self._thinking.push(self._waiting.text + text)
            self._waiting = Candidates()
        else:
            self._mode = _Mode.answer
            self._written.push(text)

    def _settle(self, final: bool) -> bool:
        """Candidates stand complete: white space, a closer and further candidates wait with them, all else decides."""
        buffer, at = self._buffer, self._at
        space = _SPACE.match(buffer, at, at + CAP + 1 - self._waiting.size)
        end = self._at = space.end() if space else at
        if space:
            self._waiting.add_space(space.group())
        if self._waiting.size > CAP:
            return self._draft()
        if end == len(buffer):
            return False
        hit = self._marks.thought.search(buffer, end)
        if hit is None or hit.start != end:
            if not final and self._marks.thought.held(buffer, end) == len(buffer) - end:
                return False
            return self._draft()
        mark = self._marks.in_thought[hit.literal]
        if mark.kind == "call" and self._waiting.closer is None:
            grown = self._marks.thought_calls is not None and self._marks.thought_calls.grows(buffer, hit.end)
            grown = False if grown is None and final else grown
            return self._draft() if grown is False else self._may_call(hit, final, in_thought=True)
        if mark.kind == "end" and self._waiting.closer is None:
            self._waiting.closer = mark
        elif mark.kind not in ("end", "end_of_turn", "dropped") or not mark.free:
            return self._draft()
        self._at = hit.end
        return True

    def _draft(self) -> bool:
        """The candidates were drafts: reasoning, and the closer behind them closes."""
        waiting, self._waiting = self._waiting, Candidates()
        self._mode = _Mode.thought
        self._thinking.push(waiting.text)
        if waiting.closer is not None:
            self._close(waiting.closer)
            self._written.push(waiting.space_behind)
        return True

    def _end(self, *, natural: bool) -> None:
        text = self._call.text if self._call else ""
        if self.deciding and not natural:
            if self._mode is _Mode.settling:
                self._draft()
            else:
                self._uncall(text)
        elif self._mode in (_Mode.call, _Mode.settling):
            for candidate, state in self._waiting.calls:
                self._out.add("call", candidate, state)
            self._out.add("call", text, "open" if natural else "cut")
            self._mode = _Mode.thought if self._call_in_thought and not self._late else _Mode.answer
            self._written.follow(Before.call)
        self.ended_inside_reasoning = self._mode in (_Mode.thought, _Mode.label)
        if self._mode is _Mode.answer:
            self._written.finish(keep=self._config is None)
