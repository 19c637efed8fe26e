#!/usr/bin/env python
"""What a turn of a conversation costs before its first token: a session's, beside a full prefill and mlx_lm.server.

    python scripts/bench_session.py [--turns 12] [--models full,sliding,recurrent,demo] [--plot PNG] [--json FILE]

Every way gets the same messages: a question, and the answer of the turn before, which was thought about. Our models
are told what to write, so that all say the same; those but the embedded one are random and tiny, one for each kind of
cache.
mlx_lm.server is a process of its own, asked over HTTP; it writes as many tokens of its own as ours were told.
Times are from the request to the first token, and to the server's first line of data.
"""

from __future__ import annotations

import argparse
import http.client
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from mlx_reasoning import ChatSession, LoadedModel, load
from tests.session.scripted import thought, told
from tests.tiny import write_checkpoint

KINDS = {"full": "qwen3", "sliding": "gemma4_text", "recurrent": "qwen3_5", "demo": "qwen3"}
WAYS = ("session", "session, warmed", "full prefill", "mlx_lm.server")
THOUGHT = "First I look at what is asked here. Then I try one way, and another. The second one holds, so I take it."
RULES = "You answer in one short sentence, and say so when you do not know. " * 2


@dataclass(frozen=True)
class Turn:
    """What one turn cost before its first token: seconds, and prompt tokens that were computed and in all."""

    model: str
    way: str
    turn: int
    seconds: float
    prefilled: int
    prompt: int


def question(turn: int) -> str:
    return f"Question {turn:02}: and then?"


def answer(turn: int) -> str:
    return f"Answer {turn:02} is that nobody can know it before the evening."


def history(turn: int) -> list[dict[str, str]]:
    said = [{"role": "system", "content": RULES}]
    for at in range(turn):
        said += [{"role": "user", "content": question(at)}, {"role": "assistant", "content": answer(at)}]
    return said


def of_session(name: str, model: LoadedModel, turns: int, way: str) -> tuple[list[Turn], dict[str, int]]:
    """The turns of one session, or of a new one each turn for a full prefill; and the bytes held at the end."""
    rows: list[Turn] = []
    session = ChatSession(model, RULES, max_tokens=400)
    for turn in range(turns):
        if way == "full prefill":
            session = ChatSession(model, messages=history(turn), max_tokens=400)
        elif way == "session, warmed":
            session.warm()
        told(session, thought(KINDS[name], THOUGHT, answer(turn)))
        ready: list[float] = []

        def progress(done: int, total: int, ready: list[float] = ready) -> None:
            if done == total:
                ready.append(perf_counter())

        began = perf_counter()
        usage = session.respond(question(turn), progress=progress).usage
        rows.append(Turn(name, way, turn + 1, ready[0] - began, usage.prefilled_tokens or 0, usage.prompt_tokens or 0))
    cache = session._context._cache
    assert cache is not None
    snapshots = sum(shot.nbytes for shot in cache.snapshots)
    return rows, {"cache": cache.nbytes - snapshots, "snapshots": snapshots, "count": len(cache.snapshots)}


@contextmanager
def server(folder: Path) -> Iterator[http.client.HTTPConnection]:
    """mlx_lm.server with a model, and a connection to it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "mlx_lm", "server", "--model", str(folder), "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        for _ in range(600):
            try:
                connection.connect()
                break
            except OSError:
                if process.poll() is not None:
                    raise SystemExit("mlx_lm.server did not start") from None
                time.sleep(0.1)
        yield connection
    finally:
        process.terminate()
        process.wait()


def of_server(name: str, model: LoadedModel, folder: Path, turns: int) -> list[Turn]:
    rows: list[Turn] = []
    written = len(model.tokenizer.encode(thought(KINDS[name], THOUGHT, answer(0)), add_special_tokens=False))
    with server(folder) as connection:
        for turn in range(-1, turns):  # the first one loads the model
            messages = [*history(max(turn, 0)), {"role": "user", "content": question(max(turn, 0))}]
            if turn < 0:
                messages = [{"role": "user", "content": "Hello"}]
            body = {"messages": messages, "max_tokens": written, "stream": True, "temperature": 0.0}
            body["stream_options"] = {"include_usage": True}
            began, seconds, usage = perf_counter(), 0.0, {}
            connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
            for line in connection.getresponse():
                if line.startswith(b"data: {"):
                    seconds = seconds or perf_counter() - began
                    usage = json.loads(line[6:]).get("usage") or usage
            cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
            if turn >= 0:
                whole = usage["prompt_tokens"]
                rows.append(Turn(name, "mlx_lm.server", turn + 1, seconds, whole - cached, whole))
    return rows


def draw(rows: list[Turn], path: Path) -> None:
    """Time to the first token over the turns, a panel a model."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(row.model for row in rows))
    figure, panels = plt.subplots(1, len(names), figsize=(3.4 * len(names), 3.4), dpi=110, squeeze=False)
    for axes, name in zip(panels[0], names, strict=True):
        for way in WAYS:
            mine = [row for row in rows if (row.model, row.way) == (name, way)]
            axes.plot([row.turn for row in mine], [1000 * row.seconds for row in mine], marker=".", label=way)
        axes.set_title(name, fontsize=10)
        axes.set_xlabel("turn")
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    panels[0][0].set_ylabel("to the first token, ms")
    panels[0][0].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path)


def report(rows: list[Turn], held: dict[str, dict[str, int]]) -> None:
    last = max(row.turn for row in rows)
    shown = sorted({2, (last + 2) // 2, last})
    print("| model | way | " + " | ".join(f"turn {turn}: tokens, ms" for turn in shown) + " | median ms, turn 2 on |")
    print("| --- " * (len(shown) + 3) + "|")
    for name in dict.fromkeys(row.model for row in rows):
        for way in WAYS:
            mine = {row.turn: row for row in rows if (row.model, row.way) == (name, way)}
            cells = [f"{mine[turn].prefilled}, {1000 * mine[turn].seconds:.1f}" for turn in shown]
            median = statistics.median(1000 * row.seconds for row in mine.values() if row.turn > 1)
            print(f"| {name} | {way} | " + " | ".join(cells) + f" | {median:.1f} |")
    for name, sizes in held.items():
        print(f"{name}: after {last} turns {sizes['cache'] / 1024:,.0f} KiB of keys, values and states, and"
              f" {sizes['snapshots'] / 1024:,.0f} KiB in {sizes['count']} snapshots")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=3, help="of everything; each turn counts with its median")
    parser.add_argument("--models", default="full,sliding,recurrent,demo")
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows: list[Turn] = []
    held: dict[str, dict[str, int]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        for name in arguments.models.split(","):
            folder = load("demo").path if name == "demo" else write_checkpoint(Path(temporary, name), KINDS[name])
            model = load(folder)
            runs: list[Turn] = []
            for _ in range(arguments.rounds):
                for way in WAYS[:3]:
                    done, sizes = of_session(name, model, arguments.turns, way)
                    runs += done
                    if way == "session":
                        held[name] = sizes
                runs += of_server(name, model, folder, arguments.turns)
            rows += middle(runs)
    report(rows, held)
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    if arguments.plot:
        draw(rows, arguments.plot)


def middle(runs: list[Turn]) -> list[Turn]:
    """Each turn once, with the median of its times."""
    same: dict[Any, list[Turn]] = {}
    for row in runs:
        same.setdefault((row.way, row.turn), []).append(row)
    return [sorted(rows, key=lambda row: row.seconds)[len(rows) // 2] for rows in same.values()]


if __name__ == "__main__":
    main()
