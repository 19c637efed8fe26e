"""The chat in a real pseudo-terminal: a person types, interrupts, resizes and leaves."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ..sums import LONG, SHORT, SUM, THOUGHT, TWO_TURNS
from .screen import Terminal

Open = Callable[..., Terminal]
CTRL_C, CTRL_D, CTRL_O, CTRL_T, CTRL_U = "\x03", "\x04", "\x0f", "\x14", "\x15"
GENTLE = {"token": 0.03, "prompt": 2}


@pytest.fixture
def chat(tmp_path: Path) -> Iterator[Open]:
    """Opens a chat, and waits for its input line."""
    opened: list[Terminal] = []

    def start(*arguments: str, prompt: str = ">", **options: Any) -> Terminal:
        terminal = Terminal(tmp_path, "chat", *arguments, **options)
        opened.append(terminal)
        terminal.ready(prompt)
        return terminal

    yield start
    for terminal in opened:
        terminal.child.close(force=True)


def ask(terminal: Terminal, question: str, answer: str) -> str:
    """One whole turn; gives what stands below the question."""
    terminal.say(question)
    terminal.until(answer, after="> " + question)
    terminal.ready()
    return terminal.text.rpartition("> " + question)[2]


def exported(terminal: Terminal, folder: Path) -> list[dict[str, Any]]:
    path = folder / "exported.json"
    path.unlink(missing_ok=True)
    terminal.say(f"/export {path}")
    terminal.until(f"written: {path}")
    terminal.ready()
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return found


def roles(messages: list[dict[str, Any]]) -> list[str]:
    return [str(message["role"]) for message in messages]


# Thoughts and answers.


def test_a_thought_is_folded_into_one_line_that_ctrl_o_expands(chat: Open) -> None:
    terminal = chat("demo")
    below = ask(terminal, *SUM)
    assert re.search(r"thought for \d+\.\d s, \d+ tokens", below)
    assert THOUGHT not in below and "<think>" not in terminal.raw
    terminal.child.send(CTRL_O)
    terminal.until(THOUGHT)
    terminal.ready()
    terminal.say("/quit")
    assert terminal.end() == 0


def test_the_running_thought_is_one_dim_line_with_seconds_tokens_and_its_last_line(chat: Open) -> None:
    terminal = chat("demo", slowly=GENTLE)
    terminal.say(LONG[0])
    terminal.until("thinking ")
    terminal.until("tokens", after="thinking ")
    shown = terminal.text.rpartition("thinking ")[2]
    assert re.match(r"\d+\.\d s · \d+ tokens\n +\S", shown), shown
    terminal.until("thought for", LONG[1])
    terminal.ready()
    assert "thinking " not in terminal.text  # what was live is gone


@pytest.mark.parametrize("show", ["full", "hidden"])
def test_thoughts_may_stand_in_full_or_not_at_all(chat: Open, show: str) -> None:
    terminal = chat("demo", "--show-thinking", show)
    below = ask(terminal, *SUM)
    assert (THOUGHT in below) is (show == "full") and ("thought for" in below) is (show == "full")
    assert terminal.text.count(THOUGHT) == (1 if show == "full" else 0)


def test_ctrl_o_unfolds_a_thought_that_runs(chat: Open) -> None:
    terminal = chat("demo", slowly=GENTLE)
    terminal.say(LONG[0])
    terminal.until("tokens", after="thinking ")
    terminal.child.send(CTRL_O)
    terminal.until("thought for")
    terminal.ready()
    below = terminal.text.rpartition(LONG[0])[2]
    terminal.say("/show")
    terminal.ready()
    thought = terminal.text.rpartition("/show")[2].rpartition(">")[0].split()
    assert len(thought) > 5 and " ".join(thought) in " ".join(below.split())


def test_ctrl_t_ends_the_thought_and_the_answer_comes(chat: Open, tmp_path: Path) -> None:
    terminal = chat("demo", slowly=GENTLE)
    terminal.say(LONG[0])
    terminal.until("thinking ")
    terminal.child.send(CTRL_T)
    terminal.until("thought for")
    terminal.ready()
    messages = exported(terminal, tmp_path)
    assert roles(messages) == ["user", "assistant"] and messages[1]["content"]
    ask(terminal, *SUM)


def test_thinking_off_and_on_again(chat: Open) -> None:
    terminal = chat("demo")
    terminal.say("/think off")
    terminal.ready()
    assert "thought for" not in ask(terminal, SHORT[0], "\n")
    terminal.say("/think on")
    terminal.ready()
    assert "thought for" in ask(terminal, *SUM)


def test_the_status_line_tells_speed_context_and_what_was_reused(chat: Open) -> None:
    terminal = chat("demo")
    for question, answer in TWO_TURNS:
        ask(terminal, question, answer)
    terminal.until("reused")
    assert re.search(r"demo · [\d,]+ tokens/s · context \d+ of 2,048, [\d,]+ left · \d+ of \d+ reused", terminal.text)


# Interrupts.


def test_ctrl_c_in_the_prompt_in_a_thought_and_in_an_answer_then_a_normal_turn(chat: Open, tmp_path: Path) -> None:
    terminal = chat("demo", slowly=GENTLE)
    cases = [("word " * 150, "reading the prompt"), (LONG[0], "thinking "), (SHORT[0], "thought for")]
    for turn, (said, seen) in enumerate(cases, 1):
        terminal.say(said)
        terminal.until(seen)
        terminal.child.send(CTRL_C)
        terminal.times("that turn is forgotten", turn)
        terminal.until("> " + said[:40].strip(), after="stands in the line again")  # nothing typed is lost
        terminal.pump(0.3)
        terminal.child.send(CTRL_C)  # now the line is given up
        terminal.ready()
        terminal.say("/export nothing.json")  # nothing is there, and so no file is written
        terminal.times("no message", turn)
        terminal.ready()
    ask(terminal, *SUM)
    assert roles(exported(terminal, tmp_path)) == ["user", "assistant"]
    assert styles_are_closed(terminal.raw)


def styles_are_closed(raw: str) -> bool:
    last = raw.rfind("\x1b[2m")
    return last < 0 or "\x1b[0m" in raw[last:]


def test_ctrl_c_twice_leaves_a_running_turn_with_130(chat: Open) -> None:
    terminal = chat("demo", slowly={"token": 1.5})
    terminal.say(SUM[0])
    terminal.pump(1)
    terminal.child.send(CTRL_C)
    terminal.pump(0.3)
    terminal.child.send(CTRL_C)
    assert terminal.end() == 130
    assert "Traceback" not in terminal.text and terminal.raw.rstrip().endswith("\x1b[?25h") is not None


def test_ctrl_c_twice_at_the_prompt_leaves_with_130_and_ctrl_d_with_0(chat: Open) -> None:
    terminal = chat("demo")
    terminal.child.send(CTRL_C)
    terminal.until("again leaves")
    terminal.ready()
    terminal.child.send(CTRL_C)
    assert terminal.end() == 130
    terminal = chat("demo")
    terminal.child.send(CTRL_D)
    assert terminal.end() == 0


def test_what_is_typed_while_the_model_runs_stands_in_the_next_line(chat: Open) -> None:
    terminal = chat("demo", slowly=GENTLE)
    terminal.say(SUM[0])
    terminal.until("thinking ")
    terminal.child.send(SHORT[0])
    terminal.until(SUM[1])
    terminal.ready("> " + SHORT[0])
    terminal.child.send("\r")
    terminal.until(SHORT[1])


# Lines.


def test_a_paste_of_200_lines_is_one_message(chat: Open, tmp_path: Path) -> None:
    terminal = chat("demo", "--max-tokens", "4")
    lines = [f"{number}" for number in range(200)]
    terminal.child.send("\x1b[200~" + "\n".join(lines) + "\x1b[201~")
    terminal.until("199")
    terminal.child.send("\r")
    terminal.until("cut off in its")
    terminal.ready()
    messages = exported(terminal, tmp_path)
    assert messages[0]["content"].split("\n") == lines and roles(messages) == ["user", "assistant"]


def test_a_backslash_or_alt_enter_begins_a_new_line(chat: Open, tmp_path: Path) -> None:
    terminal = chat("demo", "--max-tokens", "4")
    terminal.child.send("one\\\rtwo\x1b\rthree\r")
    terminal.until("cut off in its")
    terminal.ready()
    assert exported(terminal, tmp_path)[0]["content"] == "one\ntwo\nthree"


def test_the_history_is_there_in_the_next_chat(chat: Open) -> None:
    terminal = chat("demo")
    ask(terminal, *SHORT)
    terminal.say("/quit")
    assert terminal.end() == 0
    terminal = chat("demo")
    terminal.child.send("\x1b[A\x1b[A")
    terminal.until(SHORT[0], after=">")


def test_commands_and_file_names_are_completed(chat: Open, tmp_path: Path) -> None:
    (tmp_path / "a-long-file-name.txt").write_text("The word is strawberry.", encoding="utf-8")
    terminal = chat("demo")
    terminal.child.send("/th")
    terminal.until("think before the answer")  # the menu has the help beside each name
    terminal.child.send("\t")
    terminal.until("> /think")
    terminal.child.send(" ")
    terminal.until("auto")
    terminal.child.send(CTRL_C)
    terminal.ready()
    terminal.child.send(f"/attach {tmp_path}/a-lo\t")
    terminal.until("a-long-file-name.txt")


# Terminals of all kinds.


def test_a_terminal_that_is_resized_goes_on(chat: Open) -> None:
    terminal = chat("demo", slowly=GENTLE)
    terminal.say(SUM[0])
    terminal.until("thinking ")
    for rows, columns in ((10, 40), (40, 140), (5, 20), (30, 100)):
        terminal.resize(rows, columns)
        terminal.pump(0.2)
    terminal.until(SUM[1])
    terminal.ready()
    terminal.resize(20, 60)
    ask(terminal, *SHORT)


def test_no_color_is_no_colour(chat: Open) -> None:
    coloured = re.compile(r"\x1b\[(?:\d+;)*(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])[;m]")
    terminal = chat("demo", environment={"NO_COLOR": "1"})
    ask(terminal, *SUM)
    assert not coloured.search(terminal.raw)


def test_a_dumb_terminal_has_plain_lines(chat: Open) -> None:
    terminal = chat("demo", environment={"TERM": "dumb"})
    terminal.say(SUM[0])
    terminal.until(SUM[1])
    terminal.ready()
    assert "\x1b[" not in terminal.raw.replace("\x1b[?2004h", "").replace("\x1b[?2004l", "")
    terminal.say("/quit")
    assert terminal.end() == 0


def test_a_locale_without_unicode_is_no_crash(chat: Open) -> None:
    narrow = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    terminal = chat("demo", environment=narrow)
    terminal.say("Grüße 思")
    terminal.until("thought for")
    terminal.ready()
    ask(terminal, *SUM)
    assert "Traceback" not in terminal.text and "Error" not in terminal.text


# Failures, and what stays.


def test_a_model_that_fails_mid_answer_leaves_the_conversation_and_the_message(chat: Open, tmp_path: Path) -> None:
    terminal = chat("demo", slowly={"fails": 90})  # in the second turn
    ask(terminal, *SHORT)
    terminal.say(LONG[0])
    terminal.until("no memory left")
    terminal.until("> " + LONG[0], after="no memory left")
    terminal.child.send(CTRL_C)
    terminal.ready()
    before = exported(terminal, tmp_path)
    assert roles(before) == ["user", "assistant"]
    ask(terminal, *SUM)
    after = exported(terminal, tmp_path)
    assert after[:2] == before and roles(after) == ["user", "assistant"] * 2


def test_a_folder_that_cannot_be_written_is_said_once(chat: Open, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    terminal = chat("demo", environment={"MLX_REASONING_DATA": str(tmp_path / "file" / "data")})
    for question, answer in TWO_TURNS:
        ask(terminal, question, answer)
    assert terminal.text.count("this conversation is not kept") == 1


def test_a_chat_whose_window_was_closed_goes_on(chat: Open, tmp_path: Path) -> None:
    terminal = chat("demo")
    ask(terminal, *TWO_TURNS[0])
    terminal.child.kill(signal.SIGKILL)
    terminal = chat("--resume")
    assert "2 messages" in terminal.text
    ask(terminal, *TWO_TURNS[1])
    assert roles(exported(terminal, tmp_path)) == ["user", "assistant"] * 2
    assert len(list((tmp_path / "data" / "conversations").iterdir())) == 1


def test_an_answer_that_was_cut_off_goes_on(chat: Open, tmp_path: Path) -> None:
    terminal = chat("demo", "--max-tokens", "30")
    terminal.say(SUM[0])
    terminal.until("cut off in its thought")
    for _ in range(9):
        terminal.ready()
        if exported(terminal, tmp_path)[-1]["content"] == SUM[1]:
            break
        terminal.say("/continue")
        terminal.until("thought for", "cut off", after="> /continue")
    messages = exported(terminal, tmp_path)
    assert messages[-1]["content"] == SUM[1] and THOUGHT in messages[-1]["reasoning_content"]
    assert roles(messages) == ["user", "assistant"]
