"""Parsers of calls whose arguments are tags with bare text in them, which the tool's schema types.

The families that mlx-lm has no parser for: DeepSeek's DSML, Tencent's Hy3, MiniMax M3, K2 Horizon.
"""

from __future__ import annotations

import json
import re
from typing import Any

from ..messages import Tool


def call_of(name: str, arguments: Any, call_id: str | None = None) -> dict[str, Any]:
    return {"name": name.strip(), "arguments": arguments} | ({"id": call_id} if call_id else {})


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _field(tools: list[Tool] | None, tool: str, name: str) -> dict[str, Any]:
    """The schema of one argument; empty where nothing is declared."""
    for declared in tools or ():
        function = declared["function"]
        if function["name"] == tool.strip():
            field = function["parameters"]["properties"].get(name)
            return field if isinstance(field, dict) else {}
    return {}


def _typed(text: str, field: dict[str, Any]) -> Any:
    """A value that is written bare: text where the schema wants text, else JSON if it is JSON."""
    kinds = field.get("type")
    value = _value(text)
    if kinds == "string" or (isinstance(kinds, list) and "string" in kinds and not (value is None and "null" in kinds)):
        return text
    return value


def _arguments(found: list[tuple[str, str]], tool: str, tools: list[Tool] | None) -> dict[str, Any]:
    """Keys and values that are written bare."""
    return {key.strip(): _typed(raw, _field(tools, tool, key.strip())) for key, raw in found}


def only(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    if match is None:
        raise ValueError("no name")
    return match[1]


_DSML_NAME = re.compile(r'<｜DSML｜ ?invoke name="([^"]*)"')
_DSML_PARAMETER = re.compile(
    r'<｜DSML｜ ?parameter name="([^"]*)"(?: string="(true|false)")?>(.*?)</｜DSML｜ ?parameter>', re.DOTALL
)


def dsml(text: str, tools: list[Tool] | None) -> dict[str, Any]:
    """DeepSeek V3.2 and V4: parameters say whether they are strings; others are JSON."""
    arguments = {key: _value(raw) if kind == "false" else raw for key, kind, raw in _DSML_PARAMETER.findall(text)}
    return call_of(only(_DSML_NAME, text), arguments)


_HY = r"(?::[\w.\-]+)?>"  # a checkpoint's suffix, and the end of its tag
_ARGUMENT = re.compile(rf"<arg_key{_HY}([^<]*)</arg_key{_HY}\s*<arg_value{_HY}(.*?)</arg_value{_HY}", re.DOTALL)
_HY3_NAME = re.compile(rf"<tool_call{_HY}([^<]*)<tool_sep{_HY}")


def hy3(text: str, tools: list[Tool] | None) -> dict[str, Any]:
    """Tencent Hy3: GLM's keys and values, in a section."""
    name = only(_HY3_NAME, text)
    return call_of(name, _arguments(_ARGUMENT.findall(text), name, tools))


_M3 = "]<]minimax[>["
_M3_NAME = re.compile(re.escape(_M3) + r'<invoke name="([^"]*)">')
_M3_TAG = re.compile(re.escape(_M3) + r"<(/?)([A-Za-z_][\w.\-]*)>")
_M3_DEEPEST = 32


def minimax_m3(text: str, tools: list[Tool] | None) -> dict[str, Any]:
    """MiniMax M3: each tag behind the family's prefix; a value's fields are tags of their names, a list's are items."""
    opening = _M3_NAME.match(text)
    end = text.rstrip().removesuffix(f"{_M3}</invoke>")
    if opening is None or len(end) == len(text.rstrip()):
        raise ValueError("no name, or no end")
    arguments: dict[str, Any] = {}
    for name, raw in _m3_children(end[opening.end() :]):
        arguments[name] = _m3_value(raw, _field(tools, opening[1], name), 0)
    return call_of(opening[1], arguments)


def _m3_value(raw: str, field: dict[str, Any], depth: int) -> Any:
    if depth > _M3_DEEPEST:
        raise ValueError("a value is nested too deep")
    if not _M3_TAG.match(raw.lstrip()):
        return [] if not raw.strip() and field.get("type") == "array" else _typed(raw, field)
    children = _m3_children(raw)
    names = {name for name, _ in children}
    if names == {"item"} and field.get("type") != "object":
        items = field.get("items") if isinstance(field.get("items"), dict) else {}
        return [_m3_value(inner, items or {}, depth + 1) for _, inner in children]
    if len(names) < len(children):
        raise ValueError("a name stands twice in a value")
    fields = field.get("properties") if isinstance(field.get("properties"), dict) else {}
    return {name: _m3_value(inner, (fields or {}).get(name) or {}, depth + 1) for name, inner in children}


def _m3_children(text: str) -> list[tuple[str, str]]:
    """The tags that stand side by side, with what is in them."""
    children: list[tuple[str, str]] = []
    at = 0
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        opening = _M3_TAG.match(text, at)
        if opening is None or opening[1]:
            raise ValueError("something stands between the parameters")
        open_tags, tag = 1, opening
        while open_tags:
            found = _M3_TAG.search(text, tag.end())
            if found is None:
                raise ValueError(f"no end of {opening[2]}")
            tag = found
            if tag[2] == opening[2]:
                open_tags += -1 if tag[1] else 1
        children.append((opening[2], text[opening.end() : tag.start()]))
        at = tag.end()
    return children


_IFM_NAME = re.compile(r"<ifm\|tool_call>([^<]*)")
_IFM_ARGUMENT = re.compile(r"<ifm\|arg_key>([^<]*)</ifm\|arg_key>\s*<ifm\|arg_value>(.*?)</ifm\|arg_value>", re.DOTALL)


def k2_horizon(text: str, tools: list[Tool] | None) -> dict[str, Any]:
    """K2 Horizon: a name, then keys and values."""
    name = only(_IFM_NAME, text)
    return call_of(name, _arguments(_IFM_ARGUMENT.findall(text), name, tools))
