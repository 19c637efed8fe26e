"""Explicit word, model type, template, vocabulary: in this order, and never the repository's name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mlx_reasoning import (
    ModelProfile,
    ReasoningConfig,
    ReasoningControlError,
    UnknownFamilyError,
    family,
    split_reasoning,
)
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
    "ik__Apertus-8B-Instruct": "apertus",
    "ik__Apriel-1.6-15b-Thinker-fixed": "apriel-1.6",
    "ik__ByteDance-Seed-OSS": "seed-oss",
    "ik__Cohere2MoE": "cohere-command4",
    "ik__CohereForAI-c4ai-command-r7b-12-2024-tool_use": "cohere-command-a",
    "ik__GLM-4.6": "glm-4.5",
    "ik__GLM-4.7-Flash": "glm-4.7",
    "ik__GLM-5.2": "glm-5",
    "ik__HuggingFaceTB-SmolLM3-3B": "smollm3",
    "ik__Kimi-K2-Thinking": "kimi-k2-thinking",
    "ik__LFM2.5-Instruct": "lfm2.5",
    "ik__MiroThinker": "mirothinker",
    "ik__NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": "nemotron-3",
    "ik__Qwen-QwQ-32B": "qwen3",
    "ik__Qwen-Qwen3-0.6B": "qwen3",
    "ik__Qwen3.5-4B": "qwen3.5",
    "ik__StepFun3.5-Flash": "step3.5",
    "ik__deepseek-ai-DeepSeek-R1-Distill-Llama-8B": "deepseek-r1",
    "ik__deepseek-ai-DeepSeek-R1-Distill-Qwen-32B": "cogito",
    "ik__deepseek-ai-DeepSeek-V3.1": "deepseek-v3.1",
    "ik__deepseek-ai-DeepSeek-V3.2": "deepseek-v3.2",
    "ik__deepseek-ai-DeepSeek-V4": "deepseek-v4",
    "ik__google-gemma-4-31B-it-interleaved": "gemma4",
    "ik__google-gemma-4-31B-it": "gemma4",
    "ik__ibm-granite-granite-3.3-2B-Instruct": "granite-3.3",
    "ik__llama-cpp-deepseek-r1": "deepseek-r1",
    "ik__llama-cpp-rwkv-world": "rwkv-world",
    "ik__mistralai-Ministral-3-14B-Reasoning-2512": "mistral",
    "ik__openai-gpt-oss-120b": "gpt-oss",
    "ik__stepfun-ai-Step-3.5-Flash": "step3.5",
    "ik__unsloth-Apriel-1.5": "apriel-1.5",
    "lcpp3__CohereForAI-c4ai-command-r7b-12-2024-tool_use": "cohere-command-a",
    "lcpp3__deepseek-ai-DeepSeek-R1-Distill-Llama-8B": "deepseek-r1",
    "lcpp3__llama-cpp-deepseek-r1": "deepseek-r1",
    "lcpp__GLM-4.6": "glm-4.5",
    "lcpp__Kimi-K3": "kimi-k3",
    "lcpp__MiniMax-M2": "minimax-m2",
    "lcpp__MiniMax-M3": "minimax-m3",
    "lcpp__NVIDIA-Nemotron-Nano-v2": "nemotron-nano-v2",
    "lcpp__deepseek-ai-DeepSeek-V4-Flash-0731": "deepseek-v4",
    "lcpp__deepseek-ai-DeepSeek-V4": "deepseek-v4",
    "lcpp__muse-glimmer": "muse",
    "lcpp__poolside-Laguna-XS-2.1": "laguna",
    "lcpp__poolside-Laguna-XS.2": "laguna",
    "lcpp__upstage-Solar-Open-100B": "solar-open",
    "trl__deepseekv3": "deepseek-r1",
    "trl__diffusion_gemma": "gemma4",
    "trl__glm4moe": "glm-4.5",
    "trl__gptoss": "gpt-oss",
    "trl__lfm2_2_5": "lfm2.5",
    "trl__nemotron_3_nano": "nemotron-3",
    "trl__nemotron_3_super": "nemotron-3",
    "trl__nemotron_3_ultra": "nemotron-3",
    "trl__qwen3": "qwen3",
    "trl__qwen3_5_nothink": "qwen3.5",
    "trl__qwen3_5_think": "qwen3.5",
    "unsloth__gemma-4-edge": "gemma4",
    "unsloth__gemma-4": "gemma4",
    "ik__GigaChat3.1-10B-A1.8B": "plain",
    "ik__Kimi-K2-Instruct": "plain",
    "ik__Qwen3-Coder": "plain",
    "ik__unsloth-mistral-Devstral-Small-2507": "plain",
    "lcpp__ibm-granite-granite-4.1": "plain",
    "trl__llama3_2": "plain",
    "trl__qwen3_instruct_2507": "plain",
    "trl__qwen3_vl": "plain",
}


CALLS = {
    "lcpp__Kimi-K3": "kimi_k3",
    "lcpp__MiniMax-M3": "minimax_m3",
    "lcpp__muse-glimmer": "muse_spark",
    "lcpp__upstage-Solar-Open-100B": "solar",
    "ik__deepseek-ai-DeepSeek-V3.2": "dsml",
    "ik__Qwen3.5-4B": "qwen3_coder",
    "ik__GLM-4.6": "glm47",
    "ik__unsloth-Apriel-1.5": "json_calls",
    "trl__lfm2_2_5": "python_calls",
    "unsloth__gemma-4": "gemma4",
    "ik__GigaChat3.1-10B-A1.8B": "json_calls",
    "ik__openai-gpt-oss-120b": "harmony",
}
HISTORY = {
    "ik__Qwen-Qwen3-0.6B": "loop",
    "ik__ByteDance-Seed-OSS": "keep",
    "ik__mistralai-Ministral-3-14B-Reasoning-2512": "keep",
    "lcpp__Kimi-K3": "keep",
    "lcpp__poolside-Laguna-XS.2": "keep",
    "ik__HuggingFaceTB-SmolLM3-3B": "strip",
    "unsloth__gemma-4": "loop",
    "lcpp__MiniMax-M2": "loop",
}
EFFORTS = {
    "ik__openai-gpt-oss-120b": ("low", "medium", "high"),
    "ik__deepseek-ai-DeepSeek-V4": ("high", "max"),
    "ik__GLM-5.2": ("high", "max"),
    "lcpp__muse-glimmer": ("low", "medium", "high"),
    "ik__Qwen-Qwen3-0.6B": (),
}


def real(file: str) -> ModelProfile:
    path = SHARED / f"{file}.jinja"
    if not path.exists():
        pytest.skip("the real templates are not part of the project")
    tokenizer = byte_tokenizer(QWEN, template=path.read_text(encoding="utf-8"))
    return resolve_profile("auto", model_type=None, tokenizer=tokenizer)


@pytest.mark.parametrize(("file", "parser"), CALLS.items())
def test_real_templates_show_how_calls_are_written(file: str, parser: str) -> None:
    calls = real(file).tool_calls
    assert calls is not None and calls.parser == parser


@pytest.mark.parametrize(("file", "rule"), HISTORY.items())
def test_real_templates_show_what_becomes_of_old_thoughts(file: str, rule: str) -> None:
    assert real(file).history == rule


@pytest.mark.parametrize(("file", "efforts"), EFFORTS.items())
def test_real_templates_show_their_efforts(file: str, efforts: tuple[str, ...]) -> None:
    assert real(file).prompt.efforts == efforts


@pytest.mark.parametrize(("file", "name"), EXPECTED.items())
def test_real_templates_are_recognised(file: str, name: str) -> None:
    assert real(file).name == name


CALLING = """{% for m in messages %}<|im_start|>{{ m.role }}
{% if m.reasoning_content RULE %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content or '' }}
{%- for call in m.tool_calls or [] %}<fn>{"tool_name": "{{ call.function.name }}", "parameters":
{{- call.function.arguments | tojson }}}</fn>{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


@pytest.mark.parametrize(
    ("rule", "name"), [("", "keep"), ("and loop.index0 > 1", "loop"), ("and loop.index0 > 99", "strip")]
)
def test_the_history_rule_is_what_rendering_shows(rule: str, name: str) -> None:
    assert resolved(CALLING.replace("RULE", rule)).history == name


def test_a_call_format_of_json_in_markers_that_nobody_knows_is_worked_out() -> None:
    profile = resolved(CALLING.replace("RULE", ""))
    assert profile.tool_calls is not None
    assert (profile.tool_calls.opener, profile.tool_calls.closer) == ("<fn>", "</fn>")
    text = '<think>a</think><fn>{"tool_name": "f", "parameters": {"x": 1}}</fn>'
    split = split_reasoning(text, profile)
    assert (split.reasoning, split.content) == ("a", "")
    assert [(call.name, call.arguments) for call in split.tool_calls] == [("f", {"x": 1})]


def test_json_behind_a_header_is_no_call_format() -> None:
    bare = CALLING.replace("RULE", "").replace("<fn>", "").replace("</fn>", "")
    tokenizer = byte_tokenizer(["<think>", "</think>"], template=bare)
    assert resolve_profile("auto", model_type=None, tokenizer=tokenizer).tool_calls is None


HY3 = """{% set s = SUFFIX %}{% for m in messages %}<｜hy_User｜>{{ m.content }}{% for c in m.tool_calls or [] %}
{{- '<tool_calls' ~ s ~ '>' ~ c.function.name ~ c.function.arguments ~ '</tool_calls' ~ s ~ '>' }}{% endfor %}
{%- endfor %}{% if add_generation_prompt %}<｜hy_Assistant｜>
{{ '<think' ~ s ~ '>' }}
{%- if reasoning_effort is not defined or reasoning_effort == 'no_think' %}{{ '</think' ~ s ~ '>' }}{% endif %}
{%- endif %}"""


@pytest.mark.parametrize("suffix", ["", ":opensource", ":inside-2.1"])
@pytest.mark.parametrize("where", ["prompt", "vocabulary"])
def test_the_suffix_of_a_checkpoint_is_read(suffix: str, where: str) -> None:
    tokens = [f"<think{suffix}>", f"</think{suffix}>", f"<tool_calls{suffix}>"]
    template = HY3.replace("SUFFIX", f"'{suffix}'") if where == "prompt" else None
    tokenizer = byte_tokenizer(tokens if where == "vocabulary" else [], template=template)
    profile = resolve_profile("hy3", model_type=None, tokenizer=tokenizer)
    argument = "<arg_key>x</arg_key>\n<arg_value>1</arg_value>"
    call = f"<tool_calls>\n<tool_call>f<tool_sep>\n{argument}\n</tool_call>\n</tool_calls>"
    text = f"<think>a</think>b{call}".replace(">", f"{suffix}>")
    split = split_reasoning(text, profile)
    assert (split.reasoning, split.content) == ("a", "b")
    assert [(call.name, call.arguments) for call in split.tool_calls] == [("f", {"x": 1})]
    if where == "prompt":
        assert (profile.prompt.switch, profile.prompt.default) == ("reasoning_effort", False)


@pytest.mark.parametrize("effort", ["", "_fast", "_faster"])
def test_the_markers_of_a_request_are_read_from_its_prompt(effort: str) -> None:
    tail = f"<think_fastest></ifm|think><ifm|think{effort}>"
    split = split_reasoning(f"a</ifm|think{effort}>b", "k2-horizon", prompt_tail=tail)
    assert (split.reasoning, split.content) == ("a", "b")
    assert family("k2-horizon").read(tail).closing == f"</ifm|think{effort}>"


def test_an_effort_is_the_nearest_that_the_family_has_and_says_so() -> None:
    strategy = family("deepseek-v4").prompt
    assert strategy.arguments(None, "max") == ({"thinking": True, "reasoning_effort": "max"}, ())
    arguments, notes = strategy.arguments(None, "low")
    assert arguments == {"thinking": True, "reasoning_effort": "high"} and "'low' was taken as 'high'" in notes[0]
    assert family("gpt-oss").prompt.arguments(None, "xhigh")[0] == {"reasoning_effort": "high"}
    with pytest.raises(ReasoningControlError, match=r"'huge'.*low, medium, high"):
        family("gpt-oss").prompt.arguments(None, "huge")
    assert family("hy3").prompt.arguments(False, None)[0] == {"reasoning_effort": "no_think"}
    assert family("hy3").prompt.arguments(None, "low")[0] == {"reasoning_effort": "low"}
