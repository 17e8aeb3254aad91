"""State: the Tensors of an object by name, and safetensors files, in pure Python.

A safetensors file is u64 header length | JSON header {name: {dtype, shape, data_offsets}} | data, little-
endian
(https://github.com/huggingface/safetensors#format).
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from polygrad.dtype import DType, dtypes
from polygrad.errors import ArgumentError, ShapeError
from polygrad.helpers import prod
from polygrad.tensor.tensor import Tensor

_NAMES: dict[DType, str] = {
    dtypes.bool: "BOOL", dtypes.int8: "I8", dtypes.uint8: "U8", dtypes.int16: "I16", dtypes.uint16: "U16",
    dtypes.int32: "I32", dtypes.uint32: "U32", dtypes.int64: "I64", dtypes.uint64: "U64",
    dtypes.float16: "F16", dtypes.bfloat16: "BF16", dtypes.float32: "F32", dtypes.float64: "F64",
}  # fmt: skip
_DTYPES = {name: dtype for dtype, name in _NAMES.items()}
_MAX_HEADER = 100_000_000


# --- an object's Tensors


def get_state_dict(obj: Any, prefix: str = "", tensor_type: type = Tensor) -> dict[str, Any]:
    """Every Tensor inside `obj` (attributes, lists, tuples, dicts.

    Each container once), by dotted name, in order.
    """
    out: dict[str, Any] = {}
    seen: set[int] = set()
    stack: list[tuple[str, Any]] = [(prefix, obj)]
    while stack:
        name, x = stack.pop()
        if isinstance(x, tensor_type):
            out[name.strip(".")] = x
            continue
        children = _children(x)
        if children is None or id(x) in seen:
            continue
        seen.add(id(x))
        start = name if not name or name.endswith(".") else name + "."
        stack.extend((f"{start}{key}", value) for key, value in reversed(children))
    return out


def _children(x: Any) -> list[tuple[Any, Any]] | None:
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return list(zip(x._fields, x, strict=True))
    if isinstance(x, (list, tuple)):
        return list(enumerate(x))
    if isinstance(x, dict):
        return list(x.items())
    return list(vars(x).items()) if hasattr(x, "__dict__") and not isinstance(x, type) else None


def get_parameters(obj: Any) -> list[Tensor]:
    """Every Tensor inside `obj`, as `get_state_dict` finds them."""
    return list(get_state_dict(obj).values())


def load_state_dict(
    model: Any,
    state_dict: Mapping[str, Tensor],
    strict: bool = True,
    verbose: bool = True,
    consume: bool = False,
    realize: bool = True,
) -> list[Tensor]:
    """Give the Tensors of `model` the values of `state_dict`, by name; the Tensors that were given one.

    `strict`: every name of the model must be there, and no other. Values are converted to the model's dtype
    and device.
    `consume` removes what was used. `verbose` is accepted for compatibility. Raises ArgumentError,
    ShapeError.
    """
    own = get_state_dict(model)
    if strict:
        missing, unknown = [k for k in own if k not in state_dict], [k for k in state_dict if k not in own]
        if missing or unknown:
            raise ArgumentError(
                f"load_state_dict: missing {missing or 'none'}, unknown {unknown or 'none'}: use strict=False"
            )
    loaded = []
    for name, tensor in own.items():
        if name not in state_dict:
            continue
        value = state_dict[name]
        if value.shape != tensor.shape:
            raise ShapeError(f"load_state_dict: {name}: expected shape {tensor.shape}, got {value.shape}")
        # a copy: the model's Tensors are written in place by optimizers, the given ones are not
        tensor.replace(value.detach().to(tensor.device).cast(tensor.dtype).clone())
        if consume and isinstance(state_dict, dict):
            del state_dict[name]
        loaded.append(tensor)
    if realize and loaded:
        loaded[0].realize(*loaded[1:])
    return loaded


# --- safetensors


def safe_load_metadata(data: Any) -> tuple[int, dict[str, Any]]:
    """Where the data starts, and the JSON header, of a safetensors file (a path, bytes, or a buffer).

    Raises ArgumentError.
    """
    return _header(_read(data))


@dataclass(frozen=True, slots=True)
class Entry:
    """What a safetensors file says of one name: `data` are the elements' bytes in row-major order."""

    dtype: DType
    shape: tuple[int, ...]
    data: bytes | memoryview


def read_entries(data: Any) -> dict[str, Entry]:
    """What is in a safetensors file, by name. `data`: a path, bytes, or a buffer; no bytes are copied.

    Raises ArgumentError when damaged.
    """
    raw = _read(data)
    start, header = _header(raw)
    out: dict[str, Entry] = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        try:
            dtype, shape = _DTYPES[entry["dtype"]], tuple(entry["shape"])
            lo, hi = entry["data_offsets"]
        except (KeyError, TypeError, ValueError) as e:
            raise ArgumentError(
                f"safe_load: {name}: expected dtype, shape and data_offsets, got {entry}"
            ) from e
        if not 0 <= lo <= hi <= len(raw) - start or hi - lo != prod(shape) * dtype.itemsize:
            size = prod(shape) * dtype.itemsize
            raise ArgumentError(
                f"safe_load: {name}: expected {size} bytes, got {lo}..{hi} of {len(raw) - start}"
            )
        out[name] = Entry(dtype, shape, raw[start + lo : start + hi])
    return out


def write_entries(entries: Mapping[str, Entry], metadata: Any = None) -> bytes:
    """A safetensors file of `entries`. `metadata`: a dict of strings."""
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": metadata}
    at = 0
    for name, entry in entries.items():
        end = at + len(entry.data)
        header[name] = {
            "dtype": _NAMES[entry.dtype],
            "shape": list(entry.shape),
            "data_offsets": [at, end],
        }
        at = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the data starts on a multiple of 8
    return b"".join((struct.pack("<Q", len(text)), text, *(entry.data for entry in entries.values())))


def safe_load(data: Any, device: str | None = None) -> dict[str, Tensor]:
    """The Tensors of a safetensors file by name. `data`: a path, bytes, or a buffer.

    Raises ArgumentError when damaged.
    """
    return {
        name: Tensor(bytes(x.data), device, x.dtype).reshape(x.shape)
        for name, x in read_entries(data).items()
    }


def safe_save(
    tensors: Mapping[str, Tensor], fn: str | os.PathLike[str] | None = None, metadata: Any = None
) -> bytes:
    """Write Tensors as a safetensors file `fn` (if given); its bytes. `metadata`: a dict of strings."""
    if tensors:
        first, *rest = tensors.values()
        first.realize(*rest)
    whole = write_entries(
        {name: Entry(t.dtype, t.shape, bytes(t.data())) for name, t in tensors.items()}, metadata
    )
    if fn is not None:
        with open(fn, "wb") as f:
            f.write(whole)
    return whole


def _read(data: Any) -> memoryview:
    if isinstance(data, (str, os.PathLike)):
        with open(data, "rb") as f:
            return memoryview(f.read())
    if isinstance(data, Tensor):
        return data.data().cast("B")
    return memoryview(data).cast("B")


def _header(raw: memoryview) -> tuple[int, dict[str, Any]]:
    if len(raw) < 8:
        raise ArgumentError(f"safetensors: expected at least 8 bytes, got {len(raw)}")
    (length,) = struct.unpack_from("<Q", raw)
    if length > min(len(raw) - 8, _MAX_HEADER):
        raise ArgumentError(f"safetensors: expected a header of {length} bytes, got a file of {len(raw)}")
    try:
        header = json.loads(bytes(raw[8 : 8 + length]))
    except ValueError as e:
        raise ArgumentError(f"safetensors: expected a JSON header, got damaged bytes ({e})") from e
    if not isinstance(header, dict):
        raise ArgumentError(f"safetensors: expected a JSON object as header, got {type(header).__name__}")
    return 8 + length, header
