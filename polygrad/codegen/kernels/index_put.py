"""Writes at positions (torch's `index_put_`): instead of all elements, a kernel goes through the positions.

    for v, c: out[v, c] = (last i with index[i] == v) ? x[i, c] : out[v, c]

    ->  for i, in order, for c: out[index[i], c] = x[i, c]

Such kernels come from `t[index] = x`, `scatter`, `index_fill` and a write at one computed position (a cache
of keys). If the other elements come from other memory, a kernel copies that first. The writes go in the order
of `i`, so the last one stays; threads divide the loops over `c`. A write to a part of memory (`t[2:5] = x`)
after a write at positions becomes a kernel over that part.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from polygrad.codegen.kernels.accumulation import (
    is_compared,
    make_ordered_nest,
    nest_writers,
    substitute_positions,
)
from polygrad.codegen.kernels.division import make_nest
from polygrad.codegen.kernels.kernel_opt import KernelContext, KernelOpt, Kind, Proposal
from polygrad.codegen.target import Target
from polygrad.dtype import dtypes
from polygrad.errors import OptError
from polygrad.schedule.kernel_info import kernel_info
from polygrad.schedule.kernels import KernelCall
from polygrad.schedule.selection import find_positions
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.path_conditions import bounds_under, conjuncts
from polygrad.uop.rewrite import graph_rewrite
from polygrad.uop.symbolic import simplify, symbolic


def propose_index_put(call: KernelCall, context: KernelContext) -> Iterator[Proposal]:
    """A kernel that selects the last writer of each element, as a loop over the writers."""
    if (division := _find(call.ast)) is not None:
        yield Proposal(KernelOpt(Kind.INDEX_PUT), _pays(division, context.target))


class _Writes(NamedTuple):
    """for writers, in order: if all `conditions` hold, write `value`"""

    writers: tuple[UOp, ...]
    conditions: list[UOp]
    value: UOp


class _Division(NamedTuple):
    """The parts of a kernel that writes at positions. `copy` stores the other elements, if necessary."""

    writers: tuple[UOp, ...]
    loops: tuple[UOp, ...]
    copy: UOp | None
    write: UOp


def _find(ast: UOp) -> _Division | None:
    info = kernel_info(ast)
    if info.only_nest is None or not info.only_nest.loops or info.only_nest.value.op is not Ops.WHERE:
        return None
    if not info.is_static or not info.has(Ops.CMPEQ, Ops.CMPNE) or info.only_nest.is_ordered:
        return None
    nest = graph_rewrite(ast, symbolic).src[0]
    if nest.op is not Ops.END:
        return None
    (place, value), loops = nest.src[0].src, nest.src[1:]
    if value.op is not Ops.WHERE or len(place.src) != 2 or (writes := _match_writes(value)) is None:
        return None
    write = _make_writes(writes, place, loops)
    if write is None or not _is_apart(writes, place.src[0]):
        return None
    old = value.src[2]
    stays = old.op is Ops.LOAD and old.src == (place,)
    return _Division(writes.writers, loops, None if stays else make_nest(place, old, loops), write)


def _pays(division: _Division, target: Target) -> bool:
    """Whether loops over the writers are less work. A kernel without writers that copies goes through all
    elements anyway, unless the copy also writes at positions."""
    if division.writers and is_compared(division.loops, target):
        return False
    if division.writers or division.copy is None:
        return True
    before = _find(division.copy)
    return before is not None and _pays(before, target)


# --- the mechanism


def index_put(ast: UOp) -> tuple[UOp, ...]:
    """The parts of a kernel that writes at positions: a copy, if necessary, and a loop over the writers.

    for v, c: out[v, c] = (last i with index[i] == v) ? x[i, c] : old[v, c]

    ->  for v, c: out[v, c] = old[v, c];  for i, in order, for c: out[index[i], c] = x[i, c]
    """
    if (division := _find(ast)) is None:
        raise OptError("expected a kernel that writes values at positions, or keeps what memory has")
    return (division.write,) if division.copy is None else (division.copy, division.write)


def _is_apart(writes: _Writes, memory: UOp) -> bool:
    """Whether the writes do not depend on each other: neither the value nor the conditions read `memory`, or
    reduce over the writers."""
    order = UOp.sink(writes.value, *writes.conditions).toposort()
    reduced = {r for n in order if n.op in (Ops.REDUCE, Ops.SCAN) for r in n.src[1:]}
    return memory not in order and reduced.isdisjoint(writes.writers)


def _match_writes(value: UOp) -> _Writes | None:
    """The writes of `condition ? new : old`; None if the condition does not select a writer."""
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
    writes = _match_last_writer(chosen.src[1], new)
    return writes and writes._replace(conditions=others + writes.conditions)


def _is_any(condition: UOp) -> bool:
    """Whether a condition is that there is a writer: `any(...)`, or `0 < last`, where `last` is the 1-based
    index of the last writer."""
    if condition.op is Ops.CMPLT:
        least, last = condition.src
        return least.is_const and least.arg == 0 and last.op is Ops.REDUCE and last.arg is Ops.MAX
    return condition.op is Ops.REDUCE and condition.arg is Ops.MAX and condition.dtype.is_bool


def _match_last_writer(last: UOp, new: UOp) -> _Writes | None:
    """The writes whose last writer has the 1-based index `last` and writes `new`.

    last = max(hit(i) ? i + 1 : 0 for i)
    new = sum(i + 1 == last ? x[i] : 0 for i), or anything that does not depend on `last`
    """
    body, *loops = last.src
    if len(loops) != 1 or body.op is not Ops.WHERE:
        return None
    (i,) = loops
    hit, number, no_writer = body.src
    if number is not simplify(i.cast(last.dtype) + 1) or not no_writer.is_const or no_writer.arg != 0:
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
    others = [c for c in conditions if c not in hits and not _are_equal(c, last, number)]
    if len(others) == len(conditions) or any(last in n.toposort() for n in (term, *others)):
        return None
    for condition in others:
        term = term & condition if term.dtype.is_bool else condition.where(term, UOp.const(term.dtype, 0))
    return _Writes((i,), hits, term)


def _are_equal(condition: UOp, a: UOp, b: UOp) -> bool:
    return condition.op is Ops.CMPEQ and condition.src in ((a, b), (b, a))


def _make_writes(writes: _Writes, place: UOp, loops: tuple[UOp, ...]) -> UOp | None:
    """for writers, in order, for the other loops: memory[position] = value

    A condition determines where along an output loop a writer writes: at one element, or in a part of the
    loop. None if no condition determines this.
    """
    positions, conditions = find_positions(writes.conditions, loops)
    if any(not e.ranges.isdisjoint(positions) for e in positions.values()):
        return None
    parts = _restrict_loops([r for r in loops if r not in positions], conditions)
    is_inside, replacements = substitute_positions(
        {r: element.substitute(parts) for r, element in positions.items()}
    )
    replacements |= {r: part for r, part in parts.items() if part is not r}
    if not replacements:
        return None
    for condition in conditions:
        is_inside = is_inside & condition.substitute(replacements)
    pointer = place.replace(src=(place.src[0], simplify(place.src[1].substitute(replacements))))
    previous = UOp(Ops.LOAD, place.dtype, (pointer,))
    value = simplify(is_inside).where(writes.value.substitute(replacements), previous)
    remaining = [r for part in parts.values() for r in part.ranges]
    nest = nest_writers(place, writes.writers, remaining, positions)
    return make_ordered_nest(pointer, value, nest, writes.writers)


def _restrict_loops(loops: list[UOp], conditions: list[UOp]) -> dict[UOp, UOp]:
    """Each loop without the rounds in which a condition fails: the loop itself, or `start + shorter loop`.

    for r < 9, with the condition 2 <= r < 5  ->  for r < 3, with r + 2 in the place of r
    """
    bounds = bounds_under(conditions) or {}
    parts = {}
    for r in loops:
        low, high = bounds.get(r, (0, r.src[0].arg - 1))
        size = high - low + 1
        parts[r] = r if size == r.src[0].arg else UOp.range(size, r.arg) + low if size > 1 else UOp.index(low)
    return parts
