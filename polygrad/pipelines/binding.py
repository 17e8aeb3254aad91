"""Models by their task for bindings in other languages: `polygrad/bridge.py` calls these functions as
`$pipelines.NAME`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polygrad.hf.backend import prepare
from polygrad.hf.files import files_for
from polygrad.pipelines.answers import Answers
from polygrad.pipelines.loading import Loading
from polygrad.pipelines.tasks import Pipeline, task_class

__all__ = ["Answers", "Loading", "Pipeline", "call", "piece", "prepare", "small_files"]


def small_files(task: str, there: Sequence[str], missing: Sequence[str]) -> list[str]:
    """The small files of a model to look for next: see `polygrad.hf.files.files_for`. Raises
    ArgumentError."""
    return files_for(task_class(task).purposes, there, missing)


def piece(data: bytes) -> bytes:
    """Bytes of a file, for `Loading.feed`: questions have no bytes as arguments."""
    return data


def call(pipeline: Pipeline, method: str, *args: Any) -> Any:
    """What a method of a pipeline gives."""
    return getattr(pipeline, method)(*args)
