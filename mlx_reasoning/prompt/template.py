"""A checkpoint's own template, rendered in the sandbox of transformers with nothing that the caller did not ask for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from transformers.utils.chat_template_utils import render_jinja_template

from ..errors import PromptError
from ..messages import Tool
from ..protocols.checkpoint import unwrapped
from .spelling import THOUGHT_KEYS, thought_is_a_part


class Template:
    """One template with its tools and arguments."""

    def __init__(self, tokenizer: Any, tools: list[Tool] | None, arguments: dict[str, Any]) -> None:
        self._tools = tools
        self._arguments = arguments
        self._custom = getattr(tokenizer, "_chat_template", None)  # mlx-lm's renderers in Python
        self._tokenizer = unwrapped(tokenizer)
        source = getattr(self._tokenizer, "chat_template", None)
        self.source = source if isinstance(source, str) else json.dumps(source)
        self._in_parts = thought_is_a_part(self.source)

    def render(self, turns: list[dict[str, Any]], generation_prompt: bool) -> str:
        """Renders whole turns, in the first spelling of calls that the template takes.

        Raises:
            PromptError: it takes none.
        """
        try:
            return self._render(turns, generation_prompt)
        except Exception as error:  # a template is somebody's program, and may raise anything
            for spelled in _other_spellings(turns):
                try:
                    return self._render(spelled, generation_prompt)
                except Exception:  # the first failure says most
                    continue
            raise PromptError(self._refusal(turns, error)) from error

    def joint(self, turns: list[dict[str, Any]], at: int) -> str:
        """The white space that the template itself puts between the text and the calls of a message."""
        text = "Zq" + self._tail_of(turns[at])
        shown = self.attempt([*turns[:at], {**turns[at], "content": text}])
        if shown is None or text not in shown:
            return ""
        behind = shown.rpartition(text)[2]
        return behind[: len(behind) - len(behind.lstrip())]

    @staticmethod
    def _tail_of(turn: dict[str, Any]) -> str:
        """A word of the message, so that what is looked for stands nowhere else."""
        return str(turn["content"]).strip()[-8:]

    def attempt(self, turns: list[dict[str, Any]]) -> str | None:
        """Without a generation prompt; None where the template will not."""
        try:
            return self.render(turns, False) if turns else None
        except PromptError:
            return None

    def _render(self, turns: list[dict[str, Any]], generation_prompt: bool) -> str:
        options = {"add_generation_prompt": generation_prompt, **self._arguments}
        if self._in_parts:
            turns = [_with_parts(turn) for turn in turns]
        if self._custom is not None:
            return str(self._custom(turns, tools=self._tools, **options))
        if any(turn["content"] is None for turn in turns):  # transformers drops nulls, and this template asks for them
            chosen = self._tokenizer.get_chat_template(tools=self._tools)
            options = {**self._tokenizer.special_tokens_map, **options}
            return str(render_jinja_template([turns], self._tools, chat_template=chosen, **options)[0][0])
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


def _thought_of(turn: dict[str, Any]) -> str | None:
    return next((turn[key] for key in THOUGHT_KEYS if turn.get(key)), None)


def _with_one_text(turn: dict[str, Any]) -> dict[str, Any]:
    """What was said beside a call as the end of its thought, for a template (gpt-oss) that takes one of the two."""
    thought = _thought_of(turn)
    if "tool_calls" not in turn or not turn["content"] or thought is None:
        return turn
    key = next(key for key in THOUGHT_KEYS if turn.get(key))
    return {**turn, "content": "", key: f"{thought}\n\n{turn['content']}"}


def _with_parts(turn: dict[str, Any]) -> dict[str, Any]:
    """A thought as the first part of the content."""
    thought = _thought_of(turn)
    if thought is None:
        return turn
    texts = [{"type": "text", "text": turn["content"]}] if turn["content"] else []
    rest = {key: value for key, value in turn.items() if key not in THOUGHT_KEYS}
    return {**rest, "content": [{"type": "thinking", "thinking": thought}, *texts]}


def _other_spellings(turns: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Arguments as JSON text, which some templates join to strings; then an empty content in place of none.

    In this order: a template that asks for no content may, given an empty one, drop the calls without a word.
    """
    if not any("tool_calls" in turn for turn in turns):
        return
    spelled = [_with_spelled_arguments(turn) for turn in turns]
    yield spelled
    if any(turn["content"] is None for turn in turns):
        yield [{**turn, "content": turn["content"] or ""} for turn in turns]
        yield [{**turn, "content": turn["content"] or ""} for turn in spelled]
    if any("tool_calls" in turn and turn["content"] and _thought_of(turn) for turn in turns):
        yield [_with_one_text(turn) for turn in turns]


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
