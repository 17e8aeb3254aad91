"""Multi-output fusion: kernels that go through the same rows become one, which stores the results of both.

    the statistics of a normalisation, which its gradient reads, too, go through memory three times:
        mean of each row; deviation of each row; every element of each row
    in one kernel, whose row stays in the cache:
        for each row: { mean, stored; deviation, stored; every element }

A reduction that several kernels read, or that is asked for, moves into its first reader. fuse.py moves those
with one reader, under the same conditions. Two reductions of the same rows, neither of which reads the other
(the two sums of the gradients of a group normalisation), are siblings: the first moves into the second. The
term is XLA's.

The kernel's last STORE comes AFTER the others, which are in outer loops (`NestInfo.kept`). No other pass
changes such a kernel.
"""

from __future__ import annotations

from collections.abc import Collection

from polygrad.codegen.kernels.fuse import (
    are_rows,
    in_blocks,
    is_kept_until,
    is_older,
    join_args,
    match_ranges,
    move_value,
    propose_fuse,
    renumber,
    shared_rows,
)
from polygrad.codegen.kernels.kernel_opt import Calls, Decisions, KernelContext, KernelOpt, Kind, Proposal
from polygrad.codegen.opts.cost import panel_bytes
from polygrad.errors import OptError
from polygrad.schedule import cost
from polygrad.schedule.kernel_info import NestInfo, kernel_info, rounds
from polygrad.schedule.kernels import KernelCall, join_places
from polygrad.schedule.operation_limit import exceeds_limit
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

_MAX_DISTANCE = 16  # from a kernel to its sibling


def propose_kept(producer: KernelCall, reader: KernelCall, context: KernelContext) -> Proposal | None:
    """A reduction of rows that others need, too, moved into its first reader."""
    proposal = propose_fuse(producer, reader, context)
    if proposal is None or is_older(producer.args[0]) or kernel_info(reader.ast).has_own_opts:
        return None
    opt = proposal.opt._replace(kind=Kind.MULTI_OUTPUT)
    reader = in_blocks(reader, opt.axes, opt.numbers)
    rows = shared_rows(producer, reader)
    assert rows is not None
    return Proposal(opt, proposal.pays and _share_rows(producer, reader, rows.loops.values(), context))


def propose_last(producer: KernelCall, reader: KernelCall, context: KernelContext) -> Proposal | None:
    """A reduction moved into a kernel with several results, that has become its only reader."""
    return propose_fuse(producer, reader, context) if reader.results > 1 else None


def _share_rows(first: KernelCall, last: KernelCall, rows: Collection[UOp], context: KernelContext) -> bool:
    """Whether `last` reads memory again that `first` reads, of which a cache holds what a round of the loops
    `rows` reads. `rows`: of `last`."""
    reads = [(n, last.args[n.slot]) for n in kernel_info(last.ast).loads if n.slot is not None]
    is_shared = any(node in first.read and not n.ranges.isdisjoint(rows) for n, node in reads)
    return is_shared and sum(n.nbytes(rows) for n, _ in reads) <= panel_bytes(context.target)


def propose_siblings(calls: Calls, context: KernelContext) -> Decisions:
    """Two reductions of the same rows, neither of which reads the other, beginning with the last."""
    for i in range(len(calls) - 1, -1, -1):
        proposal = _propose_sibling(calls, i, context)
        if proposal is not None:
            calls = yield proposal
    return calls


def _propose_sibling(calls: Calls, i: int, context: KernelContext) -> Proposal | None:
    """Kernel `i` moved into the first one behind it that goes through the same rows, if it can move there."""
    first = calls[i]
    node = first.args[0]
    if is_older(node) or node in context.apart or kernel_info(first.ast).only_nest is None:
        return None
    for j in range(i + 1, min(i + 1 + _MAX_DISTANCE, len(calls))):
        last = calls[j]
        if node in last.read or not set(last.written).isdisjoint(first.args):
            return None
        if (rows := _sibling_rows(first, last)) is None:
            continue
        if exceeds_limit(first.ast, last.ast):
            return None
        pays = rounds(rows.values()) >= cost.MIN_ROWS and _share_rows(first, last, rows.values(), context)
        return Proposal(KernelOpt(Kind.MULTI_OUTPUT, (i, j)), pays)
    return None


def _sibling_rows(first: KernelCall, last: KernelCall) -> dict[UOp, UOp] | None:
    """The loop of `last` for each loop of `first`, if both reduce along rows and have no other loops."""
    source, info = kernel_info(first.ast).only_nest, kernel_info(last.ast)
    if source is None or len(info.nests) != 1 or info.has_own_opts:
        return None
    nest = info.nests[0]
    if [r.src[0] for r in source.loops] != [r.src[0] for r in nest.loops]:
        return None
    if not all(n.sums and not n.is_ordered and _reduces_rows(n) for n in (source, nest)):
        return None
    rows = match_ranges(source.write, nest.write)
    return rows if rows is not None and len(rows) == len(nest.loops) and are_rows(rows, nest) else None


def _reduces_rows(nest: NestInfo) -> bool:
    """Whether its reductions go through neighbouring elements, and none is a product."""
    return all(
        total.reuse < cost.MIN_REUSE and any(load.stride(total.loops[-1]) == 1 for load in total.loads)
        for total in nest.sums
    )


def multi_output(calls: Calls, opt: KernelOpt, context: KernelContext) -> Calls:
    """The kernels, in which the second computes the reduction of the first and stores it, too."""
    i, j = opt.kernels
    node = calls[i].args[0]
    others = [k for k, call in enumerate(calls) if node in call.read and k < j]
    if i >= j or others or is_older(node) or not is_kept_until(calls, i, j):
        raise OptError(
            "expected a kernel that stores memory of its own, and one behind it that reads it first"
        )
    first, last = calls[i], in_blocks(calls[j], opt.axes, opt.numbers)
    load, rows = None, None
    if node not in last.read:
        rows = _sibling_rows(first, last)
    elif (found := shared_rows(first, last)) is not None:
        load, rows = found.load, found.loops
    if rows is None or kernel_info(last.ast).has_own_opts:
        raise OptError("expected two kernels with reductions of the same rows")
    args = [
        *last.written,
        node,
        *(a for a in join_args(first, last) if a not in last.written and a is not node),
    ]
    nest = kernel_info(first.ast).nests[0]
    store = move_value(nest.store, rows, first.args, args)
    ast = last.ast if load is None else last.ast.substitute({load: store.src[1]})
    joined = KernelCall(
        renumber(_store_before(ast, store), last, args),
        tuple(args),
        places=join_places(last, first),
        results=last.results + 1,
    )
    return [*calls[:i], *calls[i + 1 : j], joined, *calls[j + 1 :]]


def _store_before(ast: UOp, store: UOp) -> UOp:
    """A kernel with one more result.

    STORE(PARAM 0 [r0*n + r1], x - m)  ->  STORE(INDEX(AFTER(PARAM 0, store), r0*n + r1), x - m)
    """
    last = kernel_info(ast).nests[0].store
    place = last.src[0]
    memory = place.src[0]
    before = memory.src if memory.op is Ops.AFTER else (memory,)
    pointer = UOp(Ops.AFTER, memory.dtype, (*before, store))
    return ast.substitute(
        {last: last.replace(src=(place.replace(src=(pointer, *place.src[1:])), last.src[1]))}
    )
