"""The commands of a chat, with lines from a pipe: what they do, and what they say when they cannot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import mlx_reasoning.cli.terminal.commands  # noqa: F401 - declares them
from mlx_reasoning.cli.terminal.registry import COMMANDS

from ..sums import SHORT, SUM, THOUGHT, TWO_TURNS
from ..tiny import write_checkpoint
from .test_commands import run

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The current weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
FUNCTION = '''
def get_weather(city: str) -> str:
    """The current weather in a city.

    Args:
        city: The city.
    """
    return "sunny, 21 C"


def _private() -> None:
    pass
'''


def chat(*lines: str, arguments: tuple[str, ...] = ()) -> tuple[str, str, int]:
    done = run("chat", "demo", *arguments, text="".join(line + "\n" for line in lines))
    assert "Traceback" not in done.stderr
    return done.stdout, done.stderr, done.returncode


def exported(*lines: str, folder: Path, arguments: tuple[str, ...] = ()) -> tuple[list[dict[str, object]], str, str]:
    """The messages at the end, what was answered, and what was said besides."""
    path = folder / "out.json"
    out, said, _ = chat(*lines, f"/export {path}", arguments=arguments)
    return json.loads(path.read_text(encoding="utf-8")), out, said


def test_help_lists_every_command_with_its_help() -> None:
    out, said, code = chat("/help")
    assert (out, code) == ("", 0)
    assert all(f"/{command.name}" in said and command.help in said for command in COMMANDS.values())


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("/think maybe", "on, off, auto"),
        ("/think", "on, off, auto"),
        ("/effort enormous", "low, medium, high"),
        ("/budget lots", "a number of tokens, or none"),
        ("/fork sideways", "back"),
        ("/fork back", "no fork"),
        ("/copy everything", "code, thought"),
        ("/show 7", "there are 0"),
        ("/edit", "nothing to edit"),
        ("/undo", "nothing"),
        ("/retry", "nothing"),
        ("/continue", "nothing"),
        ("/stats", "no turn"),
        ("/save", "name the file"),
        ("/save /no/such/folder/x.json", "/no/such/folder"),
        ("/load /no/such.json", "/no/such.json"),
        ("/export", "name the file"),
        ("/export chat.txt", ".md nor .json"),
        ("/attach", "name the file"),
        ("/attach /no/such.txt", "/no/such.txt"),
        ("/tools /no/such.json", "/no/such.json"),
        ("/model /no/such", "/no/such"),
        ("/thnik on", "/think"),
        ("/xyzzy", "/help"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line_with_the_choices_and_nothing_is_sent(line: str, names: str) -> None:
    out, said, code = chat(line, arguments=("--no-reasoning",))
    errors = [text for text in said.splitlines() if text.startswith("error: ")]
    assert out == "" and len(errors) == 1 and names in errors[0], said
    assert code == 1


def test_switches_last_for_the_turns_that_follow(tmp_path: Path) -> None:
    said, _, notes = exported("/think off", SHORT[0], "/think auto", SHORT[0], folder=tmp_path)
    assert "thinking: off" in notes
    assert [bool(message.get("reasoning_content")) for message in said if message["role"] == "assistant"] == [
        False,
        True,
    ]
    _, notes, code = chat("/budget 3", SUM[0], "/budget none", "/stats", arguments=("--no-reasoning",))
    assert code == 0 and "budget: 3" in notes and "3 of them thought" in notes


def test_instructions_are_shown_set_and_dropped(tmp_path: Path) -> None:
    messages, _, said = exported("/system", "/system Be brief.", SHORT[0], "/system", folder=tmp_path)
    assert messages[0] == {"role": "system", "content": "Be brief."} and len(messages) == 3
    assert "no instructions" in said and said.count("Be brief.") == 1
    messages, _, _ = exported(SHORT[0], "/system none", folder=tmp_path, arguments=("--system", "Be brief."))
    assert [message["role"] for message in messages] == ["user", "assistant"]


def test_undo_retry_edit_and_fork(tmp_path: Path) -> None:
    (first, one), (second, two) = TWO_TURNS
    messages, out, _ = exported(first, second, "/undo", "/retry", folder=tmp_path)
    assert out.splitlines() == [one, two, one] and len(messages) == 2
    messages, out, _ = exported(first, f"/edit {SUM[0]}", folder=tmp_path)
    assert out.splitlines() == [one, SUM[1]] and messages[0]["content"] == SUM[0] and len(messages) == 2
    messages, _, said = exported(first, "/fork", second, "/fork back", folder=tmp_path)
    assert len(messages) == 2 and "back where the fork began" in said


def test_save_and_load_and_clear(tmp_path: Path) -> None:
    (first, one), (second, two) = TWO_TURNS
    path = tmp_path / "kept.json"
    out, said, code = chat(first, f"/save {path}", "/clear", f"/load {path}", second)
    assert out.splitlines() == [one, two] and code == 0, said
    messages, _, said = exported(first, "/clear", folder=tmp_path, arguments=("--system", "Be brief."))
    assert [message["role"] for message in messages] == ["system"]


def test_a_thought_is_shown_and_the_costs(tmp_path: Path) -> None:
    _, said, _ = chat("/show", SUM[0], "/show 1", "/stats", arguments=("--no-reasoning",))
    assert "no thought yet" in said and THOUGHT in said
    assert "tokens/s" in said and "whole conversation" in said and "ended by: stop" in said


def test_an_export_for_people_has_folded_thoughts(tmp_path: Path) -> None:
    path = tmp_path / "chat.md"
    chat(SUM[0], f"/export {path}")
    text = path.read_text(encoding="utf-8")
    assert text.startswith(f"## User\n\n{SUM[0]}\n\n## Assistant\n\n<details>") and text.endswith(f"{SUM[1]}\n")


def test_an_attached_file_goes_before_the_next_message_only(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("```\ncode\n```\n", encoding="utf-8")
    messages, _, _ = exported(
        f"/attach {tmp_path / 'notes.md'}", "hi", "hello", folder=tmp_path, arguments=("--max-tokens", "3")
    )
    assert messages[0]["content"] == "notes.md:\n````\n```\ncode\n```\n````\n\nhi"
    assert messages[2]["content"] == "hello"
    (tmp_path / "data.bin").write_bytes(b"\xff\xfe\x00")
    _, said, _ = chat(f"/attach {tmp_path / 'data.bin'}")
    assert "no UTF-8 text" in said


def test_declared_tools_wait_for_a_result_that_the_person_types(tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text(json.dumps([WEATHER]), encoding="utf-8")
    messages, out, said = exported(
        f"/tools {tmp_path / 'tools.json'}", "What is the weather in Paris?", "sunny, 21 C", folder=tmp_path
    )
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant"]
    assert "get_weather (you answer)" in said and "waits for the result of get_weather" in said
    assert out == "It is sunny and 21 degrees in Paris.\n"


def test_functions_of_a_file_run_when_they_are_called(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(FUNCTION, encoding="utf-8")
    question = "What is the weather in Paris?"
    messages, out, said = exported(question, folder=tmp_path, arguments=("--tools", str(tmp_path / "tools.py")))
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant"]
    assert out == "It is sunny and 21 degrees in Paris.\n"
    done = run("generate", "--tools", str(tmp_path / "tools.py"), "--no-reasoning", question)
    assert done.stdout == out and done.returncode == 0
    (tmp_path / "broken.py").write_text("1 / 0", encoding="utf-8")
    _, said, _ = chat(f"/tools {tmp_path / 'broken.py'}")
    assert "ZeroDivisionError" in said


def test_another_model_goes_on_with_the_conversation(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "tiny", "gemma4_text")
    lines = (SHORT[0], f"/model {folder}", "/model", SHORT[0])
    messages, _, said = exported(*lines, folder=tmp_path, arguments=("--max-tokens", "40"))
    assert len(messages) == 4 and said.count("(gemma4)") == 2


def test_there_is_no_clipboard_in_a_pipe_unless_the_system_has_one() -> None:
    _, said, _ = chat(SHORT[0], "/copy")
    assert "copied" in said or "no clipboard" in said
