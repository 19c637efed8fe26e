"""From a name to a model that is ready to run: its weights, its tokenizer and its profile."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ..decode.tables import DecoderTables, tables_of
from ..errors import (
    LoadError,
    MissingChatTemplateError,
    MissingDependencyError,
    MLXReasoningError,
    NotAModelError,
    OptionError,
    UnsupportedArchitectureError,
)
from ..protocols.checkpoint import unwrapped
from ..protocols.config import ModelProfile
from ..protocols.families import family
from ..protocols.resolve import Wanted, resolve_profile
from .cache import PromptCache
from .checkpoint import check_adapter, check_checkpoint, read_generation_config
from .hub import ADAPTER_FILES, DownloadProgress, locate


@dataclass(frozen=True)
class LoadedModel:
    """A model, its tokenizer, and what is known about its family.

    Args:
        model: mlx-lm's module.
        tokenizer: mlx-lm's wrapper around a Hugging Face tokenizer.
        profile: the family's protocol, with this tokenizer's stop ids.
        name: what it was loaded by.
        context_length: tokens that prompt and answer may take together; None where the config doesn't say.
        generation_config: the model's own defaults for sampling.
        prompt_cache: of a long beginning that many prompts share; turns without a cache begin with a copy of it.
    """

    model: Any
    tokenizer: Any
    profile: ModelProfile
    path: Path
    name: str
    config: dict[str, Any] = field(repr=False)
    context_length: int | None = None
    generation_config: dict[str, Any] = field(default_factory=dict, repr=False)
    prompt_cache: PromptCache | None = field(default=None, repr=False)

    @cached_property
    def tables(self) -> DecoderTables:
        """What all decoders of this model share; made at the first use."""
        return tables_of(self.tokenizer)

    @property
    def vocab_size(self) -> int | None:
        """The rows of the embedding: ids at or past it do not exist."""
        value = config_value(self.config, "vocab_size")
        return value if isinstance(value, int) else None

    @property
    def head_dim(self) -> int | None:
        """The size of a cached key, where the config says it simply."""
        given = config_value(self.config, "head_dim")
        if isinstance(given, int):
            return given
        hidden, heads = config_value(self.config, "hidden_size"), config_value(self.config, "num_attention_heads")
        plain = config_value(self.config, "kv_lora_rank") is None
        return hidden // heads if plain and isinstance(hidden, int) and isinstance(heads, int) and heads else None


def load(
    path_or_repo: str | os.PathLike[str],
    *,
    reasoning: Wanted = "auto",
    revision: str | None = None,
    adapter: str | os.PathLike[str] | None = None,
    chat_template: str | None = None,
    require_chat_template: bool = True,
    trust_remote_code: bool = False,
    lazy: bool = False,
    progress: DownloadProgress | None = None,
    prompt_cache: str | os.PathLike[str] | None = None,
) -> LoadedModel:
    """Loads a model: "demo", a folder, or a repository on the Hub.

    "demo" is always the embedded model; a folder of that name is "./demo".

    Args:
        reasoning: "auto" reads the family off the checkpoint; else a family's name, a `ReasoningConfig`, or None for
            no splitting.
        revision: a branch, tag or commit of the repository.
        adapter: a folder or repository with a LoRA adapter of mlx-lm's.
        chat_template: takes the place of the checkpoint's own.
        require_chat_template: with False, a checkpoint without a template loads, for prompts that are strings or ids.
        trust_remote_code: lets the checkpoint's own Python files run.
        lazy: leaves the weights on disk until they are needed.
        progress: called with bytes done and their total while files are downloaded.
        prompt_cache: a file of `mlx-reasoning cache` or `ChatSession.save`: prompts that begin so skip that part.

    Raises:
        LoadError: one of its leaves says what is wrong and what to do.
        SessionFileError: `prompt_cache` is no such file, or belongs to another model.
        UnknownFamilyError: `reasoning` names no family; the message lists the names.
    """
    if isinstance(reasoning, str) and reasoning != "auto":
        family(reasoning)
    path = locate(path_or_repo, revision=revision, progress=progress)
    written = check_checkpoint(path)
    adapter_path = None if adapter is None else _adapter_folder(adapter, progress)
    model, config = _load_weights(path, adapter_path, lazy=lazy, trust_remote_code=trust_remote_code)
    tokenizer = _load_tokenizer(path, config.get("eos_token_id"), chat_template, trust_remote_code=trust_remote_code)
    if require_chat_template:
        _check_template(tokenizer, path)
    generation_config = read_generation_config(path)
    loaded = LoadedModel(
        model=model,
        tokenizer=tokenizer,
        profile=_profile(reasoning, tokenizer, written, generation_config),
        path=path,
        name=os.fspath(path_or_repo),
        config=config,
        context_length=_context_length(config),
        generation_config=generation_config,
    )
    if prompt_cache is None:
        return loaded
    from .saved import read_cache

    return replace(loaded, prompt_cache=read_cache(Path(prompt_cache), loaded))


def config_value(config: dict[str, Any], name: str) -> Any:
    """A value of a config, or of the text model's part in it."""
    text = config.get("text_config")
    inner = text.get(name) if isinstance(text, dict) else None
    return inner if inner is not None else config.get(name)


def _context_length(config: dict[str, Any]) -> int | None:
    value = config_value(config, "max_position_embeddings")
    return value if isinstance(value, int) and value > 0 else None


def _profile(
    reasoning: Wanted, tokenizer: Any, config: dict[str, Any], generation_config: dict[str, Any]
) -> ModelProfile:
    """The family's profile with every id that anybody says ends a turn.

    Args:
        config: as the file has it; mlx-lm lets generation_config.json replace the stop ids in it.
    """
    profile = resolve_profile(reasoning, model_type=config.get("model_type"), tokenizer=tokenizer)
    ids = {*tokenizer.eos_token_ids, *profile.stop_token_ids}
    for value in (config_value(config, "eos_token_id"), generation_config.get("eos_token_id")):
        ids |= {value} if isinstance(value, int) else set(value or ())
    return replace(profile, stop_token_ids=tuple(sorted(ids)))


def _adapter_folder(adapter: str | os.PathLike[str], progress: DownloadProgress | None) -> Path:
    path = locate(adapter, files=ADAPTER_FILES, progress=progress)
    check_adapter(path)
    return path


def _check_template(tokenizer: Any, path: Path) -> None:
    if not tokenizer.has_chat_template:
        raise MissingChatTemplateError(
            f"{path} has no chat template, so messages cannot be rendered: pass chat_template=, or "
            "require_chat_template=False to give it prompts as text"
        )


def _load_weights(
    path: Path, adapter: Path | None, *, lazy: bool, trust_remote_code: bool
) -> tuple[Any, dict[str, Any]]:
    from mlx_lm.utils import load_model

    try:
        model, config = load_model(path, lazy=lazy, trust_remote_code=trust_remote_code)
    except Exception as error:
        raise _weights_error(path, error) from error
    return (model if adapter is None else _adapted(model, adapter)), config


def _weights_error(path: Path, error: Exception) -> MLXReasoningError:
    text = str(error)
    if isinstance(error, ValueError) and text.startswith("Model type"):
        missing = getattr(error.__cause__, "name", None) or ""
        if isinstance(error.__cause__, ModuleNotFoundError) and not missing.startswith("mlx_lm"):
            return MissingDependencyError(f"this model needs the package {missing!r}: install it")
        return UnsupportedArchitectureError(f"{path}: {text} Update mlx-lm, or choose a model that it supports")
    if "trust_remote_code" in text:
        return LoadError(f"{path} brings Python code of its own: to trust it, pass trust_remote_code=True")
    if any(word in text.lower() for word in ("memory", "alloc")):
        return LoadError(f"{path} does not fit into memory ({text}): choose a smaller or a quantised model")
    reason = (text.splitlines() or [type(error).__name__])[0]
    return NotAModelError(f"the weights of {path} do not fit its config.json ({reason}): download or convert it again")


def _adapted(model: Any, path: Path) -> Any:
    from mlx_lm.utils import load_adapters

    try:
        model = load_adapters(model, str(path))
    except Exception as error:
        reason = "; ".join(line.strip() for line in str(error).splitlines()[:2])
        raise LoadError(
            f"the adapter {path} does not fit this model ({reason}): load the one it was made for"
        ) from error
    model.eval()
    return model


def _load_tokenizer(path: Path, eos_token_ids: Any, chat_template: str | None, *, trust_remote_code: bool) -> Any:
    from mlx_lm.utils import load_tokenizer

    extra = {"trust_remote_code": True} if trust_remote_code else None
    try:
        tokenizer = load_tokenizer(path, extra, eos_token_ids=eos_token_ids)
    except ImportError as error:
        raise MissingDependencyError(f"the tokenizer of {path} needs a package: {error}") from error
    except Exception as error:
        if "trust_remote_code" in str(error):
            raise LoadError(
                f"{path} brings Python code of its own: to trust it, pass trust_remote_code=True"
            ) from error
        raise NotAModelError(f"the tokenizer of {path} cannot be read ({error}): copy it from the original") from error
    if chat_template is not None:
        unwrapped(tokenizer).chat_template = chat_template
        tokenizer.has_chat_template = True
    return tokenizer


def check_draft(model: LoadedModel, draft: LoadedModel) -> None:
    """Raises OptionError unless a draft model speaks the same tokens."""
    if not isinstance(draft, LoadedModel):
        raise OptionError(f"draft_model is {type(draft).__name__}: it must be a LoadedModel, from load(…)")
    if model.tokenizer.get_vocab() != draft.tokenizer.get_vocab():
        raise OptionError(f"the draft model {draft.name} has another vocabulary than {model.name}")
