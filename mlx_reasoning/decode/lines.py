"""Where a text stands in its lines: at column 0 or not, inside a code fence or not. Nothing else."""

from __future__ import annotations

import re

_MAYBE_FENCE = re.compile(r" {0,3}(?:`{0,2}|`{3,}[^`\n]*|~{0,2}|~{3,}[^\n]*)\Z")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})([^\n]*)\Z")
_LONGEST_FENCE_LINE = 120


class Lines:
    """Fed with a text in pieces; says whether the next character opens a line, and whether a fence is open."""

    def __init__(self) -> None:
        self.column0 = True
        self._fence = ""
        self._line: str | None = ""  # the running line, while it may still become a fence

    @property
    def fenced(self) -> bool:
        return bool(self._fence)

    @property
    def state(self) -> tuple[bool, str, str | None]:
        return self.column0, self._fence, self._line

    def restore(self, state: tuple[bool, str, str | None]) -> None:
        self.column0, self._fence, self._line = state

    @property
    def settled(self) -> bool:
        """Inside a line that is no fence, so that text without a newline changes nothing."""
        return self._line is None

    def push(self, text: str) -> None:
        first, *others = text.split("\n")
        self._extend(first)
        for part in others:
            self._end_line()
            self._extend(part)

    def restart(self) -> None:
        """A marker ended: what follows opens a line."""
        self.column0, self._line = True, ""

    def _extend(self, part: str) -> None:
        if not part:
            return
        self.column0 = False
        if self._line is not None:
            line = self._line + part
            self._line = line if len(line) < _LONGEST_FENCE_LINE and _MAYBE_FENCE.match(line) else None

    def _end_line(self) -> None:
        match = _FENCE.match(self._line.rstrip("\r")) if self._line else None
        if match:
            run, rest = match.groups()
            if not self._fence:
                self._fence = run
            elif run[0] == self._fence[0] and len(run) >= len(self._fence) and not rest.strip():
                self._fence = ""
        self.restart()
