"""Parallel loops: a kernel's loop divided between the threads that run it.

    for r < n  ->  for r from n*part // parts to n*(part + 1) // parts

`part` and `parts` are variables of the kernel that the runtime gives. Each thread calls the kernel for the
next part as soon as it is free, so a thread that is held up delays only one part. Output elements are
divided, never a sum, so results depend neither on the number of parts nor on the threads that compute them.

Code outside of the divided loop (memory that is filled for all of it, a sum) runs again in each part. A
kernel with such code is divided by `thread` and `threads`, into one part for each thread.

A kernel without these variables is for one thread.
"""

from __future__ import annotations

from polygrad.codegen.opts.loops import nest_of, require_any_order
from polygrad.dtype import dtypes
from polygrad.errors import OptError
from polygrad.helpers import PART, PARTS, PARTS_PER_THREAD, THREAD, THREAD_VARIABLES, THREADS
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

_INDEX_LIMIT = 1 << 31  # an index of every target is below it


def parallelize(kernel: UOp, ranges: list[UOp], count: int) -> UOp:
    """Loops of different output nests, each divided between up to `count` threads; the first part computes
    all of the other nests. Raises OptError.

    END(store, r < n)   ->   END(store at n*part // parts + r, r < n*(part + 1) // parts - n*part // parts)
    """
    require_any_order(*ranges)
    by_nest = {nest_of(kernel, r): r for r in ranges}
    if count < 2 or not ranges or len(ranges) != len(by_nest) or any(n.op is not Ops.END for n in kernel.src):
        raise OptError("expected loops of different output nests, one at least, and at least 2 threads")
    if any(v.arg.name in THREAD_VARIABLES for v in kernel.variables()):
        raise OptError("expected a kernel whose loops are not divided yet")
    if all(_is_outermost(nest, r) for nest, r in by_nest.items()):
        max_parts = PARTS_PER_THREAD * count
        part, parts = UOp.variable(PART, 0, max_parts - 1), UOp.variable(PARTS, 1, max_parts)
    else:
        part, parts = UOp.variable(THREAD, 0, count - 1), UOp.variable(THREADS, 1, count)
    nests = []
    is_first = (part < 1).cast(dtypes.index)
    for nest in kernel.src:
        r = by_nest.get(nest)
        if r is None:
            r = nest.src[1]
            share = UOp.range(r.src[0] * is_first, r.arg)
            at = share
        else:
            first = _first_round(part, parts, r.src[0].arg)
            share = UOp.range(_first_round(part + 1, parts, r.src[0].arg) - first, r.arg)
            at = share + first
        loops = tuple(share if q is r else q for q in nest.src[1:])
        nests.append(UOp(Ops.END, dtypes.void, (nest.src[0].substitute({r: at}), *loops)))
    return UOp.sink(*nests)


def _first_round(part: UOp, parts: UOp, size: int) -> UOp:
    """part * size // parts, without a product that reaches _INDEX_LIMIT."""
    if parts.arg.hi * size < _INDEX_LIMIT:
        return (part * size) // parts
    whole, rest = UOp.index(size) // parts, UOp.index(size) % parts
    return part * whole + (part * rest) // parts


def _is_outermost(nest: UOp, r: UOp) -> bool:
    """Whether all memory that a nest fills and all its sums are inside of its loop `r`."""
    return all(r in n.ranges for n in nest.toposort() if n.op in (Ops.STAGE, Ops.REDUCE))


def memory_thread(kernel: UOp) -> UOp | None:
    """The number of the thread, whose own memory a parallel kernel uses; None for one thread."""
    largest = {v.arg.name: v.arg.hi for v in kernel.variables()}
    if PARTS in largest:
        return UOp.variable(THREAD, 0, largest[PARTS] // PARTS_PER_THREAD - 1)
    return UOp.variable(THREAD, 0, largest[THREADS] - 1) if THREADS in largest else None


def threads_of(kernel: UOp) -> int | None:
    """The number of threads that may run a kernel; None when it is not parallel."""
    thread = memory_thread(kernel)
    return None if thread is None else thread.arg.hi + 1
