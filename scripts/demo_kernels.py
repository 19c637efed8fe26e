"""Softmax and SwiGLU of the embedded model's training, without `exp`.

Without a GPU, mlx takes some 15 ns for one `exp`: half of a training step. Written as multiplications alone, and
compiled, it takes one. `install` puts these in the place of the model's own; a checkpoint needs none of it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import mlx.core as mx
from mlx_lm.models import qwen3

HALVINGS = 8


def _exp(x: Any) -> Any:
    """exp(x) for -80 <= x <= 80, as (exp(x / 256)) ** 256, to five digits."""
    x = mx.clip(x, -80.0, 80.0) * 2.0**-HALVINGS
    y = 1 + x * (1 + x * (0.5 + x * (1 / 6)))
    for _ in range(HALVINGS):
        y = y * y
    return y


@partial(mx.compile, shapeless=True)
def _sigmoid(x: Any) -> Any:
    return 1 / (1 + _exp(-x))


@partial(mx.compile, shapeless=True)
def _softmax(scores: Any) -> Any:
    numerators = _exp(scores - scores.max(axis=-1, keepdims=True))
    return numerators / numerators.sum(axis=-1, keepdims=True)


@partial(mx.compile, shapeless=True)
def _softmax_gradient(cotangent: Any, softmax: Any) -> Any:
    product = cotangent * softmax
    return product - softmax * product.sum(axis=-1, keepdims=True)


@partial(mx.compile, shapeless=True)
def _swiglu_gradients(cotangent: Any, gate: Any, up: Any, sigmoid: Any) -> tuple[Any, Any]:
    silu = gate * sigmoid
    return cotangent * up * (sigmoid + silu * (1 - sigmoid)), cotangent * silu


@mx.custom_function
def softmax(scores: Any) -> Any:
    return _softmax(scores)


@softmax.vjp  # type: ignore[untyped-decorator]
def _(primals: Any, cotangent: Any, output: Any) -> Any:
    return _softmax_gradient(cotangent, output)


@mx.custom_function
def swiglu(gate: Any, up: Any) -> Any:
    return gate * up * _sigmoid(gate)


@swiglu.vjp  # type: ignore[untyped-decorator]
def _(primals: Any, cotangent: Any, output: Any) -> Any:
    gate, up = primals
    return _swiglu_gradients(cotangent, gate, up, _sigmoid(gate))


def causal_attention(queries: Any, keys: Any, values: Any, cache: Any, scale: float, mask: Any) -> Any:
    """Queries (B, H, T, D) over keys and values (B, K, T, D), H a multiple of K; as the model's own."""
    batch, heads, length, size = queries.shape
    grouped = (queries * scale).reshape(batch, keys.shape[1], -1, length, size)
    later = mx.triu(mx.full((length, length), -1e9), k=1)
    weights = softmax(grouped @ keys[:, :, None].swapaxes(-1, -2) + later)
    return (weights @ values[:, :, None]).reshape(batch, heads, length, size)


def install() -> None:
    qwen3.scaled_dot_product_attention = causal_attention
    qwen3.swiglu = swiglu
