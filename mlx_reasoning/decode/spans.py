"""The two writers: text of an answer, text of a thought, and the white space that each of them holds.

They know law 4 and nothing else: what stands before the space decides what stays of it. Which text goes where, and
what is a marker, is the emitter's affair.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Any

from .calls import CAP
from .lines import Lines


class Before(Enum):
    """What stands directly before the waiting white space of an answer."""

    turn = auto()
    closer = auto()
    glued_closer = auto()  # of a thought that interrupted a line of the answer
    frame = auto()
    call = auto()
    end_of_turn = auto()
    text = auto()


class Space:
    """A row of white space, held until somebody knows whether it counts."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self.size = 0
        self.spilled = False  # it grew past the cap, and counts up to its end

    def add(self, text: str) -> None:
        if text:
            self._pieces.append(text)
            self.size += len(text)

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def restore(self, text: str) -> None:
        self._pieces, self.size = ([text] if text else []), len(text)

    def take(self) -> str:
        text = self.text
        self.drop()
        return text

    def drop(self) -> None:
        self._pieces, self.size = [], 0


class AnswerWriter:
    """The answer's text.

    Args:
        emit: takes what is certain.
        tracks_lines: whether somebody asks about columns and fences.
    """

    def __init__(self, emit: Callable[[str], None], *, tracks_lines: bool) -> None:
        self._emit = emit
        self._tracks_lines = tracks_lines
        self._space = Space()
        self._lines = Lines()
        self._ends_visible = False  # the last character is visible
        self.before = Before.turn
        self.in_frame = False

    @property
    def state(self) -> tuple[object, ...]:
        return self.before, self.in_frame, self._ends_visible, self._space.text, self._lines.state

    def restore(self, state: tuple[Any, ...]) -> None:
        self.before, self.in_frame, self._ends_visible, space, lines = state
        self._space.restore(space)
        self._lines.restore(lines)

    @property
    def at_line_start(self) -> bool:
        """At column 0 of a line outside a code fence."""
        return self._lines.column0 and not self._lines.fenced

    @property
    def waiting(self) -> int:
        """How many characters wait."""
        return self._space.size

    @property
    def flowing(self) -> bool:
        """Ordinary text that ends in a visible character would pass unchanged."""
        mid = self.before is Before.text and self._ends_visible and not self._space.size
        return mid and (self._lines.settled or not self._tracks_lines)

    def push(self, text: str) -> None:
        if not text:
            return
        if self._tracks_lines:
            self._lines.push(text)
        if self.before is not Before.text:
            body = text.lstrip()
            self._space.add(text[: len(text) - len(body)])
            if not body and self._space.size <= CAP:
                return
            self._emit(self._space.take() if self._space.size > CAP else self._leading_space())
            self.before = Before.text
            text = body
        if self.in_frame:
            body = text.rstrip()
            if body:
                self.keep_space()
                self._space.spilled = False
            tail = text[len(body) :]
            self._space.add(tail)
            if self._space.spilled or self._space.size > CAP:
                body += self._space.take()
                self._space.spilled = True
            text = body
        if text:
            self._emit(text)
            self._ends_visible = not text[-1].isspace()

    def _leading_space(self) -> str:
        space = self._space.take()
        if self.before is Before.closer:  # blank lines and the marker's own line go, indentation stays
            return space.rpartition("\n")[2] if "\n" in space else ""
        return space.rpartition("\n")[2] if self.before is Before.frame else space

    def keep_space(self) -> None:
        """The space that waited at the end of a frame's text is text after all."""
        if self.before is Before.text and self._space.size:
            self._emit(self._space.take())
            self._ends_visible = False

    def interrupt(self) -> bool:
        """A thought opens here. Gives whether it interrupts a line, right after a visible character."""
        if self.before is Before.glued_closer:  # the line goes on behind the thought that interrupted it
            self._ends_visible = self._ends_visible and not self._space.size
            self._emit(self._space.take())
            self.before = Before.text
        self.keep_space()
        self._space.drop()
        return self.before is Before.text and self._ends_visible

    def follow(self, before: Before) -> None:
        """A marker ended: what follows stands behind it. Space that waited for a closer is gone, other text stays."""
        if before is not Before.closer:
            self.keep_space()
        self._space.drop()
        self.before = before
        if before not in (Before.glued_closer, Before.call, Before.end_of_turn):
            self._lines.restart()

    def stray(self) -> None:
        """A closer that closes nothing: only white space before it is touched."""
        if self.before not in (Before.text, Before.glued_closer):
            self.follow(Before.closer)

    def finish(self, *, keep: bool) -> None:
        """The turn ends. Space behind a marker goes; in a frame, or if `keep`, it is text."""
        if self.before is Before.text or (keep and self.before is Before.turn):
            self._emit(self._space.take())
        self._space.drop()


class ThoughtWriter:
    """The thought's text: white space at both edges goes, so that it waits at the end.

    Args:
        emit: takes what is certain.
        spoken: the prompt already holds visible text of the thought.
    """

    def __init__(self, emit: Callable[[str], None], *, spoken: bool) -> None:
        self._emit = emit
        self._space = Space()
        self.spoken = spoken
        self.previous = ""  # the last character, visible or not

    @property
    def state(self) -> tuple[object, ...]:
        return self.spoken, self.previous == "`", self._space.text

    def restore(self, state: tuple[Any, ...]) -> None:
        self.spoken, backtick, space = state
        self.previous = "`" if backtick else ""
        self._space.restore(space)

    @property
    def waiting(self) -> int:
        return self._space.size

    @property
    def flowing(self) -> bool:
        return self.spoken and not self._space.size and self.previous != "`"

    def start(self) -> None:
        self._space.drop()
        self.spoken, self.previous = False, ""

    def push(self, text: str) -> None:
        if not text:
            return
        self.previous = text[-1]
        body = text.rstrip()
        tail = text[len(body) :]
        if not self.spoken:
            body = body.lstrip()
        if body:
            self.keep_space()
            self._space.spilled = False
            self._emit(body)
            self.spoken = True
        if self.spoken:
            self._space.add(tail)
            if self._space.spilled or self._space.size > CAP:
                self.keep_space()
                self._space.spilled = True

    def keep_space(self) -> None:
        """The space that waits is text of the thought."""
        self._emit(self._space.take())

    def close(self) -> None:
        self._space.drop()
