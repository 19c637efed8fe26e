"""`mlx-reasoning chat`: a plain loop of turns. The conversation keeps answers and calls, and no thought."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..errors import ContextLengthError, MLXReasoningError
from ..events import Completion, Generation, GenerationEvent, gather
from .interrupt import Interrupt
from .output import EventPrinter, end_line, fail, note, prefill_line, typed
from .setup import load_model

if TYPE_CHECKING:
    from ..engine.loading import LoadedModel

COMMANDS = {"/help": "this list", "/clear": "begin a new conversation", "/quit": "leave"}
INTERRUPTED = 130


def run_chat(model: str | None, system: str | None, options: dict[str, Any], *, show_reasoning: bool) -> int:
    """Chats until the input ends; gives the exit code."""
    loaded = load_model(model)
    if model is None:
        note("This is the embedded demo model: sums, comparing, counting letters, sorting. A real one:")
        note("  mlx-reasoning chat mlx-community/Qwen3-4B-4bit")
    conversation = _Conversation(loaded, system, options, show_reasoning=show_reasoning)
    try:
        for line in _lines():
            if line.startswith("/"):
                if not _command(line.split()[0], conversation):
                    return 0
            elif line.strip() and not conversation.turn(line):
                return INTERRUPTED
    except KeyboardInterrupt:
        end_line()
        return INTERRUPTED
    return 1 if conversation.failed and not sys.stdin.isatty() else 0


class _Conversation:
    def __init__(
        self, model: LoadedModel, system: str | None, options: dict[str, Any], *, show_reasoning: bool
    ) -> None:
        self._model = model
        self._system = [{"role": "system", "content": typed(system)}] if system else []
        self._options = options
        self._show_reasoning = show_reasoning
        self.messages: list[dict[str, Any]] = []
        self.failed = False

    def turn(self, text: str) -> bool:
        """One turn; an interrupted or failed one is rolled back whole. False if it was interrupted twice."""
        messages = [*self._system, *self.messages, {"role": "user", "content": typed(text)}]
        printer = EventPrinter(show_reasoning=self._show_reasoning)
        try:
            with Interrupt() as interrupt:
                completion = gather(self._printed(messages, interrupt, printer))
        except KeyboardInterrupt:
            return False
        except MLXReasoningError as error:
            printer.close()
            advice = (
                " (/clear begins a new conversation)" if isinstance(error, ContextLengthError) and self.messages else ""
            )
            fail(" ".join(str(error).split()) + advice)
            self.failed = True
            return True
        finally:
            printer.close()
        if completion.finish_reason == "cancelled":
            note("(stopped; that turn is forgotten)")
        else:
            self.messages = [*messages[len(self._system) :], _answer(completion)]
        return True

    def _printed(
        self, messages: list[dict[str, Any]], interrupt: Interrupt, printer: EventPrinter
    ) -> Iterator[GenerationEvent]:
        from ..generation import stream_generate

        events = stream_generate(
            self._model, messages, tools=[], cancel=interrupt.event, progress=prefill_line, **self._options
        )
        with contextlib.closing(events):
            for event in events:
                if isinstance(event, Generation.info) and event.info.finish_reason == "cancelled":
                    printer.close()
                else:
                    printer.push(event)
                yield event


def _answer(completion: Completion) -> dict[str, Any]:
    return {"role": "assistant", "content": completion.content}


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


def _command(name: str, conversation: _Conversation) -> bool:
    """A line that begins with a slash is never for the model. False if it leaves."""
    if name == "/quit":
        return False
    if name == "/clear":
        conversation.messages = []
        note("a new conversation")
    else:
        if name != "/help":
            fail(f"no command {name}")
        for command, what in COMMANDS.items():
            note(f"{command:8} {what}")
    return True
