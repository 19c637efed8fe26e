"""The rooms: a module imports only from rooms above it, mlx stays in the engine, and only the terminal prints."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "mlx_reasoning"

ROOMS: dict[str, set[str]] = {
    "errors": set(),
    "messages": {"errors"},
    "events": {"errors", "messages"},
    "protocols": {"errors", "messages", "events"},
    "decode": {"errors", "messages", "events", "protocols"},
    "prompt": {"errors", "messages", "events", "protocols", "decode"},
    "demo": set(),
    "engine": {"errors", "messages", "events", "protocols", "decode", "prompt", "demo"},
    "turn": {"errors", "messages", "events", "protocols", "decode", "engine"},
    "generation": {"errors", "messages", "events", "protocols", "decode", "prompt", "engine", "turn"},
    "session": {"errors", "messages", "events", "protocols", "decode", "prompt", "engine", "turn", "generation"},
    "cli": {"errors", "messages", "events", "protocols", "decode", "prompt", "engine", "generation", "session"},
}
"""Each room, and the rooms that it may import from; itself goes without saying."""

MAY_IMPORT_MLX = {"engine", "demo"}
DECODE_ASKS_FOR_PARSERS = "mlx_lm.tool_parsers"  # by name, when a call is first parsed
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_of(path: Path) -> Iterator[tuple[str, int]]:
    """Every imported module, absolute, wherever in the file the import stands."""
    package = ["mlx_reasoning", *path.relative_to(PACKAGE).parent.parts]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            yield ".".join([*base, *([node.module] if node.module else [])]), node.lineno
            if node.level and not node.module:
                for alias in node.names:
                    yield ".".join([*base, alias.name]), node.lineno


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_only_from_rooms_above_it(path: Path) -> None:
    room = room_of(path)
    assert room in ROOMS, f"{room} is in no row of the table"
    for name, line in imports_of(path):
        parts = name.split(".")
        if parts[0] == "mlx_reasoning" and len(parts) > 1:
            assert parts[1] == room or parts[1] in ROOMS[room], f"{path}:{line} imports {name}"
        if parts[0] in ("mlx", "mlx_lm"):
            assert room in MAY_IMPORT_MLX, f"{path}:{line} imports {name}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_the_terminal_prints(path: Path) -> None:
    if room_of(path) == "cli":
        return
    tree = ast.parse(path.read_text(encoding="utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    assert not [node.lineno for node in calls if isinstance(node.func, ast.Name) and node.func.id in ("print", "input")]


CEILING = 300
ALLOWED = {"reasoning.py": 400, "decoder.py": 310, "generation.py": 310, "prompt.py": 340}
"""Files that are one thing and longer: a state machine, a pipeline, a turn, a rendering."""


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_file_outgrows_its_reader(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= ALLOWED.get(path.name, CEILING), path


def test_the_table_has_no_row_for_a_room_that_is_gone() -> None:
    assert {room_of(path) for path in MODULES} == set(ROOMS)
