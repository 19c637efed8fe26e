"""The lines that begin with a slash: how a command is declared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import OptionError
from ..output import typed
from .talk import Talk


@dataclass(frozen=True, slots=True)
class Command:
    """A command: what it takes, what it does, and what may be chosen."""

    name: str
    takes: str
    help: str
    run: Callable[[Talk, str], None]
    choices: Callable[[Talk], Sequence[str]]
    takes_file: bool


COMMANDS: dict[str, Command] = {}


def command(
    name: str, takes: str, help: str, choices: Callable[[Talk], Sequence[str]] = lambda talk: (), file: bool = False
) -> Callable[[Callable[[Talk, str], None]], Callable[[Talk, str], None]]:
    def add(run: Callable[[Talk, str], None]) -> Callable[[Talk, str], None]:
        COMMANDS[name] = Command(name, takes, help, run, choices, file)
        return run

    return add


def chosen(text: str, choices: Sequence[str], what: str) -> str:
    if text not in choices:
        said = f"{text!r} is no {what}" if text else f"which {what}?"
        raise OptionError(f"{said}: choose one of {', '.join(choices)}")
    return text


def file_path(text: str, what: str) -> Path:
    if not text:
        raise OptionError(f"name the file {what}")
    return Path(typed(text)).expanduser()
