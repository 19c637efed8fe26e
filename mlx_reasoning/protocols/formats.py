"""How families write their tool calls: one `ToolCallFormat` a wire form, shared by the families that use it.

`parser` names a function of `decode/tool_parsers.py`, which wraps mlx-lm's parsers and holds the few it lacks.
"""

from __future__ import annotations

from .config import Quote, ToolCallFormat

PYTHON_QUOTES = (Quote('"', '"', escape=True), Quote("'", "'", escape=True))
_GLM_QUOTES = (Quote("<arg_value>", "</arg_value>"),)
_GLM_ARGUMENTS = r"(?:<arg_key>[^<\0]*</arg_key>\s*\0\s*)*"
_NAME = r"[^\s<>\0]+"

HERMES = ToolCallFormat("json_tools", "<tool_call>", "</tool_call>", shape=("{", "["))


def _qwen_xml(opener: str, closer: str) -> ToolCallFormat:
    return ToolCallFormat(
        "qwen3_coder",
        opener,
        closer,
        shape=("<function=",),
        quotes=(Quote("<parameter=", "</parameter>"),),
        inner=("<function=", ("</function>",)),
        skeleton=rf"<function={_NAME}>\s*(?:\0\s*)*</function>",
        keyed=True,
    )


QWEN_XML = _qwen_xml("<tool_call>", "</tool_call>")
SEED_XML = _qwen_xml("<seed:tool_call>", "</seed:tool_call>")
GLM = ToolCallFormat(
    "glm47",
    "<tool_call>",
    "</tool_call>",
    shape="identifier",
    quotes=_GLM_QUOTES,
    whole_ends=("</arg_value>",),
    skeleton=rf"{_NAME}\s*{_GLM_ARGUMENTS}",
    keyed=True,
)
HY3 = ToolCallFormat(
    "hy3",
    "<tool_calls>",
    "</tool_calls>",
    shape=("<tool_call>",),
    quotes=_GLM_QUOTES,
    inner=("<tool_call>", ("</tool_call>",)),
    skeleton=rf"<tool_call>{_NAME}<tool_sep>\s*{_GLM_ARGUMENTS}</tool_call>",
    keyed=True,
)
LONGCAT = ToolCallFormat(
    "longcat",
    "<longcat_tool_call>",
    "</longcat_tool_call>",
    shape="identifier",
    quotes=(Quote("<longcat_arg_value>", "</longcat_arg_value>"),),
    whole_ends=("</longcat_arg_value>",),
    skeleton=rf"{_NAME}\s*(?:<longcat_arg_key>[^<\0]*</longcat_arg_key>\s*\0\s*)*",
    keyed=True,
)
GEMMA4 = ToolCallFormat(
    "gemma4",
    "<|tool_call>",
    "<tool_call|>",
    quotes=(Quote('<|"|>', '<|"|>'),),
    whole_ends=("}",),
    skeleton=r"\s*call:.*\}\s*",
)
KIMI_K2 = ToolCallFormat(
    "kimi",
    "<|tool_calls_section_begin|>",
    "<|tool_calls_section_end|>",
    inner=("<|tool_call_begin|>", ("<|tool_call_end|>",)),
)
MISTRAL = ToolCallFormat("mistral", "[TOOL_CALLS]", "", inner=("[TOOL_CALLS]", ()), inner_first=False)
MINIMAX_M2 = ToolCallFormat(
    "minimax_m2",
    "<minimax:tool_call>",
    "</minimax:tool_call>",
    shape=("<invoke",),
    quotes=(Quote("<parameter name=", "</parameter>"),),
    inner=("<invoke", ("</invoke>",)),
    skeleton=r"<invoke\s+name=[^>\0]+>\s*(?:\0\s*)*</invoke>",
    keyed=True,
)
MINIMAX_M3 = ToolCallFormat(
    "minimax_m3",
    "]<]minimax[>[<tool_call>",
    "]<]minimax[>[</tool_call>",
    quotes=(),
    inner=("]<]minimax[>[<invoke", ("]<]minimax[>[</invoke>",)),
)
PYTHONIC = ToolCallFormat("python_calls", "<|tool_call_start|>", "<|tool_call_end|>", quotes=PYTHON_QUOTES)
OLMO = ToolCallFormat("python_calls", "<function_calls>", "</function_calls>", quotes=PYTHON_QUOTES)
MINICPM5 = ToolCallFormat(
    "minicpm5",
    "<function name=",
    "</function>",
    shape=('"', "'"),
    quotes=(Quote("<![CDATA[", "]]>"), Quote("<param name=", "</param>")),
    skeleton=r"""\s*["'][^"'\0]+["']\s*>\s*(?:\0\s*)*""",
    keyed=True,
)
DEEPSEEK = ToolCallFormat(
    "deepseek",
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁calls▁end｜>",
    inner=("<｜tool▁call▁begin｜>", ("<｜tool▁call▁end｜>",)),
)


def _dsml(space: str, section: str, *others: str) -> ToolCallFormat:
    tag, end = f"<｜DSML｜{space}", f"</｜DSML｜{space}"
    return ToolCallFormat(
        "dsml",
        f"{tag}{section}>",
        f"{end}{section}>",
        other_openers=tuple(f"{tag}{other}>" for other in others),
        other_closers=tuple(f"{end}{other}>" for other in others),
        quotes=(Quote(f"{tag}parameter name=", f"{end}parameter>"),),
        inner=(f"{tag}invoke", (f"{end}invoke>", '"/>')),
        skeleton=rf'{tag}invoke name="[^"\0]*"(?:/>|>\s*(?:\0\s*)*{end}invoke>)',
        keyed=True,
    )


DSML_V32 = _dsml("", "function_calls")
DSML_V4 = _dsml("", "tool_calls", "toolcalls", "tool")
DSML_V41 = _dsml(" ", "calls")
APERTUS = ToolCallFormat("json_pairs", "<|tools_prefix|>", "<|tools_suffix|>", shape=("[",))
COHERE = ToolCallFormat("json_calls", "<|START_ACTION|>", "<|END_ACTION|>")
GRANITE = ToolCallFormat("json_calls", "<|tool_call|>", "", shape=("[", "{"))
HUNYUAN = ToolCallFormat("json_calls", "<tool_calls>", "</tool_calls>", shape=("[", "{"))
NEMOTRON_V2 = ToolCallFormat("json_calls", "<TOOLCALL>", "</TOOLCALL>", shape=("[", "{"))
K2_HORIZON = ToolCallFormat(
    "k2_horizon",
    "<ifm|tool_calls>",
    "</ifm|tool_calls>",
    quotes=(Quote("<ifm|arg_value>", "</ifm|arg_value>"),),
    inner=("<ifm|tool_call>", ("</ifm|tool_call>",)),
    skeleton=rf"<ifm\|tool_call>\s*{_NAME}\s*(?:<ifm\|arg_key>[^<\0]*</ifm\|arg_key>\s*\0\s*)*</ifm\|tool_call>",
    keyed=True,
)
PLAMO = ToolCallFormat(
    "plamo",
    "<|plamo:begin_tool_requests:plamo|>",
    "<|plamo:end_tool_requests:plamo|>",
    inner=("<|plamo:begin_tool_request:plamo|>", ("<|plamo:end_tool_request:plamo|>",)),
)
HARMONY = ToolCallFormat("harmony", "", "")
ATEM = ToolCallFormat(
    "muse_spark",
    "<atem:function_calls>",
    "</atem:function_calls>",
    shape=("<atem:invoke",),
    quotes=(Quote("<atem:parameter", "</atem:parameter>"),),
    whole_ends=("</atem:invoke>", "</atem:function_calls>"),
)
KIMI_K3 = ToolCallFormat(
    "kimi_k3",
    "<|open|>tools<|sep|>",
    "<|close|>tools<|sep|>",
    quotes=(Quote("<|open|>argument", "<|close|>argument<|sep|>"), Quote("<|open|>json", "<|close|>json<|sep|>")),
    inner=("<|open|>call", ("<|close|>call<|sep|>",)),
)
SOLAR = ToolCallFormat(
    "solar",
    "<|tool_calls|>",
    "<|calls|>",
    other_closers=("<|end|>",),
    inner=("<|tool_call:begin|>", ("<|tool_call:end|>",)),
)
INKLING = ToolCallFormat("json_calls", "<|content_invoke_tool_json|>", "<|end_message|>")
