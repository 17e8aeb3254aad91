"""Dot products of windows: a sum of products of narrow numbers over several loops, and of computed numbers.

    sum(int32(x[c, y + i, z + j]) * int32(w[o, c, i, j]) for c < C, i, j)
        ->  sum(DOT(x'[c, y + i, z + j], w'[i, j, c, o], 0) for c < C / 4, i, j)

One of the summed loops, along which both operands have an axis of their own, becomes words: the channels of a
convolution, not the positions in its kernel. An operand's box is packed (boxes.py), so overlapping windows
are packed once, and padding and conversions are evaluated at that time. `dot_products.py` has the products
over one loop of numbers in memory, and the arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from polygrad.codegen.kernels.boxes import Box, BoxAxis, find_box, move_to
from polygrad.codegen.kernels.dot_products import (
    MIXED,
    NARROW,
    DotForm,
    Packed,
    bits_as,
    dot_of,
    load_packed,
)
from polygrad.codegen.opts import cost
from polygrad.codegen.target import Target
from polygrad.dtype import DType, dtypes
from polygrad.helpers import ceildiv, prod
from polygrad.schedule.index_maps import flat_index
from polygrad.schedule.kernel_info import Sum, kernel_info, rounds
from polygrad.uop.args import Axis, AxisKind, Param
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


class _WindowOperand(NamedTuple):
    """A factor: narrow numbers, in memory or computed, and their box."""

    value: UOp
    box: Box

    @property
    def dtype(self) -> DType:
        return self.value.dtype

    def axis_of(self, k: UOp) -> BoxAxis | None:
        """The axis that is the loop `k` alone."""
        return next((a for a in self.box.axes if a.form == {k: 1}), None)


def find_window_dot_form(total: Sum, lanes: UOp, first: int, target: Target) -> DotForm | None:
    """The sum `total` of integers as a sum of DOTs; None if its factors are not narrow numbers that depend on
    sums of loops, or the target has no such DOT. `lanes` and `first`: as in `find_dot_form`."""
    dtype = total.node.dtype
    if dtype not in (dtypes.int32, dtypes.uint32) or total.factors is None:
        return None
    a, b = (_operand(factor) for factor in total.factors)
    if a is None or b is None or (kinds := dot_of(a.dtype, b.dtype, target)) is None:
        return None
    shared = [k for k in total.loops if a.axis_of(k) is not None and b.axis_of(k) is not None]
    if not shared:
        return None
    k = min(shared, key=lambda r: (ceildiv(_size(r), kinds.elements) / _size(r), -_size(r)))
    if a.dtype.is_unsigned is b.dtype.is_unsigned:  # sums of the operand with fewer elements are cheaper
        swapped = (rounds(_outer(a, total)) < rounds(_outer(b, total))) is not a.dtype.is_unsigned
    else:
        swapped = b.dtype.is_unsigned
    if kinds is MIXED and swapped:
        a, b = b, a
    words = UOp.range(ceildiv(_size(k), kinds.elements), k.arg)
    packed = [_pack(x, k, lanes, kind, kinds.elements) for x, kind in ((a, kinds.a), (b, kinds.b))]
    sides = [_load(first + i, p, x, k, words, lanes) for i, (p, x) in enumerate(zip(packed, (a, b)))]
    product = UOp(Ops.DOT, kinds.total, (*sides, UOp.const(kinds.total, 0)), kinds)
    out = UOp(Ops.REDUCE, kinds.total, (product, *(words if r is k else r for r in total.loops)), Ops.ADD)
    if kinds is MIXED and a.dtype.is_unsigned is b.dtype.is_unsigned:
        other, factor = (a, 128) if a.dtype.is_unsigned else (b, -128)
        outer = _outer(other, total)
        packed.append(_pack_sums(other, total.loops, outer, factor))
        out = out + load_packed(first + 2, packed[-1], outer)
    return DotForm(out.bitcast(dtype) if dtype is not out.dtype else out, tuple(packed))


def is_dot_product(ast: UOp, target: Target) -> bool:
    """Whether a kernel's only sum is a product of narrow integers that is worth words of the target's DOT."""
    info = kernel_info(ast)
    only = info.nests[0].only_sum if info.only_nest is not None and target.dots else None
    if only is None or not only.node.dtype.is_int or only.factors is None or only.work < cost.MIN_COPIED_FOR:
        return False
    a, b = (_narrow(factor) for factor in only.factors)
    return a is not None and b is not None and dot_of(a.dtype, b.dtype, target) is not None


def _size(r: UOp) -> int:
    return int(r.src[0].arg)


def _outer(x: _WindowOperand, total: Sum) -> tuple[UOp, ...]:
    """The loops around the sum that an operand depends on, outermost first."""
    return tuple(sorted(x.value.ranges - set(total.loops), key=lambda r: r.arg))


def _operand(factor: UOp) -> _WindowOperand | None:
    value = _narrow(factor)
    box = None if value is None else find_box(value)
    return None if value is None or box is None else _WindowOperand(value, box)


def _narrow(factor: UOp) -> UOp | None:
    """The narrow integers that a factor converts."""
    if factor.op is Ops.CAST and factor.src[0].dtype in NARROW and factor.src[0].dtype.is_int:
        return factor.src[0]
    if factor.op is not Ops.WHERE:
        return None
    condition, *sides = factor.src
    dtype = next((s.src[0].dtype for s in sides if s.op is Ops.CAST), None)
    if dtype not in NARROW or dtype.is_float:
        return None
    narrow_sides: list[UOp] = []
    for s in sides:
        if s.op is Ops.CONST and dtype.min <= s.arg <= dtype.max:
            narrow_sides.append(UOp.const(dtype, s.arg))
        elif s.op is Ops.CAST and s.src[0].dtype is dtype:
            narrow_sides.append(s.src[0])
        else:
            return None
    return condition.where(*narrow_sides)


# --- packed memory: the axes of the box other than words and lanes, then words, then the lanes' axis


def _axes(x: _WindowOperand, k: UOp, lanes: UOp) -> tuple[list[BoxAxis], list[BoxAxis]]:
    """The axes before the axis of words, and those behind it."""
    others = [a for a in x.box.axes if a is not x.axis_of(k)]
    along = [a for a in others if lanes in a.ranges]
    if not along and (own := x.axis_of(k)) is not None and own.step > 1:
        along = [a for a in others if a.step == 1]  # which keeps neighbours neighbours
    return [a for a in others if a not in along], along


def _pack(x: _WindowOperand, k: UOp, lanes: UOp, kind: DType, count: int) -> Packed:
    axis_of_k = x.axis_of(k)
    assert axis_of_k is not None
    before, along = _axes(x, k, lanes)
    words = ceildiv(axis_of_k.size, count)
    sizes = [*(a.size for a in before), words, *(a.size for a in along)]
    axes, size = [*before, axis_of_k, *along], int(prod(sizes))
    if not along:  # each word's elements are innermost
        loops = _loops([*sizes[:-1], words * count])
        return Packed(_element(x, axes, loops, len(before), kind), tuple(loops), dtypes.uint32, size)
    loops, at = _loops(sizes), len(before)
    value: UOp | None = None
    for i in range(count):
        places = [*loops[:at], loops[at] * count + i, *loops[at + 1 :]]
        part = _element(x, axes, places, at, kind).cast(dtypes.uint32)
        value = part if value is None else value | (part << (i * kind.bits))
    assert value is not None
    return Packed(value, tuple(loops), dtypes.uint32, size)


def _element(x: _WindowOperand, axes: Sequence[BoxAxis], places: Sequence[UOp], at: int, kind: DType) -> UOp:
    """The bits of an element. Beyond the end of axis number `at` they are those of a converted 0, which may
    be 128: the other operand has a plain 0 there."""
    size, place = axes[at].size, places[at]
    if place.vmax < size:
        return bits_as(move_to(x.value, axes, places), kind)
    is_inside = place < size
    last = is_inside.where(place, UOp.index(size - 1))
    value = move_to(x.value, axes, [*places[:at], last, *places[at + 1 :]])
    return bits_as(is_inside.where(value, UOp.const(x.dtype, 0)), kind)


def _load(slot: int, packed: Packed, x: _WindowOperand, k: UOp, words: UOp, lanes: UOp) -> UOp:
    """The word of packed memory for the loops of the product."""
    before, along = _axes(x, k, lanes)
    sizes = [*(a.size for a in before), _size(words), *(a.size for a in along)]
    places = [*(a.position for a in before), words, *(a.position for a in along)]
    memory = UOp(Ops.PARAM, packed.dtype, (), Param(slot, packed.size))
    at = flat_index(tuple(sizes), tuple(places))
    return UOp(Ops.LOAD, packed.dtype, (UOp(Ops.INDEX, packed.dtype, (memory, at)),))


def _pack_sums(x: _WindowOperand, summed: Sequence[UOp], outer: Sequence[UOp], factor: int) -> Packed:
    """`factor` times the sums of `x` over the loops of the product."""
    loops = _loops([_size(r) for r in outer])
    summed_loops = [r.replace(arg=Axis((len(loops) + i,), AxisKind.REDUCE)) for i, r in enumerate(summed)]
    value = x.value.substitute({**dict(zip(outer, loops)), **dict(zip(summed, summed_loops))})
    total = UOp(Ops.REDUCE, dtypes.int32, (value.cast(dtypes.int32), *summed_loops), Ops.ADD)
    return Packed(total * factor, tuple(loops), dtypes.int32, rounds(outer))


def _loops(sizes: Sequence[int]) -> list[UOp]:
    return [UOp.range(n, i) if n > 1 else UOp.index(0) for i, n in enumerate(sizes)]
