"""`mlx-reasoning generate`: one prompt or conversation, one answer."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import OptionError, PromptError
from ..events import Generation
from . import stats
from .interrupt import Interrupt
from .output import EventPrinter, JSONPrinter, note, prefill_line, typed
from .setup import load_model
from .toolfiles import read_json_list, read_tools, schemas

if TYPE_CHECKING:
    from ..engine.loading import LoadedModel
    from ..session.conversation import Stream


def run_generate(
    model: str | None,
    prompt: str | None,
    system: str | None,
    options: dict[str, Any],
    *,
    as_json: bool,
    show_reasoning: bool,
    messages: Path | None = None,
    tools: Path | None = None,
    show_stats: bool = False,
    prompt_cache: str | None = None,
) -> int:
    """Answers the prompt; gives the exit code."""
    said = _messages(messages, prompt, system)
    declared = None if tools is None else read_tools(tools)
    loaded = load_model(model, prompt_cache)
    printer = JSONPrinter(show_reasoning=show_reasoning) if as_json else EventPrinter(show_reasoning=show_reasoning)
    with Interrupt() as interrupt:
        events = _events(loaded, said, declared, {**options, "cancel": interrupt.event, "progress": prefill_line})
        info = None
        try:
            for event in events:
                printer.push(event)
                info = event.info if isinstance(event, Generation.info) else None
        finally:
            events.close()
            printer.close()
    if show_stats and info is not None:
        for line in stats.lines(info):
            note(line)
    return 130 if interrupt.event.is_set() else 0


def _messages(path: Path | None, prompt: str | None, system: str | None) -> list[Any]:
    """What is asked: a file's conversation, the prompt behind it, or stdin where there is neither."""
    if path is None and prompt is None:
        prompt = sys.stdin.read()
    if path is not None and system:
        raise OptionError("--system and --messages both give instructions: put them into the file")
    said = [] if path is None else read_json_list(path, "messages")
    if system:
        said.append({"role": "system", "content": typed(system)})
    if prompt is not None:
        if not prompt.strip():
            raise PromptError("the prompt is empty: give it as an argument, or on stdin")
        said.append({"role": "user", "content": typed(prompt)})
    return said


def _events(model: LoadedModel, said: list[Any], tools: list[Any] | None, options: dict[str, Any]) -> Stream:
    """One turn; with functions among the tools, with the rounds of calls that they answer."""
    if any(callable(tool) for tool in tools or ()):
        from ..session.chat import ChatSession

        own = {name: options.pop(name) for name in ("thinking", "effort", "max_reasoning_tokens") if name in options}
        session = ChatSession(model, messages=said[:-1] or None, tools=tools, **own)
        return session.stream_details(said[-1], **options)
    from ..generation import stream_generate

    if tools is not None:
        options["tools"] = schemas(tools)
    return stream_generate(model, said, **options)
