"""Closing a thought from outside: a budget, a person who has waited enough, an end of turn that came too early, a loop.

A thought is closed by putting tokens in place of the sampled ones, in the one token loop, so that cache and ids agree.
Nothing is cut in half: a character, a marker or a call that is being written is waited for.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from ..decode.decoder import TokenStreamDecoder
from ..errors import OptionError, ReasoningControlError
from ..protocols.config import ModelProfile
from .loop import TokenLoop
from .sampling import check_count

EosInReasoning = Literal["stop", "close"]
_LOOK_EVERY, _TAIL, _SPAN = 32, 1024, 192  # of the repetition guard, in tokens
_WHY = {
    "budget": "the thought was closed at its budget",
    "asked": "the thought was closed on request",
    "eos": "the model ended its turn inside the thought, which was closed",
    "repetition": "the thought went in circles and was closed",
}


class ThoughtKeywords(TypedDict, total=False):
    """What a caller may set of it, as keywords."""

    max_reasoning_tokens: int | None
    min_answer_tokens: int | None
    eos_in_reasoning: EosInReasoning
    repetition_guard: bool


_NAMES = ThoughtKeywords.__optional_keys__


@dataclass(frozen=True, slots=True)
class ThoughtLimits:
    """What a thought may take.

    Args:
        budget: tokens sampled inside the turn's thoughts, delimiters included; None for no limit.
        min_answer_tokens: kept free of `max_tokens` for the answer.
        eos_in_reasoning: a turn that ends inside a thought ends ("stop"), or the thought is closed ("close").
        repetition_guard: close a thought that repeats itself word for word.
        transition: ids that close a thought.
        closer: the shortest ids that do, for a thought that is opened again.
    """

    budget: int | None
    min_answer_tokens: int
    eos_in_reasoning: EosInReasoning
    repetition_guard: bool
    transition: tuple[int, ...]
    closer: tuple[int, ...]

    @property
    def active(self) -> bool:
        """Whether anything can close a thought but a request."""
        bounded = self.budget is not None or self.min_answer_tokens > 0
        return bounded or self.eos_in_reasoning == "close" or self.repetition_guard

    @classmethod
    def of(cls, given: ThoughtKeywords | dict[str, Any], profile: ModelProfile, tokenizer: Any) -> ThoughtLimits:
        """The limits that keywords ask for.

        Raises:
            OptionError: a value is out of range.
            ReasoningControlError: the family has no thoughts.
        """
        budget, room = given.get("max_reasoning_tokens"), given.get("min_answer_tokens")
        eos, guard = given.get("eos_in_reasoning") or "stop", given.get("repetition_guard") or False
        if budget is not None:
            check_count("max_reasoning_tokens", budget, 0)
        if room is not None:
            check_count("min_answer_tokens", room, 0)
        if eos not in ("stop", "close"):
            raise OptionError(f"eos_in_reasoning is {eos!r}: choose 'stop' or 'close'")
        if not isinstance(guard, bool):
            raise OptionError(f"repetition_guard is {guard!r}: it must be True or False")
        limits = cls(budget, room or 0, eos, guard, *_closing_ids(profile, tokenizer))
        asked = next(
            (name for name in ("max_reasoning_tokens", "min_answer_tokens") if given.get(name) is not None), ""
        )
        asked = asked or ("eos_in_reasoning" if eos == "close" else "repetition_guard" if guard else "")
        if asked and not limits.closer:
            raise ReasoningControlError(f"this model does not think, so {asked} means nothing here: leave it out")
        return limits


def _closing_ids(profile: ModelProfile, tokenizer: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if not profile.closing:
        return (), ()
    whole, short = (tokenizer.encode(text, add_special_tokens=False) for text in (profile.transition, profile.closing))
    return tuple(whole), tuple(short)


class ThoughtControl:
    """Watches one turn, and closes its thoughts.

    Args:
        max_tokens: of the turn, or None.

    Limits: `close_soon` may be called from any thread, everything else from the loop's.
    """

    def __init__(
        self, loop: TokenLoop, decoder: TokenStreamDecoder, limits: ThoughtLimits, stop_ids: frozenset[int],
        max_tokens: int | None,
    ) -> None:  # fmt: skip
        self._loop, self._decoder, self._limits, self._stop_ids = loop, decoder, limits, stop_ids
        self._last_start = None
        if max_tokens is not None and limits.min_answer_tokens:
            self._last_start = max_tokens - limits.min_answer_tokens - len(limits.transition)
        self._asked = threading.Event()
        self._inside = decoder.inside_reasoning
        self._sampled = 0  # inside thoughts
        self._forcing = 0
        self._recent: list[int] = []
        self.forced_inside = 0
        self.closed_by: str | None = None
        if limits.eos_in_reasoning == "close":
            loop.replace_with(self._instead_of)
        if limits.budget == 0 and self._inside:
            self._close("budget")

    @property
    def notes(self) -> tuple[str, ...]:
        return (_WHY[self.closed_by],) if self.closed_by else ()

    def close_soon(self) -> None:
        """Closes the thought that runs, or the next one; from any thread."""
        self._asked.set()

    def after(self, token: int) -> None:
        """Looks at a token that has gone through the decoder."""
        was_inside, self._inside = self._inside, self._decoder.inside_reasoning
        if self._forcing:
            self._forcing -= 1
            self.forced_inside += was_inside or self._inside
            return
        if not (was_inside or self._inside):
            return
        self._sampled += 1
        if self._limits.repetition_guard and self._inside:
            self._recent.append(token)
        if self._inside:
            why = self._why()
            if why is not None and self._decoder.can_close:
                self._close(why)

    def _why(self) -> str | None:
        if self._asked.is_set():
            return "asked"
        if self._limits.budget is not None and self._sampled >= self._limits.budget:
            return "budget"
        if self._last_start is not None and self._loop.generated >= self._last_start:
            return "budget"
        if self._limits.repetition_guard and self._sampled % _LOOK_EVERY == 0:
            del self._recent[:-_TAIL]
            if repeats(self._recent, _SPAN):
                return "repetition"
        return None

    def _close(self, why: str) -> None:
        ids = self._limits.transition if self.closed_by is None else self._limits.closer
        self._loop.force(ids, may_end=False)
        self._forcing = len(ids)
        self._recent.clear()
        self._asked.clear()
        self.closed_by = why

    def _instead_of(self, token: int) -> Sequence[int]:
        """What takes the place of an end of turn inside a thought."""
        if token not in self._stop_ids or not self._inside or not self._decoder.can_close:
            return ()
        ids = self._limits.transition if self.closed_by is None else self._limits.closer
        self._forcing, self.closed_by = len(ids), "eos"
        return ids


def repeats(ids: Sequence[int], span: int) -> bool:
    """Whether the last `span` ids are one sequence again and again, at least three times."""
    tail = list(ids[-span:])
    return len(tail) == span and any(
        tail[period:] == tail[:-period] for period in range(1, span // 3 + 1) if tail[-1] == tail[-1 - period]
    )
