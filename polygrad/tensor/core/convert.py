"""Python data to bytes and back: scalars, nested lists, buffers, numpy arrays, JavaScript typed arrays.

Knows dtypes and memory, no Tensors and no devices, and no numpy: its arrays have the buffer protocol.
"""

from __future__ import annotations

import array
import struct
import sys
from collections.abc import Sequence
from typing import Any

from polygrad.dtype import DType, as_double, dtypes, float_from_bits, float_to_bits
from polygrad.errors import ArgumentError, DTypeError, OverflowError_, ShapeError
from polygrad.helpers import prod

_BY_FORMAT = {"?": dtypes.bool, "e": dtypes.float16, "f": dtypes.float32, "d": dtypes.float64}
_SIGNED = {1: dtypes.int8, 2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}
_UNSIGNED = {1: dtypes.uint8, 2: dtypes.uint16, 4: dtypes.uint32, 8: dtypes.uint64}


# --- into bytes -----------------------------------------------------------------------------------------


def flatten(data: Sequence[Any], subject: str = "data") -> tuple[list[Any], tuple[int, ...]]:
    """The elements of a nested list in row-major order, and its shape.

    Raises ShapeError when it is ragged.
    """
    flat: list[Any] = list(data)
    shape = [len(flat)]
    while flat and isinstance(flat[0], (list, tuple)):
        n = len(flat[0])
        inner: list[Any] = []
        for row in flat:
            if not isinstance(row, (list, tuple)) or len(row) != n:
                length = len(row) if isinstance(row, (list, tuple)) else "a scalar"
                raise ShapeError(
                    f"{subject}: expected {n} elements in every list at depth {len(shape)}, got {length}"
                )
            inner.extend(row)
        flat = inner
        shape.append(n)
    for x in flat:
        if isinstance(x, (list, tuple)):
            raise ShapeError(f"{subject}: expected a scalar at depth {len(shape)}, got a list of {len(x)}")
    return flat, tuple(shape)


def dtype_of(flat: Sequence[Any]) -> DType:
    """The dtype of a list of Python scalars: bool, the default int, or the default float.

    Raises DTypeError.
    """
    if not flat:
        return dtypes.default_float
    kinds = set(map(type, flat))
    if kinds <= {bool}:
        return dtypes.bool
    if kinds <= {bool, int}:
        return dtypes.default_int
    if kinds <= {bool, int, float}:
        return dtypes.default_float
    if all(isinstance(x, (bool, int, float)) for x in flat):
        return dtypes.default_float
    unsupported_value = next(x for x in flat if not isinstance(x, (bool, int, float)))
    raise DTypeError(
        f"data: expected bools, ints or floats, got {type(unsupported_value).__name__}: {unsupported_value!r}"
    )


def pack(flat: Sequence[Any], dtype: DType, subject: str = "data") -> memoryview:
    """Python scalars as bytes of `dtype`, converted as a cast does.

    Raises OverflowError_ for an int that does not fit.
    """
    if dtype.is_bool:
        return memoryview(bytes(map(bool, flat)))
    if dtype.is_int:
        try:
            return memoryview(array.array(dtype.fmt or "q", flat)).cast("B")
        except OverflowError:
            bad = next(x for x in flat if not dtype.min <= x <= dtype.max)
            raise OverflowError_(
                f"{subject}: expected integers in {dtype.min}..{dtype.max} ({dtype}), got {bad}"
            ) from None
        except TypeError:
            return memoryview(array.array(dtype.fmt or "q", [_to_int(x, dtype) for x in flat])).cast("B")
    try:
        if dtype is dtypes.float16:
            return memoryview(struct.pack(f"={len(flat)}e", *flat))
        if dtype.fmt is not None:
            return memoryview(array.array(dtype.fmt, flat)).cast("B")
    except (OverflowError, struct.error):  # a float that rounds to infinity, or an integer beyond float64
        if dtype is not dtypes.float16:
            return memoryview(array.array(dtype.fmt or "d", [as_double(x) for x in flat])).cast("B")
    code = "B" if dtype.itemsize == 1 else "H"
    return memoryview(array.array(code, [float_to_bits(dtype, x) for x in flat])).cast("B")


def _to_int(x: Any, dtype: DType) -> int:
    if isinstance(x, float):
        if x != x:
            return 0
        return dtype.max if x >= dtype.max else dtype.min if x <= dtype.min else int(x)
    return int(x)


# --- buffers and arrays ---------------------------------------------------------------------------------


def bfloat16_bits(data: Any) -> Any:
    """The bits of a bfloat16 Tensor of torch, for which numpy has no dtype; None for other data."""
    if str(getattr(data, "dtype", "")) != "torch.bfloat16":
        return None
    return data.detach().cpu().contiguous().view(sys.modules["torch"].int16).numpy()


def array_like(data: Any) -> Any:
    """`data` as something with the buffer protocol, or as a list, or None when it is neither.

    Takes memoryviews, bytes, array.array, numpy arrays and scalars, whatever has `__array__` (a torch
    tensor), and in a page JavaScript's typed arrays and arrays.
    """
    if type(data).__name__ == "JsProxy":
        return data.to_memoryview() if hasattr(data, "to_memoryview") else data.to_py()
    try:
        return memoryview(data)
    except (TypeError, ValueError, BufferError):
        pass
    if hasattr(data, "__array__"):
        if getattr(data, "requires_grad", False):
            data = data.detach()  # torch's
        return memoryview(data.__array__())
    return None


def from_memoryview(view: memoryview) -> tuple[memoryview, DType, tuple[int, ...]]:
    """A typed, possibly strided buffer as contiguous bytes, its dtype and its shape. Raises DTypeError."""
    fmt = view.format
    code = fmt.lstrip("@=<>!|")
    if code in _BY_FORMAT:
        dtype = _BY_FORMAT[code]
    elif len(code) == 1 and code in "bhilqn":
        dtype = _SIGNED[view.itemsize]
    elif len(code) == 1 and code in "cBHILQN":
        dtype = _UNSIGNED[view.itemsize]
    else:
        raise DTypeError(
            f"data: expected an array of {', '.join(dtypes.all)}, got one of format {fmt!r}: use .astype()"
        )
    if view.nbytes == 0:
        data = memoryview(b"")
    elif view.c_contiguous and view.ndim:
        data = (
            view.cast("B")
            if view.format in "cbB?hHiIlLqQnNfd" or fmt[0] == "@"
            else memoryview(view.tobytes())
        )
    else:
        data = memoryview(view.tobytes())
    foreign = (">", "!") if sys.byteorder == "little" else ("<",)
    if fmt[0] in foreign and view.itemsize > 1:
        swapped = array.array({2: "H", 4: "I", 8: "Q"}[view.itemsize], data.tobytes())
        swapped.byteswap()
        data = memoryview(swapped).cast("B")
    return data, dtype, tuple(view.shape or ())


# --- out of bytes ---------------------------------------------------------------------------------------


def unpack(data: memoryview, dtype: DType) -> list[Any]:
    """Bytes of `dtype` as Python scalars."""
    n = data.nbytes // dtype.itemsize
    if dtype.is_float and dtype.itemsize == 1:
        return [float_from_bits(dtype, b) for b in data.cast("B")]
    if dtype is dtypes.bfloat16:
        widened = array.array("I", [b << 16 for b in data.cast("H")])
        return memoryview(widened).cast("B").cast("f").tolist()
    if dtype is dtypes.float16:
        return list(struct.unpack(f"={n}e", data))
    fmt: Any = dtype.fmt
    return list(data.cast(fmt).tolist()) if n else []


def nest(flat: list[Any], shape: tuple[int, ...]) -> Any:
    """`flat` as lists nested to `shape`; the scalar itself for shape ()."""
    if not shape:
        return flat[0]
    for n, rows in zip(
        reversed(shape[1:]), reversed([prod(shape[:i]) for i in range(1, len(shape))]), strict=True
    ):
        flat = [flat[i * n : i * n + n] for i in range(rows)]
    return flat


def check_count(data: memoryview, dtype: DType) -> int:
    """How many elements `data` holds. Raises ArgumentError when it is not a whole number."""
    if data.nbytes % dtype.itemsize:
        raise ArgumentError(
            f"data: expected a multiple of {dtype.itemsize} bytes for {dtype}, got {data.nbytes}"
        )
    return data.nbytes // dtype.itemsize


_MAX_SCANNED = 4096  # numbers whose extremes are computed in Python


def bounds_of_data(raw: memoryview, dtype: DType) -> tuple[int, int] | None:
    """The least and greatest of integers in memory; None if there are too many to look at cheaply."""
    if not dtype.is_int or raw.nbytes > _MAX_SCANNED * 16 * dtype.itemsize:
        return None
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numbers = numpy.frombuffer(raw, dtype=str(dtype))
        return int(numbers.min()), int(numbers.max())
    if raw.nbytes > _MAX_SCANNED * dtype.itemsize or dtype.fmt is None:
        return None
    listed = raw.cast("B").cast(dtype.fmt).tolist()  # type: ignore[call-overload]
    return min(listed), max(listed)
