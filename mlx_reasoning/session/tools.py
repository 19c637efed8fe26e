"""Python functions as tools: their schemas, and running what the model calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from ..errors import OptionError
from ..messages import Tool, ToolCall

ToolDispatch: TypeAlias = "Mapping[str, Callable[..., Any]] | Callable[[ToolCall], Any]"


class Toolbox:
    """The tools of a session: what the model is told, and what runs.

    Args:
        tools: Python functions, whose signature and docstring say everything, or tools in OpenAI's form.
        dispatch: what runs a call: functions by name, or one callable that gets the `ToolCall`; for functions in
            `tools`, themselves.

    Raises:
        OptionError: a function whose signature or docstring says too little, two tools of one name, or something that
            is no tool.
    """

    def __init__(self, tools: Sequence[Tool | Callable[..., Any]] | None, dispatch: ToolDispatch | None) -> None:
        functions = {tool.__name__: tool for tool in tools or () if callable(tool)}
        self.schemas: list[Tool] = [_schema(tool) for tool in tools or ()]
        names = [tool["function"]["name"] for tool in self.schemas]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise OptionError(f"two tools are called {twice!r}: give each a name of its own")
        if dispatch is not None and not callable(dispatch) and not isinstance(dispatch, Mapping):
            raise OptionError("tool_dispatch must be a dict of functions by name, or a callable that gets the call")
        self._single = dispatch if callable(dispatch) else None
        self._by_name = functions | dict(dispatch) if isinstance(dispatch, Mapping) else functions
        if isinstance(dispatch, Mapping) and not set(dispatch) <= set(names):
            unknown = sorted(set(dispatch) - set(names))
            raise OptionError(f"tool_dispatch has {unknown[0]!r}, which is none of the tools: {', '.join(names)}")

    def runs(self, call: ToolCall) -> bool:
        """Whether this session runs the call by itself."""
        return self._single is not None or call.name in self._by_name

    def run(self, call: ToolCall) -> str:
        """The result as the model reads it; what a tool raises is a result too, so that the model can do better."""
        try:
            result = self._single(call) if self._single is not None else self._by_name[call.name](**call.arguments)
            return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)
        except Exception as error:
            return f"Error: {type(error).__name__}: {error}"


def _schema(tool: Tool | Callable[..., Any]) -> Tool:
    if callable(tool):
        from transformers.utils import get_json_schema

        try:
            return dict(get_json_schema(tool))
        except Exception as error:  # two kinds of its own, and whatever a signature can raise
            name = getattr(tool, "__name__", repr(tool))
            reason = " ".join(str(error).split())
            raise OptionError(
                f"{name} cannot be a tool ({reason}): it needs type hints, and a docstring that says under 'Args:' what"
                f" each argument is"
            ) from error
    function = tool.get("function") if isinstance(tool, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise OptionError("a tool is a Python function, or a dict like {'type': 'function', 'function': {'name': ...}}")
    return tool
