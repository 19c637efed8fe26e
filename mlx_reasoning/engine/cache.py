"""The prompt cache beside the ids that it holds, for every kind of cache that mlx-lm has.

`PromptCache` is a ledger: the ids are those whose keys and states the entries hold, after every ending. `plan` decides,
from ids alone, what of a cache can serve the next prompt; `PromptCache.fit` does it. Keys and values are trimmed, what
cannot be trimmed (a rotating window, a recurrent state) goes back to a copy that was taken on the way.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import mlx.core as mx
from mlx_lm.models.cache import ConcatenateKVCache, KVCache, QuantizedKVCache, RotatingKVCache, make_prompt_cache

from ..errors import OptionError

_BITS = (2, 4, 8)
_GROUP_SIZES = (32, 64, 128)
_TRIMMED_FREELY = (KVCache, QuantizedKVCache, ConcatenateKVCache)
MOST_SNAPSHOTS = 4
SNAPSHOT_BYTES = 1 << 30

Action = Literal["reuse", "append", "trim", "restore", "rebuild"]


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do with a cache before a prompt: keep its first `keep` tokens, and feed the rest of the prompt.

    reuse: it holds all of the prompt but the last token. append: it holds a beginning of the prompt. trim: it is cut to
    the beginning that both share. restore: it goes back to a snapshot. rebuild: it is emptied.
    """

    action: Action
    keep: int


def plan(held: Sequence[int], wanted: Sequence[int], *, trimmable: bool, snapshots: Sequence[int] = ()) -> Plan:
    """Decides what of a cache serves a prompt.

    Args:
        held: the ids in the cache.
        wanted: the ids of the prompt; the last one is always fed, since its logits are what is wanted.
        trimmable: whether tokens can be taken off the cache's end.
        snapshots: the lengths that the cache can go back to.
    """
    shared = common_prefix(held, wanted[:-1])
    if shared and shared == len(held):
        return Plan("reuse" if shared == len(wanted) - 1 else "append", shared)
    if shared and trimmable:
        return Plan("trim", shared)
    usable = [length for length in snapshots if 0 < length <= shared]
    return Plan("restore", max(usable)) if usable else Plan("rebuild", 0)


def common_prefix(one: Sequence[int], other: Sequence[int]) -> int:
    """How many ids two sequences share at their beginning."""
    shared = min(len(one), len(other))
    if one[:shared] == other[:shared]:
        return shared
    return next(at for at in range(shared) if one[at] != other[at])


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What cannot be trimmed, as it was at a length; an entry that can be is not copied.

    Args:
        anchor: the state before a turn of the conversation, which outlives those inside a turn.
    """

    length: int
    entries: tuple[Any, ...]
    anchor: bool
    nbytes: int


@dataclass(slots=True)
class PromptCache:
    """A model's cache and the ids that are in it; a loop keeps both equal after every ending.

    Args:
        entries: mlx-lm's cache, one entry a layer (or fewer, where layers share).
        ids: the tokens whose keys and states `entries` holds.
        draft: the draft model's cache; it holds the same ids, or a prefix of them.
        marks: the lengths at which the next prompt leaves snapshots, and whether each is an anchor.
        snapshots: of caches that cannot be trimmed, shortest first; each is a beginning of `ids`.
    """

    entries: list[Any]
    ids: list[int] = field(default_factory=list)
    draft: list[Any] | None = None
    marks: dict[int, bool] = field(default_factory=dict)
    snapshots: list[Snapshot] = field(default_factory=list)

    @property
    def length(self) -> int | None:
        """The tokens that the entries say they hold; see `cache_length`."""
        return cache_length(self.entries)

    @property
    def trimmable(self) -> bool:
        """Whether tokens can be taken off the end now. A window can only be trimmed until it is full."""
        draft = all(entry.is_trimmable() for entry in self.draft or ())
        return draft and all(entry.is_trimmable() for entry in self.entries)

    @property
    def needs_snapshots(self) -> bool:
        """Whether some entry cannot be trimmed, now or once its window is full."""
        return not all(isinstance(entry, _TRIMMED_FREELY) for entry in self.entries)

    @property
    def nbytes(self) -> int:
        """Bytes of keys, values and states, snapshots included."""
        return sum(map(_nbytes, [*self.entries, *(self.draft or [])])) + sum(shot.nbytes for shot in self.snapshots)

    def replace(self, fresh: PromptCache) -> None:
        """Takes the place of a cache whose layers may disagree, because the model failed between two of them."""
        self.entries[:] = fresh.entries
        self.ids.clear()
        self.snapshots.clear()
        if self.draft is not None and fresh.draft is not None:
            self.draft[:] = fresh.draft

    def fit(self, wanted: Sequence[int], fresh: Callable[[], PromptCache]) -> Plan:
        """Makes what the cache holds a beginning of `wanted`, shorter than it.

        Args:
            fresh: makes an empty cache of the same kind, for where nothing can be kept.

        Returns:
            What was done.
        """
        decided = plan(self.ids, wanted, trimmable=self.trimmable, snapshots=[shot.length for shot in self.snapshots])
        if decided.action == "trim":
            self._trim(decided.keep)
        elif decided.action == "restore":
            self._restore(decided.keep)
        if decided.action == "rebuild" or not self._holds(decided.keep):
            self.replace(fresh())
            return Plan("rebuild", 0)
        return decided

    def take_snapshot(self) -> None:
        """Copies what cannot be trimmed; the oldest snapshots inside turns go first where there are too many."""
        copied = tuple(None if isinstance(entry, _TRIMMED_FREELY) else copy_entry(entry) for entry in self.entries)
        size = sum(_nbytes(entry) for entry in copied if entry is not None)
        shots = [shot for shot in self.snapshots if shot.length != len(self.ids)]
        self.snapshots[:] = [*shots, Snapshot(len(self.ids), copied, self.marks.get(len(self.ids), True), size)]
        while len(self.snapshots) > 1 and (
            len(self.snapshots) > MOST_SNAPSHOTS or sum(shot.nbytes for shot in self.snapshots) > SNAPSHOT_BYTES
        ):
            older = self.snapshots[:-1]
            self.snapshots.remove(next((shot for shot in older if not shot.anchor), older[0]))

    def copy(self) -> PromptCache:
        """A cache of its own with the same content, snapshots included."""
        draft = None if self.draft is None else [copy_entry(entry) for entry in self.draft]
        return PromptCache(
            [copy_entry(entry) for entry in self.entries], list(self.ids), draft, snapshots=list(self.snapshots)
        )

    def settle(self) -> None:
        """Computes what is still pending, so that another thread may go on with this cache."""
        mx.eval([entry.state for entry in [*self.entries, *(self.draft or [])] if not entry.empty()])

    def _trim(self, keep: int) -> None:
        for entry in self.entries:
            entry.trim(len(self.ids) - keep)
        if self.draft is not None:
            behind = (cache_length(self.draft) or 0) - keep
            for entry in self.draft:
                entry.trim(max(behind, 0))
        self._forget(keep)

    def _restore(self, keep: int) -> None:
        shot = next(shot for shot in self.snapshots if shot.length == keep)
        for at, copied in enumerate(shot.entries):
            if copied is None:
                self.entries[at].trim(len(self.ids) - keep)
            else:
                self.entries[at] = copy_entry(copied)
        self._forget(keep)

    def _forget(self, keep: int) -> None:
        del self.ids[keep:]
        self.snapshots[:] = [shot for shot in self.snapshots if shot.length <= keep]

    def _holds(self, length: int) -> bool:
        """Whether every entry that counts its tokens holds so many."""
        return len(self.ids) == length and all(cache_length([entry]) in (length, None) for entry in self.entries)


def beginning(known: PromptCache | None, wanted: Sequence[int], fresh: Callable[[], PromptCache]) -> PromptCache:
    """A new cache for a prompt, with what a known one can give of it."""
    if known is None or not common_prefix(known.ids, wanted):
        return fresh()
    made = known.copy()
    made.fit(wanted, fresh)
    return made


def copy_entry(entry: Any) -> Any:
    """An entry of its own with the same state."""
    mx.eval([] if entry.empty() else entry.state)
    return copy.deepcopy(entry)


def _nbytes(entry: Any) -> int:
    return 0 if entry.empty() else int(entry.nbytes)


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
