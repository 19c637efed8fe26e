"""A command in a real pseudo-terminal, and the screen that a person would see."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pexpect
import pyte

ROOT = Path(__file__).parents[2]
COMMAND = str(Path(sys.executable).parent / "mlx-reasoning")


class _Screen(pyte.HistoryScreen):
    child: pexpect.spawn

    def write_process_input(self, data: str) -> None:
        """What a terminal answers, such as where its cursor is."""
        self.child.send(data)


class Terminal:
    """Runs `mlx-reasoning`; its files go to `home`.

    Args:
        slowly: seconds and counts for `tests/cli/slowly.py`, which runs in its place then.
    """

    def __init__(
        self,
        home: Path,
        *arguments: str,
        rows: int = 30,
        columns: int = 100,
        environment: Mapping[str, str] | None = None,
        slowly: Mapping[str, object] | None = None,
    ) -> None:
        clean = {n: v for n, v in os.environ.items() if n != "NO_COLOR" and not n.startswith("MLX_REASONING")}
        own = {
            "TERM": "xterm-256color",
            "HOME": str(home),
            "MLX_REASONING_DATA": str(home / "data"),
            "MLX_REASONING_CONFIG": str(home / "config.toml"),
        }
        self.raw = ""
        self.screen = _Screen(columns, rows, history=10_000, ratio=0.1)
        self._stream = pyte.Stream(self.screen)
        command = [COMMAND, *arguments] if slowly is None else [sys.executable, "-m", "tests.cli.slowly", *arguments]
        own |= {f"TEST_{name.upper()}": str(value) for name, value in (slowly or {}).items()}
        self.child = pexpect.spawn(
            command[0], command[1:], cwd=str(ROOT), env=clean | own | dict(environment or {}), encoding="utf-8",
            codec_errors="replace", timeout=60, dimensions=(rows, columns),
        )  # fmt: skip
        self.screen.child = self.child

    @property
    def text(self) -> str:
        """Everything that was scrolled away, and the screen."""
        above = ["".join(line[at].data for at in range(self.screen.columns)) for line in self.screen.history.top]
        return "\n".join(line.rstrip() for line in [*above, *self.screen.display])

    @property
    def line(self) -> str:
        """The line that the cursor is on."""
        return str(self.screen.display[self.screen.cursor.y]).rstrip()

    def pump(self, seconds: float = 0.05) -> bool:
        """Reads for a while; False once the program has ended."""
        end = time.monotonic() + seconds
        while True:
            try:
                data = self.child.read_nonblocking(1 << 16, timeout=0.02)
            except pexpect.TIMEOUT:
                data = ""
            except pexpect.EOF:
                return False
            self.raw += data
            self._stream.feed(data)
            if time.monotonic() >= end:
                return True

    def until(self, *texts: str, after: str = "", seconds: float = 60) -> str:
        """Waits for one of the texts behind the last `after`, and gives it."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            alive = self.pump()
            seen = self.text.rpartition(after)[2] if after else self.text
            for text in texts:
                if text in seen:
                    return text
            assert alive, f"ended without {texts}:\n{self.text}"
        raise AssertionError(f"none of {texts} came:\n{self.text}")

    def ready(self, prompt: str = ">") -> None:
        """Waits for an empty input line."""
        end = time.monotonic() + 90
        while self.line != prompt:
            assert self.pump(), f"ended:\n{self.text}"
            assert time.monotonic() < end, f"no input line came:\n{self.text}"

    def times(self, text: str, count: int, seconds: float = 60) -> None:
        """Waits until the text stands there so many times."""
        end = time.monotonic() + seconds
        while self.text.count(text) < count:
            assert self.pump(), f"ended without {text}:\n{self.text}"
            assert time.monotonic() < end, f"{text} does not stand there {count} times:\n{self.text}"

    def say(self, text: str) -> None:
        """Types a line, sees it on the screen, and presses Enter."""
        before, end = self.line, time.monotonic() + 10
        self.child.send(text)
        while self.line == before:
            assert self.pump(), f"ended:\n{self.text}"
            assert time.monotonic() < end, f"{text} does not appear:\n{self.text}"
        self.child.send("\r")

    def resize(self, rows: int, columns: int) -> None:
        self.child.setwinsize(rows, columns)
        self.screen.resize(rows, columns)

    def end(self) -> int | None:
        """Waits for the end; gives the exit code."""
        end = time.monotonic() + 60
        while self.pump():
            assert time.monotonic() < end, f"does not end:\n{self.text}"
        self.child.close()
        return int(self.child.exitstatus) if self.child.exitstatus is not None else None
