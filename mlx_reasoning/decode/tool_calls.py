"""Segments to events: text passes, and the text of a call becomes a call or a rejection.

It knows the caller's tools and the family's payload. Nothing that the model writes raises.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from ..errors import OptionError
from ..events import Generation, GenerationEvent
from ..messages import RejectedToolCall, RejectionReason, Tool, ToolCall, new_call_id
from ..protocols.config import ToolCallFormat
from .payload import Piece, has_skeleton, jsonable, pieces, values_in
from .segment import Segment
from .tool_parsers import tool_parser

_DEEPEST_SCHEMA = 32
_DETAIL = 200  # characters of a reason
_LONGEST_PATTERN = 1 << 16  # characters that a backtracking parser of mlx-lm is given
_BACKTRACKING = frozenset({"gemma4", "muse_spark", "longcat"})


class ToolCallProcessor:
    """Parses calls.

    Args:
        calls: the family's format; None where no call can come.
        tools: the tools that were declared; None takes every name.

    Raises:
        OptionError: a tool is not in OpenAI's form.
        MissingDependencyError: the format's parser is mlx-lm's, and mlx-lm is not installed.
    """

    def __init__(self, calls: ToolCallFormat | None, tools: list[Tool] | None = None) -> None:
        self._calls = calls
        self._tools = None if tools is None else normal_tools(tools)
        self._schemas = None if self._tools is None else {tool["function"]["name"]: tool for tool in self._tools}
        self._parse = tool_parser(calls.parser) if calls else None

    def push(self, segment: Segment) -> list[GenerationEvent]:
        if segment.kind == "reasoning":
            return [Generation.reasoning(segment.text)]
        if segment.kind == "response":
            return [Generation.chunk(segment.text)]
        if segment.state == "cut":
            return [_rejected(segment.text, "unfinished", detail="the turn was cut off inside the call")]
        return self._calls_in(segment)

    def _calls_in(self, segment: Segment) -> list[GenerationEvent]:
        assert self._calls is not None
        closed = segment.state == "closed"
        bad: RejectionReason = "malformed" if closed else "unfinished"
        found = pieces(_payload(segment.text, self._calls, closed=closed), self._calls, whole=closed)
        events: list[GenerationEvent] = []
        for piece in found:
            text = segment.text if len(found) == 1 else piece.text
            try:
                events += self._calls_of(piece, text, bad)
            except Exception as error:  # any parser, any text of a model
                events.append(_rejected(text, self._why(piece, bad), detail=str(error)))
        return events

    def _calls_of(self, piece: Piece, text: str, bad: RejectionReason) -> list[GenerationEvent]:
        """The events of one call; raises whatever its parser raises."""
        assert self._calls is not None
        if not piece.whole:
            return [_rejected(text, bad, detail="the call has no end")]
        if not has_skeleton(piece, self._calls):
            return [_rejected(text, bad, detail="this is not how the family writes a call")]
        found = self._run(piece, self._tools)
        if self._calls.keyed and len(found) == 1 and len(found[0].get("arguments") or {}) != values_in(piece):
            return [_rejected(text, bad, found[0]["name"], "not every value could be read")]
        return [self._checked(call, text, bad) for call in found]

    def _run(self, piece: Piece, tools: list[Tool] | None) -> list[dict[str, Any]]:
        assert self._parse is not None and self._calls is not None
        if self._calls.parser in _BACKTRACKING and len(piece.text) > _LONGEST_PATTERN:
            raise ValueError("the call is too long for its parser")
        if self._calls.parser == "gemma4" and piece.masked.count("{") != piece.masked.count("}"):
            raise ValueError("the braces do not match")
        found = self._parse(piece.text, tools or None)
        calls = found if isinstance(found, list) else [found]
        if not calls or not all(isinstance(call, dict) and isinstance(call.get("name"), str) for call in calls):
            raise ValueError("no name and arguments")
        if self._calls.parser == "gemma4" and piece.masked.count("call:") != len(calls):
            raise ValueError("not every call could be read")
        return calls

    def _why(self, piece: Piece, bad: RejectionReason) -> RejectionReason:
        """A payload that parses without the schemas had arguments that did not fit them."""
        if not self._tools:
            return bad
        try:
            self._run(piece, None)
        except Exception:
            return bad
        return "invalid_arguments"

    def _checked(self, call: dict[str, Any], text: str, bad: RejectionReason) -> GenerationEvent:
        name, arguments = call["name"].strip(), call.get("arguments")
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments)
            except ValueError:
                return _rejected(text, bad, name, "the arguments are no JSON")
        if arguments is None:
            arguments = {}
        if not isinstance(arguments, dict):
            return _rejected(text, "invalid_arguments", name, "the arguments are no object")
        if not name or not jsonable([name, arguments]):
            return _rejected(text, "malformed" if not name else "invalid_arguments", name, "this is not plain JSON")
        if self._schemas is not None:
            if name not in self._schemas:
                known = ", ".join(self._schemas) or "none"
                return _rejected(text, "undeclared", name, f"no such tool; declared: {known}")
            problem = misfit(arguments, self._schemas[name]["function"]["parameters"])
            if problem:
                return _rejected(text, "invalid_arguments", name, problem)
        call_id = call.get("id")
        return Generation.tool_call(ToolCall(name, arguments, str(call_id) if call_id else new_call_id()))


def _rejected(
    text: str, reason: RejectionReason, name: str | None = None, detail: str = ""
) -> Generation.rejected_tool_call:
    return Generation.rejected_tool_call(RejectedToolCall(text, reason, name, detail[:_DETAIL]))


def normal_tools(tools: list[Tool]) -> list[Tool]:
    """The tools in one form: `{"type": "function", "function": {"name", "description", "parameters"}}`.

    Raises:
        OptionError: one of them is nothing of the kind.
    """
    if not isinstance(tools, list):
        raise OptionError("tools must be a list of dicts in OpenAI's form, or None")
    normal: list[Tool] = []
    for tool in tools:
        function = tool.get("function", tool) if isinstance(tool, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str) or not function["name"]:
            raise OptionError(f"a tool has no name: {str(tool)[:80]}")
        parameters = function.get("parameters")
        if not isinstance(parameters, dict):
            parameters = {"type": "object", "properties": {}}
        fields = parameters.get("properties")
        fields = {k: v if isinstance(v, dict) else {} for k, v in fields.items()} if isinstance(fields, dict) else {}
        normal.append(
            {"type": "function", "function": {**function, "parameters": {**parameters, "properties": fields}}}
        )
    return normal


def _payload(text: str, calls: ToolCallFormat, *, closed: bool) -> str:
    """The text between the markers."""
    for opener in calls.openers:
        if text.startswith(opener):
            text = text[len(opener) :]
            break
    for closer in calls.closers if closed else ():
        if text.endswith(closer):
            return text[: -len(closer)]
    return text


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
    """What is wrong with arguments by a JSON schema; "" if nothing is.

    Limits: types, required names, enums and const, in objects and lists, and the alternatives of anyOf and oneOf; a
    schema's other words are left to the tool.
    """
    return _misfit(arguments, {"type": "object", **schema}, "", 0)


def _misfit(value: Any, schema: Any, name: str, depth: int) -> str:
    if not isinstance(schema, dict) or depth > _DEEPEST_SCHEMA:
        return ""
    where = f"the argument {name!r}" if name else "the call"
    kinds = [_JSON_TYPES[kind] for kind in _strings(schema.get("type")) if kind in _JSON_TYPES]
    if kinds and not any(_is(value, kind) for kind in kinds):
        return f"{where} is of the wrong type: {value!r:.80}"
    allowed = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(allowed, list) and value not in allowed:
        return f"{where} is none of {allowed!r:.80}"
    for word in ("anyOf", "oneOf"):
        choices = schema.get(word)
        if isinstance(choices, list) and choices:
            problems = [_misfit(value, choice, name, depth + 1) for choice in choices]
            if all(problems):
                return problems[0]
    if isinstance(value, list):
        parts = [(f"{name}[{at}]", item, schema.get("items")) for at, item in enumerate(value)]
    elif isinstance(value, dict):
        prefix = f"{name}." if name else ""
        for key in _strings(schema.get("required")):
            if key not in value:
                return f"the argument {prefix + key!r} is missing"
        fields = schema.get("properties")
        fields = fields if isinstance(fields, dict) else {}
        parts = [(prefix + key, item, fields.get(key)) for key, item in value.items()]
    else:
        return ""
    return next(filter(None, (_misfit(item, part, at, depth + 1) for at, item, part in parts)), "")


def _strings(value: Any) -> Iterable[str]:
    values = value if isinstance(value, list) else [value]
    return [item for item in values if isinstance(item, str)]


def _is(value: Any, kind: type | tuple[type, ...]) -> bool:
    if isinstance(value, bool):
        return kind is bool
    if kind is int and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, kind)
