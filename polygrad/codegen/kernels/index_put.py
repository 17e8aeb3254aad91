"""Writes at positions (torch's `index_put_`): a kernel that goes through all elements for the few it changes.

    for v, c: out[v, c] = (last i with index[i] == v) ? x[i, c] : out[v, c]

    ->  for i, in order, for c: out[index[i], c] = x[i, c]

`t[index] = x` is such a kernel, `scatter` and `index_fill` are, and so is a write at one position that is a
value, as of a cache. What keeps the other elements' values from elsewhere copies them first. The writes go in
the order of `i`, so the last one stays, whichever loops over `c` threads divide. A write to a part of memory
(`t[2:5] = x`) after one at positions is a kernel of its own, too, for that part.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from polygrad.codegen.kernels.accumulation import is_compared, moved_to, ordered
from polygrad.codegen.lower.reductions import equality_with
from polygrad.codegen.target import Target
from polygrad.dtype import dtypes
from polygrad.schedule.kernel_info import kernel_info
from polygrad.schedule.kernels import KernelCall
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.path_conditions import bounds_under, conjuncts
from polygrad.uop.rewrite import graph_rewrite
from polygrad.uop.symbolic import simplify, symbolic


def index_put(calls: list[KernelCall], target: Target) -> list[KernelCall]:
    """The kernels, those of writes at positions as loops over the writers."""
    made = {ast: _kernels(ast, target) for ast in {call.ast for call in calls}}
    return [
        replace(call, ast=ast) if ast is not call.ast else call for call in calls for ast in made[call.ast]
    ]


class _Writes(NamedTuple):
    """For each round of the loops `writers`, in order: `value` is written where `conditions` hold."""

    writers: tuple[UOp, ...]
    conditions: list[UOp]
    value: UOp


def _kernels(ast: UOp, target: Target) -> tuple[UOp, ...]:
    """What does a kernel's work: itself, if it writes at no positions."""
    info = kernel_info(ast)
    if info.only_nest is None or not info.only_nest.loops or info.only_nest.value.op is not Ops.WHERE:
        return (ast,)
    if not info.is_static or not info.has(Ops.CMPEQ, Ops.CMPNE):  # no positions are compared
        return (ast,)
    nest = graph_rewrite(ast, symbolic).src[0]
    if nest.op is not Ops.END:
        return (ast,)
    (place, value), loops = nest.src[0].src, nest.src[1:]
    if value.op is not Ops.WHERE or len(place.src) != 2 or (writes := _writes(value)) is None:
        return (ast,)
    if writes.writers and is_compared(loops, target):
        return (ast,)
    written = _written(writes, place, loops)
    if written is None or not _is_apart(writes, place.src[0]):
        return (ast,)
    old = value.src[2]
    if old.op is Ops.LOAD and old.src == (place,):
        return (written,)
    copy = UOp.sink(UOp(Ops.END, dtypes.void, (UOp(Ops.STORE, dtypes.void, (place, old)), *loops)))
    copies = _kernels(copy, target)
    if not writes.writers and copies == (copy,):
        return (ast,)  # it goes through all elements anyway
    return (*copies, written)


def _is_apart(writes: _Writes, memory: UOp) -> bool:
    """Whether what is written neither reads the memory nor has a reduction over the writers."""
    order = UOp.sink(writes.value, *writes.conditions).toposort()
    reduced = {r for n in order if n.op in (Ops.REDUCE, Ops.SCAN) for r in n.src[1:]}
    return memory not in order and reduced.isdisjoint(writes.writers)


def _writes(value: UOp) -> _Writes | None:
    """The writers of a WHERE whose last operand is what an element was."""
    new = value.src[1]
    others: list[UOp] = []
    chosen: UOp | None = None
    for condition in conjuncts(value.src[0]):
        if chosen is None and _is_any(condition):
            chosen = condition
        else:
            others.append(condition)
    if chosen is None:
        return _Writes((), others, new)
    if chosen.op is Ops.REDUCE:
        return _Writes(chosen.src[1:], others + conjuncts(chosen.src[0]), new)
    found = _last(chosen.src[1], new)
    return found and found._replace(conditions=others + found.conditions)


def _is_any(condition: UOp) -> bool:
    """Whether a condition says that there is a writer: of all one, or the last one's number, from 1 on."""
    if condition.op is Ops.CMPLT:
        least, last = condition.src
        return least.is_const and least.arg == 0 and last.op is Ops.REDUCE and last.arg is Ops.MAX
    return condition.op is Ops.REDUCE and condition.arg is Ops.MAX and condition.dtype.is_bool


def _last(last: UOp, new: UOp) -> _Writes | None:
    """The writers of which `last` is the last one's number, and `new` what that one writes."""
    body, *loops = last.src
    if len(loops) != 1 or body.op is not Ops.WHERE:
        return None
    (i,) = loops
    hit, number, none = body.src
    if number is not simplify(i.cast(last.dtype) + 1) or not none.is_const or none.arg != 0:
        return None
    hits = conjuncts(hit)
    if last not in new.toposort():
        return _Writes((i,), hits, new)
    if new.op is not Ops.REDUCE or len(new.src) != 2 or new.src[1].src[0] is not i.src[0]:
        return None
    term, conditions = new.src[0].substitute({new.src[1]: i}), []
    if new.dtype.is_bool and new.arg is Ops.MAX:
        term, conditions = UOp.const(dtypes.bool, True), conjuncts(term)
    elif new.arg is Ops.ADD:
        while term.op is Ops.WHERE and term.src[2].is_const and term.src[2].arg == 0:
            conditions += conjuncts(term.src[0])
            term = term.src[1]
    rest = [c for c in conditions if c not in hits and not _are_equal(c, last, number)]
    if len(rest) == len(conditions) or any(last in n.toposort() for n in (term, *rest)):
        return None
    for condition in rest:
        term = term & condition if term.dtype.is_bool else condition.where(term, term.const_like(0))
    return _Writes((i,), hits, term)


def _are_equal(condition: UOp, a: UOp, b: UOp) -> bool:
    return condition.op is Ops.CMPEQ and condition.src in ((a, b), (b, a))


def _written(writes: _Writes, place: UOp, loops: tuple[UOp, ...]) -> UOp | None:
    """The kernel of the writers' loops; None unless the conditions say where along a loop they write: at an
    element, or in a part of it."""
    positions: dict[UOp, UOp] = {}
    conditions = list(writes.conditions)
    for condition in writes.conditions:
        for r in sorted(condition.ranges & set(loops), key=lambda r: r.arg):
            element = equality_with(condition, r)
            if element is not None and r not in positions:
                positions[r] = element
                conditions.remove(condition)
                break
    if any(not e.ranges.isdisjoint(positions) for e in positions.values()):
        return None
    parts = _parts([r for r in loops if r not in positions], conditions)
    inside, at = moved_to({r: element.substitute(parts) for r, element in positions.items()})
    at |= {r: part for r, part in parts.items() if part is not r}
    if not at:
        return None
    for condition in conditions:
        inside = inside & condition.substitute(at)
    pointer = place.replace(src=(place.src[0], simplify(place.src[1].substitute(at))))
    previous = UOp(Ops.LOAD, place.dtype, (pointer,))
    value = simplify(inside).where(writes.value.substitute(at), previous)
    left = [r for part in parts.values() for r in part.ranges]
    return ordered(pointer, value, [*writes.writers, *left], writes.writers)


def _parts(loops: list[UOp], conditions: list[UOp]) -> dict[UOp, UOp]:
    """Each loop where the conditions may hold: the loop itself, or a shorter one and where that starts."""
    bounds = bounds_under(conditions) or {}
    parts = {}
    for r in loops:
        low, high = bounds.get(r, (0, r.src[0].arg - 1))
        size = high - low + 1
        parts[r] = r if size == r.src[0].arg else UOp.range(size, r.arg) + low if size > 1 else UOp.index(low)
    return parts
