"""Long reductions to few elements, in two stages (TVM calls this rfactor).

    sum(x[i] for i < n)  ->  sum(sum(x[p*n/parts + i] for i < n/parts) for p < parts)

The inner sums are kernels' output elements, which threads divide; to a scalar there would be none. In a
matrix product of long sums, each of the first stage is short enough for what it reads again and again to stay
in the cache (BLAS libraries block along k for that). How many parts there are depends on the sizes alone, so
the result does not depend on the number of threads, by the bit.
"""

from __future__ import annotations

from polygrad.helpers import ceildiv, prod
from polygrad.schedule import cost
from polygrad.schedule.products import is_product
from polygrad.schedule.split_scan import SideBySide, split_scan
from polygrad.uop.args import Reduction
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


def split_reductions(sink: UOp, scans: SideBySide) -> UOp:
    """The graph with its long reductions and scans in two stages, the results of the first of which are
    stored. `scans`: what the machine wants of these."""
    new: dict[UOp, UOp] = {}
    for node in sink.toposort():
        src = tuple([new[s] for s in node.src])
        changed = node if src == node.src else UOp(node.op, node.dtype, src, node.arg)
        parts = parts_of(node) if node.op is Ops.REDUCE_AXIS else None
        new[node] = changed if parts is None else _split(changed, *parts)
        if node.op is Ops.SCAN_AXIS:
            new[node] = split_scan(changed, scans) or changed
    return new[sink]


def parts_of(node: UOp) -> tuple[int, int] | None:
    """The axis of a REDUCE_AXIS to split and into how many parts; None to leave it as it is.

    What it reduces has to be stored, or computed from what is: an ARANGE, and sums over it, need no loop.
    """
    shape, axes = node.src[0].shape, node.arg.axes
    if not all(isinstance(n, int) for n in shape):
        return None
    outputs, terms = prod(node.shape), prod(shape[a] for a in axes)
    if outputs <= cost.MAX_OUTPUTS and terms >= cost.MIN_REDUCED:
        max_parts = min(max(cost.PARTS, terms // cost.LONG_PART), cost.MAX_PARTS)
        counts = range(max_parts, cost.MIN_PARTS - 1, -1)
    elif node.arg.op is Ops.ADD and terms >= cost.MIN_SPLIT_TERMS and is_product(node, cost.MIN_SPLIT_REUSE):
        counts = range(ceildiv(terms, cost.MAX_PART_TERMS), cost.MAX_STORED // outputs + 1)
    else:
        return None
    for axis in axes:
        parts = next((p for p in counts if p <= shape[axis] and shape[axis] % p == 0), None)
        if parts is not None:
            return None if _needs_no_loop(node) else (axis, parts)
    return None


def _needs_no_loop(node: UOp) -> bool:
    """Whether a reduction is over an ARANGE: but the maximum of positions that data picks has its loop."""
    order = node.toposort(lambda n: n.op is not Ops.REDUCE_AXIS or n is node)
    picked = node.arg.op is Ops.MAX and any(n.op is Ops.WHERE and _is_data(n.src[0]) for n in order)
    return any(n.op is Ops.ARANGE for n in order) and not picked


def _is_data(condition: UOp) -> bool:
    """Whether a condition depends on elements of memory and on no position."""
    order = condition.toposort()
    return any(n.op is Ops.BUFFER for n in order) and not any(n.op is Ops.ARANGE for n in order)


def _split(node: UOp, axis: int, parts: int) -> UOp:
    x, (op, axes) = node.src[0], node.arg
    rows = x.reshape((*x.shape[:axis], parts, x.shape[axis] // parts, *x.shape[axis + 1 :]))
    inner = tuple(a + (a >= axis) for a in axes)
    first = UOp(Ops.REDUCE_AXIS, node.dtype, (rows,), Reduction(op, inner))
    stored = first.clone()
    return UOp(Ops.REDUCE_AXIS, node.dtype, (stored,), Reduction(op, (axis,))).reshape(node.shape)
