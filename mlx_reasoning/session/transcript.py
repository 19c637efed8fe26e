"""The messages of a conversation: answers with the thought beside them, never in them."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from ..errors import OptionError, PromptError
from ..events import Completion
from ..messages import Message, ToolCall
from ..prompt import normalized
from ..prompt.spelling import checked
from ..protocols.config import ModelProfile

Said: TypeAlias = "str | Mapping[str, Any] | Sequence[Mapping[str, Any]]"


def incoming(said: Said, profile: ModelProfile) -> list[dict[str, Any]]:
    """What a caller gives, as messages of our own: text is a user's message, a thought in any spelling stands beside.

    Raises:
        PromptError: it is no message, or empty.
    """
    if isinstance(said, str):
        if not said.strip():
            raise PromptError("the message is empty: say something")
        return [{"role": "user", "content": said}]
    messages = checked([said] if isinstance(said, Mapping) else said)
    return [_spelled(normalized(copy.deepcopy(dict(m)), at, profile.reasoning)) for at, m in enumerate(messages)]


def _spelled(message: dict[str, Any]) -> dict[str, Any]:
    """Arguments as JSON text, as OpenAI's messages have them."""
    for call in message.get("tool_calls") or ():
        function = call["function"]
        function["arguments"] = json.dumps(function["arguments"], ensure_ascii=False)
    return message


def answer(completion: Completion) -> dict[str, Any]:
    """The assistant's message of a round. A call that could not be used is kept beside it, as the model wrote it."""
    message: dict[str, Any] = {"role": "assistant", "content": completion.content}
    if completion.reasoning:
        message["reasoning_content"] = completion.reasoning
    if completion.tool_calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments, ensure_ascii=False)},
            }
            for call in completion.tool_calls
        ]
    if completion.rejected:
        message["rejected_tool_calls"] = [{"text": call.text, "reason": call.reason} for call in completion.rejected]
    return message


def tool_result(call: ToolCall, result: str) -> dict[str, Any]:
    """The message that tells the model what its call gave."""
    return {"role": "tool", "tool_call_id": call.id, "name": call.name, "content": result}


def last_user(messages: Sequence[Mapping[str, Any]], what: str) -> int:
    """Where the last message of a user stands.

    Raises:
        OptionError: there is none, so that nothing can be undone or tried again.
    """
    for at in range(len(messages) - 1, -1, -1):
        if messages[at]["role"] == "user":
            return at
    raise OptionError(f"there is nothing to {what}: no message of a user is there yet")


def public(messages: Sequence[dict[str, Any]]) -> list[Message]:
    """Copies, for a caller to keep."""
    return copy.deepcopy(list(messages))  # type: ignore[arg-type]
