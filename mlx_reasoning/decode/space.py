"""White space that waits for what follows it. It knows sizes, and nothing of what the space stands between."""

from __future__ import annotations


class Space:
    """A row of white space, held until somebody knows whether it counts."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self.size = 0

    def add(self, text: str) -> None:
        if text:
            self._pieces.append(text)
            self.size += len(text)

    def take(self) -> str:
        text = "".join(self._pieces)
        self.drop()
        return text

    def drop(self) -> None:
        self._pieces, self.size = [], 0


def after_closer(space: str) -> str:
    """What stays of the space behind a closer: the indentation of the first visible line."""
    return space.rpartition("\n")[2] if "\n" in space else ""


def after_frame(space: str) -> str:
    """What stays of the space behind an answer frame's opener: blank lines go, indentation stays."""
    return space.rpartition("\n")[2]
