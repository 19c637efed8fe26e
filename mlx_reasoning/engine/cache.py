"""The prompt cache beside the ids that it holds, for every kind of cache that mlx-lm has.

It knows how long a cache is and what it can do. Which prefix of a conversation to keep is nobody's business here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mlx_lm.models.cache import KVCache, QuantizedKVCache, RotatingKVCache, make_prompt_cache

from ..errors import OptionError

_BITS = (2, 4, 8)
_GROUP_SIZES = (32, 64, 128)


@dataclass(slots=True)
class PromptCache:
    """A model's cache and the ids that are in it; a loop keeps both equal after every ending.

    Args:
        entries: mlx-lm's cache, one entry a layer (or fewer, where layers share).
        ids: the tokens whose keys and states `entries` holds.
        draft: the draft model's cache; it holds the same ids, or a prefix of them.
    """

    entries: list[Any]
    ids: list[int] = field(default_factory=list)
    draft: list[Any] | None = None

    @property
    def length(self) -> int | None:
        """The tokens that the entries say they hold; see `cache_length`."""
        return cache_length(self.entries)

    def replace(self, fresh: PromptCache) -> None:
        """Takes the place of a cache whose layers may disagree, because the model failed between two of them."""
        self.entries[:] = fresh.entries
        self.ids.clear()
        if self.draft is not None and fresh.draft is not None:
            self.draft[:] = fresh.draft


def make_cache(model: Any, *, max_kv_size: int | None = None, draft_model: Any = None) -> PromptCache:
    """An empty cache for a model, and for a draft model beside it.

    mlx-lm silently ignores `max_kv_size` where a model lays out its cache itself; here plain entries become windows
    wherever they come from, and others are refused.

    Raises:
        OptionError: `max_kv_size`, and the model's cache is not one of plain keys and values.
    """
    entries = make_prompt_cache(model)
    if max_kv_size is not None:
        kinds = sorted({type(entry).__name__ for entry in entries if type(entry) is not KVCache})
        if kinds:
            raise OptionError(f"max_kv_size cannot bound this model's cache ({', '.join(kinds)}): leave it out")
        entries = [RotatingKVCache(max_size=max_kv_size, keep=4) for _ in entries]
    return PromptCache(entries, draft=None if draft_model is None else make_prompt_cache(draft_model))


def cache_length(entries: Sequence[Any]) -> int | None:
    """How many tokens were fed; None where no entry counts them (a purely recurrent model).

    A rotating cache counts what was fed, not what its window still holds.
    """
    for entry in entries:
        inner = getattr(entry, "caches", None)
        length = cache_length(inner) if inner is not None else getattr(entry, "offset", None)
        if isinstance(length, int):
            return length
    return None


def check_kv_bits(entries: Sequence[Any], bits: int, group_size: int, head_dim: int | None) -> None:
    """Refuses a quantisation that this cache cannot take.

    Raises:
        OptionError: the bits, the group size, or the kind of cache.
    """
    if bits not in _BITS:
        raise OptionError(f"kv_bits is {bits!r}: choose one of {', '.join(map(str, _BITS))}")
    if group_size not in _GROUP_SIZES:
        raise OptionError(f"kv_group_size is {group_size!r}: choose one of {', '.join(map(str, _GROUP_SIZES))}")
    if any(isinstance(entry, RotatingKVCache) for entry in entries):
        raise OptionError("kv_bits cannot be used with a rotating cache (sliding window, max_kv_size): leave it out")
    if not any(hasattr(entry, "to_quantized") or isinstance(entry, QuantizedKVCache) for entry in entries):
        raise OptionError("kv_bits cannot be used with this model: none of its caches can be quantised")
    if head_dim is not None and head_dim % group_size:
        fitting = [size for size in _GROUP_SIZES if head_dim % size == 0]
        advice = f"choose kv_group_size={fitting[-1]}" if fitting else "this model's cache cannot be quantised"
        raise OptionError(f"kv_group_size is {group_size}, which does not divide the head size {head_dim}: {advice}")


def check_speculative(entries: Sequence[Any], layers: int, whose: str) -> None:
    """Refuses a cache from which drafted tokens could not be taken back.

    A rotating cache looks trimmable until its window is full, and then mlx-lm silently trims nothing: refused at once.

    Raises:
        OptionError: the kind of cache.
    """
    stuck = sorted({type(e).__name__ for e in entries if isinstance(e, RotatingKVCache) or not e.is_trimmable()})
    if stuck:
        raise OptionError(f"a draft model needs caches that can be trimmed, but the {whose} has {', '.join(stuck)}")
    if len(entries) != layers:
        raise OptionError(f"a draft model cannot be used here: layers of the {whose} share their caches")


def quantize(entries: list[Any], bits: int, group_size: int, start: int) -> None:
    """Quantises in place what holds at least `start` tokens, as mlx-lm does."""
    for at, entry in enumerate(entries):
        if hasattr(entry, "to_quantized") and entry.offset >= start:
            entries[at] = entry.to_quantized(group_size=group_size, bits=bits)
