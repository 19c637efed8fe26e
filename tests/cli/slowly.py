"""`mlx-reasoning` with a Qwen3 model that takes its time, or that fails: what a test cannot hit otherwise.

Environment: TEST_TOKEN and TEST_PROMPT are seconds more for each step and each long prompt, TEST_FAILS is how many
steps go well before the model runs out of memory, once.
"""

from __future__ import annotations

import os
import time
from typing import Any

from mlx_lm.models import qwen3

from mlx_reasoning.cli.main import main

TOKEN, PROMPT = float(os.environ.get("TEST_TOKEN", 0)), float(os.environ.get("TEST_PROMPT", 0))
fails = int(os.environ.get("TEST_FAILS", 0))
steps = 0
original = qwen3.Model.__call__


def call(self: Any, inputs: Any, *arguments: Any, **options: Any) -> Any:
    global steps
    steps += 1
    if steps == fails:
        raise MemoryError("no memory left for this test")
    time.sleep(TOKEN if inputs.shape[1] < 100 else PROMPT)
    return original(self, inputs, *arguments, **options)


qwen3.Model.__call__ = call
main()
