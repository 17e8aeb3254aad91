"""Scalar UOp expressions evaluated over numpy arrays, one rounding per operation.

The tests' reference for graphs of simple operations. bfloat16 is held as those float32 values that are its
own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polygrad.dtype import DType, dtypes
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

Array = np.ndarray[Any, Any]


def numpy_dtype(dtype: DType) -> Any:
    """The numpy dtype that holds `dtype`."""
    named = {dtypes.bfloat16: "float32", dtypes.index: "int64"}
    return np.dtype(named.get(dtype, str(dtype)))


def evaluate(root: UOp, inputs: dict[UOp, Array]) -> Array:
    """The value of `root`, where the nodes in `inputs` have the values given."""
    values: dict[UOp, Array] = dict(inputs)
    with np.errstate(all="ignore"):
        for node in root.toposort(lambda n: n not in inputs):
            if node not in values:
                values[node] = _value(node, [values[s] for s in node.src])
    return values[root]


def _value(node: UOp, args: list[Array]) -> Array:
    dtype = numpy_dtype(node.dtype)
    if node.op is Ops.CONST:
        return np.array(float(node.arg) if node.dtype.is_float else node.arg, dtype)
    if node.op is Ops.CAST:
        return cast(args[0], node.src[0].dtype, node.dtype)
    if node.op is Ops.BITCAST:
        assert dtypes.bfloat16 not in (node.dtype, node.src[0].dtype)
        return np.ascontiguousarray(args[0]).view(dtype).reshape(args[0].shape)
    out = _OPS[node.op](*args)
    assert out.dtype == dtype, f"{node}: {out.dtype}"
    return cast(out, node.dtype, node.dtype) if node.dtype is dtypes.bfloat16 else out


def round_bfloat16(x: Array) -> Array:
    """float32 values rounded to bfloat16's, nearest even."""
    bits = np.ascontiguousarray(x).view(np.uint32)
    rounded = ((bits + np.uint32(0x7FFF) + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)).view(np.float32)
    return np.where(np.isnan(x), x, rounded)


def _to_odd(x: Array) -> Array:
    """float64 values as float32, inexact ones as the odd neighbour: rounding again then rounds once."""
    with np.errstate(all="ignore"):
        near = x.astype(np.float32)
        below = np.where(np.abs(near) > np.abs(x), np.nextafter(near, np.float32(0)), near)
        odd = (below.view(np.uint32) | (below != x)).astype(np.uint32).view(np.float32)
    return np.where(np.isnan(x), near, odd)


def cast(x: Array, src: DType, dst: DType) -> Array:
    """CAST: float to int truncates and saturates, NaN gives 0."""
    if dst is dtypes.bfloat16:
        return round_bfloat16(_to_odd(x) if x.dtype == np.float64 else x.astype(np.float32))
    if dst.is_bool:
        return x != 0
    if not (src.is_float and dst.is_int):
        with np.errstate(over="ignore"):
            return x.astype(numpy_dtype(dst))
    whole = np.trunc(np.where(np.isnan(x), 0, x)).astype(np.float64)
    out = (
        np.where((whole > -(2.0**63)) & (whole < 2.0**63), whole, 0).astype(np.int64).astype(numpy_dtype(dst))
    )
    if dst.bits == 64 and dst.is_unsigned:
        out = np.where((whole >= 2.0**63) & (whole < 2.0**64), whole, out).astype(np.uint64)
    out = np.where(whole >= float(dst.max), np.array(dst.max, numpy_dtype(dst)), out)
    return np.where(whole <= float(dst.min), np.array(dst.min, numpy_dtype(dst)), out)


def _zero_if_zero(function: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda a, b: np.where(b == 0, np.zeros_like(a), function(a, np.where(b == 0, np.ones_like(b), b)))


def _mulacc(a: Array, b: Array, c: Array) -> Array:
    """Fused: what stands between is wider (for float64 by 11 bits only, where numpy has such a type)."""
    if not np.issubdtype(c.dtype, np.floating):
        return a * b + c
    wide = np.float64 if c.dtype == np.float32 else np.longdouble
    return (a.astype(wide) * b.astype(wide) + c.astype(wide)).astype(c.dtype)


_OPS: dict[Ops, Callable[..., Array]] = {
    Ops.ADD: np.add, Ops.SUB: np.subtract, Ops.MUL: np.multiply, Ops.FDIV: np.divide, Ops.MAX: np.maximum,
    Ops.NEG: np.negative, Ops.SQRT: np.sqrt, Ops.TRUNC: np.trunc,
    Ops.RECIPROCAL: lambda a: np.ones_like(a) / a, Ops.MULACC: _mulacc,
    Ops.IDIV: _zero_if_zero(np.floor_divide), Ops.MOD: _zero_if_zero(np.remainder),
    Ops.SHL: np.left_shift, Ops.SHR: np.right_shift, Ops.AND: np.bitwise_and, Ops.OR: np.bitwise_or,
    Ops.XOR: np.bitwise_xor, Ops.CMPLT: np.less, Ops.CMPNE: np.not_equal, Ops.CMPEQ: np.equal,
    Ops.WHERE: np.where,
}  # fmt: skip
