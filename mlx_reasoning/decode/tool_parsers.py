"""From a call's payload to names and arguments: mlx-lm's parsers where it has one, ours where it has none.

mlx-lm's are loaded when a call is first parsed, since importing mlx_lm imports mlx. A parser gets the text between
the opener and the closer and gives a dict, or a list of dicts, with `name` and `arguments`; it raises on anything else.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import re
from collections.abc import Callable
from typing import Any

from ..errors import MissingDependencyError
from ..messages import Tool

Parser = Callable[[str, list[Tool] | None], Any]


def tool_parser(name: str) -> Parser:
    """The parser of this name.

    Raises:
        MissingDependencyError: it is mlx-lm's, and mlx-lm is not installed.
    """
    own = _OWN.get(name)
    if own is not None and own is not mistral_ids:
        return own
    if importlib.util.find_spec("mlx_lm") is None:
        raise MissingDependencyError(
            "parsing tool calls of this family needs mlx-lm: `pip install mlx-lm`, or pass tools=[] to leave tool"
            " syntax in the text"
        )

    return own or _mlx_lm(name)


def _mlx_lm(name: str) -> Parser:
    def parse(text: str, tools: list[Tool] | None) -> Any:
        module = importlib.import_module(f"mlx_lm.tool_parsers.{name}")
        return module.parse_tool_call(text, tools)

    return parse


def _call(name: str, arguments: Any, call_id: str | None = None) -> dict[str, Any]:
    return {"name": name.strip(), "arguments": arguments} | ({"id": call_id} if call_id else {})


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def json_calls(text: str, tools: list[Tool] | None) -> list[dict[str, Any]]:
    """One JSON object or a list of them, under any of the names that families use for name and arguments."""
    payload = json.loads(text.strip())
    calls = []
    for item in payload if isinstance(payload, list) else [payload]:
        name = item.get("name") or item.get("tool_name") or item.get("function")
        arguments = item.get("arguments", item.get("parameters", {}))
        calls.append(_call(name, arguments, item.get("id") or item.get("tool_call_id")))
    return calls


def json_pairs(text: str, tools: list[Tool] | None) -> list[dict[str, Any]]:
    """A list of `{"name": arguments}` (Apertus)."""
    return [_call(name, arguments) for item in json.loads(text.strip()) for name, arguments in item.items()]


_MISTRAL_ID = re.compile(r"\[CALL_ID\]\s*(\w+)\s*(?=\[ARGS\])")


def mistral_ids(text: str, tools: list[Tool] | None) -> list[dict[str, Any]]:
    """Mistral's calls through mlx-lm's parser, with the ids that some versions write between name and arguments."""
    ids = _MISTRAL_ID.findall(text)
    found = _mlx_lm("mistral")(_MISTRAL_ID.sub("", text), tools)
    calls: list[dict[str, Any]] = found if isinstance(found, list) else [found]
    return [call | {"id": call_id} for call, call_id in zip(calls, ids, strict=True)] if ids else calls


_DEEPSEEK_CALL = re.compile(
    r"<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>(?P<old>[^\n]+)\n```json\n(?P<fenced>.*?)\n?```"
    r"|(?P<name>.+?)<｜tool▁sep｜>(?P<plain>.*?))\s*<｜tool▁call▁end｜>",
    re.DOTALL,
)


def deepseek(text: str, tools: list[Tool] | None) -> list[dict[str, Any]]:
    """DeepSeek R1 (fenced JSON) and V3.1 (bare JSON)."""
    calls = [
        _call(match["old"] or match["name"], json.loads(match["fenced"] or match["plain"]))
        for match in _DEEPSEEK_CALL.finditer(text)
    ]
    if not calls:
        raise ValueError("no call between the markers")
    return calls


_DSML_INVOKE = re.compile(r'<｜DSML｜ ?invoke name="([^"]*)"(?:/>|>(.*?)</｜DSML｜ ?invoke>)', re.DOTALL)
_DSML_PARAMETER = re.compile(
    r'<｜DSML｜ ?parameter name="([^"]*)"(?: string="(true|false)")?>(.*?)</｜DSML｜ ?parameter>', re.DOTALL
)


def dsml(text: str, tools: list[Tool] | None) -> list[dict[str, Any]]:
    """DeepSeek V3.2 and V4: parameters say whether they are strings; others are JSON."""
    calls = [
        _call(name, {key: _value(raw) if kind == "false" else raw for key, kind, raw in _DSML_PARAMETER.findall(body)})
        for name, body in _DSML_INVOKE.findall(text)
    ]
    if not calls:
        raise ValueError("no invoke between the markers")
    return calls


_HY3_CALL = re.compile(r"<tool_call>(.*?)<tool_sep>(.*?)</tool_call>", re.DOTALL)
_ARGUMENT = re.compile(r"<arg_key>(.*?)</arg_key>\s*<arg_value>(.*?)</arg_value>", re.DOTALL)


def hy3(text: str, tools: list[Tool] | None) -> list[dict[str, Any]]:
    """Tencent Hy3: GLM's keys and values, in a section."""
    calls = [
        _call(name, {key.strip(): _value(raw) for key, raw in _ARGUMENT.findall(body)})
        for name, body in _HY3_CALL.findall(text)
    ]
    if not calls:
        raise ValueError("no call between the markers")
    return calls


_M3 = "]<]minimax[>["
_M3_INVOKE = re.compile(re.escape(_M3) + r'<invoke name="([^"]*)">(.*?)' + re.escape(_M3) + r"</invoke>", re.DOTALL)
_M3_PARAMETER = re.compile(re.escape(_M3) + r"<([A-Za-z_][\w.\-]*)>(.*?)" + re.escape(_M3) + r"</\1>", re.DOTALL)


def minimax_m3(text: str, tools: list[Tool] | None) -> list[dict[str, Any]]:
    """MiniMax M3: each tag behind the family's prefix, parameters as tags of their names."""
    calls = [
        _call(name, {key: _value(raw) for key, raw in _M3_PARAMETER.findall(body)})
        for name, body in _M3_INVOKE.findall(text)
    ]
    if not calls:
        raise ValueError("no invoke between the markers")
    return calls


def python_lines(text: str, tools: list[Tool] | None) -> list[dict[str, Any]]:
    """Python calls with keyword arguments, one a line (Olmo 3)."""
    calls = []
    for node in ast.parse(text.strip()).body:
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and not node.value.args):
            raise ValueError("not a call with keyword arguments")
        arguments = {keyword.arg: ast.literal_eval(keyword.value) for keyword in node.value.keywords}
        calls.append(_call(ast.unparse(node.value.func), arguments))
    return calls


_IFM_CALL = re.compile(r"<ifm\|tool_call>(.*?)</ifm\|tool_call>", re.DOTALL)
_IFM_ARGUMENT = re.compile(r"<ifm\|arg_key>(.*?)</ifm\|arg_key>\s*<ifm\|arg_value>(.*?)</ifm\|arg_value>", re.DOTALL)


def k2_horizon(text: str, tools: list[Tool] | None) -> list[dict[str, Any]]:
    """K2 Horizon: a name, then keys and values."""
    calls = []
    for body in _IFM_CALL.findall(text):
        arguments = {key.strip(): _value(raw) for key, raw in _IFM_ARGUMENT.findall(body)}
        calls.append(_call(body.partition("<")[0], arguments))
    if not calls:
        raise ValueError("no call between the markers")
    return calls


_PLAMO_CALL = re.compile(
    r"<\|plamo:begin_tool_name:plamo\|>(.*?)<\|plamo:end_tool_name:plamo\|>.*?"
    r"<\|plamo:begin_tool_arguments:plamo\|>(.*?)<\|plamo:end_tool_arguments:plamo\|>",
    re.DOTALL,
)


def plamo(text: str, tools: list[Tool] | None) -> list[dict[str, Any]]:
    """PLaMo 3: names and JSON arguments, each in markers of its own."""
    calls = [
        _call(name, json.loads(raw.partition("<|plamo:msg|>")[2] or raw)) for name, raw in _PLAMO_CALL.findall(text)
    ]
    if not calls:
        raise ValueError("no call between the markers")
    return calls


_RECIPIENT = re.compile(r"to=(?:functions\.)?([^\s<]+)")


def harmony(text: str, tools: list[Tool] | None) -> dict[str, Any]:
    """gpt-oss: the recipient of the header is the tool, the body its arguments as JSON."""
    header, _, body = text.partition("<|message|>")
    name = _RECIPIENT.search(header)
    if name is None:
        raise ValueError("no recipient in the header")
    for end in ("<|call|>", "<|end|>", "<|return|>"):
        body = body.removesuffix(end)
    return _call(name[1], json.loads(body))


_SOLAR_CALL = re.compile(
    r"<\|tool_call:begin\|>(.*?)<\|tool_call:name\|>(.*?)<\|tool_call:args\|>(.*?)<\|tool_call:end\|>", re.DOTALL
)


def solar(text: str, tools: list[Tool] | None) -> list[dict[str, Any]]:
    """Solar Open: an id, a name and JSON arguments, each behind a marker."""
    calls = [_call(name, json.loads(raw), call_id.strip()) for call_id, name, raw in _SOLAR_CALL.findall(text)]
    if not calls:
        raise ValueError("no call between the markers")
    return calls


_OWN: dict[str, Parser] = {
    parser.__name__: parser
    for parser in (
        json_calls,
        json_pairs,
        deepseek,
        dsml,
        hy3,
        minimax_m3,
        python_lines,
        k2_horizon,
        plamo,
        harmony,
        solar,
        mistral_ids,
    )
}
