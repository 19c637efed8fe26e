"""`mlx-reasoning chat`: a plain loop of turns over one session."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..errors import ContextLengthError, MLXReasoningError
from ..events import Generation
from .interrupt import Interrupt
from .output import EventPrinter, end_line, fail, note, prefill_line, typed
from .setup import load_model

if TYPE_CHECKING:
    from ..session.chat import ChatSession

COMMANDS = {"/help": "this list", "/clear": "begin a new conversation", "/quit": "leave"}
INTERRUPTED = 130


def run_chat(
    model: str | None,
    system: str | None,
    options: dict[str, Any],
    *,
    show_reasoning: bool,
    prompt_cache: str | None = None,
) -> int:
    """Chats until the input ends; gives the exit code."""
    loaded = load_model(model, prompt_cache)
    if model is None:
        note("This is the embedded demo model: sums, comparing, counting letters, sorting. A real one:")
        note("  mlx-reasoning chat mlx-community/Qwen3-4B-4bit")
    from ..session.chat import ChatSession

    session = ChatSession(loaded, typed(system) if system else None, warm=sys.stdin.isatty(), **options)
    chat = _Chat(session, show_reasoning=show_reasoning)
    try:
        for line in _lines():
            if line.startswith("/"):
                if not _command(line.split()[0], session):
                    return 0
            elif line.strip() and not chat.turn(line):
                return INTERRUPTED
    except KeyboardInterrupt:
        end_line()
        return INTERRUPTED
    finally:
        session.stop()
    return 1 if chat.failed and not sys.stdin.isatty() else 0


class _Chat:
    def __init__(self, session: ChatSession, *, show_reasoning: bool) -> None:
        self.session = session
        self._show_reasoning = show_reasoning
        self.failed = False

    def turn(self, text: str) -> bool:
        """One turn; one that is stopped or fails is rolled back whole. False if it was interrupted twice."""
        printer = EventPrinter(show_reasoning=self._show_reasoning)
        try:
            with Interrupt() as interrupt:
                self._print(text, interrupt, printer)
        except KeyboardInterrupt:
            return False
        except MLXReasoningError as error:
            printer.close()
            crowded = isinstance(error, ContextLengthError) and self.session.messages
            fail(" ".join(str(error).split()) + (" (/clear begins a new conversation)" if crowded else ""))
            self.failed = True
        finally:
            printer.close()
        return True

    def _print(self, text: str, interrupt: Interrupt, printer: EventPrinter) -> None:
        events = self.session.stream_details(typed(text), cancel=interrupt.event, progress=prefill_line)
        with contextlib.closing(events):
            for event in events:
                if isinstance(event, Generation.info) and event.info.finish_reason == "cancelled":
                    printer.close()
                    note("(stopped; that turn is forgotten)")
                else:
                    printer.push(event)


def _lines() -> Iterator[str]:
    """Lines of a person or of a pipe; a prompt is shown to a person only."""
    if not sys.stdin.isatty():
        for line in sys.stdin:
            yield line.rstrip("\n")
        return
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 - editing and history for input()
    while True:
        try:
            end_line()
            yield input("> ")
        except EOFError:
            print(file=sys.stderr)
            return


def _command(name: str, session: ChatSession) -> bool:
    """A line that begins with a slash is never for the model. False if it leaves."""
    if name == "/quit":
        return False
    if name == "/clear":
        session.clear()
        note("a new conversation")
    else:
        if name != "/help":
            fail(f"no command {name}")
        for command, what in COMMANDS.items():
            note(f"{command:8} {what}")
    return True
