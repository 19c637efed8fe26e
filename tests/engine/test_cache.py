"""What caches can and cannot do, by kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlx_lm.models.cache import ArraysCache, CacheList, KVCache, RotatingKVCache

from mlx_reasoning.engine.cache import (
    MOST_SNAPSHOTS,
    Plan,
    PromptCache,
    beginning,
    cache_length,
    check_kv_bits,
    check_speculative,
    common_prefix,
    make_cache,
    plan,
)
from mlx_reasoning.engine.loading import LoadedModel
from mlx_reasoning.errors import OptionError

from ..conftest import Tiny


def filled(entry: Any, length: int) -> Any:
    entry.offset = length
    return entry


def test_the_length_of_any_cache() -> None:
    assert cache_length([filled(KVCache(), 7)]) == 7
    assert cache_length([ArraysCache(2), filled(KVCache(), 7)]) == 7
    assert cache_length([filled(RotatingKVCache(4), 9)]) == 9
    assert cache_length([CacheList(ArraysCache(2)), CacheList(filled(KVCache(), 5))]) == 5
    assert cache_length([ArraysCache(2)]) is None
    assert PromptCache([filled(KVCache(), 3)]).length == 3


KV_BITS: list[tuple[list[Any], int, int, int | None, str]] = [
    ([KVCache()], 3, 64, 64, "kv_bits is 3: choose one of 2, 4, 8"),
    ([KVCache()], 4, 48, 64, "kv_group_size is 48: choose one of 32, 64, 128"),
    ([KVCache()], 4, 64, 96, "does not divide the head size 96: choose kv_group_size=32"),
    ([KVCache()], 4, 64, 80, "cannot be quantised"),
    ([RotatingKVCache(8), KVCache()], 4, 64, 64, "rotating"),
    ([ArraysCache(2)], 4, 64, 64, "none of its caches"),
]


@pytest.mark.parametrize(("entries", "bits", "group_size", "head_dim", "message"), KV_BITS)
def test_a_quantisation_that_cannot_be(
    entries: list[Any], bits: int, group_size: int, head_dim: int | None, message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        check_kv_bits(entries, bits, group_size, head_dim)


def test_a_quantisation_that_can_be() -> None:
    check_kv_bits([KVCache(), ArraysCache(2)], 8, 64, 128)
    check_kv_bits([KVCache().to_quantized()], 4, 32, None)


def test_a_window_for_plain_entries_only(tiny: Callable[[str], LoadedModel]) -> None:
    for kind in ("llama", "qwen3"):
        assert {type(entry) for entry in make_cache(tiny(kind).model, max_kv_size=16).entries} == {RotatingKVCache}
    for kind in ("gemma4_text", "qwen3_5"):
        with pytest.raises(OptionError, match="max_kv_size cannot bound"):
            make_cache(tiny(kind).model, max_kv_size=16)


def test_caches_that_cannot_take_drafts_back() -> None:
    check_speculative([KVCache()], 1, "model")
    with pytest.raises(OptionError, match="ArraysCache, RotatingKVCache"):
        check_speculative([RotatingKVCache(99), ArraysCache(2), KVCache()], 3, "model")
    with pytest.raises(OptionError, match="share"):
        check_speculative([KVCache()], 2, "draft model")


# What of a cache serves a prompt.

PLANS: list[tuple[str, str, bool, tuple[int, ...], Plan]] = [
    # held, wanted, trimmable, snapshots
    ("", "abc", True, (), Plan("rebuild", 0)),
    ("", "abc", False, (), Plan("rebuild", 0)),
    ("ab", "abc", False, (), Plan("reuse", 2)),
    ("ab", "abcd", False, (), Plan("append", 2)),
    ("abc", "abc", True, (), Plan("trim", 2)),
    ("abc", "abc", False, (), Plan("rebuild", 0)),
    ("abc", "abc", False, (1,), Plan("restore", 1)),
    ("abcxy", "abcd", True, (1, 2), Plan("trim", 3)),
    ("abcxy", "abcd", False, (1, 2), Plan("restore", 2)),
    ("abcxy", "abcd", False, (1, 3), Plan("restore", 3)),
    ("abcxy", "abcd", False, (4, 5), Plan("rebuild", 0)),
    ("abcxy", "abcd", False, (), Plan("rebuild", 0)),
    ("xyz", "abc", True, (2,), Plan("rebuild", 0)),
    ("xyz", "abc", False, (2,), Plan("rebuild", 0)),
    ("abcdefgh", "abcdexyz", False, (2, 4), Plan("restore", 4)),  # the last three differ: a snapshot before them serves
    ("abc", "a", True, (1,), Plan("rebuild", 0)),  # the last id of a prompt is always fed
    ("abc", "a", False, (1,), Plan("rebuild", 0)),
]


@pytest.mark.parametrize(("held", "wanted", "trimmable", "snapshots", "decided"), PLANS, ids=str)
def test_what_of_a_cache_serves_a_prompt(
    held: str, wanted: str, trimmable: bool, snapshots: tuple[int, ...], decided: Plan
) -> None:
    ids = [*map(ord, held)], [*map(ord, wanted)]
    assert plan(*ids, trimmable=trimmable, snapshots=snapshots) == decided


IDS = st.lists(st.integers(0, 2), max_size=12)


@given(IDS, IDS.filter(bool), st.booleans(), st.data())
def test_a_plan_keeps_what_both_share_and_leaves_something_to_feed(
    held: list[int], wanted: list[int], trimmable: bool, data: st.DataObject
) -> None:
    lengths = data.draw(st.lists(st.integers(1, max(1, len(held))), unique=True)) if held else []
    decided = plan(held, wanted, trimmable=trimmable, snapshots=lengths)
    assert decided.keep < len(wanted) and held[: decided.keep] == wanted[: decided.keep]
    assert decided.keep in (0, len(held), *lengths) or decided.action == "trim"
    if trimmable:
        assert decided.keep == common_prefix(held, wanted[:-1])


def fed(model: Any, cache: PromptCache, ids: list[int]) -> PromptCache:
    """A cache after more ids, as the loop feeds them."""
    model(mx.array([ids]), cache=cache.entries)
    cache.ids.extend(ids)
    return cache


def logits(model: Any, cache: PromptCache, token: int = 70) -> mx.array:
    result: mx.array = model(mx.array([[token]]), cache=cache.copy().entries)[0, -1]
    return result


FED = list(range(40, 90))


@pytest.mark.parametrize("kind", ["qwen3", "qwen3_5", "gemma4_text"])
@pytest.mark.parametrize("keep", [5, 20, 30, 44, 49])
def test_a_cache_that_was_fitted_is_one_that_was_never_longer(kind: str, keep: int, tiny: Tiny) -> None:
    model = tiny(kind).model
    cache = make_cache(model)
    for first in range(0, len(FED), 10):  # a snapshot every ten ids
        fed(model, cache, FED[first : first + 10])
        if cache.needs_snapshots:
            cache.take_snapshot()
    done = cache.fit([*FED[:keep], 200, 201], lambda: make_cache(model))
    assert done.keep == len(cache.ids) <= keep and cache.ids == FED[: done.keep]
    assert all(cache_length([entry]) in (done.keep, None) for entry in cache.entries)
    assert done.action == ("trim" if kind == "qwen3" else "rebuild" if keep < 20 else "restore")
    fresh = fed(model, make_cache(model), FED[: done.keep]) if done.keep else make_cache(model)
    assert mx.allclose(logits(model, cache), logits(model, fresh), atol=1e-3)


def test_a_window_that_is_full_is_never_trimmed(tiny: Tiny) -> None:
    model = tiny("llama").model
    cache = make_cache(model, max_kv_size=16)
    fed(model, cache, FED[:10])
    cache.fit([*FED[:8], 200], lambda: make_cache(model, max_kv_size=16))
    assert cache.ids == FED[:8] and cache.length == 8
    fed(model, cache, FED[8:20])
    assert not cache.trimmable
    assert cache.fit([*FED[:15], 200], lambda: make_cache(model, max_kv_size=16)) == Plan("rebuild", 0)
    assert cache.ids == [] and cache.length == 0
    fresh = fed(model, make_cache(model, max_kv_size=16), FED[:15])
    assert mx.allclose(logits(model, fed(model, cache, FED[:15])), logits(model, fresh), atol=1e-4)


class Short(KVCache):
    """An entry that trims less than it is told."""

    def trim(self, n: int) -> int:
        return int(super().trim(n - 1))


def test_a_trim_that_did_not_happen_is_seen(tiny: Tiny) -> None:
    model = tiny("qwen3").model
    cache = PromptCache([Short() for _ in model.layers])
    fed(model, cache, FED[:10])
    assert cache.fit([*FED[:5], 200], lambda: make_cache(model)) == Plan("rebuild", 0)
    assert cache.ids == [] and cache.length == 0


@pytest.mark.parametrize("kind", ["qwen3_5", "gemma4_text"])
def test_snapshots_are_bounded_and_the_anchors_stay_longest(kind: str, tiny: Tiny) -> None:
    model = tiny(kind).model
    cache = make_cache(model)
    cache.marks = {4: True, 8: False, 12: True, 16: False, 20: True, 24: False, 28: True}
    for first in range(0, 28, 4):
        fed(model, cache, FED[first : first + 4])
        cache.take_snapshot()
        cache.take_snapshot()  # one of the same length takes its place
        assert len(cache.snapshots) <= MOST_SNAPSHOTS
    assert [shot.length for shot in cache.snapshots] == [4, 12, 20, 28]
    assert all(shot.anchor for shot in cache.snapshots)
    whole = cache.nbytes
    assert whole == sum(entry.nbytes for entry in cache.entries) + sum(shot.nbytes for shot in cache.snapshots)


def test_snapshots_are_bounded_in_bytes(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny("qwen3_5").model
    cache = fed(model, make_cache(model), FED[:4])
    cache.take_snapshot()
    monkeypatch.setattr("mlx_reasoning.engine.cache.SNAPSHOT_BYTES", cache.snapshots[0].nbytes * 5 // 2)
    for first in range(4, 24, 4):
        fed(model, cache, FED[first : first + 4])
        cache.take_snapshot()
    assert [shot.length for shot in cache.snapshots] == [20, 24]


def test_what_many_prompts_begin_with_is_copied_and_stays(tiny: Tiny) -> None:
    model = tiny("qwen3").model
    known = fed(model, make_cache(model), FED[:20])
    mine = beginning(known, [*FED[:12], 200], lambda: make_cache(model))
    assert mine.ids == FED[:12] and known.ids == FED[:20] and known.length == 20
    fed(model, mine, [200])
    assert known.length == 20
    assert beginning(known, [200, 201], lambda: make_cache(model)).ids == []
    assert beginning(None, FED, lambda: make_cache(model)).ids == []
