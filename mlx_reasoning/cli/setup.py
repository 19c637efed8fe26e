"""From a name on the command line to a loaded model, with a line about what is going on."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from .output import note

if TYPE_CHECKING:
    from ..engine.hub import DownloadProgress
    from ..engine.loading import LoadedModel


def load_model(name: str | None, prompt_cache: str | None = None) -> LoadedModel:
    """Loads the model of this name, or the embedded one.

    Raises:
        LoadError, SessionFileError: with what to do next.
    """
    from ..engine.loading import load

    if name is None:
        return load("demo", prompt_cache=prompt_cache)
    if sys.stderr.isatty():
        note(f"loading {name} ...")
    with _bar(name) as progress:
        return load(name, prompt_cache=prompt_cache, progress=progress)


def download(name: str, revision: str | None = None) -> Path:
    """The folder of a model, downloaded where it is not there yet.

    Raises:
        LoadError: with what to do next.
    """
    from ..engine.hub import locate

    with _bar(name) as progress:
        return locate(name, revision=revision, progress=progress)


@contextmanager
def _bar(name: str) -> Iterator[DownloadProgress]:
    """A bar on a terminal, a line for every tenth in a log; nothing where nothing is downloaded."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    console = Console(stderr=True, highlight=False)
    bar = Progress("{task.description}", BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn(),
                   console=console, transient=True)  # fmt: skip
    task, tenth = None, 0

    def progress(done: int, total: int) -> None:
        nonlocal task, tenth
        if not console.is_terminal:
            if total and done * 10 // total > tenth:
                tenth = done * 10 // total
                note(f"downloading {name}: {done / 1e6:,.0f} of {total / 1e6:,.0f} MB ({tenth * 10} %)")
            return
        if task is None:
            bar.start()
            task = bar.add_task(f"downloading {name}")
        bar.update(task, completed=done, total=total or None)

    try:
        yield progress
    finally:
        if task is not None:
            bar.stop()
