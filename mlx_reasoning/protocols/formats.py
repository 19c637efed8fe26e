"""How families write their tool calls: one `ToolCallFormat` a wire form, shared by the families that use it.

`parser` names a function of `decode/tool_parsers.py`, which wraps mlx-lm's parsers and holds the few it lacks.
"""

from __future__ import annotations

from .config import JSON_QUOTES, Quote, ToolCallFormat

PYTHON_QUOTES = (Quote('"', '"', escape=True), Quote("'", "'", escape=True))
_GLM_QUOTES = (Quote("<arg_value>", "</arg_value>"),)

HERMES = ToolCallFormat("json_tools", "<tool_call>", "</tool_call>", shape=("{", "["))
QWEN_XML = ToolCallFormat(
    "qwen3_coder",
    "<tool_call>",
    "</tool_call>",
    shape=("<function=",),
    quotes=(Quote("<parameter=", "</parameter>"),),
)
SEED_XML = ToolCallFormat(
    "qwen3_coder",
    "<seed:tool_call>",
    "</seed:tool_call>",
    shape=("<function=",),
    quotes=(Quote("<parameter=", "</parameter>"),),
)
GLM = ToolCallFormat(
    "glm47", "<tool_call>", "</tool_call>", shape="identifier", quotes=_GLM_QUOTES, whole_ends=("</arg_value>",)
)
HY3 = ToolCallFormat(
    "hy3", "<tool_calls>", "</tool_calls>", shape=("<tool_call>",), quotes=_GLM_QUOTES, whole_ends=("</tool_call>",)
)
LONGCAT = ToolCallFormat(
    "longcat",
    "<longcat_tool_call>",
    "</longcat_tool_call>",
    shape="identifier",
    quotes=(Quote("<longcat_arg_value>", "</longcat_arg_value>"),),
    whole_ends=("</longcat_arg_value>",),
)
GEMMA4 = ToolCallFormat("gemma4", "<|tool_call>", "<tool_call|>", quotes=(Quote('<|"|>', '<|"|>'),))
KIMI_K2 = ToolCallFormat("kimi_k2", "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>")
MISTRAL = ToolCallFormat("mistral_ids", "[TOOL_CALLS]", "")
MINIMAX_M2 = ToolCallFormat(
    "minimax_m2",
    "<minimax:tool_call>",
    "</minimax:tool_call>",
    shape=("<invoke",),
    quotes=(Quote("<parameter name=", "</parameter>"),),
)
MINIMAX_M3 = ToolCallFormat(
    "minimax_m3",
    "]<]minimax[>[<tool_call>",
    "]<]minimax[>[</tool_call>",
    quotes=(),
    whole_ends=("]<]minimax[>[</invoke>",),
)
PYTHONIC = ToolCallFormat("pythonic", "<|tool_call_start|>", "<|tool_call_end|>", quotes=PYTHON_QUOTES)
OLMO = ToolCallFormat("python_lines", "<function_calls>", "</function_calls>", quotes=PYTHON_QUOTES)
MINICPM5 = ToolCallFormat(
    "minicpm5",
    "<function name=",
    "</function>",
    shape=('"', "'"),
    quotes=(Quote("<param name=", "</param>"), Quote("<![CDATA[", "]]>")),
)
DEEPSEEK = ToolCallFormat(
    "deepseek", "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", whole_ends=("<｜tool▁call▁end｜>",)
)
DSML_V32 = ToolCallFormat(
    "dsml",
    "<｜DSML｜function_calls>",
    "</｜DSML｜function_calls>",
    quotes=(Quote("<｜DSML｜parameter name=", "</｜DSML｜parameter>"),),
    whole_ends=("</｜DSML｜invoke>",),
)
DSML_V4 = ToolCallFormat(
    "dsml",
    "<｜DSML｜tool_calls>",
    "</｜DSML｜tool_calls>",
    other_openers=("<｜DSML｜toolcalls>", "<｜DSML｜tool>"),
    other_closers=("</｜DSML｜toolcalls>", "</｜DSML｜tool>"),
    quotes=(Quote("<｜DSML｜parameter name=", "</｜DSML｜parameter>"),),
    whole_ends=("</｜DSML｜invoke>",),
)
DSML_V41 = ToolCallFormat(
    "dsml",
    "<｜DSML｜ calls>",
    "</｜DSML｜ calls>",
    quotes=(Quote("<｜DSML｜ parameter name=", "</｜DSML｜ parameter>"),),
    whole_ends=("</｜DSML｜ invoke>",),
)
APERTUS = ToolCallFormat("json_pairs", "<|tools_prefix|>", "<|tools_suffix|>", shape=("[",))
COHERE = ToolCallFormat("json_calls", "<|START_ACTION|>", "<|END_ACTION|>")
GRANITE = ToolCallFormat("json_calls", "<|tool_call|>", "", shape=("[", "{"))
HUNYUAN = ToolCallFormat("json_calls", "<tool_calls>", "</tool_calls>", shape=("[", "{"))
NEMOTRON_V2 = ToolCallFormat("json_calls", "<TOOLCALL>", "</TOOLCALL>", shape=("[", "{"))
K2_HORIZON = ToolCallFormat(
    "k2_horizon", "<ifm|tool_calls>", "</ifm|tool_calls>", whole_ends=("</ifm|tool_call>",), quotes=JSON_QUOTES
)
PLAMO = ToolCallFormat(
    "plamo",
    "<|plamo:begin_tool_requests:plamo|>",
    "<|plamo:end_tool_requests:plamo|>",
    whole_ends=("<|plamo:end_tool_request:plamo|>",),
)
HARMONY = ToolCallFormat("harmony", "", "")
ATEM = ToolCallFormat(
    "muse_spark",
    "<atem:function_calls>",
    "</atem:function_calls>",
    quotes=(Quote("<atem:parameter", "</atem:parameter>"),),
    whole_ends=("</atem:invoke>",),
)
KIMI_K3 = ToolCallFormat(
    "kimi_k3",
    "",
    "",
    quotes=(Quote("<|open|>argument", "<|close|>argument<|sep|>"),),
    whole_ends=("<|close|>call<|sep|>",),
)
SOLAR = ToolCallFormat("solar", "", "", whole_ends=("<|tool_call:end|>",))
INKLING = ToolCallFormat("json_calls", "<|content_invoke_tool_json|>", "<|end_message|>")
