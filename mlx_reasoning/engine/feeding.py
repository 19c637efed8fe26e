"""Feeding a prompt in chunks, and the memory that Metal may wire meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import mlx.core as mx
from mlx_lm.generate import generation_stream

from .cache import PromptCache, quantize
from .options import LoopOptions


def feed(
    model: Any, entries: list[Any], tokens: mx.array, options: LoopOptions, *, pauses: Collection[int] = ()
) -> Iterator[int]:
    """Feeds tokens (T,) but for the last one, in chunks, and gives how many are done after each.

    Args:
        pauses: a chunk ends at each of these, whatever its size.
    """
    done = 0
    while tokens.size - done > 1:
        size = min(options.prefill_step_size, tokens.size - done - 1)
        size = min([size, *(pause - done for pause in pauses if pause > done)])
        with mx.stream(generation_stream):
            model(tokens[done : done + size][None], cache=entries)
            if options.kv_bits is not None:
                quantize(entries, options.kv_bits, options.kv_group_size, options.quantized_kv_start)
            mx.eval([entry.state for entry in entries])
        mx.clear_cache()
        done += size
        yield done


@contextmanager
def wired_limit() -> Iterator[None]:
    """Lets Metal wire as much memory as it recommends, as mlx-lm does, but prints no warning."""
    recommended = mx.device_info().get("max_recommended_working_set_size")
    if not isinstance(recommended, int):
        yield
        return
    before = mx.set_wired_limit(recommended)
    try:
        yield
    finally:
        mx.synchronize(generation_stream)
        mx.set_wired_limit(before)


def prefill(
    model: Any, cache: PromptCache, ids: Sequence[int], options: LoopOptions, cancelled: Callable[[], bool]
) -> None:
    """Feeds all of the ids, unless it is cancelled between two chunks."""
    done, report = 0, options.progress or (lambda done, total: None)
    with wired_limit():
        for count in feed(model, cache.entries, mx.array([*ids, 0]), options):
            cache.ids.extend(ids[done:count])
            done = count
            report(done, len(ids))
            if cancelled():
                break
