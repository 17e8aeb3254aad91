"""Loop interchange: sums of columns go through memory row by row. The sums of all columns stay in the cache.

    sum(x[k, c] for k < K)

    ->  for c: out[c] = 0;  for b, in order, for c: out[c] += sum(x[4*b + k, c] for k < 4)

Column by column, a sum would read one element of each row. No prefetcher follows such reads, and rows that
lie a power of two apart evict each other from the caches. A few rows at a time are added in registers. The
order of the additions depends on sizes alone.

The same is done to a product of few rows and a large matrix, sum(a[m, k] * x[k, c]): a few rows of the matrix
are multiplied with all rows of the other operand before the next few are read. A register tile would read a
piece of each row of the matrix, and all of these pieces again for the next tile of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from polygrad.codegen.kernels.accumulation import combine, make_accumulator, make_ordered_nest
from polygrad.codegen.kernels.division import axes_of, canonical_info, canonical_sum, make_nest
from polygrad.codegen.kernels.kernel_opt import AxisId, KernelContext, KernelOpt, Kind, Proposal
from polygrad.codegen.lower.reductions import identity_element
from polygrad.codegen.opts import cost
from polygrad.errors import OptError
from polygrad.schedule.kernel_info import Access, Sum, kernel_info, rounds
from polygrad.schedule.kernels import KernelCall
from polygrad.uop.args import AxisKind
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


def propose_root_of_columns(call: KernelCall, context: KernelContext) -> Iterator[Proposal]:
    """The innermost of several sums in a kernel of its own, if it is a sum of columns: a variance needs the
    mean."""
    if not kernel_info(call.ast).is_sum_of(context.least(cost.MIN_INTERCHANGED)):
        return
    sums = canonical_info(call.ast).nests[0].sums  # sums over one-hots have become loads
    if len(sums) > 1 and _find_columns(sums[0]) is not None:
        yield Proposal(KernelOpt(Kind.COMPUTE_ROOT, numbers=(0,)))


def propose_parts_of_rows(call: KernelCall, context: KernelContext) -> Iterator[Proposal]:
    """Parts of the rows, which threads divide, if columns are few."""
    if (sum_and_columns := _only_columns(call, context)) is None:
        return
    total, columns = sum_and_columns
    row_bytes = rounds(columns.row_loops) * total.node.dtype.itemsize
    if part_counts := cost.sum_parts(total.terms, rounds(columns.outer_loops), cost.COLUMN_PARTS):
        pays = row_bytes <= cost.LONG_COLUMNS and total.work >= cost.MIN_PARTED
        axis = total.loops[0].arg.id
        yield Proposal(KernelOpt(Kind.SPLIT_REDUCE, (), (axis,), (part_counts.start,)), pays)


def propose_interchange(call: KernelCall, context: KernelContext) -> Iterator[Proposal]:
    """A sum of columns row by row, or a product with few rows."""
    pays, at_a_time = True, cost.ROWS_AT_A_TIME
    if (sum_and_columns := _only_columns(call, context)) is not None:
        total, columns = sum_and_columns
    elif (product := _matrix_of_few_rows(call, context)) is not None:
        total, columns, pays = product
        at_a_time = cost.PRODUCT_ROWS_AT_A_TIME
    else:
        return
    axes = tuple(r.arg.id for r in (*columns.outer_loops, *total.loops, *columns.row_loops))
    yield Proposal(KernelOpt(Kind.INTERCHANGE, (), axes, (at_a_time,)), pays)


class _Columns(NamedTuple):
    """The loops around a sum of columns, outermost first: `row_loops` go through a row, `outer_loops` are the
    others."""

    outer_loops: list[UOp]
    row_loops: list[UOp]


def _only_sum(call: KernelCall, context: KernelContext) -> Sum | None:
    """The only sum of a large kernel, if it reads other memory than the output."""
    if not kernel_info(call.ast).is_sum_of(context.least(cost.MIN_INTERCHANGED)):
        return None
    nest = canonical_info(call.ast).nests[0]
    only = nest.only_sum
    return None if only is None or nest.write.memory in only.node.toposort() else only


def _only_columns(call: KernelCall, context: KernelContext) -> tuple[Sum, _Columns] | None:
    """The only sum of a large kernel, if it is of columns."""
    only = _only_sum(call, context)
    columns = _find_columns(only) if only is not None else None
    return None if only is None or columns is None else (only, columns)


def _matrix_of_few_rows(call: KernelCall, context: KernelContext) -> tuple[Sum, _Columns, bool] | None:
    """The only sum of a large kernel, if it is a product with a matrix that is read along its rows, and
    whether the other operand has few rows."""
    if (total := _only_sum(call, context)) is None or total.factors is None or total.reuse < 2:
        return None
    if len(total.loops) != 1 or total.terms < cost.MIN_ROW_BLOCKS * cost.PRODUCT_ROWS_AT_A_TIME:
        return None
    (k,) = total.loops
    write = canonical_info(call.ast).nests[0].write
    matrices: list[tuple[_Columns, bool]] = []
    for matrix in total.loads:
        rows = sorted(total.value.ranges - matrix.ranges, key=lambda r: r.arg)
        if not rows or (columns := _columns_of(matrix, k)) is None:
            continue
        row_loops = [*columns.row_loops, *rows]
        span = total.terms * abs(matrix.stride(k)) * matrix.itemsize
        sums = rounds(row_loops) * total.node.dtype.itemsize
        across = write.stride(columns.row_loops[-1]) != 1
        few = cost.has_few_rows(span, rounds(rows), sums, across, context.target)
        matrices.append((_Columns(columns.outer_loops, row_loops), few))
    best = max(matrices, key=lambda matrix: matrix[1], default=None)  # the first of equals
    return None if best is None else (total, *best)


def _find_columns(total: Sum) -> _Columns | None:
    """The columns of a sum that reads some memory once, and has many rows; None for another sum."""
    if len(total.loops) != 1 or total.terms < cost.MIN_ROW_BLOCKS * cost.ROWS_AT_A_TIME:
        return None
    loads = (load for load in total.loads if load.ranges == total.value.ranges)
    candidates = (_columns_of(load, total.loops[0]) for load in loads)
    return next((columns for columns in candidates if columns is not None), None)


def _columns_of(load: Access, k: UOp) -> _Columns | None:
    """The columns of memory that a sum over `k` reads in long steps; None for another load."""
    if load.terms.keys() != load.ranges or 1 not in load.terms.values():
        return None
    step = abs(load.stride(k))
    if step * load.itemsize < cost.MIN_FAR_ROW:
        return None
    loops = sorted(load.ranges - {k}, key=lambda r: -abs(load.stride(r)))
    row_loops = [r for r in loops if abs(load.stride(r)) < step]
    return _Columns([r for r in loops if r not in row_loops], row_loops) if row_loops else None


# --- the mechanism


def interchange(ast: UOp, slots: int, order: Sequence[AxisId], rows_at_a_time: int) -> tuple[UOp, ...]:
    """The parts of a kernel with a sum that goes through its axes in this order, `rows_at_a_time` terms at a
    time. `slots`: the number of the kernel's arguments.

    out[c] = sum(x[k, c] for k < K)

    ->  fill: out[c] = sum of the last K % 8 rows;  add: for b, for c: out[c] += sum of 8 rows
    """
    info, only = canonical_sum(ast)
    axes = axes_of(info, order)
    total = only.node
    if len(only.loops) != 1 or set(axes) != {*only.outer, *only.loops}:
        raise OptError("expected the loop of the sum, and all loops around that")
    (k,) = only.loops
    count, remainder = divmod(k.src[0].arg, max(rows_at_a_time, 1))
    if not rows_at_a_time or not count:
        raise OptError(f"expected 1 to {k.src[0].arg} terms at a time, got {rows_at_a_time}")
    outer_loops, row_loops = axes[: axes.index(k)], axes[axes.index(k) + 1 :]
    in_order = sorted([*outer_loops, *row_loops], key=lambda r: r.arg)  # as its reader goes through it
    place, read = make_accumulator(info.ast, total, in_order, slots)
    first = identity_element(total.arg, total.dtype)
    if remainder:  # the rows beyond the last block
        row = UOp.range(remainder, k.arg)
        first = _make_sum(total, row + count * rows_at_a_time, row)
    block, row = UOp.range(count, k.arg.child(0)), UOp.range(rows_at_a_time, k.arg.child(1))
    part = _make_sum(total, block * rows_at_a_time + row, row)
    add = make_ordered_nest(
        place, combine(place, total.arg, part), [*outer_loops, block, *row_loops], (block,)
    )
    fill = make_nest(place, first, [*outer_loops, *row_loops])
    as_outputs = {r: r.replace(arg=r.arg._replace(kind=AxisKind.LOOP)) for r in (*outer_loops, *row_loops)}
    return fill.substitute(as_outputs), add.substitute(as_outputs), *read


def _make_sum(total: UOp, rows: UOp, loop: UOp) -> UOp:
    """`total` over `loop` instead of its own, at the rows `rows`."""
    return UOp(Ops.REDUCE, total.dtype, (total.src[0].substitute({total.src[1]: rows}), loop), total.arg)
