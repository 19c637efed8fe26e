"""What the terminal keeps of conversations: saved after every turn, exported, read from files."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import OptionError, SessionFileError
from ..settings import data_folder

if TYPE_CHECKING:
    from ...session.chat import ChatSession

KEPT = 50
"""Conversations that are kept; the oldest go."""
LARGEST = 1 << 20


def conversations() -> Path:
    """The folder of saved conversations."""
    return data_folder() / "conversations"


def newest() -> Path:
    """The last conversation.

    Raises:
        OptionError: there is none.
    """
    saved = sorted(conversations().glob("*.json"))
    if not saved:
        raise OptionError(f"there is no saved conversation in {conversations()}: begin one without --resume")
    return saved[-1]


def kept() -> list[tuple[Path, str]]:
    """The saved conversations, oldest first, with the beginning of the first message."""
    found = []
    for path in sorted(conversations().glob("*.json")):
        messages = _header(path).get("messages") or []
        first = next((m.get("content") for m in messages if m.get("role") == "user"), "")
        found.append((path, " ".join(str(first).split())[:60]))
    return found


def model_of(path: Path) -> str | None:
    """The model that a saved conversation was with."""
    name = _header(path).get("model")
    return name if isinstance(name, str) else None


def _header(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


class Autosave:
    """Writes a conversation to one file after every turn.

    Args:
        path: the file to go on with; a new one if None.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or conversations() / f"{time.strftime('%Y-%m-%d %H.%M.%S')} {time.time_ns() % 10**6:06}.json"

    def save(self, session: ChatSession) -> None:
        """Writes it, and drops the oldest of all.

        Raises:
            SessionFileError: it cannot be written.
        """
        if not any(message["role"] == "user" for message in session.messages):
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise SessionFileError(f"{self.path.parent} cannot be made ({error.strerror})") from error
        session.save(self.path, cache=False)
        for old in sorted(self.path.parent.glob("*.json"))[:-KEPT]:
            old.unlink(missing_ok=True)


def export(messages: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Writes a conversation for people (`.md`) or programs (`.json`).

    Raises:
        OptionError: another ending, or the file cannot be written.
    """
    if path.suffix not in (".md", ".json"):
        raise OptionError(f"{path} ends in neither .md nor .json: name the format so")
    if not messages:
        raise OptionError("no message is there to export yet")
    text = markdown(messages) if path.suffix == ".md" else json.dumps(messages, ensure_ascii=False, indent=1) + "\n"
    try:
        path.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise OptionError(f"{path} cannot be written ({error.strerror}): choose another place") from error


def markdown(messages: Sequence[Mapping[str, Any]]) -> str:
    """A conversation as Markdown; thoughts are folded."""
    parts = []
    for message in messages:
        parts.append(f"## {message['role'].capitalize()}")
        thought = message.get("reasoning_content")
        if thought:
            parts.append(f"<details><summary>Thought</summary>\n\n{thought}\n\n</details>")
        if message.get("content"):
            parts.append(str(message["content"]))
        for call in message.get("tool_calls") or ():
            parts.append(f"`{call['function']['name']}({call['function']['arguments']})`")
    return "\n\n".join(parts) + "\n"


def code_blocks(text: str) -> list[str]:
    """The fenced code of an answer."""
    return [block for _, block in re.findall(r"^ *(`{3,}|~{3,})[^\n]*\n(.*?)\n? *^ *\1", text, re.M | re.S)]


def attachment(path: Path) -> str:
    """A file's text, for a message.

    Raises:
        OptionError: it cannot be read, is no text, or is too long.
    """
    try:
        if path.stat().st_size > LARGEST:
            raise OptionError(f"{path} has more than {LARGEST >> 20} MiB: give a part of it")
        text = path.read_text(encoding="utf-8")
    except UnicodeError as error:
        raise OptionError(f"{path} is no UTF-8 text: only text can be attached") from error
    except OSError as error:
        raise OptionError(f"{path} cannot be read ({error.strerror}): check the name") from error
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{path.name}:\n{fence}\n{text.rstrip()}\n{fence}"
