"""The types that describe a family: data, and the few decisions that follow from the data alone.

Nothing here reads a file, a template or a model; `families.py` holds the rows and `resolve.py` chooses one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import ClassVar, Literal, TypeAlias

from ..errors import OptionError
from .calls import JSON_QUOTES as JSON_QUOTES
from .calls import Quote as Quote
from .calls import ToolCallFormat as ToolCallFormat
from .strategy import EFFORTS as EFFORTS
from .strategy import Effort as Effort
from .strategy import PromptStrategy as PromptStrategy
from .variants import Suffix

Detection: TypeAlias = Literal["auto", "token", "text"]
Anchor: TypeAlias = Literal["line", "start", "anywhere"]
CallsInReasoning: TypeAlias = Literal["late", "never", "always"]
History: TypeAlias = Literal["strip", "loop", "keep"]


class StartState(Enum):
    """Where the first generated character stands.

    `continued` is inside a thought of which the prompt already holds visible text.
    """

    outside = "outside"
    inside = "inside"
    continued = "continued"

    @classmethod
    def of(cls, value: StartState | bool) -> StartState:
        """A bool is taken for `inside` and `outside`.

        Raises:
            OptionError: it is neither.
        """
        if isinstance(value, StartState):
            return value
        if not isinstance(value, bool):
            raise OptionError(f"the start is {value!r:.80}: give a StartState, True (inside a thought) or False")
        return cls.inside if value else cls.outside


@dataclass(frozen=True, slots=True)
class ReasoningChannel:
    """Labels that follow an opener and say what the channel holds. They are metadata, never emitted."""

    gemma4: ClassVar[ReasoningChannel]

    reasoning_labels: tuple[str, ...] = ()
    response_labels: tuple[str, ...] = ()
    longest_label: int = 64


ReasoningChannel.gemma4 = ReasoningChannel(reasoning_labels=("thought",), response_labels=("content",))


@dataclass(frozen=True, slots=True)
class AnswerFrame:
    """A pair of markers around the answer. A word-like one opens only first or after a closer."""

    start: str
    end: str
    never_prose: bool = False


@dataclass(frozen=True, slots=True)
class ReasoningConfig:
    """How one family marks its thoughts.

    Args:
        start_delimiter: the opener; None where the family has none and starts inside.
        end_delimiter: the closer.
        other_starts, other_ends: spellings seen beside the first.
        never_prose: the markers are never written as prose, so that they count anywhere in a text.
        ignore_case: word-like tags are found in any ASCII case (the gateway does this).
        channel: labels after the opener.
        answer_frames: pairs of markers around the answer.
        end_of_turn: strings that end a turn, where they arrive as text.
        dropped: markers that say nothing about routing and are swallowed wherever they stand; a "…" in one is up to 64
            characters of one line without "<".
        detection: by token id where the marker is one token ("auto"), always ("token"), or never ("text").
        anchor: where a word-like opener opens in a text: first, after a closer or at column 0 outside a code
            fence ("line"); only first or after a closer ("start"); "anywhere".
        calls_in_reasoning: a call opener in a thought is decided late, never counts, or always does.
    """

    start_delimiter: str | None
    end_delimiter: str
    other_starts: tuple[str, ...] = ()
    other_ends: tuple[str, ...] = ()
    never_prose: bool = False
    ignore_case: bool = False
    channel: ReasoningChannel | None = None
    answer_frames: tuple[AnswerFrame, ...] = ()
    end_of_turn: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    detection: Detection = "auto"
    anchor: Anchor = "line"
    calls_in_reasoning: CallsInReasoning = "late"

    def __post_init__(self) -> None:
        for name in ("other_starts", "other_ends", "end_of_turn", "dropped"):
            if not isinstance(getattr(self, name), tuple):
                raise OptionError(f"{name} must be a tuple of strings")
        markers = [*self.starts, *self.ends, *self.end_of_turn, *self.dropped]
        if not all(isinstance(marker, str) and marker for marker in markers):
            raise OptionError("a marker must be a string of at least one character")
        for start in self.starts:
            for end in self.ends:
                if start == end or start.startswith(end) or end.startswith(start):
                    raise OptionError(f"{start!r} and {end!r} cannot be told apart as opener and closer")

    @property
    def starts(self) -> tuple[str, ...]:
        return ((self.start_delimiter,) if self.start_delimiter is not None else ()) + self.other_starts

    @property
    def ends(self) -> tuple[str, ...]:
        return (self.end_delimiter, *self.other_ends)


FrameKind: TypeAlias = Literal["reasoning", "response", "call"]


@dataclass(frozen=True, slots=True)
class FrameProtocol:
    """A protocol of message frames: a header says where a body goes. A header is never text.

    Args:
        name: of the protocol.
        opens: markers that begin a header.
        parts: markers that stand inside a header, and may begin one where its opener is missing.
        bodies: markers that end a header; the body follows.
        direct: markers that begin a body of their own kind without a header.
        closes: markers that end a body.
        named_closes: a close has a header too, which ends like one (XTML).
        routes: patterns over a header, and the kind of body that the first match means; else it is the response.
        bare: how a header without its opener may begin, as a turn does whose prompt ends with the opener.
        call_ends: what ends a call outside its strings; markers, or rows of markers and names.
        calls_in_answers: the family's call markers may stand in an answer's body, and are calls there too.
        to_answer: what ends a thought and begins the answer.
    """

    name: str
    opens: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    bodies: tuple[str, ...] = ()
    direct: tuple[tuple[str, FrameKind], ...] = ()
    closes: tuple[str, ...] = ()
    named_closes: bool = False
    routes: tuple[tuple[str, FrameKind], ...] = ()
    bare: tuple[str, ...] = ()
    call_ends: tuple[str, ...] = ()
    calls_in_answers: bool = False
    to_answer: str = ""

    @property
    def markers(self) -> tuple[str, ...]:
        return (*self.opens, *self.parts, *self.bodies, *(marker for marker, _ in self.direct), *self.closes)


@dataclass(frozen=True, slots=True)
class BudgetTransition:
    """The text with which a family is told that its thinking time is over; it ends with the closer."""

    text: str


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """Everything that is known about a family, or about one loaded model.

    Args:
        name: the row's name, or what a resolved model was taken for.
        reasoning: None for a model that does not think.
        tool_calls: None where no format is known.
        frames: for protocols of message frames; such a row has no `reasoning` beside it.
        turn_header: what opens an assistant turn in a prompt; it bounds the prompt's tail.
        history: thoughts of earlier turns are dropped ("strip"), kept since the last user message ("loop"),
            or always replayed ("keep").
        model_types: the `model_type` values of config.json that belong to this row and to no other.
        stop_token_ids: ids that end a turn; known once a tokenizer is.
        suffix: of markers that the checkpoint or the request spells; the row has them without it.
        tells: a pattern that only this family's templates match, where its markers are another's too.
        source: where the row's facts were seen.
        evidence: what a resolution was based on, in sentences.
    """

    name: str
    reasoning: ReasoningConfig | None = None
    tool_calls: ToolCallFormat | None = None
    frames: FrameProtocol | None = None
    prompt: PromptStrategy = field(default_factory=PromptStrategy)
    budget: BudgetTransition | None = None
    turn_header: str | None = None
    history: History = "strip"
    model_types: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    suffix: Suffix | None = None
    tells: str = ""
    source: str = ""
    evidence: tuple[str, ...] = ()

    def read(self, text: str) -> ModelProfile:
        """The profile with its markers as a text spells them: a prompt, a template, or a vocabulary's tokens."""
        suffix = self.suffix.found(text) if self.suffix is not None else None
        if self.suffix is None or suffix is None:
            return self
        reasoning, calls = self.suffix.put((self.reasoning, self.tool_calls), suffix)
        return replace(self, reasoning=reasoning, tool_calls=calls)

    @property
    def closing(self) -> str:
        """The shortest text that closes a thought and leads to the answer; "" for a family without thoughts."""
        if self.frames is not None:
            return self.frames.to_answer
        if self.reasoning is None:
            return ""
        end, frames = self.reasoning.end_delimiter, self.reasoning.answer_frames
        if not self.reasoning.never_prose:
            end = f"\n{end}\n\n"
        return end if any(frame.start in end for frame in frames) else end + (frames[0].start if frames else "")

    @property
    def transition(self) -> str:
        """What a thought is cut off with: the text that the family was trained on, else `closing`."""
        return self.budget.text if self.budget is not None else self.closing
