"""numpy's files (`.npy`, format versions 1 to 3) without numpy; numpy.lib.format describes the format."""

from __future__ import annotations

import ast
from typing import Any

from polygrad.dtype import DType, dtypes
from polygrad.errors import ArgumentError, DTypeError
from polygrad.helpers import prod
from polygrad.tensor.tensor import Tensor

_MAGIC = b"\x93NUMPY"
_LONGEST_HEADER = 1 << 16
_DTYPES: dict[str, DType] = {
    "|b1": dtypes.bool, "|i1": dtypes.int8, "|u1": dtypes.uint8, "<i2": dtypes.int16, "<u2": dtypes.uint16,
    "<i4": dtypes.int32, "<u4": dtypes.uint32, "<i8": dtypes.int64, "<u8": dtypes.uint64,
    "<f2": dtypes.float16, "<f4": dtypes.float32, "<f8": dtypes.float64,
}  # fmt: skip
_CODES = {dtype: code for code, dtype in _DTYPES.items()}


def from_npy(data: memoryview, what: str, device: str | None = None) -> Tensor:
    """The array in the bytes of a file. Raises ArgumentError for a damaged file, DTypeError for elements that
    no Tensor holds."""
    if bytes(data[:6]) != _MAGIC or len(data) < 12:
        raise ArgumentError(f"{what}: it is no .npy file")
    width = 2 if data[6] == 1 else 4
    start = 8 + width
    end = start + int.from_bytes(data[8:start], "little")
    if end > len(data) or end - start > _LONGEST_HEADER:
        raise ArgumentError(f"{what}: a header of {end - start} bytes in a file of {len(data)}")
    code, shape, is_fortran = _header(bytes(data[start:end]), what)
    dtype = _DTYPES.get(code)
    if dtype is None:
        raise DTypeError(f"{what}: no Tensor holds elements of numpy's type {code!r}")
    expected_size = prod(shape) * dtype.itemsize
    if len(data) - end != expected_size:
        raise ArgumentError(f"{what}: {expected_size} bytes of elements expected, got {len(data) - end}")
    if not expected_size:
        return Tensor.zeros(shape, dtype=dtype, device=device)
    flat = Tensor(bytes(data[end:]), device, dtype)
    return flat.reshape(shape[::-1]).permute(*range(len(shape))[::-1]) if is_fortran else flat.reshape(shape)


def _header(raw: bytes, what: str) -> tuple[str, tuple[int, ...], bool]:
    """The code of the elements, the shape, whether the first axis is the innermost."""
    try:
        header: Any = ast.literal_eval(raw.decode("utf-8").strip())
        code, shape, is_fortran = header["descr"], header["shape"], header["fortran_order"]
    except (ValueError, SyntaxError, KeyError, TypeError, RecursionError, MemoryError) as e:
        raise ArgumentError(f"{what}: its header is damaged: {raw[:60]!r}") from e
    fits = isinstance(shape, tuple) and all(type(n) is int and n >= 0 for n in shape)
    if not fits or type(is_fortran) is not bool or not isinstance(code, (str, list)):
        raise ArgumentError(f"{what}: its header is damaged: {raw[:60]!r}")
    return str(code), shape, is_fortran


def to_npy(tensor: Tensor) -> bytes:
    """A file of format version 1. Raises DTypeError for a dtype that numpy does not have."""
    code = _CODES.get(tensor.dtype)
    if code is None:
        raise DTypeError(f"to_npy: numpy has no dtype {tensor.dtype}: cast it")
    header = f"{{'descr': {code!r}, 'fortran_order': False, 'shape': {tensor.shape!r}, }}"
    padding = -(10 + len(header) + 1) % 64
    raw = (header + " " * padding + "\n").encode()
    return _MAGIC + b"\x01\x00" + len(raw).to_bytes(2, "little") + raw + bytes(tensor.contiguous().data())
