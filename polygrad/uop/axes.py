"""Movement along one axis of a node, and positions on it."""

from __future__ import annotations

from polygrad.dtype import dtypes
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.shapes import Sint


def shrink_axis(x: UOp, axis: int, start: Sint, stop: Sint) -> UOp:
    """`x` from `start` to `stop` of an axis."""
    return x.shrink(tuple((start, stop) if i == axis else (0, n) for i, n in enumerate(x.shape)))


def pad_axis(x: UOp, axis: int, before: Sint, after: Sint) -> UOp:
    """`x` with zeros before and after, along an axis."""
    return x.pad(tuple((before, after) if i == axis else (0, 0) for i in range(x.ndim)))


def arange_axis(shape: tuple[Sint, ...], axis: int) -> UOp:
    """The position along an axis, int32, of a node of this shape."""
    line = UOp(Ops.ARANGE, dtypes.int32, (), shape[axis])
    return line.reshape(tuple(n if i == axis else 1 for i, n in enumerate(shape))).expand(shape)
