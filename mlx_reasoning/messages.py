"""Messages, tools and calls: the words that go into a model and the calls that come out.

Messages are the dicts of OpenAI's chat completions with `reasoning_content` beside `content`. This module
does not know any template, protocol or wire format.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

Role: TypeAlias = Literal["system", "developer", "user", "assistant", "tool"]
FinishReason: TypeAlias = Literal["stop", "length", "tool_calls", "cancelled"]
RejectionReason: TypeAlias = Literal["malformed", "unfinished", "undeclared", "invalid_arguments"]
Tool: TypeAlias = dict[str, Any]
"""A function tool in OpenAI's form: `{"type": "function", "function": {"name", "description", "parameters"}}`."""


class Message(TypedDict):
    """One message of a conversation; an assistant's thought stands beside its content, never in it."""

    role: str
    content: NotRequired[Any]
    reasoning_content: NotRequired[str | None]
    tool_calls: NotRequired[list[dict[str, Any]] | None]
    tool_call_id: NotRequired[str]
    name: NotRequired[str]


def new_call_id() -> str:
    """A fresh id for a tool call whose family writes none."""
    return f"call_{secrets.token_hex(8)}"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the model made: the tool's name and its arguments as a dict."""

    name: str
    arguments: dict[str, Any]
    id: str = field(default_factory=new_call_id)


@dataclass(frozen=True, slots=True)
class RejectedToolCall:
    """A call that cannot be used, with the very text that the model wrote and the reason."""

    text: str
    reason: RejectionReason
    name: str | None = None
    detail: str = ""
