"""Tools from a file: a list in OpenAI's form (`.json`), or Python functions that run when the model calls (`.py`)."""

from __future__ import annotations

import inspect
import json
import runpy
from pathlib import Path
from typing import Any

from ..errors import OptionError


def read_text(path: Path) -> str:
    """A file of UTF-8 text.

    Raises:
        OptionError: it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise OptionError(f"{path} cannot be read ({getattr(error, 'strerror', None) or error})") from error


def read_json_list(path: Path, what: str) -> list[Any]:
    """A JSON file with a list.

    Raises:
        OptionError: it is none.
    """
    try:
        found = json.loads(read_text(path))
    except ValueError as error:
        raise OptionError(f"{path} is no JSON ({error})") from error
    if not isinstance(found, list):
        raise OptionError(f"{path} is no list of {what}")
    return found


def read_tools(path: Path) -> list[Any]:
    """The tools of a file.

    Raises:
        OptionError: it cannot be read, or has none.
    """
    if path.suffix != ".py":
        return read_json_list(path, "tools in OpenAI's form")
    read_text(path)
    try:
        names = runpy.run_path(str(path))
    except Exception as error:
        raise OptionError(f"{path} failed ({type(error).__name__}: {error})") from error
    module = names.get("__name__")
    found = [
        value
        for name, value in names.items()
        if inspect.isfunction(value) and value.__module__ == module and not name.startswith("_")
    ]
    if not found:
        raise OptionError(f"{path} defines no function: each one without a leading underscore becomes a tool")
    return found


def schemas(tools: list[Any]) -> list[Any]:
    """What a template is told of them.

    Raises:
        OptionError: one is no tool.
    """
    from ..session.tools import Toolbox

    return list(Toolbox(tools, None).schemas)
