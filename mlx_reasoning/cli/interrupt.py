"""Ctrl-C while a model runs: the first asks it to stop between two tokens, the second interrupts whatever runs."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any


class Interrupt:
    """Inside the `with`, Ctrl-C sets `event`; a second one raises KeyboardInterrupt. Outside, all is as before."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self._before: Any = None
        self._then: Callable[[], None] | None = None

    def __enter__(self) -> Interrupt:
        self._before = signal.signal(signal.SIGINT, self._asked)
        return self

    def call(self, then: Callable[[], None]) -> None:
        """Also calls this at the first Ctrl-C."""
        self._then = then

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _asked(self, signum: int, frame: FrameType | None) -> None:
        if self.event.is_set():
            raise KeyboardInterrupt
        self.event.set()
        if self._then is not None:
            self._then()
