"""`mlx-reasoning split` and `families`: the splitter on any text, and the table behind it. No model, no mlx."""

from __future__ import annotations

import codecs
import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ..decode.split import TextSplitter
from ..events import GenerationEvent, event_to_dict
from ..protocols.families import FAMILIES, family
from .toolfiles import read_tools, schemas


def run_split(protocol: str, *, inside: bool, tools: Path | None) -> int:
    """Text on stdin becomes events as JSON lines on stdout, as it comes; gives the exit code."""
    profile = family(protocol)
    only_closes = profile.reasoning is not None and profile.reasoning.start_delimiter is None
    splitter = TextSplitter(profile, inside or only_closes, None if tools is None else schemas(read_tools(tools)))
    for piece in _pieces():
        _print(splitter.push(piece))
    _print(splitter.finish())
    return 0


def _print(events: Iterable[GenerationEvent]) -> None:
    for event in events:
        print(json.dumps(event_to_dict(event), ensure_ascii=False), flush=True)


def _pieces() -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    while data := os.read(sys.stdin.fileno(), 1 << 16):
        yield decoder.decode(data)
    yield decoder.decode(b"", final=True)


def run_families(*, as_json: bool) -> int:
    """Prints the table of families; gives the exit code."""
    rows: list[dict[str, Any]] = []
    for name, row in FAMILIES.items():
        pair = [row.reasoning.start_delimiter, row.reasoning.end_delimiter] if row.reasoning else None
        calls = row.tool_calls.opener if row.tool_calls else None
        rows.append({"family": name, "thought": pair, "frames": row.frames.name if row.frames else None,
                     "tool_calls": calls, "switch": row.prompt.switch, "efforts": list(row.prompt.efforts),
                     "unset": row.prompt.default, "model_types": sorted(row.model_types)})  # fmt: skip
    if as_json:
        print(json.dumps(rows, ensure_ascii=False, indent=2))
        return 0
    for found in rows:
        thought = " … ".join(marker or "" for marker in found["thought"] or ()) or found["frames"] or "-"
        efforts = f" ({', '.join(found['efforts'])})" if found["efforts"] else ""
        unset = {True: "thinks", False: "does not", None: "as it likes"}[found["unset"]]
        calls, switch = found["tool_calls"] or "-", found["switch"] or "-"
        print(f"{found['family']:18} {thought:36} {calls:28} {unset:12} {switch}{efforts}")
    return 0
