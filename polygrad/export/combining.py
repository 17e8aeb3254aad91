"""`combine`: one file of a model for several devices, from a file for each."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from polygrad.errors import ArgumentError, ProgramError
from polygrad.export.files import read_file
from polygrad.helpers import write_file
from polygrad.runtime.bundle import Bundle


def combine(sources: Sequence[Any], path: str | os.PathLike[str]) -> None:
    """Write the exported files `sources` (paths, bytes or buffers) of one model as one file `path`, which has
    its weights once. Whoever loads it gets the code of the first that their host runs: give the fastest
    first.

    Raises ArgumentError for files that do not have the same inputs, outputs, values, settings and files;
    ProgramError for damaged ones.

    combine(["model.webgpu.pgrd", "model.wasm.pgrd"], "model.pgrd")
    """
    if isinstance(sources, (str, bytes, os.PathLike)) or not sources:
        raise ArgumentError(f"combine: sources: expected a list of exported files, got {sources!r:.80}")
    (first, values), *others = [read_file(source) for source in sources]
    for i, (other, others_values) in enumerate(others, 1):
        different = _difference(first, other)
        if different is None and others_values != values:
            different = "parameters or state"
        if different is not None:
            raise ArgumentError(
                f"combine: sources[{i}]: expected a file of the same model as sources[0], got one with other "
                f"{different}: export it for each device without training it in between"
            )
    targets = tuple(
        target for bundle in (first, *(other for other, _ in others)) for target in bundle.targets
    )
    try:
        bundle = Bundle(first.kind, first.settings, targets, first.files, first.zeros)
    except ProgramError as e:
        raise ArgumentError(f"combine: sources: {e}") from e
    write_file(path, [bundle.head([values]), values])  # `path` may be one of the sources, and mapped


def _difference(a: Bundle, b: Bundle) -> str | None:
    """What two files of a model differ in."""
    if a.kind != b.kind:
        return f"steps, for {b.kind} in the place of {a.kind}"
    if a.settings != b.settings:
        return "settings"
    if a.files != b.files:
        return "files"
    return None if set(a.zeros) == set(b.zeros) else "state"
