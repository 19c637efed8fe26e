"""Messages to prompt ids, and where the model's first character will stand.

It knows how people spell messages and what templates can take. It renders with the checkpoint's own template, in the
sandbox of transformers, and hands it nothing that the caller did not ask for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .decode.prompt_state import start_state
from .errors import OptionError, PromptError
from .messages import Tool
from .protocols.config import ModelProfile, ReasoningConfig, StartState
from .protocols.resolve import unwrapped

_ROLES = ("system", "developer", "user", "assistant", "tool")
_THOUGHT_KEYS = ("reasoning_content", "reasoning", "thinking")
_RENDERING = {"messages", "tools", "add_generation_prompt", "continue_final_message", "tokenize"}
_CUT = "\ue0c7\ue0c8\ue0c7"  # private characters that mark where a prefill ends; no template trims them


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """A prompt as text and as ids, the state that it leaves the model in, and what the caller should know."""

    text: str
    ids: list[int]
    start: StartState
    notes: tuple[str, ...] = ()


def render(
    tokenizer: Any,
    messages: Sequence[Mapping[str, Any]],
    *,
    profile: ModelProfile,
    tools: Sequence[Tool] | None = None,
    thinking: bool | None = None,
    effort: str | None = None,
    template_arguments: Mapping[str, Any] | None = None,
    add_generation_prompt: bool = True,
    continue_final_message: bool | None = None,
) -> RenderedPrompt:
    """Renders a conversation; the messages are not changed.

    A thought may stand in a message as `reasoning_content`, `reasoning`, `thinking`, a content part, or a block of the
    family's markers at the start of the content: the template gets it under the name that it reads.

    Args:
        thinking, effort: through the family's `PromptStrategy`; None passes nothing, so that the template's own
            default holds.
        template_arguments: passed as they are, and they win.
        continue_final_message: the prompt ends with the last message's text, which the model goes on with; by itself
            where the last message is an assistant's without calls.

    Raises:
        PromptError: the messages are no messages, or the template refuses them.
        ReasoningControlError: the family cannot do what is asked of its thinking.
    """
    arguments, notes = profile.prompt.arguments(thinking, effort)
    template = _Template(tokenizer, list(tools) if tools else None, {**arguments, **(template_arguments or {})})
    turns = [
        normalized(message, at, profile.reasoning, template.source) for at, message in enumerate(_checked(messages))
    ]
    if continue_final_message is None:
        continue_final_message = turns[-1]["role"] == "assistant" and "tool_calls" not in turns[-1]
    if continue_final_message:
        text, tail = _continued(template, turns)
    else:
        text = template.render(turns, add_generation_prompt)
        tail = text
        if add_generation_prompt and profile.reasoning is not None:
            tail = _added(text, template.attempt(turns))
    ids = list(tokenizer.encode(text, add_special_tokens=False))
    if not ids:
        raise PromptError("the chat template renders these messages to nothing: give at least one message with text")
    return RenderedPrompt(text, ids, start_state(tail, profile), notes)


def encode(tokenizer: Any, text: str) -> list[int]:
    """The ids of a raw prompt, with the tokenizer's own extras unless the text begins with its first token already."""
    begins = tokenizer.bos_token is not None and text.startswith(tokenizer.bos_token)
    return list(tokenizer.encode(text, add_special_tokens=not begins))


class _Template:
    """One template with its tools and arguments."""

    def __init__(self, tokenizer: Any, tools: list[Tool] | None, arguments: dict[str, Any]) -> None:
        self._tools = tools
        self._arguments = arguments
        self._custom = getattr(tokenizer, "_chat_template", None)  # mlx-lm's renderers in Python
        self._tokenizer = unwrapped(tokenizer)
        source = getattr(self._tokenizer, "chat_template", None)
        self.source = source if isinstance(source, str) else json.dumps(source)

    def render(self, turns: list[dict[str, Any]], generation_prompt: bool) -> str:
        """Tries arguments of calls as dicts, then as JSON text, which some templates join to strings."""
        try:
            return self._render(turns, generation_prompt)
        except Exception as error:  # a template is somebody's program, and may raise anything
            if any("tool_calls" in turn for turn in turns):
                spelled = [_with_spelled_arguments(turn) for turn in turns]
                try:
                    return self._render(spelled, generation_prompt)
                except Exception:  # the first failure says more
                    pass
            raise PromptError(self._refusal(turns, error)) from error

    def attempt(self, turns: list[dict[str, Any]]) -> str | None:
        """Without a generation prompt; None where the template will not."""
        try:
            return self.render(turns, False) if turns else None
        except PromptError:
            return None

    def _render(self, turns: list[dict[str, Any]], generation_prompt: bool) -> str:
        options = {"add_generation_prompt": generation_prompt, **self._arguments}
        if self._custom is not None:
            return str(self._custom(turns, tools=self._tools, **options))
        return str(self._tokenizer.apply_chat_template(turns, tools=self._tools, tokenize=False, **options))

    def _refusal(self, turns: list[dict[str, Any]], error: Exception) -> str:
        """Names the first message at which the template gives up."""
        at = len(turns) - 1
        for count in range(1, len(turns)):
            try:
                self._render(turns[:count], False)
            except Exception as earlier:
                if str(earlier) == str(error):
                    at = count - 1
                    break
        reason = str(error).strip() or type(error).__name__
        return f"the chat template refuses the messages, at messages[{at}] ({turns[at]['role']}): {reason}"


def normalized(
    message: Mapping[str, Any], at: int, config: ReasoningConfig | None = None, template: str = ""
) -> dict[str, Any]:
    """One message as templates expect it: text content, the thought under one name, calls with dicts for arguments.

    Raises:
        PromptError: it is no message, by name and reason.
    """
    role = "system" if message["role"] == "developer" else message["role"]
    turn = {key: value for key, value in message.items() if key not in (*_THOUGHT_KEYS, "tool_calls", "content")}
    turn["role"] = role
    content, thought = _parts(message.get("content"), at)
    if role == "assistant":
        given = next((message[key] for key in _THOUGHT_KEYS if message.get(key)), None)
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
        if not content and re.search(r"content['\"]?\]?\s+is\s+(not\s+)?none", template):
            turn["content"] = None
    return turn


def _checked(messages: Any) -> Sequence[Mapping[str, Any]]:
    if not isinstance(messages, Sequence) or isinstance(messages, (str, bytes)):
        raise PromptError(f"messages is {type(messages).__name__}: pass a list of dicts with role and content")
    if not messages:
        raise PromptError("there are no messages: give at least one")
    for at, message in enumerate(messages):
        if not isinstance(message, Mapping):
            raise PromptError(f"messages[{at}] is {type(message).__name__}: a message is a dict with role and content")
        if message.get("role") not in _ROLES:
            raise PromptError(f"messages[{at}] has the role {message.get('role')!r}: choose one of {', '.join(_ROLES)}")
    return messages


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
    for key in _THOUGHT_KEYS:
        if re.search(rf"(?:\.|\[['\"]|get\(['\"]|['\"]){key}\b", template):
            return key
    return _THOUGHT_KEYS[0]


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


def _with_spelled_arguments(turn: dict[str, Any]) -> dict[str, Any]:
    if "tool_calls" not in turn:
        return turn
    calls = [
        {
            **call,
            "function": {
                **call["function"],
                "arguments": json.dumps(call["function"]["arguments"], ensure_ascii=False),
            },
        }
        for call in turn["tool_calls"]
    ]
    return {**turn, "tool_calls": calls}


def _continued(template: _Template, turns: list[dict[str, Any]]) -> tuple[str, str]:
    """The prompt up to the end of the last message's text, and what of it belongs to that turn."""
    last = turns[-1]
    key = "content" if last["content"] else next((key for key in _THOUGHT_KEYS if last.get(key)), "content")
    given = str(last.get(key) or "")
    before, found, _ = template.render([*turns[:-1], {**last, key: given + _CUT}], False).rpartition(_CUT)
    if not found:
        raise PromptError(f"the chat template drops the text of messages[{len(turns) - 1}], so it cannot be continued")
    trimmed = given.lstrip()
    if not before.endswith(given) and before.endswith(trimmed):
        before = before.removesuffix(trimmed) + given
    return before, _added(before, template.attempt(turns[:-1]))


def _added(text: str, without: str | None) -> str:
    """What a generation prompt or a prefill adds to the conversation before it; all of it where that can't be told."""
    return text[len(without) :] if without is not None and text.startswith(without) else text


def check_template_arguments(arguments: Any) -> None:
    """Raises OptionError unless template arguments are a mapping of names, and none of those that rendering sets."""
    if arguments is None:
        return
    if not isinstance(arguments, Mapping) or not all(isinstance(key, str) for key in arguments):
        raise OptionError("template_arguments must be a dict of names and values")
    taken = sorted(
        {"messages", "tools", "add_generation_prompt", "continue_final_message", "tokenize"} & set(arguments)
    )
    if taken:
        raise OptionError(f"template_arguments cannot set {taken[0]!r}, which rendering itself sets")
