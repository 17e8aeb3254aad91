"""The fusion partition: which nodes of a tensor graph are materialised, that is get a buffer and a kernel.

Three passes over the graph; the first two are after tinygrad's rangeify:

1. From consumers to producers, each node gets the indices at which it is needed. Where consumers need a
   node at different indices, or a reduced value is broadcast, fusion would compute the node more than once.
2. From producers to consumers, such a node is materialised when computing it again is expensive: it contains
   a reduction over memory, or reads more than three buffers; otherwise it is duplicated into its consumers.
   With optimisation, a short reduction to a scalar is duplicated too, because it costs less than a launch. A
   node that is broadcast widely, such as an operand of a matrix product, is materialised unless it is next to
   no work. Of an integer that is converted to a wider dtype, the narrow value is materialised.
3. A node that one kernel would still compute at very many indices is materialised too, and expressions of
   very many operations are divided (`operation_limit.py`).

Requested outputs, CONTIGUOUS, ASSIGN, SCAN_AXIS and FOR always are.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from polygrad.schedule import cost
from polygrad.schedule.index_maps import TRUE, ZERO, Indices, input_indices
from polygrad.schedule.operation_limit import limit_operations
from polygrad.uop.args import AxisKind
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops
from polygrad.uop.shapes import max_numel

MATERIALIZED = frozenset({Ops.CONTIGUOUS, Ops.ASSIGN, Ops.SCAN_AXIS, Ops.FOR})
LEAVES = GroupOp.Memory | {Ops.CONST, Ops.DEFINE_VAR, Ops.ARANGE}
_ENDS_RANGES = GroupOp.Elementwise | {Ops.REDUCE_AXIS, Ops.SCAN_AXIS}


def output_ranges(node: UOp) -> Indices:
    """Fresh loops over a node's elements, numbered from 0; axes of size 1 need none."""
    number = itertools.count()
    scanned = node.arg.axes if node.op is Ops.SCAN_AXIS else ()
    return tuple(
        ZERO
        if isinstance(n, int) and n == 1
        else UOp.range(n, next(number), AxisKind.SCAN if axis in scanned else AxisKind.LOOP)
        for axis, n in enumerate(node.shape)
    )


def reduced_indices(node: UOp, indices: Indices, first_id: int) -> Indices:
    """The indices at which a REDUCE_AXIS reads its input: loops over its axes, numbered from `first_id`."""
    inner = list(indices)
    for i, axis in enumerate(node.arg.axes):
        inner[axis] = UOp.range(node.src[0].shape[axis], first_id + i, AxisKind.REDUCE)
    return tuple(inner)


@dataclass(slots=True)
class _Use:
    """The indices at which a consumer needs a node, in the kernel that computes `kernel`."""

    kernel: UOp
    indices: Indices
    valid: UOp


@dataclass(frozen=True, slots=True)
class _Duplication:
    """The work that fusion would repeat for a node: `uses` at different indices, and `repeats` of its values
    by broadcasts, beyond the first. `rows`: of the product that has it as an operand, if there is one."""

    uses: int
    repeats: int
    rows: int | None = None


def materialization_points(order: list[UOp], outputs: set[UOp], optimized: bool) -> set[UOp]:
    """The nodes of `order`, a toposort, that get a buffer; `outputs` always do."""
    required = {n for n in order if n in outputs or n.op in MATERIALIZED}
    duplications = _find_duplications(order, required)
    points, copying, operations = _materialize_expensive(order, required, duplications, optimized)
    _limit_copies(points, copying)
    limit_operations(operations, points)
    return points


def _find_duplications(order: list[UOp], required: set[UOp]) -> dict[UOp, _Duplication]:
    """The nodes that would be computed more than once if only `required` were materialised."""
    uses: dict[UOp, list[_Use]] = {n: [] for n in order}
    broadcast: dict[UOp, int] = {}  # how often broadcasts repeat a node, as far as the next kernel
    next_id: dict[UOp, int] = {}
    duplications: dict[UOp, _Duplication] = {}
    terms: set[UOp] = set()  # of sums
    operands: set[UOp] = set()  # of products, which these terms are
    for node in reversed(order):
        op = node.op
        if op in LEAVES or op is Ops.SINK or op is Ops.FOR:  # the sources of a FOR are stored
            continue
        node_uses = uses.pop(node)
        distinct = {(u.kernel, u.indices) for u in node_uses}
        if node in required:
            use = _new_use(node, next_id)
            broadcast.pop(node, None)
        else:
            if not node_uses:
                continue
            use = node_uses[0]
            if len(distinct) > 1 or (node in broadcast and op in _ENDS_RANGES):
                factor = broadcast.pop(node, 1)
                rows = factor if node in operands and len(distinct) == 1 else None
                repeats = (factor - 1) * max_numel(node.shape)
                duplications[node] = _Duplication(len(distinct), repeats, rows)
                use = _new_use(node, next_id)
            elif len(node_uses) > 1 and any(u.valid is not use.valid for u in node_uses):
                use = _Use(use.kernel, use.indices, TRUE)
        indices, valid = use.indices, use.valid
        if op in GroupOp.Movement:
            indices, valid = input_indices(node, indices, valid)
        elif op is Ops.REDUCE_AXIS:
            indices = reduced_indices(node, indices, next_id[use.kernel])
            next_id[use.kernel] += len(node.arg.axes)
        if op is Ops.REDUCE_AXIS and node.arg.op is Ops.ADD:
            terms.add(node.src[0])
        elif op is Ops.MUL and node in terms:
            operands.update(node.src)
        elif op in GroupOp.Movement and (node in terms or node in operands):
            (terms if node in terms else operands).add(node.src[0])
        factor = broadcast.get(node, 1)
        if op is Ops.EXPAND:
            factor *= max(max_numel(node.shape) // max(max_numel(node.src[0].shape), 1), 2)
        source_use = _Use(use.kernel, indices, valid)
        for s in node.src:
            if s.op not in LEAVES:
                uses[s].append(source_use)
                if factor > 1:
                    broadcast[s] = max(factor, broadcast.get(s, 1))
    return duplications


def _new_use(node: UOp, next_id: dict[UOp, int]) -> _Use:
    next_id[node] = len(node.shape)
    return _Use(node, output_ranges(node), TRUE)


def _materialize_expensive(
    order: list[UOp], required: set[UOp], duplications: dict[UOp, _Duplication], optimized: bool
) -> tuple[set[UOp], list[UOp], dict[UOp, int]]:
    """The materialisation points, those whose kernels may compute a node at over MAX_COPIES indices, and for
    each a bound of what its kernel costs to compile."""
    points = set(required)
    copying: list[UOp] = []
    operations: dict[UOp, int] = {}
    reads: dict[UOp, frozenset[UOp]] = {}  # the buffers an expression reads, up to one more than allowed
    reduces: set[UOp] = set()  # expressions with a reduction over memory that is not duplicated
    work: dict[UOp, int] = {}  # about how many operations an expression takes
    reduced: dict[UOp, int] = {}  # elements read by the reductions of an expression that may be duplicated
    length: dict[UOp, int] = {}  # an expression takes no more operations, written as a tree
    copies: dict[UOp, int] = {}  # an expression has no node more often than this
    max_reduced = cost.MAX_REPEATED if optimized else 0
    nothing: frozenset[UOp] = frozenset()
    for node in order:
        op = node.op
        if op in GroupOp.Memory:
            reads[node], length[node], copies[node] = frozenset((node,)), 1, 1
            continue
        if not node.src:
            reads[node], length[node], copies[node] = nothing, 1, 1
            continue
        if op is Ops.SINK:
            continue
        node_reads, node_length, node_copies, node_reduced, node_work = (
            nothing,
            cost.compile_cost(op),
            1,
            0,
            0,
        )
        for s in node.src:
            if reads[s] is not node_reads and len(node_reads) <= cost.MAX_BUFFERS:
                node_reads = reads[s] if not node_reads else node_reads | reads[s]
            node_length += length[s]
            node_copies = max(node_copies, copies[s])
            if s in reduces:
                reduces.add(node)
            elif s in reduced:
                node_reduced = max(node_reduced, reduced[s])
            node_work += work.get(s, 0)
        if op in _ENDS_RANGES:
            node_work += cost.run_cost(op)
        if op is Ops.REDUCE_AXIS and node_reads:
            node_reduced += _elements_of_short(node)
            if node_reduced > max_reduced:
                reduces.add(node)
        duplication = duplications.get(node)
        if duplication is not None:
            if node in reduces:
                points.add(node)
            elif optimized and node_work <= cost.MAX_TILE_WORK and _is_in_tile(node, duplication, node_reads):
                pass
            elif len(node_reads) > cost.MAX_BUFFERS or (
                optimized
                and (node_work > cost.CHEAP or _is_small_operand(node, duplication))
                and node_work * duplication.repeats > cost.MAX_BROADCAST
            ):
                points.add(node)
        if (
            optimized
            and node in points
            and node not in required
            and (stored := _find_narrow(node)) is not None
        ):
            points.discard(node)
            reduces.discard(node)
            if stored not in points:
                points.add(stored)
                reduces.discard(stored)
                if copies[stored] > cost.MAX_COPIES:
                    copying.append(stored)
                operations[stored] = length[stored]
                reads[stored], length[stored], copies[stored] = frozenset((stored,)), 1, 1
            node_reads, node_length, node_copies = reads[stored], 1 + cost.compile_cost(op), 1
            node_reduced, node_work = 0, cost.run_cost(op)
        if node in points:
            if node_copies > cost.MAX_COPIES:
                copying.append(node)
            operations[node] = node_length
            reads[node], length[node], copies[node] = frozenset((node,)), 1, 1
            reduces.discard(node)
        else:
            reads[node], work[node] = node_reads, min(node_work, cost.MAX_BROADCAST)
            length[node] = min(node_length, 1 << 30)
            copies[node] = min(node_copies * (duplication.uses if duplication else 1), 1 << 30)
            if node_reduced:
                reduced[node] = node_reduced
    return points, copying, operations


def _find_narrow(node: UOp) -> UOp | None:
    """The computed integer that a node converts to a wider dtype, before it is padded: fewer bytes are
    stored, and a product in the kernel of the narrow value has no condition around it."""
    if node.op is not Ops.CAST or not node.dtype.is_int:
        return None
    source = node.src[0]
    while source.op in (Ops.RESHAPE, Ops.PERMUTE, Ops.PAD) or _is_filled(source):
        source = source.src[1 if source.op is Ops.WHERE else 0]
    if source.op not in _ENDS_RANGES or not source.dtype.is_int:
        return None
    return source if source.dtype.itemsize < node.dtype.itemsize else None


def _is_in_tile(node: UOp, duplication: _Duplication, reads: frozenset[UOp]) -> bool:
    """Whether a register tile of a product should compute its operand `node`. That is so where one tile has
    all rows, so that nothing is computed twice, and for integers that take less than a byte in memory: these
    are unpacked four at a time, again for each tile of rows (codegen/lower/dot_words.py)."""
    if duplication.rows is None:
        return False
    if duplication.rows <= cost.MAX_TILE_ROWS:
        return True
    return node.dtype.is_int and sum(max_numel(m.shape) * m.dtype.itemsize for m in reads) < max_numel(
        node.shape
    )


def _is_small_operand(node: UOp, duplication: _Duplication) -> bool:
    """Whether a node is an operand of a product of floats that is much smaller than the other operand, as a
    row beside a matrix. Then even little work for each element is much beside loads and multiply-adds. A
    conversion is not counted: products read narrow operands as they are."""
    is_computed = node.dtype.is_float and node.op is not Ops.CAST
    return duplication.rows is not None and is_computed and max_numel(node.shape) <= cost.MAX_SMALL_OPERAND


def _is_filled(node: UOp) -> bool:
    """Whether a node is padding with a number other than 0."""
    return node.op is Ops.WHERE and node.src[0].op is node.src[1].op is Ops.PAD


def _elements_of_short(reduction: UOp) -> int:
    """The number of elements that a reduction to a scalar reads; more than MAX_REPEATED for other
    reductions."""
    size = max_numel(reduction.src[0].shape)
    return size if all(isinstance(n, int) and n == 1 for n in reduction.shape) else cost.MAX_REPEATED + 1


def _limit_copies(points: set[UOp], large: list[UOp]) -> None:
    """Materialise the nodes that the kernels of `large` would compute at more than MAX_COPIES indices, as in
    a stencil of a stencil of a stencil."""
    while large:
        root = large.pop()
        next_id = len(root.shape)
        positions_of: dict[UOp, dict[tuple[Indices, UOp], None]] = {root: {(output_ranges(root), TRUE): None}}
        for node in reversed(root.toposort(lambda n, root=root: n is root or n not in points)):  # type: ignore[misc]
            positions = positions_of.pop(node, None)
            op = node.op
            if positions is None or op in LEAVES or (node in points and node is not root):
                continue
            if len(positions) > cost.MAX_COPIES and op in _ENDS_RANGES:
                points.add(node)
                large.append(node)
                continue
            for indices, valid in positions:
                if op in GroupOp.Movement:
                    indices, valid = input_indices(node, indices, valid)
                elif op is Ops.REDUCE_AXIS:
                    indices, next_id = reduced_indices(node, indices, next_id), next_id + len(node.arg.axes)
                for s in node.src:
                    positions_of.setdefault(s, {})[indices, valid] = None
