"""Reductions over LOCAL axes: the invocations of a workgroup combine their parts.

A tree in shared memory: each invocation stores its part, then half of them add what the other half has, then
half of those, and so on. Where the invocations of a subgroup exchange values in registers, SHUFFLE_XOR does
the rounds of the tree within subgroups, with the same bits. A reduction within one subgroup needs no memory.
"""

from __future__ import annotations

from collections.abc import Callable

from polygrad.codegen.lower.workgroup_dimensions import Workgroup
from polygrad.codegen.lower.workgroup_memory import Item, WorkgroupMemory, load, require_uniform, store
from polygrad.codegen.opts.split import gated
from polygrad.codegen.opts.tile import is_tile, loops_of
from polygrad.dtype import dtypes
from polygrad.errors import OptError
from polygrad.helpers import prod
from polygrad.schedule.index_maps import flat_index
from polygrad.uop.args import Axis, AxisKind
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.symbolic import simplify

_EXCHANGED = frozenset(
    {dtypes.float32, dtypes.int32, dtypes.uint32, dtypes.float64, dtypes.int64, dtypes.uint64}
)


class Reductions:
    """The reductions that the invocations of a workgroup share."""

    def __init__(self, group: Workgroup, memory: WorkgroupMemory) -> None:
        self.group, self.memory = group, memory
        self.limits, self.new = memory.limits, memory.new

    def needs_memory(self, node: UOp) -> bool:
        """Whether a node is a reduction in memory of the workgroup."""
        return node.op is Ops.REDUCE and any(map(_is_local, node.src[1:])) and not self.is_in_registers(node)

    def is_in_registers(self, node: UOp) -> bool:
        """Whether a node is a reduction over invocations of one subgroup, which exchange their parts."""
        if node.op is not Ops.REDUCE:
            return False
        axes = [r for r in node.src[1:] if _is_local(r)]
        if len(axes) != 1 or not self._has_shuffles(node):
            return False
        return self._exchanging(axes[0]) == axes[0].src[0].arg

    def exchange(self, node: UOp) -> UOp:
        """The value of a reduction in registers. Raises OptError in a loop that some invocations go round
        more often than others."""
        require_uniform(self.new[r] for r in loops_of(node))
        return self._butterfly(node, self._part(node), _shared_axis(node).src[0].arg)

    def tree(self, node: UOp) -> Item:
        """The memory of a reduction over one LOCAL axis: a tree of the invocations' parts."""
        axis = _shared_axis(node)
        part = self._part(node)
        number, size = self.new[axis], axis.src[0].arg
        gate = self.group.gate([axis, *self._beside(node)])
        memory = self.memory.allocate(node, self._extent(node, axis))

        def start(pointer: UOp) -> UOp:
            effect = store(pointer, self._place(node, axis, number), part)
            return effect if gate is None else gated(effect, gate)

        def total(pointer: UOp) -> UOp:
            return self._total(node, pointer)

        if self._has_shuffles(node):  # the rest is in registers, of all invocations: see _total
            return Item(memory, [start], total)

        def half(count: int) -> Callable[[UOp], UOp]:
            def step(pointer: UOp) -> UOp:
                active = number < count
                if gate is not None:
                    # those that would do the same must not even read what is written: they take no part
                    axis_of_branch = Axis((*axis.arg.id, memory.arg.slot, count), AxisKind.LOOP)
                    branch = UOp.range((active & gate).cast(dtypes.index), axis_of_branch)
                    pointer = UOp(Ops.AFTER, pointer.dtype, (*pointer.src, branch))
                    here, there = (self._place(node, axis, n) for n in (number, number + count))
                    both = UOp(node.arg, node.dtype, (load(pointer, here), load(pointer, there)))
                    return UOp(Ops.END, dtypes.void, (store(pointer, here, both), branch))
                there = self._place(node, axis, active.where(number + count, number))
                here = self._place(node, axis, number)
                both = UOp(node.arg, node.dtype, (load(pointer, here), load(pointer, there)))
                return gated(store(pointer, here, both), active)

            return step

        halves = [half(size >> i) for i in range(1, size.bit_length())]
        return Item(memory, [start, *halves], total)

    def _beside(self, node: UOp) -> list[UOp]:
        """The axes that the parts of a group's reduction have beside its own: other invocations, the tile."""
        kept = [r for r in node.ranges if _is_local(r) or is_tile(r)]
        return sorted(kept, key=lambda r: (r.arg.kind is AxisKind.LANE, r.arg.id))

    def _extent(self, node: UOp, axis: UOp) -> int:
        return int(prod(r.src[0].arg for r in (axis, *self._beside(node))))

    def _place(self, node: UOp, axis: UOp, number: UOp) -> UOp:
        beside = self._beside(node)
        sizes = tuple(r.src[0].arg for r in (axis, *beside))
        return simplify(flat_index(sizes, (number, *(self.new[r] for r in beside))))

    def _total(self, node: UOp, pointer: UOp) -> UOp:
        axis = _shared_axis(node)
        if not self._has_shuffles(node):
            return load(pointer, self._place(node, axis, UOp.index(0)))
        inner = self._exchanging(axis)
        lane = simplify(self.new[axis] % inner)
        count = axis.src[0].arg // inner
        values = [load(pointer, self._place(node, axis, lane + i * inner)) for i in range(count)]
        while count > 1:  # as the tree does
            count //= 2
            values = [UOp(node.arg, node.dtype, (values[i], values[i + count])) for i in range(count)]
        return self._butterfly(node, values[0], inner)

    def _part(self, node: UOp) -> UOp:
        """What an invocation has of a reduction."""
        loops = [self.new[r] for r in node.src[1:] if not _is_local(r)]
        value = self.new[node.src[0]]
        return UOp(Ops.REDUCE, node.dtype, (value, *loops), node.arg) if loops else value

    def _has_shuffles(self, node: UOp) -> bool:
        """Whether the invocations of a subgroup exchange such values."""
        is_word = node.dtype in _EXCHANGED and node.dtype.itemsize <= self.limits.shuffle_bytes
        return is_word and self.group.count % self.limits.subgroup == 0

    def _exchanging(self, axis: UOp) -> int:
        """How many neighbours along an axis are in one subgroup."""
        stride = self.group.stride_of(axis)
        if stride & (stride - 1):
            return 1
        return max(min(axis.src[0].arg, self.limits.subgroup // stride), 1)

    def _butterfly(self, node: UOp, value: UOp, count: int) -> UOp:
        """`value` of `count` neighbours combined: the sums of the tree, in all of them.

        value, 4 neighbours  ->  v = value + SHUFFLE_XOR(value, 2);  v + SHUFFLE_XOR(v, 1)
        """
        stride = self.group.stride_of(_shared_axis(node))
        while count > 1:
            count //= 2
            other = UOp(Ops.SHUFFLE_XOR, node.dtype, (value,), count * stride)
            value = UOp(node.arg, node.dtype, (value, other))
        return value


def _shared_axis(node: UOp) -> UOp:
    """The LOCAL axis that a reduction is over."""
    axis, *more = [r for r in node.src[1:] if _is_local(r)]
    if more:
        raise OptError("expected a reduction that one GROUP shares")
    return axis


def _is_local(r: UOp) -> bool:
    return r.op is Ops.RANGE and r.arg.kind is AxisKind.LOCAL
