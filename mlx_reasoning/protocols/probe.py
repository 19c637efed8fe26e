"""A family that no row knows, worked out from its own template.

The template is rendered with a thought, and with its switch on and off: what stands around the thought is the family's
opener and closer. Rendering is transformers' sandboxed one; nothing else of the checkpoint is run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from .config import ReasoningConfig

Render = Callable[..., str | None]
"""Renders messages with template arguments; None where the template refuses."""

_THOUGHT, _ANSWER = "Zqthoughtqz", "Zqanswerqz"
_KEYS = ("reasoning_content", "reasoning", "thinking")
_MARKER = re.compile(r"(?:<[^<>\s][^<>\n]{0,48}>|\[[A-Z_/][A-Z_ /]{1,48}\]|◁[^◁▷\n]{1,24}▷)")
_NEVER_PROSE = re.compile(r"<\||\|>|<｜|｜>|^\[|◁|:")


@dataclass(frozen=True, slots=True)
class Probed:
    """The markers that a template shows, and how they came to light."""

    config: ReasoningConfig
    evidence: str


def probe(render: Render) -> Probed | None:
    """The thought's markers of a template, or None where it shows none."""
    for rendered, how in _with_thought(render):
        before, _, rest = rendered.partition(_THOUGHT)
        between, found, _ = rest.partition(_ANSWER)
        if not found:
            continue
        openers, closers = _MARKER.findall(before.rstrip()[-64:]), _MARKER.findall(between)
        if openers and closers and before.rstrip().endswith(openers[-1]) and between.lstrip().startswith(closers[0]):
            return _probed(openers[-1], closers[0], how)
    return _from_closed_block(render)


def _with_thought(render: Render) -> Iterator[tuple[str, str]]:
    """A conversation whose last answer has a thought, in every spelling that a template may read."""
    for key in _KEYS:
        answer: dict[str, Any] = {"role": "assistant", "content": _ANSWER, key: _THOUGHT}
        rendered = render([{"role": "user", "content": "Hi"}, answer], add_generation_prompt=False)
        if rendered is not None and _THOUGHT in rendered:
            yield rendered, f"the template writes a message's {key} between its markers"


def _from_closed_block(render: Render) -> Probed | None:
    """An empty block that the template puts before an answer without a thought."""
    messages = [{"role": "user", "content": "Hi"}]
    for switch in ("enable_thinking", "thinking"):
        on, off = (render(messages, **{switch: value}) for value in (True, False))
        if on is None or off is None or on == off:
            continue
        for longer, shorter in ((off, on), (on, off)):
            markers = _MARKER.findall(longer[len(_common(longer, shorter)) :])
            if len(markers) == 2 and _is_pair(markers[0], markers[1]):
                return _probed(markers[0], markers[1], f"the template writes an empty block where {switch} is off")
    return None


def _common(left: str, right: str) -> str:
    for at, (a, b) in enumerate(zip(left, right, strict=False)):
        if a != b:
            return left[:at]
    return left[: min(len(left), len(right))]


def _is_pair(opener: str, closer: str) -> bool:
    """Whether one marker closes the other, as `</x>` closes `<x>`."""
    letters = [re.sub(r"\W|_", "", marker).lower() for marker in (opener, closer)]
    return letters[0] == letters[1] or letters[1].removeprefix("end") == letters[0].removeprefix("start")


def _probed(opener: str, closer: str, how: str) -> Probed | None:
    if opener == closer:
        return None
    never_prose = bool(_NEVER_PROSE.search(opener) and _NEVER_PROSE.search(closer))
    return Probed(ReasoningConfig(opener, closer, never_prose=never_prose), f"{how}: {opener!r} and {closer!r}")
