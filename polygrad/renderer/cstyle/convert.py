"""How a language like C converts between dtypes where a cast does not do it: what the bodies of helpers are.

float to int saturates, with NaN giving 0. float16 and bfloat16, held as their bits, are rounded to nearest
even by integer arithmetic, after Giesen ("Float->half variants", 2012); from double they are rounded once, by
way of a float rounded to odd (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).

Each function takes a builder and a value, and gives a value: it works in every language that has 32-bit
integers, of scalars and of SIMD values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polygrad.dtype import DType, dtypes
from polygrad.renderer.builder import Builder
from polygrad.uop.ops import Ops

Value = Any


class _Words:
    """Writes operations of 32-bit words and floats of `lanes` lanes."""

    def __init__(self, builder: Builder, lanes: int) -> None:
        self.builder, self.lanes = builder, lanes

    def op(self, op: Ops, a: Value, b: Value | int, dtype: DType = dtypes.uint32) -> Value:
        other = self.builder.const(dtype, b, self.lanes) if isinstance(b, int | float) else b
        return self.builder.alu(op, dtype, [a, other], self.lanes)

    def select(self, mask: Value, a: Value | int, b: Value | int) -> Value:
        x, y = (self.builder.const(dtypes.uint32, v, self.lanes) if isinstance(v, int) else v for v in (a, b))
        return self.builder.alu(Ops.WHERE, dtypes.uint32, [mask, x, y], self.lanes)

    def bits(self, value: Value) -> Value:
        return self.builder.bitcast(value, dtypes.float32, dtypes.uint32, self.lanes)

    def as_float(self, value: Value) -> Value:
        return self.builder.bitcast(value, dtypes.uint32, dtypes.float32, self.lanes)

    def widened(self, value: Value, dtype: DType) -> Value:
        short = self.builder.bitcast(value, dtype, dtypes.uint16, self.lanes)
        return self.builder.cast(short, dtypes.uint16, dtypes.uint32, self.lanes)

    def narrowed(self, value: Value, dtype: DType) -> Value:
        short = self.builder.cast(value, dtypes.uint32, dtypes.uint16, self.lanes)
        return self.builder.bitcast(short, dtypes.uint16, dtype, self.lanes)


def _half_to_float(builder: Builder, value: Value, lanes: int) -> Value:
    w = _Words(builder, lanes)
    wide = w.widened(value, dtypes.float16)
    size = w.op(Ops.SHL, w.op(Ops.AND, wide, 0x7FFF), 13)
    # Multiplying puts the exponent's bias right and makes what was denormal normal.
    number = w.bits(w.op(Ops.MUL, w.as_float(size), 2.0**112, dtypes.float32))
    special = w.select(w.op(Ops.CMPLT, size, 0x7C00 << 13), 0, 0x7F800000)
    sign = w.op(Ops.SHL, w.op(Ops.AND, wide, 0x8000), 16)
    return w.as_float(w.op(Ops.OR, w.op(Ops.OR, number, special), sign))


def _float_to_half(builder: Builder, value: Value, lanes: int) -> Value:
    w = _Words(builder, lanes)
    bits = w.bits(value)
    size = w.op(Ops.AND, bits, 0x7FFFFFFF)
    # A denormal result: adding 1/2 has the adder round at the bit where a half ends.
    small = w.op(Ops.SUB, w.bits(w.op(Ops.ADD, w.as_float(size), 0.5, dtypes.float32)), 0x3F000000)
    # A normal one: the bias changed, and just less than half of the last place added (half if it is odd).
    odd = w.op(Ops.AND, w.op(Ops.SHR, size, 13), 1)
    rebiased = w.op(Ops.SUB, size, (112 << 23) - 0xFFF)
    normal = w.op(Ops.SHR, w.op(Ops.ADD, rebiased, odd), 13)
    special = w.select(w.op(Ops.CMPLT, size, 0x7F800001), 0x7C00, 0x7E00)
    out = w.select(w.op(Ops.CMPLT, size, 0x38800000), small, normal)
    out = w.select(w.op(Ops.CMPLT, size, 0x47800000), out, special)
    sign = w.op(Ops.AND, w.op(Ops.SHR, bits, 16), 0x8000)
    return w.narrowed(w.op(Ops.OR, out, sign), dtypes.float16)


def _bfloat_to_float(builder: Builder, value: Value, lanes: int) -> Value:
    w = _Words(builder, lanes)
    return w.as_float(w.op(Ops.SHL, w.widened(value, dtypes.bfloat16), 16))


def _float_to_bfloat(builder: Builder, value: Value, lanes: int) -> Value:
    w = _Words(builder, lanes)
    bits = w.bits(value)
    high = w.op(Ops.SHR, bits, 16)
    rounded = w.op(Ops.SHR, w.op(Ops.ADD, w.op(Ops.ADD, bits, 0x7FFF), w.op(Ops.AND, high, 1)), 16)
    is_nan = w.op(Ops.CMPNE, value, value, dtypes.float32)
    return w.narrowed(w.select(is_nan, w.op(Ops.OR, high, 0x40), rounded), dtypes.bfloat16)


def _double_to_odd(builder: Builder, value: Value, lanes: int) -> Value:
    """double to float; what is not exact gets an odd last bit: rounding it to 16 bits is rounding once."""
    w = _Words(builder, lanes)
    single = builder.cast(value, dtypes.float64, dtypes.float32, lanes)
    back = builder.cast(single, dtypes.float32, dtypes.float64, lanes)
    size, wanted = (
        w.op(
            Ops.AND,
            builder.bitcast(x, dtypes.float64, dtypes.uint64, lanes),
            (1 << 63) - 1,
            dtypes.uint64,
        )
        for x in (back, value)
    )
    larger = w.op(Ops.CMPLT, wanted, size, dtypes.uint64)
    towards_zero = w.op(Ops.SUB, w.bits(single), w.select(larger, 1, 0))
    less, greater = (w.op(Ops.CMPLT, a, b, dtypes.float64) for a, b in ((back, value), (value, back)))
    inexact = w.op(Ops.OR, less, greater, dtypes.bool)  # false of a NaN
    return w.as_float(w.op(Ops.OR, towards_zero, w.select(inexact, 1, 0)))


def _double_to_half(builder: Builder, value: Value, lanes: int) -> Value:
    return builder.cast(_double_to_odd(builder, value, lanes), dtypes.float32, dtypes.float16, lanes)


def _double_to_bfloat(builder: Builder, value: Value, lanes: int) -> Value:
    return builder.cast(_double_to_odd(builder, value, lanes), dtypes.float32, dtypes.bfloat16, lanes)


# from and to float16 and bfloat16, by (src, dst)
FUNCTIONS: dict[tuple[DType, DType], Callable[[Builder, Value, int], Value]] = {
    (dtypes.float16, dtypes.float32): _half_to_float,
    (dtypes.bfloat16, dtypes.float32): _bfloat_to_float,
    (dtypes.float32, dtypes.float16): _float_to_half,
    (dtypes.float32, dtypes.bfloat16): _float_to_bfloat,
    (dtypes.float64, dtypes.float16): _double_to_half,
    (dtypes.float64, dtypes.bfloat16): _double_to_bfloat,
}


def float_to_int(
    builder: Builder, value: Value, truncated: Value, src: DType, dst: DType, lanes: int
) -> Value:
    """`truncated`: `value` cast as if it were in range of the integer `dst`."""

    def below(bound: float) -> Value:
        return builder.alu(Ops.CMPLT, src, [value, builder.const(src, bound, lanes)], lanes)

    def select(condition: Value, a: Value, b: Value) -> Value:
        return builder.alu(Ops.WHERE, dst, [condition, a, b], lanes)

    out = select(below(float(dst.max + 1)), truncated, builder.const(dst, dst.max, lanes))
    out = select(below(float(dst.min)), builder.const(dst, dst.min, lanes), out)
    is_nan = builder.alu(Ops.CMPNE, src, [value, value], lanes)
    return select(is_nan, builder.const(dst, 0, lanes), out)
