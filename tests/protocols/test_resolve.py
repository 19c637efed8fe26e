"""Explicit word, model type, template, vocabulary: in this order, and never the repository's name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mlx_reasoning import ModelProfile, ReasoningConfig, UnknownFamilyError, family, split_reasoning
from mlx_reasoning.protocols.families import FAMILIES
from mlx_reasoning.protocols.resolve import resolve_profile

from ..vocab import GEMMA, QWEN, byte_tokenizer

SHARED = Path(os.environ.get("MLX_REASONING_SHARED", Path(__file__).parents[3] / "shared")) / "templates"

TURNS = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
START = "{% if add_generation_prompt %}<|im_start|>assistant\n"
CLOSED = "<think>\n\n</think>\n\n"
QWEN_TOOLS = '{% if tools %}<tool_call>{"name": ...}</tool_call>{% endif %}'
XML_TOOLS = "{% if tools %}<tool_call>\n<function=f>\n</function></tool_call>{% endif %}"
SWITCHED = (
    QWEN_TOOLS
    + TURNS
    + START
    + "{% if enable_thinking is defined and not enable_thinking %}"
    + CLOSED
    + "{% endif %}{% endif %}"
)
ON_BY_DEFAULT = XML_TOOLS + TURNS + START + "{% if enable_thinking is defined and not enable_thinking %}" + CLOSED
ON_BY_DEFAULT += "{% else %}<think>\n{% endif %}{% endif %}"
OFF_BY_DEFAULT = (
    XML_TOOLS + TURNS + START + "{% if enable_thinking is defined and enable_thinking %}<think>\n{% else %}"
)
OFF_BY_DEFAULT += CLOSED + "{% endif %}{% endif %}"
ALWAYS_OPEN = QWEN_TOOLS + TURNS + START + "<think>\n{% endif %}{# </think> #}"
NO_THOUGHT = QWEN_TOOLS + TURNS + START + "{% endif %}"


def resolved(template: str | None, model_type: str | None = None, reasoning: object = "auto") -> ModelProfile:
    tokenizer = byte_tokenizer(QWEN, template=template)
    return resolve_profile(reasoning, model_type=model_type, tokenizer=tokenizer)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("template", "name", "switch", "default"),
    [
        (SWITCHED, "qwen3", "enable_thinking", True),
        (ON_BY_DEFAULT, "qwen3.5", "enable_thinking", True),
        (OFF_BY_DEFAULT, "qwen3.5", "enable_thinking", False),
        (ALWAYS_OPEN, "qwen3-thinking-2507", None, True),
    ],
)
def test_the_template_says_what_the_switch_is_and_what_happens_without_it(
    template: str, name: str, switch: str | None, default: bool
) -> None:
    profile = resolved(template)
    assert (profile.name, profile.prompt.switch, profile.prompt.default) == (name, switch, default)
    assert profile.evidence


def test_a_template_without_markers_is_a_model_without_thoughts_whatever_its_vocabulary_holds() -> None:
    profile = resolved(NO_THOUGHT)
    assert profile.reasoning is None
    assert profile.tool_calls is not None and profile.tool_calls.parser == "json_tools"


def test_without_a_template_the_vocabulary_speaks() -> None:
    assert resolved(None).reasoning is not None
    assert resolve_profile("auto", model_type=None, tokenizer=byte_tokenizer()).reasoning is None


@pytest.mark.parametrize("model_type", ["gemma4", "gemma4_text", "gemma4_unified", "gemma4_unified_text"])
def test_the_four_types_of_gemma_4(model_type: str) -> None:
    tokenizer = byte_tokenizer([], special=GEMMA)
    profile = resolve_profile("auto", model_type=model_type, tokenizer=tokenizer)
    assert profile.name == "gemma4"
    assert profile.reasoning is not None and profile.reasoning.channel is not None


def test_no_model_type_belongs_to_two_rows() -> None:
    types = [model_type for row in FAMILIES.values() for model_type in row.model_types]
    assert len(types) == len(set(types))


def test_an_explicit_name_wins_over_everything() -> None:
    assert resolved(SWITCHED, "gemma4", "mistral").reasoning == family("mistral").reasoning


def test_a_wrong_explicit_name_lists_what_exists() -> None:
    with pytest.raises(UnknownFamilyError, match=r"qwen33.*choose one of.*gemma4.*qwen3,"):
        resolved(SWITCHED, None, "qwen33")


def test_markers_given_by_the_caller_are_taken_and_none_means_none() -> None:
    config = ReasoningConfig("<a>", "</a>")
    assert resolved(SWITCHED, None, config).reasoning is config
    assert resolved(SWITCHED, None, None).reasoning is None
    assert resolved(SWITCHED, None, None).tool_calls is not None


def test_a_template_that_raises_is_no_reason_to_fail() -> None:
    profile = resolved("{{ raise_exception('no') }}<think></think>{% if enable_thinking %}{% endif %}")
    assert profile.reasoning is not None


INVENTED = """{% for m in messages %}<|im_start|>{{ m.role }}
{% if m.reasoning_content %}OPEN{{ m.reasoning_content }}CLOSE
{% endif %}{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% if ponder_now is defined %}{% endif %}PREFILL{% endif %}"""


@pytest.mark.parametrize(
    ("opener", "closer"),
    [("<ponder>", "</ponder>"), ("<|muse:begin|>", "<|muse:end|>"), ("[MULL]", "[/MULL]"), ("◁mull▷", "◁/mull▷")],
)
@pytest.mark.parametrize("prefilled", [False, True])
def test_an_invented_family_is_worked_out_from_its_own_template(opener: str, closer: str, prefilled: bool) -> None:
    template = INVENTED.replace("OPEN", opener + "\n").replace("CLOSE", "\n" + closer)
    tokenizer = byte_tokenizer([opener, closer], template=template.replace("PREFILL", opener if prefilled else ""))
    profile = resolve_profile("auto", model_type="llama", tokenizer=tokenizer)
    assert profile.reasoning is not None
    assert (profile.name, profile.reasoning.starts, profile.reasoning.ends) == ("probed", (opener,), (closer,))
    assert profile.evidence[0] == "no row of the table fits"
    prompt = str(
        tokenizer.apply_chat_template([{"role": "user", "content": "x"}], tokenize=False, add_generation_prompt=True)
    )
    written = f"\nHmm.\n{closer}\nYes." if prefilled else f"{opener}\nHmm.\n{closer}\nYes."
    split = split_reasoning(written, profile, prompt_tail=prompt)
    assert (split.reasoning, split.content) == ("Hmm.", "Yes.")


def test_an_invented_family_that_shows_only_its_switch() -> None:
    off = "{% if enable_thinking is defined and not enable_thinking %}<mull></mull>{% endif %}{% endif %}"
    profile = resolved(TURNS + START + off)
    assert profile.reasoning is not None and profile.reasoning.starts == ("<mull>",)
    assert (profile.prompt.switch, profile.prompt.default) == ("enable_thinking", True)


def test_a_template_that_only_names_a_tag_is_no_thinking_family() -> None:
    assert resolved(TURNS + START + "{% endif %}<ponder></ponder>").reasoning is None


EXPECTED = {
    "ik__Qwen-Qwen3-0.6B": "qwen3",
    "trl__qwen3": "qwen3",
    "ik__Qwen3.5-4B": "qwen3.5",
    "trl__qwen3_5_nothink": "qwen3.5",
    "ik__google-gemma-4-31B-it": "gemma4",
    "unsloth__gemma-4-edge": "gemma4",
    "lcpp3__deepseek-ai-DeepSeek-R1-Distill-Llama-8B": "deepseek-r1",
    "ik__deepseek-ai-DeepSeek-V3.1": "deepseek-v3.1",
    "trl__qwen3_instruct_2507": "plain",
    "trl__llama3_2": "plain",
    "ik__mistralai-Ministral-3-14B-Reasoning-2512": "mistral",
    "ik__ByteDance-Seed-OSS": "seed-oss",
    "lcpp__MiniMax-M2": "minimax-m2",
    "ik__GLM-4.6": "glm-4.5",
}


@pytest.mark.parametrize(("file", "name"), EXPECTED.items())
def test_real_templates_are_recognised(file: str, name: str) -> None:
    path = SHARED / f"{file}.jinja"
    if not path.exists():
        pytest.skip("the real templates are not part of the project")
    tokenizer = byte_tokenizer(template=path.read_text(encoding="utf-8"))
    assert resolve_profile("auto", model_type=None, tokenizer=tokenizer).name == name
