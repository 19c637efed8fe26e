"""Messages to prompt ids, and where the model's first character will stand.

It knows how people spell messages and what templates can take. It renders with the checkpoint's own template, in the
sandbox of transformers, and hands it nothing that the caller did not ask for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..decode.prompt_state import start_state
from ..errors import OptionError, PromptError
from ..messages import Tool
from ..protocols.config import ModelProfile, StartState
from .spelling import THOUGHT_KEYS, checked, normalized
from .template import Template

__all__ = ["RenderedPrompt", "check_template_arguments", "encode", "normalized", "render"]

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
    template = Template(tokenizer, list(tools) if tools else None, {**arguments, **(template_arguments or {})})
    turns = [
        normalized(message, at, profile.reasoning, template.source) for at, message in enumerate(checked(messages))
    ]
    wish = thinking if thinking is not None or effort is None else effort != "none"
    turns = _with_word(_with_one_system(template, turns), profile.prompt.word(wish))
    turns = _without_joints(template, turns)
    if continue_final_message is None:
        continue_final_message = turns[-1]["role"] == "assistant" and "tool_calls" not in turns[-1]
    if continue_final_message:
        text, tail = _continued(template, turns, profile)
    else:
        text = template.render(turns, add_generation_prompt)
        tail = text
        if add_generation_prompt and profile.reasoning is not None:
            tail = _added(text, template.attempt(turns))
    ids = list(tokenizer.encode(text, add_special_tokens=False))
    if not ids:
        raise PromptError("the chat template renders these messages to nothing: give at least one message with text")
    return RenderedPrompt(text, ids, start_state(tail, profile), notes)


def _with_one_system(template: Template, turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The conversation with its system messages in one at the front, where the template refuses or drops the others."""
    system = [turn for turn in turns if turn["role"] == "system"]
    if not system or system == turns[:1]:
        return turns
    shown = template.attempt(turns)
    if shown is not None and all(turn["content"].strip() in shown for turn in system):
        return turns
    whole = "\n\n".join(turn["content"] for turn in system if turn["content"])
    return [{**system[0], "content": whole}, *(turn for turn in turns if turn["role"] != "system")]


def _without_joints(template: Template, turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Texts before calls without the white space that the template puts there again, so that what was generated comes
    out as it was."""
    whole = list(turns)
    for at, turn in enumerate(turns):
        content = turn["content"]
        if "tool_calls" not in turn or not content or not content[-1].isspace() or not content.strip():
            continue
        joint = template.joint(turns, at)
        if joint and content.endswith(joint):
            whole[at] = {**turn, "content": content[: -len(joint)]}
    return whole


def _with_word(turns: list[dict[str, Any]], word: str) -> list[dict[str, Any]]:
    """The conversation with a word at the end of its system message, which it may not have had."""
    if not word:
        return turns
    if turns[0]["role"] != "system":
        return [{"role": "system", "content": word}, *turns]
    return [{**turns[0], "content": f"{turns[0]['content']}\n{word}".lstrip()}, *turns[1:]]


def encode(tokenizer: Any, text: str) -> list[int]:
    """The ids of a raw prompt, with the tokenizer's own extras unless the text begins with its first token already."""
    begins = tokenizer.bos_token is not None and text.startswith(tokenizer.bos_token)
    return list(tokenizer.encode(text, add_special_tokens=not begins))


def _continued(template: Template, turns: list[dict[str, Any]], profile: ModelProfile) -> tuple[str, str]:
    """The prompt up to the end of the last message's text, and what of it belongs to that turn."""
    last = turns[-1]
    key = "content" if last["content"] else next((key for key in THOUGHT_KEYS if last.get(key)), "content")
    given = str(last.get(key) or "")
    before, found, _ = template.render([*turns[:-1], {**last, key: given + _CUT}], False).rpartition(_CUT)
    if not found:
        opened = _opened(template, turns[:-1], profile) if key != "content" else None
        if opened is not None:
            return opened[0] + given, opened[1] + given
        advice = "" if key == "content" else " (if it can think, pass thinking=True)"
        where = f"messages[{len(turns) - 1}]"
        raise PromptError(f"the chat template drops the text of {where}, so it cannot be continued{advice}")
    trimmed = given.lstrip()
    if not before.endswith(given) and before.endswith(trimmed):
        before = before.removesuffix(trimmed) + given
    return before, _added(before, template.attempt(turns[:-1]))


def _opened(template: Template, turns: list[dict[str, Any]], profile: ModelProfile) -> tuple[str, str] | None:
    """A prompt that stands inside a thought, for templates that drop thoughts; None where that cannot be said."""
    config = profile.reasoning
    if config is None or not turns:
        return None
    text = template.render(turns, True)
    tail = _added(text, template.attempt(turns))
    if start_state(tail, profile) is not StartState.outside:
        return text, tail
    if config.start_delimiter is None or any(end in tail for end in config.ends):
        return None
    label = config.channel.reasoning_labels[0] if config.channel else ""
    opener = f"{config.start_delimiter}{label}\n"
    return text + opener, tail + opener


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
