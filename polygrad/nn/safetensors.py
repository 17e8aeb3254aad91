"""Safetensors files, as plain data.

A file is u64 header length | JSON header {name: {dtype, shape, data_offsets}} | data, little-endian
(https://github.com/huggingface/safetensors#format). Knows no Tensors.
"""

from __future__ import annotations

import json
import os
import reprlib
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from polygrad.dtype import DType, dtypes
from polygrad.errors import ArgumentError
from polygrad.helpers import prod
from polygrad.runtime.strict_json import parse_json

_NAMES: dict[DType, str] = {
    dtypes.bool: "BOOL", dtypes.int8: "I8", dtypes.uint8: "U8", dtypes.int16: "I16", dtypes.uint16: "U16",
    dtypes.int32: "I32", dtypes.uint32: "U32", dtypes.int64: "I64", dtypes.uint64: "U64",
    dtypes.fp8e4m3: "F8_E4M3", dtypes.fp8e5m2: "F8_E5M2",
    dtypes.float16: "F16", dtypes.bfloat16: "BF16", dtypes.float32: "F32", dtypes.float64: "F64",
}  # fmt: skip
_DTYPES = {name: dtype for dtype, name in _NAMES.items()}
_MAX_HEADER = 100_000_000


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """A tensor of a safetensors file: `data` are the elements' bytes in row-major order, or what a reader of
    the file has in their place: see `polygrad.nn.files.tensor_of_bytes`."""

    dtype: DType
    shape: tuple[int, ...]
    data: Any


@dataclass(frozen=True, slots=True)
class TensorPlace:
    """Where a tensor is: its bytes are those from `start` to `end` of the file."""

    dtype: DType
    shape: tuple[int, ...]
    start: int
    end: int


def read_entries(data: Any) -> dict[str, TensorEntry]:
    """The entries of a safetensors file, by name. `data`: a path, bytes, or a buffer; no bytes are copied.

    Raises ArgumentError when damaged.
    """
    raw = _read(data)
    start, header = read_header(raw)
    places = place_tensors(start, header, len(raw))
    return {name: TensorEntry(p.dtype, p.shape, raw[p.start : p.end]) for name, p in places.items()}


def place_tensors(start: int, header: Mapping[str, Any], size: int) -> dict[str, TensorPlace]:
    """Where the tensors of a file of `size` bytes are, by its header, which ends at `start`. Raises
    ArgumentError when they do not fill the rest of the file."""
    out: dict[str, TensorPlace] = {}
    ends: list[tuple[int, int, str]] = []
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        dtype, shape, lo, hi = _fields(name, entry)
        if not lo <= hi <= size - start or hi - lo != prod(shape) * dtype.itemsize:
            nbytes = prod(shape) * dtype.itemsize
            raise ArgumentError(
                f"safe_load: {name}: bytes {lo} to {hi} of {size - start} do not hold {nbytes}"
            )
        ends.append((lo, hi, name))
        out[name] = TensorPlace(dtype, shape, start + lo, start + hi)
    end = 0
    for lo, hi, name in sorted(ends):
        if lo != end:
            raise ArgumentError(
                f"safe_load: {name}: the tensor begins at byte {lo}, and the one before it ends at {end}"
            )
        end = hi
    if end != size - start:
        raise ArgumentError(f"safe_load: the tensors end at byte {end} of {size - start}")
    return out


def _fields(name: str, entry: Any) -> tuple[DType, tuple[int, ...], int, int]:
    """dtype, shape, and where the bytes begin and end. Raises ArgumentError."""
    try:
        dtype, shape = _DTYPES[entry["dtype"]], entry["shape"]
        lo, hi = entry["data_offsets"]
    except (KeyError, TypeError, ValueError) as e:
        raise ArgumentError(
            f"safe_load: {name}: the entry has no valid dtype, shape and data_offsets: {reprlib.repr(entry)}"
        ) from e
    sizes = [*shape, lo, hi] if isinstance(shape, list) else [None]
    if len(sizes) > 66 or not all(type(n) is int and 0 <= n < 1 << 62 for n in sizes):
        raise ArgumentError(
            f"safe_load: {name}: shape and offsets are not integers of at least 0: {reprlib.repr(entry)}"
        )
    return dtype, tuple(shape), lo, hi


def write_entries(entries: Mapping[str, TensorEntry], metadata: Any = None) -> bytes:
    """A safetensors file of `entries`. `metadata`: a dict of strings."""
    return b"".join((entries_header(entries, metadata), *(entry.data for entry in entries.values())))


def entries_header(entries: Mapping[str, TensorEntry], metadata: Any = None) -> bytes:
    """What comes before the data of `entries` in their file."""
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": metadata}
    start = 0
    for name, entry in entries.items():
        end = start + len(entry.data)
        header[name] = {
            "dtype": _NAMES[entry.dtype],
            "shape": list(entry.shape),
            "data_offsets": [start, end],
        }
        start = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the data starts on a multiple of 8
    return struct.pack("<Q", len(text)) + text


def _read(data: Any) -> memoryview:
    if isinstance(data, (str, os.PathLike)):
        with open(data, "rb") as f:
            return memoryview(f.read())
    return memoryview(data).cast("B")


def read_header(data: Any) -> tuple[int, dict[str, Any]]:
    """The start of the data, and the JSON header, of a path, bytes, or a buffer. Raises ArgumentError."""
    raw = _read(data)
    start = header_end(raw, len(raw))
    return start, _json_object(raw[8:start], "header")


def header_end(raw: bytes | memoryview, size: int) -> int:
    """Where the header ends of a file of `size` bytes that begins with `raw`, at least 8 bytes if the file
    has them. Raises ArgumentError."""
    if size < 8:
        raise ArgumentError(f"safetensors: the file has {size} bytes, fewer than 8")
    (length,) = struct.unpack_from("<Q", raw)
    if length > min(size - 8, _MAX_HEADER):
        raise ArgumentError(f"safetensors: a header of {length} bytes does not fit into a file of {size}")
    return 8 + int(length)


def read_index(raw: memoryview) -> dict[str, str]:
    """The file of each tensor, from an index file. Raises ArgumentError when it is damaged."""
    files = _json_object(raw, "index").get("weight_map")
    if not isinstance(files, dict) or not all(isinstance(f, str) for f in files.values()):
        raise ArgumentError("safetensors: the index has no weight_map of names")
    return files


def write_index(files: Mapping[str, str], total_size: int) -> bytes:
    """An index file, which has the file of each tensor."""
    return json.dumps({"metadata": {"total_size": total_size}, "weight_map": files}, indent=2).encode()


def _json_object(raw: memoryview, what: str) -> dict[str, Any]:
    try:
        value = parse_json(raw, floats=what == "index")
    except ValueError as e:
        raise ArgumentError(f"safetensors: the JSON of the {what} is damaged ({e})") from e
    except RecursionError as e:
        raise ArgumentError(f"safetensors: the JSON of the {what} has too many levels") from e
    if not isinstance(value, dict):
        raise ArgumentError(f"safetensors: the {what} is a {type(value).__name__} instead of a JSON object")
    return value
