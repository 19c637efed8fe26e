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
import warnings
from collections.abc import Callable
from typing import Any

from ..errors import MissingDependencyError
from ..messages import Tool
from .tag_parsers import call_of, dsml, hy3, k2_horizon, minimax_m3, only

Parser = Callable[[str, list[Tool] | None], Any]


def tool_parser(name: str) -> Parser:
    """The parser of this name.

    Raises:
        MissingDependencyError: it is mlx-lm's, and mlx-lm is not installed.
    """
    own = _OWN.get(name)
    if own is not None:
        return own
    if importlib.util.find_spec("mlx_lm") is None:
        raise MissingDependencyError(
            "parsing tool calls of this family needs mlx-lm: `pip install mlx-lm`, or pass tools=[] to leave tool"
            " syntax in the text"
        )

    def parse(text: str, tools: list[Tool] | None) -> Any:
        module = importlib.import_module(f"mlx_lm.tool_parsers.{name}")
        return module.parse_tool_call(text, tools)

    return parse


def json_calls(text: str, tools: list[Tool] | None) -> list[dict[str, Any]]:
    """One JSON object or a list of them, under any of the names that families use for name and arguments."""
    payload = json.loads(text.strip())
    calls = []
    for item in payload if isinstance(payload, list) else [payload]:
        name = item.get("name") or item.get("tool_name") or item.get("function")
        arguments = item.get("arguments", item.get("parameters", {}))
        calls.append(call_of(name, arguments, item.get("id") or item.get("tool_call_id")))
    return calls


def json_pairs(text: str, tools: list[Tool] | None) -> list[dict[str, Any]]:
    """A list of `{"name": arguments}` (Apertus)."""
    return [call_of(name, arguments) for item in json.loads(text.strip()) for name, arguments in item.items()]


_MISTRAL_CALL = re.compile(
    r"\s*(?:\[TOOL_CALLS\])?\s*([\w.\-]+)\s*(?:\[CALL_ID\]\s*(\w+)\s*)?\[ARGS\]\s*(.*)", re.DOTALL
)


def mistral(text: str, tools: list[Tool] | None) -> list[dict[str, Any]]:
    """Mistral: a list of objects, or a name, perhaps an id, and its arguments as JSON."""
    match = _MISTRAL_CALL.fullmatch(text)
    if match is None:
        return json_calls(text.strip().removeprefix("[TOOL_CALLS]"), tools)
    return [call_of(match[1], json.loads(match[3]), match[2])]


def deepseek(text: str, tools: list[Tool] | None) -> dict[str, Any]:
    """DeepSeek R1 (fenced JSON behind the word function) and V3.1 (bare JSON)."""
    body = text.removeprefix("<｜tool▁call▁begin｜>").removesuffix("<｜tool▁call▁end｜>")
    name, separator, rest = body.partition("<｜tool▁sep｜>")
    if not separator:
        raise ValueError("no name")
    if name.strip() == "function" and "```json" in rest:
        name, _, rest = rest.partition("\n```json")
        rest = rest.rstrip().removesuffix("```")
    return call_of(name, json.loads(rest))


_KIMI_CALL = re.compile(r"\s*((?:functions\.)?([^\s<]+?):\d+)\s*<\|tool_call_argument_begin\|>(.*)", re.DOTALL)


def kimi(text: str, tools: list[Tool] | None) -> dict[str, Any]:
    """Kimi K2: an id that holds the name, and JSON arguments."""
    match = _KIMI_CALL.fullmatch(text.removeprefix("<|tool_call_begin|>").removesuffix("<|tool_call_end|>"))
    if match is None:
        raise ValueError("no id and arguments")
    return call_of(match[2], json.loads(match[3]), match[1])


def python_calls(text: str, tools: list[Tool] | None) -> list[dict[str, Any]]:
    """Python calls with keyword arguments, in a list or one a line (LFM2.5, Olmo 3); JSON's words are understood."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a model's escapes
        body = ast.parse(text.strip()).body
    nodes = [node.value for node in body if isinstance(node, ast.Expr)]
    if len(nodes) == 1 and isinstance(nodes[0], ast.List):
        nodes = list(nodes[0].elts)
    if not nodes or len(nodes) < len(body):
        raise ValueError("no calls")
    return [_python_call(node) for node in nodes]


def _python_call(node: ast.expr) -> dict[str, Any]:
    if not isinstance(node, ast.Call) or node.args or any(keyword.arg is None for keyword in node.keywords):
        raise ValueError("not a call with keyword arguments")
    arguments = {str(keyword.arg): _python_value(keyword.value) for keyword in node.keywords}
    return call_of(ast.unparse(node.func), arguments)


_JSON_WORDS = {"true": True, "false": False, "null": None}


def _python_value(node: ast.expr) -> Any:
    if isinstance(node, ast.Name) and node.id in _JSON_WORDS:
        return _JSON_WORDS[node.id]
    if isinstance(node, ast.List | ast.Tuple):
        return [_python_value(item) for item in node.elts]
    if isinstance(node, ast.Dict) and None not in node.keys:
        return {ast.literal_eval(k): _python_value(v) for k, v in zip(node.keys, node.values, strict=True) if k}
    return ast.literal_eval(node)


_PLAMO_PART = "<|plamo:{}_tool_{}:plamo|>"


def plamo(text: str, tools: list[Tool] | None) -> dict[str, Any]:
    """PLaMo 3: a name and JSON arguments, each in markers of its own."""
    name, arguments = (
        _between(text, *(_PLAMO_PART.format(w, part) for w in ("begin", "end"))) for part in ("name", "arguments")
    )
    return call_of(name, json.loads(arguments.partition("<|plamo:msg|>")[2] or arguments))


def _between(text: str, start: str, end: str) -> str:
    _, found, rest = text.partition(start)
    inside, closed, _ = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"no {start}")
    return inside


_RECIPIENT = re.compile(r"to=(?:functions\.)?([^\s<]+)")


def harmony(text: str, tools: list[Tool] | None) -> dict[str, Any]:
    """gpt-oss: the recipient of the header is the tool, the body its arguments as JSON."""
    header, _, body = text.partition("<|message|>")
    for end in ("<|call|>", "<|end|>", "<|return|>"):
        body = body.removesuffix(end)
    return call_of(only(_RECIPIENT, header), json.loads(body))


def solar(text: str, tools: list[Tool] | None) -> dict[str, Any]:
    """Solar Open: an id, a name and JSON arguments, each behind a marker."""
    call_id = _between(text, "<|tool_call:begin|>", "<|tool_call:name|>")
    arguments = _between(text, "<|tool_call:args|>", "<|tool_call:end|>")
    return call_of(_between(text, "<|tool_call:name|>", "<|tool_call:args|>"), json.loads(arguments), call_id.strip())


_OWN: dict[str, Parser] = {
    parser.__name__: parser
    for parser in (
        json_calls,
        json_pairs,
        mistral,
        kimi,
        deepseek,
        dsml,
        hy3,
        minimax_m3,
        python_calls,
        k2_horizon,
        plamo,
        harmony,
        solar,
    )
}
