"""Names to folders, through huggingface_hub's own code, against a stand-in for the Hub on loopback.

huggingface_hub reads its address when it is imported, so each situation runs in a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mlx_reasoning.engine.hub import locate
from mlx_reasoning.errors import ModelNotFoundError, NotAModelError
from tests.hub import REPO, hub
from tests.tiny import write_checkpoint

_DRIVER = """
import json, sys
from mlx_reasoning.engine.hub import locate
from mlx_reasoning.errors import MLXReasoningError
answers = []
for name, revision in json.loads(sys.argv[1]):
    seen = []
    try:
        path = locate(name, revision=revision, progress=lambda done, total: seen.append((done, total)))
        answers.append([sorted(file.name for file in path.iterdir()), max(seen, default=None)])
    except MLXReasoningError as error:
        answers.append([type(error).__name__, str(error)])
print(json.dumps(answers))
"""


def ask(endpoint: str, home: Path, *calls: tuple[str, str | None], offline: bool = False) -> tuple[list[Any], str]:
    environment = {**os.environ, "HF_ENDPOINT": endpoint, "HF_HOME": str(home), "HF_HUB_OFFLINE": str(int(offline))}
    environment |= {"HF_HUB_ETAG_TIMEOUT": "2", "HF_HUB_DISABLE_TELEMETRY": "1", "HF_TOKEN": ""}
    done = subprocess.run(
        [sys.executable, "-c", _DRIVER, json.dumps(calls)], env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    answers: list[Any] = json.loads(done.stdout)
    return answers, done.stderr


def test_a_repository_is_downloaded_and_then_cached(tmp_path: Path) -> None:
    source = write_checkpoint(tmp_path / "source", "llama")
    (source / "README.md").write_text("not needed")
    (source / "consolidated.safetensors").write_text("not needed either")
    home = tmp_path / "home"
    wanted = sorted({file.name for file in source.iterdir()} - {"README.md", "consolidated.safetensors"})
    total = sum((source / name).stat().st_size for name in wanted)
    with hub(source) as endpoint:
        answers, stderr = ask(
            endpoint,
            home,
            (REPO, None),
            (REPO, "v1"),
            (REPO, "v9"),
            ("someone/gated", None),
            ("someone/absent", None),
            ("someone/private", None),
            ("someone/broken", None),
            ("some one/tiny", None),
        )
    assert answers[0] == [wanted, [total, total]]
    assert answers[1][0] == wanted
    assert "Traceback" not in stderr and "%|" not in stderr
    kinds = [kind for kind, _ in answers[2:]]
    assert kinds == [
        "ModelNotFoundError",
        "HubError",
        "ModelNotFoundError",
        "HubError",
        "HubError",
        "ModelNotFoundError",
    ]
    messages = " | ".join(message for _, message in answers[2:])
    for expected in ("no revision 'v9'", "accept its terms", "check the spelling", "hf auth login", "answered 500"):
        assert expected in messages

    gone = "http://127.0.0.1:9"  # the discard port: nobody listens
    answers, _ = ask(gone, home, (REPO, None), ("someone/else", None))
    assert answers[0][0] == wanted
    assert answers[1][0] == "HubError" and "cannot be reached" in answers[1][1]

    answers, _ = ask(gone, home, (REPO, None), ("someone/else", None), offline=True)
    assert answers[0][0] == wanted
    assert answers[1][0] == "HubError" and "HF_HUB_OFFLINE" in answers[1][1]


def test_a_half_downloaded_repository_is_not_taken_for_whole(tmp_path: Path) -> None:
    source = write_checkpoint(tmp_path / "source", "llama")
    home = tmp_path / "home"
    with hub(source) as endpoint:
        ask(endpoint, home, (REPO, None))
    next(home.rglob("model.safetensors")).unlink()
    answers, _ = ask("http://127.0.0.1:9", home, (REPO, None), offline=True)
    assert answers[0][0] == "HubError" and "not whole" in answers[0][1]


@pytest.mark.parametrize(
    "name", ["nowhere", "./nowhere", "../no/where", "/no/where", "~/no-where-at-all", "a/b/c", "a/"]
)
def test_what_cannot_be_a_repository_is_a_folder_that_is_missing(name: str) -> None:
    with pytest.raises(ModelNotFoundError, match="no such folder"):
        locate(name)


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(b"")
    with pytest.raises(NotAModelError, match="is a file"):
        locate(file)


def test_demo_is_always_the_embedded_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "demo").mkdir()
    monkeypatch.chdir(tmp_path)
    assert locate("demo").parent.name == "mlx_reasoning"
    assert locate("./demo") == Path("demo")
