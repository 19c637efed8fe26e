"""A call's payload before it is parsed: which of it is quoted, where the calls of a section begin and end, and whether
what stands around the quoted values is a call's skeleton.

The parsers themselves look for patterns and pass over what they do not know; a call that was half written, or that
holds its own markers in a value, must be told from a whole one before they see it.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from ..protocols.config import Quote, ToolCallFormat
from .scan import Scanner

_DEEPEST = 100
_GAP = "\0"


@dataclass(frozen=True, slots=True)
class Piece:
    """One call of a payload; `whole` says that its quotes are closed and its closer came, `masked` hides its values."""

    text: str
    masked: str
    whole: bool


def masked(text: str, quotes: tuple[Quote, ...]) -> tuple[str, bool]:
    """The text, as long as it was, with every quoted value blanked out; and whether the last quote was closed."""
    opening = Scanner([quote.start for quote in quotes])
    by_start = {quote.start: quote for quote in quotes}
    out: list[str] = []
    at = 0
    while (hit := opening.search(text, at)) is not None:
        quote = by_start[hit.literal]
        end = _quote_end(text, hit.end, quote)
        out.append(text[at : hit.start])
        if end is None:
            out.append(_GAP * (len(text) - hit.start))
            return "".join(out), False
        out.append(_GAP * (end - hit.start))
        at = end
    out.append(text[at:])
    return "".join(out), True


def _quote_end(text: str, at: int, quote: Quote) -> int | None:
    while True:
        end = text.find(quote.end, at)
        if end < 0:
            return None
        if quote.escape:
            slash = text.find("\\", at, end)
            if slash >= 0:
                at = slash + 2
                continue
        return end + len(quote.end)


def pieces(payload: str, calls: ToolCallFormat, *, whole: bool) -> list[Piece]:
    """The calls of a payload, each by itself; text between them that is none of theirs is a piece that is not whole.

    Args:
        whole: the payload's own closer came.
    """
    hidden, closed = masked(payload, calls.quotes)
    if calls.inner is None:
        return [Piece(payload, hidden, closed and (whole or _ends_whole(payload, calls)))]
    opener, closers = calls.inner
    found: list[Piece] = []
    at = 0
    while at < len(payload):
        start = hidden.find(opener, at)
        between = payload[at : start if start >= 0 else len(payload)]
        if between.strip():
            found.append(Piece(between, hidden[at : at + len(between)], not found and not calls.inner_first))
        if start < 0:
            break
        at = _inner_end(hidden, start + len(opener), opener, closers)
        ended = at <= len(payload)
        at = min(at, len(payload))
        found.append(Piece(payload[start:at], hidden[start:at], ended and (closed or at < len(payload))))
    return found or [Piece(payload, hidden, False)]


def _inner_end(hidden: str, at: int, opener: str, closers: tuple[str, ...]) -> int:
    """Where the inner call ends; behind the end of the text if its closer is missing."""
    if not closers:
        following = hidden.find(opener, at)
        return following if following >= 0 else len(hidden)
    ends = [end + len(closer) for closer in closers if (end := hidden.find(closer, at)) >= 0]
    return min(ends, default=len(hidden) + 1)


def _ends_whole(payload: str, calls: ToolCallFormat) -> bool:
    """Whether a payload whose closer is missing may be complete; where nothing tells, its parser does."""
    return not calls.whole_ends or payload.rstrip().endswith(calls.whole_ends)


def has_skeleton(piece: Piece, calls: ToolCallFormat) -> bool:
    """Whether nothing but a call stands around the values."""
    if not calls.skeleton:
        return True
    return re.fullmatch(calls.skeleton, re.sub(_GAP + "+", _GAP, piece.masked), re.DOTALL) is not None


def values_in(piece: Piece) -> int:
    """How many quoted values stand in a piece."""
    return len(re.findall(_GAP + "+", piece.masked))


def jsonable(value: Any, depth: int = 0) -> bool:
    """Whether a value is JSON: its types, finite numbers, text that UTF-8 can hold, and not too deep."""
    if depth > _DEEPEST:
        return False
    if isinstance(value, str):
        return not any("\ud800" <= char <= "\udfff" for char in value) if not value.isascii() else True
    if value is None or isinstance(value, bool | int):
        return True
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, list):
        return all(jsonable(item, depth + 1) for item in value)
    if isinstance(value, dict):
        return all(isinstance(k, str) and jsonable(k) and jsonable(v, depth + 1) for k, v in value.items())
    return False
