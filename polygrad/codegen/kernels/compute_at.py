"""A producer computed inside of its reader's loops (Halide's compute_at): attention without memory for all of
its weights.

    every s[b, i, j] = sum(q[b, i, d] * k[b, j, d] for d)           for b: for each block of rows i:
    every p[b, i, j] = softmax of s[b, i, :]                 ->         s, then p of the block, in memory of
    every o[b, i, d] = sum(p[b, i, j] * v[b, j, d] for j)               the kernel's own; o of the block

What is between two kernels goes through memory if it is more than the cache holds. Where the reader needs,
for one round of its outermost loops, just what the producer makes in one round of the same loops, that much
of it is a STAGE. Nothing is computed twice. It is done where all that a round reads stays in the cache: in a
chain of matrix products with weights, each round would read the weights again.
"""

from __future__ import annotations

from typing import NamedTuple

from polygrad.codegen.opts import cost
from polygrad.codegen.opts.loops import split_loop
from polygrad.codegen.target import Target
from polygrad.schedule.index_maps import flat_index
from polygrad.schedule.kernel_info import Access, kernel_info, rounds
from polygrad.schedule.kernels import KernelCall
from polygrad.schedule.reduction_fusion import fuse, join_args, move_value, renumber
from polygrad.uop.args import AddrSpace, AxisKind, Memory
from polygrad.uop.linear import linear_terms, sum_of
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


def compute_at(calls: list[KernelCall], outputs: set[UOp], target: Target) -> list[KernelCall]:
    """The kernels with producers moved into their only readers' loops where that saves going through memory.
    `outputs` stay stored."""
    return fuse(calls, outputs, lambda producer, reader: _join(producer, reader, target))


class _Shared(NamedTuple):
    """A loop that both kernels have. A round of the reader's is `block` rounds of the producer's."""

    reader: UOp
    producer: UOp
    block: int


def _join(producer: KernelCall, reader: KernelCall, target: Target) -> KernelCall | None:
    """The reader with the producer's value in a STAGE; None if that does not pay."""
    nests = [kernel_info(ast).only_nest for ast in (producer.ast, reader.ast)]
    if any(nest is None or not nest.loops for nest in nests):
        return None
    if not _is_large(producer, target) or not kernel_info(reader.ast).has(Ops.REDUCE):
        return None
    shared = _shared_loops(producer, reader)
    if not shared:
        return None
    round_bytes = _size(producer) // rounds([s.producer for s in shared]) * producer.args[0].dtype.itemsize
    own_loops = len(producer.ast.src[0].src) - 1 - len(shared)
    if own_loops == 1 and shared[-1].block == 1:  # a round makes a row: several are better
        blocks = _divide_last_loop(shared, reader, round_bytes, target)
        if blocks is None:
            return None
        shared, reader = blocks
    elif round_bytes > cost.stage_bytes(target):
        return None
    if rounds([s.reader for s in shared]) < target.threads:
        return None
    if not _is_cached(producer, {s.producer for s in shared}, target):
        return None
    if not _is_cached(reader, {s.reader for s in shared}, target):
        return None
    return _add_stage(producer, reader, shared)


def _divide_last_loop(
    shared: list[_Shared], reader: KernelCall, row_bytes: int, target: Target
) -> tuple[list[_Shared], KernelCall] | None:
    """The shared loops with the last one divided into blocks, of as many rows as the STAGE may hold, and the
    reader so divided. If it may hold all rows, the last loop is not shared."""
    last = shared[-1]
    rows = last.producer.src[0].arg
    sizes = range(max(cost.MIN_BLOCK_ROWS, 2), rows + 1)
    fits = [n for n in sizes if rows % n == 0 and n * row_bytes <= cost.stage_bytes(target)]
    if not fits:
        return None
    if fits[-1] == rows:
        return shared[:-1], reader
    ast = split_loop(reader.ast, last.reader, fits[-1])
    blocks = next(r for r in ast.src[0].src[1:] if r.arg == last.reader.arg.child(0))
    return [*shared[:-1], _Shared(blocks, last.producer, fits[-1])], KernelCall(ast, reader.args)


def _size(call: KernelCall) -> int:
    return rounds(kernel_info(call.ast).nests[0].loops)


def _is_large(producer: KernelCall, target: Target) -> bool:
    """Whether a kernel's output is more than the cache holds, and its loops go through it in order."""
    info = kernel_info(producer.ast)
    nest = info.nests[0]
    if not info.is_static or nest.is_ordered:
        return False
    if _size(producer) * producer.args[0].dtype.itemsize < cost.worth_staging(target):
        return False
    in_order = flat_index(tuple(r.src[0].arg for r in nest.loops), nest.loops)
    return nest.write.terms == linear_terms(in_order).terms


def _loads(producer: KernelCall, reader: KernelCall) -> list[Access]:
    """The reader's loads of the producer's output."""
    slot = reader.args.index(producer.args[0])
    return [n for n in kernel_info(reader.ast).loads if n.slot == slot]


def _shared_loops(producer: KernelCall, reader: KernelCall) -> list[_Shared]:
    """The outermost loops that both kernels have, the last one perhaps in blocks."""
    loads = _loads(producer, reader)
    if any(n.condition is not None for n in loads):
        return []
    positions = [n.terms for n in loads]
    stride = _size(producer)
    shared: list[_Shared] = []
    for theirs, ours in zip(producer.ast.src[0].src[1:], reader.ast.src[0].src[1:], strict=False):
        size = theirs.src[0].arg
        stride //= size
        steps = {terms.get(ours, 0) for terms in positions}
        if len(steps) > 1 or not ours.src[0].is_const or ours.arg.kind is AxisKind.SCAN:
            break
        block, remainder = divmod(steps.pop(), stride)
        if remainder or not block or ours.src[0].arg * block != size:
            break
        shared.append(_Shared(ours, theirs, block))
        if block > 1:
            break
    readers = {s.reader for s in shared}
    if any(a.ranges & readers for terms in positions for a in terms if a not in readers):
        return []
    return shared


def _is_cached(call: KernelCall, shared: set[UOp], target: Target) -> bool:
    """Whether the cache holds all that a round of the shared loops reads from buffers."""
    loads = [n for n in kernel_info(call.ast).loads if n.slot is not None]
    return all(rounds(n.ranges - shared) * n.itemsize <= cost.panel_bytes(target) for n in loads)


def _add_stage(producer: KernelCall, reader: KernelCall, shared: list[_Shared]) -> KernelCall:
    rows: dict[UOp, UOp] = {}
    ast = producer.ast
    for s in shared:
        if s.block == 1:
            rows[s.producer] = s.reader
        else:
            ast = split_loop(ast, s.producer, s.block)
            rows[next(r for r in ast.src[0].src[1:] if r.arg == s.producer.arg.child(0))] = s.reader
    store, loops = ast.src[0].src[0], ast.src[0].src[1:]
    own = tuple(r for r in loops if r not in rows)
    sizes = tuple(r.src[0].arg for r in own)
    args = join_args(producer, reader)
    index = flat_index(sizes, own)
    dtype = store.src[1].dtype
    stage = UOp(Ops.STAGE, dtype, (store.src[1], index, *own), Memory(rounds(own), AddrSpace.LOCAL))
    stage = move_value(stage, rows, producer.args, args)
    changes = {}
    for n in _loads(producer, reader):
        own_terms = {a: f for a, f in n.terms.items() if a not in rows.values()}
        at = UOp(Ops.INDEX, dtype, (stage, UOp.index(sum_of(own_terms, n.offset))))
        changes[n.node] = UOp(Ops.LOAD, dtype, (at,))
    return KernelCall(renumber(reader.ast.substitute(changes), reader, args), tuple(args))
