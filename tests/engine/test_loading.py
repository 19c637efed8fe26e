"""Loading: what a checkpoint gives, and one readable error for each thing that can be wrong with it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from mlx_lm.utils import load_model

from mlx_reasoning.engine.loading import LoadedModel, load
from mlx_reasoning.errors import (
    LoadError,
    MissingChatTemplateError,
    ModelNotFoundError,
    NotAModelError,
    UnknownFamilyError,
    UnsupportedArchitectureError,
)
from mlx_reasoning.generation import generate
from mlx_reasoning.protocols.config import ReasoningConfig
from tests.tiny import SHAPES, write_adapter, write_checkpoint


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_checkpoint(tmp_path / "model", "qwen3")


def edit(file: Path, **values: object) -> None:
    whole = json.loads(file.read_text())
    for name, value in values.items():
        if value is None:
            whole.pop(name, None)
        else:
            whole[name] = value
    file.write_text(json.dumps(whole))


FAMILIES = {"llama": "plain", "qwen3": "qwen3", "qwen3_5": "qwen3.5", "gemma4_text": "gemma4"}


@pytest.mark.parametrize("kind", sorted(SHAPES))
def test_a_checkpoint_gives_its_family_its_stops_and_its_context(tiny: Callable[[str], LoadedModel], kind: str) -> None:
    model = tiny(kind)
    assert model.profile.name == FAMILIES[kind]
    assert model.profile.stop_token_ids == (model.tokenizer.eos_token_id,)
    assert model.context_length == 4096
    assert model.vocab_size == len(model.tokenizer)
    assert model.head_dim == 32
    assert model.tables is model.tables


def test_stop_ids_come_from_every_place_that_names_one(folder: Path) -> None:
    edit(folder / "config.json", eos_token_id=[256, 258])
    (folder / "generation_config.json").write_text('{"eos_token_id": 257, "temperature": 0.6}')
    model = load(folder)
    assert model.profile.stop_token_ids == (256, 257, 258)
    assert model.generation_config["temperature"] == 0.6


def test_what_a_config_does_not_say_is_none(folder: Path) -> None:
    edit(folder / "config.json", max_position_embeddings=8)
    assert load(folder).context_length == 8
    model = LoadedModel(None, None, load(folder).profile, folder, "x", {"hidden_size": 64, "num_attention_heads": 2})
    assert (model.vocab_size, model.head_dim) == (None, 32)
    latent = {"hidden_size": 64, "num_attention_heads": 2, "kv_lora_rank": 8}
    assert LoadedModel(None, None, model.profile, folder, "x", latent).head_dim is None


@pytest.mark.parametrize("text", ["{", ""])
def test_a_bad_generation_config_is_passed_over(folder: Path, text: str) -> None:
    (folder / "generation_config.json").write_text(text)
    assert load(folder).generation_config == {}


def test_reasoning_is_auto_a_name_markers_or_none(folder: Path) -> None:
    assert load(folder, reasoning=None).profile.reasoning is None
    assert load(folder, reasoning="deepseek-r1").profile.name == "deepseek-r1"
    assert load(folder, reasoning=ReasoningConfig("<a>", "</a>")).profile.reasoning == ReasoningConfig("<a>", "</a>")
    with pytest.raises(UnknownFamilyError, match="qwen3"):
        load("/no/such/folder", reasoning="qwen-3")


def test_a_folder_that_is_not_there() -> None:
    with pytest.raises(ModelNotFoundError, match="no such folder"):
        load("/no/such/folder")


def cut(file: Path, size: int) -> None:
    file.write_bytes(file.read_bytes()[:size])


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "no config": (lambda f: (f / "config.json").unlink(), "no config.json"),
    "config cut": (lambda f: cut(f / "config.json", 40), "cannot be read"),
    "config a list": (lambda f: (f / "config.json").write_text("[]"), "not a JSON object"),
    "no model type": (lambda f: edit(f / "config.json", model_type=None), "no model_type"),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), "no weights"),
    "other weights": (lambda f: (f / "model.safetensors").rename(f / "tiny.gguf"), "tiny.gguf cannot be used"),
    "weights cut": (lambda f: cut(f / "model.safetensors", 5000), "cut off or damaged"),
    "weights' header cut": (lambda f: cut(f / "model.safetensors", 60), "cut off or damaged"),
    "weights empty": (lambda f: cut(f / "model.safetensors", 3), "cut off or damaged"),
    "weights garbage": (lambda f: (f / "model.safetensors").write_bytes(b"\x04" + bytes(7) + b"nope"), "damaged"),
    "weights a pointer": (lambda f: (f / "model.safetensors").write_text("version https://git-lfs"), "git lfs pull"),
    "a shard missing": (
        lambda f: (f / "model.safetensors.index.json").write_text('{"weight_map": {"a": "model-2.safetensors"}}'),
        "lacks model-2.safetensors",
    ),
    "no tokenizer": (lambda f: [shutil.move(p, f.parent) for p in f.glob("tokenizer*")], "no tokenizer"),
    "tokenizer cut": (lambda f: cut(f / "tokenizer.json", 100), "tokenizer of .* cannot be read"),
    "other shapes": (lambda f: edit(f / "config.json", intermediate_size=96), "do not fit its config.json"),
    "config lacks a size": (lambda f: edit(f / "config.json", hidden_size=None), "do not fit its config.json"),
}


@pytest.mark.parametrize(("damage", "message"), DAMAGE.values(), ids=DAMAGE)
def test_what_is_not_a_model(folder: Path, damage: Callable[[Path], object], message: str) -> None:
    damage(folder)
    with pytest.raises(NotAModelError, match=message):
        load(folder)


def test_an_architecture_that_mlx_lm_lacks(folder: Path) -> None:
    edit(folder / "config.json", model_type="marvin")
    with pytest.raises(UnsupportedArchitectureError, match="marvin"):
        load(folder)


def test_code_of_the_checkpoints_own_runs_only_when_trusted(folder: Path) -> None:
    edit(folder / "config.json", model_file="own.py")
    (folder / "own.py").write_text("from mlx_lm.models.qwen3 import Model, ModelArgs\n")
    with pytest.raises(LoadError, match="trust_remote_code=True"):
        load(folder)
    assert load(folder, trust_remote_code=True).profile.name == "qwen3"


def test_no_chat_template(folder: Path) -> None:
    (folder / "chat_template.jinja").unlink(missing_ok=True)
    edit(folder / "tokenizer_config.json", chat_template=None)
    with pytest.raises(MissingChatTemplateError, match="chat_template="):
        load(folder)
    without = load(folder, require_chat_template=False)
    assert generate(without, "Hello", max_tokens=3).usage.completion_tokens == 3
    given = load(folder, chat_template="{{ messages[0].content }}")
    assert generate(given, [{"role": "user", "content": "Hello"}], max_tokens=3).usage.prompt_tokens == 5


def test_lazy_weights_load_when_they_are_needed(folder: Path) -> None:
    assert generate(load(folder, lazy=True), "Hello", max_tokens=3) is not None


@pytest.fixture
def adapter(tmp_path: Path, folder: Path) -> Path:
    return write_adapter(tmp_path / "adapter", load_model(folder)[0])


def test_an_adapter_changes_the_model(folder: Path, adapter: Path) -> None:
    plain = generate(load(folder), "Hello", max_tokens=16)
    adapted = generate(load(folder, adapter=adapter), "Hello", max_tokens=16)
    assert plain.content != adapted.content


def test_a_folder_that_is_no_adapter(folder: Path, adapter: Path, tmp_path: Path) -> None:
    with pytest.raises(LoadError, match=r"no adapter_config.json"):
        load(folder, adapter=folder)
    with pytest.raises(ModelNotFoundError):
        load(folder, adapter=tmp_path / "nowhere")
    with pytest.raises(NotAModelError, match="holds an adapter"):
        load(adapter)
    peft = tmp_path / "peft"
    shutil.copytree(adapter, peft)
    (peft / "adapters.safetensors").rename(peft / "adapter_model.safetensors")
    with pytest.raises(LoadError, match="PEFT"):
        load(folder, adapter=peft)


def test_an_adapter_of_another_model(tmp_path: Path, adapter: Path) -> None:
    other = write_checkpoint(tmp_path / "other", "qwen3", hidden_size=32)
    with pytest.raises(LoadError, match="does not fit this model"):
        load(other, adapter=adapter)
