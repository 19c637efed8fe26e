"""The markers of one protocol, laid out for scanning: what is looked for in a thought, and what in an answer.

This module knows nothing of states.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from ..protocols.config import ReasoningConfig, ToolCallFormat
from .calls import CallGrammar
from .scan import Scanner
from .spelling import Spelling

LONGEST_MIDDLE = 64  # characters between the two ends of a dropped marker
Kind: TypeAlias = Literal["start", "end", "frame_start", "frame_end", "end_of_turn", "dropped", "call"]


@dataclass(frozen=True, slots=True)
class Mark:
    """A marker as it is found: `free` means that it counts wherever it stands, `until` what ends an open middle."""

    kind: Kind
    text: str
    free: bool
    by_id: bool
    until: str = ""


class Marks:
    """Everything that an emitter looks for.

    Args:
        config: the thoughts' markers; None where only calls are looked for.
        calls: the calls' markers; None where tool syntax is text.
        by_id: the markers' texts that are recognised by token id.
    """

    def __init__(
        self, config: ReasoningConfig | None, calls: ToolCallFormat | None, by_id: Collection[str] = ()
    ) -> None:
        self.spelling = Spelling(by_id)
        self.in_answer: dict[str, Mark] = {}
        self.in_thought: dict[str, Mark] = {}
        self.frame_starts = frozenset(frame.start for frame in config.answer_frames) if config else frozenset()
        self.ignore_case = bool(config and config.ignore_case)
        if config:
            self._add_config(config)
        if calls:
            for opener in calls.openers:
                mark = self._mark("call", opener, free=True)
                self.in_answer.setdefault(mark[0], mark[1])
                if config and config.calls_in_reasoning != "never":
                    self.in_thought.setdefault(mark[0], mark[1])
        self.answer = Scanner(self.in_answer, ignore_case=self.ignore_case)
        self.thought = Scanner(self.in_thought, ignore_case=self.ignore_case)
        self.answer_calls = self.thought_calls = None
        if calls:
            closers = [self.spelling.pattern(closer) for closer in calls.closers]
            ends = [pattern for pattern, mark in self.in_answer.items() if mark.kind == "end_of_turn"]
            aborts = [pattern for pattern, mark in self.in_thought.items() if mark.kind == "end"]
            self.answer_calls = CallGrammar(calls, closers, ends)
            late = config is not None and config.calls_in_reasoning == "late"
            self.thought_calls = CallGrammar(calls, closers, ends, aborts if late else ())
        self.tracks_lines = bool(config and config.anchor == "line") and any(
            mark.kind == "start" and not mark.free for mark in self.in_answer.values()
        )

    def _add_config(self, config: ReasoningConfig) -> None:
        for kind, texts in (
            ("start", config.starts),
            ("end", config.ends),
            ("end_of_turn", config.end_of_turn),
            ("dropped", config.dropped),
        ):
            for text in texts:
                text, _, until = text.partition("…") if kind == "dropped" else (text, "", "")
                free = config.never_prose or kind in ("end_of_turn", "dropped")
                pattern, mark = self._mark(kind, text, free=free)  # type: ignore[arg-type]
                mark = replace(mark, until=until)
                self.in_answer[pattern] = mark
                self.in_thought[pattern] = mark
        for frame in config.answer_frames:
            for kind, text in (("frame_start", frame.start), ("frame_end", frame.end)):
                pattern, mark = self._mark(kind, text, free=frame.never_prose)  # type: ignore[arg-type]
                self.in_answer[pattern] = mark

    def _mark(self, kind: Kind, text: str, *, free: bool) -> tuple[str, Mark]:
        by_id = self.spelling.knows(text)
        return self.spelling.pattern(text), Mark(kind, text, free or by_id, by_id)
