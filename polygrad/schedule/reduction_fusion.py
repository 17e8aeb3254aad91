"""Reduction fusion: a reduction moves into the only kernel that reads it, when that costs no work.

    softmax in three kernels, which go through memory three times:
        max over each row; sum over each row; every element of each row
    in one, whose row stays in the cache:
        for each row: { max; sum; every element }

It costs nothing when the reader's outermost loops are just the loops over the reduction's results: then each
result is still computed once. A reader that reduces along its inner loops (a matrix product) is left alone:
its loops get reordered.

An optimisation: without it, kernels are those that tinygrad makes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator
from typing import NamedTuple

from polygrad.schedule import cost
from polygrad.schedule.kernel_info import Access, NestInfo, kernel_info, rounds
from polygrad.schedule.kernels import KernelCall
from polygrad.schedule.operation_limit import exceeds_limit
from polygrad.uop.args import AxisKind
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

_STAYS = frozenset({Ops.BUFFER, Ops.CONTIGUOUS})  # memory that is written, or was asked for


def fuse_reductions(calls: list[KernelCall], outputs: set[UOp], max_buffers: int = 0) -> list[KernelCall]:
    """The kernels with row reductions moved into their readers. `outputs` stay stored; `max_buffers`: of a
    kernel; 0: any number."""

    def joined(producer: KernelCall, reader: KernelCall) -> KernelCall | None:
        if max_buffers and len(join_args(producer, reader)) > max_buffers:
            return None
        if exceeds_limit(producer.ast, reader.ast):
            return None
        return _fuse_pair(producer, reader)

    return fuse(calls, outputs, joined)


def fuse(
    calls: list[KernelCall],
    outputs: set[UOp],
    joined: Callable[[KernelCall, KernelCall], KernelCall | None],
) -> list[KernelCall]:
    """The kernels. A producer with one reader and that reader become the kernel that `joined` gives for them,
    unless it gives None. `outputs` stay stored."""
    pairs, fused = pairs_to_fuse(calls, outputs), None
    while True:
        try:
            pair = pairs.send(fused)
        except StopIteration as end:
            out: list[KernelCall] = end.value
            return out
        fused = joined(pair.producer, pair.reader)


class Pair(NamedTuple):
    """A producer, its only reader, and their places in the list of kernels as it is then."""

    producer: KernelCall
    reader: KernelCall
    first: int
    second: int


def pairs_to_fuse(
    calls: list[KernelCall], outputs: Collection[UOp]
) -> Generator[Pair, KernelCall | None, list[KernelCall]]:
    """Each producer with one reader and that reader, from the last producer on. Sent the kernel of both,
    which takes the reader's place, or None; gives the kernels in the end. `outputs` stay stored."""
    out: list[KernelCall | None] = list(calls)
    refused: set[tuple[UOp, UOp, tuple[int, ...]]] = set()  # equal layers and trips have equal pairs
    readers: dict[UOp, set[int]] = {}
    for i, call in enumerate(calls):
        for arg in call.args[1:]:
            readers.setdefault(arg, set()).add(i)
    for i in range(len(calls) - 1, -1, -1):
        producer = out[i]
        assert producer is not None
        node = producer.args[0]
        node_readers = readers.get(node, set())
        if node in outputs or node.op in _STAYS or len(node_readers) != 1:
            continue
        j = next(iter(node_readers))
        reader = out[j]
        assert reader is not None
        written = {c.args[0] for c in out[i + 1 : j + 1] if c is not None}
        if written.intersection(producer.args):
            continue
        numbers: dict[UOp, int] = {}
        pattern = tuple([numbers.setdefault(a, len(numbers)) for a in (*producer.args, *reader.args)])
        pair = (producer.ast, reader.ast, pattern)
        if pair in refused:
            continue
        fused = yield Pair(producer, reader, i, j - out[i:j].count(None))
        if fused is None:
            refused.add(pair)
            continue
        out[i], out[j] = None, fused
        for arg in producer.args[1:]:
            readers[arg].discard(i)
            readers[arg].add(j)
    return [c for c in out if c is not None]


def may_fuse(calls: list[KernelCall], first: int, second: int, outputs: Collection[UOp]) -> bool:
    """Whether kernel `second` is the only reader of kernel `first`, and can be so at its own place."""
    node = calls[first].args[0]
    written = {c.args[0] for c in calls[first + 1 : second + 1]}
    readers = [i for i, c in enumerate(calls) if node in c.args[1:]]
    stays = node in outputs or node.op in _STAYS
    return readers == [second] and not stays and written.isdisjoint(calls[first].args)


def join_args(producer: KernelCall, reader: KernelCall) -> list[UOp]:
    """The arguments of a kernel of both: the reader's without the producer's output, then the producer's."""
    args = [a for a in reader.args if a is not producer.args[0]]
    return args + [a for a in dict.fromkeys(producer.args[1:]) if a not in args]


def _fuse_pair(producer: KernelCall, reader: KernelCall) -> KernelCall | None:
    """The reader with the value of `producer` in the place of its load; None if work would be done twice."""
    info = kernel_info(reader.ast)
    source = kernel_info(producer.ast).only_nest
    if source is None or not source.loops or len(info.nests) != 1 or not source.sums:
        return None
    if any(n.op is Ops.SCAN for n in source.order):
        return None
    slot = reader.args.index(producer.args[0])
    loads = [n for n in info.loads if n.slot == slot]
    if len(loads) != 1 or loads[0].condition is not None:
        return None
    rows = _match_ranges(source.write, loads[0])
    if rows is None or not _are_rows(rows, info.nests[0]):
        return None
    args = join_args(producer, reader)
    value = move_value(source.value, rows, producer.args, args)
    return KernelCall(renumber(reader.ast.substitute({loads[0].node: value}), reader, args), tuple(args))


def _match_ranges(write: Access, load: Access) -> dict[UOp, UOp] | None:
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


def _are_rows(rows: dict[UOp, UOp], nest: NestInfo) -> bool:
    """The matched ranges are the outermost loops of `nest`, which may be divided between threads, and nothing
    is reduced further in."""
    outer, inner = nest.loops[: len(rows)], nest.loops[len(rows) :]
    if set(outer) != set(rows.values()) or any(r.arg.kind is AxisKind.SCAN for r in outer):
        return False
    return rounds(outer) >= cost.MIN_ROWS and all(total.outer.isdisjoint(inner) for total in nest.sums)


def move_value(value: UOp, rows: dict[UOp, UOp], args: tuple[UOp, ...], new_args: list[UOp]) -> UOp:
    """The producer's value in the reader, with the reader's ranges for its `rows`. Other ranges and PARAMs
    have negative numbers until `renumber`."""
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
    are numbered in order, those with negative numbers last."""
    order = sink.toposort()
    ranges = sorted((n for n in order if n.op is Ops.RANGE), key=lambda r: (r.arg.id[0] < 0, r.arg.id))
    changes = {r: r.replace(arg=r.arg._replace(id=(i,))) for i, r in enumerate(ranges)}
    for node in order:
        if node.op is Ops.PARAM:
            slot = node.arg.slot
            place = -1 - slot if slot < 0 else args.index(reader.args[slot])
            changes[node] = node.replace(arg=node.arg._replace(slot=place))
    return sink.substitute(changes)
