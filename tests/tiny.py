"""Tiny random checkpoints, one for each kind of cache, made in a moment and loaded like real ones."""

from __future__ import annotations

import importlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mlx.core as mx
from mlx.utils import tree_flatten, tree_map

from .vocab import CHATML, GEMMA, QWEN, byte_tokenizer

CHATML_TEMPLATE = """\
{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\\n' }}
{%- if message.role == 'assistant' and message.reasoning_content and loop.last %}
{{- '<think>\\n' + message.reasoning_content + '\\n</think>\\n\\n' }}
{%- endif %}
{{- message.content or '' }}
{%- for call in message.tool_calls or [] %}
{%- set whole = {'name': call.function.name, 'arguments': call.function.arguments} %}
{{- '\\n<tool_call>\\n' + whole | tojson + '\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\\n' }}
{%- if enable_thinking is defined and not enable_thinking %}
{{- '<think>\\n\\n</think>\\n\\n' }}
{%- endif %}
{%- endif %}
"""
OPEN_TEMPLATE = CHATML_TEMPLATE.replace(
    "{{- '<|im_start|>assistant\\n' }}", "{{- '<|im_start|>assistant\\n<think>\\n' }}"
).replace("{{- '<think>\\n\\n</think>\\n\\n' }}", "{{- '\\n</think>\\n\\n' }}")
GEMMA_TEMPLATE = """\
{{- bos_token }}
{%- if enable_thinking %}{{- '<|turn>system\\n<|think|><turn|>\\n' }}{%- endif %}
{%- for message in messages %}
{{- '<|turn>' + ('model' if message.role == 'assistant' else message.role) + '\\n' + (message.content or '') }}
{{- '<turn|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|turn>model\\n' }}
{%- if not enable_thinking %}{{- '<|channel>thought\\n<channel|>' }}{%- endif %}
{%- endif %}
"""
PLAIN_TEMPLATE = """\
{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\\n' + (message.content or '') + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}
"""

_BASE: dict[str, Any] = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "rms_norm_eps": 1e-6,
    "max_position_embeddings": 4096,
    "rope_theta": 10000.0,
    "tie_word_embeddings": True,
}


@dataclass(frozen=True)
class Shape:
    """What one type of checkpoint is made of."""

    config: dict[str, Any]
    template: str
    eos: str
    special: list[str]
    added: list[str]
    bos: str | None = None


SHAPES = {
    "llama": Shape(_BASE, PLAIN_TEMPLATE, "<|im_end|>", CHATML, []),
    "qwen3": Shape(_BASE, CHATML_TEMPLATE, "<|im_end|>", CHATML, QWEN),
    "qwen3_5": Shape(
        {
            "text_config": {
                **_BASE,
                "model_type": "qwen3_5_text",
                "num_hidden_layers": 4,
                "linear_num_value_heads": 4,
                "linear_num_key_heads": 2,
                "linear_key_head_dim": 32,
                "linear_value_head_dim": 32,
                "linear_conv_kernel_dim": 4,
                "full_attention_interval": 4,
                "rope_parameters": {
                    "type": "default",
                    "rope_theta": 10000.0,
                    "partial_rotary_factor": 0.5,
                    "mrope_section": [1, 1, 2],
                },
            },
            "tie_word_embeddings": True,
        },
        OPEN_TEMPLATE,
        "<|im_end|>",
        CHATML,
        QWEN,
    ),
    "gemma4_text": Shape(
        {
            **_BASE,
            "global_head_dim": 32,
            "num_kv_shared_layers": 2,
            "hidden_size_per_layer_input": 16,
            "sliding_window": 32,
            "num_hidden_layers": 6,
            "sliding_window_pattern": 2,
            "layer_types": ["sliding_attention", "full_attention"] * 3,
        },
        GEMMA_TEMPLATE,
        "<turn|>",
        GEMMA,
        [],
        bos="<bos>",
    ),
}


def write_checkpoint(
    folder: Path,
    kind: str = "qwen3",
    *,
    seed: int = 0,
    template: str | None = None,
    added: list[str] | None = None,
    **config: Any,
) -> Path:
    """Writes a random checkpoint of a kind, or with a template and added tokens of its own; further keywords change
    its config."""
    shape = SHAPES[kind]
    folder.mkdir(parents=True, exist_ok=True)
    own = shape.added if added is None else added
    tokenizer = byte_tokenizer(own, special=shape.special, template=template or shape.template)
    tokenizer.eos_token = shape.eos
    tokenizer.bos_token = shape.bos
    tokenizer.save_pretrained(folder)
    vocab_size = len(tokenizer)
    whole: dict[str, Any] = {"model_type": kind, **shape.config, "eos_token_id": tokenizer.eos_token_id, **config}
    inner = whole.get("text_config", whole)
    inner["vocab_size"] = vocab_size
    if kind == "gemma4_text":
        whole["vocab_size_per_layer_input"] = vocab_size
    (folder / "config.json").write_text(json.dumps(whole))
    weights = _random_weights(kind, whole, seed)
    mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "mlx"})
    return folder


def write_adapter(folder: Path, model: Any, *, rank: int = 4, seed: int = 5) -> Path:
    """Writes a random LoRA adapter that changes what the model says; the model itself is changed too."""
    from mlx_lm.tuner.utils import linear_to_lora_layers

    folder.mkdir(parents=True, exist_ok=True)
    parameters = {"rank": rank, "scale": 20.0, "dropout": 0.0}
    layers = len(model.layers)
    linear_to_lora_layers(model, layers, parameters)
    mx.random.seed(seed)
    weights = {
        name: mx.random.normal(value.shape)
        for name, value in tree_flatten(model.parameters())
        if name.rsplit(".", 1)[-1] in ("lora_a", "lora_b")
    }
    mx.save_safetensors(str(folder / "adapters.safetensors"), weights)
    config = {"fine_tune_type": "lora", "num_layers": layers, "lora_parameters": parameters}
    (folder / "adapter_config.json").write_text(json.dumps(config))
    return folder


def _random_weights(kind: str, config: dict[str, Any], seed: int) -> dict[str, mx.array]:
    module = importlib.import_module(f"mlx_lm.models.{kind}")
    mx.random.seed(seed)
    model = module.Model(module.ModelArgs.from_dict(json.loads(json.dumps(config))))
    weights: dict[str, mx.array] = dict(
        tree_flatten(
            tree_map(lambda p: mx.random.normal(p.shape) * p.shape[-1] ** -0.5 if p.ndim > 1 else p, model.parameters())
        )
    )
    mx.eval(weights)
    return weights
