"""The commands as a user runs them: processes, pipes, exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ..sums import SHORT, SUM, TWO_TURNS

COMMAND = [str(Path(sys.executable).parent / "mlx-reasoning")]
QUESTION, ANSWER = SUM


def run(*arguments: str, text: str | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MLX_REASONING")}
    clean |= {"MLX_REASONING_CONFIG": os.devnull, "MLX_REASONING_DATA": os.devnull}
    return subprocess.run(
        [*COMMAND, *arguments],
        input=text,
        stdin=subprocess.DEVNULL if text is None else None,
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        env=clean | environment,
        check=False,
        timeout=120,
    )


def test_the_answer_goes_to_stdout_and_the_thought_to_stderr_without_colour_in_a_pipe() -> None:
    done = run("generate", QUESTION)
    assert done.returncode == 0
    assert done.stdout == ANSWER + "\n"
    assert "ones" in done.stderr and "\x1b" not in done.stderr + done.stdout
    assert "<think>" not in done.stdout + done.stderr


def test_the_prompt_may_come_from_stdin_and_the_thought_may_stay_hidden() -> None:
    done = run("generate", "--no-reasoning", text=QUESTION + "\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, ANSWER + "\n", "")


def test_json_is_one_event_a_line_with_the_info_last() -> None:
    done = run("generate", "--json", QUESTION)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert "".join(event["text"] for event in events if event["type"] == "chunk") == ANSWER
    assert "ones" in "".join(event["text"] for event in events if event["type"] == "reasoning")
    assert [event["type"] for event in events].count("info") == 1 and events[-1]["type"] == "info"
    assert events[-1]["finish_reason"] == "stop" and events[-1]["usage"]["reasoning_tokens"] > 0
    hidden = run("generate", "--json", "--no-reasoning", QUESTION).stdout
    assert not any(json.loads(line)["type"] == "reasoning" for line in hidden.splitlines())


def test_thinking_off_answers_without_a_thought() -> None:
    done = run("generate", "--no-thinking", "--json", SHORT[0])
    assert not any(json.loads(line)["type"] == "reasoning" for line in done.stdout.splitlines())


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["generate", ""], 1, "the prompt is empty"),
        (["generate", "--max-tokens", "0", "hi"], 1, "max_tokens"),
        (["generate", "--top-p", "7", "hi"], 1, "top_p"),
        (["generate", "--stop", "", "hi"], 1, "stop string"),
        (["generate", "--effort", "high", "--no-thinking", "hi"], 1, "effort"),
        (["generate", "-m", "/no/such/folder", "hi"], 1, "/no/such/folder"),
        (["generate", "--no-such-flag"], 2, "--no-such-flag"),
        (["generate", "--max-tokens", "many", "hi"], 2, "--max-tokens"),
        (["no-such-command"], 2, "no-such-command"),
    ],
)
def test_a_wrong_call_says_one_line_and_fails(arguments: list[str], code: int, said: str) -> None:
    done = run(*arguments)
    assert done.returncode == code, done.stderr
    assert said in done.stderr and "Traceback" not in done.stderr and done.stdout == ""
    if code == 1:
        assert len(done.stderr.strip().splitlines()) == 1 and done.stderr.startswith("error: ")


def test_the_model_may_be_named_by_flag_by_argument_and_by_environment() -> None:
    for arguments in (["chat", "-m", "/no/such"], ["chat", "/no/such"]):
        assert "/no/such" in run(*arguments, text="").stderr
    assert "/no/such" in run("chat", text="", MLX_REASONING_MODEL="/no/such").stderr
    assert run("chat", "demo", text=SHORT[0] + "\n", MLX_REASONING_MODEL="/no/such").returncode == 0


def test_chat_reads_piped_lines_remembers_the_turns_and_leaves_at_the_end() -> None:
    (first, one), (second, two) = TWO_TURNS
    done = run("chat", text=f"{first}\n{second}\n\n/quit\nWhat is 1 + 1?\n")
    assert done.returncode == 0
    assert done.stdout == f"{one}\n{two}\n"
    assert "embedded demo model" in done.stderr and "ones" in done.stderr


def test_a_mistyped_command_is_never_sent_to_the_model() -> None:
    done = run("chat", text=f"/qiut\n{SHORT[0]}\n")
    assert done.stdout == SHORT[1] + "\n"
    assert "no command /qiut" in done.stderr and "/quit" in done.stderr


def test_a_failed_turn_keeps_the_session_and_the_pipe_hears_of_it() -> None:
    done = run("chat", text="x" * 6000 + f"\n{SHORT[0]}\n")
    assert done.stdout == SHORT[1] + "\n"
    assert done.stderr.count("error: ") == 1 and "shorten" in done.stderr
    assert done.returncode == 1


def test_no_encoding_crashes_the_output() -> None:
    narrow = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0"}
    done = run("generate", "--system", "思 🤔", "--max-tokens", "40", QUESTION, **narrow)
    assert done.returncode == 0 and "error" not in done.stderr
    assert run("generate", QUESTION, **narrow).stdout == ANSWER + "\n"


def test_a_reader_that_leaves_is_no_traceback() -> None:
    script = f"{COMMAND[0]} generate --json '{QUESTION}' | head -n 1"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, timeout=120)
    assert "Traceback" not in done.stderr and json.loads(done.stdout)["type"] == "reasoning"


def test_help_names_the_commands_and_imports_nothing_heavy() -> None:
    assert {"chat", "generate"} <= set(run("--help").stdout.split())
    code = (
        "import sys, mlx_reasoning.cli.main; sys.exit(any(m in sys.modules for m in ('mlx', 'mlx_lm', 'transformers')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert run("--version").stdout.startswith("mlx-reasoning ")


def test_inspect_says_what_a_model_is_and_why() -> None:
    facts = json.loads(run("inspect", "--json").stdout)
    assert (facts["family"], facts["switch"], facts["unset means"]) == ("qwen3", "enable_thinking", "on")
    assert facts["evidence"] and facts["cannot"] == ["tell efforts apart: any effort means thinking on"]
    assert [prompt["starts"] for prompt in facts["prompts"]] == ["outside"] * 3
    shown = run("inspect", "demo")
    assert shown.returncode == 0 and "<think> … </think>" in shown.stdout
    assert run("inspect", "/no/such").returncode == 1


def test_an_interrupt_in_a_one_shot_answer_gives_130() -> None:
    process: subprocess.Popen[Any] = subprocess.Popen(
        [*COMMAND, "generate", "--json", "--temperature", "5", "--seed", "1", "Sort 9 8 7 6 5 4"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()  # it is under way
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert "Traceback" not in err
    finished = json.loads(out.splitlines()[-1])["finish_reason"]
    assert (process.returncode, finished) in ((130, "cancelled"), (0, "stop"), (0, "length"))
