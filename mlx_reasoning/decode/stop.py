"""Stop strings: text is let through until one of them is complete, wherever it was cut.

The filter knows text and opaque markers in order. It does not know what a marker means, and never sees a thought
apart from an answer: whoever builds the pipeline puts it first (every text) or last (answers only).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..errors import OptionError
from .scan import Scanner


class Marker(NamedTuple):
    """A marker of the protocol that was recognised by its token id, and the text it stands for."""

    text: str


class StopStringFilter:
    """Holds back what may become a stop string, and ends the turn when one is complete.

    The match that completes first wins, the longest on a tie; it is not emitted, the text before it is.

    Args:
        stop_strings: none of them empty.

    Raises:
        OptionError: a stop string is empty or no string.
    """

    def __init__(self, stop_strings: Sequence[str]) -> None:
        self.scanner = Scanner(check_stop_strings(stop_strings))
        self.stop_sequence: str | None = None
        self._held: list[str | Marker] = []
        self._text = ""

    @property
    def state(self) -> tuple[str | Marker, ...]:
        """What is held, to compare and to `restore`."""
        return tuple(self._held)

    def restore(self, state: tuple[str | Marker, ...]) -> None:
        self._held = list(state)
        self._text = "".join(_text(piece) for piece in state)

    def push(self, piece: str | Marker) -> list[str | Marker]:
        """What is certain after this piece; nothing once a stop string was found."""
        if self.stop_sequence is not None:
            return []
        self._held.append(piece)
        self._text += _text(piece)
        hit = self.scanner.search(self._text)
        if hit is not None:
            self.stop_sequence = hit.literal
            return self._release(hit.start, cut_markers=True)
        return self._release(len(self._text) - self.scanner.held(self._text), cut_markers=False)

    def finish(self, reason: str = "stop") -> list[str | Marker]:
        """Lets go of what was held; also used where a call interrupts an answer."""
        if self.stop_sequence is not None:
            return []
        return self._release(len(self._text), cut_markers=True)

    def _release(self, count: int, *, cut_markers: bool) -> list[str | Marker]:
        """Takes `count` characters from the front; a marker that would be cut waits, or becomes its text."""
        out: list[str | Marker] = []
        rest: list[str | Marker] = []
        for piece in self._held:
            text = _text(piece)
            if rest or count <= 0:
                rest.append(piece)
            elif len(text) <= count:
                out.append(piece)
                count -= len(text)
            elif isinstance(piece, str) or cut_markers:
                out.append(text[:count])
                rest.append(text[count:])
            else:
                rest.append(piece)
        self._held = rest
        self._text = "".join(map(_text, rest))
        return out


def _text(piece: str | Marker) -> str:
    return piece.text if isinstance(piece, Marker) else piece


def check_stop_strings(stop_strings: Sequence[str]) -> tuple[str, ...]:
    """The stop strings as a tuple.

    Raises:
        OptionError: one is empty or no string.
    """
    if isinstance(stop_strings, str):
        stop_strings = (stop_strings,)
    for text in stop_strings:
        if not isinstance(text, str) or not text:
            raise OptionError(f"a stop string is {text!r}: give strings of at least one character")
    return tuple(stop_strings)
