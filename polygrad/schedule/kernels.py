"""From a materialised node to its kernel: one scalar expression over ranges, with loads and one store.

A kernel's AST is `SINK(END(STORE(INDEX(PARAM 0, i), value), *ranges))`; REDUCE nodes stand where the values
are needed, a SCAN where running values are stored. PARAMs and ranges are numbered within the kernel, so equal
computations (a network's equal layers) are the same node.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from polygrad.dtype import dtypes
from polygrad.errors import InternalError
from polygrad.schedule.fusion_partition import LEAVES, output_ranges, reduced_indices
from polygrad.schedule.index_maps import TRUE, Indices, flat_index, input_indices
from polygrad.uop.args import AxisKind, Param
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops
from polygrad.uop.origins import Place
from polygrad.uop.path_conditions import conjuncts
from polygrad.uop.shapes import sint_max


@dataclass(frozen=True, slots=True)
class KernelCall:
    """A kernel and the nodes that its PARAMs stand for: first the `results` nodes that it stores (or BUFFERs
    that it writes), then those that it reads. `offsets`: the byte at which each PARAM begins in its node's
    memory; empty: all at 0. `places`: the lines of the program that it comes from, while they are recorded;
    that of its first result first."""

    ast: UOp
    args: tuple[UOp, ...]
    offsets: tuple[int, ...] = ()
    places: tuple[Place, ...] = field(default=(), compare=False)
    results: int = 1

    @property
    def written(self) -> tuple[UOp, ...]:
        return self.args[: self.results]

    @property
    def read(self) -> tuple[UOp, ...]:
        """What it reads, apart from memory that it also writes."""
        return self.args[self.results :]


def join_places(reader: KernelCall, producer: KernelCall) -> tuple[Place, ...]:
    """The places of a kernel that does what both do."""
    return tuple(dict.fromkeys((*reader.places, *producer.places)))


def storage_of(node: UOp) -> UOp:
    """The node whose buffer holds the value of a stored node: itself, or the BUFFER that an ASSIGN writes."""
    return (written_memory(node) if node.op is Ops.ASSIGN else node).buffer


def written_memory(assign: UOp) -> UOp:
    """The memory that an ASSIGN writes to: a BUFFER or an AFTER, in which it is the next version."""
    memory, _ = assign.src[0].movements()
    return memory


def make_kernel(node: UOp, stored: set[UOp]) -> KernelCall:
    """The kernel that computes the stored `node` from other stored nodes and BUFFERs.

    x.permute(1, 0) + y  ->  SINK(END(STORE(PARAM 0 [r0*n + r1], PARAM 1 [r1*m + r0] + PARAM 2 [r0*n + r1]),
    r0, r1))
    """
    return _KernelMaker(stored).make(node)


class _KernelMaker:
    def __init__(self, stored: set[UOp]) -> None:
        self.stored = stored
        self.slots: dict[UOp, UOp] = {}
        self.next_range = 0

    def make(self, node: UOp) -> KernelCall:
        if node.op is Ops.ASSIGN and node.arg is not None:  # a kernel written by hand
            return KernelCall(node.arg, tuple([storage_of(s.base) for s in node.src]))
        ranges = output_ranges(node)
        self.next_range = sum(r.op is Ops.RANGE for r in ranges)
        if node.op is Ops.ASSIGN:
            target, source = node.src
            pointer, index, valid = self._locate(target, ranges, TRUE)
            if valid is not TRUE:
                raise InternalError(f"a write to padding: {valid}")
        else:
            source = node.src[0] if node.op is Ops.CONTIGUOUS else node
            pointer, index = self._param(node), flat_index(node.shape, ranges)
        if source is node:
            value = self._lower_stored(node, ranges)
        else:
            value = self._lower(source, ranges, TRUE)
        store = UOp(Ops.STORE, dtypes.void, (UOp(Ops.INDEX, node.dtype, (pointer, index)), value))
        loops = sorted((r for r in ranges if r.op is Ops.RANGE), key=lambda r: r.arg.kind is AxisKind.SCAN)
        nest = UOp(Ops.END, dtypes.void, (store, *loops)) if loops else store
        ast = UOp(Ops.SINK, dtypes.void, (nest,), node.arg if node.op is Ops.CONTIGUOUS else None)
        return KernelCall(ast, tuple(self.slots))

    def _param(self, node: UOp) -> UOp:
        node = storage_of(node)
        param = self.slots.get(node)
        if param is None:
            size = 1
            for n in node.shape:
                size *= sint_max(n)
            param = self.slots[node] = UOp(Ops.PARAM, node.dtype, (), Param(len(self.slots), size))
        return param

    def _locate(self, node: UOp, indices: Indices, valid: UOp) -> tuple[UOp, UOp, UOp]:
        """The pointer, flat index and condition of an element of a view of a stored node."""
        while node.op not in GroupOp.Memory and node not in self.stored:
            indices, valid = input_indices(node, indices, valid)
            node = node.src[0]
        return self._param(node), flat_index(node.shape, indices), valid

    def _lower_stored(self, node: UOp, indices: Indices) -> UOp:
        """The value of a stored node, computed and not loaded."""
        self.stored.discard(node)
        try:
            return self._lower(node, indices, TRUE)
        finally:
            self.stored.add(node)

    def _lower(self, root: UOp, indices: Indices, valid: UOp) -> UOp:
        """The scalar expression of `root` at `indices`. Iterative: it may be a thousand nodes deep."""
        memo: dict[tuple[UOp, Indices, UOp], UOp] = {}
        source_position: dict[tuple[UOp, Indices, UOp], tuple[Indices, UOp]] = {}
        stack = [(root, indices, valid)]
        while stack:
            key = stack[-1]
            if key in memo:
                stack.pop()
                continue
            node, node_indices, node_valid = key
            if node.op in LEAVES or node in self.stored:
                memo[key] = self._leaf(node, node_indices, node_valid)
                stack.pop()
                continue
            if key not in source_position:
                source_position[key] = self._source_position(node, node_indices, node_valid)
            src_indices, src_valid = source_position[key]
            sources = [(s, src_indices, src_valid) for s in node.src]
            missing = [w for w in sources if w not in memo]
            if missing:
                stack.extend(reversed(missing))
                continue
            src = tuple([memo[w] for w in sources])
            memo[key] = self._apply(node, node_valid, src, src_indices, src_valid)
            stack.pop()
        return memo[root, indices, valid]

    def _source_position(self, node: UOp, indices: Indices, valid: UOp) -> tuple[Indices, UOp]:
        """The indices at which `node` needs its sources, and under which condition."""
        if node.op in GroupOp.Movement:
            return input_indices(node, indices, valid)
        if node.op is Ops.REDUCE_AXIS:
            first, self.next_range = self.next_range, self.next_range + len(node.arg.axes)
            return reduced_indices(node, indices, first), valid
        return indices, valid

    def _leaf(self, node: UOp, indices: Indices, valid: UOp) -> UOp:
        if node.op is Ops.CONST or node.op is Ops.DEFINE_VAR:
            return node
        if node.op is Ops.ARANGE:
            return indices[0].cast(node.dtype)
        pointer, index, valid = self._locate(node, indices, valid)
        if valid is TRUE:
            return UOp(Ops.LOAD, node.dtype, (UOp(Ops.INDEX, node.dtype, (pointer, index)),))
        gated = UOp(Ops.INDEX, node.dtype, (pointer, index, valid))
        return UOp(Ops.LOAD, node.dtype, (gated, UOp.const(node.dtype, 0)))

    def _apply(
        self, node: UOp, valid: UOp, src: tuple[UOp, ...], src_indices: Indices, src_valid: UOp
    ) -> UOp:
        """`node` of its sources' values `src`, which are those at `src_indices` where `src_valid` holds."""
        op = node.op
        if op is Ops.PAD:
            if src_valid is valid or _is_masked(src[0], src_valid):
                return src[0]
            return src_valid.where(src[0], UOp.const(node.dtype, 0))
        if op in GroupOp.Movement:
            return src[0]
        if op in GroupOp.Elementwise:
            return UOp(op, node.dtype, src, node.arg)
        if op is Ops.REDUCE_AXIS:
            ranges = tuple(src_indices[axis] for axis in node.arg.axes)
            return UOp(Ops.REDUCE, node.dtype, (src[0], *ranges), node.arg.op)
        if op is Ops.SCAN_AXIS:
            (axis,) = node.arg.axes
            r = src_indices[axis]
            if r.op is not Ops.RANGE:  # one element
                return next_value(node.arg.op, src[1], src[0], *src[2:])
            return UOp(Ops.SCAN, node.dtype, (r, *src), node.arg.op)
        raise InternalError(f"{op} cannot be fused into a kernel")


def next_value(op: Ops, previous: UOp, value: UOp, *factor: UOp) -> UOp:
    """A SCAN's value in a round, from its value in the round before."""
    return UOp(op, value.dtype, (previous, *factor, value))


def _is_masked(value: UOp, valid: UOp) -> bool:
    """Whether `value` is already zero where `valid` fails."""
    if value.op is not Ops.LOAD or len(value.src[0].src) < 3:
        return False
    gate = value.src[0].src[2]
    return gate is valid or set(conjuncts(valid)).issubset(conjuncts(gate))
