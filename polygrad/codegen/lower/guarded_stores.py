"""Guarded stores in order go behind a branch, instead of storing the old value again.

    for i, in order: p[at(i)] = inside(i) ? value : p[at(i)]

    ->  for i, in order: loop (inside(i)?) times: p[at(i)] = value

Kernels that write or accumulate at positions (`codegen/kernels/index_put.py`, `scatter.py`) have this form.
Nearly all positions are inside, so processors predict the branch. Without it each store would wait for a load
of the same place. A loop of zero or one rounds is a branch that linear kernels have already.
"""

from __future__ import annotations

import functools

from polygrad.codegen.opts.tile import is_tile
from polygrad.dtype import dtypes
from polygrad.uop.args import Axis, AxisKind
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.path_conditions import conjuncts

_UNSIGNED = {dtypes.int32: dtypes.uint32, dtypes.int64: dtypes.uint64}


def branch_guarded_stores(kernel: UOp) -> UOp:
    """The kernel with a branch in every nest with loops in order whose store keeps the old value unless a
    condition of outer loops holds. `branch`: RANGE(c).

    END(STORE(p, c ? x : LOAD(p)), outer, inner)  ->  END(STORE(AFTER(p, branch), x), outer, branch, inner)
    """
    axis = 1 + max((n.arg.id[0] for n in kernel.toposort() if n.op is Ops.RANGE), default=-1)
    return kernel.replace(
        src=tuple([_branch(nest, Axis((axis + i,), AxisKind.SCAN)) for i, nest in enumerate(kernel.src)])
    )


def _branch(nest: UOp, axis: Axis) -> UOp:
    """`axis`: of the branch."""
    store, loops = nest.src[0], nest.src[1:]
    if nest.op is not Ops.END or store.op is not Ops.STORE:
        return nest
    (place, value) = store.src
    if value.op is not Ops.WHERE or not any(r.arg.kind is AxisKind.SCAN for r in loops):
        return nest
    condition, new, old = value.src
    if old.op is not Ops.LOAD or old.src != (place,) or len(place.src) != 2:
        return nest
    around = [i for i, r in enumerate(loops) if r in condition.ranges]
    if not around or any(is_tile(r) or r not in loops for r in condition.ranges):
        return nest
    inner = around[-1] + 1
    branch = UOp(Ops.RANGE, dtypes.index, (_merge_bounds(condition).cast(dtypes.index),), axis)
    memory = UOp(Ops.AFTER, place.src[0].dtype, (place.src[0], branch))  # so that the store is in its loop
    guarded_place = place.replace(src=(memory, _under(place.src[1], condition)))
    load = old.replace(src=(guarded_place,))
    new_store = UOp(Ops.STORE, dtypes.void, (guarded_place, new.substitute({old: load})))
    return UOp(Ops.END, dtypes.void, (new_store, *loops[:inner], branch, *loops[inner:]))


def _under(index: UOp, condition: UOp) -> UOp:
    """An index where a condition holds: without choices that it decides."""
    known_conditions = set(conjuncts(condition))
    choices = [
        n for n in index.toposort() if n.op is Ops.WHERE and known_conditions.issuperset(conjuncts(n.src[0]))
    ]
    return index.substitute({n: n.src[1] for n in choices})


def _merge_bounds(condition: UOp) -> UOp:
    """A condition with one comparison for both bounds of a position.

    (-1 < x) & (x < n)  ->  unsigned(x) < n
    """
    parts = conjuncts(condition)
    for low in parts:
        if low.op is not Ops.CMPLT or not low.src[0].is_const or low.src[0].arg != -1:
            continue
        x = low.src[1]
        for high in parts:
            if high.op is Ops.CMPLT and high.src[0] is x and high.src[1].is_const and x.dtype in _UNSIGNED:
                unsigned = _UNSIGNED[x.dtype]
                both = x.bitcast(unsigned) < UOp.const(unsigned, high.src[1].arg)
                others = [p for p in parts if p is not low and p is not high]
                return functools.reduce(lambda a, b: a & b, others, both)
    return condition
