"""Saved conversations: a header of JSON with OpenAI messages, and the cache behind it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..engine.cache import PromptCache
from ..engine.saved import FORMAT, check_identity, identity, read, write
from ..errors import SessionFileError

if TYPE_CHECKING:
    from ..engine.loading import LoadedModel


def save(path: Path, model: LoadedModel, messages: list[dict[str, Any]], cache: PromptCache | None) -> None:
    """Writes a conversation; see `write`."""
    write(path, {"model": model.name, "identity": identity(model), "messages": messages}, cache)


def load(path: Path, model: LoadedModel, *, strict: bool) -> tuple[list[dict[str, Any]], PromptCache | None]:
    """The messages of a file, and its cache if it is this model's.

    Raises:
        SessionFileError: it is no conversation, or not this model's.
    """
    header, cache = read(path, with_cache=strict)
    if isinstance(header, list):
        return header, None
    if not isinstance(header, dict) or not isinstance(header.get("messages"), list):
        raise SessionFileError(f"{path} has no messages: a saved conversation is a JSON object with a list of them")
    if header.get("format") != FORMAT:
        return header["messages"], None
    advice = "take the messages alone with strict=False" if strict else ""
    other = check_identity(path, header, model, advice)
    return header["messages"], None if other else cache
