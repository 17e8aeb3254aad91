"""Parallel loops: a large kernel's outermost loop split evenly between the threads that run it, SPMD.

    for r < n  ->  for r from n*thread // threads to n*(thread + 1) // threads

`thread` and `threads` are variables of the kernel that the runtime gives. Output elements are divided, never
a sum, so results do not depend on how many threads there are. A kernel without these variables is for one
thread.
"""

from __future__ import annotations

from polygrad.codegen.stage import LOCAL_SLOT
from polygrad.codegen.target import Target
from polygrad.dtype import dtypes
from polygrad.uop.node import Axis, Param, UOp
from polygrad.uop.ops import GroupOp, Ops
from polygrad.uop.scopes import Scopes, scopes

THREAD, THREADS = "thread", "threads"

# Operations (SIMD ones count once) that outweigh threads. Those that are awake are worth it from 5 µs on, to
# wake some takes 50 µs: this is 15 to 60 µs of one thread's work.
_WORTH = 5 << 14
_INSTRUCTIONS = {Ops.EXP2: 8, Ops.LOG2: 8, Ops.SIN: 24, Ops.POW: 32}


def parallelize(sink: UOp, target: Target) -> UOp:
    """Split an optimised kernel between threads, if the target has them and the kernel is worth it."""
    if target.threads < 2 or not all(n.op is Ops.END for n in sink.src):
        return sink
    order = sink.toposort()
    scope = scopes(order)
    if _operations(order, scope) < _WORTH:
        return sink
    outermost = [_divided(nest, target.threads) for nest in sink.src]
    if any(r is None for r in outermost):
        return sink
    thread = UOp.variable(THREAD, 0, target.threads - 1)
    threads = UOp.variable(THREADS, 1, target.threads)
    nests = []
    for nest, r in zip(sink.src, outermost, strict=True):
        assert r is not None
        size = r.src[0].arg
        first = (thread * size) // threads
        count = ((thread + 1) * size) // threads - first
        mine = UOp(Ops.RANGE, dtypes.index, (count,), Axis(r.arg.id, r.arg.kind))
        loops = tuple(mine if q is r else q for q in nest.src[1:])
        store = nest.src[0].substitute({r: mine + first})
        nests.append(UOp(Ops.END, dtypes.void, (store, *loops)))
    return _own_memory(UOp.sink(*nests), thread, target.threads)


def _divided(nest: UOp, threads: int) -> UOp | None:
    """The loop to divide: the outermost that gives every thread a share, of those that sums are inside of if
    there are any (every thread would compute all of the others' sums)."""
    order = nest.toposort()
    scope = scopes(order)
    around = 0
    for n in order:
        if n.op is Ops.REDUCE:
            around |= scope.mask[n]
    loops = sorted(
        (r for r in nest.src[1:] if r.src[0].is_const),
        key=lambda r: (not scope.bit[r] & around, int(r.arg.id)),
    )
    fair = [r for r in loops if r.src[0].arg >= 4 * threads or r.src[0].arg % threads == 0]
    return fair[0] if fair else next((r for r in loops if r.src[0].arg >= threads), None)


def _operations(order: list[UOp], scope: Scopes) -> int:
    total = 0
    for node in order:
        if node.op not in GroupOp.ALU and node.op not in (Ops.LOAD, Ops.STORE):
            continue
        runs, mask = _INSTRUCTIONS.get(node.op, 1), scope.mask[node]
        for i, r in enumerate(scope.ranges):
            if mask >> i & 1 and r.arg.kind.name != "LANE":
                runs *= r.src[0].vmax
        total += runs
    return total


def _own_memory(sink: UOp, thread: UOp, threads: int) -> UOp:
    """The kernel's own buffers: a part for each thread."""
    parts: dict[UOp, UOp] = {}
    for node in sink.toposort():
        if node.op is Ops.PARAM and node.arg.slot >= LOCAL_SLOT:
            parts[node] = UOp(Ops.PARAM, node.dtype, (), Param(node.arg.slot, node.arg.size * threads))
    if not parts:
        return sink
    new: dict[UOp, UOp] = dict(parts)
    for node in sink.toposort():
        if node in new:
            continue
        src = tuple([new[s] for s in node.src])
        if node.op is Ops.INDEX:
            pointer = node.src[0].src[0] if node.src[0].op is Ops.AFTER else node.src[0]
            if pointer in parts:
                src = (src[0], src[1] + thread * pointer.arg.size, *src[2:])
        new[node] = node if src == node.src else UOp(node.op, node.dtype, src, node.arg)
    return new[sink]
