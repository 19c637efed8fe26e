"""The loop against mlx-lm's, and the cache against the record, after every ending."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import mlx.core as mx
import pytest
from mlx_lm.generate import generate_step
from mlx_lm.sample_utils import make_logits_processors, make_sampler

from mlx_reasoning.engine.cache import PromptCache, make_cache
from mlx_reasoning.engine.loading import LoadedModel
from mlx_reasoning.engine.loop import TokenLoop
from mlx_reasoning.engine.options import LoopOptions
from mlx_reasoning.engine.sampling import SamplingOptions
from mlx_reasoning.errors import ModelError, OptionError
from tests.tiny import SHAPES

KINDS = sorted(SHAPES)
PROMPT = list(range(40, 90))


def loop_over(model: Any, prompt: list[int] = PROMPT, cache: PromptCache | None = None, **options: Any) -> TokenLoop:
    options.setdefault("max_tokens", 24)
    options.setdefault("prefill_step_size", 16)
    cache = cache or make_cache(model, max_kv_size=options.get("max_kv_size"))
    return TokenLoop(model, prompt[len(cache.ids) :], cache, LoopOptions(**options))


def theirs(model: Any, *, seed: int | None = None, **options: Any) -> list[int]:
    if seed is not None:
        mx.random.seed(seed)
    steps: Iterator[tuple[int, Any]] = generate_step(
        mx.array(PROMPT), model, **{"max_tokens": 24, "prefill_step_size": 16, **options}
    )
    return [token for token, _ in steps]


def assert_recorded(loop: TokenLoop) -> None:
    assert loop.cache.length == len(loop.cache.ids)


SAMPLINGS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "temperature": {"temperature": 0.9, "seed": 3},
    "top_k": {"temperature": 1.0, "top_k": 5, "seed": 4},
    "top_p": {"temperature": 1.0, "top_p": 0.8, "seed": 5},
    "min_p": {"temperature": 1.0, "min_p": 0.1, "seed": 6},
    "xtc": {
        "temperature": 1.0,
        "xtc_probability": 0.6,
        "xtc_threshold": 0.05,
        "xtc_special_tokens": (10, 258),
        "seed": 7,
    },
    "penalties": {"repetition_penalty": 1.3, "presence_penalty": 0.4, "frequency_penalty": 0.2},
    "bias": {"logit_bias": {60: 9.0, 61: -2.0}, "temperature": 0.7, "seed": 8},
}
PENALTIES = ("repetition_penalty", "presence_penalty", "frequency_penalty", "logit_bias")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sampling", SAMPLINGS.values(), ids=SAMPLINGS)
def test_the_same_ids_as_mlx_lm(tiny: Callable[[str], LoadedModel], kind: str, sampling: dict[str, Any]) -> None:
    model = tiny(kind).model
    shaping = {name: value for name, value in sampling.items() if name not in (*PENALTIES, "seed", "temperature")}
    if "xtc_special_tokens" in shaping:
        shaping["xtc_special_tokens"] = list(shaping["xtc_special_tokens"])
    expected = theirs(
        model,
        seed=sampling.get("seed"),
        sampler=make_sampler(temp=sampling.get("temperature", 0.0), **shaping),
        logits_processors=make_logits_processors(**{n: v for n, v in sampling.items() if n in PENALTIES}),
    )
    loop = loop_over(model, sampling=SamplingOptions(**sampling))
    assert list(loop) == expected
    assert loop.finish_reason == "length"
    assert_recorded(loop)


@pytest.mark.parametrize("kind", KINDS)
def test_the_record_is_prompt_and_tokens_up_to_the_last(tiny: Callable[[str], LoadedModel], kind: str) -> None:
    loop = loop_over(tiny(kind).model)
    tokens = list(loop)
    assert loop.cache.ids == PROMPT + tokens[:-1]
    assert_recorded(loop)
    assert (loop.prefilled, loop.generated) == (len(PROMPT), 24)
    assert loop.prompt_seconds > 0 and loop.generation_seconds > 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_stop_token_is_fed_and_counted_but_not_handed_out(tiny: Callable[[str], LoadedModel], kind: str) -> None:
    model = tiny(kind).model
    expected = theirs(model)
    stop = expected[9]
    before = expected[: expected.index(stop)]
    loop = loop_over(model, stop_token_ids=frozenset([stop]))
    assert list(loop) == before
    assert loop.finish_reason == "stop"
    assert loop.generated == len(before) + 1
    assert loop.cache.ids == [*PROMPT, *before, stop]
    assert_recorded(loop)


def test_a_stop_token_that_is_the_last_allowed_one_is_a_stop(tiny: Callable[[str], LoadedModel]) -> None:
    model = tiny("llama").model
    expected = theirs(model)
    at = expected.index(expected[9])
    loop = loop_over(model, stop_token_ids=frozenset([expected[9]]), max_tokens=at + 1)
    assert list(loop) == expected[:at]
    assert loop.finish_reason == "stop"
    assert_recorded(loop)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("after", [1, 2, 3])
def test_cancelling_in_the_prompt_leaves_whole_chunks(
    tiny: Callable[[str], LoadedModel], kind: str, after: int
) -> None:
    event = threading.Event()
    seen: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> None:
        seen.append((done, total))
        if len(seen) == after:
            event.set()

    loop = loop_over(tiny(kind).model, progress=progress, cancel=event)
    assert list(loop) == []
    assert loop.finish_reason == "cancelled"
    assert loop.cache.ids == PROMPT[: 16 * (after - 1)]
    assert loop.prefilled == len(loop.cache.ids)
    assert (loop.cache.length or 0) == len(loop.cache.ids)
    assert seen == [(16 * n, 50) for n in range(after)]


@pytest.mark.parametrize("kind", KINDS)
def test_cancelling_between_tokens(tiny: Callable[[str], LoadedModel], kind: str) -> None:
    tokens: list[int] = []
    loop = loop_over(tiny(kind).model, cancel=lambda: len(tokens) == 5)
    tokens.extend([])
    for token in loop:
        tokens.append(token)
    assert len(tokens) == 5
    assert loop.finish_reason == "cancelled"
    assert loop.cache.ids == PROMPT + tokens
    assert_recorded(loop)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [0, 1, 7])
def test_closing_at_any_moment(tiny: Callable[[str], LoadedModel], kind: str, count: int) -> None:
    loop = loop_over(tiny(kind).model)
    tokens = [next(iter(loop)) for _ in range(count)]
    loop.close()
    loop.close()
    assert loop.cache.ids == (PROMPT + tokens if count else [])
    assert (loop.cache.length or 0) == len(loop.cache.ids)
    assert list(loop) == []


def test_an_exception_in_the_consumer_leaves_the_record_right(tiny: Callable[[str], LoadedModel]) -> None:
    loop = loop_over(tiny("qwen3").model)
    tokens: list[int] = []
    with pytest.raises(ZeroDivisionError):
        for token in loop:
            tokens.append(token)
            if len(tokens) == 4:
                raise ZeroDivisionError
    assert loop.cache.ids == PROMPT + tokens
    assert_recorded(loop)


def test_an_exception_in_the_callers_progress_is_the_callers(tiny: Callable[[str], LoadedModel]) -> None:
    def progress(done: int, total: int) -> None:
        if done == 32:
            raise ZeroDivisionError

    loop = loop_over(tiny("qwen3").model, progress=progress)
    with pytest.raises(ZeroDivisionError):
        list(loop)
    assert loop.cache.ids == PROMPT[:32]
    assert_recorded(loop)


class Failing:
    """A model that fails at its n-th call, between two layers."""

    def __init__(self, model: Any, at: int, error: BaseException) -> None:
        self._model, self._left, self._error = model, at, error
        self.layers = model.layers

    def __call__(self, tokens: mx.array, cache: Any) -> mx.array:
        self._left -= 1
        if self._left == 0:
            cache[0].update_and_fetch(mx.zeros((1, 2, 1, 32)), mx.zeros((1, 2, 1, 32)))
            raise self._error
        result: mx.array = self._model(tokens, cache=cache)
        return result


@pytest.mark.parametrize("at", [1, 3, 4, 5, 9])
@pytest.mark.parametrize(
    ("error", "raised"),
    [(RuntimeError("[malloc] Unable to allocate"), ModelError), (KeyboardInterrupt(), KeyboardInterrupt)],
    ids=["memory", "interrupt"],
)
def test_a_failure_of_the_model_empties_cache_and_record(
    tiny: Callable[[str], LoadedModel], at: int, error: BaseException, raised: type[BaseException]
) -> None:
    loop = loop_over(Failing(tiny("qwen3").model, at, error))
    with pytest.raises(raised) as caught:
        list(loop)
    assert loop.cache.ids == []
    assert loop.cache.length == 0
    if raised is ModelError:
        assert caught.value.__cause__ is error
        assert "kv_bits=8" in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_forced_tokens_take_the_place_of_sampled_ones(tiny: Callable[[str], LoadedModel], kind: str) -> None:
    model = tiny(kind).model
    forced = [70, 71, 72]
    loop = loop_over(model, max_tokens=12)
    tokens: list[int] = []
    for token in loop:
        tokens.append(token)
        if len(tokens) == 4:
            loop.force(forced)
    assert tokens[:4] == theirs(model)[:4]
    assert tokens[4:7] == forced
    assert loop.cache.ids == PROMPT + tokens[:-1]
    assert_recorded(loop)
    again = loop_over(model, PROMPT + tokens[:7], max_tokens=5, prefill_step_size=1)
    assert tokens[7:] == list(again)


def test_forcing_costs_no_forward_pass(tiny: Callable[[str], LoadedModel]) -> None:
    model = tiny("qwen3").model
    calls = 0

    class Counting:
        layers = model.layers

        def __call__(self, tokens: mx.array, cache: Any) -> mx.array:
            nonlocal calls
            calls += 1
            result: mx.array = model(tokens, cache=cache)
            return result

    counts = []
    for force in (False, True):
        calls = 0
        loop = loop_over(Counting(), max_tokens=10)
        for n, _ in enumerate(loop):
            if force and n == 3:
                loop.force([70, 71])
        counts.append(calls)
    assert counts[0] == counts[1]


@pytest.mark.parametrize("may_end", [True, False])
def test_a_forced_stop_token_ends_the_turn_where_it_may(tiny: Callable[[str], LoadedModel], may_end: bool) -> None:
    """A family's closer may hold what elsewhere ends its turns."""
    loop = loop_over(tiny("qwen3").model, stop_token_ids=frozenset([258]), max_tokens=6)
    for n, _ in enumerate(loop):
        if n == 2:
            loop.force([258], may_end=may_end)
    assert loop.finish_reason == ("stop" if may_end else "length")
    assert loop.generated == (4 if may_end else 6)
    assert loop.cache.ids[len(PROMPT) + 3] == 258
    assert_recorded(loop)


def test_a_sampled_token_can_be_replaced_before_it_counts(tiny: Callable[[str], LoadedModel]) -> None:
    plain = list(loop_over(tiny("qwen3").model, max_tokens=6))
    loop = loop_over(tiny("qwen3").model, max_tokens=6, stop_token_ids=frozenset([plain[2]]))
    seen: list[int] = []

    def choose(token: int) -> list[int]:
        seen.append(token)
        return [70, 71] if len(seen) == 3 else []

    loop.replace_with(choose)
    tokens = list(loop)
    assert tokens[:4] == [*plain[:2], 70, 71]
    assert seen[2] == plain[2]
    assert loop.finish_reason == "length"
    assert_recorded(loop)


def test_going_on_from_a_cache_gives_what_one_run_gives(tiny: Callable[[str], LoadedModel]) -> None:
    model = tiny("qwen3").model
    first = loop_over(model, max_tokens=8)
    tokens = list(first)
    second = loop_over(model, PROMPT + tokens, first.cache, max_tokens=8)
    assert tokens + list(second) == theirs(model, max_tokens=16)
    assert second.prefilled == 1
    assert_recorded(second)


def test_a_window_keeps_counting_past_its_size(tiny: Callable[[str], LoadedModel]) -> None:
    model = tiny("qwen3").model
    loop = loop_over(model, max_kv_size=24)
    assert list(loop) == theirs(model, max_kv_size=24)
    assert_recorded(loop)


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("start", [0, 30, 60])
def test_a_quantised_cache(tiny: Callable[[str], LoadedModel], bits: int, start: int) -> None:
    model = tiny("llama").model
    options: dict[str, Any] = {"kv_bits": bits, "kv_group_size": 32, "quantized_kv_start": start}
    loop = loop_over(model, **options)
    assert list(loop) == theirs(model, **options)
    assert_recorded(loop)
    assert type(loop.cache.entries[0]).__name__ == "QuantizedKVCache"


def test_a_loop_in_another_thread(tiny: Callable[[str], LoadedModel]) -> None:
    model = tiny("qwen3_5").model
    sampling = SamplingOptions(temperature=1.0, seed=11)
    here = list(loop_over(model, sampling=sampling))
    there: list[int] = []
    thread = threading.Thread(target=lambda: there.extend(loop_over(model, sampling=sampling)))
    thread.start()
    thread.join()
    assert there == here


def test_the_consumers_own_arrays_are_not_put_on_the_loops_stream(tiny: Callable[[str], LoadedModel]) -> None:
    before = mx.default_stream(mx.default_device())
    for _ in loop_over(tiny("qwen3").model, max_tokens=3):
        assert mx.default_stream(mx.default_device()) == before


# --- a draft model


def drafting(tiny: Callable[[str], LoadedModel], cache: PromptCache | None = None, **options: Any) -> TokenLoop:
    model = tiny("qwen3").model
    draft = tiny("llama").model
    options = {"max_tokens": 24, "prefill_step_size": 16, **options}
    cache = cache or make_cache(model, draft_model=draft)
    return TokenLoop(model, PROMPT[len(cache.ids) :], cache, LoopOptions(**options), draft_model=draft)


@pytest.mark.parametrize("count", [1, 3, 5])
def test_a_draft_model_changes_nothing_of_a_greedy_answer(tiny: Callable[[str], LoadedModel], count: int) -> None:
    loop = drafting(tiny, num_draft_tokens=count)
    assert list(loop) == theirs(tiny("qwen3").model)
    assert loop.finish_reason == "length"
    assert_recorded(loop)


def test_a_model_drafting_for_itself_accepts_all(tiny: Callable[[str], LoadedModel]) -> None:
    model = tiny("qwen3").model
    for stop_after in range(1, 12):
        loop = TokenLoop(model, PROMPT, make_cache(model, draft_model=model), LoopOptions(), draft_model=model)
        tokens = [next(iter(loop)) for _ in range(stop_after)]
        loop.close()
        assert (PROMPT + tokens)[: len(loop.cache.ids)] == loop.cache.ids
        assert len(loop.cache.ids) >= len(PROMPT) + stop_after - 1
        assert_recorded(loop)


@pytest.mark.parametrize("kv_bits", [None, 8])
def test_speculation_ends_with_the_record_right(tiny: Callable[[str], LoadedModel], kv_bits: int | None) -> None:
    expected = theirs(tiny("qwen3").model)
    options: dict[str, Any] = {"kv_bits": kv_bits, "kv_group_size": 32}
    stopped = drafting(tiny, stop_token_ids=frozenset([expected[9]]), **options)
    list(stopped)
    assert stopped.finish_reason == "stop"
    assert_recorded(stopped)
    count = 0
    cancelled = drafting(tiny, cancel=lambda: count == 5, **options)
    for _ in cancelled:
        count += 1
    assert cancelled.finish_reason == "cancelled"
    assert_recorded(cancelled)
    assert count == 5


@pytest.mark.parametrize("after", range(1, 8))
def test_cancelling_a_speculation_in_the_prompt_and_going_on(tiny: Callable[[str], LoadedModel], after: int) -> None:
    asked = 0

    def cancel() -> bool:
        nonlocal asked
        asked += 1
        return asked == after

    first = drafting(tiny, cancel=cancel)
    assert list(first) == []
    assert (first.cache.length or 0) == len(first.cache.ids)
    second = drafting(tiny, first.cache)
    assert list(second) == theirs(tiny("qwen3").model)
    assert_recorded(second)


def test_tokens_cannot_be_forced_on_a_speculation(tiny: Callable[[str], LoadedModel]) -> None:
    with pytest.raises(OptionError, match="draft_model"):
        drafting(tiny).force([1])


def test_options_are_a_value() -> None:
    options = LoopOptions()
    assert replace(options, max_tokens=3).max_tokens == 3
