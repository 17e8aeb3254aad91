"""The box of elements that an operand of a sum reads, with an axis for each sum of loops that it depends on.

    x[y + ky, c] for y < 28, ky < 3, c < 64  ->  axes y + ky of 30 elements and c of 64

A copy of an operand holds its box (relayout.py, window_dots.py): windows overlap, but the copy has each
element once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from polygrad.dtype import dtypes
from polygrad.helpers import prod
from polygrad.uop.linear import linear_terms
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.symbolic import simplify

Form = dict[UOp, int]  # a sum of ranges, with their coefficients


class BoxAxis(NamedTuple):
    """An axis of a box: a sum of ranges with `size` values, of which `low` is the least. `step`: the elements
    of the operand's memory from one value to the next."""

    form: Form
    low: int
    size: int
    step: int

    @property
    def ranges(self) -> frozenset[UOp]:
        return frozenset(self.form)

    @property
    def position(self) -> UOp:
        """The 0-based index along the axis: the sum of ranges minus `low`."""
        out = UOp.index(-self.low)
        for r, factor in self.form.items():
            out = out + r * factor
        return simplify(out)


class Box(NamedTuple):
    """The axes that an operand depends on, in the order of its memory. `guarded`: whether it is read under
    conditions."""

    axes: list[BoxAxis]
    guarded: bool

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(prod(a.size for a in self.axes))


def find_box(value: UOp) -> Box | None:
    """The box of an operand; None if it depends on a range in several ways, or reads no memory."""
    order = value.toposort()
    loads = [n for n in order if n.op is Ops.LOAD]
    if not loads or any(n.op in (Ops.REDUCE, Ops.DEFINE_VAR) for n in order):
        return None
    positions = {n.src[0].src[1] for n in loads}
    forms = [_form(n) for n in _affine(order)]
    flat = [_form(n) for n in positions]
    groups: list[Form] = []
    for form in forms:
        if form and not _join(groups, form):
            return None
    for form in flat:
        grouped = {r for g in groups for r in g}
        for part in _mixed_radix({r: f for r, f in form.items() if r not in grouped}):
            groups.append(part)
    if any(not _is_multiple(form, g) for form in (*forms, *flat) for g in groups):
        return None
    if {r for g in groups for r in g} != set(value.ranges):
        return None
    terms = [linear_terms(position).terms for position in positions]
    axes = []
    for g in groups:
        ends = [f * (r.src[0].arg - 1) for r, f in g.items()]
        low = sum(min(e, 0) for e in ends)
        steps = [abs(f) for t in terms for a, f in t.items() if not a.ranges.isdisjoint(g)]
        axes.append(BoxAxis(g, low, sum(max(e, 0) for e in ends) - low + 1, max(steps, default=0)))
    guarded = any(len(n.src[0].src) > 2 for n in loads) or any(n.op is Ops.WHERE for n in order)
    return Box(sorted(axes, key=lambda a: -a.step), guarded)


def move_to(value: UOp, axes: Sequence[BoxAxis], places: Sequence[UOp]) -> UOp:
    """The operand `value` at these 0-based `places` along the `axes`."""
    changes: dict[UOp, UOp] = {}
    for a, place in zip(axes, places, strict=True):
        unit = next(r for r, f in a.form.items() if abs(f) == 1)
        changes |= {r: UOp.index(0) for r in a.form}
        changes[unit] = (place + a.low) * a.form[unit]
    return value.substitute(changes)


def _affine(order: list[UOp]) -> list[UOp]:
    """The sums of ranges that conditions, divisions and other operations take: all sums that are no parts of
    sums and no positions in memory."""
    linear = (Ops.ADD, Ops.MUL)
    sums: dict[UOp, None] = {}
    for n in order:
        if n.dtype is dtypes.index and n.op in linear:
            sources = [a for a in linear_terms(n).terms if a.op is not Ops.RANGE]
        elif n.op is Ops.INDEX:
            sources = [a for a in linear_terms(n.src[1]).terms if a.op is not Ops.RANGE]
        else:
            sources = [s for s in n.src if s.dtype is dtypes.index]
        sums.update(dict.fromkeys(s for s in sources if s.op in (*linear, Ops.RANGE)))
    return list(sums)


def _form(position: UOp) -> Form:
    return {a: f for a, f in linear_terms(position).terms.items() if a.op is Ops.RANGE}


def _join(groups: list[Form], form: Form) -> bool:
    """Add `form` to the groups unless it is a multiple of one of them. False if it shares ranges with another
    group."""
    if any(not g.keys().isdisjoint(form) for g in groups):
        return any(g.keys() == form.keys() and _is_multiple(form, g) for g in groups)
    unit = min(form.values(), key=abs)
    if any(f % unit for f in form.values()):
        return False
    groups.append({r: f // unit for r, f in form.items()})
    return True


def _mixed_radix(form: Form) -> list[Form]:
    """The digits of a position in a mixed radix: a step along a digit is longer than the reach of all smaller
    digits together."""
    parts: list[Form] = []
    reach = 0
    for r, f in sorted(form.items(), key=lambda t: abs(t[1])):
        if not parts or abs(f) > reach:
            parts.append({})
        parts[-1][r] = f
        reach += abs(f) * (r.src[0].arg - 1)
    out: list[Form] = []
    for part in parts:
        unit = min(part.values(), key=abs)
        if any(f % unit for f in part.values()):
            out += [{r: 1} for r in part]
        else:
            out.append({r: f // unit for r, f in part.items()})
    return out


def _is_multiple(form: Form, group: Form) -> bool:
    """Whether `form`, restricted to the ranges of `group`, is a multiple of `group`."""
    r, f = next(iter(group.items()))
    times, remainder = divmod(form.get(r, 0), f)
    return not remainder and all(form.get(r, 0) == times * f for r, f in group.items())
