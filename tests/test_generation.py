"""One turn through the public calls: events, their end, and everything a caller can get wrong."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from typing import Any

import mlx.core as mx
import mlx_lm
import pytest
from mlx_lm.sample_utils import make_logits_processors, make_sampler

from mlx_reasoning.engine.cache import make_cache
from mlx_reasoning.engine.loading import LoadedModel, load
from mlx_reasoning.errors import ContextLengthError, OptionError, PromptError, ReasoningControlError
from mlx_reasoning.events import Generation, GenerationEvent, GenerationInfo, gather
from mlx_reasoning.generation import generate, stream_generate
from mlx_reasoning.protocols.config import StartState
from tests.tiny import SHAPES, write_checkpoint

Tiny = Callable[[str], LoadedModel]
HELLO = [{"role": "user", "content": "Hello"}]
LETTERS = dict.fromkeys(range(32, 90), 12.0)  # so that random weights write visible text


def info_of(events: list[GenerationEvent]) -> GenerationInfo:
    last = events[-1]
    assert isinstance(last, Generation.info)
    return last.info


def token(model: LoadedModel, text: str) -> int:
    found: int = model.tokenizer.convert_tokens_to_ids(text)
    return found


def scripted(model: LoadedModel, text: str, **keywords: Any) -> list[GenerationEvent]:
    """The events of a turn whose tokens are forced to be those of a text, end-of-turn token included."""
    stream = stream_generate(model, HELLO, **keywords)
    turn = inspect.getgeneratorlocals(stream)["self"]
    turn.loop.force(model.tokenizer.encode(text, add_special_tokens=False))
    return list(stream)


def assert_recorded(cache: Any) -> None:
    assert (cache.length or 0) == len(cache.ids)


TEXTS: list[dict[str, Any]] = [
    {},
    {"temperature": 0.8, "seed": 1},
    {"temperature": 1.0, "top_k": 9, "top_p": 0.9, "min_p": 0.01, "seed": 2},
    {"repetition_penalty": 1.2},
]


@pytest.mark.parametrize("options", TEXTS)
def test_a_model_without_reasoning_gives_mlx_lms_text_byte_for_byte(tiny: Tiny, options: dict[str, Any]) -> None:
    model = tiny("llama")
    sampling = {name: value for name, value in options.items() if name in ("top_k", "top_p", "min_p")}
    if "seed" in options:
        mx.random.seed(options["seed"])
    expected = "".join(
        response.text
        for response in mlx_lm.stream_generate(
            model.model,
            model.tokenizer,
            "Hello",
            max_tokens=60,
            sampler=make_sampler(temp=options.get("temperature", 0.0), **sampling),
            logits_processors=make_logits_processors(
                logit_bias=LETTERS, repetition_penalty=options.get("repetition_penalty")
            ),
        )
    )
    completion = generate(model, "Hello", max_tokens=60, logit_bias=LETTERS, **options)
    assert completion.content == expected
    assert completion.reasoning == ""


@pytest.mark.parametrize("kind", sorted(SHAPES))
def test_the_last_event_tells_all(tiny: Tiny, kind: str) -> None:
    events = list(stream_generate(tiny(kind), HELLO, max_tokens=20))
    info = info_of(events)
    assert sum(isinstance(event, Generation.info) for event in events) == 1
    assert info.finish_reason == "length"
    assert info.usage.completion_tokens == 20
    assert info.usage.prompt_tokens == info.usage.prefilled_tokens
    assert info.usage.cached_tokens == 0
    assert info.prompt_tps is not None and info.prompt_tps > 0
    assert info.generation_tps is not None and info.generation_tps > 0
    assert info.peak_memory is not None and info.peak_memory > 0


@pytest.mark.parametrize(
    ("kind", "text", "reasoning", "content"),
    [
        ("qwen3", "<think>\nWell.\n</think>\n\nFour.<|im_end|>", "Well.", "Four."),
        ("qwen3_5", "Well.\n</think>\n\nFour.<|im_end|>", "Well.", "Four."),
        ("gemma4_text", "<|channel>thought\nWell.<channel|>Four.<turn|>", "Well.", "Four."),
        ("llama", "Four.<|im_end|>", "", "Four."),
    ],
)
def test_thought_and_answer_apart(tiny: Tiny, kind: str, text: str, reasoning: str, content: str) -> None:
    completion = gather(scripted(tiny(kind), text))
    assert (completion.reasoning, completion.content, completion.finish_reason) == (reasoning, content, "stop")
    assert completion.usage.completion_tokens == len(tiny(kind).tokenizer.encode(text, add_special_tokens=False))


def test_a_call_ends_the_turn_as_tool_calls(tiny: Tiny) -> None:
    text = '<think>\nAsk.\n</think>\n\n<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call><|im_end|>'
    completion = gather(scripted(tiny("qwen3"), text))
    assert completion.finish_reason == "tool_calls"
    assert [(call.name, call.arguments) for call in completion.tool_calls] == [("f", {"x": 1})]
    length = len(tiny("qwen3").tokenizer.encode(text, add_special_tokens=False))
    cut = gather(scripted(tiny("qwen3"), text, max_tokens=length - 5))
    assert (cut.finish_reason, cut.tool_calls, cut.rejected[0].reason) == ("length", (), "unfinished")


def test_an_unfinished_thought_is_told(tiny: Tiny) -> None:
    completion = gather(scripted(tiny("qwen3"), "<think>\nWell, let me", max_tokens=8))
    assert completion.info.ended_inside_reasoning
    assert completion.content == ""
    assert completion.usage.reasoning_tokens == 8


def test_a_stop_string_ends_the_turn_and_the_record_is_right(tiny: Tiny) -> None:
    model = tiny("qwen3")
    cache = make_cache(model.model)
    completion = gather(scripted(model, "One. Two. Three.", stop_strings=["wo."], prompt_cache=cache))
    assert completion.content == "One. T"
    assert (completion.finish_reason, completion.info.stop_sequence) == ("stop", "wo.")
    assert completion.usage.completion_tokens == 9
    assert_recorded(cache)


def test_stop_strings_may_be_looked_for_in_the_answer_only(tiny: Tiny) -> None:
    text = "<think>\nOne.\n</think>\n\nOne. Two.<|im_end|>"
    everywhere = gather(scripted(tiny("qwen3"), text, stop_strings=["One"]))
    answer = gather(scripted(tiny("qwen3"), text, stop_strings=["Two"], stop_scope="response"))
    assert (everywhere.reasoning, everywhere.content) == ("", "")
    assert (answer.reasoning, answer.content) == ("One.", "One. ")


@pytest.mark.parametrize("count", [0, 1, 5])
def test_closing_the_stream_closes_the_loop(tiny: Tiny, count: int) -> None:
    model = tiny("qwen3")
    cache = make_cache(model.model)
    stream = stream_generate(model, HELLO, prompt_cache=cache, logit_bias=LETTERS)
    for _ in range(count):
        next(stream)
    stream.close()
    assert_recorded(cache)
    assert list(stream) == []


def test_cancelling_ends_with_the_info(tiny: Tiny) -> None:
    event = threading.Event()
    event.set()
    events = list(stream_generate(tiny("qwen3"), HELLO, cancel=event))
    info = info_of(events)
    assert len(events) == 1
    assert (info.finish_reason, info.usage.completion_tokens, info.usage.prefilled_tokens) == ("cancelled", 0, 0)
    assert (info.prompt_tps, info.generation_tps) == (None, None)
    seen: list[GenerationEvent] = []
    for item in stream_generate(tiny("qwen3"), HELLO, cancel=lambda: len(seen) > 3, logit_bias=LETTERS):
        seen.append(item)
    assert info_of(seen).finish_reason == "cancelled"


def test_a_cache_saves_the_prompts_beginning(tiny: Tiny) -> None:
    model = tiny("qwen3")
    cache = make_cache(model.model)
    first = generate(model, "Hello", max_tokens=6, prompt_cache=cache)
    prompt = [*cache.ids, 40, 41, 42]
    second = generate(model, prompt, max_tokens=6, prompt_cache=cache)
    assert first.usage.cached_tokens == 0
    assert second.usage.cached_tokens == len(prompt) - 3
    assert (second.usage.prefilled_tokens, second.usage.prompt_tokens) == (3, len(prompt))
    assert second.content == generate(model, prompt, max_tokens=6).content
    assert_recorded(cache)
    with pytest.raises(OptionError, match="does not go on"):
        generate(model, "Other", prompt_cache=cache)
    with pytest.raises(OptionError, match="does not go on"):
        generate(model, list(cache.ids), prompt_cache=cache)
    with pytest.raises(OptionError, match="must be a PromptCache"):
        generate(model, "Other", prompt_cache=cache.entries)  # type: ignore[arg-type]


def test_the_start_comes_from_the_prompt_or_the_caller(tiny: Tiny) -> None:
    model = tiny("qwen3")
    bare = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    for prompt, start, inside in [
        (bare, None, False),
        (bare + "<think>\n", None, True),
        (model.tokenizer.encode(bare + "<think>\n"), None, True),
        (bare, True, True),
        (bare, StartState.continued, True),
        (bare + "<think>\n", False, False),
        (HELLO, None, False),
        ([*HELLO, {"role": "assistant", "reasoning_content": "Well"}], None, True),
    ]:
        completion = generate(model, prompt, start=start, max_tokens=4, logit_bias=LETTERS)
        assert completion.info.ended_inside_reasoning is inside, (prompt, start)


def test_arrays_of_ids_are_prompts_too(tiny: Tiny) -> None:
    model = tiny("llama")
    ids = model.tokenizer.encode("Hello")
    assert generate(model, mx.array(ids), max_tokens=4).content == generate(model, ids, max_tokens=4).content  # type: ignore[arg-type]


def test_max_tokens_is_the_room_unless_it_is_less(tmp_path: Any) -> None:
    model = load(write_checkpoint(tmp_path, "qwen3", max_position_embeddings=20, eos_token_id=None))
    ids = list(range(40, 50))
    for wanted, got in [(None, 10), (50, 10), (10, 10), (4, 4)]:
        usage = generate(model, ids, max_tokens=wanted, logit_bias=LETTERS).usage
        assert usage.completion_tokens == got
    assert generate(model, ids, max_tokens=30, max_kv_size=16, logit_bias=LETTERS).usage.completion_tokens == 30
    with pytest.raises(ContextLengthError, match=r"20 tokens.*context is 20"):
        stream_generate(model, list(range(40, 60)))
    assert generate(model, list(range(40, 60)), max_kv_size=16, max_tokens=2).usage.completion_tokens == 2


def test_what_cannot_be_honoured_is_noted(tiny: Tiny) -> None:
    completion = generate(tiny("qwen3"), HELLO, effort="high", max_tokens=2)
    assert any("taken as thinking on" in note for note in completion.info.notes)


def test_drafting_and_quantising(tiny: Tiny) -> None:
    model = tiny("qwen3")
    plain = generate(model, HELLO, max_tokens=20)
    drafted = generate(model, HELLO, max_tokens=20, draft_model=model, num_draft_tokens=4)
    assert (drafted.content, drafted.usage) == (plain.content, plain.usage)
    assert generate(model, HELLO, max_tokens=20, kv_bits=8, kv_group_size=32).usage == plain.usage


def test_a_turn_in_another_thread(tiny: Tiny) -> None:
    model = tiny("gemma4_text")
    here = generate(model, HELLO, max_tokens=20, temperature=1.0, seed=9)
    there: list[Any] = []
    thread = threading.Thread(
        target=lambda: there.append(generate(model, HELLO, max_tokens=20, temperature=1.0, seed=9))
    )
    thread.start()
    thread.join()
    assert there[0].content == here.content


WRONG: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
    ("", {}, PromptError, "the prompt is empty"),
    ([], {}, PromptError, "the prompt is empty"),
    (None, {}, PromptError, "NoneType"),
    (b"Hello", {}, PromptError, "bytes"),
    ([1, "a"], {}, PromptError, r"messages\[0\] is int"),
    ([True], {}, PromptError, r"messages\[0\] is bool"),
    ([5000], {}, OptionError, "the id 5000"),
    (list(range(200)) * 21, {}, ContextLengthError, "4200 tokens.*4096"),
    ("Hi", {"max_tokens": 0}, OptionError, "max_tokens is 0"),
    ("Hi", {"max_tokens": -1}, OptionError, "max_tokens is -1"),
    ("Hi", {"max_tokens": 1.5}, OptionError, "max_tokens is 1.5"),
    ("Hi", {"temp": 1}, OptionError, "unknown option 'temp': did you mean temperature"),
    ("Hi", {"max_token": 1}, OptionError, "did you mean max_tokens"),
    ("Hi", {"zzz": 1}, OptionError, "unknown option 'zzz': the options are"),
    ("Hi", {"temperature": -1}, OptionError, "temperature is -1"),
    ("Hi", {"stop_strings": [""]}, OptionError, "stop"),
    ("Hi", {"stop_strings": ""}, OptionError, "stop"),
    ("Hi", {"stop_scope": "thought"}, OptionError, "stop_scope"),
    ("Hi", {"tools": {}}, OptionError, "tools must be a list"),
    ("Hi", {"tools": ["f"]}, OptionError, "tools must be a list"),
    ("Hi", {"thinking": "yes"}, OptionError, "thinking is 'yes'"),
    ("Hi", {"thinking": True}, ReasoningControlError, "give messages"),
    ("Hi", {"template_arguments": {"a": 1}}, OptionError, "give messages"),
    (HELLO, {"thinking": False, "effort": "high"}, ReasoningControlError, "contradict"),
    (HELLO, {"template_arguments": 3}, OptionError, "template_arguments must be a dict"),
    (HELLO, {"template_arguments": {"tools": []}}, OptionError, "cannot set 'tools'"),
    ("Hi", {"max_reasoning_tokens": -1}, OptionError, "max_reasoning_tokens"),
    ("Hi", {"min_answer_tokens": "9"}, OptionError, "min_answer_tokens"),
    ("Hi", {"eos_in_reasoning": "no"}, OptionError, "eos_in_reasoning"),
    ("Hi", {"repetition_guard": 3}, OptionError, "repetition_guard"),
    ("Hi", {"logit_bias": {9999: 1}}, OptionError, "logit_bias has the id 9999"),
    ("Hi", {"prefill_step_size": 0}, OptionError, "prefill_step_size is 0"),
    ("Hi", {"max_kv_size": 2}, OptionError, "max_kv_size is 2"),
    ("Hi", {"kv_bits": 5}, OptionError, "kv_bits is 5"),
    ("Hi", {"kv_bits": 4}, OptionError, "choose kv_group_size=32"),
    ("Hi", {"num_draft_tokens": 0}, OptionError, "num_draft_tokens is 0"),
]


@pytest.mark.parametrize(("prompt", "keywords", "error", "message"), WRONG)
def test_a_wrong_call_is_told_at_once(
    tiny: Tiny, prompt: Any, keywords: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        stream_generate(tiny("qwen3"), prompt, **keywords)


def test_draft_models_that_do_not_fit(tiny: Tiny) -> None:
    with pytest.raises(OptionError, match="another vocabulary"):
        stream_generate(tiny("qwen3"), "Hi", draft_model=tiny("llama"))
    with pytest.raises(OptionError, match="ArraysCache"):
        stream_generate(tiny("qwen3_5"), "Hi", draft_model=tiny("qwen3"))
    with pytest.raises(OptionError, match="must be a LoadedModel"):
        stream_generate(tiny("qwen3"), "Hi", draft_model="qwen3")  # type: ignore[arg-type]


def test_a_call_that_a_stop_string_ended_is_a_call(tiny: Tiny) -> None:
    text = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>\n\nDone. More.'
    completion = gather(scripted(tiny("qwen3"), text, stop_strings=["Done."]))
    assert [call.name for call in completion.tool_calls] == ["f"]
    assert (completion.finish_reason, completion.info.stop_sequence) == ("tool_calls", "Done.")


def test_the_embedded_model_thinks_and_answers() -> None:
    completion = generate(load("demo"), [{"role": "user", "content": "What is 12 + 7?"}], max_tokens=300)
    assert completion.reasoning and completion.content
    assert completion.finish_reason == "stop"
    quick = generate(load("demo"), [{"role": "user", "content": "What is 12 + 7?"}], max_tokens=300, thinking=False)
    assert quick.reasoning == "" and quick.content


def test_turns_side_by_side_in_threads(tiny: Tiny) -> None:
    model = tiny("qwen3")
    prompts = ["One", "Two", "Three"]
    alone = [generate(model, prompt, max_tokens=30).content for prompt in prompts]
    together: dict[str, str] = {}

    def run(prompt: str) -> None:
        together[prompt] = generate(model, prompt, max_tokens=30).content

    threads = [threading.Thread(target=run, args=(prompt,)) for prompt in prompts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [together[prompt] for prompt in prompts] == alone
