"""The public names: sorted, importable, light."""

from __future__ import annotations

import subprocess
import sys
import types

import pytest

import mlx_reasoning


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_the_public_names_are_sorted_and_all_there() -> None:
    assert list(mlx_reasoning.__all__) == sorted(mlx_reasoning.__all__)
    assert len(set(mlx_reasoning.__all__)) == len(mlx_reasoning.__all__)
    for name in mlx_reasoning.__all__:
        assert not isinstance(getattr(mlx_reasoning, name), types.ModuleType), name
    assert dir(mlx_reasoning) == sorted(mlx_reasoning.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_thing"):
        mlx_reasoning.no_such_thing  # noqa: B018


@pytest.mark.parametrize("name", ["split_reasoning", "family", "ReasoningEventEmitter", "Generation", "start_state"])
def test_the_splitter_and_the_words_import_neither_mlx_nor_transformers(name: str) -> None:
    code = f"""
import sys
from mlx_reasoning import {name}
heavy = {{module.partition(".")[0] for module in sys.modules}} & {{"mlx", "mlx_lm", "transformers", "numpy", "jinja2"}}
assert not heavy, heavy
"""
    done = run(code)
    assert done.returncode == 0, done.stderr


WITHOUT_MLX_LM = """
import sys
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name.split(".")[0] in ("mlx_lm", "mlx") else found(name, *rest)
from mlx_reasoning import MissingDependencyError, split_reasoning
got = split_reasoning("<think>a</think>b<tool_call>{}", "qwen3", tools=[])
assert (got.reasoning, got.content) == ("a", "b<tool_call>{}"), got
try:
    split_reasoning("b", "qwen3")
except MissingDependencyError as error:
    assert "mlx-lm" in str(error) and "tools=[]" in str(error)
else:
    raise SystemExit("asking for calls did not say that mlx-lm is missing")
assert not any(module.partition(".")[0] in ("mlx", "mlx_lm") for module in sys.modules)
"""


def test_without_mlx_lm_the_splitter_works_and_asking_for_calls_says_what_is_missing() -> None:
    done = run(WITHOUT_MLX_LM)
    assert done.returncode == 0, done.stderr


def test_a_split_loads_mlx_only_when_a_call_is_parsed() -> None:
    code = """
import sys
from mlx_reasoning import split_reasoning
split_reasoning("<think>a</think>b", "qwen3")
assert "mlx_lm" not in sys.modules
got = split_reasoning('<tool_call>{"name": "f", "arguments": {}}</tool_call>', "qwen3")
assert [call.name for call in got.tool_calls] == ["f"] and "mlx_lm" in sys.modules
"""
    done = run(code)
    assert done.returncode == 0, done.stderr
