"""Shapes of the nodes of a tensor graph, and broadcasting."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from polygrad.errors import InternalError, ShapeError
from polygrad.helpers import prod
from polygrad.uop.ops import GroupOp, Ops
from polygrad.uop.sizes import Sint as Sint
from polygrad.uop.sizes import canonical_shape

Shape = tuple[Sint, ...]

SHAPE_OF_FIRST = GroupOp.Elementwise | {
    Ops.CONTIGUOUS, Ops.DETACH, Ops.NOOP, Ops.COPY, Ops.ASSIGN, Ops.AFTER, Ops.BIND
}  # fmt: skip
_SHAPE_IN_ARG = frozenset({Ops.RESHAPE, Ops.EXPAND})


def shape_of(node: Any) -> Shape:
    """The shape of a node, from those of its sources."""
    op = node.op
    if op is Ops.NOOP:
        return node.src[0]._shape
    if op in SHAPE_OF_FIRST:
        for s in node.src:
            if s._shape:  # a scalar constant goes with any shape
                return s._shape
        return ()
    if op in _SHAPE_IN_ARG:
        return node.arg
    if op in (Ops.CONST, Ops.DEFINE_VAR):
        return ()
    if op is Ops.BUFFER or op is Ops.PARAM:
        return (node.arg.size,)
    if op is Ops.ARANGE:
        return canonical_shape((node.arg,))
    if not node.src:
        raise InternalError(f"shape of {op}: kernel nodes have no shape")
    if op is Ops.FOR:
        return node.src[node.arg.result].shape  # type: ignore[no-any-return]
    inner: Shape = node.src[0]._shape
    if op is Ops.PERMUTE:
        return tuple(inner[a] for a in node.arg)
    if op is Ops.PAD:
        return canonical_shape(tuple([lo + n + hi for n, (lo, hi) in zip(inner, node.arg, strict=True)]))
    if op is Ops.SHRINK:
        return canonical_shape(tuple([hi - lo for lo, hi in node.arg]))
    if op is Ops.FLIP or op is Ops.SCAN_AXIS:
        return inner
    if op is Ops.SHEAR:
        return tuple([node.arg.size if i == node.arg.axis else n for i, n in enumerate(inner)])
    if op is Ops.REDUCE_AXIS:
        return tuple([1 if i in node.arg.axes else n for i, n in enumerate(inner)])
    raise InternalError(f"shape of {op}: kernel nodes have no shape")


def _broadcast_two(a: Shape, b: Shape) -> Shape | None:
    """The common shape of two shapes; None where there is none."""
    if len(a) < len(b):
        a, b = b, a
    out = list(a)
    for i, n in enumerate(b, len(a) - len(b)):
        m = out[i]
        if m is not n and n != 1 and m != n:
            if m != 1:
                return None
            out[i] = n
    return tuple(out)


def broadcast_shape(shapes: Iterable[Shape]) -> Shape:
    """The common shape that `shapes` expand to, aligned at the right. Raises ShapeError."""
    rows = list(shapes)
    if len(rows) == 2 and (both := _broadcast_two(*rows)) is not None:
        return both
    ndim = max((len(s) for s in rows), default=0)
    out: list[Sint] = []
    for column in zip(*((1,) * (ndim - len(s)) + tuple(s) for s in rows), strict=True):
        sizes = {n for n in column if not (isinstance(n, int) and n == 1)}
        if len(sizes) > 1:
            raise ShapeError(
                f"broadcast: expected sizes that are equal or 1, got shapes {', '.join(map(str, rows))}: "
                f"{' and '.join(sorted(map(str, sizes)))}"
            )
        out.append(sizes.pop() if sizes else 1)
    return tuple(out)


def sint_max(x: Sint) -> int:
    """The greatest value a size can take."""
    return x if isinstance(x, int) else int(x.vmax)


def max_numel(shape: Shape) -> int:
    """The greatest number of elements that a shape can have."""
    return int(prod(sint_max(n) for n in shape))
