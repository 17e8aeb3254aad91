"""Rare terms: the update of a maximum of positions where a value is found goes behind a branch that is taken
when a tile of terms has one.

    reg = MAX(reg, (x == m) | (x != x) ? v : 0)  ->  loop (is any x of the tile not less than m?) times:
                                                         reg = MAX(reg, (x == m) | (x != x) ? v : 0)

m is the same for all terms, such as the maximum of a row: few terms have the value, and all others take one
comparison. Where m is NaN, the branch is always taken. No v is negative, so the register starts with 0.

Runs on kernels whose reductions are registers, before the tile is taken out of the indices.
"""

from __future__ import annotations

from polygrad.codegen.opts import cost
from polygrad.codegen.opts.tile import is_tile
from polygrad.dtype import dtypes
from polygrad.helpers import prod
from polygrad.uop.args import Axis, AxisKind
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


def branch_rare_terms(kernel: UOp) -> UOp:
    """The kernel in which maxima of positions where a value is found update their registers in branches."""
    order = kernel.toposort()
    axis = 1 + max((n.arg.id[0] for n in order if n.op is Ops.RANGE), default=-1)
    new: dict[UOp, UOp] = {}
    for node in order:
        new[node] = rewritten = node.over(tuple([new[s] for s in node.src]))
        if node.op is Ops.END and (condition := _rare_condition(rewritten)) is not None:
            new[node] = _branched(rewritten, condition, Axis((axis,), AxisKind.LOOP))
            axis += 1
    return new[kernel]


def _branched(end: UOp, condition: UOp, axis: Axis) -> UOp:
    """A loop whose register is updated where a condition holds anywhere in the tile."""
    store, *loops = end.src
    total, term = store.src[1].src
    tile = sorted((r for r in condition.ranges if is_tile(r)), key=lambda r: r.arg)
    holds = UOp(Ops.REDUCE, dtypes.bool, (condition, *tile), Ops.MAX) if tile else condition
    branch = UOp(Ops.RANGE, dtypes.index, (holds.cast(dtypes.index),), axis)
    index = total.src[0]
    register, *before = index.src[0].src
    before = [_zeroed(n) if n.op is Ops.STORE else n for n in before]
    pointer = UOp(Ops.AFTER, index.dtype, (register, *before, branch))
    value = UOp(Ops.LOAD, total.dtype, (UOp(Ops.INDEX, index.dtype, (pointer, *index.src[1:])),))
    update = UOp(Ops.STORE, dtypes.void, (store.src[0], UOp(Ops.MAX, total.dtype, (value, term))))
    return UOp(Ops.END, dtypes.void, (update, *loops, branch))


def _zeroed(start: UOp) -> UOp:
    return start.over((start.src[0], UOp.const(start.src[1].dtype, 0)))


def _rare_condition(end: UOp) -> UOp | None:
    """A condition that holds wherever the term of a loop is not 0, if it seldom does; else None."""
    store, *loops = end.src
    if store.op is not Ops.STORE or store.src[1].op is not Ops.MAX or not store.src[1].dtype.is_int:
        return None
    total, term = store.src[1].src
    if total.op is not Ops.LOAD or term.op is not Ops.WHERE or any(not r.src[0].is_const for r in loops):
        return None
    pointer = total.src[0].src[0]
    found, position, otherwise = term.src
    if pointer.op is not Ops.AFTER or not (otherwise.is_const and otherwise.arg == 0) or position.vmin < 0:
        return None
    if found.op is not Ops.OR or found.src[0].op is not Ops.CMPEQ:
        return None
    x, wanted = found.src[0].src
    if found.src[1].op is not Ops.CMPNE or found.src[1].src != (x, x) or not wanted.ranges.isdisjoint(loops):
        return None
    tile = [r for r in found.ranges if is_tile(r)]
    outputs = prod(r.src[0].arg for r in tile if r in wanted.ranges)
    if prod(r.src[0].arg for r in loops) < cost.MIN_SEARCH_ROUNDS * outputs:
        return None
    return (x < wanted).logical_not()
