"""A thought's calls that stand complete, and wait for what follows to say whether they were meant.

It keeps their texts in order, and the space and the closer behind them. What follows, and what it means, is the
emitter's affair.
"""

from __future__ import annotations

from .marks import Mark
from .segment import CallState


class Candidates:
    """Calls that are decided together, since nothing but white space stands between them."""

    def __init__(self) -> None:
        self._parts: list[tuple[str, CallState | None]] = []
        self._behind: list[str] = []
        self.closer: Mark | None = None  # of the thought, behind the calls
        self.size = 0  # characters that wait

    @property
    def text(self) -> str:
        """The calls and the space between them, as the thought has them if they were drafts."""
        return "".join(part for part, _ in self._parts)

    @property
    def space_behind(self) -> str:
        """The space behind the closer."""
        return "".join(self._behind)

    @property
    def calls(self) -> list[tuple[str, CallState]]:
        return [(part, state) for part, state in self._parts if state is not None]

    def add_call(self, text: str, state: CallState) -> None:
        self._parts.append((text, state))
        self.size += len(text)

    def add_space(self, text: str) -> None:
        if self.closer is None:
            self._parts.append((text, None))
        else:
            self._behind.append(text)
        self.size += len(text)
