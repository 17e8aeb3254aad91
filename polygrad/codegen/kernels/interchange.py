"""Loop interchange: sums of columns go through memory row by row. The sums of all columns stay in the cache.

    sum(x[k, c] for k < K)

    ->  for c: out[c] = 0;  for b, in order, for c: out[c] += sum(x[8*b + k, c] for k < 8)

Column by column, a sum would read one element of each row. No prefetcher follows that, and rows that lie a
power of two apart evict each other from the caches. A few rows at a time are added in registers. The order of
the additions depends on sizes alone.
"""

from __future__ import annotations

from typing import NamedTuple

from polygrad.codegen.kernels.accumulation import (
    Accumulation,
    combine,
    make_accumulator,
    make_fill,
    make_ordered_nest,
    replace_by_accumulations,
)
from polygrad.codegen.kernels.fission import Fission, divide_to_fixed_point, store_sum_before
from polygrad.codegen.lower.reductions import canonicalize, identity_element
from polygrad.codegen.opts import cost
from polygrad.schedule.kernel_info import Sum, kernel_info, nest_info, rounds
from polygrad.schedule.kernels import KernelCall
from polygrad.uop.args import AxisKind
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


def interchange(calls: list[KernelCall]) -> list[KernelCall]:
    """The kernels, with sums of columns added row by row. If another sum needs one of them (a variance needs
    the mean), kernels of its own compute it first."""
    return replace_by_accumulations(divide_to_fixed_point(calls, _store_inner_sum), _add_row_by_row)


def _store_inner_sum(call: KernelCall) -> Fission | None:
    """A kernel with several sums, the innermost of which is of columns, with that sum stored before."""
    info = kernel_info(call.ast)
    if not info.is_sum_of(cost.MIN_INTERCHANGED):
        return None
    sums = info.nests[0].sums
    if len(sums) < 2 or _find_columns(sums[0]) is None:
        return None
    return store_sum_before(call, call.ast, sums[0].node, sorted(sums[0].outer, key=lambda r: r.arg))


def _add_row_by_row(call: KernelCall) -> Accumulation | None:
    """The Accumulation of a kernel whose only sum is of columns.

    out[c] = sum(x[k, c] for k < K)

    ->  fill: out[c] = sum of the last K % 8 rows;  add: for b, for c: out[c] += sum of 8 rows
    """
    if not kernel_info(call.ast).is_sum_of(cost.MIN_INTERCHANGED):
        return None
    ast = canonicalize(call.ast)
    only = nest_info(ast.src[0]).only_sum
    if only is None or (columns := _find_columns(only)) is None:
        return None
    total = only.node
    if columns.parts > 1:
        ast, total, columns = _split_rows(ast, total, columns)
    k = total.src[1]
    loops = [*columns.outside, *columns.inside]
    if (accumulator := make_accumulator(ast, total, loops, len(call.args))) is None:
        return None
    place, read = accumulator
    count, left = divmod(k.src[0].arg, cost.ROWS_AT_A_TIME)
    first = identity_element(total.arg, total.dtype)
    if left:  # the rows beyond the last block
        row = UOp.range(left, k.arg)
        first = _make_sum(total, row + count * cost.ROWS_AT_A_TIME, row)
    block, row = UOp.range(count, k.arg.child(0)), UOp.range(cost.ROWS_AT_A_TIME, k.arg.child(1))
    part = _make_sum(total, block * cost.ROWS_AT_A_TIME + row, row)
    nest = [*columns.outside, block, *columns.inside]
    add = make_ordered_nest(place, combine(place, total.arg, part), nest, (block,))
    fill = make_fill(place, first, loops)
    as_outputs = {r: r.replace(arg=r.arg._replace(kind=AxisKind.LOOP)) for r in columns.outside}
    return Accumulation(fill.substitute(as_outputs), add.substitute(as_outputs), read)


def _split_rows(ast: UOp, total: UOp, columns: _Columns) -> tuple[UOp, UOp, _Columns]:
    """The rows in parts, which threads divide.

        sum(x[k, c] for k < K)  ->  sum(sum(x[p*size + k, c] for k < size) for p < parts)

    Returns the kernel, the inner sum, and the columns of that.
    """
    k = total.src[1]
    size, left = divmod(k.src[0].arg, columns.parts)
    part, row = UOp.range(columns.parts, k.arg.child(0)), UOp.range(size, k.arg.child(1))
    one = _make_sum(total, part * size + row, row)
    out = UOp(Ops.REDUCE, total.dtype, (one, part), total.arg)
    if left:
        row = UOp.range(left, k.arg.child(2))
        out = UOp(total.arg, total.dtype, (out, _make_sum(total, row + columns.parts * size, row)))
    return ast.substitute({total: out}), one, columns._replace(outside=[part, *columns.outside])


def _make_sum(total: UOp, rows: UOp, loop: UOp) -> UOp:
    """`total` over `loop` instead of its own, at the rows `rows`."""
    return UOp(Ops.REDUCE, total.dtype, (total.src[0].substitute({total.src[1]: rows}), loop), total.arg)


class _Columns(NamedTuple):
    """Of a sum of columns, the loops around it, outermost first: `inside` of a row, and `outside`. `parts`:
    how many parts of the rows are added side by side."""

    outside: list[UOp]
    inside: list[UOp]
    parts: int


def _find_columns(total: Sum) -> _Columns | None:
    """The columns of a sum that reads some memory once, and has many rows; None for another sum."""
    if len(total.loops) != 1 or total.terms < cost.MIN_ROW_BLOCKS * cost.ROWS_AT_A_TIME:
        return None
    (k,) = total.loops
    for load in total.loads:
        if load.ranges != total.value.ranges:
            continue
        if load.terms.keys() != load.ranges or 1 not in load.terms.values():
            continue
        step = abs(load.stride(k))
        if step * load.itemsize >= cost.MIN_FAR_ROW:
            loops = sorted(load.ranges - {k}, key=lambda r: -abs(load.stride(r)))
            inside = [r for r in loops if abs(load.stride(r)) < step]
            outside = [r for r in loops if r not in inside]
            return _Columns(outside, inside, _count_parts(total.node, outside, inside)) if inside else None
    return None


def _count_parts(total: UOp, outside: list[UOp], inside: list[UOp]) -> int:
    """The number of parts of the rows: more than 1 if threads have too few columns to divide."""
    rows, columns = total.src[1].src[0].arg, rounds(inside)
    if columns * total.dtype.itemsize > cost.LONG_COLUMNS or rounds(outside) >= cost.ROW_PARTS:
        return 1
    if rounds([*outside, *inside]) * rows < cost.MIN_PARTED:
        return 1
    parts = min(rows // cost.MIN_PART_ROWS, cost.ROW_PARTS)
    return parts if parts >= cost.MIN_ROW_PARTS else 1
