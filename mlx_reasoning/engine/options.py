"""What a loop needs besides the model, the prompt and the cache."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from .sampling import SamplingKeywords, SamplingOptions

Progress: TypeAlias = Callable[[int, int], object]
Cancel: TypeAlias = "threading.Event | Callable[[], bool]"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopOptions:
    """What a loop needs besides the model, the prompt and the sampling.

    Args:
        max_tokens: the most that are handed out, the end-of-turn token included; None for no limit.
        stop_token_ids: ids that end a turn; such a token is counted and fed, never handed out.
        prefill_step_size: tokens of the prompt in one forward pass.
        max_kv_size: the window of the cache, for models that do not lay out their own.
        kv_bits, kv_group_size, quantized_kv_start: quantise the cache once it holds that many tokens.
        num_draft_tokens: drafted in one round, with a draft model.
        progress: called with prompt tokens done and their total.
        cancel: an event, or a callable that becomes true.
    """

    max_tokens: int | None = None
    stop_token_ids: frozenset[int] = frozenset()
    prefill_step_size: int = 2048
    max_kv_size: int | None = None
    kv_bits: int | None = None
    kv_group_size: int = 64
    quantized_kv_start: int = 0
    num_draft_tokens: int = 3
    progress: Progress | None = None
    cancel: Cancel | None = None
    sampling: SamplingOptions = field(default_factory=SamplingOptions)
    vocab_size: int | None = None


class LoopKeywords(SamplingKeywords, total=False):
    """What a caller may set of it, as keywords."""

    max_tokens: int | None
    prefill_step_size: int
    max_kv_size: int | None
    kv_bits: int | None
    kv_group_size: int
    quantized_kv_start: int
    num_draft_tokens: int
    progress: Progress | None
    cancel: Cancel | None
