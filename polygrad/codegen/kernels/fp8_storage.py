"""Kernels whose memory holds floats of 8 bits: no target has them, so they are bytes, and float32 in between.

A kernel becomes one that loads and stores uint8, converts by integer arithmetic, and computes in float32,
each operation rounded to the format as if a target had it. So nothing behind this knows them. The conversions
are exact and round once, to nearest even. What is beyond the largest number is infinite, or in fp8e4m3, which
has no infinity, the largest, as in torch; `Tensor.cast` has the other convention of each.
"""

from __future__ import annotations

import functools

from polygrad.dtype import DType, dtypes, float_to_bits
from polygrad.errors import InternalError
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops

_U8, _U32, _F32, _F64 = dtypes.uint8, dtypes.uint32, dtypes.float32, dtypes.float64

_LIMIT = 1 << 20  # no float of 8 bits is near it


_COMPUTED = (GroupOp.ALU - {Ops.WHERE}) | {Ops.REDUCE, Ops.SCAN}
_MOVED = {Ops.PARAM, Ops.INDEX, Ops.LOAD, Ops.WHERE, Ops.AFTER, Ops.DEFINE_REG, Ops.STAGE}


@functools.lru_cache(maxsize=64)  # equal kernels follow each other
def store_as_bits(kernel: UOp) -> UOp:
    """The kernel without floats of 8 bits; itself if it has none.

    out: fp8[i] = x: fp8[i] * y: fp8[i]

    ->  out: uint8[i] = encoded(decoded(x: uint8[i]) * decoded(y: uint8[i])), the product in float32
    """
    order = kernel.toposort()
    if not any(_is_fp8(n.dtype) for n in order):
        return kernel
    done: dict[UOp, UOp] = {}
    for n in order:
        done[n] = _rewrite(n, tuple([done[s] for s in n.src]))
    return done[kernel]


def _is_fp8(dtype: DType) -> bool:
    return dtype is dtypes.fp8e4m3 or dtype is dtypes.fp8e5m2


def _rewrite(n: UOp, src: tuple[UOp, ...]) -> UOp:
    """`n` over `src`, which are its sources rewritten."""
    into, of = n.dtype, n.src[0].dtype if n.src else dtypes.void
    if n.op is Ops.CAST and (_is_fp8(into) or _is_fp8(of)):
        value = decoded(src[0], of) if _is_fp8(of) else src[0]
        return encoded(value, into) if _is_fp8(into) else value.cast(into)
    if n.op is Ops.BITCAST and (_is_fp8(into) or _is_fp8(of)):
        return src[0].bitcast(_U8 if _is_fp8(into) else into)
    if n.op in GroupOp.Comparison and _is_fp8(of):
        return UOp(n.op, n.dtype, tuple([decoded(s, of) for s in src]), n.arg)
    if not _is_fp8(into):
        return n if src == n.src else UOp(n.op, into, src, n.arg)
    if n.op is Ops.CONST:
        return UOp.const(_U8, float_to_bits(into, n.arg))
    if n.op in _COMPUTED:
        return encoded(UOp(n.op, _F32, tuple(map(_wide, n.src, src)), n.arg), into)
    if n.op not in _MOVED:
        raise InternalError(f"fp8: expected an op that moves {into} or computes it, got {n.op}")
    return UOp(n.op, _U8, src, n.arg)


def _wide(n: UOp, new: UOp) -> UOp:
    """`new`, which `n` became, as an operand in float32: op(x, y) = fp8(op(float32(x), float32(y)))."""
    return decoded(new, n.dtype) if _is_fp8(n.dtype) else new


def decoded(bits: UOp, dtype: DType) -> UOp:
    """The float32 of the uint8 `bits`."""
    fraction = dtype.significand - 1
    bias = (1 << (7 - fraction - 1)) - 1
    size = (bits & 0x7F).cast(_U32)
    # what is below the least normal number is made without such numbers of float32: some devices flush them
    small = size.cast(_F32) * 2.0 ** (1 - bias - fraction)
    normal = ((size << (23 - fraction)) + ((127 - bias) << 23)).bitcast(_F32)
    out = (size < (1 << fraction)).where(small, normal)
    nan = UOp.const(_F32, float("nan"))
    if dtype is dtypes.fp8e5m2:
        out = (size < 0x7C).where(out, size.eq(0x7C).where(UOp.const(_F32, float("inf")), nan))
    else:
        out = size.eq(0x7F).where(nan, out)
    return (out.bitcast(_U32) | ((bits & 0x80).cast(_U32) << 24)).bitcast(_F32)


def encoded(x: UOp, dtype: DType) -> UOp:
    """The uint8 bits of `x` rounded to `dtype`."""
    fraction = dtype.significand - 1
    bias = (1 << (7 - fraction - 1)) - 1
    bits = _single_bits(x)
    size = bits & 0x7FFFFFFF
    shift = 23 - fraction
    # halves go to even: just under a half of the last place is added, and 1 if that place is odd
    odd = (size >> shift) & 1
    normal = ((size + ((1 << (shift - 1)) - 1) + odd) >> shift) - ((127 - bias) << fraction)
    # adding 2^23 of their last places rounds small numbers to such places, by the device's own rounding
    magic = UOp.const(_F32, 2.0 ** (23 + 1 - bias - fraction))
    small = (size.bitcast(_F32) + magic).bitcast(_U32) - magic.bitcast(_U32)
    out = (size < ((127 + 1 - bias) << 23)).where(small, normal)
    most = 0x7C if dtype is dtypes.fp8e5m2 else 0x7E
    out = (out < most).where(out, UOp.const(_U32, most))
    out = (size > 0x7F800000).where(UOp.const(_U32, 0x7F), out)
    return (out | ((bits >> 24) & 0x80)).cast(_U8)


def _single_bits(x: UOp) -> UOp:
    """The bits of a float32 that rounds to fewer bits as `x` does."""
    if x.dtype.is_float and x.dtype.itemsize <= 4:
        return x.cast(_F32).bitcast(_U32)
    if not x.dtype.is_float and x.dtype.itemsize <= 2:
        return x.cast(_F32).bitcast(_U32)
    if not x.dtype.is_float:  # what is beyond the limit overflows like it; float32 has all up to it
        least, most = (UOp.const(x.dtype, max(n, x.dtype.min)) for n in (-_LIMIT, _LIMIT))
        x = (x < most).where(x, most)
        return (x if x.dtype.is_unsigned else (x < least).where(least, x)).cast(_F32).bitcast(_U32)
    wide = x.cast(_F64)
    single = wide.cast(_F32)
    back = single.cast(_F64)
    # round to odd (Boldo and Melquiond, 2008): towards 0, and the last bit set where something was lost
    magnitude = (1 << 63) - 1
    away = (wide.bitcast(dtypes.uint64) & magnitude) < (back.bitcast(dtypes.uint64) & magnitude)
    bits = single.bitcast(_U32)
    lost = wide.ne(back)
    return lost.where((bits - away.cast(_U32)) | 1, bits)
