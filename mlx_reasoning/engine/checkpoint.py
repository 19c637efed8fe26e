"""Looks at a checkpoint's files before anything is loaded from them, so that what is wrong can be said in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..errors import LoadError, NotAModelError

_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "tokenizer_config.json", "vocab.json", "*.tiktoken", "tekken.json")
_OTHER_WEIGHTS = ("*.gguf", "pytorch_model*.bin", "*.npz", "*.safetensors", "*.pt", "*.pth")


def check_checkpoint(path: Path) -> dict[str, Any]:
    """The config of a folder that holds a whole model.

    Raises:
        NotAModelError: something is missing, unreadable or cut off.
    """
    if not (path / "config.json").is_file():
        if (path / "adapter_config.json").is_file():
            raise NotAModelError(f"{path} holds an adapter, not a model: load its base model with adapter=…")
        raise NotAModelError(f"{path} has no config.json: pass the folder of an MLX or Hugging Face checkpoint")
    config = read_json(path / "config.json")
    if not isinstance(config.get("model_type"), str):
        raise NotAModelError(f"{path / 'config.json'} has no model_type: this is not a language model's config")
    weights = sorted(path.glob("model*.safetensors"))
    if not weights:
        others = sorted(file.name for pattern in _OTHER_WEIGHTS for file in path.glob(pattern))
        found = f" ({others[0]} cannot be used: convert it with mlx_lm.convert)" if others else ""
        raise NotAModelError(f"{path} has no weights (model*.safetensors){found}")
    index = path / "model.safetensors.index.json"
    if index.is_file():
        named = set(read_json(index).get("weight_map", {}).values())
        missing = sorted(name for name in named if isinstance(name, str) and not (path / name).exists())
        if missing:
            raise NotAModelError(f"{path} lacks {missing[0]}, which its index names: download the model again")
    for file in weights:
        check_safetensors(file)
    if not any(any(path.glob(pattern)) for pattern in _TOKENIZERS):
        raise NotAModelError(f"{path} has no tokenizer (tokenizer.json): copy it from the original model")
    return config


def check_adapter(path: Path) -> None:
    """Raises LoadError unless the folder holds an adapter of mlx-lm's."""
    if not (path / "adapter_config.json").is_file():
        raise LoadError(f"{path} is no adapter: it has no adapter_config.json")
    if not (path / "adapters.safetensors").is_file():
        peft = " (this one is PEFT's: convert it)" if any(path.glob("adapter_model.*")) else ""
        raise LoadError(f"{path} is no adapter of mlx-lm's: it has no adapters.safetensors{peft}")
    check_safetensors(path / "adapters.safetensors")
    read_json(path / "adapter_config.json")


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file.

    Raises:
        NotAModelError: it cannot be read, or is no object.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise NotAModelError(f"{path} cannot be read ({error}): download the model again") from error
    if not isinstance(value, dict):
        raise NotAModelError(f"{path} is not a JSON object: download the model again")
    return value


def read_generation_config(path: Path) -> dict[str, Any]:
    """The model's generation_config.json; empty where there is none or it cannot be read, as in mlx-lm."""
    try:
        return read_json(path / "generation_config.json")
    except NotAModelError:
        return {}


def check_safetensors(path: Path) -> None:
    """Raises NotAModelError unless the file is as long as its own header says."""
    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(8)
        if start == b"version ":
            raise NotAModelError(f"{path} is only a Git LFS pointer: run `git lfs pull` in its folder")
        length = int.from_bytes(start, "little")
        try:
            header = json.loads(file.read(length)) if len(start) == 8 and length <= size - 8 else None
            ends = [entry["data_offsets"][1] for name, entry in (header or {}).items() if name != "__metadata__"]
        except (ValueError, KeyError, IndexError, TypeError, AttributeError):
            header, ends = None, []
    if header is None or size != 8 + length + max(ends, default=0):
        raise NotAModelError(f"{path} is cut off or damaged: download it again")
