"""Parallel loops: a kernel's loop divided evenly between the threads that run it, SPMD.

    for r < n  ->  for r from n*thread // threads to n*(thread + 1) // threads

`thread` and `threads` are variables of the kernel that the runtime gives. Output elements are divided, never
a sum, so results do not depend on how many threads there are. A kernel without these variables is for one
thread.
"""

from __future__ import annotations

from polygrad.codegen.loops import nest_of
from polygrad.dtype import dtypes
from polygrad.errors import OptError
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

THREAD, THREADS = "thread", "threads"


def parallelize(kernel: UOp, ranges: list[UOp], count: int) -> UOp:
    """One loop of each output nest divided between up to `count` threads. Raises OptError."""
    divided = {nest_of(kernel, r): r for r in ranges}
    if count < 2 or set(divided) != set(kernel.src) or len(ranges) != len(divided):
        raise OptError(f"expected one loop of every output nest ({len(kernel.src)}) and at least 2 threads")
    if any(v.arg.name == THREADS for v in kernel.variables()):
        raise OptError("expected a kernel whose loops are not divided yet")
    thread, threads = UOp.variable(THREAD, 0, count - 1), UOp.variable(THREADS, 1, count)
    nests = []
    for nest in kernel.src:
        r = divided[nest]
        size = r.src[0].arg
        first = (thread * size) // threads
        share = UOp.range(((thread + 1) * size) // threads - first, r.arg)
        loops = tuple(share if q is r else q for q in nest.src[1:])
        nests.append(UOp(Ops.END, dtypes.void, (nest.src[0].substitute({r: share + first}), *loops)))
    return UOp.sink(*nests)
