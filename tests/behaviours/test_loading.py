"""Checkpoints in which real systems found the wrong markers, the wrong switch, or no template."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mlx_reasoning import Generation, generate, load, make_token_stream_decoder
from mlx_reasoning.errors import MissingChatTemplateError
from mlx_reasoning.events import GenerationInfo, gather
from mlx_reasoning.prompt import render
from mlx_reasoning.protocols.resolve import resolve_profile

from ..tiny import PLAIN_TEMPLATE, write_checkpoint
from ..vocab import CHATML, QWEN, byte_tokenizer

USER = [{"role": "user", "content": "Hi"}]
TURNS = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
GENERATION = "{% if add_generation_prompt %}<|im_start|>assistant\n"
SHUT = "<think>\n\n</think>\n\n"


def switched(condition: str, on: str, off: str) -> str:
    body = "{% if CONDITION %}ON{% else %}OFF{% endif %}{% endif %}"
    return TURNS + GENERATION + body.replace("CONDITION", condition).replace("ON", on).replace("OFF", off)


@pytest.mark.parametrize("default", [True, False])
def test_without_a_wish_the_templates_default_holds_and_nothing_is_passed(default: bool) -> None:
    seen = "{{ raise_exception('an argument was injected') if enable_thinking is defined }}"
    tokenizer = byte_tokenizer(
        QWEN, template=TURNS + GENERATION + ("<think>\n" if default else SHUT) + seen + "{% endif %}"
    )
    profile = resolve_profile("qwen3.5", model_type=None, tokenizer=tokenizer)
    prompt = render(tokenizer, USER, profile=profile)
    assert prompt.text.endswith("<think>\n" if default else SHUT)


THREE = [
    ("enable_thinking", "enable_thinking is defined and enable_thinking"),
    ("thinking", "thinking is defined and thinking"),
    ("thinking_mode", "thinking_mode is defined and thinking_mode == 'enabled'"),
]


@pytest.mark.parametrize(("name", "condition"), THREE)
def test_one_neutral_switch_reaches_every_template_and_the_callers_value_wins(name: str, condition: str) -> None:
    family = "minimax-m3" if name == "thinking_mode" else "auto"
    opener, closer = ("<mm:think>", "</mm:think>") if name == "thinking_mode" else ("<think>", "</think>")
    tokenizer = byte_tokenizer([opener, closer], template=switched(condition, opener, opener + closer))
    profile = resolve_profile(family, model_type=None, tokenizer=tokenizer)
    assert profile.prompt.switch == name
    on, off = (render(tokenizer, USER, profile=profile, thinking=wish).text for wish in (True, False))
    assert on.endswith(opener) and off.endswith(opener + closer)
    mine = {name: profile.prompt.on}
    assert render(tokenizer, USER, profile=profile, thinking=False, template_arguments=mine).text == on


def test_a_folder_without_a_template_is_said_and_nothing_is_guessed(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "model", "qwen3")
    (folder / "chat_template.jinja").unlink()
    with pytest.raises(MissingChatTemplateError, match="no chat template"):
        load(folder)


def pieces(tokenizer: Any, profile: Any, text: str, start: Any) -> tuple[str, str]:
    decoder = make_token_stream_decoder(tokenizer, profile, start=start)
    events = [e for token in tokenizer.encode(text, add_special_tokens=False) for e in decoder.push(token)]
    got = gather([*events, *decoder.finish("stop"), Generation.info(GenerationInfo("stop"))])
    return got.reasoning, got.content


@pytest.mark.parametrize("added", [[], ["<think>"], QWEN], ids=["in pieces", "half", "whole"])
def test_markers_that_the_tokenizer_splits_are_found_in_the_text(added: list[str], tmp_path: Path) -> None:
    model = load(write_checkpoint(tmp_path / "model", "qwen3", added=added))
    profile = model.profile
    prompt = render(model.tokenizer, USER, profile=profile)
    assert pieces(model.tokenizer, profile, "<think>\na\n</think>\n\nb", prompt.start) == ("a", "b")
    given = generate(model, USER, max_tokens=400, max_reasoning_tokens=4, temperature=0.0, seed=1, start=True)
    assert (given.info.usage.reasoning_tokens or 0) <= 8  # the budget works with a closer of several tokens
    assert not given.info.ended_inside_reasoning


def test_markers_that_only_the_template_has_are_text_markers() -> None:
    template = switched("enable_thinking is defined and not enable_thinking", "<mull></mull>", "<mull>")
    tokenizer = byte_tokenizer([], template=template)
    profile = resolve_profile("auto", model_type="llama", tokenizer=tokenizer)
    assert profile.reasoning is not None and profile.reasoning.starts == ("<mull>",)
    prompt = render(tokenizer, USER, profile=profile)
    assert pieces(tokenizer, profile, "a</mull>b", prompt.start) == ("a", "b")


@pytest.mark.parametrize("thought", [True, False], ids=["in a thought", "in the answer"])
def test_what_ends_a_turn_in_the_template_ends_generation(tmp_path: Path, thought: bool) -> None:
    """The configuration names another end: the template's own must stop the model too, and is never text."""
    folder = write_checkpoint(tmp_path / "model", "qwen3", eos_token_id=256)
    config = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps(config | {"eos_token": "<|endoftext|>"}))
    model = load(folder)
    end = model.tokenizer.convert_tokens_to_ids("<|im_end|>")
    assert model.tokenizer.eos_token_id == 256 and set(model.profile.stop_token_ids) == {256, end}
    ending = {end: 1000.0}
    got = generate(model, USER, max_tokens=5, logit_bias=ending, start=thought)
    assert (got.info.finish_reason, got.info.usage.completion_tokens) == ("stop", 1)
    assert (got.reasoning, got.content, got.info.ended_inside_reasoning) == ("", "", thought)


def test_a_plain_template_has_no_markers_though_the_vocabulary_does(tmp_path: Path) -> None:
    model = load(write_checkpoint(tmp_path / "model", "qwen3", template=PLAIN_TEMPLATE))
    assert model.profile.reasoning is None
    assert "<think>" in CHATML or "<think>" in model.tokenizer.get_vocab()
