"""The element types of ONNX: the dtypes that hold them, and the bits of types that are not dtypes.

Integers of 2 and 4 bits are held as int8 or uint8, and small floats that are no dtype as float32, each by its
value. ("Microscaling Formats (MX)", OCP, 2023; "8-bit Numerical Formats for Deep Neural Networks", Noune et
al., 2022, for the FNUZ formats.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from polygrad.dtype import DType, dtypes
from polygrad.errors import OnnxError


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """A small float: bits of exponent and fraction, the exponent's bias, the largest number.

    `negative_zero_is_nan`: the formats FNUZ, which have no infinity and no negative zero.
    """

    exponent_bits: int
    fraction_bits: int
    bias: int
    largest: float
    negative_zero_is_nan: bool = False


@dataclass(frozen=True, slots=True)
class Element:
    """An element type: its number and name in ONNX, the dtype that holds it, and its bits in a file.

    `format`: of small floats that are no dtype. A native type has the bits of its dtype.
    """

    number: int
    name: str
    dtype: DType
    bits: int
    format: FloatFormat | None = None

    @property
    def is_native(self) -> bool:
        return self.bits >= 8 and self.format is None

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the greatest number of an integer type."""
        if self.dtype.is_unsigned:
            return 0, (1 << self.bits) - 1
        return -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1


STRING = 8
_NATIVE = {
    1: ("float", dtypes.float32), 2: ("uint8", dtypes.uint8), 3: ("int8", dtypes.int8),
    4: ("uint16", dtypes.uint16), 5: ("int16", dtypes.int16), 6: ("int32", dtypes.int32),
    7: ("int64", dtypes.int64), 9: ("bool", dtypes.bool), 10: ("float16", dtypes.float16),
    11: ("double", dtypes.float64), 12: ("uint32", dtypes.uint32), 13: ("uint64", dtypes.uint64),
    16: ("bfloat16", dtypes.bfloat16), 17: ("float8e4m3fn", dtypes.fp8e4m3),
    19: ("float8e5m2", dtypes.fp8e5m2),
}  # fmt: skip
_POWER = FloatFormat(8, 0, 127, 2.0**127)
ELEMENTS: dict[int, Element] = {
    **{n: Element(n, name, dtype, dtype.itemsize * 8) for n, (name, dtype) in _NATIVE.items()},
    18: Element(18, "float8e4m3fnuz", dtypes.float32, 8, FloatFormat(4, 3, 8, 240.0, True)),
    20: Element(20, "float8e5m2fnuz", dtypes.float32, 8, FloatFormat(5, 2, 16, 57344.0, True)),
    21: Element(21, "uint4", dtypes.uint8, 4),
    22: Element(22, "int4", dtypes.int8, 4),
    23: Element(23, "float4e2m1", dtypes.float32, 4, FloatFormat(2, 1, 1, 6.0)),
    24: Element(24, "float8e8m0", dtypes.float32, 8, _POWER),
    25: Element(25, "uint2", dtypes.uint8, 2),
    26: Element(26, "int2", dtypes.int8, 2),
    27: Element(27, "float6e2m3", dtypes.float32, 6, FloatFormat(2, 3, 1, 7.5)),
    28: Element(28, "float6e3m2", dtypes.float32, 6, FloatFormat(3, 2, 3, 28.0)),
}
_BY_DTYPE = {e.dtype: e for e in ELEMENTS.values() if e.is_native}
_NOT_HELD = {0: "undefined", STRING: "string", 14: "complex64", 15: "complex128"}


def element_of(number: int, what: str) -> Element:
    """The element type of this number. Raises OnnxError for one that no Tensor can hold."""
    element = ELEMENTS.get(number)
    if element is None:
        raise OnnxError(f"{what}: no tensor holds elements of type {_NOT_HELD.get(number, number)}")
    return element


def element_of_dtype(dtype: DType) -> Element:
    """The native element type that `dtype` is."""
    return _BY_DTYPE[dtype]


def element_name(number: int) -> str:
    """The name of an element type, also of one that no Tensor can hold."""
    element = ELEMENTS.get(number)
    return element.name if element else _NOT_HELD.get(number, f"type {number}")


def decoder(element: Element) -> Callable[[int], float | int]:
    """The value of a code of this type, which is not a dtype."""
    fmt, bits = element.format, element.bits
    if fmt is None:
        sign = 0 if element.dtype.is_unsigned else 1 << (bits - 1)
        return lambda code: code - (1 << bits) if code & sign else code
    if fmt is _POWER:
        return lambda code: math.nan if code == 255 else math.ldexp(1.0, code - fmt.bias)
    return lambda code: _float_of_code(fmt, bits, code)


def _float_of_code(fmt: FloatFormat, bits: int, code: int) -> float:
    negative, size = code >> (bits - 1), code & ((1 << (bits - 1)) - 1)
    if fmt.negative_zero_is_nan and negative and not size:
        return math.nan
    exponent, fraction = size >> fmt.fraction_bits, size & ((1 << fmt.fraction_bits) - 1)
    if exponent:
        fraction += 1 << fmt.fraction_bits
    value = math.ldexp(fraction, max(exponent, 1) - fmt.bias - fmt.fraction_bits)
    return -value if negative else value
