"""Constant data as C arrays: integers, whose values no compiler has to parse as floats.

A float is written as its bits in a union, so reading it as a float is defined, on processors of either byte
order.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from polygrad.capture.c_file.model import C_TYPES
from polygrad.dtype import DType, dtypes

_BITS = {dtypes.float32: "uint32_t", dtypes.float64: "uint64_t"}
# By the size of elements; and of those that are written as signed numbers.
_FORMATS = {1: "B", 2: "H", 4: "I", 8: "Q"}
_PER_LINE = {1: 24, 2: 16, 4: 9, 8: 5}


def array_text(name: str, dtype: DType, data: memoryview, size: int) -> str:
    """The definition of the constant `name`: `size` elements, which are zeros if `data` is empty."""
    values = "".join(_lines(dtype, data)) if data.nbytes else "0"
    count = max(size, 1)
    if dtype in _BITS:
        members = f"{_BITS[dtype]} bits[{count}]; {C_TYPES[dtype]} values[{count}];"
        return f"static const union {{ {members} }} {name} = {{{{{values}}}}};\n"
    return f"static const {C_TYPES[dtype]} {name}[{count}] = {{{values}}};\n"


def array_address(name: str, dtype: DType) -> str:
    """The address of the first element."""
    return f"{name}.values" if dtype in _BITS else name


def _lines(dtype: DType, data: memoryview) -> Iterator[str]:
    size = dtype.itemsize
    is_signed = dtype.is_int and not dtype.is_unsigned
    format_ = _FORMATS[size].lower() if is_signed else _FORMATS[size]
    numbers = struct.unpack(f"<{data.nbytes // size}{format_}", data)
    for i in range(0, len(numbers), _PER_LINE[size]):
        yield "\n  " + "".join(f"{_literal(n, size, is_signed)}," for n in numbers[i : i + _PER_LINE[size]])


def _literal(number: int, size: int, is_signed: bool) -> str:
    if is_signed:
        suffix = "ll" if size == 8 else ""
        lowest = number == -(1 << (8 * size - 1)) and size >= 4
        return f"-{-(number + 1)}{suffix} - 1" if lowest else f"{number}{suffix}"
    if size < 4:
        return str(number)
    return f"{number:#x}{'ull' if size == 8 else 'u'}" if number > 9 else f"{number}u"
