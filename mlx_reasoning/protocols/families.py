"""The table of families: one row each, and nothing but facts.

A new family is a new row here and a test. Where a row leaves something open (several checkpoints of one family differ,
or a template decides), `resolve.py` reads it from the checkpoint itself.
"""

from __future__ import annotations

from dataclasses import replace

from ..errors import OptionError, UnknownFamilyError
from . import formats, frames
from .config import (
    AnswerFrame,
    BudgetTransition,
    FrameProtocol,
    ModelProfile,
    PromptStrategy,
    ReasoningChannel,
    ReasoningConfig,
    ToolCallFormat,
)
from .variants import Suffix

_CHATML = "<|im_start|>assistant"
_CHATML_END = ("<|im_end|>", "<|endoftext|>")
_DEEPSEEK_END = ("<｜end▁of▁sentence｜>",)
_GLM_END = ("<|user|>", "<|observation|>", "<|endoftext|>")

THINK = ReasoningConfig("<think>", "</think>")
_CHATML_THINK = replace(THINK, end_of_turn=_CHATML_END)
_DEEPSEEK_THINK = replace(THINK, end_of_turn=_DEEPSEEK_END)
_GLM_THINK = replace(THINK, end_of_turn=_GLM_END)

ENABLE = PromptStrategy(switch="enable_thinking", default=True)
ENABLE_OFF = PromptStrategy(switch="enable_thinking", default=False)
ENABLE_OPEN = PromptStrategy(switch="enable_thinking", default=None)
THINKING = PromptStrategy(switch="thinking", default=True)
THINKING_OFF = PromptStrategy(switch="thinking", default=False)
ALWAYS = PromptStrategy(default=True)
EFFORT = PromptStrategy(default=True, effort="reasoning_effort", efforts=("low", "medium", "high"))
NO_THOUGHT = PromptStrategy(default=False)

_GLM5_EFFORT = replace(ENABLE, effort="reasoning_effort", efforts=("high", "max"))
_DEEPSEEK_EFFORT = replace(THINKING_OFF, effort="reasoning_effort", efforts=("high", "max"))

_QWEN_BUDGET = BudgetTransition(
    "\n\n Considering the limited time by the user, I have to give the solution based on the thinking directly now."
    "\n</think>\n\n"
)


def _row(
    name: str,
    reasoning: ReasoningConfig | None,
    calls: ToolCallFormat | None,
    prompt: PromptStrategy = ALWAYS,
    history: str = "strip",
    header: str | None = _CHATML,
    *types: str,
    budget: BudgetTransition | None = None,
    framed: FrameProtocol | None = None,
    suffix: Suffix | None = None,
    tells: str = "",
    source: str = "",
) -> ModelProfile:
    return ModelProfile(
        name,
        reasoning,
        calls,
        frames=framed,
        prompt=prompt,
        budget=budget,
        turn_header=header,
        history=history,  # type: ignore[arg-type]
        model_types=types,
        suffix=suffix,
        tells=tells,
        source=source,
    )


def _tags(start: str, end: str, **more: object) -> ReasoningConfig:
    return replace(ReasoningConfig(start, end), **more)  # type: ignore[arg-type]


_SEED = _tags("<seed:think>", "</seed:think>", never_prose=True, end_of_turn=("<seed:eos>",))
_COHERE = _tags(
    "<|START_THINKING|>",
    "<|END_THINKING|>",
    never_prose=True,
    answer_frames=(
        AnswerFrame("<|START_RESPONSE|>", "<|END_RESPONSE|>", never_prose=True),
        AnswerFrame("<|START_TEXT|>", "<|END_TEXT|>", never_prose=True),
    ),
    end_of_turn=("<|END_OF_TURN_TOKEN|>",),
    dropped=("<co>", "</co:…>"),
)
_MISTRAL = _tags("[THINK]", "[/THINK]", never_prose=True, calls_in_reasoning="never", end_of_turn=("</s>",))
_APERTUS = _tags(
    "<|inner_prefix|>",
    "<|inner_suffix|>",
    never_prose=True,
    calls_in_reasoning="always",
    end_of_turn=("<|assistant_end|>",),
)
_GEMMA4 = _tags(
    "<|channel>",
    "<channel|>",
    never_prose=True,
    channel=ReasoningChannel.gemma4,
    end_of_turn=("<turn|>",),
)
_HY_SUFFIX = Suffix(r":[\w.\-]+", ("think", "tool_calls", "tool_call", "tool_sep", "arg_key", "arg_value"))
_RESPONSE_FRAME = (AnswerFrame("<response>", "</response>"),)
_APRIEL_FRAME = (AnswerFrame("[BEGIN FINAL RESPONSE]", "[END FINAL RESPONSE]", never_prose=True),)

_GEMMA4_TYPES = ("gemma4", "gemma4_text", "gemma4_unified", "gemma4_unified_text")
_QWEN35_TYPES = ("qwen3_5", "qwen3_5_moe", "qwen3_5_text", "qwen3_5_moe_text")

_ROWS = (
    # <think>, ChatML
    _row("qwen3", _CHATML_THINK, formats.HERMES, ENABLE, "loop", budget=_QWEN_BUDGET, source="Qwen3 template"),
    _row("qwen3-thinking-2507", _CHATML_THINK, formats.HERMES, ALWAYS, "loop", budget=_QWEN_BUDGET),
    _row("qwen3-next-thinking", _CHATML_THINK, formats.HERMES, ALWAYS, "loop"),
    _row("qwen3-instruct-2507", None, formats.HERMES, NO_THOUGHT),
    _row("qwq", _CHATML_THINK, formats.HERMES, ALWAYS),
    _row("qwen3.5", _CHATML_THINK, formats.QWEN_XML, ENABLE, "loop", _CHATML, *_QWEN35_TYPES, budget=_QWEN_BUDGET),
    _row("nemotron-3", _CHATML_THINK, formats.QWEN_XML, ENABLE, "loop", tells="truncate_history_thinking"),
    _row("granite-4.2", _CHATML_THINK, formats.QWEN_XML, ENABLE, "loop"),
    _row("step3.5", _CHATML_THINK, formats.QWEN_XML, ALWAYS, "loop", _CHATML, "step3p5"),
    _row("mimo", _CHATML_THINK, formats.QWEN_XML, ENABLE_OFF, "loop", _CHATML, "mimo_v2_flash"),
    _row("smollm3", _CHATML_THINK, formats.HERMES, ENABLE, "strip", _CHATML, "smollm3", tells="Reasoning Mode:"),
    _row("bielik", _CHATML_THINK, formats.HERMES, ENABLE_OFF, "keep"),
    _row("holo2", _CHATML_THINK, formats.HERMES, THINKING),
    _row("intern-s1", _CHATML_THINK, None, ENABLE),
    _row("iquest-q1", _CHATML_THINK, None, ALWAYS),
    _row("lfm2.5", _CHATML_THINK, formats.PYTHONIC, ALWAYS, "loop", tells=r"keep_past_thinking|<\|tool_call_start\|>"),
    _row("minicpm-v", _CHATML_THINK, formats.HERMES, ENABLE_OFF),
    _row("minicpm5", _CHATML_THINK, formats.MINICPM5, ENABLE_OPEN),
    _row("mirothinker", _CHATML_THINK, None, ALWAYS, tells="<use_mcp_tool>"),
    _row("nanbeige", _CHATML_THINK, formats.HERMES, ENABLE, "strip", _CHATML, "nanbeige"),
    _row("olmo-3", _CHATML_THINK, formats.OLMO, ALWAYS, "strip", _CHATML, tells="<function_calls>"),
    _row("phi-4-reasoning", _CHATML_THINK, None, ALWAYS),
    # <think>, other headers
    _row("deepseek-r1", _DEEPSEEK_THINK, formats.DEEPSEEK, ALWAYS, "strip", "<｜Assistant｜>"),
    _row("deepseek-v3.1", _DEEPSEEK_THINK, formats.DEEPSEEK, THINKING_OFF, "strip", "<｜Assistant｜>"),
    _row("deepseek-v3.2", _DEEPSEEK_THINK, formats.DSML_V32, THINKING_OFF, "loop", "<｜Assistant｜>", "deepseek_v32"),
    _row("deepseek-v4", _DEEPSEEK_THINK, formats.DSML_V4, _DEEPSEEK_EFFORT, "loop", "<｜Assistant｜>", "deepseek_v4"),
    _row("deepseek-v4.1", _DEEPSEEK_THINK, formats.DSML_V41, _DEEPSEEK_EFFORT, "loop", "<｜Assistant｜>",
         "deepseek_v41"),
    _row("cogito", _DEEPSEEK_THINK, formats.DEEPSEEK, ENABLE_OFF, "strip", "<｜Assistant｜>"),
    _row("glm-4.5", _GLM_THINK, formats.GLM, ENABLE, "loop", "<|assistant|>"),
    _row("glm-4.7", _GLM_THINK, formats.GLM, ENABLE, "loop", "<|assistant|>",
         tells=r"(?s)\A(?!.*Reasoning Effort:).*clear_thinking"),
    _row("glm-5", _GLM_THINK, formats.GLM, _GLM5_EFFORT, "loop", "<|assistant|>", "glm_moe_dsa",
         tells="Reasoning Effort:"),
    _row("kimi-k2-thinking", THINK, formats.KIMI_K2, ALWAYS, "loop", "<|im_assistant|>assistant<|im_middle|>"),
    _row("kimi-k2.6", THINK, formats.KIMI_K2, THINKING, "loop", "<|im_assistant|>assistant<|im_middle|>", "kimi_k25"),
    _row("minimax-m2", THINK, formats.MINIMAX_M2, ALWAYS, "loop", "]~b]ai", "minimax_m2"),
    _row("exaone-4", THINK, formats.HERMES, ENABLE_OFF, "strip", "[|assistant|]", "exaone4"),
    _row("granite-3.3", replace(THINK, answer_frames=_RESPONSE_FRAME), formats.GRANITE, THINKING_OFF, "strip",
         "<|start_of_role|>assistant"),
    _row("hunyuan-a13b", replace(THINK, answer_frames=(AnswerFrame("<answer>", "</answer>"),)), formats.HUNYUAN,
         ENABLE, "strip", None),
    _row("ernie-4.5", replace(THINK, answer_frames=_RESPONSE_FRAME), formats.HERMES, ALWAYS, "strip", None),
    _row("ling3", THINK, formats.GLM, ENABLE, "keep", "<role>ASSISTANT</role>"),
    _row("ring", THINK, formats.GLM, ENABLE, "keep", "<role>ASSISTANT</role>"),
    _row("laguna", THINK, formats.GLM, ENABLE_OFF, "keep", "<assistant>", "laguna"),
    _row("spark2.5", THINK, formats.GLM, ENABLE, "keep", "<|Bot|>", "spark2_5"),
    _row("nemotron-nano-v2", THINK, formats.NEMOTRON_V2,
         PromptStrategy(default=True, words=("/think", "/no_think")), "strip", "<SPECIAL_11>Assistant"),
    _row("reka-edge", THINK, formats.HERMES, ENABLE_OFF, "loop", "<sep>assistant:"),
    _row("rwkv-world", THINK, None, ENABLE_OFF, "strip", "\n\nAssistant:"),
    _row("step3", THINK, None, ALWAYS, "strip", None),
    _row("step5", THINK, None, ALWAYS, "strip", None),
    _row("dots", THINK, None, ALWAYS, "strip", None),
    _row("magistral-2506", THINK, formats.MISTRAL, ALWAYS, "strip", None),
    # tag pairs of their own
    _row("exaone-deep", _tags("<thought>", "</thought>"), None, ALWAYS, "strip", "[|assistant|]"),
    _row("hy3", THINK, formats.HY3,
         PromptStrategy("reasoning_effort", on="high", off="no_think", default=False, effort="reasoning_effort",
                        efforts=("low", "high")),
         "keep", "<｜hy_Assistant", suffix=_HY_SUFFIX),
    _row("minimax-m3", _tags("<mm:think>", "</mm:think>", never_prose=True), formats.MINIMAX_M3,
         PromptStrategy(switch="thinking_mode", on="enabled", off="disabled"), "keep", "]~b]ai", "minimax_m3_vl"),
    _row("mistral", _MISTRAL, formats.MISTRAL, ALWAYS, "keep", "[/INST]"),
    _row("seed-oss", _SEED, formats.SEED_XML, PromptStrategy(switch="thinking_budget", on=-1, off=0, default=True),
         "keep", "<seed:bos>assistant", "seed_oss"),
    _row("longcat", _tags("<longcat_think>", "</longcat_think>", never_prose=True), formats.LONGCAT, ENABLE, "strip",
         None, "longcat_flash"),
    _row("kimi-vl-thinking", _tags("◁think▷", "◁/think▷", never_prose=True), None, ALWAYS, "strip", None),
    _row("k2-horizon", _tags("<ifm|think>", "</ifm|think>", never_prose=True), formats.K2_HORIZON,
         EFFORT, "strip", None,
         suffix=Suffix("_[a-z]+", ("think",))),
    _row("plamo3", _tags("<|plamo:begin_think:plamo|>", "<|plamo:end_think:plamo|>", never_prose=True),
         formats.PLAMO, ENABLE, "strip", None, "plamo3"),
    _row("cohere-command-a", _COHERE, formats.COHERE, PromptStrategy(switch="reasoning"), "loop",
         "<|CHATBOT_TOKEN|>"),
    _row("cohere-command4", _COHERE, formats.COHERE, ALWAYS, "keep", "<|CHATBOT_TOKEN|>", tells=r"<\|START_TEXT\|>"),
    _row("apertus", _APERTUS, formats.APERTUS, ENABLE_OFF, "strip", "<|assistant_start|>", "apertus"),
    # labelled channels
    _row("gemma4", _GEMMA4, formats.GEMMA4, ENABLE_OFF, "loop", "<|turn>model", *_GEMMA4_TYPES,
         source="Gemma 4 templates"),
    # message headers and nested frames
    _row("gpt-oss", None, formats.HARMONY,
         EFFORT, "loop",
         "<|start|>assistant", "gpt_oss", framed=frames.HARMONY),
    _row("muse", None, formats.ATEM,
         replace(EFFORT, effort="reasoning_strength"), "keep",
         "<|start|>assistant", "muse_glimmer", "muse_spark", framed=frames.ONYX),
    _row("kimi-k3", None, formats.KIMI_K3, THINKING, "keep", '<|open|>message role="assistant"<|sep|>', "kimi_k3",
         framed=frames.XTML),
    _row("solar-open", None, formats.SOLAR, EFFORT, "loop", "<|begin|>assistant", "solar_open", framed=frames.SOLAR),
    _row("inkling", None, formats.INKLING, ALWAYS, "strip", "<|message_model|>", framed=frames.INKLING),
    # text markers and bare tags
    _row("granite-3.2",
         _tags("Here is my thought process:", "Here is my response:",
               other_starts=("Here's my thought process:",), other_ends=("Here's my response:",)),
         formats.GRANITE, THINKING_OFF, "strip", "<|start_of_role|>assistant"),
    _row("apriel-1.5", ReasoningConfig(None, "[BEGIN FINAL RESPONSE]", answer_frames=_APRIEL_FRAME),
         formats.HUNYUAN, ALWAYS, "strip", "<|assistant|>"),
    _row("apriel-1.6",
         ReasoningConfig("Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]", answer_frames=_APRIEL_FRAME),
         formats.HUNYUAN, ALWAYS, "strip", "<|begin_assistant|>"),
    _row("tags-thinking", _tags("<thinking>", "</thinking>"), None, ALWAYS, "strip", None),
    _row("tags-reasoning", _tags("<reasoning>", "</reasoning>"), None, ALWAYS, "strip", None),
    _row("tags-thought", _tags("<thought>", "</thought>"), None, ALWAYS, "strip", None),
    _row("tags-scratchpad", _tags("<REASONING_SCRATCHPAD>", "</REASONING_SCRATCHPAD>"), None, ALWAYS, "strip", None),
    _row("tags-reflection", _tags("<thinking>", "</thinking>", answer_frames=(AnswerFrame("<output>", "</output>"),)),
         None, ALWAYS, "strip", None),
)  # fmt: skip

FAMILIES = {row.name: row for row in _ROWS}


def family(name: str) -> ModelProfile:
    """The row of this name.

    Raises:
        UnknownFamilyError: there is none; the message lists the names.
    """
    try:
        return FAMILIES[name]
    except (KeyError, TypeError):
        raise UnknownFamilyError(f"no family {name!r}: choose one of {', '.join(sorted(FAMILIES))}") from None


def as_profile(protocol: ModelProfile | ReasoningConfig | FrameProtocol | str | None) -> ModelProfile:
    """The profile that a family's name, or the markers alone, stand for; None is a model without thoughts.

    Raises:
        UnknownFamilyError: there is no family of that name; the message lists the names.
        OptionError: it is none of these.
    """
    if isinstance(protocol, ModelProfile):
        return protocol
    if isinstance(protocol, str):
        return family(protocol)
    if isinstance(protocol, FrameProtocol):
        return ModelProfile("custom", frames=protocol)
    if protocol is None or isinstance(protocol, ReasoningConfig):
        return ModelProfile("custom", protocol)
    raise OptionError(f"the protocol is {protocol!r:.80}: give a family's name, a profile or the markers")
