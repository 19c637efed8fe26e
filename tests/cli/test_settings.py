"""The settings file, the environment and the flags; the table of families; the splitter on stdin."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ..sums import SHORT, SUM
from .test_commands import run


def sources(file: Path, **environment: str) -> dict[str, tuple[object, str]]:
    done = run("config", "--json", MLX_REASONING_CONFIG=str(file), **environment)
    assert done.returncode == 0, done.stderr
    return {row["name"]: (row["value"], row["source"]) for row in json.loads(done.stdout)["settings"]}


def test_a_flag_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    assert sources(file)["show_thinking"] == ("folded", "default")
    file.write_text('thinking = false\nmax_tokens = 3\nshow_thinking = "full"\n', encoding="utf-8")
    found = sources(file, MLX_REASONING_MAX_TOKENS="5")
    assert found["thinking"] == (False, str(file)) and found["max_tokens"] == ("5", "MLX_REASONING_MAX_TOKENS")
    assert found["model"] == ("demo", "default")

    def tokens(*flags: str, **environment: str) -> tuple[int, bool]:
        done = run("generate", "--json", *flags, SUM[0], MLX_REASONING_CONFIG=str(file), **environment)
        events = [json.loads(line) for line in done.stdout.splitlines()]
        return events[-1]["usage"]["completion_tokens"], any(event["type"] == "reasoning" for event in events)

    assert tokens() == (3, False)
    assert tokens(MLX_REASONING_MAX_TOKENS="5") == (5, False)
    assert tokens("--max-tokens", "7", "--thinking", MLX_REASONING_MAX_TOKENS="5") == (7, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("thinking = ", "no TOML"),
        ("thnking = true", "did you mean thinking?"),
        ("thinking = 'yes'", "true or false"),
        ("budget = true", "a whole number"),
        ("show_thinking = 'sometimes'", "full or folded or hidden"),
    ],
)
def test_what_is_wrong_with_the_file_is_said_in_a_line(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text, encoding="utf-8")
    for command in (("config",), ("generate", "hi")):
        done = run(*command, MLX_REASONING_CONFIG=str(file))
        assert done.returncode == 1 and said in done.stderr and str(file) in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_the_table_of_families() -> None:
    rows = json.loads(run("families", "--json").stdout)
    names = {row["family"] for row in rows}
    assert {"qwen3", "gemma4", "deepseek-r1"} <= names and len(rows) > 20
    shown = run("families").stdout.splitlines()
    assert len(shown) == len(rows) and any("<think> … </think>" in line for line in shown)


def split(text: str, *arguments: str) -> list[dict[str, object]]:
    done = run("split", *arguments, text=text)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def joined(events: list[dict[str, object]], kind: str) -> str:
    return "".join(str(event["text"]) for event in events if event["type"] == kind)


def test_text_on_stdin_is_split() -> None:
    events = split("<think>\nHmm 思.\n</think>\n\nYes.")
    assert (joined(events, "reasoning").strip(), joined(events, "chunk").strip()) == ("Hmm 思.", "Yes.")
    events = split("Hmm.</think>Yes.", "--protocol", "deepseek-r1", "--inside")
    assert (joined(events, "reasoning"), joined(events, "chunk")) == ("Hmm.", "Yes.")
    call = '<tool_call>\n{"name": "f", "arguments": {"x": 1}}\n</tool_call>'
    assert [event["type"] for event in split(call)] == ["tool_call"]
    done = run("split", "--protocol", "qwen4", text="")
    assert done.returncode == 1 and "qwen3" in done.stderr


def test_a_conversation_from_a_file_and_its_costs(tmp_path: Path) -> None:
    file = tmp_path / "chat.json"
    messages = [{"role": "user", "content": SHORT[0]}, {"role": "assistant", "content": SHORT[1]}]
    file.write_text(json.dumps(messages), encoding="utf-8")
    done = run("generate", "--no-reasoning", "--stats", "--messages", str(file), "And plus 1?")
    assert done.returncode == 0 and done.stdout == "15 + 1 = 16\n"
    assert "prompt: " in done.stderr and "tokens/s" in done.stderr
    file.write_text("{}", encoding="utf-8")
    done = run("generate", "--messages", str(file))
    assert done.returncode == 1 and "no list of messages" in done.stderr
