"""A producer computed inside of its reader's loops (Halide's compute_at): attention without memory for all of
its weights.

    every s[b, i, j] = sum(q[b, i, d] * k[b, j, d] for d)           for b: for each block of rows i:
    every p[b, i, j] = softmax of s[b, i, :]                 ->         s, then p of the block, in memory of
    every o[b, i, d] = sum(p[b, i, j] * v[b, j, d] for j)               the kernel's own; o of the block

Values between two kernels go through memory if the cache cannot hold them. If one round of the reader's
outermost loops needs exactly the values that the producer makes in one round of the same loops, these values
become a STAGE. Nothing is computed twice. This pays where all data that a round reads stays in the cache: in
a chain of matrix products with weights, each round would read the weights again. Products of bytes keep
kernels of their own, because dot products are four times as fast.

Copies that relayout.py makes are moved, too: each image is padded before its convolution, instead of the
whole batch.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from polygrad.codegen.kernels.division import is_temporary
from polygrad.codegen.kernels.fuse import join_args, move_value, renumber, require_only_reader
from polygrad.codegen.kernels.kernel_opt import Calls, KernelContext, KernelOpt, Kind, Proposal
from polygrad.codegen.kernels.window_dots import is_dot_product
from polygrad.codegen.opts import cost
from polygrad.codegen.opts.loops import split_loop
from polygrad.codegen.target import Target
from polygrad.errors import OptError
from polygrad.schedule.cost import MIN_REUSE
from polygrad.schedule.index_maps import flat_index
from polygrad.schedule.kernel_info import Access, kernel_info, rounds
from polygrad.schedule.kernels import KernelCall, join_places
from polygrad.uop.args import AddrSpace, AxisKind, Memory
from polygrad.uop.linear import linear_terms, sum_of
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.printer import axis_name


class _SharedLoop(NamedTuple):
    """A loop that both kernels have. A round of the reader's loop is `block` rounds of the producer's."""

    reader: UOp
    producer: UOp
    block: int


def propose_compute_at(producer: KernelCall, reader: KernelCall, context: KernelContext) -> Proposal | None:
    """The reader's loop at which the producer's value can be a STAGE, and whether that pays."""
    target = context.target
    if not _is_in_order(producer) or not _can_hold_stages(reader):
        return None
    pays = _size(producer) * producer.args[0].dtype.itemsize >= cost.worth_staging(target)
    pays = pays and kernel_info(reader.ast).has(Ops.REDUCE)
    pays = pays and not any(is_dot_product(call.ast, target) for call in (producer, reader))
    if not (pays or context.searching) or not (shared := _shared_loops(producer, reader)):
        return None
    row_bytes = _size(producer) // rounds([s.producer for s in shared]) * producer.args[0].dtype.itemsize
    own_loops = len(producer.ast.src[0].src) - 1 - len(shared)
    rows: tuple[int, ...] = ()
    if own_loops == 1 and shared[-1].block == 1:  # a round makes one row: several rows are better
        size = shared[-1].producer.src[0].arg
        block = _rows_of_block(size, row_bytes, _has_product(producer, reader), target)
        if block is None:
            return None
        if block == size:
            shared = shared[:-1]
        elif block > 1:
            rows = (block,)
    elif row_bytes > cost.stage_bytes(target):
        pays = False
    axes = tuple(s.reader.arg.id for s in shared[-1:])
    for size in rows:
        shared, reader = _divide_last_loop(shared, reader, size)
    pays = pays and rounds([s.reader for s in shared]) >= target.threads
    pays = pays and (own_loops > 0 or not _has_product(producer))  # a round would have no tile of a product
    pays = pays and _is_cached(producer, {s.producer for s in shared}, target)
    pays = pays and _is_cached(reader, {s.reader for s in shared}, target)
    return Proposal(KernelOpt(Kind.COMPUTE_AT, (), axes, rows), pays)


def propose_copy_at(producer: KernelCall, reader: KernelCall, context: KernelContext) -> Proposal | None:
    """The loop of a product at which the copy of an operand can be a STAGE. The copy of one image stays in
    the cache, where the copy of a batch would go through memory; the copy of one channel stays in the first
    cache."""
    if not is_temporary(producer.args[0]) or kernel_info(producer.ast).has(Ops.REDUCE):
        return None
    return propose_temporary_at(producer, reader, context, cost.worth_staging(context.target))


def propose_temporary_at(
    producer: KernelCall, reader: KernelCall, context: KernelContext, least: int
) -> Proposal | None:
    """The loop of the reader at which what the producer stores for it alone can be a STAGE. That pays from
    `least` bytes on."""
    target = context.target
    if not _is_in_order(producer) or not _can_hold_stages(reader):
        return None
    loops = [s.reader for s in _shared_loops(producer, reader)]
    nbytes, count = _size(producer) * producer.args[0].dtype.itemsize, rounds(loops)
    if not loops or nbytes // count > cost.panel_bytes(target):
        return None
    slot = reader.args.index(producer.args[0])
    others = sum(n.nbytes(loops) for n in kernel_info(reader.ast).loads if n.slot != slot)
    pays = nbytes >= least and others * count <= cost.MAX_REREAD * nbytes
    pays = pays and (count % target.threads == 0 or count >= cost.MIN_SHARES * target.threads)
    return Proposal(KernelOpt(Kind.COMPUTE_AT, (), (loops[-1].arg.id,)), pays)


def _has_product(*calls: KernelCall) -> bool:
    """Whether the rows of a block share an operand of one of the kernels."""
    sums = [s for call in calls for nest in kernel_info(call.ast).nests for s in nest.sums]
    return any(s.is_static and s.reuse >= MIN_REUSE for s in sums)


def _rows_of_block(size: int, row_bytes: int, has_product: bool, target: Target) -> int | None:
    """The number of rows in a block: an equal part of `size` rows, as large as the cache permits. Rows of a
    product share the other operand, so a block has as many as the second cache holds. Other rows share
    nothing, so a block has as many as the first cache holds."""
    least, limit = (
        (max(cost.MIN_BLOCK_ROWS, 2), cost.stage_bytes(target))
        if has_product
        else (1, max(cost.row_block_bytes(target), row_bytes))
    )
    if least * row_bytes > cost.stage_bytes(target):
        return None
    return max(
        (n for n in range(least, min(size, limit // row_bytes) + 1) if size % n == 0),
        default=None,
    )


def _divide_last_loop(
    shared: list[_SharedLoop], reader: KernelCall, rows: int
) -> tuple[list[_SharedLoop], KernelCall]:
    """The shared loops with the last one divided into blocks of `rows` rows, and the reader divided in the
    same way."""
    last = shared[-1]
    ast = split_loop(reader.ast, last.reader, rows)
    blocks = next(r for r in ast.src[0].src[1:] if r.arg == last.reader.arg.child(0))
    return [*shared[:-1], _SharedLoop(blocks, last.producer, rows)], replace(reader, ast=ast)


def _size(call: KernelCall) -> int:
    return rounds(kernel_info(call.ast).nests[0].loops)


def _is_in_order(producer: KernelCall) -> bool:
    """Whether a kernel's loops go through its output in order."""
    info = kernel_info(producer.ast)
    nest = info.only_nest
    if nest is None or not nest.loops or not info.is_static or nest.is_ordered:
        return False
    in_order = flat_index(tuple(r.src[0].arg for r in nest.loops), nest.loops)
    return nest.write.terms == linear_terms(in_order).terms


def _can_hold_stages(reader: KernelCall) -> bool:
    nest = kernel_info(reader.ast).only_nest
    return nest is not None and bool(nest.loops)


def _loads(producer: KernelCall, reader: KernelCall) -> list[Access]:
    """The reader's loads of the producer's output."""
    slot = reader.args.index(producer.args[0])
    return [n for n in kernel_info(reader.ast).loads if n.slot == slot]


def _shared_loops(producer: KernelCall, reader: KernelCall) -> list[_SharedLoop]:
    """The outermost loops that both kernels have; the last one may be in blocks."""
    loads = _loads(producer, reader)
    if any(n.condition is not None for n in loads):
        return []
    positions = [n.terms for n in loads]
    stride = _size(producer)
    shared: list[_SharedLoop] = []
    for theirs, ours in zip(producer.ast.src[0].src[1:], reader.ast.src[0].src[1:], strict=False):
        size = theirs.src[0].arg
        stride //= size
        steps = {terms.get(ours, 0) for terms in positions}
        if len(steps) > 1 or not ours.src[0].is_const or ours.arg.kind is AxisKind.SCAN:
            break
        block, remainder = divmod(steps.pop(), stride)
        if remainder or not block or ours.src[0].arg * block != size:
            break
        shared.append(_SharedLoop(ours, theirs, block))
        if block > 1:
            break
    readers = {s.reader for s in shared}
    if any(a.ranges & readers for terms in positions for a in terms if a not in readers):
        return []
    return shared


def _is_cached(call: KernelCall, shared: set[UOp], target: Target) -> bool:
    """Whether the cache holds all data that a round of the shared loops reads from buffers."""
    loads = [n for n in kernel_info(call.ast).loads if n.slot is not None]
    return all(n.nbytes(shared) <= cost.panel_bytes(target) for n in loads)


# --- the mechanism


def compute_at(calls: Calls, opt: KernelOpt, context: KernelContext) -> Calls:
    """The kernels, with one kernel computed in a loop of another, for each round the values that it needs; or
    before all loops. `opt`: the loop and, if it is to be divided into blocks, the number of rounds of a
    block."""
    first, second = opt.kernels
    producer, reader = calls[first], calls[second]
    require_only_reader(calls, first, second, context.results)
    if not _is_in_order(producer) or not _can_hold_stages(reader):
        raise OptError("expected kernels with one nest of loops, the first with constant sizes and in order")
    shared = _shared_loops(producer, reader)
    axes = [s.reader.arg.id for s in shared]
    if any(a not in axes for a in opt.axes):
        raise OptError(f"expected a loop that both kernels have ({', '.join(map(axis_name, axes))})")
    shared = shared[: axes.index(opt.axes[0]) + 1 if opt.axes else 0]
    for rows in opt.numbers:
        size = shared[-1].producer.src[0].arg if shared else 1
        if not shared or shared[-1].block > 1 or rows < 1 or size % rows:
            raise OptError(f"expected blocks that divide a loop of {size} rounds, got {rows}")
        shared, reader = _divide_last_loop(shared, reader, rows)
    fused = _add_stage(producer, reader, shared)
    return [*calls[:first], *calls[first + 1 : second], fused, *calls[second + 1 :]]


def _add_stage(producer: KernelCall, reader: KernelCall, shared: list[_SharedLoop]) -> KernelCall:
    """The reader with the producer's value as a STAGE within the shared loops.

    for i, j: t[i, j] = f(i, j);  for i: out[i] = sum(t[i, k] for k)

    ->  for i: out[i] = sum(STAGE(f(i, j), j, j)[k] for k), if i is shared
    """
    rows: dict[UOp, UOp] = {}
    ast = producer.ast
    for s in shared:
        if s.block == 1:
            rows[s.producer] = s.reader
        else:
            ast = split_loop(ast, s.producer, s.block)
            rows[next(r for r in ast.src[0].src[1:] if r.arg == s.producer.arg.child(0))] = s.reader
    store, loops = ast.src[0].src[0], ast.src[0].src[1:]
    stage_loops = tuple(r for r in loops if r not in rows)
    sizes = tuple(r.src[0].arg for r in stage_loops)
    args = join_args(producer, reader)
    index = flat_index(sizes, stage_loops)
    dtype = store.src[1].dtype
    stage = UOp(
        Ops.STAGE, dtype, (store.src[1], index, *stage_loops), Memory(rounds(stage_loops), AddrSpace.LOCAL)
    )
    stage = move_value(stage, rows, producer.args, args)
    changes = {}
    for n in _loads(producer, reader):
        own_terms = {a: f for a, f in n.terms.items() if a not in rows.values()}
        at = UOp(Ops.INDEX, dtype, (stage, UOp.index(sum_of(own_terms, n.offset))))
        changes[n.node] = UOp(Ops.LOAD, dtype, (at,))
    ast = renumber(reader.ast.substitute(changes), reader, args)
    return KernelCall(ast, tuple(args), places=join_places(reader, producer))
