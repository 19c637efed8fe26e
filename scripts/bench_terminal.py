#!/usr/bin/env python
"""What drawing costs: tokens a second of a turn that is drawn on a pseudo-terminal, beside one whose events go nowhere.

    python scripts/bench_terminal.py [--runs 15] [--question TEXT]

Also: from a loaded model to the input line, and the CPU time of `mlx-reasoning --help`. The embedded model, greedy; the
ratios are the medians of neighbouring runs, in turns.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pty
import resource
import statistics
import subprocess
import sys
import threading
from pathlib import Path
from time import perf_counter

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rich.console import Console

from mlx_reasoning import ChatSession, LoadedModel, load
from mlx_reasoning.cli.terminal.drawing import TurnDrawing

QUESTION = "What is 4821 - 3975?"


def plain(model: LoadedModel, question: str) -> float:
    """Seconds of a turn."""
    chat = ChatSession(model)
    began = perf_counter()
    for _ in chat.stream_details(question):
        pass
    return perf_counter() - began


def drawn(model: LoadedModel, question: str, console: Console) -> float:
    """Seconds of the same turn, drawn."""
    chat = ChatSession(model)
    began = perf_counter()
    with TurnDrawing(console, "folded", lambda: chat.reasoning_tokens) as drawing:
        for event in chat.stream_details(question, progress=drawing.progress):
            drawing.push(event)
    return perf_counter() - began


def read_all(descriptor: int) -> None:
    """The terminal's other end; an error is its end."""
    with contextlib.suppress(OSError):
        while os.read(descriptor, 1 << 16):
            pass


def cpu(*command: str) -> float:
    """Seconds of CPU of a process, the median of five."""
    found = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(found)


def until_asked() -> float:
    """Seconds from a loaded model to the input line, its imports included."""
    code = (
        "from time import perf_counter; from mlx_reasoning import load, ChatSession; model = load('demo');"
        "began = perf_counter();"
        "from mlx_reasoning.cli.terminal import store, prompt, talk, drawing, commands;"
        "console = drawing.make_console();"
        "prompt.InputLine(talk.Talk(ChatSession(model), console=console, show='folded', autosave=None));"
        "print(perf_counter() - began)"
    )
    return statistics.median(
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(5)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--question", default=QUESTION)
    arguments = parser.parse_args()
    model = load("demo")
    controller, terminal = pty.openpty()
    threading.Thread(target=read_all, args=(controller,), daemon=True).start()
    with os.fdopen(terminal, "w", encoding="utf-8") as out:
        console = Console(file=out, force_terminal=True, width=100, height=30, highlight=False)
        ratios = []
        for run in range(arguments.runs + 2):
            pair = [plain(model, arguments.question), drawn(model, arguments.question, console)]
            if run >= 2:  # the first ones load what is needed
                ratios.append(pair[0] / pair[1])
    print(f"drawn / not drawn, tokens a second: {statistics.median(ratios):.3f}"
          f" ({min(ratios):.3f} to {max(ratios):.3f}, {arguments.runs} runs)")  # fmt: skip
    print(f"a loaded model to the input line: {until_asked():.2f} s")
    print(f"CPU time of --help: {cpu(str(Path(sys.executable).parent / 'mlx-reasoning'), '--help'):.2f} s")


if __name__ == "__main__":
    main()
