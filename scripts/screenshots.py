#!/usr/bin/env python
"""Draws docs/terminal-*.svg: the real chat in a pseudo-terminal, as a person sees it.

scripts/screenshots.py
"""

from __future__ import annotations

import re
import sys
import tempfile
from io import StringIO
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import pyte
from rich.console import Console
from rich.style import Style
from rich.text import Text

from tests.cli.screen import Terminal

ROWS, COLUMNS = 24, 92
pyte.graphics.TEXT[2] = "+strikethrough"  # pyte knows no dim, and nothing here is struck through


def draw(terminal: Terminal, name: str) -> None:
    """Writes what is on the screen."""
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True, color_system="truecolor")
    screen = terminal.screen
    last = max(at for at, line in enumerate(screen.display) if line.strip())
    rows = [at for at, line in enumerate(screen.display[:last]) if line.strip()][-1] + 1
    for at in [*range(rows + 1), last] if last > rows else range(last + 1):  # without the empty rows in the middle
        line = Text()
        for column in range(COLUMNS):
            cell = screen.buffer[at][column]
            line.append(cell.data, _style(cell))
        line.rstrip()
        console.print(line, no_wrap=True)
    path = ROOT / "docs" / f"terminal-{name}.svg"
    drawn = console.export_svg(title="mlx-reasoning chat")
    path.write_text(re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.S), encoding="utf-8")  # no font from elsewhere
    print(path)


def _style(cell: pyte.screens.Char) -> Style:
    named = {"brown": "yellow", "brightblack": "bright_black"}.get(cell.fg, cell.fg)
    colour = None if named == "default" else (f"#{named}" if len(named) == 6 and _is_hex(named) else named)
    if colour is not None and colour.startswith("bright") and "_" not in colour:
        colour = colour.replace("bright", "bright_")
    return Style(color=colour, bold=cell.bold, italic=cell.italics, underline=cell.underscore, dim=cell.strikethrough)


def _is_hex(text: str) -> bool:
    return not text.strip("0123456789abcdef")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        terminal = Terminal(Path(folder), "chat", "demo", rows=ROWS, columns=COLUMNS, slowly={"token": 0.1})
        terminal.ready()
        terminal.say("What is 4821 - 3975?")
        terminal.until(" so ", after="thinking ")
        draw(terminal, "thinking")
        terminal.until("4821 - 3975 = 846")
        terminal.ready()
        terminal.say("And plus 100?")
        terminal.until("846 + 100 = 946")
        terminal.ready()
        terminal.child.send("\x0f")
        terminal.until("so 946", after="And plus")
        terminal.ready()
        draw(terminal, "turn")
        terminal.child.close(force=True)


if __name__ == "__main__":
    main()
