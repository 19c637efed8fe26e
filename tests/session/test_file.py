"""Saved conversations: whole or not at all, readable, and refused where they belong to another model."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mlx_reasoning import ChatSession, LoadedModel, load
from mlx_reasoning.engine import saved
from mlx_reasoning.engine.cache import make_cache
from mlx_reasoning.errors import SessionFileError

from ..conftest import Tiny
from ..tiny import CHATML_TEMPLATE, write_checkpoint
from .scripted import thought, told

MESSAGES = [
    {"role": "user", "content": "Q ä 思 \u2028?"},
    {"role": "assistant", "content": "A.", "reasoning_content": "T."},
]


@pytest.fixture
def session(tiny: Tiny) -> ChatSession:
    session = ChatSession(tiny("qwen3"), max_tokens=60)
    told(session, thought("qwen3", "T.", "A."))
    session.respond("Q ä 思 \u2028?")
    return session


def header(path: Path) -> dict[str, Any]:
    text: dict[str, Any] = json.loads(path.read_bytes().partition(saved._LINE)[0])
    return text


def test_the_head_of_a_file_is_read_by_people_and_programs(session: ChatSession, tmp_path: Path) -> None:
    with_cache, plain = tmp_path / "with", tmp_path / "plain.json"
    session.save(with_cache)
    session.save(str(plain), cache=False)
    assert header(with_cache)["messages"] == json.loads(plain.read_text("utf-8"))["messages"] == MESSAGES
    assert "思" in plain.read_text("utf-8")
    assert plain.stat().st_size < 3000 < with_cache.stat().st_size
    for path in (with_cache, plain):
        assert ChatSession.load(path, session.model).messages == MESSAGES


@pytest.mark.parametrize("wrapped", [True, False])
def test_any_openai_messages_are_a_conversation(wrapped: bool, session: ChatSession, tmp_path: Path) -> None:
    given = [MESSAGES[0], {"role": "assistant", "content": "<think>\nT.\n</think>\n\nA."}]
    path = tmp_path / "talk.json"
    path.write_text(json.dumps({"messages": given} if wrapped else given))
    assert ChatSession.load(path, session.model).messages == MESSAGES


def test_a_conversation_that_was_loaded_saves_the_same(session: ChatSession, tmp_path: Path) -> None:
    session.save(tmp_path / "talk")
    again = ChatSession.load(tmp_path / "talk", session.model)
    again.save(tmp_path / "copy")
    assert header(tmp_path / "copy") == header(tmp_path / "talk")
    assert (tmp_path / "copy").read_bytes().partition(saved._LINE)[2] == (
        (tmp_path / "talk").read_bytes().partition(saved._LINE)[2]
    )


def other_model(tmp_path: Path) -> LoadedModel:
    return load(write_checkpoint(tmp_path / "other", "qwen3", seed=7))


def other_template(tmp_path: Path) -> LoadedModel:
    return load(write_checkpoint(tmp_path / "other", "qwen3", template=CHATML_TEMPLATE + "{#- another -#}"))


def other_type(tmp_path: Path) -> LoadedModel:
    return load(write_checkpoint(tmp_path / "other", "gemma4_text"))


@pytest.mark.parametrize(("other", "said"), [
    (other_model, "the weights"), (other_template, "the chat template"), (other_type, "the type of model"),
])  # fmt: skip
def test_another_model_is_refused_with_what_differs(
    other: Callable[[Path], LoadedModel], said: str, session: ChatSession, tmp_path: Path
) -> None:
    session.save(tmp_path / "talk")
    model = other(tmp_path)
    with pytest.raises(SessionFileError, match=f"differs in .*{said}.*strict=False"):
        ChatSession.load(tmp_path / "talk", model)
    taken = ChatSession.load(tmp_path / "talk", model, strict=False)
    assert taken.messages == MESSAGES and taken._context._cache is None


def test_a_newer_version_is_refused(session: ChatSession, tmp_path: Path) -> None:
    path = tmp_path / "talk"
    session.save(path, cache=False)
    path.write_text(json.dumps(header(path) | {"version": 99}))
    with pytest.raises(SessionFileError, match="another version"):
        ChatSession.load(path, session.model)


DAMAGE: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("empty", lambda content: b""),
    ("cut in its head", lambda content: content[:40]),
    ("cut in its cache", lambda content: content[:-100]),
    ("cut behind its head", lambda content: content[: content.index(saved._LINE) + len(saved._LINE)]),
    ("noise for a cache", lambda content: content[: content.index(saved._LINE) + len(saved._LINE)] + b"\xff" * 999),
    ("noise", lambda content: bytes(range(256)) * 9),
    ("no messages", lambda content: b'{"format": "mlx_reasoning session", "version": 1}'),
    ("a number", lambda content: b"7"),
    ("messages of another kind", lambda content: b'{"messages": {"a": 1}}'),
    ("fewer ids than the cache", lambda content: content.replace(b'"cached_ids": [\n', b'"cached_ids": [\n  5,\n')),
]


@pytest.mark.parametrize(("how", "damage"), DAMAGE, ids=[how for how, _ in DAMAGE])
def test_a_damaged_file_is_said(
    how: str, damage: Callable[[bytes], bytes], session: ChatSession, tmp_path: Path
) -> None:
    path = tmp_path / "talk"
    session.save(path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(SessionFileError, match="talk"):
        ChatSession.load(path, session.model)
    if "cache" in how or "behind" in how:
        assert ChatSession.load(path, session.model, strict=False).messages == MESSAGES


@pytest.mark.parametrize("message", [{"role": "nobody", "content": "x"}, "text", {"content": "x"}], ids=str)
def test_messages_that_are_none_are_refused(message: Any, session: ChatSession, tmp_path: Path) -> None:
    path = tmp_path / "talk"
    path.write_text(json.dumps([message]))
    with pytest.raises(Exception, match="message") as caught:
        ChatSession.load(path, session.model)
    assert type(caught.value).__module__ == "mlx_reasoning.errors"


def test_there_is_nothing_to_load_and_nowhere_to_save(session: ChatSession, tmp_path: Path) -> None:
    with pytest.raises(SessionFileError, match=r"cannot be read \(No such file"):
        ChatSession.load(tmp_path / "none", session.model)
    with pytest.raises(SessionFileError, match="cannot be written"):
        session.save(tmp_path / "no" / "folder" / "talk")
    with pytest.raises(SessionFileError, match="cannot be written"):
        session.save(tmp_path)
    assert session.messages == MESSAGES


@pytest.mark.parametrize("fails", ["save_prompt_cache", "shutil.copyfileobj", "os.fsync", "os.replace"])
@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["full", "interrupt"]
)
def test_a_save_that_fails_leaves_the_old_file_and_nothing_else(
    fails: str, error: BaseException, session: ChatSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "talk"
    session.save(path, cache=False)
    before = path.read_bytes()

    def fail(*arguments: Any, **keywords: Any) -> None:
        raise error

    monkeypatch.setattr(f"mlx_reasoning.engine.saved.{fails}", fail)
    with pytest.raises(SessionFileError if isinstance(error, OSError) else KeyboardInterrupt):
        session.save(path)
    monkeypatch.undo()
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["talk"]
    session.save(path)
    assert ChatSession.load(path, session.model).messages == MESSAGES


SAVER = """
import sys
from mlx_reasoning import ChatSession, load
session = ChatSession(load(sys.argv[1]), messages=[{"role": "user", "content": "x" * 200000}])
print("ready", flush=True)
while True:
    session.save(sys.argv[2], cache=False)
"""


def test_a_process_that_is_killed_leaves_a_whole_file(session: ChatSession, tmp_path: Path) -> None:
    path = tmp_path / "talk"
    for moment in (0.0, 0.005, 0.03):
        session.save(path)
        child = subprocess.Popen(
            [sys.executable, "-c", SAVER, str(session.model.path), str(path)], stdout=subprocess.PIPE
        )
        assert child.stdout is not None and child.stdout.readline() == b"ready\n"
        try:
            child.wait(moment or 0.001)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        content = ChatSession.load(path, session.model).messages[0]["content"]
        assert content in (MESSAGES[0]["content"], "x" * 200000)


# A cache of a long beginning.


@pytest.mark.parametrize("kind", ["qwen3", "qwen3_5", "gemma4_text"])
def test_prompts_begin_with_a_cache_from_disk(kind: str, tiny: Tiny, tmp_path: Path) -> None:
    model = tiny(kind)
    rules = "Be brief. " * 20
    made = ChatSession(model, rules)
    made.warm()
    path = tmp_path / "rules"
    made.save(path)
    loaded = load(model.path, prompt_cache=path)
    cold = ChatSession(model, rules, max_tokens=12)
    warm = [ChatSession(loaded, rules, max_tokens=12) for _ in range(2)]
    for text in ("Q?", "R?"):
        want = cold.respond(text)
        for session in warm:
            got = session.respond(text)
            assert got.content == want.content and (got.usage.cached_tokens or 0) > 100
    elsewhere = ChatSession(loaded, "Other rules.", max_tokens=12).respond("Q?")
    assert elsewhere.content == ChatSession(model, "Other rules.", max_tokens=12).respond("Q?").content


def test_a_file_without_a_cache_is_none(session: ChatSession, tmp_path: Path) -> None:
    session.save(tmp_path / "plain", cache=False)
    with pytest.raises(SessionFileError, match="holds no prompt cache"):
        load(session.model.path, prompt_cache=tmp_path / "plain")
    session.save(tmp_path / "talk")
    with pytest.raises(SessionFileError, match="make the cache again"):
        load(write_checkpoint(tmp_path / "other", "qwen3", seed=9), prompt_cache=tmp_path / "talk")
    assert make_cache(session.model.model).ids == []
