"""Settings: one TOML file under the user's configuration folder, below the environment and the flags.

thinking = true
temperature = 0.6
show_thinking = "full"
"""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import OptionError

APP = "mlx-reasoning"
SHOWN = ("full", "folded", "hidden")


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: what it takes, what it is where nobody says, and what it is for."""

    kind: type
    help: str
    default: Any = None
    choices: tuple[str, ...] = ()

    def accepts(self, value: Any) -> bool:
        if isinstance(value, bool) is not (self.kind is bool):
            return False
        kinds = (int, float) if self.kind is float else self.kind
        return isinstance(value, kinds) and (not self.choices or value in self.choices)


SETTINGS = {
    "model": Setting(str, "the model to load", "demo"),
    "system": Setting(str, "instructions before the conversation"),
    "thinking": Setting(bool, "think first, or answer at once"),
    "effort": Setting(str, "how hard to think, where the model has efforts"),
    "budget": Setting(int, "the most tokens of a thought"),
    "max_tokens": Setting(int, "the most tokens of a turn"),
    "temperature": Setting(float, "0 is greedy"),
    "top_p": Setting(float, "nucleus sampling"),
    "top_k": Setting(int, "sample among the k likeliest tokens"),
    "min_p": Setting(float, "drop tokens less likely than this share of the likeliest"),
    "seed": Setting(int, "for the same random numbers again"),
    "show_thinking": Setting(str, "thoughts in the terminal", "folded", SHOWN),
    "autosave": Setting(bool, "keep conversations, for --resume", True),
}


def configuration() -> Path:
    """The file of settings; MLX_REASONING_CONFIG names another one."""
    named = os.environ.get("MLX_REASONING_CONFIG")
    if named:
        return Path(named)
    from platformdirs import user_config_path

    return user_config_path(APP) / "config.toml"


def data_folder() -> Path:
    """Where the history of the input line and the saved conversations are; MLX_REASONING_DATA names another folder."""
    named = os.environ.get("MLX_REASONING_DATA")
    if named:
        return Path(named)
    from platformdirs import user_data_path

    return user_data_path(APP)


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return f"MLX_REASONING_{name.upper()}"


def read_settings() -> dict[str, Any]:
    """What the file says.

    Raises:
        OptionError: it is no TOML, has an unknown name, or a value of the wrong kind; with the file's name.
    """
    path = configuration()
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeError) as error:
        raise OptionError(f"{path} cannot be read ({getattr(error, 'strerror', None) or error})") from error
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise OptionError(f"{path} is no TOML: {error}") from error
    for name, value in found.items():
        setting = SETTINGS.get(name)
        if setting is None:
            near = difflib.get_close_matches(name, SETTINGS, n=1)
            advice = f"did you mean {near[0]}?" if near else f"there are {', '.join(SETTINGS)}"
            raise OptionError(f"{path}: no setting {name!r}: {advice}")
        if not setting.accepts(value):
            wanted = " or ".join(setting.choices) or _WORDS[setting.kind]
            raise OptionError(f"{path}: {name} is {value!r}, and it takes {wanted}")
    return found


_WORDS: dict[type, str] = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}


def run_config(*, as_json: bool, echo: Callable[[str], object] = print) -> int:
    """Prints each setting, its value, and where that came from; gives the exit code."""
    found, path = read_settings(), configuration()
    rows = []
    for name, setting in SETTINGS.items():
        value, source = setting.default, "default"
        if name in found:
            value, source = found[name], str(path)
        if os.environ.get(variable(name)):
            value, source = os.environ[variable(name)], variable(name)
        rows.append({"name": name, "value": value, "source": source, "help": setting.help})
    if as_json:
        echo(json.dumps({"file": str(path), "exists": path.exists(), "settings": rows}, ensure_ascii=False, indent=2))
        return 0
    echo(f"{path}{'' if path.exists() else ' (not there yet)'}")
    for row in rows:
        shown = "-" if row["value"] is None else str(row["value"])
        echo(f"{row['name']:14} {shown:12} {row['source']:32} {row['help']}")
    return 0
