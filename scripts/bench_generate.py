#!/usr/bin/env python
"""Tokens per second of the event loop beside mlx_lm.stream_generate, alternating in one run.

    python scripts/bench_generate.py [--runs 15] [--tokens 200] [--models demo,large] [--json FILE]

Both sides get the same model, prompt ids, greedy sampler and number of tokens, and both are timed from the call to the
last event. "large" is a random model of SmolLM2-135M's size (float32), written to a temporary folder.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import mlx.core as mx
import mlx_lm

from mlx_reasoning.engine.loading import LoadedModel, load
from mlx_reasoning.generation import stream_generate

_LARGE: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 576,
    "num_hidden_layers": 30,
    "intermediate_size": 1536,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "rms_norm_eps": 1e-5,
    "vocab_size": 49152,
    "max_position_embeddings": 8192,
    "rope_theta": 100000.0,
    "tie_word_embeddings": True,
}


@dataclass(frozen=True)
class Row:
    """One model: median tokens per second of both, and the median of the ratios of neighbouring runs."""

    model: str
    tokens: int
    runs: int
    ours: float
    mlx_lm: float
    ratio: float
    lowest: float
    highest: float


def ours(model: LoadedModel, prompt: list[int], tokens: int) -> int:
    count = 0
    for event in stream_generate(model, prompt, max_tokens=tokens, temperature=0.0):
        if hasattr(event, "info"):
            count = event.info.usage.completion_tokens or 0
    return count


def theirs(model: LoadedModel, prompt: list[int], tokens: int) -> int:
    count = 0
    for response in mlx_lm.stream_generate(model.model, model.tokenizer, prompt, max_tokens=tokens):
        count = response.generation_tokens
    return count


def rate(
    run: Callable[[LoadedModel, list[int], int], int], model: LoadedModel, prompt: list[int], tokens: int
) -> float:
    began = perf_counter()
    count = run(model, prompt, tokens)
    if count != tokens:
        raise SystemExit(f"{run.__name__} gave {count} tokens, not {tokens}")
    return count / (perf_counter() - began)


def measure(name: str, model: LoadedModel, tokens: int, runs: int) -> Row:
    """Alternates, and changes who goes first, so that a slow spell of the machine meets both."""
    model = without_stops(model)
    prompt = list(model.tokenizer.encode("What is 347 + 286?"))
    for run in (ours, theirs):
        rate(run, model, prompt, tokens)
    pairs: list[tuple[float, float]] = []
    for n in range(runs):
        if n % 2:
            other = rate(theirs, model, prompt, tokens)
            own = rate(ours, model, prompt, tokens)
        else:
            own = rate(ours, model, prompt, tokens)
            other = rate(theirs, model, prompt, tokens)
        pairs.append((own, other))
    ratios = [own / other for own, other in pairs]
    return Row(
        name,
        tokens,
        runs,
        statistics.median(own for own, _ in pairs),
        statistics.median(other for _, other in pairs),
        statistics.median(ratios),
        min(ratios),
        max(ratios),
    )


def without_stops(model: LoadedModel) -> LoadedModel:
    """So that both sides write the same number of tokens, whatever the model says."""
    model.tokenizer.eos_token_ids = []
    return replace(model, profile=replace(model.profile, stop_token_ids=()))


def large(folder: Path) -> LoadedModel:
    """A random model of SmolLM2-135M's size, with a tokenizer of as many entries."""
    from mlx.utils import tree_flatten, tree_map
    from mlx_lm.models import llama
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {char: at for at, char in enumerate(alphabet)}
    for number in range(_LARGE["vocab_size"] - len(alphabet) - 1):
        vocabulary[f"Ġw{number}"] = len(vocabulary)
    vocabulary["<|im_end|>"] = len(vocabulary)
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>").save_pretrained(folder)
    mx.random.seed(0)
    model = llama.Model(llama.ModelArgs.from_dict(_LARGE))
    weights = tree_map(lambda p: mx.random.normal(p.shape) * 0.04 if p.ndim > 1 else p, model.parameters())
    mx.save_safetensors(str(folder / "model.safetensors"), dict(tree_flatten(weights)), metadata={"format": "mlx"})
    (folder / "config.json").write_text(json.dumps(_LARGE))
    return load(folder, require_chat_template=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="demo,large", help="demo, large, or folders; with commas")
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.models.split(","):
            if name == "large":
                rows.append(measure(name, large(Path(folder)), arguments.tokens // 4, max(arguments.runs // 3, 3)))
            else:
                rows.append(measure(name, load(name), arguments.tokens, arguments.runs))
    print(f"{'model':<10}{'tokens':>8}{'runs':>6}{'ours t/s':>11}{'mlx-lm t/s':>12}{'ratio':>8}   lowest … highest")
    for row in rows:
        print(
            f"{row.model:<10}{row.tokens:>8}{row.runs:>6}{row.ours:>11.1f}{row.mlx_lm:>12.1f}{row.ratio:>8.3f}"
            f"   {row.lowest:.3f} … {row.highest:.3f}"
        )
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")


if __name__ == "__main__":
    main()
