"""The training loop of the embedded model in PyTorch: the same lessons, model and recipe as in `train_demo.py`.

On a Linux machine without a GPU, PyTorch multiplies in bfloat16 and does some five times what mlx does there.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from demo_tokens import batches
from torch.nn import functional
from transformers import Qwen3Config, Qwen3ForCausalLM


def train(
    options: argparse.Namespace, config: dict[str, Any], tokenizer: Any, size: int, parts: int, save: Any
) -> None:
    """Trains for `steps` batches; the newest state stands in `runs`, and `save` gets the weights by name.

    Args:
        options: of the command line.
        config: of the checkpoint.
        size: lessons in a batch.
        parts: that a batch is split into, of similar length.
        save: called with the weights, float32, now and then.
    """
    torch.manual_seed(options.seed)
    torch.set_flush_denormal(True)
    model = Qwen3ForCausalLM(Qwen3Config(**config, attn_implementation="eager"))
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim > 1:
                weight.normal_(std=weight.shape[-1] ** -0.5)
    if options.start and not options.resume:
        _begin_with(model, options.start)
    muon, adam = [], []
    for name, weight in model.named_parameters():
        (muon if weight.ndim == 2 and "layers" in name else adam).append(weight)
    optimizers = [
        torch.optim.Muon(muon, lr=options.rate, momentum=0.95, weight_decay=0.01),
        torch.optim.AdamW(adam, lr=options.rate / 10, betas=(0.9, 0.95), weight_decay=0.0),
    ]
    state, first = options.runs / "state.pt", 0
    if options.resume:
        kept = torch.load(state)
        first = kept["step"]
        model.load_state_dict(kept["model"])
        for optimizer, its in zip(optimizers, kept["optimizers"], strict=True):
            optimizer.load_state_dict(its)
    rates = [optimizer.param_groups[0]["initial_lr"] if options.resume else optimizer.param_groups[0]["lr"]
             for optimizer in optimizers]  # fmt: skip

    began, mean, seen = time.perf_counter(), None, 0
    stream = batches(options.seed + 1000 * first, tokenizer, size, parts)
    for step in range(first, options.steps):
        progress = min(step / 100, 1.0) * max(1 - step / options.steps, 0.0)
        for optimizer, rate in zip(optimizers, rates, strict=True):
            optimizer.param_groups[0]["lr"] = rate * progress
            optimizer.param_groups[0]["initial_lr"] = rate
        batch = next(stream)
        learned, total = sum(float(counts[:, 1:].sum()) for _, counts in batch), 0.0
        for ids, counts in batch:
            weights, targets = counts[:, 1:].reshape(-1), ids[:, 1:].reshape(-1)
            places = np.flatnonzero(weights)
            with torch.autocast("cpu", torch.bfloat16):
                hidden = model.model(torch.from_numpy(ids[:, :-1]).long(), use_cache=False).last_hidden_state
                hidden = hidden.reshape(-1, hidden.shape[-1])[torch.from_numpy(places)]
                logits = functional.linear(hidden, model.model.embed_tokens.weight)
            each = functional.cross_entropy(logits.float(), torch.from_numpy(targets[places]).long(), reduction="none")
            loss = (each * torch.from_numpy(weights[places])).sum() / learned
            loss.backward()
            total, seen = total + loss.item(), seen + ids.size
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        mean = total if mean is None else 0.98 * mean + 0.02 * total
        taken = time.perf_counter() - began
        if (step + 1) % 20 == 0:
            left = taken / (step + 1 - first) * (options.steps - step - 1) / 60
            print(f"step {step + 1}/{options.steps}  loss {mean:.4f}  {seen / taken:,.0f} tokens/s"
                  f"  {left:.1f} min left", flush=True)  # fmt: skip
        if (step + 1) % 200 == 0 or step + 1 == options.steps:
            kept = {"step": step + 1, "model": model.state_dict(), "optimizers": [o.state_dict() for o in optimizers]}
            torch.save(kept, state.with_suffix(".partial"))
            state.with_suffix(".partial").replace(state)
            save({name: weight.detach().numpy() for name, weight in model.named_parameters()})


def _begin_with(model: Any, start: Path) -> None:
    """The checkpoint's weights."""
    from safetensors.torch import load_file

    known = {name: weight.float() for name, weight in load_file(start / "model.safetensors").items()}
    missing = set(model.load_state_dict(known, strict=False).missing_keys) - {"lm_head.weight"}
    if missing:
        raise SystemExit(f"{start} lacks {', '.join(sorted(missing))}: start from a checkpoint of this size")
