"""From a name to a folder: the embedded checkpoint, a folder of the caller's, or a repository on the Hub."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from ..errors import HubError, ModelNotFoundError, NotAModelError

DownloadProgress: TypeAlias = Callable[[int, int], object]

MODEL_FILES = (
    "*.json", "*.jsonl", "*.jinja", "*.py", "*.txt",
    "model*.safetensors", "tokenizer.model", "*.tiktoken", "tiktoken.model",
)  # fmt: skip
ADAPTER_FILES = ("adapter_config.json", "adapters.safetensors")
_DEMO = Path(__file__).resolve().parent.parent / "demo"


def locate(
    name: str | os.PathLike[str],
    *,
    revision: str | None = None,
    files: tuple[str, ...] = MODEL_FILES,
    progress: DownloadProgress | None = None,
) -> Path:
    """The folder that a name means; a repository is downloaded, or taken from the Hub's cache.

    Raises:
        ModelNotFoundError: there is no such folder, repository or revision.
        NotAModelError: the name is a file's.
        HubError: the Hub cannot be reached or refuses, and nothing is cached.
    """
    text = os.fspath(name)
    if text == "demo":
        return _DEMO
    path = Path(text).expanduser()
    if path.is_dir():
        return path
    if path.exists():
        raise NotAModelError(f"{text} is a file: pass the folder that holds config.json and the weights")
    if not _may_be_repository(text):
        raise ModelNotFoundError(f"no such folder: {text!r} (a repository on the Hub is written organisation/name)")
    return _download(text, revision, files, progress)


def _may_be_repository(text: str) -> bool:
    owner, slash, name = text.partition("/")
    return bool(owner and slash and name) and "/" not in name and owner[0] not in ".~" and "\\" not in text


def _download(repo: str, revision: str | None, files: tuple[str, ...], progress: DownloadProgress | None) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        return Path(snapshot_download(repo, revision=revision, allow_patterns=list(files), tqdm_class=_bar(progress)))
    except GatedRepoError as error:
        raise HubError(
            f"{repo} is gated: accept its terms at https://huggingface.co/{repo}, then sign in with `hf auth login`"
        ) from error
    except RevisionNotFoundError as error:
        raise ModelNotFoundError(f"{repo} has no revision {revision!r}: use a branch, tag or commit") from error
    except RepositoryNotFoundError as error:
        raise ModelNotFoundError(
            f"no folder and no repository on the Hub is named {repo!r}: check the spelling; "
            "for a private one, sign in with `hf auth login`"
        ) from error
    except HFValidationError as error:
        raise ModelNotFoundError(f"no such folder: {repo!r}, nor can a repository be named so") from error
    except LocalEntryNotFoundError as error:
        raise HubError(_unreachable(repo, error.__cause__)) from error
    except HfHubHTTPError as error:
        status = error.response.status_code
        if status in (401, 403):
            raise HubError(f"the Hub refused access to {repo} ({status}): sign in with `hf auth login`") from error
        raise HubError(_answered(status, repo)) from error
    except (OSError, RuntimeError) as error:
        raise HubError(f"the download of {repo} broke off ({error}): try again, it goes on there") from error
    except Exception as error:
        if type(error).__module__.startswith(("httpx", "httpcore")):
            raise HubError(_unreachable(repo)) from error
        raise


def _unreachable(repo: str, why: BaseException | None = None) -> str:
    from huggingface_hub.constants import is_offline_mode
    from huggingface_hub.errors import HfHubHTTPError

    if isinstance(why, HfHubHTTPError):
        return _answered(why.response.status_code, repo)
    if is_offline_mode():
        return f"{repo} is not in the Hub's cache (or not whole), and HF_HUB_OFFLINE is set: unset it"
    return f"the Hub cannot be reached, and {repo} is not in its cache (or not whole): check the network"


def _bar(progress: DownloadProgress | None) -> Any:
    """A bar for huggingface_hub that draws nothing and reports the bytes of the whole snapshot."""
    from huggingface_hub.utils import tqdm

    class Bar(tqdm):  # type: ignore[misc]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self._counts_bytes = str(kwargs.get("desc", "")).startswith("Reconstruct")  # not files, not the wire
            kwargs.pop("name", None)
            super().__init__(*args, **{**kwargs, "disable": True})
            self.n = kwargs.get("initial") or 0
            self.total = kwargs.get("total") or 0

        def update(self, n: float | None = 1) -> None:
            self.n += n or 0
            if progress is not None and self._counts_bytes:
                progress(int(self.n), int(self.total or 0))

    return Bar


def _answered(status: int, repo: str) -> str:
    return f"the Hub answered {status} for {repo}, which is not in its cache: try again later, or pass a folder"
