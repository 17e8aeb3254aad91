"""Safetensors files with a hash of all their bytes, which are there whole or not at all.

The metadata begin with `sha256`, the hash of the file with 64 zeros in the place of the hash. Other programs
read such a file as any safetensors file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polygrad.errors import ArgumentError, PolygradError
from polygrad.helpers import write_file
from polygrad.nn.files import file_bytes, tensor_of_bytes
from polygrad.nn.safetensors import TensorEntry, entries_header, read_entries, read_header
from polygrad.tensor.tensor import Tensor

_SEAL = b'{"__metadata__":{"sha256":"'  # after 8 bytes with the header's length
_NO_DIGEST = "0" * 64

Bytes = bytes | memoryview


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Copies of Tensors, and text, of which a file is made later."""

    entries: Mapping[str, TensorEntry]
    metadata: Mapping[str, str]

    def parts(self) -> list[Bytes]:
        """The bytes of the file, one piece after the other."""
        header = entries_header(self.entries, {"sha256": _NO_DIGEST, **self.metadata})
        hasher = hashlib.sha256(header)
        for entry in self.entries.values():
            hasher.update(entry.data)
        start = 8 + len(_SEAL)
        sealed = header[:start] + hasher.hexdigest().encode() + header[start + len(_NO_DIGEST) :]
        return [sealed, *(entry.data for entry in self.entries.values())]


def take_snapshot(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> Snapshot:
    """Compute Tensors and copy their elements."""
    if tensors:
        Tensor.realize(*tensors.values())
    entries = {}
    for name, t in tensors.items():
        data = t.data()
        entries[name] = TensorEntry(t.dtype, t.shape, data.cast("B") if data.nbytes else b"")
    return Snapshot(entries, dict(metadata))


def read_sealed(source: Any, where: str) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The Tensors and the metadata of a file: a path, or its bytes, called `where` in errors. Raises
    ArgumentError where a bit has changed since it was written."""
    try:
        raw = file_bytes(source, "read")
        _, header = read_header(raw)
        metadata = header.get("__metadata__")
        start = 8 + len(_SEAL)
        end = start + len(_NO_DIGEST)
        if raw[8:start] != _SEAL or not isinstance(metadata, dict):
            raise ArgumentError("expected a file with its hash, as checkpoints have from version 2 on")
        hasher = hashlib.sha256(raw[:start])
        hasher.update(_NO_DIGEST.encode())
        hasher.update(raw[end:])
        if hasher.hexdigest().encode() != raw[start:end]:
            raise ArgumentError(
                "the file is damaged: its bytes do not have the hash that they had when it was written"
            )
        tensors = {name: tensor_of_bytes(x.data, x.dtype, x.shape) for name, x in read_entries(raw).items()}
    except (PolygradError, OSError) as e:
        raise ArgumentError(f"{where}: {e}") from e
    return tensors, metadata


def write_snapshot(path: Path, snapshot: Snapshot) -> None:
    """Write a file of a snapshot: there is the old one or the new one at any time, also after a power
    failure. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, snapshot.parts(), sync=True)
