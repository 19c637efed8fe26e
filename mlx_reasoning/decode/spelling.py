"""How markers stand in the text that is scanned.

A marker that is one token of the vocabulary is known by its id, and the same characters in other tokens are text. Such
a marker travels through the scanned text as one lone surrogate, which decoded text never holds, so that a thought is
one string with everything in order.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from .stop import Marker

_FIRST_SURROGATE = 0xD800
_SURROGATES = re.compile("[\ud800-\ud8ff]")


class Spelling:
    """How markers stand in the scanned text: as they are, or, if known by token id, as one lone surrogate each."""

    def __init__(self, by_id: Collection[str] = ()) -> None:
        self._by_id = frozenset(by_id)
        self._surrogates: dict[str, str] = {}

    def knows(self, text: str) -> bool:
        """Whether this marker is recognised by its id."""
        return text in self._by_id

    def pattern(self, text: str) -> str:
        """What to scan for."""
        if text not in self._by_id:
            return text
        return self._surrogates.setdefault(text, chr(_FIRST_SURROGATE + len(self._surrogates)))

    def encode(self, piece: str | Marker) -> str:
        """A piece as it stands in the scanned text."""
        if isinstance(piece, Marker):
            return self._surrogates.get(piece.text, piece.text)
        return piece

    def decode(self, text: str) -> str:
        """Scanned text as it was written."""
        if not self._surrogates or _SURROGATES.search(text) is None:
            return text
        for marker, surrogate in self._surrogates.items():
            text = text.replace(surrogate, marker)
        return text
