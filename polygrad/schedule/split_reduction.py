"""Long reductions to few elements, in two stages (TVM calls this rfactor).

    sum(x[i] for i < n)  ->  sum(sum(x[p*n/parts + i] for i < n/parts) for p < parts)

The inner sums are kernels' output elements, which threads divide; to a scalar there would be none. In a
matrix product of long sums, each of the first stage is short enough for what it reads again and again to stay
in the cache (BLAS libraries block along k for that). How many parts there are depends on the sizes alone, so
the result does not depend on the number of threads, by the bit.
"""

from __future__ import annotations

from polygrad.helpers import ceildiv, prod
from polygrad.schedule.split_scan import SideBySide, split_scan
from polygrad.uop.args import Reduction
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops

_MIN_REDUCED = 1 << 17  # elements that one sum takes in
_MAX_OUTPUTS = 16  # with more of them there is enough to divide
_MIN_PARTS, _PARTS, _MAX_PARTS = 8, 64, 256
_LONG_PART = 1 << 14  # elements: with more of them in each there are more parts than usual
_MIN_TERMS, _MAX_TERMS = 6 << 10, 4 << 10  # of a product's sums: from so many on, parts of no more
_MIN_REUSE = 16  # how often a product reads each element of both operands
_MAX_STORED = 1 << 22  # elements of its first stage


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
    if outputs <= _MAX_OUTPUTS and terms >= _MIN_REDUCED:
        most = min(max(_PARTS, terms // _LONG_PART), _MAX_PARTS)
        wanted = range(most, _MIN_PARTS - 1, -1)
    elif node.arg.op is Ops.ADD and terms >= _MIN_TERMS and is_product(node.src[0]):
        wanted = range(ceildiv(terms, _MAX_TERMS), _MAX_STORED // outputs + 1)
    else:
        return None
    for axis in axes:
        parts = next((p for p in wanted if p <= shape[axis] and shape[axis] % p == 0), None)
        if parts is not None:
            return None if _needs_no_loop(node) else (axis, parts)
    return None


def is_product(node: UOp) -> bool:
    """A MUL of two operands that are both broadcast: of matrices, not of a matrix and a vector."""
    return node.op is Ops.MUL and all(
        prod(node.shape) >= _MIN_REUSE * prod(_moved(s).shape) for s in node.src if not s.is_const
    )


def _moved(node: UOp) -> UOp:
    """What a chain of movement ops moves."""
    while node.op in GroupOp.Movement:
        node = node.src[0]
    return node


def _needs_no_loop(node: UOp) -> bool:
    """Whether a reduction is over an ARANGE: but the maximum of positions that data picks has its loop."""
    inside = node.toposort(lambda n: n.op is not Ops.REDUCE_AXIS or n is node)
    picked = node.arg.op is Ops.MAX and any(n.op is Ops.WHERE and _is_data(n.src[0]) for n in inside)
    return any(n.op is Ops.ARANGE for n in inside) and not picked


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
