"""Markdown that comes in pieces, cut into blocks that will not change any more."""

from __future__ import annotations

import re
from dataclasses import dataclass

LONGEST = 16
"""Lines after which a list or a code block is cut, so that what is still open stays smaller than a screen."""
_FENCE = re.compile(r"( *)(`{3,}|~{3,})(.*)")
_ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)])(?:\s|$)")


@dataclass(frozen=True, slots=True)
class Block:
    """Markdown that can be drawn for good.

    Args:
        joined: it goes on with the block before it, without a blank line between.
    """

    text: str
    joined: bool = False


class Blocks:
    """Cuts Markdown; what is pushed comes out once, in order, whatever the pieces are."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._partial = ""
        self._blank = False
        self._joined = False
        self._fence: re.Match[str] | None = None

    @property
    def open(self) -> Block:
        """What may still change."""
        lines = [*self._lines, self._partial] if self._partial else self._lines
        return Block("\n".join(lines), self._joined)

    def push(self, text: str) -> list[Block]:
        """Adds text; gives the blocks that it finished."""
        *lines, self._partial = (self._partial + text).split("\n")
        return [block for line in lines for block in self._line(line)]

    def finish(self) -> list[Block]:
        """What is left at the end."""
        last, self._partial = self._partial, ""
        done = self._line(last) if last else []
        return [*done, *self._cut()]

    def _line(self, line: str) -> list[Block]:
        if self._fence is not None:
            return self._fenced(line)
        if not line.strip():
            if self._is_list:
                self._blank = bool(self._lines)
                return []
            return self._cut()
        done: list[Block] = []
        if self._blank:  # an indented line goes on with a list's item
            if line.startswith("  "):
                self._lines.append("")
            else:
                done = self._cut()
            self._blank = False
        fence = _FENCE.match(line)
        if fence and ((self._is_list and fence[1]) or "`" not in fence[3] or fence[2][0] == "~"):
            inside = self._is_list and bool(fence[1])
            done += [] if inside else self._cut()
            self._fence = fence
        elif line.startswith("#"):
            done += self._cut()
            self._lines.append(line)
            return [*done, *self._cut()]
        elif len(self._lines) >= LONGEST and _ITEM.match(line):
            done += self._cut()
            self._joined = True
        self._lines.append(line)
        return done

    @property
    def _is_list(self) -> bool:
        return bool(self._lines and _ITEM.match(self._lines[0]))

    def _fenced(self, line: str) -> list[Block]:
        fence = self._fence
        assert fence is not None
        self._lines.append(line)
        mark = line.strip()
        closes = len(mark) >= len(fence[2]) and not mark.strip(fence[2][0])
        if closes:
            self._fence = None
            return [] if self._is_list else self._cut()
        if self._is_list or len(self._lines) < LONGEST:
            return []
        first = self._lines[0]
        self._lines.append(fence[2])
        done = self._cut()
        self._lines, self._joined = [first], True
        return done

    def _cut(self) -> list[Block]:
        lines, joined = self._lines, self._joined
        self._lines, self._joined, self._blank = [], False, False
        if not any(line.strip() for line in lines) or (joined and len(lines) <= 2 and _is_empty_fence(lines)):
            return []
        return [Block("\n".join(lines), joined)]


def _is_empty_fence(lines: list[str]) -> bool:
    """A code block that was cut just before its end has nothing left to draw."""
    return bool(_FENCE.match(lines[0])) and not any(line.strip("`~ ") for line in lines[1:])
