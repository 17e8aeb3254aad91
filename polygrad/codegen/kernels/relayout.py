"""Relayout: an operand of a large product that is costly to read is copied first.

    sum(ok(y, ky) ? x[y - ky] : 0) * w[ky]  ->  copy[u] = ok(u) ? x[u - 1] : 0; sum(copy[y - ky + 1] * w[ky])

There are three kinds. The first is read under conditions (the padding of a convolution, the zeros between a
transposed convolution's elements): the copy evaluates them once for each element instead of in each term. The
second is read in long steps along the summed axis (`a.T @ b`): the copy is its transpose. The third is
computed (float16 converted to float32) and read as scalars, which computes it again for each vector of the
output. The copy is a kernel of its own, tiled and divided between threads as any other. oneDNN calls it a
reorder, TVM a layout rewrite.

Where the operand depends on its axes by sums alone (y - ky: the windows of a convolution), the copy has an
axis for each sum and holds each element once: the bounding box of what is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from polygrad.codegen.kernels.division import axes_of, canonical_info, canonical_sum, store_value
from polygrad.codegen.kernels.dot_products import DotForm, find_dot_form
from polygrad.codegen.kernels.kernel_opt import AxisId, KernelContext, KernelOpt, Kind, Proposal
from polygrad.codegen.opts import cost
from polygrad.codegen.opts.tiling import Tiling
from polygrad.codegen.target import Target
from polygrad.dtype import dtypes
from polygrad.errors import OptError
from polygrad.helpers import dedup, prod
from polygrad.schedule.index_maps import flat_index
from polygrad.schedule.kernel_info import kernel_info
from polygrad.schedule.kernels import KernelCall
from polygrad.uop.args import Param
from polygrad.uop.linear import linear_terms
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.symbolic import simplify

Form = dict[UOp, int]  # a sum of ranges, with their coefficients


def propose_copies(call: KernelCall, context: KernelContext) -> Iterator[Proposal]:
    """The operands of a kernel's only sum that are worth a copy, or both as words of dot products."""
    if not kernel_info(call.ast).is_sum_of(context.least(cost.MIN_COPIED_FOR)):
        return
    info, target = canonical_info(call.ast), context.target
    only = info.nests[0].only_sum
    if only is None or only.factors is None:
        return
    large = kernel_info(call.ast).is_sum_of(cost.MIN_COPIED_FOR)
    tiles = Tiling(info.ast.src[0], target).choose()
    lanes = next((r for r, tile in tiles.items() if tile.lanes > 1), None)
    tile = tiles[lanes].size if lanes is not None else 1
    if lanes is not None and (dots := find_dot_form(only, lanes, len(call.args), target)) is not None:
        nbytes = sum(p.size * p.dtype.itemsize for p in dots.packed)
        pays = large and only.work >= cost.MIN_COPIED_READS * nbytes
        yield Proposal(KernelOpt(Kind.DOT_PRODUCT, (), (lanes.arg.id,)), pays)
        return
    for number, factor in enumerate(dedup(only.factors)):
        box = _box(factor)
        if box is None or (only.work < cost.MIN_COPIED_READS * box.size and not context.searching):
            continue
        axes = _axes_in_order(box, only.node, lanes, tile, target)
        pays = axes != box.axes or box.guarded or _is_computed(factor, box, lanes)
        if not pays and not context.searching:
            continue
        if not pays:
            axes = sorted(box.axes, key=lambda a: a.ranges.issubset(only.loops))
        order = tuple(box.axes.index(a) for a in axes)
        pays = pays and large and only.work >= cost.MIN_COPIED_READS * box.size
        yield Proposal(KernelOpt(Kind.RELAYOUT, (), (), (number, *order)), pays)


# --- the mechanism


def relayout(ast: UOp, slots: int, number: int, *order: int) -> tuple[UOp, ...]:
    """A kernel that copies a factor of another's only sum, and that one, which reads the copy. `number`: of
    the factor; `order`: of the copy's axes. `slots`: how many arguments the kernel has."""
    info, only = canonical_sum(ast)
    factors = dedup(only.factors or ())
    if number >= len(factors) or (box := _box(factors[number])) is None:
        raise OptError(f"expected a factor of a sum of products that depends on sums of loops, got {number}")
    if sorted(order) != list(range(len(box.axes))):
        raise OptError(f"expected an order of the {len(box.axes)} axes of the copy, got {list(order)}")
    axes, factor = [box.axes[i] for i in order], factors[number]
    memory = UOp(Ops.PARAM, factor.dtype, (), Param(slots, box.size))
    position = flat_index(tuple(a.size for a in axes), tuple(a.position for a in axes))
    load = UOp(Ops.LOAD, factor.dtype, (UOp(Ops.INDEX, factor.dtype, (memory, position)),))
    return _make_copy(factor, axes, slots), info.ast.substitute({factor: load})


def dot_product(ast: UOp, slots: int, lanes: Sequence[AxisId], target: Target) -> tuple[UOp, ...]:
    """The kernels that pack a product's operands of narrow numbers, and that one as DOTs. `lanes`: the loop
    that is in them. `slots`: how many arguments the kernel has."""
    info, only = canonical_sum(ast)
    dots: DotForm | None = find_dot_form(only, axes_of(info, lanes)[0], slots, target)
    if dots is None:
        raise OptError("expected a sum of products of narrow numbers, and a target with DOTs of them")
    packs = [store_value(p.value, p.loops, slots + i) for i, p in enumerate(dots.packed)]
    return *packs, info.ast.substitute({only.node: dots.total})


# --- the box of elements that an operand has


class _Axis(NamedTuple):
    """An axis of a box: a sum of ranges, which has `size` values from `low` on. `step`: elements of the
    operand's memory from one value to the next."""

    form: Form
    low: int
    size: int
    step: int

    @property
    def ranges(self) -> frozenset[UOp]:
        return frozenset(self.form)

    @property
    def position(self) -> UOp:
        """The index along the axis: the sum of ranges, from 0 on."""
        out = UOp.index(-self.low)
        for r, factor in self.form.items():
            out = out + r * factor
        return simplify(out)


class _Box(NamedTuple):
    """All that an operand depends on, as axes in the order of its memory. `guarded`: read under
    conditions."""

    axes: list[_Axis]
    guarded: bool

    @property
    def size(self) -> int:
        """Elements."""
        return int(prod(a.size for a in self.axes))


def _box(value: UOp) -> _Box | None:
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
    terms, _ = linear_terms(loads[0].src[0].src[1])
    axes = []
    for g in groups:
        ends = [f * (r.src[0].arg - 1) for r, f in g.items()]
        low = sum(min(e, 0) for e in ends)
        step = max((abs(f) for a, f in terms.items() if not a.ranges.isdisjoint(g)), default=0)
        axes.append(_Axis(g, low, sum(max(e, 0) for e in ends) - low + 1, step))
    guarded = any(len(n.src[0].src) > 2 for n in loads) or any(n.op is Ops.WHERE for n in order)
    return _Box(sorted(axes, key=lambda a: -a.step), guarded)


def _affine(order: list[UOp]) -> list[UOp]:
    """Sums of ranges that conditions, divisions and such take: all but parts of sums, and positions in
    memory."""
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
    """Add `form` to the groups unless it is a multiple of one of them. False if it shares ranges with
    another."""
    if any(not g.keys().isdisjoint(form) for g in groups):
        return any(g.keys() == form.keys() and _is_multiple(form, g) for g in groups)
    unit = min(form.values(), key=abs)
    if any(f % unit for f in form.values()):
        return False
    groups.append({r: f // unit for r, f in form.items()})
    return True


def _mixed_radix(form: Form) -> list[Form]:
    """The digits of a position: a step along a digit is longer than the reach of all smaller ones
    together."""
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


def _axes_in_order(box: _Box, total: UOp, lanes: UOp | None, tile: int, target: Target) -> list[_Axis]:
    """The axes of an operand's box in the best order to read it. `tile`: elements along the lanes that a
    round of the product computes.

    The order changes in two cases. If the operand depends on the lanes, these go last if they are not
    neighbours and a panel is more than a cache holds. If not, the summed axes go last if they step far over
    memory; of a window's axes the one of the innermost loop.
    """
    summed = frozenset(total.src[1:])
    inner = [a for a in box.axes if a.ranges <= summed]
    if lanes is None or lanes in summed or not inner:
        return box.axes
    along = next((a for a in box.axes if lanes in a.ranges), None)
    if any(not a.ranges <= summed and not a.ranges.isdisjoint(summed) for a in box.axes):
        inner = [a for a in inner if total.src[-1] in a.ranges and along is None]
    nbytes = int(prod(a.size for a in inner)) * total.dtype.itemsize
    if along is not None and inner:
        if along.step == 1 or nbytes * tile <= cost.panel_bytes(target):
            return box.axes
        return [*(a for a in box.axes if a is not along), along]
    if not inner or not cost.is_far(min(a.step for a in inner), nbytes, target):
        return box.axes
    return [*(a for a in box.axes if a not in inner), *inner]


def _is_computed(factor: UOp, box: _Box, lanes: UOp | None) -> bool:
    """Whether each vector of the output would compute the operand again: it is more than a load, and read as
    scalars."""
    return factor.op is not Ops.LOAD and lanes is not None and all(lanes not in a.ranges for a in box.axes)


# --- the kernel that copies


def _make_copy(value: UOp, axes: list[_Axis], slot: int) -> UOp:
    """copy[u, v, ...] = the operand where its sums are u, v, ..."""
    loops = [UOp.range(a.size, i) if a.size > 1 else UOp.index(0) for i, a in enumerate(axes)]
    changes: dict[UOp, UOp] = {}
    for a, loop in zip(axes, loops, strict=True):
        unit = next(r for r, f in a.form.items() if abs(f) == 1)
        changes |= {r: UOp.index(0) for r in a.form}
        changes[unit] = (loop + a.low) * a.form[unit]
    return store_value(value.substitute(changes), loops, slot)
