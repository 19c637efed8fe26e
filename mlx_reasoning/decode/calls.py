"""Finding where a tool call begins and ends in a text. It knows shapes and quotes, and no arguments.

An opener alone is no call, since models name the tag while they plan: it must grow into the family's shape. A closer
counts only outside the strings and values of the call. What is inside a finished call is `tool_calls.py`'s affair.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum

from ..protocols.config import Quote, ToolCallFormat
from .scan import Scanner

CAP = 1 << 20  # characters that may wait for a decision
_SHAPE_SPACE = 64
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")
_LONGEST_IDENTIFIER = 256


class CallEnd(Enum):
    """What became of a call that is being read."""

    waiting = "more text is needed"
    closed = "its closer came"
    ended = "the turn ends here, in so many words"
    aborted = "the thought around it closes here"
    overfull = "it grew past the cap, so it is text"


class CallGrammar:
    """A `ToolCallFormat` made ready for scanning.

    Args:
        calls: the format, its openers and closers as they stand in the scanned text.
        closers: patterns of the closers.
        ends: patterns that end the turn.
        aborts: patterns of the thought's closers, for a call inside a thought.
    """

    def __init__(
        self, calls: ToolCallFormat, closers: Iterable[str], ends: Iterable[str] = (), aborts: Iterable[str] = ()
    ) -> None:
        self.shape = calls.shape
        self.closers = frozenset(closers)
        self.ends = frozenset(ends)
        self.aborts = frozenset(aborts)
        self.quotes = {quote.start: quote for quote in calls.quotes}
        self.outside = Scanner([*self.quotes, *self.closers, *self.ends, *self.aborts])
        self.inside = {
            quote: Scanner([quote.end, *self.aborts, *(("\\",) if quote.escape else ())]) for quote in calls.quotes
        }

    def grows(self, text: str, at: int) -> bool | None:
        """Whether what stands at `at`, right after an opener, has the shape of a call; None while undecided."""
        if not self.shape:
            return True
        if self.shape == "identifier":
            return self._names(text, at)
        rest = text[at : at + _SHAPE_SPACE + max(map(len, self.shape)) + 1]
        body = rest.lstrip()
        if len(rest) - len(body) > _SHAPE_SPACE:
            return False
        if any(body.startswith(start) for start in self.shape):
            return True
        return None if any(start.startswith(body) for start in self.shape) else False

    def _names(self, text: str, at: int) -> bool | None:
        match = _IDENTIFIER.match(text, at, at + _LONGEST_IDENTIFIER)
        if match is None:
            return None if at == len(text) else False
        follows = text[match.end() : match.end() + 1]
        if not follows:
            return None
        return follows in ("\n", "<") or self._closes_at(text, match.end())

    def _closes_at(self, text: str, at: int) -> bool:
        return any(text.startswith(closer, at) for closer in self.closers)


class CallReader:
    """One call on its way: keeps its text, and says when it is over."""

    def __init__(self, grammar: CallGrammar, opener: str) -> None:
        self._grammar = grammar
        self._pieces = [opener]
        self._size = len(opener)
        self._quote: Quote | None = None

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def push(self, text: str, at: int, *, final: bool) -> tuple[CallEnd, int]:
        """Reads `text` from `at`; gives what happened, and how far it read."""
        while self._size <= CAP:
            if len(text) - at > CAP + 1 - self._size:  # no more than fits, so that the cut makes no difference
                text, final = text[: at + CAP + 1 - self._size], True
            scanner = self._grammar.inside[self._quote] if self._quote else self._grammar.outside
            hit = scanner.search(text, at)
            if hit is None:
                end = len(text) - (0 if final else scanner.held(text, at))
                self._keep(text[at:end])
                return (CallEnd.waiting, end) if self._size <= CAP else (CallEnd.overfull, end)
            end = hit.end
            if hit.literal in self._grammar.aborts:
                self._keep(text[at : hit.start])
                return CallEnd.aborted, hit.start
            if self._quote is not None:
                if hit.literal != "\\":
                    self._quote = None
                elif end == len(text) and not final:
                    self._keep(text[at : hit.start])
                    return CallEnd.waiting, hit.start
                else:
                    end = min(end + 1, len(text))
            elif hit.literal in self._grammar.closers:
                self._keep(text[at:end])
                return CallEnd.closed, end
            elif hit.literal in self._grammar.ends:
                self._keep(text[at : hit.start])
                return CallEnd.ended, hit.start
            else:
                self._quote = self._grammar.quotes[hit.literal]
            self._keep(text[at:end])
            at = end
        return CallEnd.overfull, at

    def _keep(self, text: str) -> None:
        if text:
            self._pieces.append(text)
            self._size += len(text)
