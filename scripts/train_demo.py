#!/usr/bin/env python
"""Trains the embedded model from scratch, or evaluates it.

    scripts/train_demo.py                         # train, and write mlx_reasoning/demo/
    scripts/train_demo.py --start mlx_reasoning/demo --rate 0.002    # go on from the checkpoint
    scripts/train_demo.py --evaluate              # accuracy by task, and against the thinking budget

`mlx.launch -n 2 scripts/train_demo.py` trains on two cores: each process takes its own lessons. On a Linux machine
without a GPU, preloading OpenBLAS makes training some ten times faster (see docs/demo.md).
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import demo_kernels
import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
from demo_tokens import FOLDER, batches, build_tokenizer, lessons
from mlx.utils import tree_flatten, tree_map, tree_unflatten
from mlx_lm.models import qwen3
from transformers import PreTrainedTokenizerFast

CONFIG: dict[str, Any] = {
    "model_type": "qwen3",
    "architectures": ["Qwen3ForCausalLM"],
    "hidden_size": 128,
    "num_hidden_layers": 6,
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
LESSONS, PARTS = 32, 2


def new_model(seed: int) -> qwen3.Model:
    mx.random.seed(seed)
    model = qwen3.Model(qwen3.ModelArgs.from_dict(CONFIG))
    model.update(
        tree_map(lambda p: mx.random.normal(p.shape) * (p.shape[-1] ** -0.5) if p.ndim > 1 else p, model.parameters())
    )
    return model


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
    world = mx.distributed.init()
    if not mx.metal.is_available():
        demo_kernels.install()
    runs.mkdir(parents=True, exist_ok=True)
    if resume or start:  # the vocabulary follows from the lessons, so that a changed lesson must not change it
        tokenizer = PreTrainedTokenizerFast.from_pretrained(start or runs)
        tokenizer.save_pretrained(runs)
    else:
        stream = lessons(seed + 7)
        tokenizer = build_tokenizer([next(stream) for _ in range(20000)])
        tokenizer.chat_template = (FOLDER / "chat_template.jinja").read_text()
        tokenizer.save_pretrained(runs)
    if options.torch:
        import demo_torch

        demo_torch.train(
            options, CONFIG, tokenizer, LESSONS * 2, PARTS * 2, lambda weights: save(weights, tokenizer, out)
        )
        return

    def progress(step: Any) -> Any:
        """A warm-up, then a straight line down to nothing."""
        return mx.minimum(step / 100, 1.0) * mx.maximum(1 - step / steps, 0.0)

    model, optimizer = new_model(seed), optimizers(progress, options.rate)
    first = _restore(model, optimizer, runs) if resume else 0
    if start and not resume:
        _begin_with(model, start)

    def loss(inputs: Any, targets: Any, places: Any, weights: Any) -> Any:
        hidden = model.model(inputs).reshape(-1, CONFIG["hidden_size"])[places]
        logits = model.model.embed_tokens.as_linear(hidden)
        return nn.losses.cross_entropy(logits, targets, weights, reduction="sum")

    value_and_grad = nn.value_and_grad(model, loss)

    began, mean, seen = time.perf_counter(), None, 0
    stream = batches(seed + 1000 * first + world.rank(), tokenizer, LESSONS, PARTS)
    for step in range(first, steps):
        total, gradients, learned = mx.array(0.0), None, 0
        for ids, counts in next(stream):
            weights, targets = counts[:, 1:].reshape(-1), ids[:, 1:].reshape(-1)
            places = np.flatnonzero(weights)
            value, part = value_and_grad(*map(mx.array, (ids[:, :-1], targets[places], places, weights[places])))
            gradients = part if gradients is None else tree_map(mx.add, gradients, part)
            mx.eval(value, gradients)  # one part at a time: less memory
            total, learned, seen = total + value, learned + weights.sum(), seen + ids.size
        gradients = nn.average_gradients(tree_map(lambda part, count=learned: part / count, gradients))
        gradients, _ = optim.clip_grad_norm(gradients, 1.0)
        optimizer.update(model, gradients)
        mx.eval(model.state, optimizer.state)
        now = total.item() / learned
        mean = now if mean is None else 0.98 * mean + 0.02 * now
        if world.rank():
            continue
        if (step + 1) % 20 == 0:
            each = (time.perf_counter() - began) / (step + 1 - first)
            rate = world.size() * seen / (time.perf_counter() - began)
            print(f"step {step + 1}/{steps}  loss {mean:.4f}  {rate:,.0f} tokens/s"
                  f"  {each * (steps - step - 1) / 60:.1f} min left", flush=True)  # fmt: skip
        if (step + 1) % 200 == 0 or step + 1 == steps:
            _store(model, optimizer, runs, step + 1)
            save(dict(tree_flatten(model.parameters())), tokenizer, out)


def _begin_with(model: qwen3.Model, start: Path) -> None:
    """The checkpoint's weights; layers that it lacks change nothing at first."""
    known = mx.load(str(start / "model.safetensors"))
    model.load_weights([(k, v.astype(mx.float32)) for k, v in known.items()], strict=False)
    for at, layer in enumerate(model.model.layers):
        if f"model.layers.{at}.self_attn.o_proj.weight" not in known:
            layer.self_attn.o_proj.weight = mx.zeros_like(layer.self_attn.o_proj.weight)
            layer.mlp.down_proj.weight = mx.zeros_like(layer.mlp.down_proj.weight)


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


def save(weights: dict[str, Any], tokenizer: Any, out: Path) -> None:
    """Writes the checkpoint in bfloat16, as `mlx_lm.load` reads it."""
    out.mkdir(parents=True, exist_ok=True)
    weights = {k: mx.array(v).astype(mx.bfloat16) for k, v in weights.items()}
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
    parser.add_argument("--steps", type=int, default=5000, help="batches of 32 lessons for each process")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume", action="store_true", help="go on from the state in --runs")
    parser.add_argument("--start", type=Path, help="begin with this checkpoint's weights and vocabulary")
    parser.add_argument("--rate", type=float, default=0.02, help="the highest learning rate of the matrices")
    parser.add_argument("--torch", action="store_true", help="train with PyTorch: faster on Linux without a GPU")
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
