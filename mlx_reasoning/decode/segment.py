"""What the splitter puts out: pieces of text, each of one kind."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Literal, TypeAlias

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
