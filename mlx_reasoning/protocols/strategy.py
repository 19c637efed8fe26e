"""How a family's template is asked for a thought, and for how much of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from ..errors import ReasoningControlError

Effort: TypeAlias = str
EFFORTS = ("minimal", "low", "medium", "high", "xhigh", "max")  # weakest first


@dataclass(frozen=True, slots=True)
class PromptStrategy:
    """How a family's template is asked for a thought.

    Args:
        switch: the template argument that turns thinking on and off; None where there is none.
        on, off: its values.
        default: what happens with no argument: True, False, or None where the model decides.
        can_disable: whether a thought can be switched off at all.
        words: what switches it on and off in the text of the system message, where there is no argument for it.
        effort: the template argument that takes an effort; None where there is only a switch.
        efforts: its values, weakest first.
    """

    switch: str | None = None
    on: Any = True
    off: Any = False
    default: bool | None = None
    can_disable: bool = True
    words: tuple[str, str] | None = None
    effort: str | None = None
    efforts: tuple[str, ...] = ()

    def arguments(self, thinking: bool | None, effort: Effort | None) -> tuple[dict[str, Any], tuple[str, ...]]:
        """The template arguments for a wish, and notes on what was taken for what.

        Raises:
            ReasoningControlError: the family cannot do it.
        """
        arguments: dict[str, Any] = {}
        notes: tuple[str, ...] = ()
        if effort == "none":
            effort, thinking = None, False if thinking is None else thinking
        if effort is not None:
            if effort not in (*EFFORTS, *self.efforts):
                known = ", ".join(self.efforts or EFFORTS)
                raise ReasoningControlError(f"no effort {effort!r} here: choose one of {known}")
            if thinking is False:
                raise ReasoningControlError("thinking=False and an effort contradict each other: give one of them")
            if self.effort is not None:
                taken = self._nearest(effort)
                if taken != effort:
                    notes = (
                        f"this family has the efforts {', '.join(self.efforts)}: {effort!r} was taken as {taken!r}",
                    )
                arguments[self.effort] = taken
                if self.switch not in (None, self.effort):
                    thinking = True
            elif self.switch is not None or self.words is not None or self.default:
                thinking = True
                notes = (f"this family has no efforts, only a switch: effort {effort!r} was taken as thinking on",)
            else:
                raise ReasoningControlError("this model does not think, so it has no effort to set")
        if thinking is not None:
            arguments = self._switched(thinking) | arguments
        return arguments, notes

    def word(self, thinking: bool | None) -> str:
        """What the system message must say for a wish, where only its text switches; else ""."""
        return "" if self.words is None or thinking is None else self.words[0 if thinking else 1]

    def _nearest(self, effort: Effort) -> Effort:
        """The effort of the family's own that comes nearest; the weaker one of two."""
        if effort in self.efforts:
            return effort
        scale = [word for word in EFFORTS if word in self.efforts]
        if not scale:
            raise ReasoningControlError(f"no effort {effort!r} here: choose one of {', '.join(self.efforts)}")
        return min(scale, key=lambda word: (abs(EFFORTS.index(word) - EFFORTS.index(effort)), EFFORTS.index(word)))

    def _switched(self, thinking: bool) -> dict[str, Any]:
        if self.switch is not None and (thinking or self.can_disable):
            return {self.switch: self.on if thinking else self.off}
        if self.words is not None or thinking is self.default:
            return {}
        word = "on" if thinking else "off"
        raise ReasoningControlError(f"this model's template cannot switch thinking {word}: leave `thinking` unset")
