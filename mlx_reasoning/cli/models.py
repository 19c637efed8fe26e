"""`mlx-reasoning models`: what is in the Hub's cache on this machine, and how more comes there."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from ..errors import MLXReasoningError
from .output import note
from .setup import download

CHECKPOINTS = (
    ("mlx-community/Qwen3-0.6B-4bit", 0.4),
    ("mlx-community/Qwen3-1.7B-4bit", 1.0),
    ("mlx-community/Qwen3-4B-4bit", 2.3),
    ("mlx-community/gemma-4-e2b-it-4bit", 3.6),
    ("mlx-community/Qwen3-8B-4bit", 4.6),
    ("mlx-community/gemma-4-e4b-it-4bit", 5.5),
    ("mlx-community/Qwen3-14B-4bit", 8.3),
    ("mlx-community/gpt-oss-20b-MXFP4-Q8", 12.1),
    ("mlx-community/gemma-4-26b-a4b-it-4bit", 16.4),
    ("mlx-community/Qwen3-30B-A3B-4bit", 17.2),
    ("mlx-community/gemma-4-31b-it-4bit", 20.4),
)
"""Checkpoints that think, and their gigabytes, smallest first."""
SHARE = 0.6
"""Of the memory, for the weights: the cache, and what else runs, need the rest."""


def suggestions(memory: int | None = None) -> list[str]:
    """Three checkpoints that fit: the largest ones, or the smallest of all where memory is short.

    Args:
        memory: bytes; this machine's if None.
    """
    if memory is None:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    fitting = [name for name, size in CHECKPOINTS if size * 1e9 <= SHARE * memory]
    return (fitting[-3:] if len(fitting) >= 3 else [name for name, _ in CHECKPOINTS[:3]])[::-1]


def run_models(*, as_json: bool) -> int:
    """Lists the models in the Hub's cache; gives the exit code."""
    rows = cached_models()
    if as_json:
        print(json.dumps(rows, ensure_ascii=False, indent=2))
        return 0
    if not rows:
        note(f"no models yet; `mlx-reasoning models get NAME` downloads one, such as {', '.join(suggestions())}")
        return 0
    width = max(len(row["model"]) for row in rows)
    for row in rows:
        thinks = {True: "thinks", False: "does not think", None: "?"}[row["thinks"]]
        used = time.strftime("%Y-%m-%d", time.localtime(row["last_used"]))
        print(f"{row['model']:{width}}  {row['bytes'] / 1e9:7.2f} GB  {row['family'] or '?':12}  {thinks:14}  {used}")
    return 0


def run_get(name: str, revision: str | None) -> int:
    """Downloads a model, or what is missing of it; gives the exit code."""
    print(download(name, revision))
    return 0


def cached_models() -> list[dict[str, Any]]:
    """The models in the Hub's cache: name, bytes, family, whether they think, and when they were last used."""
    from huggingface_hub import CacheNotFound, scan_cache_dir

    try:
        cache = scan_cache_dir()
    except CacheNotFound:
        return []
    rows = []
    for repo in sorted(cache.repos, key=lambda repo: -repo.last_accessed):
        newest = max(repo.revisions, key=lambda revision: revision.last_modified, default=None)
        if repo.repo_type != "model" or newest is None or not (newest.snapshot_path / "config.json").is_file():
            continue
        family, thinks = _family(newest.snapshot_path)
        rows.append({"model": repo.repo_id, "bytes": repo.size_on_disk, "family": family, "thinks": thinks,
                     "last_used": repo.last_accessed, "path": str(newest.snapshot_path)})  # fmt: skip
    return rows


def _family(folder: Path) -> tuple[str | None, bool | None]:
    from ..engine.loading import load

    try:
        profile = load(folder, lazy=True, require_chat_template=False).profile
    except (MLXReasoningError, OSError, ValueError):
        return None, None  # half downloaded, or nothing for mlx-lm
    return profile.name, profile.reasoning is not None or profile.frames is not None
