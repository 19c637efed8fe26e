"""One round of a turn: one answer of the model, or the rest of one that was cut off."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from ..events import Completion, Generation, GenerationEvent, GenerationInfo, gather
from ..protocols.config import StartState
from ..turn import Turn


@dataclass(frozen=True, slots=True)
class Prepared:
    """A turn that is ready to run, its prompt, and where its first token stood."""

    turn: Turn
    ids: list[int]
    start: StartState
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class Round:
    """Runs a prepared turn, and knows afterwards what it would take to go on with it.

    Args:
        prepared: the prompt is that of the round's beginning, also where it goes on.
        earlier: the round that this one goes on with.
    """

    prepared: Prepared
    earlier: Round | None = None
    seen: list[GenerationEvent] = field(default_factory=list)
    info: GenerationInfo = field(default_factory=lambda: GenerationInfo("cancelled"))

    @property
    def turn(self) -> Turn:
        return self.prepared.turn

    @property
    def written(self) -> list[int]:
        """The ids of the answer so far."""
        return self.turn.record

    @property
    def completion(self) -> Completion:
        """The whole answer, the part that it goes on from included."""
        return gather([*self.turn.replayed, *self.seen, Generation.info(self.info)])

    def events(self) -> Generator[GenerationEvent, None, None]:
        """What is new, but for the info."""
        shown = gather(self.turn.replayed)
        before = self.earlier.completion if self.earlier is not None else shown
        known = {
            Generation.reasoning: len(before.reasoning) - len(shown.reasoning),
            Generation.chunk: len(before.content) - len(shown.content),
        }
        inner = self.turn.events()
        try:
            yield from shortened(self._kept(inner), known)
        finally:
            inner.close()

    def copy(self) -> Round:
        return replace(self, seen=list(self.seen))

    def _kept(self, events: Iterable[GenerationEvent]) -> Iterator[GenerationEvent]:
        for event in events:
            if isinstance(event, Generation.info):
                notes = tuple(dict.fromkeys(self.prepared.notes + event.info.notes))
                self.info = replace(event.info, notes=notes)
            else:
                self.seen.append(event)
                yield event


def shortened(events: Iterable[GenerationEvent], known: dict[Any, int]) -> Iterator[GenerationEvent]:
    """The events without the first `known` characters of each kind: those were given when the turn was cut off."""
    for event in events:
        if isinstance(event, Generation.reasoning | Generation.chunk) and known[type(event)] > 0:
            size = known[type(event)]
            known[type(event)] = size - len(event.text)
            if event.text[size:]:
                yield type(event)(event.text[size:])
        else:
            yield event
