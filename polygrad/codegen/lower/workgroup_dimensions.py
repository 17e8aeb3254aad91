"""The dimensions of a grid and of its workgroups.

    RANGE GLOBAL, LOCAL     SPECIAL, the number along one of 3 dimensions. Axes that no value depends on
                            together share a dimension: softmax's three passes over a row are the same
                            invocations

A grid of more than three axes, or of more workgroups along one than a machine has, is folded: workgroups are
numbered, and each computes where along the axes it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from polygrad.codegen.target import Workgroups
from polygrad.dtype import dtypes
from polygrad.errors import OptError
from polygrad.helpers import prod
from polygrad.uop.args import AxisKind, Special
from polygrad.uop.linear import linear_terms
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.shapes import sint_max
from polygrad.uop.symbolic import simplify

_DIMENSIONS = 3
_MIN_WIDTH = 1024  # workgroups along x that are worth looking for where a grid is folded


def grid_of(linear: Iterable[UOp]) -> tuple[UOp, UOp, UOp]:
    """The sizes of a linear kernel's grid, in which Variables may occur."""
    return _sizes(linear, AxisKind.GLOBAL)


def workgroup_of(linear: Iterable[UOp]) -> tuple[int, int, int]:
    """How many invocations a linear kernel's workgroups have along each dimension."""
    x, y, z = (size.arg for size in _sizes(linear, AxisKind.LOCAL))
    return x, y, z


def subgroup_of(linear: Iterable[UOp], limits: Workgroups) -> int:
    """How many invocations a linear kernel counts on in a subgroup; 0 where it has no use for them."""
    return limits.subgroup if any(n.op in (Ops.SHUFFLE_XOR, Ops.WMMA) for n in linear) else 0


def _sizes(linear: Iterable[UOp], kind: AxisKind) -> tuple[UOp, UOp, UOp]:
    size_of_axis = {n.arg.axis: n.src[0] for n in linear if n.op is Ops.SPECIAL and n.arg.kind is kind}
    x, y, z = (size_of_axis.get(axis, UOp.index(1)) for axis in range(_DIMENSIONS))
    return x, y, z


def _dimensions(order: Sequence[UOp], kind: AxisKind) -> list[list[UOp]]:
    """The axes of a kind that share each dimension: of one size, and no value depends on two of them. The
    first has those that memory is read along element by element."""
    axes = [n for n in order if n.op is Ops.RANGE and n.arg.kind is kind]
    together = [axes_of_value for n in order if len(axes_of_value := n.ranges.intersection(axes)) > 1]
    strides: dict[UOp, int] = {}
    for n in order:
        if n.op is Ops.INDEX and n.src[0].op is Ops.PARAM:
            for atom, step in linear_terms(n.src[1])[0].items():
                for r in atom.ranges:
                    strides[r] = min(abs(step), strides.get(r, abs(step)))
    longest = max(strides.values(), default=0) + 1
    out: list[list[UOp]] = []
    for r in sorted(axes, key=lambda r: (-strides.get(r, longest), r.arg.id), reverse=True):
        for members in out:
            if members[0].src == r.src and not any(r in t and not t.isdisjoint(members) for t in together):
                members.append(r)
                break
        else:
            out.append([r])
    return out


def coordinates(position: UOp, sizes: Sequence[UOp]) -> list[UOp]:
    """A position as one of each axis, the first fastest."""
    out = []
    for size in sizes[:-1]:
        out.append(position % size)
        position = position // size
    return [*out, position]


class Grid:
    """The dimensions of the grid: `numbers[i]` is where a workgroup is along the axes `axes[i]`; `gate`:
    whether it has anything to do (None: all have)."""

    def __init__(self, order: Sequence[UOp], limits: Workgroups) -> None:
        self.axes = _dimensions(order, AxisKind.GLOBAL)
        self.gate: UOp | None = None
        sizes = [members[0].src[0] for members in self.axes]
        if len(sizes) <= _DIMENSIONS and all(sint_max(n) <= limits.count for n in sizes):
            self.numbers = [_special(n, AxisKind.GLOBAL, i) for i, n in enumerate(sizes)]
            return
        total = simplify(UOp.index(prod(sizes)))
        width = _width(total, limits.count)
        height = simplify((total + (width - 1)) // width)
        if sint_max(height) > limits.count:
            raise OptError(f"expected a grid of at most {limits.count**2} workgroups, got {sint_max(total)}")
        position = _special(UOp.index(width), AxisKind.GLOBAL, 0)
        if height.op is not Ops.CONST or height.arg > 1:
            position = position + _special(height, AxisKind.GLOBAL, 1) * width
        if not total.is_const or total.arg % width:
            self.gate = position < total
            position = -(-position).maximum(1 - total)
        self.numbers = [simplify(n) for n in coordinates(position, sizes)]


def _width(total: UOp, limit: int) -> int:
    """How many workgroups of a folded grid lie along x: as many as divide it, if they can."""
    if sint_max(total) <= limit and total.is_const:
        return int(total.arg)
    fits = range(limit, _MIN_WIDTH, -1)
    return next((n for n in fits if total.is_const and total.arg % n == 0 and total.arg // n <= limit), limit)


def _special(size: UOp, kind: AxisKind, axis: int) -> UOp:
    return UOp(Ops.SPECIAL, dtypes.index, (size,), Special(kind, axis))


class Workgroup:
    """The dimensions of a workgroup: `numbers[i]` is that of an invocation for the axes `axes[i]`;
    `position`: its number in all `count`."""

    def __init__(self, order: Sequence[UOp], limits: Workgroups) -> None:
        self.axes = _dimensions(order, AxisKind.LOCAL)
        sizes = [members[0].src[0].arg for members in self.axes]
        lanes = _lanes(order, limits)
        if lanes:  # of one dimension, the first: neighbours are in one subgroup, or in several in a row
            sizes.insert(0, int(prod(r.src[0].arg for r in lanes)))
        self.count = int(prod(sizes))
        within = len(sizes) <= _DIMENSIONS and all(n <= m for n, m in zip(sizes, limits.sizes, strict=False))
        if not within or self.count > limits.invocations:
            raise OptError(
                f"expected workgroups of at most {limits.invocations} invocations in {_DIMENSIONS} "
                f"dimensions, no more than {limits.sizes}, got {sizes}"
            )
        self.numbers = [_special(UOp.index(n), AxisKind.LOCAL, i) for i, n in enumerate(sizes)]
        self.strides = [int(prod(sizes[:i])) for i in range(len(sizes))]  # in the invocation's number
        self.position = UOp.index(0)
        for number, size in reversed(list(zip(self.numbers, sizes, strict=True))):
            self.position = simplify(self.position * size + number)
        if lanes:
            lane, *others = self.numbers
            self.numbers = [*map(simplify, coordinates(lane, [r.src[0] for r in lanes])), *others]
            self.axes = [*([r] for r in lanes), *self.axes]
            self.strides = [*(0 for _ in lanes), *self.strides[1:]]

    def stride_of(self, axis: UOp) -> int:
        """How far apart the numbers of neighbours along an axis are."""
        return next(s for s, members in zip(self.strides, self.axes, strict=True) if axis in members)

    def gate(self, axes: Iterable[UOp]) -> UOp | None:
        """The condition that picks one of the invocations that would store the same; None where each has an
        element of its own along `axes`."""
        is_first = None
        for members, number in zip(self.axes, self.numbers, strict=True):
            if not any(r in members for r in axes):
                is_first_of_axis = number < 1
                is_first = is_first_of_axis if is_first is None else is_first & is_first_of_axis
        return is_first


def _lanes(order: Sequence[UOp], limits: Workgroups) -> list[UOp]:
    """The axes of the lanes of a subgroup, the fastest first."""
    lanes = [n for n in order if n.op is Ops.RANGE and n.arg.kind is AxisKind.SUBGROUP]
    count = prod(r.src[0].arg for r in lanes)
    if lanes and (not limits.subgroup or count % limits.subgroup):
        raise OptError(f"expected subgroups of {count} invocations, got {limits.subgroup}")
    return sorted(lanes, key=lambda r: r.arg.id)
