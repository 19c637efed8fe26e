"""What a template shows when it is rendered: a family's markers, its calls, what becomes of its old thoughts.

A thought, an answer and a call made of words that nobody writes are put in; what stands around them is the family's.
Rendering is transformers' sandboxed one; nothing else of the checkpoint is run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from .config import History, ReasoningConfig, ToolCallFormat

Render = Callable[..., str | None]
"""Renders messages with template arguments; None where the template refuses."""

_THOUGHT, _ANSWER = "Zqthoughtqz", "Zqanswerqz"
_TOOL, _FIELD, _VALUE, _RESULT = "zqtoolqz", "zqfieldqz", "Zqvalueqz", "Zqresultqz"
_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": _TOOL,
            "description": "x",
            "parameters": {"type": "object", "properties": {_FIELD: {"type": "string", "description": "x"}}},
        },
    }
]
_KEYS = ("reasoning_content", "reasoning", "thinking")
_MARKER = re.compile(r"(?:<[^<>\s][^<>\n]{0,48}>|\[[A-Z_/][A-Z_ /]{1,48}\]|◁[^◁▷\n]{1,24}▷)")
_NEVER_PROSE = re.compile(r"<\||\|>|<｜|｜>|^\[|◁|:")


@dataclass(frozen=True, slots=True)
class Probed:
    """The markers that a template shows, and how they came to light."""

    config: ReasoningConfig
    evidence: str


def probe(render: Render) -> Probed | None:
    """The thought's markers of a template, or None where it shows none."""
    for rendered, how in _with_thought(render):
        before, _, rest = rendered.partition(_THOUGHT)
        between, found, _ = rest.partition(_ANSWER)
        if not found:
            continue
        openers, closers = _MARKER.findall(before.rstrip()[-64:]), _MARKER.findall(between)
        if openers and closers and before.rstrip().endswith(openers[-1]) and between.lstrip().startswith(closers[0]):
            return _probed(openers[-1], closers[0], how)
    return _from_closed_block(render)


def _with_thought(render: Render) -> Iterator[tuple[str, str]]:
    """A conversation whose last answer has a thought, in every spelling that a template may read."""
    for key in _KEYS:
        answer: dict[str, Any] = {"role": "assistant", "content": _ANSWER, key: _THOUGHT}
        rendered = render([{"role": "user", "content": "Hi"}, answer], add_generation_prompt=False)
        if rendered is not None and _THOUGHT in rendered:
            yield rendered, f"the template writes a message's {key} between its markers"


def _from_closed_block(render: Render) -> Probed | None:
    """An empty block that the template puts before an answer without a thought."""
    messages = [{"role": "user", "content": "Hi"}]
    before = render(messages, add_generation_prompt=False) or ""
    for switch in ("enable_thinking", "thinking"):
        on, off = (render(messages, **{switch: value}) for value in (True, False))
        if on is None or off is None or on == off:
            continue
        for prompt in (off, on):
            markers = _MARKER.findall(prompt[len(before) :] if prompt.startswith(before) else prompt[-128:])[-2:]
            if len(markers) == 2 and _is_pair(markers[0], markers[1]):
                return _probed(markers[0], markers[1], f"the template writes an empty block where {switch} is off")
    return None


def _is_pair(opener: str, closer: str) -> bool:
    """Whether one marker closes the other, as `</x>` closes `<x>`."""
    letters = [re.sub(r"\W|_", "", marker).lower() for marker in (opener, closer)]
    return letters[0] == letters[1] or letters[1].removeprefix("end") == letters[0].removeprefix("start")


def _probed(opener: str, closer: str, how: str) -> Probed | None:
    if opener == closer:
        return None
    never_prose = bool(_NEVER_PROSE.search(opener) and _NEVER_PROSE.search(closer))
    return Probed(ReasoningConfig(opener, closer, never_prose=never_prose), f"{how}: {opener!r} and {closer!r}")


def end_of_turn(render: Render, tokens: Collection[str], own: Collection[str]) -> str | None:
    """The token with which a template ends an answer; None where it writes none there.

    Args:
        tokens: that a tokenizer adds to its vocabulary.
        own: markers of the family's that may stand before it.
    """
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": _ANSWER}]
    behind = (render(messages, add_generation_prompt=False) or "").rpartition(_ANSWER)[2]
    for marker in _MARKER.findall(behind):
        if marker not in own:
            return marker if marker in tokens else None
    return None


_Spelling = Callable[[str, str], dict[str, Any]]
"""A thought and an answer's text as fields of a message."""


def _in_parts(thought: str, content: str) -> dict[str, Any]:
    texts = [{"type": "text", "text": content}] if content else []
    return {"content": [{"type": "thinking", "thinking": thought}, *texts]}


def _under(key: str, thought: str, content: str) -> dict[str, Any]:
    return {"content": content, key: thought}


def _spellings() -> Iterator[_Spelling]:
    for key in _KEYS:
        yield partial(_under, key)
    yield _in_parts


def called(render: Render, spelled: _Spelling | None = None, **arguments: Any) -> str | None:
    """A conversation with a call and its result, as the template writes it; None where it does not take calls.

    Args:
        spelled: puts a thought into the message that calls, and another one into a turn before.
    """
    before: list[dict[str, Any]] = [{"role": "user", "content": "Hi"}]
    if spelled is not None:
        before += [
            {"role": "assistant"} | spelled("Old" + _THOUGHT, _ANSWER),
            {"role": "user", "content": "Hi"},
        ]
    plain: dict[str, str] = {_FIELD: _VALUE}
    for payload in (plain, json.dumps(plain)):
        for content in ("", None):
            function = {"name": _TOOL, "arguments": payload}
            call = {"type": "function", "id": "zqcallqz0", "function": function}
            answer = {"role": "assistant", "content": content, "tool_calls": [call]}
            answer |= spelled(_THOUGHT, content or "") if spelled is not None else {}
            result = {"role": "tool", "content": _RESULT, "name": _TOOL, "tool_call_id": "zqcallqz0"}
            text = render([*before, answer, result], tools=_TOOLS, **arguments)
            if text is not None and _VALUE in text and _TOOL in text and _RESULT in text:
                return text
    return None


def call_format(text: str, plain: str, formats: Iterable[ToolCallFormat]) -> ToolCallFormat | None:
    """The format of the call in a rendered conversation: one of these, or one of JSON in markers of its own.

    Args:
        text: of `called`.
        plain: a rendered answer without calls; what it has is no marker of a call.
    """
    at = text.rindex(_VALUE)
    head, tail = text[:at], text[at:].partition(_RESULT)[0]
    start = max(head.rfind(_TOOL), 0)
    region = head[max(0, start - 160) :] + tail
    fitting = [calls for calls in formats if _writes(calls, region)]
    return max(fitting, key=_told, default=None) or _json_in_markers(text, plain)


def _told(calls: ToolCallFormat) -> int:
    """How much a format says of a call."""
    return len(calls.opener) + len("".join(calls.shape)) + len(calls.inner[0] if calls.inner else "")


def _writes(calls: ToolCallFormat, region: str) -> bool:
    at = region.find(calls.opener)
    if not calls.opener or at < 0:
        return False
    rest = region[at + len(calls.opener) :]
    if calls.shape == "identifier":
        named = rest.startswith(_TOOL)
    else:
        named = _TOOL in rest and (not calls.shape or rest.lstrip().startswith(calls.shape))
    inner = calls.inner[0] if calls.inner else ""
    return named and inner in (rest if calls.inner_first else region) and _value_quoted(calls, rest)


def _value_quoted(calls: ToolCallFormat, rest: str) -> bool:
    """Whether the value stands in the format's quotes."""
    before = rest.partition(_VALUE)[0]
    return not calls.keyed or any(quote.start in before for quote in calls.quotes)


def _json_in_markers(text: str, plain: str) -> ToolCallFormat | None:
    """A call that is one JSON value, or a list of one, between markers."""
    end = text.rindex(_VALUE)
    name = text.rfind(_TOOL, 0, end)
    for at in (match.start() for match in re.finditer(r"[\[{]", text[:name])):
        try:
            value, stop = json.JSONDecoder().raw_decode(text, at)
        except ValueError:
            continue
        item = value[0] if isinstance(value, list) and value else value
        if stop <= end or not isinstance(item, dict) or _TOOL not in item.values():
            continue
        openers, closers = _MARKER.findall(text[:at].rstrip()[-64:]), _MARKER.findall(text[stop:].lstrip()[:64])
        if not openers or not text[:at].rstrip().endswith(openers[-1]) or openers[-1] in plain:
            return None
        closed = bool(closers) and text[stop:].lstrip().startswith(closers[0]) and closers[0] not in plain
        return ToolCallFormat("json_calls", openers[-1], closers[0] if closed else "", shape=("{", "["))
    return None


def history(render: Render, **arguments: Any) -> History | None:
    """What becomes of thoughts when a conversation is rendered again; None where the template does not take calls.

    Args:
        arguments: for the template, those that switch thinking on.
    """
    found: History | None = None
    for spelled in _spellings():
        text = called(render, spelled, **arguments)
        if text is None or "'type'" in text:  # parts that were printed as they are
            continue
        if "Old" + _THOUGHT in text:
            return "keep"
        if _THOUGHT in text:
            return "loop"
        found = "strip"
    return found
