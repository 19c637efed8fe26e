"""What caches can and cannot do, by kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from mlx_lm.models.cache import ArraysCache, CacheList, KVCache, RotatingKVCache

from mlx_reasoning.engine.cache import PromptCache, cache_length, check_kv_bits, check_speculative, make_cache
from mlx_reasoning.engine.loading import LoadedModel
from mlx_reasoning.errors import OptionError


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
