"""From a name on the command line to a loaded model, with a line about what is going on."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from .output import note

if TYPE_CHECKING:
    from ..engine.loading import LoadedModel


def load_model(name: str | None, prompt_cache: str | None = None) -> LoadedModel:
    """Loads the model of this name, or the embedded one.

    Raises:
        LoadError, SessionFileError: with what to do next.
    """
    from ..engine.loading import load

    if name is not None and sys.stderr.isatty():
        note(f"loading {name} ...")
    return load(name or "demo", prompt_cache=prompt_cache)
