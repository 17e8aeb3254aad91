"""The tile that each node of a linear kernel stands for: one value per combination of the UPCAST and UNROLL
ranges that it depends on, each a SIMD value if it depends on the LANE range.

Knows no Builder.
"""

from __future__ import annotations

from collections.abc import Sequence

from polygrad.errors import InternalError
from polygrad.helpers import prod
from polygrad.renderer.tile_values import Axes, by_id
from polygrad.uop.args import AxisKind
from polygrad.uop.linear import Steps
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops

_COMPUTING = GroupOp.Elementwise | {Ops.LOAD, Ops.STORE, Ops.REDUCE}
NO_STEPS = Steps((), 0)


def gate_of(index: UOp) -> UOp | None:
    """The condition of a load or store at an INDEX."""
    return index.src[2] if len(index.src) > 2 else None


def readers_of(linear: Sequence[UOp]) -> dict[UOp, list[UOp]]:
    """The nodes that read each node: a node that reads it twice stands twice."""
    readers: dict[UOp, list[UOp]] = {}
    for node in linear:
        for s in node.src:
            readers.setdefault(s, []).append(node)
    return readers


def _in_order(ranges: set[UOp]) -> Axes:
    return tuple(sorted(ranges, key=by_id))


class TileAxes:
    """`axes`: the tile ranges of each node, by id. `simd`: whether it depends on the LANE range, of `lanes`
    elements."""

    def __init__(self, kernel: str, linear: Sequence[UOp]) -> None:
        self.kernel = kernel
        self.axes: dict[UOp, Axes] = {}
        self.simd: dict[UOp, bool] = {}
        self.lanes = _lane_count(kernel, linear)
        self._find_axes(linear)
        self._find_axes(linear)  # again, as a register's axes are known only after its last store

    def _find_axes(self, linear: Sequence[UOp]) -> None:
        for node in linear:
            if node.op is Ops.DEFINE_REG:
                self.axes.setdefault(node, ())
                self.simd.setdefault(node, False)
                continue
            axes, simd = self._own_axes(node)
            if node.op is Ops.STORE and node.src[0].memory.op is Ops.DEFINE_REG:
                register = node.src[0].memory
                self.axes[register] = _in_order(axes.union(self.axes[register]))
                self.simd[register] = self.simd[register] or simd
            self.axes[node], self.simd[node] = _in_order(axes), simd

    def _own_axes(self, node: UOp) -> tuple[set[UOp], bool]:
        """The tile ranges that a node depends on, and whether it depends on the LANE range."""
        if node.op is Ops.RANGE:
            kind = node.arg.kind
            return {node} if kind in (AxisKind.UPCAST, AxisKind.UNROLL) else set(), kind is AxisKind.LANE
        if node.op is Ops.END:
            return set(), False
        sources = node.src[:1] if node.op is Ops.AFTER else node.src
        axes, simd = {r for s in sources for r in self.axes[s]}, any(self.simd[s] for s in sources)
        if node.op is Ops.REDUCE:
            axes.difference_update(node.src[1:])
            simd = simd and not any(r.arg.kind is AxisKind.LANE for r in node.src[1:])
        elif node.op is Ops.WMMA:
            axes.difference_update(node.src[3 + len(node.arg.c.elements) :])
        elif node.op is Ops.MATMUL:
            axes.remove(node.src[2])
        elif node.op is Ops.INDEX and node.arg is not None:
            ranges = [r for r, _ in node.arg.steps]
            axes.update(r for r in ranges if r.arg.kind is not AxisKind.LANE)
            simd = simd or any(r.arg.kind is AxisKind.LANE for r in ranges)
        return axes, simd

    def count_values(self, node: UOp) -> int:
        """The number of values, scalars or SIMD values, that are written for a node."""
        if node.op is Ops.MATMUL:  # a row of a tile at a time
            return prod(r.src[0].arg for r in (*self.axes[node], node.src[2])) // self.lanes
        operand = node.src[0] if node.op is Ops.REDUCE else node
        return prod(r.src[0].arg for r in self.axes[operand]) if node.op in _COMPUTING else 0

    def lane_step(self, index: UOp) -> int | None:
        """The distance of neighbouring lanes in memory; None when it is not constant."""
        if self.simd[index.src[1]]:
            return None
        return sum(step for r, step in (index.arg or NO_STEPS).steps if r.arg.kind is AxisKind.LANE)

    def axis_across(self, index: UOp) -> UOp | None:
        """For a load whose lanes are not consecutive: a tile axis along which its elements are, and which is
        as long as a SIMD value. The load can go along that axis, with a transpose. None if there is none."""
        if self.lanes < 4 or self.lane_step(index) in (None, 0, 1):
            return None
        for r, step in (index.arg or NO_STEPS).steps:
            if step == 1 and r.arg.kind is not AxisKind.LANE and r.src[0].arg == self.lanes:
                return r
        return None


def _lane_count(kernel: str, linear: Sequence[UOp]) -> int:
    """The size of the LANE ranges; 1 if there is none."""
    ranges = {n for n in linear if n.op is Ops.RANGE}
    ranges.update(r for n in linear if n.op is Ops.INDEX and n.arg is not None for r, _ in n.arg.steps)
    sizes = {n.src[0].arg for n in ranges if n.arg.kind is AxisKind.LANE}
    if len(sizes) > 1:
        raise InternalError(f"kernel {kernel}: LANE ranges of different sizes, {sorted(sizes)}")
    return sizes.pop() if sizes else 1
