"""What is in the Hub's cache, and how it comes there: against a stand-in for the Hub."""

from __future__ import annotations

import json
from pathlib import Path

from mlx_reasoning.cli.models import CHECKPOINTS, suggestions

from ..hub import REPO, hub
from ..tiny import write_checkpoint
from .test_commands import run


def test_a_model_is_downloaded_and_listed(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "model", "qwen3")
    with hub(folder) as address:
        online = {"HF_ENDPOINT": address, "HF_HOME": str(tmp_path / "home"), "HF_HUB_DISABLE_XET": "1"}
        empty = run("models", **online)
        assert empty.returncode == 0 and empty.stdout == "" and "models get" in empty.stderr
        done = run("models", "get", REPO, **online)
        assert done.returncode == 0, done.stderr
        assert (Path(done.stdout.strip()) / "config.json").is_file()
        absent = run("models", "get", "someone/absent", **online)
        assert absent.returncode == 1 and absent.stdout == "" and len(absent.stderr.splitlines()) == 1
    offline = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path / "home")}
    (row,) = json.loads(run("models", "--json", **offline).stdout)
    assert (row["model"], row["family"], row["thinks"]) == (REPO, "qwen3", True)
    assert row["bytes"] > 1000 and row["last_used"] > 0
    shown = run("models", **offline).stdout
    assert REPO in shown and "thinks" in shown and "GB" in shown
    assert run("generate", "-m", REPO, "--max-tokens", "3", "hi", **offline).returncode == 0


def test_three_checkpoints_that_fit_are_named() -> None:
    sizes = dict(CHECKPOINTS)
    for gigabytes in (8, 16, 64, 512):
        found = suggestions(gigabytes << 30)
        assert len(found) == 3 and all(sizes[name] < gigabytes for name in found)
    assert suggestions(1 << 30) == [name for name, _ in reversed(CHECKPOINTS[:3])]
