#!/usr/bin/env python
"""Runs the public suite canitoolcall (`pip install canitoolcall`) against our splitter, and prints a table by family.

    scripts/conformance.py                     # every fixture of a family in our table
    scripts/conformance.py --show 5            # with the first misses of each family
    scripts/conformance.py --markdown FILE     # the table as Markdown

A fixture passes if thought, answer and calls are what it expects, whole and a character at a time; "soft" allows white
space at the edges to differ. Fixtures that expect an error pass if nothing runs that the fixture does not allow.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from mlx_reasoning import split_reasoning
from mlx_reasoning.decode.split import Split

FAMILY = {
    "gemma4": "gemma4",
    "gpt-oss": "gpt-oss",
    "mistral": "mistral",
    "qwen3-hermes": "qwen3",
    "qwen3-xml": "qwen3.5",
}
BY_MODEL = (
    ("DeepSeek-V4.1", "deepseek-v4.1"),
    ("DeepSeek-V4", "deepseek-v4"),
    ("DeepSeek-V3.2", "deepseek-v3.2"),
    ("DeepSeek-V3.1", "deepseek-v3.1"),
    ("DeepSeek-R1", "deepseek-r1"),
    ("DeepSeek-V3", "deepseek-v3.1"),
    ("GLM-5", "glm-5"),
    ("GLM-4.7", "glm-4.7"),
    ("GLM-4", "glm-4.5"),
    ("Kimi-K3", "kimi-k3"),
    ("Kimi-K2.", "kimi-k2.6"),
    ("Kimi-K2-Thinking", "kimi-k2-thinking"),
    ("Kimi-K2", "kimi-k2-thinking"),
)


def fixtures() -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Each fixture with its family of ours and its suite's family record."""
    root = files("canitoolcall") / "_data" / "fixtures"
    for folder in sorted(filter(lambda item: item.is_dir(), root.iterdir()), key=lambda item: item.name):
        record = json.loads((folder / "family.json").read_text(encoding="utf-8"))
        for file in sorted(folder.iterdir(), key=lambda item: item.name):
            if file.name.endswith(".jsonl"):
                for line in file.read_text(encoding="utf-8").splitlines():
                    fixture = json.loads(line)
                    model = fixture["models"][0]
                    name = FAMILY.get(folder.name) or next((ours for part, ours in BY_MODEL if part in model), None)
                    if name is not None:
                        yield name, fixture, record


def prompt_of(fixture: dict[str, Any], record: dict[str, Any]) -> str | None:
    if fixture.get("generation_prompt") is not None:
        return str(fixture["generation_prompt"])
    for reference in record.get("reference_models", []):
        if reference["repo"] in fixture["models"]:
            return reference.get("default_generation_prompt")
    return None


def run(name: str, fixture: dict[str, Any], record: dict[str, Any], chunks: list[str]) -> Split:
    reason = "length" if "truncated" in fixture.get("tags", []) else "stop"
    return split_reasoning(
        chunks,
        name,
        prompt_tail=prompt_of(fixture, record),
        tools=fixture.get("tools") or None,
        finish_reason=reason,  # type: ignore[arg-type]
    )


def calls_of(split: Split) -> list[tuple[str, Any]]:
    return [(call.name, call.arguments) for call in split.tool_calls]


def wanted_calls(expected: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(call["name"], call["arguments"]) for call in expected.get("tool_calls") or []]


def grade(name: str, fixture: dict[str, Any], record: dict[str, Any]) -> tuple[str, Split]:
    text = fixture["raw_output"]
    whole, chars = run(name, fixture, record, [text]), run(name, fixture, record, list(text))
    if (whole.reasoning, whole.content, calls_of(whole)) != (chars.reasoning, chars.content, calls_of(chars)):
        return "cut", whole
    expected = fixture.get("expected")
    if not expected or "error" in expected:
        return ("pass" if not whole.tool_calls else "miss"), whole
    want = expected.get("reasoning_content") or "", expected.get("content") or "", wanted_calls(expected)
    got = whole.reasoning, whole.content, calls_of(whole)
    if got == want:
        return "pass", whole
    if got[2] == want[2] and [part.strip() for part in got[:2]] == [part.strip() for part in want[:2]]:
        return "soft", whole
    return "miss", whole


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", type=int, default=0, help="misses to print for each family")
    parser.add_argument("--family", help="only this family of ours")
    parser.add_argument("--markdown", type=Path, help="write the table here")
    arguments = parser.parse_args()
    table: dict[str, Counter[str]] = defaultdict(Counter)
    for name, fixture, record in fixtures():
        if arguments.family and name != arguments.family:
            continue
        level, got = grade(name, fixture, record)
        table[name][level] += 1
        if (fixture.get("expected") or {}).get("reasoning_content"):
            table[name]["with a thought"] += 1
            table[name]["of them"] += level in ("pass", "soft")
        if level in ("miss", "cut") and table[name]["shown"] < arguments.show:
            table[name]["shown"] += 1
            print(
                f"-- {fixture['id']} ({level}) prompt {prompt_of(fixture, record)!r}\n   text {fixture['raw_output']!r}"
            )
            print(f"   want {json.dumps(fixture.get('expected'), ensure_ascii=False)}")
            print(f"   got  {got.reasoning!r} {got.content!r} {calls_of(got)}")
            print(f"        {[(rejection.reason, rejection.detail) for rejection in got.rejected]}")
    lines = [
        "| family | fixtures | pass | soft | miss | with a thought: right |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    whole = sum(table.values(), Counter())
    for name, count in [*sorted(table.items()), ("all", whole)]:
        total = sum(count[level] for level in ("pass", "soft", "miss", "cut"))
        row = (name, total, count["pass"], count["soft"], count["miss"] + count["cut"])
        lines.append(f"| {' | '.join(map(str, row))} | {count['of them']} of {count['with a thought']} |")
    print("\n".join(lines))
    if arguments.markdown:
        arguments.markdown.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
