"""Tiny checkpoints, written once a session and loaded once; long runs with --slow only."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mlx_reasoning.engine.loading import LoadedModel, load
from tests.tiny import write_checkpoint


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run the long tests too")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--slow"):
        for item in items:
            if "slow" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="a long run: pass --slow"))


Tiny = Callable[[str], LoadedModel]


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    """A loaded tiny model of a kind (see `tests.tiny.SHAPES`); do not change it."""
    folder: Path = tmp_path_factory.mktemp("tiny")
    loaded: dict[str, LoadedModel] = {}

    def of(kind: str) -> LoadedModel:
        if kind not in loaded:
            loaded[kind] = load(write_checkpoint(folder / kind, kind))
        return loaded[kind]

    return of


@pytest.fixture(scope="session")
def demo() -> LoadedModel:
    """The embedded model; do not change it."""
    return load("demo")
