"""The embedded checkpoint: a small Qwen3-shaped model that thinks in steps. `load("demo")` loads it.

`scripts/train_demo.py` makes everything in this folder but the template and this file.
"""

from __future__ import annotations

from pathlib import Path

PATH = Path(__file__).parent
