"""The embedded model: its template, its tokenizer, its size, and that it is right on what it was never shown."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlx_reasoning import LoadedModel, generate, load, start_state
from mlx_reasoning.demo import PATH

SCRIPTS = Path(__file__).parent.parent.parent / "scripts"
USER = {"role": "user", "content": "What is 2 + 3?"}
CALL = {"type": "function", "function": {"name": "get_weather", "arguments": {"city": "Paris"}}}


@pytest.fixture(scope="module")
def model() -> LoadedModel:
    return load("demo")


@pytest.fixture(scope="module")
def lessons() -> Any:
    """The lessons' own makers, from the training scripts."""
    sys.path.insert(0, str(SCRIPTS))
    try:
        import demo_evaluate  # type: ignore[import-not-found]
    finally:
        sys.path.remove(str(SCRIPTS))
    return demo_evaluate


def render(model: LoadedModel, messages: list[dict[str, Any]], **options: Any) -> str:
    tokenizer = model.tokenizer._tokenizer
    return str(tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, **options))


def test_it_is_small_and_whole() -> None:
    assert sum(file.stat().st_size for file in PATH.iterdir() if file.is_file()) <= 4 << 20
    names = {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"}
    assert names <= {file.name for file in PATH.iterdir()}


def test_it_is_found_to_be_of_the_qwen3_family(model: LoadedModel) -> None:
    profile = model.profile
    assert (profile.name, profile.prompt.switch, profile.prompt.default) == ("qwen3", "enable_thinking", True)
    assert profile.tool_calls is not None and profile.tool_calls.parser == "json_tools"


def test_thinking_on_prefills_nothing_and_off_a_closed_block(model: LoadedModel) -> None:
    assert render(model, [USER]).endswith("<|im_start|>assistant\n")
    off = render(model, [USER], enable_thinking=False)
    assert off.endswith("<|im_start|>assistant\n<think>\n\n</think>\n\n")
    assert start_state(off, model.profile).value == "outside"


@pytest.mark.parametrize("content", ["5", "<think>\nhmm\n</think>\n\n5"])
def test_thoughts_of_earlier_turns_are_dropped(model: LoadedModel, content: str) -> None:
    told = {"role": "assistant", "content": content, "reasoning_content": "hmm"}
    assert "hmm" not in render(model, [USER, told, USER])


def test_a_tool_loop_keeps_its_thought_and_is_rendered_as_it_was_generated(model: LoadedModel) -> None:
    asked: dict[str, Any] = {"role": "assistant", "content": None, "reasoning_content": "I ask.", "tool_calls": [CALL]}
    messages = [USER, asked, {"role": "tool", "content": "sunny"}]
    call = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
    generated = f"<think>\nI ask.\n</think>\n\n{call}"
    rendered = render(model, messages)
    assert f"<|im_start|>assistant\n{generated}<|im_end|>" in rendered
    assert "<tool_response>\nsunny\n</tool_response>" in rendered
    as_text = {**CALL, "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'}}
    assert render(model, [USER, asked | {"tool_calls": [as_text]}, messages[2]]) == rendered


@settings(deadline=None, max_examples=200)
@given(text=st.text(max_size=40))
def test_any_text_survives_the_tokenizer(text: str) -> None:
    tokenizer = load_tokenizer()
    assert tokenizer.decode(tokenizer.encode(text, add_special_tokens=False)) == text


def load_tokenizer() -> Any:
    if not _TOKENIZER:
        _TOKENIZER.append(load("demo").tokenizer)
    return _TOKENIZER[0]


_TOKENIZER: list[Any] = []


def test_the_lessons_are_rendered_as_the_template_renders_them(model: LoadedModel, lessons: Any) -> None:
    from demo_tokens import lessons as every_lesson  # type: ignore[import-not-found]

    for lesson, _ in zip(every_lesson(3), range(200), strict=False):
        for thinking in (True, False):
            switch = {} if thinking else {"enable_thinking": False}
            assert lessons.prompt_text(lesson, thinking=thinking) == render(
                model, lesson.messages, tools=lesson.tools or None, **switch
            )


TASKS = (
    "add", "subtract", "compare", "count", "sort", "tool_call", "tool_answer", "second_turn", "later_turn", "json",
    "small_talk",
)  # fmt: skip


@pytest.mark.parametrize("task", TASKS)
def test_it_answers_what_it_was_never_shown(model: LoadedModel, lessons: Any, task: str) -> None:
    """Eight held-out prompts of each task, through our own loop."""
    right = 0
    for lesson in lessons.held_out_lessons(task, 8):
        done = generate(model, lesson.messages, tools=lesson.tools or None, max_tokens=400)
        if lesson.call:
            right += [(call.name, call.arguments) for call in done.tool_calls] == [
                (lesson.call["name"], lesson.call["arguments"])
            ]
        else:
            right += done.content == lesson.answer
        assert done.reasoning and not re.search(r"</?think>", done.reasoning + done.content)
    assert right >= 7  # docs/demo.md has the figures for 300 of each
