#!/usr/bin/env python
"""Cost per token from ids to events, beside mlx-lm's streaming detokenizer and `TextStateMachine` on the same ids.

    scripts/bench_decoder.py                          # the embedded tokenizer
    scripts/bench_decoder.py --tokenizer FOLDER       # a real one, in the Qwen3 shape
    scripts/bench_decoder.py --families               # families of message frames beside a plain one, all ours

Both sides look for stop strings, thoughts and tool calls. They alternate in one run; medians and their ratio are what
counts. "memory" is what the streams of one kind added to the Python heap at their peak, in KiB.
"""

from __future__ import annotations

import argparse
import copy
import gc
import json
import random
import statistics
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mlx_lm import tokenizer_utils
from mlx_lm.generate import TextStateMachine, make_text_state_machine
from tokenizers import AddedToken

from mlx_reasoning.decode.decoder import DecoderTables, make_token_stream_decoder
from mlx_reasoning.demo import PATH
from mlx_reasoning.protocols.families import family

STOPS = ["<|im_start|>", "\nUser:"]
WORDS = "the model thinks about a sum and then about two more numbers before it says what it has found so far".split()


def turn(tokenizer: Any, count: int, opener: str = "<think>\n", closer: str = "\n</think>\n\n") -> list[int]:
    """A turn of `count` ids: nine tenths thought, then an answer, in sentences and lines."""
    dice = random.Random(count)

    def prose(size: int) -> list[int]:
        ids: list[int] = []
        while len(ids) < size:
            sentence = " ".join(dice.choices(WORDS, k=dice.randint(6, 14))).capitalize()
            ids += tokenizer.encode(
                sentence + dice.choice((". ", ".\n", ": 7 < 9, x = y.\n\n")), add_special_tokens=False
            )
        return ids[:size]

    open_, close = (tokenizer.encode(text, add_special_tokens=False) for text in (opener, closer))
    thought = count * 9 // 10 - len(open_) - len(close)
    return open_ + prose(thought) + close + prose(count - thought - len(open_) - len(close))


FRAMED = {
    "qwen3": ("<think>\n", "\n</think>\n\n"),
    "gemma4": ("<|channel>thought\n", "<channel|>"),
    "gpt-oss": ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    "muse": (" to=self<|message|>", "<|eom|><|start|>assistant to=user<|message|>"),
    "kimi-k3": ("<|open|>think<|sep|>", "<|close|>think<|sep|><|open|>response<|sep|>"),
    "solar-open": ("<|think|>", "<|end|><|begin|>assistant<|content|>"),
    "inkling": ("<|content_thinking|>", "<|end_message|><|message_model|><|content_text|>"),
}


def with_markers(tokenizer: Any, name: str) -> Any:
    """The tokenizer with a family's markers as tokens of their own."""
    row, hugging_face = family(name), copy.deepcopy(tokenizer._tokenizer)
    texts = row.frames.markers if row.frames else (row.reasoning.starts + row.reasoning.ends if row.reasoning else ())
    hugging_face.add_tokens([AddedToken(text, special=True, normalized=False) for text in texts])
    return hugging_face


def ours(tokenizer: Any, name: str = "qwen3") -> Callable[[list[int]], int]:
    tables, profile = DecoderTables(tokenizer), family(name)

    def run(ids: list[int]) -> int:
        decoder = make_token_stream_decoder(tokenizer, profile, stop_strings=STOPS, tables=tables)
        events = 0
        push = decoder.push
        for token in ids:
            for _ in push(token):
                events += 1
        return events + len(decoder.finish())

    return run


def theirs(tokenizer: Any) -> Callable[[list[int]], int]:
    machine = make_text_state_machine(tokenizer, STOPS)

    def run(ids: list[int]) -> int:
        detokenizer, state, events = tokenizer.detokenizer, machine.make_state(), 0
        add, step = detokenizer.add_token, TextStateMachine.step
        for token in ids:
            add(token)
            state, text, _ = step(state, detokenizer.last_segment)
            if text:
                events += 1
        detokenizer.finalize()
        return events

    return run


def measure(run: Callable[[list[int]], int], ids: list[int]) -> float:
    """Microseconds a token."""
    gc.collect()
    began = time.perf_counter()
    run(ids)
    return (time.perf_counter() - began) * 1e6 / len(ids)


def peak(run: Callable[[list[int]], int], ids: list[int]) -> float:
    """KiB that one stream adds to the Python heap at its peak."""
    gc.collect()
    tracemalloc.start()
    run(ids)
    _, top = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return top / 1024


def families(tokenizer: Any, size: int, repeats: int) -> list[dict[str, Any]]:
    """What each family's turn costs, and the median of its ratios to the first one's in the same round."""
    runs = []
    for name, markers in FRAMED.items():
        own = with_markers(tokenizer, name)
        runs.append((name, ours(own, name), turn(own, size, *markers)))
    costs = [[measure(run, ids) for _, run, ids in runs] for _ in range(repeats)]
    rows = []
    print(f"{'family':>12} {'µs a token':>11} {'to the first':>13}")
    for at, (name, _, _) in enumerate(runs):
        cost = statistics.median(row[at] for row in costs)
        ratio = statistics.median(row[at] / row[0] for row in costs)
        rows.append({"family": name, "us": cost, "ratio": ratio})
        print(f"{name:>12} {cost:11.3f} {ratio:13.2f}", flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", type=Path, default=PATH, help="a folder with tokenizer.json")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--peer-up-to", type=int, default=100_000, help="longest turn that the peer is given")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--families", action="store_true", help="framed families beside a plain one, at 10,000 tokens")
    arguments = parser.parse_args()
    tokenizer = tokenizer_utils.load(arguments.tokenizer)
    if arguments.families:
        rows = families(tokenizer, 10_000, 3 * arguments.repeats)
        if arguments.json:
            arguments.json.write_text(json.dumps(rows, indent=2) + "\n")
        return
    mine, peer = ours(tokenizer), theirs(tokenizer)
    rows = []
    print(f"{'tokens':>9} {'ours µs':>9} {'mlx-lm µs':>10} {'ratio':>7} {'ours KiB':>9} {'mlx-lm KiB':>11}")
    for size in arguments.sizes:
        ids = turn(tokenizer, size)
        repeats = arguments.repeats if size <= 100_000 else 3
        with_peer = size <= arguments.peer_up_to
        pairs = [(measure(mine, ids), measure(peer, ids) if with_peer else float("nan")) for _ in range(repeats)]
        us, them = (statistics.median(column) for column in zip(*pairs, strict=True))
        memory, their_memory = peak(mine, ids), peak(peer, ids) if with_peer else float("nan")
        rows.append({"tokens": size, "ours_us": us, "mlx_lm_us": them, "ours_kib": memory, "mlx_lm_kib": their_memory})
        print(f"{size:9,} {us:9.3f} {them:10.3f} {us / them:7.3f} {memory:9.0f} {their_memory:11.0f}", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
