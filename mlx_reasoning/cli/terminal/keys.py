"""Keys while a model runs: some do something at once, and what else is typed waits for the next line."""

from __future__ import annotations

import codecs
import os
import select
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

try:
    import termios
except ImportError:  # no Unix
    termios = None  # type: ignore[assignment]

CTRL_O, CTRL_T = "\x0f", "\x14"


class Keys:
    """Inside the `with`, keys are read without an echo; Ctrl-C stays a signal. The terminal is as before afterwards.

    Args:
        actions: what a key does; it is called on a thread of its own.
    """

    def __init__(self, actions: Mapping[str, Callable[[], object]]) -> None:
        self.typed = ""
        self._actions = actions
        self._before: list[Any] | None = None
        self._thread: threading.Thread | None = None
        self._wake = (-1, -1)

    def __enter__(self) -> Keys:
        if termios is None or not sys.stdin.isatty():
            return self
        descriptor = sys.stdin.fileno()
        self._before = termios.tcgetattr(descriptor)
        quiet = termios.tcgetattr(descriptor)
        quiet[3] &= ~(termios.ICANON | termios.ECHO | termios.IEXTEN)  # without IEXTEN, Ctrl-O and Ctrl-T are keys
        quiet[6] = [*quiet[6]]
        quiet[6][termios.VMIN], quiet[6][termios.VTIME] = 1, 0
        termios.tcsetattr(descriptor, termios.TCSADRAIN, quiet)
        self._wake = os.pipe()
        self._thread = threading.Thread(target=self._read, args=(descriptor,), name="mlx-reasoning-keys", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread is None or self._before is None:
            return
        os.write(self._wake[1], b"x")
        self._thread.join()
        for end in self._wake:
            os.close(end)
        termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, self._before)

    def _read(self, descriptor: int) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("ignore")
        while True:
            ready, _, _ = select.select([descriptor, self._wake[0]], [], [])
            if self._wake[0] in ready:
                return
            data = os.read(descriptor, 4096)
            if not data:
                return
            if not data.startswith(b"\x1b") or data.startswith(b"\x1b[200~"):  # arrows and the like are no text
                self._take(decoder.decode(data.replace(b"\x1b[200~", b"").replace(b"\x1b[201~", b"")))

    def _take(self, text: str) -> None:
        for char in text:
            action = self._actions.get(char)
            if action is not None:
                action()
            elif char in "\r\n":
                self.typed += "\n"
            elif char in "\x7f\b":
                self.typed = self.typed[:-1]
            elif char.isprintable() or char == "\t":
                self.typed += char
