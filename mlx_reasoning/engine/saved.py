"""A cache on disk, behind a header that a person can read: one file, written whole or not at all.

The file begins with a JSON object; where a cache follows, a line says so, and the rest is mlx-lm's prompt cache in
safetensors. The header says which model, template and tokenizer the cache belongs to.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import mlx.core as mx
from mlx.utils import tree_flatten
from mlx_lm.models.cache import load_prompt_cache, save_prompt_cache

from ..errors import SessionFileError
from ..protocols.checkpoint import unwrapped
from .cache import PromptCache

if TYPE_CHECKING:
    from .loading import LoadedModel

FORMAT = "mlx_reasoning session"
VERSION = 1
_LINE = b"\n--- the cache follows, as safetensors ---\n"
_WHAT = {
    "model_type": "the type of model",
    "weights": "the weights",
    "template": "the chat template",
    "vocabulary": "the vocabulary",
}


def identity(model: LoadedModel) -> dict[str, str]:
    """What a cache depends on, as short hashes. Of the weights, a few values of every parameter are looked at."""
    tokenizer = unwrapped(model.tokenizer)
    values = hashlib.sha256()
    for name, value in sorted(tree_flatten(model.model.parameters())):
        sample = value.reshape(-1)[:: max(1, value.size // 16)][:16]
        values.update(name.encode() + repr(sample.astype(mx.float32).tolist()).encode())
    return {
        "model_type": str(model.config.get("model_type")),
        "weights": values.hexdigest()[:16],
        "template": _hash(str(getattr(tokenizer, "chat_template", None))),
        "vocabulary": _hash(repr(sorted(tokenizer.get_vocab().items()))),
    }


def differences(saved: dict[str, Any], model: LoadedModel) -> list[str]:
    """What of a header's identity is not that of a model, in words."""
    now = identity(model)
    return [_WHAT[name] for name in _WHAT if saved.get(name) != now[name]]


def check_identity(path: Path, header: dict[str, Any], model: LoadedModel, advice: str) -> list[str]:
    """Refuses a file of a newer version, or of another model unless there is no `advice`; gives what differs.

    Raises:
        SessionFileError: with what differs.
    """
    if header.get("version") != VERSION:
        raise SessionFileError(f"{path} was written by another version of this package: update it")
    other = differences(header.get("identity") or {}, model)
    if other and advice:
        raise SessionFileError(
            f"{path} was saved with {header.get('model')}, and with {model.name} it differs in {', '.join(other)}:"
            f" load that model, or {advice}"
        )
    return other


def read_cache(path: Path, model: LoadedModel) -> PromptCache:
    """The cache of a file, for prompts that begin as it does.

    Raises:
        SessionFileError: it is no such file, has no cache, or belongs to another model.
    """
    header, cache = read(path)
    if not isinstance(header, dict) or header.get("format") != FORMAT or cache is None:
        raise SessionFileError(f"{path} holds no prompt cache: make one with `mlx-reasoning cache`")
    check_identity(path, header, model, "make the cache again")
    return cache


def write(path: Path, header: dict[str, Any], cache: PromptCache | None) -> None:
    """Writes a file; a crash at any moment leaves the old one or the new one.

    Raises:
        SessionFileError: the folder cannot be written to.
    """
    whole = {"format": FORMAT, "version": VERSION, **header}
    if cache is not None:
        whole["cached_ids"] = cache.ids
    text = json.dumps(whole, ensure_ascii=False, indent=1).encode("utf-8", "surrogatepass")
    try:
        with _replacing(path) as file:
            file.write(text + b"\n")
            if cache is not None:
                file.write(_LINE)
                with tempfile.TemporaryDirectory() as folder:
                    part = Path(folder, "cache.safetensors")
                    save_prompt_cache(str(part), cache.entries)
                    with part.open("rb") as stored:
                        shutil.copyfileobj(stored, file)
    except OSError as error:
        raise SessionFileError(f"{path} cannot be written ({error.strerror or error}): choose another place") from error


def read(path: Path, *, with_cache: bool = True) -> tuple[Any, PromptCache | None]:
    """A file's JSON and its cache, if it has one.

    Raises:
        SessionFileError: there is none, or it is damaged.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise SessionFileError(f"{path} cannot be read ({error.strerror or error}): check the name") from error
    text, line, stored = content.partition(_LINE)
    try:
        header = json.loads(text.decode("utf-8", "surrogatepass"))
    except ValueError as error:
        raise SessionFileError(f"{path} is no saved conversation ({error}): it should begin with JSON") from error
    if not line or not with_cache:
        return header, None
    try:
        with tempfile.TemporaryDirectory() as folder:
            part = Path(folder, "cache.safetensors")
            part.write_bytes(stored)
            entries = load_prompt_cache(str(part))
            mx.eval([entry.state for entry in entries])
        cache = PromptCache(entries, [int(token) for token in header["cached_ids"]])
    except Exception as error:  # safetensors, mlx-lm and mlx each have their own
        raise SessionFileError(f"the cache in {path} is damaged ({error}): load it with strict=False") from error
    if cache.length not in (len(cache.ids), None):
        raise SessionFileError(f"the cache in {path} does not hold what its header says: load it with strict=False")
    return header, cache


@contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    """A new file that takes the old one's place when all of it is on the disk."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
