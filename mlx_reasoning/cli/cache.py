"""`mlx-reasoning cache`: the prefilled beginning of prompts, on disk."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from ..errors import PromptError
from .interrupt import Interrupt
from .output import note, prefill_line
from .setup import load_model
from .toolfiles import read_text, read_tools


def run_cache(model: str | None, prompt: str, out: Path, tools: Path | None, options: dict[str, Any]) -> int:
    """Prefills a system message and writes the cache; gives the exit code."""
    system = sys.stdin.read() if prompt == "-" else read_text(Path(prompt))
    if not system.strip():
        raise PromptError("the system message is empty: give a file with text, or - and text on stdin")
    declared = None if tools is None else read_tools(tools)
    loaded = load_model(model)
    from ..session.chat import ChatSession

    session = ChatSession(loaded, system, tools=declared, **options)
    with Interrupt() as interrupt:
        interrupt.call(session.stop)
        count = session.warm(progress=prefill_line) or 0
    if interrupt.event.is_set():
        note("(stopped; nothing is written)")
        return 130
    if not count:
        raise PromptError(f"the template of {loaded.name} has no part that every prompt with this message begins with")
    session.save(out)
    note(f"{out}: {count:,} tokens, {out.stat().st_size / 1e6:.1f} MB")
    return 0
