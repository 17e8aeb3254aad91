"""The files that are exported, and the function that loads each kind."""

from __future__ import annotations

import mmap
import os
from typing import Any

from polygrad.errors import ProgramError
from polygrad.nn.safetensors import TensorEntry, read_entries, read_header
from polygrad.runtime.bundle import (
    FEATURE_EXTRACTION,
    TEXT_CLASSIFICATION,
    TEXT_GENERATION,
    Bundle,
    is_bundle,
    read_bundle,
)

# What reads each kind of Bundle.
LOADERS = {
    TEXT_GENERATION: "load_language_model",
    FEATURE_EXTRACTION: "load_text_encoder",
    TEXT_CLASSIFICATION: "load_text_classifier",
}


# The devices whose code is confined: it reaches the memory that it is given, and nothing else.
_CONFINED = frozenset({"WASM", "WEBGPU"})


def check_trust(function: str, device: str, native: bool) -> None:
    """Raises ProgramError for a file with code that is not confined, unless `native` allows it."""
    if not native and device not in _CONFINED:
        raise ProgramError(
            f"{function}: expected code that is confined, for WASM or WEBGPU, got code for {device}, which "
            "may do whatever this process may: pass native=True if you trust who made the file, or have it "
            "exported on WASM"
        )


def read_source(source: Any) -> memoryview:
    """The bytes of a file: a path, bytes, or a buffer. A file is mapped where the host supports it."""
    if not isinstance(source, (str, os.PathLike)):
        return memoryview(source).cast("B")
    with open(source, "rb") as f:
        try:
            return memoryview(mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ))
        except (OSError, ValueError):  # an empty file, or a host that maps none
            return memoryview(f.read())


def open_bundle(source: Any, kind: str, native: bool) -> tuple[Bundle, memoryview]:
    """The Bundle of a kind in a file, and its values. Raises ProgramError for other files, and for code that
    is not confined unless `native` allows it."""
    data = read_source(source)
    if not is_bundle(data) and bytes(data[:4]) == b"PGRD":
        raise ProgramError(f"{LOADERS[kind]}: expected {kind}, got an exported step: use load")
    bundle, values = read_bundle(data)
    if bundle.kind != kind:
        raise wrong_kind(LOADERS[kind], kind, bundle.kind)
    check_trust(LOADERS[kind], bundle.device, native)
    return bundle, values


def read_values(values: memoryview) -> dict[str, TensorEntry]:
    """The values in a file, by name. Raises ArgumentError for damaged ones, ProgramError for metadata, which
    no writer of these files writes."""
    if not values:
        return {}
    if "__metadata__" in read_header(values)[1]:
        raise ProgramError("values: expected tensors alone, got metadata too: export it again")
    return read_entries(values)


def wrong_kind(function: str, expected: str, kind: str) -> ProgramError:
    """The error for a file of another kind, which names the right function."""
    advice = f"use {LOADERS[kind]}" if kind in LOADERS else "use a newer polygrad"
    return ProgramError(f"{function}: expected {expected}, got a file for {kind}: {advice}")
