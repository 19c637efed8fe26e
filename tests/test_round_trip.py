"""What was parsed, rendered again as history in a tool loop, is the text that was generated.

Over templates of our own, and over the real ones of the families where those are at hand. The text of a turn is what
the template itself writes for a thought, an answer and calls; it goes through the splitter, and what comes out is
rendered.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mlx_reasoning.demo
from mlx_reasoning import StartState, split_reasoning, start_state
from mlx_reasoning.errors import PromptError, ReasoningControlError
from mlx_reasoning.prompt import RenderedPrompt, render
from mlx_reasoning.protocols.config import ModelProfile, ReasoningConfig
from mlx_reasoning.protocols.resolve import resolve_profile

from .tiny import CHATML_TEMPLATE
from .vocab import QWEN, byte_tokenizer

DEMO = Path(mlx_reasoning.demo.__file__).parent
SHARED = Path(os.environ.get("MLX_REASONING_SHARED", Path(__file__).parents[2] / "shared")) / "templates"
FIELDS = {"city": {"type": "string"}, "n": {"type": "integer"}, "deep": {"type": "object"}}
TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "look_up",
            "description": "Looks.",
            "parameters": {"type": "object", "properties": FIELDS},
        },
    }
]
ENDS = [
    "<|im_end|>",
    "<|END_OF_TURN_TOKEN|>",
    "<|tool_response>",
    "[e~[",
    "\n</assistant>",
    "[TOOL_RESULTS]",
    "<SPECIAL_12>",
]
FRAME_ENDS = ["<|call|>", "<|return|>", "<|eot|>", "<|calls|>", "<|end_of_msg|>"]
NO_ENDS = ReasoningConfig("<", ">")
USER = {"role": "user", "content": "Hi"}
RESULT = {"role": "tool", "content": "Zqres", "name": "look_up", "tool_call_id": "call00001"}

TAGS_XML = """{%- for m in messages %}{{- '<|im_start|>' + m.role + '\\n' }}
{%- if m.role == 'assistant' and m.reasoning_content %}{{- '<think>\\n' + m.reasoning_content + '\\n</think>\\n\\n' }}
{%- endif %}{{- (m.content or '') | trim }}
{%- for c in m.tool_calls or [] %}{{- ('\\n\\n' if loop.first and m.content else '') + '<tool_call>\\n<function=' }}
{{- c.function.name + '>' }}{% for k, v in c.function.arguments.items() %}
{{- '\\n<parameter=' + k + '>\\n' }}{{ v if v is string else v | tojson }}{{ '\\n</parameter>' }}{% endfor %}
{{- '\\n</function>\\n</tool_call>' }}{% endfor %}{{- '<|im_end|>\\n' }}{% endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{% endif %}"""
CHANNELS = """{%- for m in messages %}{{- '<|turn>' + ('model' if m.role == 'assistant' else m.role) + '\\n' }}
{%- if m.reasoning_content %}{{- '<|channel>thought\\n' + m.reasoning_content + '\\n<channel|>' }}{% endif %}
{{- m.content or '' }}{% for c in m.tool_calls or [] %}{{- '<|tool_call>call:' + c.function.name + '{' }}
{%- for k, v in c.function.arguments.items() %}{{ k + ':' }}
{{- '<|"|>' + v + '<|"|>' if v is string else v | tojson }}{{ '' if loop.last else ',' }}{% endfor %}
{{- '}<tool_call|>' }}{% endfor %}{{- '<turn|>\\n' }}{% endfor %}
{%- if add_generation_prompt %}{{- '<|turn>model\\n' }}{% endif %}{% if enable_thinking %}{% endif %}"""
FRAMES = """{%- for m in messages %}{% if m.role == 'assistant' %}
{%- if m.thinking %}{{- '<|start|>assistant<|channel|>analysis<|message|>' + m.thinking + '<|end|>' }}{% endif %}
{%- if m.content %}{{- '<|start|>assistant<|channel|>' + ('commentary' if m.tool_calls else 'final') + '<|message|>' }}
{{- m.content + ('<|end|>' if m.tool_calls else '<|return|>') }}{% endif %}{% for c in m.tool_calls or [] %}
{{- '<|start|>assistant<|channel|>commentary to=functions.' + c.function.name + ' <|constrain|>json<|message|>' }}
{{- c.function.arguments | tojson + '<|call|>' }}{% endfor %}
{%- else %}{{- '<|start|>' + m.role + '<|message|>' + m.content + '<|end|>' }}{% endif %}{% endfor %}
{%- if add_generation_prompt %}{{- '<|start|>assistant' }}{% endif %}"""
PREFILLED = """{%- for m in messages %}{% if m.role == 'assistant' %}{{- '<｜Assistant｜>' }}
{%- if m.reasoning_content %}{{- '<think>' + m.reasoning_content }}{% endif %}{{- '</think>' + (m.content or '') }}
{%- if m.tool_calls %}{{- '\\n\\n<｜DSML｜tool_calls>\\n' }}{% for c in m.tool_calls %}
{{- '<｜DSML｜invoke name="' + c.function.name + '">\\n' }}{% for k, v in c.function.arguments.items() %}
{{- '<｜DSML｜parameter name="' + k + '" string="' + ('true' if v is string else 'false') + '">' }}
{{- v if v is string else v | tojson }}{{ '</｜DSML｜parameter>\\n' }}{% endfor %}{{ '</｜DSML｜invoke>\\n' }}
{%- endfor %}
{{- '</｜DSML｜tool_calls>' }}{% endif %}{{- '<｜end▁of▁sentence｜>' }}
{%- else %}{{- '<｜User｜>' + m.content }}{% endif %}{% endfor %}
{%- if add_generation_prompt %}{{- '<｜Assistant｜><think>' }}{% endif %}"""
OWN = {
    "demo": (DEMO / "chat_template.jinja").read_text(encoding="utf-8"),
    "chatml": CHATML_TEMPLATE.replace(" and loop.last", ""),
    "tags-xml": TAGS_XML,
    "channels": CHANNELS,
    "frames": FRAMES,
    "prefilled": PREFILLED,
}
REAL = sorted(path.stem for path in SHARED.glob("*.jinja"))

# What keeps a turn from coming out again; all of it lies in the templates.
NOT_ALLOWED = {"takes no tools", "drops the opener", "a thought is open"}
WITH_CALLS = ("thought, call", "thought, text, call", "thought, two calls", "call")
OTHERWISE = {
    # these write no calls at all
    "ik__HuggingFaceTB-SmolLM3-3B": WITH_CALLS,
    "ik__LFM2.5-Instruct": WITH_CALLS,
    "ik__ibm-granite-granite-3.3-2B-Instruct": WITH_CALLS,
    # the results stand in the turn itself, in brackets
    "ik__Apertus-8B-Instruct": WITH_CALLS,
    # one call a turn; a turn ends with it
    "frames": ("thought, two calls",),
    "ik__openai-gpt-oss-120b": ("thought, two calls",),
    "trl__gptoss": ("thought, two calls",),
    # what was said before a call stands behind its result
    "ik__google-gemma-4-31B-it": ("thought, text, call",),
    "trl__diffusion_gemma": ("thought, text, call",),
    "unsloth__gemma-4": ("thought, text, call",),
    "unsloth__gemma-4-edge": ("thought, text, call",),
    # the marker between thought and answer is not written again
    "ik__unsloth-Apriel-1.5": ("thought, text, call", "thought, answer"),
    "lcpp__NVIDIA-Nemotron-Nano-v2": ("thought, answer",),
}
MUST = """ik__ByteDance-Seed-OSS ik__Cohere2MoE ik__GLM-4.6 ik__GLM-4.7-Flash ik__GLM-5.2 ik__Qwen-Qwen3-0.6B
ik__Qwen3.5-4B
ik__NVIDIA-Nemotron-3-Nano-30B-A3B-BF16 ik__StepFun3.5-Flash ik__deepseek-ai-DeepSeek-V3.2 ik__deepseek-ai-DeepSeek-V4
ik__google-gemma-4-31B-it ik__mistralai-Ministral-3-14B-Reasoning-2512 ik__openai-gpt-oss-120b lcpp__Kimi-K3 trl__qwen3
lcpp__MiniMax-M2 lcpp__MiniMax-M3 lcpp__muse-glimmer lcpp__poolside-Laguna-XS.2 lcpp__upstage-Solar-Open-100B
trl__lfm2_2_5 trl__nemotron_3_ultra unsloth__gemma-4-edge""".split()


@cache
def template(name: str) -> tuple[Any, ModelProfile]:
    text = OWN[name] if name in OWN else (SHARED / f"{name}.jinja").read_text(encoding="utf-8")
    tokenizer = byte_tokenizer(QWEN, template=text)
    tokenizer.eos_token = "<|endoftext|>"
    return tokenizer, resolve_profile("auto", model_type=None, tokenizer=tokenizer)


def turn(thought: str, content: str, calls: list[dict[str, Any]]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if thought:
        message["reasoning_content"] = thought
    if calls:
        message["tool_calls"] = [
            {"id": f"call0000{at}", "type": "function", "function": {"name": "look_up", "arguments": arguments}}
            for at, arguments in enumerate(calls, 1)
        ]
    return message


def rendered(
    name: str, messages: list[dict[str, Any]], thinking: bool | None, *, prompt: bool = False
) -> RenderedPrompt:
    tokenizer, profile = template(name)
    return render(
        tokenizer,
        messages,
        profile=profile,
        tools=TOOLS,
        thinking=thinking,
        add_generation_prompt=prompt,
        continue_final_message=False,
    )


def wish(name: str) -> bool | None:
    """Thinking on, where it can be switched."""
    try:
        rendered(name, [USER], True, prompt=True)
    except (ReasoningControlError, PromptError):
        return None
    return True


def generated(name: str, message: dict[str, Any], thinking: bool | None) -> tuple[str, str, str] | None:
    """The prompt, the turn behind it, and the whole with a tool's result; None where the one does not go on from the
    other."""
    prompt = rendered(name, [USER], thinking, prompt=True).text
    results = [RESULT | {"tool_call_id": call["id"]} for call in message.get("tool_calls", [])]
    whole = rendered(name, [USER, message, *results], thinking).text
    if not whole.startswith(prompt):
        return None
    end = rendered(name, [USER, turn("", "Zqend", [])], thinking).text.rpartition("Zqend")[2].strip()
    _, profile = template(name)
    ends = FRAME_ENDS if profile.frames is not None else [*ENDS, end, *(profile.reasoning or NO_ENDS).end_of_turn]
    text = whole[len(prompt) :]
    found = [at for at in map(text.find, filter(None, ends)) if at >= 0]
    return prompt, text[: min(found)] if found else text.removesuffix(end), whole


def round_trip(name: str, message: dict[str, Any], thinking: bool | None) -> str:
    thought = message.get("reasoning_content")
    """ "" where the turn comes out as it was generated, else what happened instead."""
    try:
        made = generated(name, message, thinking)
    except PromptError:
        return "takes no tools"
    if made is None:
        return "drops the opener"
    prompt, text, whole = made
    _, profile = template(name)
    if start_state(prompt, profile) is not StartState.outside and not thought:
        return "a thought is open"
    split = split_reasoning(text, profile, prompt_tail=prompt, tools=TOOLS)
    if split.rejected:
        return f"rejected {split.rejected}"
    again = turn(split.reasoning, split.content, [call.arguments for call in split.tool_calls])
    results = [RESULT | {"tool_call_id": call["id"]} for call in again.get("tool_calls", [])]
    try:
        back = rendered(name, [USER, again, *results], thinking).text
    except PromptError as error:
        return f"refused: {error}"
    return "" if back == whole else f"{whole[len(prompt) :]!r} became {back[-len(whole) + len(prompt) :]!r}"


MESSAGES = {
    "thought, call": turn("I think.", "", [{"city": "Paris"}]),
    "thought, text, call": turn("I think.", "Look:", [{"city": "Paris", "n": 2}]),
    "thought, two calls": turn("A\n\nB", "", [{"city": "a"}, {"city": "b", "n": 1}]),
    "call": turn("", "", [{"n": 3}]),
    "thought, answer": turn("A\n\nB", "An answer.\n\nMore.", []),
}


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("what", MESSAGES)
def test_a_turn_of_our_own_templates_comes_out_as_it_was(name: str, what: str) -> None:
    if (name, what) == ("prefilled", "call"):
        assert round_trip(name, MESSAGES[what], wish(name)) == "drops the opener"
    elif what not in OTHERWISE.get(name, ()):
        assert round_trip(name, MESSAGES[what], wish(name)) == ""


words = st.lists(
    st.sampled_from(["a", "plan", "思考", "🤔", "<", ">", "`x`", "\n", "\n\n", " ", "1.", "{", "}", "é", "</thin"]),
    max_size=8,
).map(lambda parts: "".join(parts).strip())
arguments = st.fixed_dictionaries(
    {
        "city": st.text(
            st.characters(codec="utf-8", exclude_characters='<>|"\\', exclude_categories=("C", "Z")), min_size=1
        )
    },
    optional={"n": st.integers(-99, 99)},
)


@pytest.mark.parametrize("name", OWN)
@settings(max_examples=40, deadline=None)
@given(thought=words, content=words, calls=st.lists(arguments, max_size=2))
def test_any_turn_of_our_own_templates_comes_out_as_it_was(
    name: str, thought: str, content: str, calls: list[dict[str, Any]]
) -> None:
    thought = thought.rstrip("`\n ") or ("plan" if name == "prefilled" else "")  # a closer between backticks is quoted
    calls = calls[:1] if name == "frames" else calls
    if content or calls:
        assert round_trip(name, turn(thought, content, calls), wish(name)) == ""


@pytest.mark.parametrize("name", REAL)
def test_a_turn_of_a_real_template_comes_out_as_it_was(name: str) -> None:
    _, profile = template(name)
    if profile.reasoning is None and profile.frames is None:
        return
    outcomes = {what: round_trip(name, message, wish(name)) for what, message in MESSAGES.items()}
    lost = {what for what, outcome in outcomes.items() if outcome and outcome not in NOT_ALLOWED}
    assert lost == set(OTHERWISE.get(name, ())), outcomes
    if name in MUST:
        assert outcomes["thought, call"] == ""


@pytest.mark.skipif(not REAL, reason="the real templates are not part of the project")
def test_the_templates_that_must_round_trip_are_there() -> None:
    assert set(MUST) <= set(REAL)
