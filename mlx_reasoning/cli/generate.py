"""`mlx-reasoning generate`: one prompt, one answer."""

from __future__ import annotations

import sys
from typing import Any

from ..errors import PromptError
from .interrupt import Interrupt
from .output import EventPrinter, JSONPrinter, prefill_line, typed
from .setup import load_model


def run_generate(
    model: str | None,
    prompt: str | None,
    system: str | None,
    options: dict[str, Any],
    *,
    as_json: bool,
    show_reasoning: bool,
    prompt_cache: str | None = None,
) -> int:
    """Answers the prompt; gives the exit code."""
    if prompt is None:
        prompt = sys.stdin.read()
    prompt, system = typed(prompt), typed(system) if system else None
    if not prompt.strip():
        raise PromptError("the prompt is empty: give it as an argument, or on stdin")
    messages = [{"role": "system", "content": system}] if system else []
    messages.append({"role": "user", "content": prompt})
    loaded = load_model(model, prompt_cache)
    from ..generation import stream_generate

    printer = JSONPrinter(show_reasoning=show_reasoning) if as_json else EventPrinter(show_reasoning=show_reasoning)
    with Interrupt() as interrupt:
        events = stream_generate(loaded, messages, cancel=interrupt.event, progress=prefill_line, **options)
        try:
            for event in events:
                printer.push(event)
        finally:
            events.close()
            printer.close()
    return 130 if interrupt.event.is_set() else 0
