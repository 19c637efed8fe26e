"""Segments to events: text passes, and the text of a call becomes a call or a rejection.

It knows the caller's tools and the family's payload. Nothing that the model writes raises.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from ..events import Generation, GenerationEvent
from ..messages import RejectedToolCall, RejectionReason, Tool, ToolCall, new_call_id
from ..protocols.config import ToolCallFormat
from .segment import Segment
from .tool_parsers import tool_parser


class ToolCallProcessor:
    """Parses calls.

    Args:
        calls: the family's format; None where no call can come.
        tools: the tools that were declared; None takes every name.

    Raises:
        MissingDependencyError: the format's parser is mlx-lm's, and mlx-lm is not installed.
    """

    def __init__(self, calls: ToolCallFormat | None, tools: list[Tool] | None = None) -> None:
        self._calls = calls
        self._tools = tools
        self._schemas = None if tools is None else {_function(tool)["name"]: _function(tool) for tool in tools}
        self._parse = tool_parser(calls.parser) if calls else None

    def push(self, segment: Segment) -> list[GenerationEvent]:
        if segment.kind == "reasoning":
            return [Generation.reasoning(segment.text)]
        if segment.kind == "response":
            return [Generation.chunk(segment.text)]
        return self._parsed(segment)

    def _parsed(self, segment: Segment) -> list[GenerationEvent]:
        assert self._calls is not None
        if segment.state == "cut":
            return [_rejected(segment.text, "unfinished", detail="the turn was cut off inside the call")]
        payload, whole = _payload(segment.text, self._calls)
        bad: RejectionReason = "malformed" if segment.state == "closed" else "unfinished"
        if segment.state == "open" and not whole:
            return [_rejected(segment.text, "unfinished", detail="the turn ended inside the call")]
        try:
            found = self._run(payload, self._tools)
        except Exception as error:  # any parser, any text of a model
            return [_rejected(segment.text, self._why(payload, bad), detail=str(error))]
        return [self._checked(call, segment.text, bad) for call in found]

    def _run(self, payload: str, tools: list[Tool] | None) -> list[dict[str, Any]]:
        assert self._parse is not None
        found = self._parse(payload, tools or None)
        calls = found if isinstance(found, list) else [found]
        if not calls or not all(isinstance(call, dict) and isinstance(call.get("name"), str) for call in calls):
            raise ValueError("no name and arguments")
        return calls

    def _why(self, payload: str, bad: RejectionReason) -> RejectionReason:
        """A payload that parses without the schemas had arguments that did not fit them."""
        if not self._tools:
            return bad
        try:
            self._run(payload, None)
        except Exception:
            return bad
        return "invalid_arguments"

    def _checked(self, call: dict[str, Any], text: str, bad: RejectionReason) -> GenerationEvent:
        name, arguments = call["name"], call.get("arguments", {})
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments)
            except ValueError:
                return _rejected(text, bad, name, "the arguments are no JSON")
        if arguments is None:
            arguments = {}
        if not isinstance(arguments, dict):
            return _rejected(text, "invalid_arguments", name, "the arguments are no object")
        if self._schemas is not None:
            if name not in self._schemas:
                known = ", ".join(self._schemas) or "none"
                return _rejected(text, "undeclared", name, f"no such tool; declared: {known}")
            problem = misfit(arguments, self._schemas[name].get("parameters") or {})
            if problem:
                return _rejected(text, "invalid_arguments", name, problem)
        call_id = call.get("id")
        return Generation.tool_call(ToolCall(name, arguments, str(call_id) if call_id else new_call_id()))


def _rejected(
    text: str, reason: RejectionReason, name: str | None = None, detail: str = ""
) -> Generation.rejected_tool_call:
    return Generation.rejected_tool_call(RejectedToolCall(text, reason, name, detail))


def _function(tool: Tool) -> dict[str, Any]:
    function: dict[str, Any] = tool.get("function", tool)
    return function


def _payload(text: str, calls: ToolCallFormat) -> tuple[str, bool]:
    """The text between the markers, and whether it may be complete without its closer."""
    for opener in calls.openers:
        if text.startswith(opener):
            text = text[len(opener) :]
            break
    for closer in calls.closers:
        if text.endswith(closer):
            return text[: -len(closer)], True
    whole = not calls.whole_ends or text.rstrip().endswith(calls.whole_ends)
    return text, whole


_JSON_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}


def misfit(arguments: dict[str, Any], schema: dict[str, Any]) -> str:
    """What is wrong with arguments by a JSON schema's required names, types and enums; "" if nothing is.

    Limits: the top level only; a schema's other words are left to the tool.
    """
    for name in _strings(schema.get("required")):
        if name not in arguments:
            return f"the argument {name!r} is missing"
    properties = schema.get("properties")
    for name, value in arguments.items():
        field = properties.get(name) if isinstance(properties, dict) else None
        if not isinstance(field, dict):
            continue
        kinds = [_JSON_TYPES[kind] for kind in _strings(field.get("type")) if kind in _JSON_TYPES]
        if kinds and not any(_is(value, kind) for kind in kinds):
            return f"the argument {name!r} is of the wrong type: {json.dumps(value)[:80]}"
        if isinstance(field.get("enum"), list) and value not in field["enum"]:
            return f"the argument {name!r} is none of {field['enum']}"
    return ""


def _strings(value: Any) -> Iterable[str]:
    values = value if isinstance(value, list) else [value]
    return [item for item in values if isinstance(item, str)]


def _is(value: Any, kind: type | tuple[type, ...]) -> bool:
    if isinstance(value, bool):
        return kind is bool
    if kind is int and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, kind)
