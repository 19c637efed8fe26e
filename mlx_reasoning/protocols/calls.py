"""The type that describes how a family writes its tool calls. Data only; `formats.py` holds the formats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Quote:
    """A pair around a string or value of a call; nothing inside it is a marker."""

    start: str
    end: str
    escape: bool = False


JSON_QUOTES = (Quote('"', '"', escape=True),)


@dataclass(frozen=True, slots=True)
class ToolCallFormat:
    """How one family writes a call.

    Args:
        parser: the name of the parser of one call, see `decode/tool_parsers.py`.
        opener, closer: what stands around a call or a section of calls; an empty closer means that the call
            goes on to the end of the turn.
        other_openers, other_closers: spellings seen beside the first.
        shape: what must follow the opener (after white space), or "identifier" (directly, and then a newline
            or `<`); empty where the opener alone is enough.
        quotes: pairs whose insides are payload.
        whole_ends: what a call without its closer must end with to be taken as complete; empty where the parser
            itself refuses half a call.
        inner: what opens each call of a section, and what may close it (nothing: the next one's opener does).
        inner_first: the section begins with an inner opener; else its first call has the section's own.
        skeleton: a pattern over one call in which every quoted value is a NUL; empty where the parser is strict.
        keyed: each quoted value is one argument, so that they can be counted.
    """

    parser: str
    opener: str
    closer: str
    other_openers: tuple[str, ...] = ()
    other_closers: tuple[str, ...] = ()
    shape: tuple[str, ...] | Literal["identifier"] = ()
    quotes: tuple[Quote, ...] = JSON_QUOTES
    whole_ends: tuple[str, ...] = ()
    inner: tuple[str, tuple[str, ...]] | None = None
    inner_first: bool = True
    skeleton: str = ""
    keyed: bool = False

    @property
    def openers(self) -> tuple[str, ...]:
        return (self.opener, *self.other_openers)

    @property
    def closers(self) -> tuple[str, ...]:
        return ((self.closer,) if self.closer else ()) + self.other_closers
