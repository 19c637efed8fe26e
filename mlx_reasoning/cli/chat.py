"""`mlx-reasoning chat`: drawn where a person sits at a terminal that can, plain lines anywhere else."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .models import suggestions
from .output import end_line, note, typed
from .setup import load_model

if TYPE_CHECKING:
    from .terminal.drawing import Show
    from .terminal.talk import Talk

INTERRUPTED = 130


def run_chat(
    model: str | None,
    system: str | None,
    options: dict[str, Any],
    *,
    show: Show,
    tools: Path | None = None,
    prompt_cache: str | None = None,
    resume: bool = False,
    autosave: bool = True,
) -> int:
    """Chats until the input ends; gives the exit code."""
    from .terminal import store
    from .toolfiles import read_tools

    saved = store.newest() if resume else None
    found = read_tools(tools) if tools is not None else None
    if model is None and saved is not None:
        model = store.model_of(saved)
    loaded = load_model(model, prompt_cache)
    if model is None:
        note("This is the embedded demo model: sums, comparing, counting letters, sorting. Real ones that fit here:")
        note(f"  mlx-reasoning chat NAME, with {', '.join(suggestions())}")
    from ..session.chat import ChatSession
    from .terminal.talk import Talk

    person, drawn = sys.stdin.isatty(), _is_drawn()
    options = {"warm": person, "tools": found, **options}
    if saved is None:
        session = ChatSession(loaded, typed(system) if system else None, **options)
    else:
        session = ChatSession.load(saved, loaded, strict=False, **options)
    console = None
    if drawn:
        from .terminal.drawing import make_console

        console = make_console()
    talk = Talk(session, console=console, show=show, autosave=store.Autosave(saved) if autosave and person else None)
    talk.tools = found
    if saved is not None:
        note(f"going on with {saved}: {len(session.messages)} messages")
    try:
        for line in _drawn_lines(talk) if drawn else _lines(talk):
            _take(talk, line)
            if talk.over:
                break
    except KeyboardInterrupt:
        end_line()
        return INTERRUPTED
    finally:
        talk.session.stop()
    return 1 if talk.failed and not person else 0


def _take(talk: Talk, line: str) -> None:
    """One line: a command, or a message."""
    from .terminal.commands import run_command

    if line.startswith("/"):
        run_command(talk, line)
    elif line.strip() or talk.asks.startswith("result"):
        talk.say(line)
    else:
        talk.editing = None


def _is_drawn() -> bool:
    """Whether both ends are a terminal that can move its cursor."""
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") not in ("dumb", "unknown")


def _drawn_lines(talk: Talk) -> Iterator[str]:
    """Lines with editing, history and completion; Ctrl-C twice on an empty line leaves."""
    from .terminal.prompt import InputLine

    line, asked = InputLine(talk), False
    while True:
        try:
            text = line.read()
        except EOFError:
            return
        except KeyboardInterrupt:
            if asked:
                raise
            asked = True
            note("ctrl-c again leaves, and so does ctrl-d")
            continue
        asked = False
        yield text


def _lines(talk: Talk) -> Iterator[str]:
    """Lines of a pipe, or of a person at a terminal that cannot draw; a prompt is shown to a person only."""
    if not sys.stdin.isatty():
        for line in sys.stdin:
            yield line.rstrip("\n")
        return
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 - editing and history for input()
    while True:
        try:
            end_line()
            yield input(talk.asks)
        except EOFError:
            print(file=sys.stderr)
            return
