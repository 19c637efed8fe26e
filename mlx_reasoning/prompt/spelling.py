"""The many spellings of a message, and the one that templates get."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import PromptError
from ..protocols.config import ReasoningConfig

ROLES = ("system", "developer", "user", "assistant", "tool")
THOUGHT_KEYS = ("reasoning_content", "reasoning", "thinking")


def checked(messages: Any) -> Sequence[Mapping[str, Any]]:
    """The messages, if they are messages.

    Raises:
        PromptError: one is not, by name and reason.
    """
    if not isinstance(messages, Sequence) or isinstance(messages, (str, bytes)):
        raise PromptError(f"messages is {type(messages).__name__}: pass a list of dicts with role and content")
    if not messages:
        raise PromptError("there are no messages: give at least one")
    for at, message in enumerate(messages):
        if not isinstance(message, Mapping):
            raise PromptError(f"messages[{at}] is {type(message).__name__}: a message is a dict with role and content")
        if message.get("role") not in ROLES:
            raise PromptError(f"messages[{at}] has the role {message.get('role')!r}: choose one of {', '.join(ROLES)}")
    return messages


def normalized(
    message: Mapping[str, Any], at: int, config: ReasoningConfig | None = None, template: str = ""
) -> dict[str, Any]:
    """One message as templates expect it: text content, the thought under one name, calls with dicts for arguments.

    Raises:
        PromptError: it is no message, by name and reason.
    """
    role = "system" if message["role"] == "developer" else message["role"]
    turn = {key: value for key, value in message.items() if key not in (*THOUGHT_KEYS, "tool_calls", "content")}
    turn["role"] = role
    content, thought = _parts(message.get("content"), at)
    if role == "assistant":
        given = next((message[key] for key in THOUGHT_KEYS if message.get(key)), None)
        if given is not None and not isinstance(given, str):
            raise PromptError(f"messages[{at}]: its reasoning is {type(given).__name__}, and must be text")
        inline, content = _inline(content, config)
        thought = given or thought or inline
        if thought:
            turn[_thought_key(template)] = thought
    calls = message.get("tool_calls")
    turn["content"] = content
    if calls:
        if not isinstance(calls, Sequence) or isinstance(calls, str):
            raise PromptError(f"messages[{at}]: tool_calls is {type(calls).__name__}, and must be a list")
        turn["tool_calls"] = [_call(call, f"messages[{at}].tool_calls[{n}]") for n, call in enumerate(calls)]
        if not content and re.search(r"\bcontent['\"]?\]?\s+is\s+(not\s+)?none", template):
            turn["content"] = None
    return turn


def _parts(content: Any, at: int) -> tuple[str, str]:
    """The text of a content, and a thought that stands in it as a part."""
    if content is None or isinstance(content, str):
        return content or "", ""
    if not isinstance(content, Sequence):
        raise PromptError(f"messages[{at}]: content is {type(content).__name__}, and must be text or a list of parts")
    texts: dict[str, list[str]] = {"text": [], "thinking": []}
    for n, part in enumerate(content):
        kind = part.get("type") if isinstance(part, Mapping) else None
        if not isinstance(part, Mapping) or kind not in texts:
            found = repr(kind) if isinstance(part, Mapping) else type(part).__name__
            raise PromptError(f"messages[{at}].content[{n}] is {found}: only text and thinking can be rendered")
        inner = part.get(kind)
        texts[kind].append(inner if isinstance(inner, str) else _parts(inner, at)[0])
    return "".join(texts["text"]), "".join(texts["thinking"])


def _inline(content: str, config: ReasoningConfig | None) -> tuple[str, str]:
    """The thought that stands in the family's markers at the start of a content, and the rest.

    A block that is not closed is a thought that was cut off.
    """
    body = content.lstrip()
    opener = next((start for start in (config.starts if config else ()) if body.startswith(start)), None)
    if config is None or opener is None:
        return "", content
    ends = "|".join(map(re.escape, config.ends))
    thought, *rest = re.split(ends, body[len(opener) :], maxsplit=1)
    labels = (*config.channel.reasoning_labels, *config.channel.response_labels) if config.channel else ()
    label = next((label for label in labels if thought.startswith(label + "\n")), "")
    return thought.removeprefix(label).strip(), re.sub(r"\A(?:[ \t]*\n)+", "", rest[0]) if rest else ""


def _thought_key(template: str) -> str:
    """The name under which a template reads a thought."""
    for key in THOUGHT_KEYS:
        if re.search(rf"(?:\.|\[['\"]|get\(['\"]|['\"]){key}\b", template):
            return key
    return THOUGHT_KEYS[0]


def thought_is_a_part(template: str) -> bool:
    """Whether a template reads thoughts from content parts of the type "thinking", and under no name of a message."""
    part = re.search(r"""\btype['"]?\]?\s*==\s*['"]thinking['"]""", template)
    return part is not None and _thought_key(template) == "thinking"


def _call(call: Any, where: str) -> dict[str, Any]:
    function = call.get("function", call) if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise PromptError(f"{where} has no function name: a call is {{'function': {{'name', 'arguments'}}}}")
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except ValueError as error:
            raise PromptError(f"{where}: its arguments are not JSON ({error})") from error
    if not isinstance(arguments, Mapping | None):
        raise PromptError(f"{where}: its arguments are {type(arguments).__name__}, and must be an object")
    rest = {key: value for key, value in call.items() if key not in ("function", "name", "arguments")}
    return {"type": "function", **rest, "function": {"name": function["name"], "arguments": dict(arguments or {})}}
