"""The chat in a real pseudo-terminal: a person types, interrupts and leaves."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from ..sums import LONG, SUM, TWO_TURNS

COMMAND = str(Path(sys.executable).parent / "mlx-reasoning")


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[pexpect.spawn]:
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    child = pexpect.spawn(
        COMMAND,
        ["chat", "demo"],
        env=environment | {"TERM": "xterm-256color", "HOME": str(tmp_path)},
        encoding="utf-8",
        timeout=60,
        dimensions=(40, 120),
    )
    child.expect("> ")
    yield child
    child.close(force=True)


def test_a_dim_thought_then_the_answer(terminal: pexpect.spawn) -> None:
    terminal.sendline(SUM[0])
    terminal.expect(r"\x1b\[2m.*ones.*\x1b\[0m")
    terminal.expect_exact(SUM[1])
    terminal.expect("> ")
    terminal.sendline("/quit")
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 0


def test_ctrl_d_leaves(terminal: pexpect.spawn) -> None:
    terminal.sendeof()
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 0


def test_ctrl_c_at_the_prompt_leaves_with_130(terminal: pexpect.spawn) -> None:
    terminal.sendintr()
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 130


def test_ctrl_c_stops_an_answer_and_the_next_turn_is_normal(terminal: pexpect.spawn) -> None:
    for _ in range(3):
        terminal.sendline(LONG[0])
        terminal.expect_exact("and")  # the thought is under way
        terminal.sendintr()
        found = terminal.expect_exact(["that turn is forgotten", LONG[1]])
        terminal.expect("> ")
        if found == 0:
            break
    assert found == 0, "three answers were finished before Ctrl-C came"
    for question, answer in TWO_TURNS:
        terminal.sendline(question)
        terminal.expect_exact(answer)
        terminal.expect("> ")
