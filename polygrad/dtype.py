"""Data types and the promotion lattice (tinygrad's, which is JAX's with unsigned integers joined in).

A `DType` is a `str`: it is equal to its own name (`t.dtype == "float32"`), hashes at C speed, and is
written to a Program as it is. `dtypes.index` is the type of index arithmetic: a machine integer whose
width the Target chooses; it never overflows and never reaches a user.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import struct
from typing import Any

from polygrad.errors import DTypeError

# IEEE 754: the bits of the significand (the leading one included) and of the exponent
_FLOAT_FORMATS = {
    "fp8e4m3": (4, 4), "fp8e5m2": (3, 5), "float16": (11, 5), "bfloat16": (8, 8), "float32": (24, 8),
    "float64": (53, 11),
}  # fmt: skip
# The 8-bit formats of OCP ("8-bit Floating Point Specification", 2023). fp8e4m3 has no infinities: its last
# exponent holds numbers, up to 448, and one NaN.
_LARGEST_E4M3 = 448.0


class DType(str):
    """An element type. Equal to its name; made once, below.

    Attributes: `itemsize` (bytes), `fmt` (struct/memoryview code, or None for bfloat16 and index),
    `kind` ('bool', 'int', 'uint', 'float' or 'index'), `priority` (its place in promotion); of a float also
    `significand` (its bits, the leading one included) and `smallest_normal`.
    """

    itemsize: int
    fmt: str | None
    kind: str
    priority: int

    def __new__(cls, name: str, itemsize: int, fmt: str | None, kind: str, priority: int) -> DType:
        self = str.__new__(cls, name)
        self.itemsize, self.fmt, self.kind, self.priority = itemsize, fmt, kind, priority
        self.is_float = kind == "float"
        self.is_int = kind in ("int", "uint", "index")
        self.is_unsigned = kind == "uint"
        self.is_bool = kind == "bool"
        self.bits = max(itemsize * 8, 1)
        if kind == "float":
            self.min, self.max = -math.inf, math.inf
            if name == "fp8e4m3":
                self.min, self.max = -_LARGEST_E4M3, _LARGEST_E4M3
            self.significand, exponent_bits = _FLOAT_FORMATS[name]
            self.smallest_normal = 2.0 ** (2 - 2 ** (exponent_bits - 1))
        elif kind == "bool":
            self.min, self.max = False, True
        elif kind == "uint":
            self.min, self.max = 0, (1 << self.bits) - 1
        else:
            self.min, self.max = -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1
        return self

    is_float: bool
    is_int: bool
    is_unsigned: bool
    is_bool: bool
    bits: int
    min: Any
    max: Any
    significand: int
    smallest_normal: float

    __hash__ = str.__hash__

    @property
    def bitsize(self) -> int:
        """Bits of an element: 1 of bool, else 8 a byte."""
        return self.bits

    @property
    def name(self) -> str:
        return str.__str__(self)

    def __repr__(self) -> str:
        return f"dtypes.{str.__str__(self)}"

    def __reduce__(self) -> Any:
        return (to_dtype, (str.__str__(self),))

    def cast(self, value: Any) -> Any:
        """The Python value `value` as this type holds it: bool, wrapped int, or float (not rounded)."""
        if self.is_float:
            return as_double(value)
        if self.is_bool:
            return bool(value)
        n = int(value)
        if self.kind == "index" or self.min <= n <= self.max:
            return n
        n &= (1 << self.bits) - 1
        return n - (1 << self.bits) if self.kind == "int" and n > self.max else n


@dataclasses.dataclass(frozen=True, slots=True)
class FloatInfo:
    """The limits of a float dtype, as `numpy.finfo` has them.

    `eps`: what lies between 1 and the next larger number. `nmant`, `nexp`: bits of the fraction (without the
    leading one) and of the exponent.
    """

    dtype: DType
    bits: int
    nmant: int
    nexp: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    smallest_subnormal: float

    @property
    def tiny(self) -> float:
        """`smallest_normal`, by its older name."""
        return self.smallest_normal


@dataclasses.dataclass(frozen=True, slots=True)
class IntInfo:
    """The limits of an integer dtype, as `numpy.iinfo` has them."""

    dtype: DType
    bits: int
    max: int
    min: int


def _finfo(dtype: Any) -> FloatInfo:
    """The limits of a float dtype, or of one by its name. Raises DTypeError."""
    d = to_dtype(dtype)
    if not d.is_float:
        raise DTypeError(f"finfo: expected a float dtype, got {d}: use iinfo()")
    significand, nexp = _FLOAT_FORMATS[d]
    largest = math.ldexp(2.0 - 2.0 ** (1 - significand), 2 ** (nexp - 1) - 1)
    if d is dtypes.fp8e4m3:
        largest = _LARGEST_E4M3
    subnormal = math.ldexp(d.smallest_normal, 1 - significand)
    eps = 2.0 ** (1 - significand)
    return FloatInfo(d, d.bits, significand - 1, nexp, eps, largest, -largest, d.smallest_normal, subnormal)


def _iinfo(dtype: Any) -> IntInfo:
    """The limits of an integer dtype, or of one by its name. Raises DTypeError."""
    d = to_dtype(dtype)
    if not d.is_int or d.kind == "index":
        raise DTypeError(f"iinfo: expected an integer dtype, got {d}: use finfo() for floats")
    return IntInfo(d, d.bits, d.max, d.min)


def _is_float(dtype: Any) -> bool:
    """Whether a dtype, or the one of this name, is a float. Raises DTypeError."""
    return to_dtype(dtype).is_float


def _is_int(dtype: Any) -> bool:
    """Whether a dtype, or the one of this name, is an integer, signed or not. Raises DTypeError."""
    return to_dtype(dtype).is_int


def _is_unsigned(dtype: Any) -> bool:
    """Whether a dtype, or the one of this name, is an unsigned integer. Raises DTypeError."""
    return to_dtype(dtype).is_unsigned


def _is_bool(dtype: Any) -> bool:
    """Whether a dtype, or the one of this name, is bool. Raises DTypeError."""
    return to_dtype(dtype).is_bool


def _least_upper_dtype(*ds: Any) -> DType:
    """The least dtype that all of these (or those of these names) convert to. Raises DTypeError for none."""
    if not ds:
        raise DTypeError("least_upper_dtype: expected at least one dtype, got none")
    dtypes_given = [to_dtype(d) for d in ds]
    strange = [d for d in dtypes_given if d not in _PARENTS]
    if strange:
        raise DTypeError(f"least_upper_dtype: expected dtypes of tensors, got {strange[0]}")
    return promote(*dtypes_given)


class dtypes:
    """The namespace of all data types, and of what can be asked of them: each takes a dtype or its name."""

    void = DType("void", 0, None, "void", -2)
    index = DType("index", 8, None, "index", -1)
    bool = DType("bool", 1, "?", "bool", 0)
    int8 = DType("int8", 1, "b", "int", 1)
    uint8 = DType("uint8", 1, "B", "uint", 2)
    int16 = DType("int16", 2, "h", "int", 3)
    uint16 = DType("uint16", 2, "H", "uint", 4)
    int32 = DType("int32", 4, "i", "int", 5)
    uint32 = DType("uint32", 4, "I", "uint", 6)
    int64 = DType("int64", 8, "q", "int", 7)
    uint64 = DType("uint64", 8, "Q", "uint", 8)
    float16 = DType("float16", 2, "e", "float", 11)
    bfloat16 = DType("bfloat16", 2, None, "float", 12)
    float32 = DType("float32", 4, "f", "float", 13)
    float64 = DType("float64", 8, "d", "float", 14)

    fp8e4m3 = DType("fp8e4m3", 1, None, "float", 9)
    fp8e5m2 = DType("fp8e5m2", 1, None, "float", 10)

    half, float, double = float16, float32, float64
    char, short, int, long = int8, int16, int32, int64
    uchar, ushort, uint, ulong = uint8, uint16, uint32, uint64

    default_float = float32
    default_int = int32

    all: tuple[DType, ...] = (
        bool, int8, uint8, int16, uint16, int32, uint32, int64, uint64, float16, bfloat16, float32, float64,
    )  # fmt: skip
    # For storage: memory holds them, kernels compute in float32. `all` and `floats` are what devices have.
    fp8s = (fp8e4m3, fp8e5m2)
    floats = tuple(d for d in all if d.is_float)
    uints = tuple(d for d in all if d.kind == "uint")
    sints = tuple(d for d in all if d.kind == "int")
    ints = tuple(d for d in all if d.is_int)

    finfo, iinfo = staticmethod(_finfo), staticmethod(_iinfo)
    is_float, is_int = staticmethod(_is_float), staticmethod(_is_int)
    is_unsigned, is_bool = staticmethod(_is_unsigned), staticmethod(_is_bool)
    least_upper_dtype = staticmethod(_least_upper_dtype)

    @staticmethod
    def from_py(value: Any) -> DType:
        """The dtype of a Python scalar: bool, `default_int` or `default_float`."""
        if value is True or value is False:
            return dtypes.bool
        if isinstance(value, int_type):
            return dtypes.default_int
        if isinstance(value, float_type):
            return dtypes.default_float
        raise DTypeError(f"dtype of {value!r}: expected a bool, int or float, got {type(value).__name__}")


int_type, float_type = (1).__class__, (1.0).__class__
_BY_NAME = {str(d): d for d in (*dtypes.all, *dtypes.fp8s, dtypes.index, dtypes.void)}
_ALIASES = ("half", "float", "double", "char", "short", "int", "long", "uchar", "ushort", "uint", "ulong")
_BY_NAME |= {alias: getattr(dtypes, alias) for alias in _ALIASES}


def to_dtype(dtype: Any) -> DType:
    """A `DType` from a DType, its name, or tinygrad's alias of it. Raises DTypeError."""
    if isinstance(dtype, DType):
        return dtype
    named = _BY_NAME.get(dtype) if isinstance(dtype, str) else None
    if named is None:
        names = ", ".join((*dtypes.all, *dtypes.fp8s))
        raise DTypeError(f"dtype: expected one of {names}, got {dtype!r}")
    return named


_PARENTS: dict[DType, tuple[DType, ...]] = {
    dtypes.bool: (dtypes.int8, dtypes.uint8),
    dtypes.int8: (dtypes.int16,),
    dtypes.int16: (dtypes.int32,),
    dtypes.int32: (dtypes.int64,),
    dtypes.int64: (dtypes.float16, dtypes.bfloat16),
    dtypes.uint8: (dtypes.int16, dtypes.uint16),
    dtypes.uint16: (dtypes.int32, dtypes.uint32),
    dtypes.uint32: (dtypes.int64, dtypes.uint64),
    dtypes.uint64: (dtypes.float16, dtypes.bfloat16),
    dtypes.fp8e4m3: (dtypes.float16, dtypes.bfloat16),
    dtypes.fp8e5m2: (dtypes.float16, dtypes.bfloat16),
    dtypes.float16: (dtypes.float32,),
    dtypes.bfloat16: (dtypes.float32,),
    dtypes.float32: (dtypes.float64,),
    dtypes.float64: (),
}


@functools.cache
def _ancestors(dtype: DType) -> frozenset[DType]:
    return frozenset({dtype}).union(*(_ancestors(p) for p in _PARENTS[dtype]))


@functools.cache
def promote(*ds: DType) -> DType:
    """The least dtype that all of `ds` convert to (tinygrad's `least_upper_dtype`).

    A uint64 and a signed integer have none among integers: theirs is float64, as in numpy.
    """
    floats = {d for d in ds if d.is_float}
    if len(floats) == 1 and not floats.isdisjoint(dtypes.fp8s):
        return floats.pop()  # integers and bools become it, but of integers alone it is no common type
    if len(set(ds)) == 1:
        return ds[0]
    common = min(frozenset.intersection(*(_ancestors(d) for d in ds)), key=lambda d: d.priority)
    return common if floats or not common.is_float else dtypes.float64


def promote_float(dtype: DType) -> DType:
    """`dtype` if it is a float, else the default float."""
    return dtype if dtype.is_float else promote(dtype, dtypes.default_float)


def sum_dtype(dtype: DType) -> DType:
    """What a sum of `dtype` accumulates in: at least int32/uint32; float16 and bfloat16 in float32."""
    if dtype.is_unsigned:
        return promote(dtype, dtypes.uint32)
    return promote(dtype, dtypes.int32) if dtype.is_int or dtype.is_bool else promote(dtype, dtypes.float32)


# --- rounding: of constants, of what is folded and of Python data ----------------------------------------

_F16, _F32, _U16, _U32 = struct.Struct("<e"), struct.Struct("<f"), struct.Struct("<H"), struct.Struct("<I")


def as_double(value: Any) -> float:
    """`value` as a Python float; an integer too large for one is infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def rounded(dtype: DType, value: float | int) -> float:
    """`value` as the float `dtype` holds it: rounded once, to nearest even; infinite beyond the largest."""
    if dtype is dtypes.float64:
        return as_double(value)
    if dtype is dtypes.float32:
        return _float32(value if isinstance(value, float) else _to_odd_double(value))
    return float_from_bits(dtype, float_to_bits(dtype, value))


def _fp8_to_bits(dtype: DType, value: float) -> int:
    """The bits of an 8-bit float, by exact arithmetic. A value beyond the largest number is infinite or, in a
    dtype without infinity, the largest number, as in torch."""
    sign = 0x80 if math.copysign(1.0, value) < 0 else 0
    significand = dtype.significand
    largest = 0x7E if dtype is dtypes.fp8e4m3 else 0x7C
    if value != value:
        return sign | 0x7F
    size = abs(value)
    if math.isinf(size) or size == 0:
        return sign | (largest if size else 0)
    last_place = (
        math.frexp(dtype.smallest_normal)[1] - significand
    )  # exponent of the last place of the least ones
    exponent = max(math.frexp(size)[1] - significand, last_place)
    count = round(math.ldexp(size, -exponent))  # places, to nearest even; ldexp is exact
    # a normal number's count has its leading one; one more carries into the exponent
    bits = count + ((exponent - last_place) << (significand - 1))
    return sign | min(bits, largest)


def _fp8_from_bits(dtype: DType, bits: int) -> float:
    size, significand = bits & 0x7F, dtype.significand
    least = math.frexp(dtype.smallest_normal)[1] - significand
    exponent, fraction = size >> (significand - 1), size & ((1 << (significand - 1)) - 1)
    if dtype is dtypes.fp8e5m2 and exponent == 31:
        out = math.nan if fraction else math.inf
    elif dtype is dtypes.fp8e4m3 and size == 0x7F:
        out = math.nan
    elif exponent == 0:
        out = math.ldexp(fraction, least)
    else:
        out = math.ldexp(fraction + (1 << (significand - 1)), least + exponent - 1)
    return -out if bits & 0x80 else out


def float_to_bits(dtype: DType, value: float | int) -> int:
    """The bits of `value` rounded to a float of 8 or 16 bits; of a NaN those of the quiet NaN of its sign."""
    value = _to_odd_double(value)
    if dtype.itemsize == 1:
        return _fp8_to_bits(dtype, value)
    if dtype is dtypes.float16:
        try:
            return int(_U16.unpack(_F16.pack(value))[0])
        except OverflowError:
            return 0x7C00 if value > 0 else 0xFC00
    single = _float32(value)
    bits = int(_U32.unpack(_F32.pack(single))[0])
    if value != value:
        return bits >> 16 | 0x40
    if single != value and not math.isinf(single):
        # The last bit of what is towards 0, set: rounded again, that is `value` rounded once (Boldo and
        # Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
        bits = (bits - (abs(single) > abs(value))) | 1
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def float_from_bits(dtype: DType, bits: int) -> float:
    """The float of 8 or 16 bits with these bits."""
    if dtype.itemsize == 1:
        return _fp8_from_bits(dtype, bits)
    raw = _F16.unpack(_U16.pack(bits)) if dtype is dtypes.float16 else _F32.unpack(_U32.pack(bits << 16))
    return float(raw[0])


def _float32(x: float) -> float:
    try:
        return float(_F32.unpack(_F32.pack(x))[0])
    except OverflowError:
        return math.copysign(math.inf, x)


def _to_odd_double(value: float | int) -> float:
    """A double that rounds to every narrower float as `value` does: of a long integer its leading bits, the
    last of them set if any that were dropped is."""
    if not isinstance(value, int) or (extra := value.bit_length() - 50) <= 3:
        return float(value)
    sticky = (value >> extra) | (value & ((1 << extra) - 1) != 0)
    return math.ldexp(sticky, extra) if extra < 970 else as_double(value)
