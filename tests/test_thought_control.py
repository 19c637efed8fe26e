"""Thoughts closed from outside: budgets, room for the answer, an early end of turn, circles, a request."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import mlx.core as mx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlx_reasoning import (
    BudgetTransition,
    Completion,
    Generation,
    LoadedModel,
    ReasoningControlError,
    family,
    generate,
    make_token_stream_decoder,
)
from mlx_reasoning.engine.cache import make_cache
from mlx_reasoning.engine.loop import TokenLoop
from mlx_reasoning.engine.options import LoopOptions
from mlx_reasoning.engine.thought import ThoughtControl, ThoughtLimits, repeats
from mlx_reasoning.events import gather
from mlx_reasoning.protocols.families import FAMILIES
from mlx_reasoning.turn import Turn

from .sums import SUM
from .vocab import byte_tokenizer

QUESTION = [{"role": "user", "content": SUM[0]}]


class Writer:
    """A model that writes what it is told, whatever it reads: one id a position, then the last one for ever."""

    def __init__(self, script: Sequence[int], size: int) -> None:
        self.script, self.size = list(script), size
        self.layers: list[Any] = []
        self.at = 0

    def make_cache(self) -> list[Any]:
        return []

    def __call__(self, tokens: mx.array, cache: Any = None) -> mx.array:
        row = self.script[min(self.at, len(self.script) - 1)]
        self.at += tokens.shape[1]
        return (mx.arange(self.size) == row).astype(mx.float32)[None, None] * 50.0


def written(
    text: str,
    *,
    name: str = "qwen3",
    start: bool = True,
    max_tokens: int = 400,
    ask_after: int | None = None,
    markers: Sequence[str] = ("<think>", "</think>", "<tool_call>", "</tool_call>"),
    **limits: Any,
) -> tuple[Completion, list[int], str]:
    """What comes out when a model would write this text; also the ids that were handed out, and the text of them."""
    tokenizer = byte_tokenizer(list(markers), special=["<|end|>"])
    stop = tokenizer.convert_tokens_to_ids("<|end|>")
    profile = family(name)
    script = [*tokenizer.encode(text, add_special_tokens=False), stop]
    decoder = make_token_stream_decoder(tokenizer, profile, start=start)
    model = Writer(script, len(tokenizer))
    loop = TokenLoop(
        model, [0], make_cache(model), LoopOptions(max_tokens=max_tokens, stop_token_ids=frozenset([stop]))
    )
    checked = ThoughtLimits.of(limits, profile, tokenizer)
    control = ThoughtControl(loop, decoder, checked, frozenset([stop]), max_tokens)
    turn = Turn(loop, decoder, control, 1, 0, False)

    def events() -> Iterator[Any]:
        for event in turn.events():
            if ask_after is not None and len(turn.record) >= ask_after:
                control.close_soon()
            yield event

    return gather(events()), turn.record, tokenizer.decode(turn.record)


def test_a_budget_closes_the_thought_with_the_words_of_the_family() -> None:
    done, _, text = written("a long thought that goes on and on", max_reasoning_tokens=6)
    assert text.startswith("a long" + family("qwen3").transition)
    assert done.reasoning.startswith("a long") and "limited time" in done.reasoning
    assert done.info.usage.reasoning_tokens == 6
    assert done.info.notes == ("the thought was closed at its budget",)


def test_a_thought_that_closes_by_itself_is_left_alone() -> None:
    done, _, text = written("short</think>the answer", max_reasoning_tokens=6)
    assert text == "short</think>the answer"
    assert (done.reasoning, done.content, done.info.notes) == ("short", "the answer", ())
    assert done.info.usage.reasoning_tokens == 6


def test_a_budget_of_nothing_closes_before_the_first_token() -> None:
    done, _, text = written("a thought", max_reasoning_tokens=0)
    assert text.startswith(family("qwen3").transition)
    assert done.usage.reasoning_tokens == 0


def test_a_model_that_opens_by_itself_is_counted_from_its_opener() -> None:
    done, _, text = written("<think>\nabcdefghij", start=False, max_reasoning_tokens=8)
    assert text.startswith("<think>\nabcdef" + family("qwen3").transition)
    assert done.reasoning.startswith("abcdef")


def test_a_thought_opened_again_counts_on() -> None:
    closer = family("qwen3").closing
    first = family("qwen3").transition
    script = "aaaa" + "_" * len(first) + "<think>bbb"  # what it would have written under the transition is not read
    done, _, text = written(script, max_reasoning_tokens=4)
    assert text.startswith("aaaa" + first)
    assert "<think>" + closer in text
    assert done.content


@given(st.integers(0, 12), st.sampled_from(["aé☃😀bc", "😀😀😀😀", "x 😀 y ☃"]))
@settings(max_examples=40, deadline=None)
def test_no_character_is_cut_in_half(budget: int, text: str) -> None:
    done, _, _ = written(text * 4, max_reasoning_tokens=budget)
    assert "\ufffd" not in done.reasoning
    if budget:
        assert done.usage.reasoning_tokens is not None and done.usage.reasoning_tokens <= budget + 3


@given(st.integers(1, 30))
@settings(max_examples=30, deadline=None)
def test_a_closer_of_several_tokens_is_not_cut_in_half(budget: int) -> None:
    """The tokenizer has no `</think>`: text markers."""
    done, _, text = written("some thought</think>answer", max_reasoning_tokens=budget, markers=())
    natural = text == "some thought</think>answer"
    assert natural or text.startswith("some thought"[:budget] + "\n")
    assert "</think>" not in done.reasoning + done.content
    if natural:
        assert (done.reasoning, done.content) == ("some thought", "answer")


def test_a_call_that_is_being_written_is_not_cut() -> None:
    call = '<tool_call>{"name": "f", "arguments": {"x": "<think> and more"}}</tool_call>'
    done, _, text = written("aaa " + call, max_reasoning_tokens=6)
    assert text == "aaa " + call
    assert [made.arguments for made in done.tool_calls] == [{"x": "<think> and more"}]


def test_room_for_the_answer_is_kept() -> None:
    words = len(family("qwen3").transition) - len("</think>") + 1  # one token a byte, the closer is one
    done, record, _ = written("t" * 500, max_tokens=words + 60, min_answer_tokens=20)
    thought = done.usage.reasoning_tokens
    assert thought is not None and 38 <= thought <= 40
    assert len(record) - thought - words >= 20


def test_room_that_max_tokens_does_not_have_closes_at_once() -> None:
    done, _, _ = written("t" * 50, max_tokens=30, min_answer_tokens=25)
    assert done.usage.reasoning_tokens == 1


@pytest.mark.parametrize("how", ["stop", "close"])
def test_an_end_of_turn_inside_a_thought(how: Any) -> None:
    done, _, text = written("half a thought", eos_in_reasoning=how)
    if how == "stop":
        assert done.info.ended_inside_reasoning and text == "half a thought"
    else:
        assert text.startswith("half a thought" + family("qwen3").transition)
        assert not done.info.ended_inside_reasoning and done.finish_reason == "stop"


def test_a_thought_in_circles_is_closed() -> None:
    done, _, _ = written("so, " * 400, max_tokens=2000, repetition_guard=True)
    assert done.usage.reasoning_tokens is not None and done.usage.reasoning_tokens <= 256
    assert done.info.notes == ("the thought went in circles and was closed",)
    plain, _, _ = written("so, " * 400, max_tokens=2000)
    assert plain.usage.reasoning_tokens == 1600


def test_what_counts_as_circles() -> None:
    assert repeats([1, 2, 3] * 70, 192)
    assert not repeats(list(range(192)), 192)
    assert not repeats([1, 2, 3] * 30, 192)
    assert not repeats([*range(96), *range(96)], 192), "twice is no circle"


def test_a_thought_closed_on_request() -> None:
    done, _, text = written("abcdefghijklmnop", ask_after=5)
    assert text.startswith("abcdef"[:6]) and "limited time" in text
    assert done.info.notes == ("the thought was closed on request",)


@pytest.mark.parametrize("name", sorted(name for name, row in FAMILIES.items() if row.closing))
def test_every_family_can_be_closed(name: str) -> None:
    """Its markers in the vocabulary or not: the thought ends, and what follows is the answer."""
    profile = family(name)
    protocol = profile.frames or profile.reasoning
    assert protocol is not None
    ids = protocol.markers if profile.frames else (*profile.reasoning.starts, *profile.reasoning.ends)  # type: ignore[union-attr]
    for markers in (tuple(dict.fromkeys(ids)), ()):
        script = "hm " * 3 + "_" * len(profile.transition.encode()) + "yes"
        done, _, text = written(script, name=name, max_reasoning_tokens=9, markers=markers, max_tokens=400)
        assert text.startswith("hm hm hm " + profile.transition), name
        assert done.reasoning.startswith("hm hm hm"), name
        assert done.content, name
        assert "hm" not in done.content, name


def test_a_row_without_published_words_closes_plainly() -> None:
    assert replace(family("qwen3"), budget=None).transition == "\n</think>\n\n"
    assert replace(family("qwen3"), budget=BudgetTransition("stop</think>")).transition == "stop</think>"


@pytest.mark.parametrize("limit", [{"max_reasoning_tokens": 0}, {"min_answer_tokens": 5}, {"repetition_guard": True}])
def test_a_model_without_thoughts_refuses(tiny: Callable[[str], LoadedModel], limit: dict[str, Any]) -> None:
    with pytest.raises(ReasoningControlError, match=next(iter(limit))):
        generate(tiny("llama"), "Hi", **limit)


def test_a_draft_model_refuses(tiny: Callable[[str], LoadedModel]) -> None:
    model = tiny("qwen3")
    with pytest.raises(ValueError, match="draft_model"):
        generate(model, "Hi", draft_model=model, max_reasoning_tokens=3)


@pytest.mark.parametrize("budget", [0, 1, 5, 20, 1000])
def test_a_real_model_answers_within_any_budget(demo: LoadedModel, budget: int) -> None:
    done = generate(demo, QUESTION, max_reasoning_tokens=budget, max_tokens=400)
    assert done.finish_reason == "stop"
    assert done.content
    assert done.usage.reasoning_tokens is not None and done.usage.reasoning_tokens <= max(budget, 1)
    if budget == 1000:
        assert SUM[1] in done.content and not done.info.notes


@pytest.mark.parametrize("kind", ["qwen3", "qwen3_5", "gemma4_text"])
def test_cache_and_ids_agree_after_a_forced_closer(tiny: Callable[[str], LoadedModel], kind: str) -> None:
    model = tiny(kind)
    cache = make_cache(model.model)
    with contextlib.suppress(StopIteration):
        done = generate(
            model, [{"role": "user", "content": "Hi"}], prompt_cache=cache, max_reasoning_tokens=3, max_tokens=60,
            thinking=True,
        )  # fmt: skip
    assert done.finish_reason in ("length", "stop")
    assert cache.length == len(cache.ids)


def test_events_stay_in_order(demo: LoadedModel) -> None:
    from mlx_reasoning import stream_generate

    kinds = [type(event) for event in stream_generate(demo, QUESTION, max_reasoning_tokens=10, max_tokens=300)]
    first_chunk = kinds.index(Generation.chunk)
    assert Generation.reasoning not in kinds[first_chunk:]
    assert kinds[-1] is Generation.info
