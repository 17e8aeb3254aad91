"""Reductions, argmax, and running sums and products."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from polygrad.dtype import dtypes
from polygrad.onnx.op_table import Int, Ints, op
from polygrad.tensor.tensor import Tensor

Reduction = Callable[[Tensor, Sequence[int], bool], Tensor]


def _least(x: Tensor) -> Any:
    return -math.inf if x.dtype.is_float else x.dtype.min


def _greatest(x: Tensor) -> Any:
    return math.inf if x.dtype.is_float else x.dtype.max


def _or_empty(function: Reduction, identity: Callable[[Tensor], Any]) -> Reduction:
    """`function`, which needs at least one element; `identity` where there is none."""

    def reduce(x: Tensor, axes: Sequence[int], keepdim: bool) -> Tensor:
        if all(x.shape[a] for a in axes):
            return function(x, axes, keepdim)
        shape = [1 if i in axes else n for i, n in enumerate(x.shape) if keepdim or i not in axes]
        return Tensor.full(shape, identity(x), dtype=x.dtype)

    return reduce


def _floats(x: Tensor) -> Tensor:
    return x if x.dtype.is_float else x.cast(dtypes.float64 if x.dtype.itemsize > 4 else dtypes.float32)


_REDUCTIONS: dict[str, tuple[Reduction, tuple[int, ...], tuple[int, ...]]] = {
    # by attribute `axes`, by input
    "ReduceL1": (lambda x, axes, keep: x.abs().sum(axes, keep), (1, 11, 13), (18,)),
    "ReduceL2": (lambda x, axes, keep: _floats(x).square().sum(axes, keep).sqrt(), (1, 11, 13), (18,)),
    "ReduceLogSum": (lambda x, axes, keep: _floats(x).sum(axes, keep).log(), (1, 11, 13), (18, 28)),
    "ReduceLogSumExp": (lambda x, axes, keep: _floats(x).logsumexp(axes, keep), (1, 11, 13), (18, 28)),
    "ReduceMax": (_or_empty(Tensor.max, _least), (1, 11, 12, 13), (18, 20)),
    "ReduceMean": (lambda x, axes, keep: _floats(x).mean(axes, keep), (1, 11, 13), (18,)),
    "ReduceMin": (_or_empty(Tensor.min, _greatest), (1, 11, 12, 13), (18, 20)),
    "ReduceProd": (lambda x, axes, keep: x.prod(axes, keep), (1, 11, 13), (18,)),
    "ReduceSum": (lambda x, axes, keep: x.sum(axes, keep), (1, 11), (13,)),
    "ReduceSumSquare": (lambda x, axes, keep: x.square().sum(axes, keep), (1, 11, 13), (18,)),
}


def _apply(function: Reduction, x: Tensor, axes: Sequence[int], keepdims: int) -> Tensor:
    chosen = tuple(x._axes(tuple(axes) if axes else None))
    return function(x, chosen, bool(keepdims)).cast(x.dtype)


def _by_attribute(function: Reduction) -> Callable[..., Tensor]:
    def reduce(x: Tensor, *, axes: Sequence[int] = (), keepdims: int = 1) -> Tensor:
        return _apply(function, x, axes, keepdims)

    return reduce


def _by_input(function: Reduction) -> Callable[..., Tensor]:
    def reduce(
        x: Tensor, axes: Ints | None = None, *, keepdims: int = 1, noop_with_empty_axes: int = 0
    ) -> Tensor:
        if noop_with_empty_axes and not axes:  # reductions of one element each
            return function(x.unsqueeze(-1), (x.ndim,), False).cast(x.dtype)
        return _apply(function, x, axes or (), keepdims)

    return reduce


for _name, (_function, _old, _new) in _REDUCTIONS.items():
    op(_name, *_old)(_by_attribute(_function))
    op(_name, *_new)(_by_input(_function))


# --- positions of the greatest and the least


def _arg(x: Tensor, axis: int, keepdims: int, last: int) -> Tensor:
    if not x.ndim:
        return Tensor.zeros((), dtype=dtypes.int64)
    if not last:
        return x.argmax(axis, bool(keepdims)).cast(dtypes.int64)
    position = x.flip(axis).argmax(axis, bool(keepdims)).cast(dtypes.int64)
    return position * -1 + (x.shape[axis] - 1)


@op("ArgMax", 1, 11, 12, 13)
def argmax(x: Tensor, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Tensor:
    return _arg(x, axis, keepdims, select_last_index)


@op("ArgMin", 1, 11, 12, 13)
def argmin(x: Tensor, *, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Tensor:
    return _arg(x.neg() if x.dtype.is_float else x.bitwise_not(), axis, keepdims, select_last_index)


# --- running


def _running(function: Callable[[Tensor, int], Tensor], start: int) -> Callable[..., Tensor]:
    def run(x: Tensor, axis: Int, *, exclusive: int = 0, reverse: int = 0) -> Tensor:
        axis = axis % max(x.ndim, 1)
        out = x.flip(axis) if reverse else x
        if exclusive:
            pads = [(1, -1) if i == axis else None for i in range(x.ndim)]
            out = out.pad(pads, value=start)
        out = function(out, axis).cast(x.dtype)
        return out.flip(axis) if reverse else out

    return run


op("CumSum", 11, 14)(_running(Tensor.cumsum, 0))
op("CumProd", 26)(_running(Tensor.cumprod, 1))
