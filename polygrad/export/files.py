"""The files that are exported, the function that loads each kind, and which of several targets is used."""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from polygrad.dtype import to_dtype
from polygrad.engine.devices import Device
from polygrad.errors import DeviceError, OutOfMemoryError, ProgramError
from polygrad.nn.safetensors import TensorEntry, read_entries, read_header
from polygrad.runtime.bundle import (
    FEATURE_EXTRACTION,
    STEP,
    TEXT_CLASSIFICATION,
    TEXT_GENERATION,
    Bundle,
    is_bundle,
    read_bundle,
)
from polygrad.runtime.program import Program, read_program

# What reads each kind of Bundle.
LOADERS = {
    STEP: "load",
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


def read_file(source: Any) -> tuple[Bundle, memoryview]:
    """An exported file, and its values. A file of one Program is a Bundle of the kind STEP. Raises
    ProgramError."""
    data = read_source(source)
    if is_bundle(data):
        return read_bundle(data)
    program, values = read_program(data)
    for i, b in enumerate(program.buffers):
        if b.role != "scratch" and (not b.name or b.shape is None):
            raise ProgramError(
                f"load: expected every {b.role} to have a name and a shape, got none for buffer {i}: "
                "export the step with save()"
            )
    return Bundle(STEP, {}, ({STEP: program},)), values


def open_file(
    source: Any, kind: str, native: bool, device: str | None, max_bytes: int | None = None
) -> tuple[Bundle, memoryview]:
    """The file of a kind, with the target that this host runs, and its values.

    That is the first one for `device`, or for a device that is there. Code that is not confined needs
    `native`. `max_bytes`: the most memory that its buffers may need. Raises ProgramError for other files, and
    where there is no such target; OutOfMemoryError where it needs more memory.
    """
    bundle, values = read_file(source)
    function = LOADERS[kind]
    if bundle.kind != kind:
        advice = f"use {LOADERS[bundle.kind]}" if bundle.kind in LOADERS else "use a newer polygrad"
        raise ProgramError(
            f"{function}: expected {_described(kind)}, got {_described(bundle.kind)}: {advice}"
        )
    programs = _target(function, bundle, native, device)
    nbytes = memory_of(programs)
    if max_bytes is not None and nbytes > max_bytes:
        raise OutOfMemoryError(
            f"{function}: expected a model of up to {max_bytes} bytes, got one of {nbytes}"
        )
    return replace(bundle, targets=(programs,)), values


def memory_of(programs: Mapping[str, Program]) -> int:
    """The bytes of the buffers of Programs, which share parameters, state and the arena."""
    sizes: dict[tuple[str, str, str], int] = {}
    for name, program in programs.items():
        for b in program.buffers:
            if b.role != "scratch":
                place = ("", "", b.name) if b.role in ("param", "state") else (name, b.role, b.name)
                sizes[place] = b.size * to_dtype(b.dtype).itemsize
    return sum(sizes.values()) + max(program.arena for program in programs.values())


def _described(kind: str) -> str:
    return "an exported step" if kind == STEP else f"a file for {kind}"


def _target(function: str, bundle: Bundle, native: bool, device: str | None) -> Mapping[str, Program]:
    """The Programs of a Bundle that are used."""
    candidates = [x for x in zip(bundle.devices, bundle.targets) if device in (None, x[0])]
    if not candidates:
        devices = " and ".join(bundle.devices)
        raise ProgramError(f"{function}: expected code for {device}, got code for {devices}")
    reasons: list[str] = []
    for name, programs in candidates:
        try:
            check_trust(function, name, native)
            if len(candidates) > 1:
                Device[name]
            return programs
        except (ProgramError, DeviceError) as e:
            if len(candidates) == 1:
                raise
            reasons.append(f"{name}: {e}")
    raise ProgramError(f"{function}: expected code for a device of this host, got none: {'; '.join(reasons)}")


def read_values(values: memoryview) -> dict[str, TensorEntry]:
    """The values in a file, by name. Raises ArgumentError for damaged ones, ProgramError for metadata, which
    no writer of these files writes."""
    if not values:
        return {}
    if "__metadata__" in read_header(values)[1]:
        raise ProgramError("values: expected tensors alone, got metadata too: export it again")
    return read_entries(values)
