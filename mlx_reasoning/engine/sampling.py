"""How the next token is chosen: checked options over mlx-lm's samplers and logits processors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeAlias, TypedDict

import mlx.core as mx
from mlx_lm.sample_utils import make_logits_processors, make_sampler

from ..errors import OptionError

Sampler: TypeAlias = Callable[[mx.array], mx.array]
LogitsProcessor: TypeAlias = Callable[[mx.array, mx.array], mx.array]

_RANGES: dict[str, tuple[float, float]] = {
    "temperature": (0, math.inf),
    "top_p": (0, 1),
    "min_p": (0, 1),
    "xtc_probability": (0, 1),
    "xtc_threshold": (0, 0.5),
    "repetition_penalty": (0, math.inf),
    "presence_penalty": (-math.inf, math.inf),
    "frequency_penalty": (-math.inf, math.inf),
}
_COUNTS = ("top_k", "repetition_context_size", "presence_context_size", "frequency_context_size")


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingOptions:
    """Sampling, with mlx-lm's names and meanings; a temperature of 0 is greedy, and then only penalties act.

    Args:
        top_p: 0 and 1 both mean off.
        top_k: 0, or the whole vocabulary or more, means off.
        repetition_penalty: multiplies; 0 and 1 mean off. The other two penalties are subtracted.
        logit_bias: added to the logits of these token ids.
        xtc_special_tokens: ids that xtc never removes.
        seed: gives the ids that mlx-lm gives after `mx.random.seed(seed)`.

    Raises:
        OptionError: a value of the wrong type or out of range.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    xtc_probability: float = 0.0
    xtc_threshold: float = 0.1
    xtc_special_tokens: tuple[int, ...] = ()
    repetition_penalty: float | None = None
    repetition_context_size: int = 20
    presence_penalty: float | None = None
    presence_context_size: int = 20
    frequency_penalty: float | None = None
    frequency_context_size: int = 20
    logit_bias: Mapping[int, float] | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            if value is not None or not name.endswith("_penalty"):
                check_number(name, value, low, high)
        for name in _COUNTS:
            check_count(name, getattr(self, name), 0 if name == "top_k" else 1)
        if self.seed is not None:
            check_count("seed", self.seed, 0)
        if self.logit_bias is not None:
            object.__setattr__(self, "logit_bias", _checked_bias(self.logit_bias))

    @classmethod
    def of(cls, given: Mapping[str, Any], generation_config: Mapping[str, Any]) -> SamplingOptions:
        """What was given and not None, over what the model's generation_config.json says, over greedy.

        The file's temperature counts only with `do_sample`; its other values shape whatever sampling there is.
        A value in the file that makes no sense is passed over: the file is not the caller's.
        """
        options = cls()
        for name in ("temperature", "top_p", "top_k", "min_p", "repetition_penalty"):
            value = generation_config.get(name)
            if name == "temperature":
                value = (1.0 if value is None else value) if generation_config.get("do_sample") is True else None
            if value is not None:
                try:
                    options = replace(options, **{name: value})
                except OptionError:
                    continue
        return replace(options, **{name: value for name, value in given.items() if value is not None})

    def sampler(self, vocab_size: int | None) -> Sampler:
        """Takes log-probabilities (1, V) and gives a token (1,)."""
        top_k = 0 if vocab_size is not None and self.top_k >= vocab_size else self.top_k
        made: Sampler = make_sampler(
            temp=self.temperature,
            top_p=self.top_p,
            min_p=self.min_p,
            top_k=top_k,
            xtc_probability=self.xtc_probability,
            xtc_threshold=self.xtc_threshold,
            xtc_special_tokens=list(self.xtc_special_tokens),
        )
        return made

    def logits_processors(self) -> list[LogitsProcessor]:
        """Each takes the tokens so far (T,) and logits (1, V), and gives logits."""
        made: list[LogitsProcessor] = make_logits_processors(
            logit_bias=dict(self.logit_bias) if self.logit_bias else None,
            repetition_penalty=None if self.repetition_penalty == 1 else self.repetition_penalty,
            repetition_context_size=self.repetition_context_size,
            presence_penalty=self.presence_penalty,
            presence_context_size=self.presence_context_size,
            frequency_penalty=self.frequency_penalty,
            frequency_context_size=self.frequency_context_size,
        )
        return made


class SamplingKeywords(TypedDict, total=False):
    """The same as keywords, so that a type checker knows them."""

    temperature: float
    top_p: float
    top_k: int
    min_p: float
    xtc_probability: float
    xtc_threshold: float
    xtc_special_tokens: tuple[int, ...]
    repetition_penalty: float | None
    repetition_context_size: int
    presence_penalty: float | None
    presence_context_size: int
    frequency_penalty: float | None
    frequency_context_size: int
    logit_bias: Mapping[int, float] | None
    seed: int | None


SAMPLING_NAMES = tuple(field.name for field in fields(SamplingOptions))


def check_number(name: str, value: Any, low: float, high: float) -> None:
    """Raises OptionError unless `value` is a finite number from `low` to `high`."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise OptionError(f"{name} is {value!r}: it must be a number")
    if not low <= value <= high:
        wanted = f"at least {low:g}" if high == math.inf else f"from {low:g} to {high:g}"
        raise OptionError(f"{name} is {value!r}: it must be {wanted}")


def check_count(name: str, value: Any, low: int) -> None:
    """Raises OptionError unless `value` is a whole number of at least `low`."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise OptionError(f"{name} is {value!r}: it must be a whole number")
    if value < low:
        raise OptionError(f"{name} is {value!r}: it must be at least {low}")


def check_ids(name: str, ids: Sequence[int] | Mapping[int, Any], vocab_size: int | None) -> None:
    """Raises OptionError where an id is not in the vocabulary: mlx would read past the end of a table."""
    wrong = next((i for i in ids if i < 0 or (vocab_size is not None and i >= vocab_size)), None)
    if wrong is not None:
        raise OptionError(f"{name} has the id {wrong}, and the vocabulary has {vocab_size}: use its tokenizer")


def _checked_bias(bias: Any) -> dict[int, float] | None:
    """The bias with ids for keys; JSON has them as strings."""
    if not isinstance(bias, Mapping):
        raise OptionError(f"logit_bias is {bias!r}: it must map token ids to numbers")
    checked: dict[int, float] = {}
    for key, value in bias.items():
        if isinstance(key, str) and key.isdecimal():
            key = int(key)
        check_count("a token id of logit_bias", key, 0)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isnan(value):
            raise OptionError(f"logit_bias of token {key} is {value!r}: it must be a number")
        checked[key] = float(value)
    return checked or None
