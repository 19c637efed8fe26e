"""The one place that searches text: fixed strings, found in a stream that may be cut anywhere.

It knows strings and positions. What a string means, and whether it counts where it stands, is its callers' affair.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple


class Hit(NamedTuple):
    """A string found at `start`, up to `end`; `literal` is the string as it was given."""

    start: int
    end: int
    literal: str


class Scanner:
    """Finds the first of several fixed strings to complete, the longest on a tie.

    Args:
        literals: what to look for; empty strings are left out.
        ignore_case: find them in any ASCII case.

    The match that completes first never contains another that completes before it, so a literal that does is
    dropped at once; what remains can be left to one regular expression, which finds the leftmost.
    """

    def __init__(self, literals: Iterable[str], *, ignore_case: bool = False) -> None:
        wanted = sorted({text for text in literals if text}, key=len)
        self._fold = _ascii_lower if ignore_case else str
        self._given = {self._fold(text): text for text in wanted}
        folded = list(self._given)
        kept = [a for a in folded if not any(b != a and b in a[:-1] for b in folded)]
        self._pattern = re.compile(
            "|".join(re.escape(text) for text in sorted(kept, key=len, reverse=True)) or r"(?!)",
            re.IGNORECASE | re.ASCII if ignore_case else 0,
        )
        self._prefixes = {text[:n] for text in kept for n in range(1, len(text))}
        self._longest = max(map(len, kept), default=1) - 1
        heads = {text[0] for text in kept if len(text) > 1}
        if ignore_case:
            heads |= {head.upper() for head in heads}
        self._heads = tuple(heads)

    def search(self, text: str, start: int = 0) -> Hit | None:
        """The first hit at or after `start`."""
        match = self._pattern.search(text, start)
        if match is None:
            return None
        return Hit(match.start(), match.end(), self._given[self._fold(match.group())])

    def held(self, text: str, start: int = 0) -> int:
        """How many characters at the end of `text` may still grow into a hit, looking back no further than `start`."""
        size = len(text)
        low = max(start, size - self._longest)
        for head in self._heads:
            if text.find(head, low) >= 0:
                break
        else:
            return 0
        tail = self._fold(text[low:])
        for at in range(len(tail)):
            if tail[at:] in self._prefixes:
                return len(tail) - at
        return 0

    def touches(self, text: str) -> bool:
        """Whether `text` holds a hit or may begin one."""
        return self.search(text) is not None or self.held(text) > 0


def _ascii_lower(text: str) -> str:
    return text.lower() if text.isascii() else "".join(c.lower() if c.isascii() else c for c in text)
