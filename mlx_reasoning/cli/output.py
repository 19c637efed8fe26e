"""Where text goes: the answer to stdout, everything else to stderr, dim where somebody is watching."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import IO

from ..events import Generation, GenerationEvent, event_to_dict

DIM, RESET = "\x1b[2m", "\x1b[0m"


def prepare_streams() -> None:
    """No character may crash a terminal whose encoding lacks it."""
    for stream in (sys.stdout, sys.stderr, sys.stdin):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            with contextlib.suppress(ValueError, OSError):
                reconfigure(errors="surrogateescape" if stream is sys.stdin else "replace")


def is_coloured(stream: IO[str]) -> bool:
    """Whether to use colour: a terminal that can, and nobody who objects (NO_COLOR, TERM=dumb)."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def note(text: str) -> None:
    """A line for the person, never for the pipe."""
    end_line()
    print(f"{DIM}{text}{RESET}" if is_coloured(sys.stderr) else text, file=sys.stderr, flush=True)


def fail(text: str) -> None:
    end_line()
    print(f"error: {text}", file=sys.stderr, flush=True)


_open_line = {"stdout": False, "stderr": False}


def end_line() -> None:
    """Begins a new line on the terminal if something stands on the running one."""
    for name, stream in (("stderr", sys.stderr), ("stdout", sys.stdout)):
        if _open_line[name] and stream.isatty():
            with contextlib.suppress(OSError):
                print(file=stream, flush=True)
            _open_line[name] = False


class EventPrinter:
    """Writes events as they come.

    Args:
        show_reasoning: write thoughts, to stderr.
    """

    def __init__(self, *, show_reasoning: bool = True) -> None:
        self._show_reasoning = show_reasoning
        self._dim = is_coloured(sys.stderr)
        self._thinking = False
        self._answered = ""

    def push(self, event: GenerationEvent) -> None:
        match event:
            case Generation.reasoning(text):
                if self._show_reasoning:
                    self._think(text)
            case Generation.chunk(text):
                self._end_thought()
                self._write(sys.stdout, "stdout", text)
                self._answered = text
            case Generation.tool_call(call):
                self._end_thought()
                note(f"tool call: {call.name}({', '.join(f'{k}={v!r}' for k, v in call.arguments.items())})")
            case Generation.rejected_tool_call(rejection):
                self._end_thought()
                note(f"unusable tool call ({rejection.reason}{': ' if rejection.detail else ''}{rejection.detail})")
                note(rejection.text)
            case Generation.info(info):
                self.close()
                if info.finish_reason == "length":
                    where = "in its thought" if info.ended_inside_reasoning else "in its answer"
                    note(f"cut off {where}: the limit of tokens (--max-tokens) or the model's context is reached")
                for text in info.notes:
                    note(text)

    def close(self) -> None:
        """Ends styles and lines, however the turn ended."""
        self._end_thought()
        if self._answered and not self._answered.endswith("\n"):
            self._write(sys.stdout, "stdout", "\n")
        self._answered = ""

    def _think(self, text: str) -> None:
        if not self._thinking and self._dim:
            text = DIM + text
        self._thinking = True
        self._write(sys.stderr, "stderr", text)

    def _end_thought(self) -> None:
        if self._thinking:
            self._thinking = False
            self._write(sys.stderr, "stderr", (RESET if self._dim else "") + "\n\n")

    def _write(self, stream: IO[str], name: str, text: str) -> None:
        stream.write(text)
        stream.flush()
        _open_line[name] = not text.endswith("\n")


class JSONPrinter:
    """Writes each event as one line of JSON on stdout."""

    def __init__(self, *, show_reasoning: bool = True) -> None:
        self._show_reasoning = show_reasoning

    def push(self, event: GenerationEvent) -> None:
        import json

        if isinstance(event, Generation.reasoning) and not self._show_reasoning:
            return
        print(json.dumps(event_to_dict(event), ensure_ascii=False), flush=True)

    def close(self) -> None:
        pass


def prefill_line(done: int, total: int) -> None:
    """Progress of a long prompt, on a terminal only."""
    if total < 2048 or not sys.stderr.isatty():
        return
    text = f"reading the prompt: {done:,} of {total:,} tokens ({done * 100 // total} %)"
    print("\r" + text + ("\r" + " " * len(text) + "\r" if done >= total else ""), end="", file=sys.stderr, flush=True)


def typed(text: str) -> str:
    """Text from the command line or stdin, whatever the locale made of its bytes."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
