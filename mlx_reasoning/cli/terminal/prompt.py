"""The input line: editing, history, completion, and the status below it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable

from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.styles import Style

from ..settings import data_folder
from .commands import show
from .registry import COMMANDS
from .talk import Talk

_STYLE = Style.from_dict({"bottom-toolbar": "noreverse fg:ansibrightblack", "prompt": "bold"})


class InputLine:
    """Reads messages. Enter sends; Alt-Enter, Ctrl-J or a backslash before Enter begin a new line."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._session: PromptSession[str] = PromptSession(
            history=_history(),
            completer=_Names(talk),
            complete_while_typing=Condition(lambda: self._session.default_buffer.text.startswith("/")),
            multiline=True,
            key_bindings=self._keys(),
            prompt_continuation="  ",
            bottom_toolbar=talk.status,
            style=_STYLE,
            enable_open_in_editor=True,
            reserve_space_for_menu=4,
        )

    def read(self) -> str:
        """The next message or command.

        Raises:
            KeyboardInterrupt: Ctrl-C on an empty line.
            EOFError: Ctrl-D on an empty line, or the terminal is gone.
        """
        draft, self._talk.draft = self._talk.draft, ""
        return self._session.prompt([("class:prompt", self._talk.asks)], default=draft)

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("enter")
        def _(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            if buffer.complete_state and buffer.complete_state.current_completion:
                buffer.complete_state = None
            elif buffer.document.char_before_cursor == "\\" and buffer.document.is_cursor_at_the_end:
                buffer.delete_before_cursor()
                buffer.insert_text("\n")
            else:
                buffer.validate_and_handle()

        @keys.add("escape", "enter")
        @keys.add("c-j")
        def _(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text("\n")

        @keys.add("c-c")
        def _(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            if buffer.text:  # the line is given up, and stays in the history
                buffer.append_to_history()
                buffer.reset()
            else:
                event.app.exit(exception=KeyboardInterrupt(), style="class:aborting")

        @keys.add("c-o")
        def _(event: KeyPressEvent) -> None:
            run_in_terminal(lambda: show(self._talk, ""))

        return keys


class _Names(Completer):
    """Commands, what they take, and file names."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._paths = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor
        if not text.startswith("/") or "\n" in text:
            return
        name, space, rest = text[1:].partition(" ")
        if not space:
            for command in COMMANDS.values():
                if command.name.startswith(name):
                    yield Completion(command.name, -len(name), display_meta=command.help)
            return
        known = COMMANDS.get(name)
        if known is None:
            return
        for choice in known.choices(self._talk):
            if choice.startswith(rest):
                yield Completion(choice, -len(rest))
        if known.takes_file:
            yield from self._paths.get_completions(Document(rest), complete_event)


class _File(FileHistory):
    """A history that goes on in memory where its file cannot be written."""

    def store_string(self, string: str) -> None:
        with contextlib.suppress(OSError):
            super().store_string(string)

    def load_history_strings(self) -> Iterable[str]:
        with contextlib.suppress(OSError):
            yield from super().load_history_strings()


def _history() -> History:
    path = data_folder() / "history"
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_RDWR, 0o600))
    except OSError:
        return InMemoryHistory()
    return _File(str(path))
