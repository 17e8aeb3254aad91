"""Downloads of models from a hub, through the package huggingface_hub."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

from polygrad.errors import DeviceError, FetchError

_WANTED = ["*.json", "*.txt", "*.jinja", "*.model", "*.safetensors", "pytorch_model*.bin"]
_WANTED += ["LICENSE*", "NOTICE*", "README.md"]


def download_hf(
    repo_id: str, cache_dir: str | os.PathLike[str] | None = None, revision: str | None = None
) -> Path:
    """The folder of a repository's files, downloaded once, into huggingface_hub's own cache (or `cache_dir`).

    Weights in other formats than safetensors are left out where there are safetensors. Raises FetchError;
    DeviceError where the package is not installed.
    """
    try:
        hub: Any = importlib.import_module("huggingface_hub")
    except ImportError as e:
        raise DeviceError(
            'download_hf: the package huggingface_hub is not installed: pip install "polygrad[hf]"'
        ) from e
    try:
        names = hub.list_repo_files(repo_id, revision=revision)
        unwanted = ["*.bin"] if any(name.endswith(".safetensors") for name in names) else []
        folder = hub.snapshot_download(
            repo_id,
            revision=revision,
            cache_dir=None if cache_dir is None else os.fspath(cache_dir),
            allow_patterns=_WANTED,
            ignore_patterns=unwanted,
        )
    except Exception as e:  # the library's errors have no other common base
        raise FetchError(f"download_hf {repo_id}: {type(e).__name__}: {e}") from e
    return Path(folder)
