"""Conversions that no instruction does, written once through a Builder: of 16-bit floats, and to integers.

Each function takes a Builder and a value and gives a value, a scalar or a SIMD value. It works in every
language that has 32-bit integers. Languages that have an instruction or a library function use that.
WebAssembly has faster sequences of its own for float16 (`wasm/cast.py`). WGSL has its own for all: it may
compute with neither denormal numbers nor NaN, which a GPU need not keep (`wgsl/library.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polygrad.dtype import DType, dtypes
from polygrad.renderer.builder import Builder
from polygrad.uop.ops import Ops

Value = Any


class _Words:
    """Writes operations on 32-bit words and floats of `lanes` lanes."""

    def __init__(self, builder: Builder, lanes: int) -> None:
        self.builder, self.lanes = builder, lanes

    def const(self, value: int | float, dtype: DType = dtypes.uint32) -> Value:
        return self.builder.const(dtype, value, self.lanes)

    def op(self, op: Ops, a: Value, b: Value, dtype: DType = dtypes.uint32) -> Value:
        return self.builder.alu(op, dtype, [a, b], self.lanes)

    def op_const(self, op: Ops, a: Value, b: int | float, dtype: DType = dtypes.uint32) -> Value:
        return self.op(op, a, self.const(b, dtype), dtype)

    def select(self, mask: Value, a: Value, b: Value) -> Value:
        return self.builder.alu(Ops.WHERE, dtypes.uint32, [mask, a, b], self.lanes)

    def bits(self, value: Value) -> Value:
        return self.builder.bitcast(value, dtypes.float32, dtypes.uint32, self.lanes)

    def as_float(self, value: Value) -> Value:
        return self.builder.bitcast(value, dtypes.uint32, dtypes.float32, self.lanes)

    def zero_extend(self, value: Value, dtype: DType) -> Value:
        half = self.builder.bitcast(value, dtype, dtypes.uint16, self.lanes)
        return self.builder.cast(half, dtypes.uint16, dtypes.uint32, self.lanes)

    def truncate(self, value: Value, dtype: DType) -> Value:
        half = self.builder.cast(value, dtypes.uint32, dtypes.uint16, self.lanes)
        return self.builder.bitcast(half, dtypes.uint16, dtype, self.lanes)


def _float16_to_float32(builder: Builder, value: Value, lanes: int) -> Value:
    w = _Words(builder, lanes)
    word = w.zero_extend(value, dtypes.float16)
    magnitude = w.op_const(Ops.SHL, w.op_const(Ops.AND, word, 0x7FFF), 13)
    # The product has float32's exponent bias, and denormal numbers become normal.
    number = w.bits(w.op_const(Ops.MUL, w.as_float(magnitude), 2.0**112, dtypes.float32))
    is_finite = w.op_const(Ops.CMPLT, magnitude, 0x7C00 << 13)
    special = w.select(is_finite, w.const(0), w.const(0x7F800000))
    sign = w.op_const(Ops.SHL, w.op_const(Ops.AND, word, 0x8000), 16)
    return w.as_float(w.op(Ops.OR, w.op(Ops.OR, number, special), sign))


def _float32_to_float16(builder: Builder, value: Value, lanes: int) -> Value:
    w = _Words(builder, lanes)
    bits = w.bits(value)
    magnitude = w.op_const(Ops.AND, bits, 0x7FFFFFFF)
    # A denormal result: after 0.5 is added, the last bit of the sum is the last bit of a float16.
    sum_ = w.op_const(Ops.ADD, w.as_float(magnitude), 0.5, dtypes.float32)
    denormal = w.op_const(Ops.SUB, w.bits(sum_), 0x3F000000)
    # A normal result: the exponent gets float16's bias. To round to nearest even, half of the last place is
    # added, or just less than half where the last bit is 0.
    odd = w.op_const(Ops.AND, w.op_const(Ops.SHR, magnitude, 13), 1)
    rebiased = w.op_const(Ops.SUB, magnitude, (112 << 23) - 0xFFF)
    normal = w.op_const(Ops.SHR, w.op(Ops.ADD, rebiased, odd), 13)
    is_number = w.op_const(Ops.CMPLT, magnitude, 0x7F800001)
    special = w.select(is_number, w.const(0x7C00), w.const(0x7E00))
    out = w.select(w.op_const(Ops.CMPLT, magnitude, 0x38800000), denormal, normal)
    out = w.select(w.op_const(Ops.CMPLT, magnitude, 0x47800000), out, special)
    sign = w.op_const(Ops.AND, w.op_const(Ops.SHR, bits, 16), 0x8000)
    return w.truncate(w.op(Ops.OR, out, sign), dtypes.float16)


def _bfloat16_to_float32(builder: Builder, value: Value, lanes: int) -> Value:
    w = _Words(builder, lanes)
    return w.as_float(w.op_const(Ops.SHL, w.zero_extend(value, dtypes.bfloat16), 16))


def _float32_to_bfloat16(builder: Builder, value: Value, lanes: int) -> Value:
    w = _Words(builder, lanes)
    bits = w.bits(value)
    high = w.op_const(Ops.SHR, bits, 16)
    odd = w.op_const(Ops.AND, high, 1)
    rounded = w.op_const(Ops.SHR, w.op(Ops.ADD, w.op_const(Ops.ADD, bits, 0x7FFF), odd), 16)
    is_nan = w.op(Ops.CMPNE, value, value, dtypes.float32)
    return w.truncate(w.select(is_nan, w.op_const(Ops.OR, high, 0x40), rounded), dtypes.bfloat16)


def _round_to_odd(builder: Builder, value: Value, lanes: int) -> Value:
    """float64 to float32: towards zero, with the last bit set where that is not exact. The result rounded to
    16 bits is the float64 rounded to 16 bits once."""
    w, u64, f64 = _Words(builder, lanes), dtypes.uint64, dtypes.float64
    single = builder.cast(value, f64, dtypes.float32, lanes)
    back = builder.cast(single, dtypes.float32, f64, lanes)
    rounded, exact = (
        w.op_const(Ops.AND, builder.bitcast(x, f64, u64, lanes), (1 << 63) - 1, u64) for x in (back, value)
    )
    zero, one = w.const(0), w.const(1)
    towards_zero = w.op(Ops.SUB, w.bits(single), w.select(w.op(Ops.CMPLT, exact, rounded, u64), one, zero))
    less, greater = (w.op(Ops.CMPLT, a, b, f64) for a, b in ((back, value), (value, back)))
    inexact = w.op(Ops.OR, less, greater, dtypes.bool)  # false for NaN
    return w.as_float(w.op(Ops.OR, towards_zero, w.select(inexact, one, zero)))


def _float64_to_float16(builder: Builder, value: Value, lanes: int) -> Value:
    return builder.cast(_round_to_odd(builder, value, lanes), dtypes.float32, dtypes.float16, lanes)


def _float64_to_bfloat16(builder: Builder, value: Value, lanes: int) -> Value:
    return builder.cast(_round_to_odd(builder, value, lanes), dtypes.float32, dtypes.bfloat16, lanes)


# By (source, destination). float16 and bfloat16 are rounded to nearest even by integer arithmetic, after
# Giesen ("Float->half variants", 2012). A float64 is rounded once, by way of a float32 rounded to odd (Boldo
# and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
HALF_CONVERSIONS: dict[tuple[DType, DType], Callable[[Builder, Value, int], Value]] = {
    (dtypes.float16, dtypes.float32): _float16_to_float32,
    (dtypes.bfloat16, dtypes.float32): _bfloat16_to_float32,
    (dtypes.float32, dtypes.float16): _float32_to_float16,
    (dtypes.float32, dtypes.bfloat16): _float32_to_bfloat16,
    (dtypes.float64, dtypes.float16): _float64_to_float16,
    (dtypes.float64, dtypes.bfloat16): _float64_to_bfloat16,
}


def float_to_int(
    builder: Builder, value: Value, truncated: Value, src: DType, dst: DType, lanes: int
) -> Value:
    """A float as the integer `dst`, which saturates; NaN gives 0. `truncated`: the value cast as if it were
    in range."""

    def is_below(bound: float) -> Value:
        return builder.alu(Ops.CMPLT, src, [value, builder.const(src, bound, lanes)], lanes)

    def select(condition: Value, a: Value, b: Value) -> Value:
        return builder.alu(Ops.WHERE, dst, [condition, a, b], lanes)

    out = select(is_below(float(dst.max + 1)), truncated, builder.const(dst, dst.max, lanes))
    out = select(is_below(float(dst.min)), builder.const(dst, dst.min, lanes), out)
    is_nan = builder.alu(Ops.CMPNE, src, [value, value], lanes)
    return select(is_nan, builder.const(dst, 0, lanes), out)
