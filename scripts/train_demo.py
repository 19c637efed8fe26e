#!/usr/bin/env python
"""Trains the embedded model from scratch, or evaluates it.

    scripts/train_demo.py                         # train, and write mlx_reasoning/demo/
    scripts/train_demo.py --start mlx_reasoning/demo --rate 0.002    # go on from the checkpoint
    scripts/train_demo.py --evaluate              # accuracy by task, and against the thinking budget

On a Linux machine without a GPU, preloading OpenBLAS makes training some ten times faster (see README).
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
from demo_tokens import FOLDER, batches, build_tokenizer, lessons
from mlx.utils import tree_flatten, tree_map, tree_unflatten
from mlx_lm.models import qwen3
from transformers import PreTrainedTokenizerFast

CONFIG: dict[str, Any] = {
    "model_type": "qwen3",
    "architectures": ["Qwen3ForCausalLM"],
    "hidden_size": 128,
    "num_hidden_layers": 4,
    "intermediate_size": 384,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "rms_norm_eps": 1e-6,
    "vocab_size": 512,
    "max_position_embeddings": 2048,
    "rope_theta": 10000.0,
    "tie_word_embeddings": True,
}
ROWS, WIDTH = 24, 264


def new_model(seed: int) -> qwen3.Model:
    mx.random.seed(seed)
    model = qwen3.Model(qwen3.ModelArgs.from_dict(CONFIG))
    model.update(
        tree_map(lambda p: mx.random.normal(p.shape) * (p.shape[-1] ** -0.5) if p.ndim > 1 else p, model.parameters())
    )
    return model


def logits_apart(model: qwen3.Model, inputs: Any, lesson: Any) -> Any:
    """The model's logits (B, T, V), where a token sees only earlier tokens of its own lesson (B, T)."""
    width = inputs.shape[1]
    earlier = mx.tril(mx.ones((width, width), dtype=mx.bool_))
    mask = (earlier & (lesson[:, :, None] == lesson[:, None, :]))[:, None]  # (B, 1, T, T)
    hidden = model.model.embed_tokens(inputs)
    for layer in model.model.layers:
        hidden = layer(hidden, mask, None)
    return model.model.embed_tokens.as_linear(model.model.norm(hidden))


def optimizers(progress: Any, rate: float) -> optim.MultiOptimizer:
    """Muon for the matrices inside the layers, AdamW for embeddings and norms; `progress` is a factor of `rate`."""
    muon = optim.Muon(learning_rate=lambda step: rate * progress(step), momentum=0.95, weight_decay=0.01)
    adam = optim.AdamW(learning_rate=lambda step: rate / 10 * progress(step), betas=[0.9, 0.95], weight_decay=0.0)
    return optim.MultiOptimizer([muon, adam], [lambda path, weight: weight.ndim == 2 and "layers" in path])


def train(options: argparse.Namespace) -> None:
    """Trains for `steps` batches; the newest state stands in `runs`, the finished checkpoint in `out`."""
    out, runs, steps, seed, resume, start = (
        getattr(options, name) for name in ("out", "runs", "steps", "seed", "resume", "start")
    )
    runs.mkdir(parents=True, exist_ok=True)
    if resume or start:  # the vocabulary follows from the lessons, so that a changed lesson must not change it
        tokenizer = PreTrainedTokenizerFast.from_pretrained(start or runs)
        tokenizer.save_pretrained(runs)
    else:
        stream = lessons(seed + 7)
        tokenizer = build_tokenizer([next(stream) for _ in range(20000)])
        tokenizer.chat_template = (FOLDER / "chat_template.jinja").read_text()
        tokenizer.save_pretrained(runs)

    def progress(step: Any) -> Any:
        """A warm-up, a tenth at the full rate, then down to a hundredth by the same factor each step."""
        return mx.minimum(step / 100, 1.0) * 0.01 ** mx.clip((step / steps - 0.1) / 0.9, 0, 1)

    model, optimizer = new_model(seed), optimizers(progress, options.rate)
    first = _restore(model, optimizer, runs) if resume else 0
    if start and not resume:
        model.load_weights([(k, v.astype(mx.float32)) for k, v in mx.load(str(start / "model.safetensors")).items()])

    def loss(inputs: Any, targets: Any, lesson: Any, weights: Any) -> Any:
        losses = nn.losses.cross_entropy(logits_apart(model, inputs, lesson), targets)
        return (losses * weights).sum() / weights.sum()

    value_and_grad = nn.value_and_grad(model, loss)

    began, mean = time.perf_counter(), None
    rows = batches(seed + 1000 * first, tokenizer, ROWS, WIDTH)
    for step in range(first, steps):
        value, gradients = value_and_grad(*(mx.array(part) for part in next(rows)))
        gradients, _ = optim.clip_grad_norm(gradients, 1.0)
        optimizer.update(model, gradients)
        mx.eval(value, model.state, optimizer.state)
        mean = value.item() if mean is None else 0.98 * mean + 0.02 * value.item()
        if (step + 1) % 20 == 0:
            each = (time.perf_counter() - began) / (step + 1 - first)
            print(f"step {step + 1}/{steps}  loss {mean:.4f}  {ROWS * WIDTH / each:,.0f} tokens/s"
                  f"  {each * (steps - step - 1) / 60:.1f} min left", flush=True)  # fmt: skip
        if (step + 1) % 200 == 0 or step + 1 == steps:
            _store(model, optimizer, runs, step + 1)
            save(model, tokenizer, out)


def _store(model: nn.Module, optimizer: Any, runs: Path, step: int) -> None:
    flat = {f"model.{k}": v for k, v in tree_flatten(model.parameters())}
    flat |= {f"optimizer.{k}": v for k, v in tree_flatten(optimizer.state)}
    partial = runs / "state.partial.safetensors"
    mx.save_safetensors(str(partial), flat, metadata={"step": str(step)})
    partial.replace(runs / "state.safetensors")


def _restore(model: nn.Module, optimizer: Any, runs: Path) -> int:
    flat, metadata = mx.load(str(runs / "state.safetensors"), return_metadata=True)
    model.update(tree_unflatten([(k[6:], v) for k, v in flat.items() if k.startswith("model.")]))
    optimizer.init(model.trainable_parameters())
    optimizer.state = tree_unflatten([(k[10:], v) for k, v in flat.items() if k.startswith("optimizer.")])
    return int(metadata["step"])


def save(model: nn.Module, tokenizer: Any, out: Path) -> None:
    """Writes the checkpoint in bfloat16, as `mlx_lm.load` reads it."""
    out.mkdir(parents=True, exist_ok=True)
    weights = {k: v.astype(mx.bfloat16) for k, v in tree_flatten(model.parameters())}
    mx.save_safetensors(str(out / "model.safetensors"), weights, metadata={"format": "mlx"})
    eos = tokenizer.convert_tokens_to_ids("<|im_end|>")
    (out / "config.json").write_text(
        json.dumps(CONFIG | {"eos_token_id": eos, "torch_dtype": "bfloat16"}, indent=2) + "\n"
    )
    (out / "generation_config.json").write_text(json.dumps({"do_sample": False, "eos_token_id": eos}, indent=2) + "\n")
    tokenizer.save_pretrained(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=FOLDER, help="where the checkpoint is written")
    parser.add_argument("--runs", type=Path, default=Path("runs/demo"), help="where the training state is kept")
    parser.add_argument("--steps", type=int, default=5000, help="batches of 24 rows of 264 tokens")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume", action="store_true", help="go on from the state in --runs")
    parser.add_argument("--start", type=Path, help="begin with this checkpoint's weights and vocabulary")
    parser.add_argument("--rate", type=float, default=0.02, help="the highest learning rate of the matrices")
    parser.add_argument("--evaluate", action="store_true", help="evaluate the checkpoint in --out instead")
    parser.add_argument("--prompts", type=int, default=300, help="held-out prompts a task")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--plot", type=Path, help="draw accuracy against budget here")
    arguments = parser.parse_args()
    if arguments.evaluate:
        from demo_evaluate import evaluate

        evaluate(arguments.out, arguments.prompts, arguments.json, arguments.plot)
    else:
        train(arguments)


if __name__ == "__main__":
    main()
