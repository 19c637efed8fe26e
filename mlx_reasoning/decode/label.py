"""The label behind a channel's opener: read, and never emitted. It knows where a label ends, not where text goes."""

from __future__ import annotations

import re
from enum import Enum, auto

from ..protocols.config import ReasoningChannel
from .marks import Marks

_WORD = re.compile(r"[a-z][a-z0-9_]*")


class LabelFound(Enum):
    waiting = auto()
    reasoning = auto()
    response = auto()
    none = auto()  # what stands there is no label, so it is body
    again = auto()  # another opener: the label begins anew


def read_label(text: str, at: int, channel: ReasoningChannel, marks: Marks, *, final: bool) -> tuple[LabelFound, int]:
    """Reads a label at `at`; gives what it is and where the body begins.

    A listed label ends at a newline, a marker or the end of the turn; any other lower-case word only at a newline.
    """
    match = _WORD.match(text, at)
    word = match.group() if match else ""
    end = at + len(word)
    if len(word) > channel.longest_label:
        return LabelFound.none, at
    listed = word in channel.reasoning_labels or word in channel.response_labels
    kind = LabelFound.response if word in channel.response_labels else LabelFound.reasoning
    if end == len(text):
        if not final:
            return LabelFound.waiting, at
        return (kind, end) if listed else (LabelFound.none, at)
    if text[end] == "\n" and word:
        return kind, end + 1
    hit = marks.thought.search(text, end)
    if hit is not None and hit.start == end:
        mark = marks.in_thought[hit.literal]
        if mark.kind == "start" and (listed or not word):
            return LabelFound.again, hit.end
        return (kind, end) if listed else (LabelFound.none, at)
    if not final and (listed or not word) and marks.thought.held(text, end) == len(text) - end:
        return LabelFound.waiting, at
    return LabelFound.none, at
