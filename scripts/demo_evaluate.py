"""How right the embedded model is: exact answers by task, and what a thought is worth.

Prompts are held out: their numbers, words, lists, cities and phrasings were never trained on, in any wording.
"""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mlx.core as mx
from demo_data import CANNOT, HELLO, TASKS, Lesson, Teacher, later
from demo_tokens import CLOSER, call_text, prompt_text
from mlx_lm import load
from mlx_lm.models.cache import make_prompt_cache

BUDGETS = (0, 8, 16, 32, 64, None)
LONGEST = 400
BATCH = 50


@dataclass(frozen=True)
class Score:
    task: str
    on: float
    off: float
    budgets: dict[str, float]


def held_out_lessons(task: str, count: int) -> list[Lesson]:
    """Distinct held-out lessons of one task; JSON answers are a task of their own, small talk is two makers' work."""
    teacher = Teacher(20_000 + sum(map(ord, task)), evaluation=True)
    makers = {
        "json": [TASKS[name][0] for name in ("add", "subtract", "compare", "count", "sort")],
        "small_talk": [TASKS["greeting"][0], TASKS["cannot"][0]],
        "later_turn": [maker for maker, _ in TASKS.values()],
    }.get(task) or [TASKS[task][0]]
    found: dict[str, Lesson] = {}
    while len(found) < count:
        lesson = teacher.random.choice(makers)(teacher)
        if task == "later_turn":
            lesson = later(teacher, lesson)
        if task in (lesson.task, "later_turn"):
            found.setdefault(prompt_text(lesson, thinking=True), lesson)
    return list(found.values())


def is_right(lesson: Lesson, text: str) -> bool:
    """Exact, but for small talk, where the right kind of line counts."""
    answer = re.split(r"</think>\s*", text)[-1].strip()
    if lesson.task == "small_talk":
        return answer == lesson.answer and answer in (HELLO, CANNOT)
    return answer == (lesson.answer or call_text(lesson.call or {}))


def continue_all(model: Any, prompts: list[list[int]], stop: set[int], longest: int) -> list[list[int]]:
    """Greedy continuations, up to and without a stop id; prompts of one length go through the model together."""
    done: list[list[int]] = [[] for _ in prompts]
    by_length: dict[int, list[int]] = {}
    for at, prompt in enumerate(prompts):
        by_length.setdefault(len(prompt), []).append(at)
    for rows in by_length.values():
        for first in range(0, len(rows), BATCH):
            _continue(model, [(at, prompts[at]) for at in rows[first : first + BATCH]], done, stop, longest)
    return done


def _continue(
    model: Any, rows: list[tuple[int, list[int]]], done: list[list[int]], stop: set[int], longest: int
) -> None:
    cache = make_prompt_cache(model)
    open_rows = {at for at, _ in rows}
    tokens = mx.array([prompt for _, prompt in rows])
    for _ in range(longest):
        tokens = mx.argmax(model(tokens, cache=cache)[:, -1], axis=-1)[:, None]
        for (at, _), token in zip(rows, tokens[:, 0].tolist(), strict=True):
            if at in open_rows and token in stop:
                open_rows.discard(at)
            elif at in open_rows:
                done[at].append(token)
        if not open_rows:
            return


def accuracy(
    model: Any, tokenizer: Any, lessons: list[Lesson], *, thinking: bool = True, budget: int | None = None
) -> float:
    """The share of right answers; a thought longer than `budget` tokens is closed by force."""
    eos = tokenizer.eos_token_id
    prompts = [tokenizer.encode(prompt_text(lesson, thinking=thinking), add_special_tokens=False) for lesson in lessons]
    if budget is not None:
        end, opener = (
            tokenizer.convert_tokens_to_ids("</think>"),
            tokenizer.encode("<think>\n", add_special_tokens=False),
        )
        thoughts = continue_all(model, [prompt + opener for prompt in prompts], {end, eos}, budget)
        forced = tokenizer.encode(CLOSER, add_special_tokens=False)
        forced_end = forced[forced.index(end) :]
        prompts = [
            prompt + opener + thought + (forced_end if len(thought) < budget else forced)
            for prompt, thought in zip(prompts, thoughts, strict=True)
        ]
    texts = [tokenizer.decode(ids) for ids in continue_all(model, prompts, {eos}, LONGEST)]
    return sum(is_right(lesson, text) for lesson, text in zip(lessons, texts, strict=True)) / len(lessons)


def evaluate(folder: Path, prompts: int, out: Path | None, plot: Path | None) -> list[Score]:
    model, tokenizer = load(str(folder))
    if not mx.metal.is_available():  # bfloat16 on a CPU is many times slower
        model.set_dtype(mx.float32)
    tasks = [
        "add",
        "subtract",
        "compare",
        "count",
        "sort",
        "tool_call",
        "tool_answer",
        "second_turn",
        "later_turn",
        "json",
        "small_talk",
    ]
    scores = []
    print(f"{'task':12} {'on':>7} {'off':>7}   thinking budget " + " ".join(f"{b!s:>6}" for b in BUDGETS))
    for task in tasks:
        lessons = held_out_lessons(task, prompts)
        fewer = random.Random(0).sample(lessons, min(100, len(lessons)))
        on = accuracy(model, tokenizer, lessons)
        off = accuracy(model, tokenizer, lessons, thinking=False)
        budgets = {str(b): on if b is None else accuracy(model, tokenizer, fewer, budget=b) for b in BUDGETS}
        scores.append(Score(task, on, off, budgets))
        print(
            f"{task:12} {on:7.1%} {off:7.1%}" + " " * 19 + " ".join(f"{v:6.0%}" for v in budgets.values()), flush=True
        )
    if out:
        out.write_text(json.dumps([vars(score) for score in scores], indent=2) + "\n")
    if plot:
        draw(scores, plot)
    return scores


def draw(scores: list[Score], path: Path) -> None:
    """Accuracy against the thinking budget, a line a task."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4), dpi=110)
    for score in scores:
        if score.task in ("add", "subtract", "compare", "count", "sort", "second_turn"):
            axes.plot([str(b) if b is not None else "free" for b in BUDGETS], [100 * v for v in score.budgets.values()],
                      marker="o", label=score.task.replace("_", " "))  # fmt: skip
    axes.set_xlabel("thought tokens allowed")
    axes.set_ylabel("exact answers, %")
    axes.set_ylim(0, 103)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path)
