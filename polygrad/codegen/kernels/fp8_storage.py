"""Kernels whose memory holds 8-bit floats: no target has these, so memory holds bytes and kernels compute in
float32.

A kernel becomes one that loads and stores uint8, converts by integer arithmetic, and computes in float32,
each operation rounded to the format as if a target had it. So no later pass knows these dtypes. The
conversions are exact and round once, to nearest even. A value beyond the largest number becomes infinite or,
in fp8e4m3, which has no infinity, the largest number, as in torch; `Tensor.cast` has the other convention of
each.
"""

from __future__ import annotations

import functools

from polygrad.dtype import DType, dtypes, float_to_bits
from polygrad.errors import InternalError
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops

_U8, _U32, _F32, _F64 = dtypes.uint8, dtypes.uint32, dtypes.float32, dtypes.float64

_LIMIT = 1 << 20  # far beyond all 8-bit floats


_COMPUTED = (GroupOp.ALU - {Ops.WHERE}) | {Ops.REDUCE, Ops.SCAN}
_MOVED = {Ops.PARAM, Ops.INDEX, Ops.LOAD, Ops.WHERE, Ops.AFTER, Ops.DEFINE_REG, Ops.STAGE}


@functools.lru_cache(maxsize=64)  # equal kernels follow each other
def store_as_bits(kernel: UOp) -> UOp:
    """The kernel without 8-bit floats; itself if it has none.

    out: fp8[i] = x: fp8[i] * y: fp8[i]

    ->  out: uint8[i] = encode(decode(x: uint8[i]) * decode(y: uint8[i])), the product in float32
    """
    order = kernel.toposort()
    if not any(_is_fp8(n.dtype) for n in order):
        return kernel
    rewritten: dict[UOp, UOp] = {}
    for n in order:
        rewritten[n] = _rewrite(n, tuple([rewritten[s] for s in n.src]))
    return rewritten[kernel]


def _is_fp8(dtype: DType) -> bool:
    return dtype is dtypes.fp8e4m3 or dtype is dtypes.fp8e5m2


def _rewrite(n: UOp, src: tuple[UOp, ...]) -> UOp:
    """`n` over its rewritten sources `src`."""
    into, of = n.dtype, n.src[0].dtype if n.src else dtypes.void
    if n.op is Ops.CAST and (_is_fp8(into) or _is_fp8(of)):
        value = decode(src[0], of) if _is_fp8(of) else src[0]
        return encode(value, into) if _is_fp8(into) else value.cast(into)
    if n.op is Ops.BITCAST and (_is_fp8(into) or _is_fp8(of)):
        return src[0].bitcast(_U8 if _is_fp8(into) else into)
    if n.op in GroupOp.Comparison and _is_fp8(of):
        return UOp(n.op, n.dtype, tuple([decode(s, of) for s in src]), n.arg)
    if not _is_fp8(into):
        return n if src == n.src else UOp(n.op, into, src, n.arg)
    if n.op is Ops.CONST:
        return UOp.const(_U8, float_to_bits(into, n.arg))
    if n.op in _COMPUTED:
        return encode(UOp(n.op, _F32, tuple(map(_wide, n.src, src)), n.arg), into)
    if n.op not in _MOVED:
        raise InternalError(f"fp8: expected an op that moves {into} or computes it, got {n.op}")
    return UOp(n.op, _U8, src, n.arg)


def _wide(n: UOp, new: UOp) -> UOp:
    """The rewritten node `new` of `n` as an operand in float32: op(x, y) = fp8(op(float32(x),
    float32(y)))."""
    return decode(new, n.dtype) if _is_fp8(n.dtype) else new


def decode(bits: UOp, dtype: DType) -> UOp:
    """The float32 of the uint8 `bits`."""
    fraction = dtype.significand - 1
    bias = (1 << (7 - fraction - 1)) - 1
    size = (bits & 0x7F).cast(_U32)
    # subnormal numbers are made without subnormal float32, which some devices flush to 0
    small = size.cast(_F32) * 2.0 ** (1 - bias - fraction)
    normal = ((size << (23 - fraction)) + ((127 - bias) << 23)).bitcast(_F32)
    out = (size < (1 << fraction)).where(small, normal)
    nan = UOp.const(_F32, float("nan"))
    if dtype is dtypes.fp8e5m2:
        out = (size < 0x7C).where(out, size.eq(0x7C).where(UOp.const(_F32, float("inf")), nan))
    else:
        out = size.eq(0x7F).where(nan, out)
    return (out.bitcast(_U32) | ((bits & 0x80).cast(_U32) << 24)).bitcast(_F32)


def encode(x: UOp, dtype: DType) -> UOp:
    """The uint8 bits of `x` rounded to `dtype`."""
    fraction = dtype.significand - 1
    bias = (1 << (7 - fraction - 1)) - 1
    bits = _single_bits(x)
    size = bits & 0x7FFFFFFF
    shift = 23 - fraction
    # ties go to even: just under half of the last place is added, and 1 if that place is odd
    odd = (size >> shift) & 1
    normal = ((size + ((1 << (shift - 1)) - 1) + odd) >> shift) - ((127 - bias) << fraction)
    # adding 2^23 times their last place rounds small numbers to that place, by the device's own rounding
    magic = UOp.const(_F32, 2.0 ** (23 + 1 - bias - fraction))
    small = (size.bitcast(_F32) + magic).bitcast(_U32) - magic.bitcast(_U32)
    out = (size < ((127 + 1 - bias) << 23)).where(small, normal)
    largest = 0x7C if dtype is dtypes.fp8e5m2 else 0x7E
    out = (out < largest).where(out, UOp.const(_U32, largest))
    out = (size > 0x7F800000).where(UOp.const(_U32, 0x7F), out)
    return (out | ((bits >> 24) & 0x80)).cast(_U8)


def _single_bits(x: UOp) -> UOp:
    """The bits of a float32 that rounds to an 8-bit float as `x` does."""
    if x.dtype.is_float and x.dtype.itemsize <= 4:
        return x.cast(_F32).bitcast(_U32)
    if not x.dtype.is_float and x.dtype.itemsize <= 2:
        return x.cast(_F32).bitcast(_U32)
    if not x.dtype.is_float:  # numbers beyond the limit overflow like it; float32 has all numbers up to it
        lower, upper = (UOp.const(x.dtype, max(n, x.dtype.min)) for n in (-_LIMIT, _LIMIT))
        x = (x < upper).where(x, upper)
        return (x if x.dtype.is_unsigned else (x < lower).where(lower, x)).cast(_F32).bitcast(_U32)
    wide = x.cast(_F64)
    single = wide.cast(_F32)
    back = single.cast(_F64)
    # round to odd (Boldo and Melquiond, 2008): towards 0, and the last bit set where something was lost
    magnitude = (1 << 63) - 1
    away = (wide.bitcast(dtypes.uint64) & magnitude) < (back.bitcast(dtypes.uint64) & magnitude)
    bits = single.bitcast(_U32)
    lost = wide.ne(back)
    return lost.where((bits - away.cast(_U32)) | 1, bits)
