"""Every example, and every Python block of the README and the docs, runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from .sums import SUM

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = [
    (page, number, block)
    for page in PAGES
    for number, block in enumerate(re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S))
]
EXPECTED = {
    "events.py": SUM[1],
    "split_text.py": "It is `<think>` that opens a thought.",
    "tool_call.py": "It is sunny and 18 degrees in Paris.",
    "thinking_off.py": SUM[1],
    "own_markers.py": "cut off inside its thought: True",
}


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
def test_an_example_runs_and_says_what_it_should(path: Path) -> None:
    assert EXPECTED[path.name] in run(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("page", "number", "block"), BLOCKS, ids=[f"{page.name}-{number}" for page, number, _ in BLOCKS]
)
def test_a_block_of_the_documentation_runs(page: Path, number: int, block: str) -> None:
    run(block)


def test_every_page_that_is_linked_is_there() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_five_examples_are_all_checked() -> None:
    assert set(EXPECTED) == {path.name for path in (ROOT / "examples").glob("*.py")}
