"""Scatter: a sum over all inputs that picks those of one output, turned round.

    for v: out[v, c] = sum(index[i] == v ? x[i, c] : 0 for i)

    ->  for v: out[v, c] = 0;   for i, in order: out[index[i], c] += x[i, c]

The gradient of a gather is such a sum, and so are histograms and sums of segments. The additions go in the
order of `i`, so the result is the same by the bit, whichever loops over `c` threads divide.
"""

from __future__ import annotations

from typing import NamedTuple

from polygrad.codegen import cost
from polygrad.codegen.reductions import equality_with, factors, identity_element
from polygrad.dtype import dtypes
from polygrad.helpers import prod
from polygrad.schedule.index_maps import flat_index
from polygrad.schedule.kernels import KernelCall
from polygrad.uop.args import AxisKind, Param
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.path_conditions import conjuncts
from polygrad.uop.rewrite import graph_rewrite
from polygrad.uop.symbolic import simplify, symbolic


def scatter(calls: list[KernelCall]) -> list[KernelCall]:
    """The kernels, with what fills and what adds to memory in the place of a reduction over one-hots."""
    out: list[KernelCall] = []
    found: dict[tuple[UOp, int], _Scatter | None] = {}
    for call in calls:
        key = call.ast, len(call.args)
        if key not in found:
            found[key] = _scatter(call)
        made = found[key]
        if made is None:
            out.append(call)
            continue
        memory = call.args[0]
        if made.rest is not None:
            memory = UOp.buffer_of(Param(-1, made.size), made.add.src[0].src[0].src[1].dtype)
        out.append(KernelCall(made.fill, (memory,)))
        out.append(KernelCall(made.add, (memory, *call.args[1:])))
        if made.rest is not None:
            out.append(KernelCall(made.rest, (*call.args, memory)))
    return out


class _Scatter(NamedTuple):
    """The kernel that fills memory of `size` elements, the one that adds to it; and what then reads it for
    the kernel's output, unless that is the memory."""

    fill: UOp
    add: UOp
    size: int
    rest: UOp | None


def _scatter(call: KernelCall) -> _Scatter | None:
    if call.ast.arg is not None or len(call.ast.src) != 1 or call.ast.src[0].op is not Ops.END:
        return None
    if not any(n.op in (Ops.CMPEQ, Ops.CMPNE) for n in call.ast.toposort()):
        return None
    ast = graph_rewrite(call.ast, symbolic)
    sums = [n for n in ast.toposort() if n.op is Ops.REDUCE]
    if len(sums) != 1 or any(not r.src[0].is_const for r in ast.toposort() if r.op is Ops.RANGE):
        return None
    (total,) = sums
    picked = _picked(total)
    if picked is None:
        return None
    positions, value = picked
    if cost.rounds(positions) < cost.MIN_SCATTERED or cost.rounds(total.src[1:]) < cost.MIN_SCATTERED:
        return None
    loops = sorted(total.ranges, key=lambda r: r.arg)
    store = ast.src[0].src[0]
    whole = store.src[1] is total and set(ast.src[0].src[1:]) == set(loops)
    if whole:
        memory, index = store.src[0].src[:2]
        if len(store.src[0].src) > 2 or any(
            n.op is Ops.LOAD and n.src[0].src[0] is memory for n in ast.toposort()
        ):
            return None
    else:
        sizes = tuple(r.src[0].arg for r in loops)
        memory, index = (
            UOp(Ops.PARAM, total.dtype, (), Param(0, int(prod(sizes)))),
            flat_index(sizes, tuple(loops)),
        )
    fill = _kernel(memory, index, identity_element(total.arg, total.dtype), loops)
    add = _adding(total, positions, value, memory, index, loops)
    if add is None:
        return None
    rest = None
    if not whole:
        slot = len(call.args)
        at = UOp(Ops.INDEX, total.dtype, (memory.replace(arg=memory.arg._replace(slot=slot)), index))
        rest = ast.substitute({total: UOp(Ops.LOAD, total.dtype, (at,))})
    return _Scatter(fill, add, memory.arg.size, rest)


def _picked(total: UOp) -> tuple[dict[UOp, UOp], UOp] | None:
    """Of a reduction over one-hots: which element of each output loop a term is for, and the term."""
    value = total.src[0]
    conditions: list[UOp] = []
    if total.arg is Ops.ADD:
        terms, conditions = factors(value)
        value = UOp.const(total.dtype, 1) if not terms else terms[0]
        for t in terms[1:]:
            value = value * t
    elif total.arg is Ops.MAX:
        nothing = identity_element(Ops.MAX, total.dtype)
        while value.op is Ops.WHERE and value.src[2] is nothing:
            conditions += conjuncts(value.src[0])
            value = value.src[1]
    positions: dict[UOp, UOp] = {}
    for condition in list(conditions):
        for r in sorted(condition.ranges & total.ranges, key=lambda r: r.arg):
            element = equality_with(condition, r)
            if element is not None and r not in positions and not element.ranges.isdisjoint(total.src[1:]):
                positions[r] = element
                conditions.remove(condition)
                break
    others = (value, *conditions, *positions.values())
    if not positions or any(not n.ranges.isdisjoint(positions) for n in others):
        return None
    for condition in conditions:
        value = condition.where(value, identity_element(total.arg, total.dtype))
    return positions, value


def _adding(
    total: UOp, positions: dict[UOp, UOp], value: UOp, memory: UOp, index: UOp, loops: list[UOp]
) -> UOp | None:
    """The kernel that combines each term with the element that it is for."""
    named = frozenset().union(*[element.ranges for element in positions.values()])
    inner = tuple(r for r in total.src[1:] if r not in named)  # many terms for one element
    if inner:
        value = UOp(Ops.REDUCE, total.dtype, (value, *inner), total.arg)
    outer = [r for r in total.src[1:] if r in named]
    inside: UOp | None = None
    at: dict[UOp, UOp] = {}
    for r, element in positions.items():
        position = element.cast(dtypes.index)
        valid = (position < 0).logical_not() & (position < r.src[0])
        inside = valid if inside is None else inside & valid
        at[r] = valid.where(position, UOp.index(0))
    assert inside is not None
    inside = simplify(inside)
    value = inside.where(value, identity_element(total.arg, total.dtype))
    ordered = {r: r.replace(arg=r.arg._replace(kind=AxisKind.SCAN)) for r in outer}
    pointer = UOp(Ops.INDEX, total.dtype, (memory, simplify(index.substitute(at))))
    previous = UOp(Ops.LOAD, total.dtype, (pointer,))
    store = UOp(Ops.STORE, dtypes.void, (pointer, UOp(total.arg, total.dtype, (previous, value))))
    nest = UOp(Ops.END, dtypes.void, (store, *outer, *(r for r in loops if r not in positions)))
    return UOp.sink(nest.substitute(ordered))


def _kernel(memory: UOp, index: UOp, value: UOp, loops: list[UOp]) -> UOp:
    store = UOp(Ops.STORE, dtypes.void, (UOp(Ops.INDEX, memory.dtype, (memory, index)), value))
    return UOp.sink(UOp(Ops.END, dtypes.void, (store, *loops)))
