"""Markers whose spelling is not the family's alone: a checkpoint or a request puts a suffix on some of their words.

Tencent's Hy3 writes `<think:opensource>` or `<think>` by checkpoint, K2 Horizon `<ifm|think_fast>` by the effort that
was asked for. A row has the markers without it, and where to look; the rest is read.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from typing import TypeVar

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Suffix:
    """A suffix on words of a family's tags.

    Args:
        pattern: what a suffix looks like, as a regular expression without groups.
        words: the words that bear it; the first one is looked for.
    """

    pattern: str
    words: tuple[str, ...]

    def found(self, text: str) -> str | None:
        """The suffix that a text shows on the last opening tag of the first word; None where there is no such tag."""
        tags = re.findall(rf"<(?:[^<>\s/]*\|)?{re.escape(self.words[0])}((?:{self.pattern})?)>", text)
        return tags[-1] if tags else None

    def put(self, value: _T, suffix: str) -> _T:
        """The value with the suffix on every marker in it, however deep."""
        words = re.compile(rf"\b({'|'.join(map(re.escape, self.words))})(?:{self.pattern})?(?=>)")
        return _rewritten(value, words, suffix)


def _rewritten(value: _T, words: re.Pattern[str], suffix: str) -> _T:
    if isinstance(value, str):
        return words.sub(lambda match: match[1] + suffix, value)  # type: ignore[return-value]
    if isinstance(value, tuple):
        return tuple(_rewritten(item, words, suffix) for item in value)  # type: ignore[return-value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [field.name for field in dataclasses.fields(value)]
        return dataclasses.replace(value, **{name: _rewritten(getattr(value, name), words, suffix) for name in fields})
    return value
