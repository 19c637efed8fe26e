"""Ways of cutting a text, and the small tools that the splitter's tests share."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from mlx_reasoning.protocols.config import ModelProfile
from mlx_reasoning.protocols.families import family

DATA = Path(__file__).parent / "data"


def every_cut(text: str) -> Iterator[list[str]]:
    """The text whole, by one, two and three characters, and cut once at every place."""
    yield [text]
    for size in (1, 2, 3):
        yield [text[at : at + size] for at in range(0, len(text), size)]
    for at in range(1, len(text)):
        yield [text[:at], text[at:]]


def cases(name: str) -> list[dict[str, Any]]:
    with (DATA / f"{name}.jsonl").open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def case_profile(case: dict[str, Any]) -> ModelProfile:
    """The family's row, with the markers of the case where the request chooses them."""
    profile = family(case["family"])
    if case["family"] in ("k2-horizon", "granite-3.2", "tags-thinking") and profile.reasoning is not None:
        reasoning = replace(
            profile.reasoning,
            start_delimiter=case["start"],
            end_delimiter=case["end"],
            other_starts=(),
            other_ends=(),
        )
        return replace(profile, reasoning=reasoning)
    return profile
