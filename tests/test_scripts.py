"""The set-up scripts, as far as they go without a network: from any folder, through a link, and with an old Python."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The scripts in a folder with a space in its name, and no environment yet."""
    folder = tmp_path / "a clone"
    shutil.copytree(ROOT / "scripts", folder / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def fake(folder: Path, name: str, body: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{body}\n")
    (folder / name).chmod(0o755)


def run(script: Path, path: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(script)], capture_output=True, text=True, check=False, cwd="/", env={"PATH": path, **environment}
    )


@pytest.mark.parametrize("script", ["setup", "chat", "test", "check"])
def test_an_older_python_gets_one_line_that_says_what_is_needed(project: Path, script: str) -> None:
    tools = project / "bin"
    for name in ("python3", "python3.11", "python3.12", "python3.13", "python"):
        fake(tools, name, "exit 1")  # every version check fails
    for name in ("sh", "cksum", "dirname", "readlink", "cat", "mv", "rm"):
        found = shutil.which(name)
        assert found is not None
        (tools / name).symlink_to(found)
    done = run(project / "scripts" / script, str(tools))
    assert done.returncode == 1 and done.stdout == ""
    assert len(done.stderr.splitlines()) == 1 and "3.11" in done.stderr
    assert not (project / ".venv").exists()


def recorded(project: Path, *, with_uv: bool) -> str:
    """The commands that a set-up would run, by way of a Python and a uv that only write down what they were asked."""
    tools, log = project / "bin", project / "log"
    make = 'case "$*" in *"-m venv"*) for last; do :; done; mkdir -p "$last/bin"; cp "$0" "$last/bin/python";; esac'
    fake(tools, "python3", f'echo "python $*" >> "{log}"\n{make}')
    if with_uv:
        made = f'for last; do :; done; mkdir -p "$last/bin"; cp "{tools}/python3" "$last/bin/python"'
        made = f'if [ "$1" = venv ]; then {made}; fi'
        fake(tools, "uv", f'echo "uv $*" >> "{log}"\n{made}')
    path = f"{tools}{os.pathsep}/usr/bin{os.pathsep}/bin"
    link = project.parent / "link"
    link.symlink_to(project / "scripts" / "setup")
    assert run(link, path).returncode == 0
    first = log.read_text()
    assert run(link, path).returncode == 0
    assert log.read_text() == first, "a second run had something to do"
    (project / "pyproject.toml").write_text((project / "pyproject.toml").read_text() + "\n# changed\n")
    assert run(link, path).returncode == 0
    assert log.read_text() != first, "a changed pyproject.toml was not noticed"
    return first


def test_pip_installs_where_there_is_no_uv_and_nothing_is_done_twice(project: Path) -> None:
    commands = recorded(project, with_uv=False)
    assert "-m venv" in commands and "-m pip install" in commands and "uv" not in commands


def test_uv_is_used_where_it_is_found(project: Path) -> None:
    commands = recorded(project, with_uv=True)
    assert "uv venv" in commands and "uv pip install" in commands and "-m pip install" not in commands
