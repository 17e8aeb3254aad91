"""Models that are several GGUF files: `name-00001-of-00003.gguf` and the others, as llama-gguf-split writes.

The first has all metadata; each has tensors of its own, and says which part of how many it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polygrad.engine.devices import Device
from polygrad.errors import ArgumentError, DeviceError, ModelError
from polygrad.hf.checkpoint import map_file
from polygrad.models.fields import Fields
from polygrad.nn.gguf import Blocks, read_gguf
from polygrad.tensor.core.sources import map_to_memory

_NAME = re.compile(r"(.*)-(\d{5})-of-(\d{5})\.gguf", re.DOTALL)
_MOST = 1 << 16  # parts: the count has 16 bits


@dataclass(frozen=True)
class MappedParts:
    """`data`: the bytes of a GGUF file by its name; of a part, those of all parts in order. `is_mapped`: they
    are all in memory that the device uses, as `map_to_memory` says."""

    data: dict[str, memoryview]
    is_mapped: bool


def map_parts(path: Path, device: str | None = None) -> MappedParts:
    """Map a GGUF file, or all parts of one, for `device`. Raises ModelError, which names a part that is
    missing."""
    device = Device.DEFAULT if device is None else Device.canonical(device)
    try:
        return MappedParts({p.name: map_to_memory(p, device) for p in _paths_of_parts(path)}, True)
    except DeviceError:  # it has memory of its own, or too little: tensors are copied
        return MappedParts(view_parts(path), False)
    except OSError as e:
        raise ModelError(f"{path}: {e}") from e


def view_parts(path: Path) -> dict[str, memoryview]:
    """The bytes of a GGUF file by its name, to be read; of a part, those of all parts in order. Raises
    ModelError, as `map_parts` does."""
    return {p.name: map_file(p) for p in _paths_of_parts(path)}


def _paths_of_parts(path: Path) -> list[Path]:
    match = _NAME.fullmatch(path.name)
    if match is None:
        return [path]
    stem, count = match[1], int(match[3])
    paths = [path.parent / f"{stem}-{n:05d}-of-{count:05d}.gguf" for n in range(1, count + 1)]
    missing = next((p for p in paths if not p.is_file()), None)
    if missing is not None:
        raise ModelError(f"{missing}: missing, one of the {count} parts of {path.name}")
    return paths


def read_parts(parts: Mapping[str, memoryview]) -> tuple[str, dict[str, Any], dict[str, Blocks]]:
    """The name and the metadata of the first part, and the tensors of all. Raises ModelError for parts of
    other files, in another order, or too few of them."""
    read = {}
    for name, data in parts.items():
        try:
            read[name] = read_gguf(data)
        except ArgumentError as e:
            raise ModelError(f"{name}: {e}") from e
    return join_parts(read)


def join_parts(
    parts: Mapping[str, tuple[dict[str, Any], Mapping[str, Blocks]]],
) -> tuple[str, dict[str, Any], dict[str, Blocks]]:
    """`read_parts` of the metadata and the tensors of each."""
    first = ""
    metadata: dict[str, Any] = {}
    tensors: dict[str, Blocks] = {}
    for number, (name, (part_metadata, part_tensors)) in enumerate(parts.items()):
        fields = Fields(part_metadata, name)
        count = fields.integer("split.count", 1, least=0, largest=_MOST)
        if max(count, 1) != len(parts):
            raise fields.refuse("split.count", f"the number of parts that there are, {len(parts)}")
        if fields.integer("split.no", 0, least=0) != number:
            raise fields.refuse("split.no", f"{number}, as the parts are in order")
        twice = sorted(set(tensors) & set(part_tensors))
        if twice:
            raise ModelError(f"{name}: tensor {twice[0]!r:.80} is in another part, too")
        if number == 0:
            first, metadata = name, part_metadata
        tensors |= part_tensors
    expected_count = Fields(metadata, first).integer("split.tensors.count", len(tensors), least=0)
    if expected_count != len(tensors):
        raise ModelError(
            f"{first}: split.tensors.count: {expected_count}, and the parts have {len(tensors)} tensors"
        )
    return first, metadata, tensors
