"""Reduction fusion: a reduction moves into the only kernel that reads it, when that costs no work.

    softmax in three kernels, which go through memory three times:
        max over each row; sum over each row; every element of each row
    in one kernel, whose row stays in the cache:
        for each row: { max; sum; every element }

Fusion costs nothing if the reader's outermost loops are exactly the loops over the reduction's results: each
result is still computed once. A reader that reduces along its inner loops (a matrix product) is left alone,
because its loops get reordered. A reader whose loop goes through several results' elements (the channels of
all groups of a group normalisation) is split into blocks first, one for each result.

Positions that keyed_scan.py computes move into the kernel that writes at them, if both go through the same
loops in the same order.

compute_at.py also moves a kernel into its only reader, for other reasons; multi_output.py moves reductions
that others read, too.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import NamedTuple

from polygrad.codegen.kernels.division import is_temporary
from polygrad.codegen.kernels.kernel_opt import (
    AxisId,
    Calls,
    Decide,
    Decisions,
    KernelContext,
    KernelOpt,
    Kind,
    Proposal,
)
from polygrad.codegen.kernels.split_ranges import loop_and_divisor, split_range
from polygrad.errors import OptError
from polygrad.schedule import cost
from polygrad.schedule.kernel_info import Access, NestInfo, kernel_info, rounds
from polygrad.schedule.kernels import KernelCall, join_places
from polygrad.schedule.operation_limit import exceeds_limit
from polygrad.uop.args import AxisKind
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

_ProposePair = Callable[[KernelCall, KernelCall, KernelContext], Proposal | None]


def each_pair(propose: _ProposePair, kept: bool = False) -> Decide:
    """Proposals for each producer with one reader, and that reader, beginning with the last producer. `kept`:
    for those whose output others need, too, and the first reader."""
    return lambda calls, context: _propose_for_pairs(calls, context, propose, kept)


def _propose_for_pairs(calls: Calls, context: KernelContext, propose: _ProposePair, kept: bool) -> Decisions:
    refused: set[tuple[UOp, UOp, tuple[int, ...]]] = set()  # equal layers and trips have equal pairs
    readers: dict[UOp, set[int]] = {}  # by their numbers in the original list
    for i, call in enumerate(calls):
        for arg in call.read:
            readers.setdefault(arg, set()).add(i)
    removed: list[int] = []  # sorted
    for i in range(len(calls) - 1, -1, -1):
        producer = calls[i]
        node = producer.args[0]
        own = readers.get(node, set())
        others_need_it = len(own) > 1 or _stays(node, context.results)
        if not own or others_need_it is not kept:
            continue
        first = min(own)
        j = first - bisect_left(removed, first)
        if not is_kept_until(calls, i, j):
            continue
        numbers: dict[UOp, int] = {}
        pattern = tuple([numbers.setdefault(a, len(numbers)) for a in (*producer.args, *calls[j].args)])
        pair = (producer.ast, calls[j].ast, pattern)
        proposal = None if pair in refused else propose(producer, calls[j], context)
        if proposal is None:
            refused.add(pair)
            continue
        before = calls
        calls = yield proposal._replace(opt=proposal.opt._replace(kernels=(i, j)))
        if calls is before:
            refused.add(pair)
            continue
        removed.insert(0, i)
        own.discard(first)  # it computes what it read
        for arg in producer.read:
            readers[arg].discard(i)
            readers[arg].add(first)
    return calls


def require_only_reader(calls: Calls, i: int, j: int, results: Collection[UOp]) -> None:
    """Raises OptError unless kernel `j` is the only reader of kernel `i`, and can compute it."""
    node = calls[i].args[0]
    only = [k for k, c in enumerate(calls) if node in c.read] == [j]
    if not only or i >= j or _stays(node, results) or not is_kept_until(calls, i, j):
        raise OptError("expected a kernel whose output one kernel reads, behind it, and no others need")


def _stays(node: UOp, results: Collection[UOp]) -> bool:
    """Whether a node's memory is visible to others: a result, memory that is written, or a requested
    value."""
    return node in results or is_older(node) or node.op is Ops.CONTIGUOUS


def is_older(node: UOp) -> bool:
    """Whether a node is memory that was there before all kernels."""
    return node.op is Ops.BUFFER and not is_temporary(node)


def is_kept_until(calls: Calls, i: int, j: int) -> bool:
    """Whether no memory that kernel `i` reads or stores is written before the end of kernel `j`."""
    return all(set(c.written).isdisjoint(calls[i].args) for c in calls[i + 1 : j + 1])


# --- reductions of rows


def propose_fuse(producer: KernelCall, reader: KernelCall, context: KernelContext) -> Proposal | None:
    """A reduction of rows moved into its reader, if that does not get too many buffers and operations."""
    max_buffers = context.target.max_buffers
    if producer.args[0] in context.apart or exceeds_limit(producer.ast, reader.ast):
        return None
    if max_buffers and len(join_args(producer, reader)) > max_buffers:
        return None
    axes, numbers = _blocks_of_results(producer, reader)
    rows = shared_rows(producer, in_blocks(reader, axes, numbers))
    if rows is None:
        return None
    return Proposal(KernelOpt(Kind.FUSE, (), axes, numbers), rounds(rows.loops.values()) >= cost.MIN_ROWS)


def propose_fuse_positions(
    producer: KernelCall, reader: KernelCall, context: KernelContext
) -> Proposal | None:
    """Positions that running values give, moved into the kernel that writes at them."""
    nest = kernel_info(producer.ast).only_nest
    if nest is None or not nest.is_ordered or exceeds_limit(producer.ast, reader.ast):
        return None
    return None if shared_rows(producer, reader) is None else Proposal(KernelOpt(Kind.FUSE))


def fuse(calls: Calls, opt: KernelOpt, context: KernelContext) -> Calls:
    """The kernels, in which the only reader of a reduction computes it instead of loading it."""
    i, j = opt.kernels
    require_only_reader(calls, i, j, context.results)
    producer, reader = calls[i], in_blocks(calls[j], opt.axes, opt.numbers)
    if (rows := shared_rows(producer, reader)) is None:
        raise OptError(
            "expected a kernel with a reduction, of rows that the outermost loops of the other have"
        )
    args = join_args(producer, reader)
    value = move_value(rows.store.src[1], rows.loops, producer.args, args)
    ast = renumber(reader.ast.substitute({rows.load: value}), reader, args)
    joined = KernelCall(ast, tuple(args), places=join_places(reader, producer), results=reader.results)
    return [*calls[:i], *calls[i + 1 : j], joined, *calls[j + 1 :]]


def _blocks_of_results(
    producer: KernelCall, reader: KernelCall
) -> tuple[tuple[AxisId, ...], tuple[int, ...]]:
    """The loop of a reader whose rounds read the same result `size` times in a row, and that size; nothing
    where each round reads another."""
    slot = reader.args.index(producer.args[0])
    for load in kernel_info(reader.ast).loads:
        for position in load.terms if load.slot == slot else ():
            blocks = loop_and_divisor(position) if position.op is Ops.IDIV else None
            if blocks is None or blocks[0].arg.kind is not AxisKind.LOOP:
                continue
            if blocks[0].src[0].arg % blocks[1] == 0:
                return (blocks[0].arg.id,), blocks[1:]
    return (), ()


def in_blocks(reader: KernelCall, axes: tuple[AxisId, ...], sizes: tuple[int, ...]) -> KernelCall:
    """The reader with the loop that `_blocks_of_results` found, if any, split."""
    return replace(reader, ast=split_range(reader.ast, axes, sizes)) if axes else reader


def join_args(producer: KernelCall, reader: KernelCall) -> list[UOp]:
    """The arguments of the joined kernel: the reader's without the producer's output, then the producer's."""
    args = [a for a in reader.args if a is not producer.args[0]]
    return args + [a for a in dict.fromkeys(producer.read) if a not in args]


class Rows(NamedTuple):
    """A producer's STORE, the reader's load of it, and the reader's loop for each loop of the producer."""

    store: UOp
    load: UOp
    loops: dict[UOp, UOp]


def shared_rows(producer: KernelCall, reader: KernelCall) -> Rows | None:
    """The rows that a reduction and its reader share; None if work would be done twice."""
    info = kernel_info(reader.ast)
    source = kernel_info(producer.ast).only_nest
    if source is None or not source.loops or len(info.nests) != 1:
        return None
    scans = [n for n in source.order if n.op is Ops.SCAN]
    if not (all(n.dtype.is_int for n in scans) if scans else source.sums):
        return None
    slot = reader.args.index(producer.args[0])
    loads = [n for n in info.loads if n.slot == slot]
    if len(loads) != 1 or loads[0].condition is not None:
        return None
    rows = match_ranges(source.write, loads[0])
    if (
        rows is None
        or len(rows) < len(source.loops)
        or not (_are_in_order(rows, source, info.nests[0]) if scans else are_rows(rows, info.nests[0]))
    ):
        return None
    return Rows(source.store, loads[0].node, rows)


def match_ranges(write: Access, load: Access) -> dict[UOp, UOp] | None:
    """The reader's range for each range of the producer, when both visit the same elements in the same
    order."""
    if write.offset or load.offset or len(write.terms) != len(load.terms):
        return None
    by_stride = {(stride, r.src[0].arg): r for r, stride in load.strides.items() if r.src[0].is_const}
    matches = {}
    for r, stride in write.terms.items():
        match = by_stride.get((stride, r.src[0].arg)) if r.op is Ops.RANGE and r.src[0].is_const else None
        if match is None:
            return None
        matches[r] = match
    return matches if len(set(matches.values())) == len(matches) else None


def are_rows(rows: dict[UOp, UOp], nest: NestInfo) -> bool:
    """Whether the matched ranges are the outermost loops of `nest`, may be divided between threads, and no
    inner loop reduces."""
    outer, inner = nest.loops[: len(rows)], nest.loops[len(rows) :]
    if set(outer) != set(rows.values()) or any(r.arg.kind is AxisKind.SCAN for r in outer):
        return False
    return all(total.outer.isdisjoint(inner) for total in nest.sums)


def _are_in_order(rows: dict[UOp, UOp], source: NestInfo, nest: NestInfo) -> bool:
    """Whether the matched ranges are all loops of `nest`, and the same ones go in order in both."""
    loops = tuple([rows[r] for r in source.loops])
    kinds = [(r.arg.kind, match.arg.kind) for r, match in rows.items()]
    return loops == nest.loops and all(a is b for a, b in kinds)


def move_value(value: UOp, rows: dict[UOp, UOp], args: tuple[UOp, ...], new_args: list[UOp]) -> UOp:
    """The producer's value in the reader, with the reader's ranges for its `rows`. Other ranges and PARAMs
    have negative numbers until `renumber`.

    sum(PARAM 1 [8*r0 + r1] for r1 < 8), r0 = i of the reader

    ->  sum(PARAM -3 [8*i + r(-1, 1)] for r(-1, 1) < 8), if the argument is number 2 of `new_args`
    """
    changes: dict[UOp, UOp] = dict(rows)
    for node in value.toposort():
        if node.op is Ops.RANGE and node not in rows:
            changes[node] = node.replace(arg=node.arg._replace(id=(-1, *node.arg.id)))
        elif node.op is Ops.PARAM:
            slot = -1 - new_args.index(args[node.arg.slot])
            changes[node] = node.replace(arg=node.arg._replace(slot=slot))
    return value.substitute(changes)


def renumber(sink: UOp, reader: KernelCall, args: list[UOp]) -> UOp:
    """Number PARAMs by their place in `args`: a negative slot is -1 - place, others are the reader's. Ranges
    are numbered in order, those with negative numbers last.

    r0, r2, r(-1, 1), PARAM -3  ->  r0, r1, r2, PARAM 2
    """
    order = sink.toposort()
    ranges = sorted((n for n in order if n.op is Ops.RANGE), key=lambda r: (r.arg.id[0] < 0, r.arg.id))
    changes = {r: r.replace(arg=r.arg._replace(id=(i,))) for i, r in enumerate(ranges)}
    for node in order:
        if node.op is Ops.PARAM:
            slot = node.arg.slot
            place = -1 - slot if slot < 0 else args.index(reader.args[slot])
            changes[node] = node.replace(arg=node.arg._replace(slot=place))
    return sink.substitute(changes)
