"""Loops bound to a grid of workgroups and to the invocations of a workgroup (TVM calls this `bind`).

    GLOBAL r0      for r0 < n      ->  workgroup r0 of the grid
    LOCAL r0 32    for r0 < n      ->  for r0.0 < ceil(n / 32): invocation r0.1 < 32;  r0 = 32*r0.0 + r0.1
    GROUP r2 64    sum over r2 < n ->  sum over invocations r2.1 < 64 of sum over r2.0 of x[64*r2.0 + r2.1]

There are no remainders at the edges, and no index is out of bounds. The last block of a LOCAL axis starts
early enough to be whole; where there may be less than a block, its indices stop at the last element. In both
cases stores are gated, so that an element is written by one invocation. In a GROUP the invocations' loops
differ by at most one round.

lower/bind_workgroups.py turns these axes into numbers of workgroups and invocations.
"""

from __future__ import annotations

from polygrad.codegen.opts.loops import nest_of, replace_loops, require_any_order, with_sums_over
from polygrad.codegen.opts.split import gated, overlaps, substituted
from polygrad.dtype import dtypes
from polygrad.errors import OptError
from polygrad.schedule.kernel_info import nest_info
from polygrad.uop.args import AxisKind
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.printer import axis_name
from polygrad.uop.shapes import sint_max
from polygrad.uop.symbolic import simplify


def bind_grid(kernel: UOp, r: UOp) -> UOp:
    """A loop over output elements as a dimension of the grid.

    RANGE(n, kind LOOP)   ->   RANGE(n, kind GLOBAL)
    """
    nest = nest_of(kernel, r)
    if r.arg.kind is not AxisKind.LOOP:
        raise OptError(f"expected a loop, got an axis of kind {r.arg.kind.name}")
    _check_written_once(kernel, nest, r)
    if any(q.op is Ops.RANGE and r in q.src[0].ranges for q in kernel.toposort()):
        raise OptError("expected a loop that no other loop's size depends on")
    return kernel.substitute({r: r.replace(arg=r.arg._replace(kind=AxisKind.GLOBAL))})


def _check_written_once(kernel: UOp, nest: UOp, r: UOp) -> None:
    """Raises OptError for a loop over tiles that overlap or may have overlapped: a thread may write an
    element again, but two invocations may not write one element."""
    if len(kernel.src) > 1:
        raise OptError("expected a kernel of one output nest: bind a loop before a partition")
    if overlaps(nest, r):
        raise OptError("expected a loop that writes each element once: bind it before it is tiled")


def _check_no_memory_inside(kernel: UOp, r: UOp) -> None:
    """Raises OptError for a loop inside of which memory is filled, as it has no place for each invocation."""
    if any(n.op is Ops.STAGE and r in n.ranges for n in kernel.toposort()):
        raise OptError(f"expected an axis that no memory is filled inside of, got {axis_name(r.arg.id)}")


def split_local(kernel: UOp, r: UOp, size: int) -> UOp:
    """A loop over output elements as one over blocks, and the invocations of a workgroup.

    RANGE r < n   ->   32*r.0 + r.1, r.0 < ceil(n / 32) of the kind of r, r.1 < 32 of the kind LOCAL
    """
    nest = nest_of(kernel, r)
    if r.arg.kind is AxisKind.LOCAL:
        raise OptError("expected a loop or an axis of the grid, got one of kind LOCAL")
    require_any_order(r)
    _check_no_memory_inside(kernel, r)
    if r.arg.kind is AxisKind.LOOP:
        _check_written_once(kernel, nest, r)
    count = r.src[0]
    if size < 2 or (count.is_const and size > count.arg):
        raise OptError(f"expected 2 to {sint_max(count)} invocations, got {size}")
    even = count.is_const and count.arg % size == 0
    if not even and nest_info(nest).is_in_place:
        whole = count.arg if count.is_const else "a size that varies"
        raise OptError(f"expected a number that divides {whole}, as the kernel works in place, got {size}")
    inner = UOp.range(size, r.arg.child(1, AxisKind.LOCAL))
    loops, value, gate = [inner], inner, None
    if not count.is_const or count.arg > size:
        blocks = UOp.range(simplify((count + (size - 1)) // size), r.arg.child(0))
        loops, first = [blocks, inner], blocks * size
        if even:
            value = first + inner
        elif count.is_const:
            last = UOp.index(count.arg - size)
            value = (first < last).where(first, last) + inner
            gate = value >= first
        else:
            gate = first + inner < count
            value = -(-(first + inner)).maximum(1 - count)
    store = substituted(nest.src[0], {r: value})
    if gate is not None:
        store = gated(store, gate)
    ranges = [x for q in nest.src[1:] for x in (loops if q is r else [q])]
    return replace_loops(kernel, nest, UOp(Ops.END, dtypes.void, (store, *ranges)))


def group(kernel: UOp, r: UOp, size: int) -> UOp:
    """A reduced loop shared by `size` invocations.

    REDUCE(f(r), r < n)   ->   REDUCE(f(64*r.0 + r.1), r.0 < ceil((n - r.1) / 64), r.1 < 64 of the kind LOCAL)
    """
    count = r.src[0]
    if r.arg.kind is not AxisKind.REDUCE:
        raise OptError(f"expected a reduced loop, got an axis of kind {r.arg.kind.name}")
    if size < 2 or size & (size - 1) or size > sint_max(count):
        raise OptError(f"expected a power of 2 from 2 to {sint_max(count)}, got {size}")
    _check_no_memory_inside(kernel, r)
    inner = UOp.range(size, r.arg.child(1, AxisKind.LOCAL))
    if count.is_const and count.arg == size:
        return with_sums_over(kernel, r, (inner,), inner)
    even = count.is_const and count.arg % size == 0
    rounds = UOp.index(count.arg // size) if even else simplify((count - inner + (size - 1)) // size)
    outer = UOp.range(rounds, r.arg.child(0))
    return with_sums_over(kernel, r, (outer, inner), outer * size + inner)
