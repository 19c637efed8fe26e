"""What a splitter puts out: pieces of text, each of one kind, in order."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Literal, TypeAlias

from .spelling import Spelling

SegmentKind: TypeAlias = Literal["reasoning", "response", "call"]
CallState: TypeAlias = Literal["closed", "open", "cut"]


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of output. A call is whole; `state` says if its closer came, or how the turn ended before it."""

    kind: SegmentKind
    text: str
    state: CallState = "closed"


def merged(segments: list[Segment]) -> list[Segment]:
    """The same segments with neighbours of one kind joined; calls stay apart."""
    if len(segments) < 2:
        return segments
    out: list[Segment] = []
    for kind, run in groupby(segments, key=lambda segment: segment.kind):
        if kind == "call":
            out.extend(run)
        else:
            out.append(Segment(kind, "".join(segment.text for segment in run)))
    return out


class Output:
    """Takes pieces in scanned form, and gives them out as they were written."""

    def __init__(self, spelling: Spelling) -> None:
        self._spelling = spelling
        self._segments: list[Segment] = []

    def add(self, kind: SegmentKind, text: str, state: CallState = "closed") -> None:
        if text:
            self._segments.append(Segment(kind, self._spelling.decode(text), state))

    def reasoning(self, text: str) -> None:
        self.add("reasoning", text)

    def response(self, text: str) -> None:
        self.add("response", text)

    def take(self) -> list[Segment]:
        """Everything since the last time, neighbours of one kind joined."""
        segments, self._segments = self._segments, []
        return merged(segments)
