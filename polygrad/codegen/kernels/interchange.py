"""Loop interchange: sums of columns go through memory row by row, and the sums of a row stay in the cache.

    sum(x[k, c] for k < K)

    ->  for c: out[c] = 0;  for b, in order, for c: out[c] += sum(x[8*b + k, c] for k < 8)

One column after the other, a sum would go from row to row: a line here and a line there, which no prefetcher
foresees, and which push each other out of caches where rows are a power of two apart. A few rows at a time
are added in registers. The order of the additions depends on sizes alone.
"""

from __future__ import annotations

from typing import NamedTuple

from polygrad.codegen.kernels.accumulation import (
    Accumulation,
    accumulated,
    accumulator,
    combined,
    filled,
    ordered,
)
from polygrad.codegen.kernels.fission import Fission, divided_to_fixed_point, sum_apart
from polygrad.codegen.lower.reductions import canonicalized, identity_element
from polygrad.codegen.opts import cost
from polygrad.schedule.kernel_info import Sum, kernel_info, nest_info, rounds
from polygrad.schedule.kernels import KernelCall
from polygrad.uop.args import AxisKind
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


def interchange(calls: list[KernelCall]) -> list[KernelCall]:
    """The kernels, with sums of columns row by row. A sum of columns that another sum needs (the mean, of a
    variance) is first computed by kernels of its own."""
    return accumulated(divided_to_fixed_point(calls, _inner_sum_apart), _row_by_row)


def _inner_sum_apart(call: KernelCall) -> Fission | None:
    """The innermost of several sums, if it is of columns, before the rest of the kernel."""
    info = kernel_info(call.ast)
    if not info.is_sum_of(cost.MIN_INTERCHANGED):
        return None
    sums = info.nests[0].sums
    if len(sums) < 2 or _columns(sums[0]) is None:
        return None
    return sum_apart(call, call.ast, sums[0].node, sorted(sums[0].outer, key=lambda r: r.arg))


def _row_by_row(call: KernelCall) -> Accumulation | None:
    """The only sum of a kernel, if it is of columns."""
    if not kernel_info(call.ast).is_sum_of(cost.MIN_INTERCHANGED):
        return None
    ast = canonicalized(call.ast)
    only = nest_info(ast.src[0]).only_sum
    if only is None or (columns := _columns(only)) is None:
        return None
    total = only.node
    if columns.parts > 1:
        ast, total, columns = _in_parts(ast, total, columns)
    k = total.src[1]
    loops = [*columns.outside, *columns.inside]
    if (found := accumulator(ast, total, loops, len(call.args))) is None:
        return None
    place, rest = found
    count, left = divmod(k.src[0].arg, cost.ROWS_AT_A_TIME)
    first = identity_element(total.arg, total.dtype)
    if left:  # the rows beyond the last block
        row = UOp.range(left, k.arg)
        first = _sum(total, row + count * cost.ROWS_AT_A_TIME, row)
    block, row = UOp.range(count, k.arg.child(0)), UOp.range(cost.ROWS_AT_A_TIME, k.arg.child(1))
    part = _sum(total, block * cost.ROWS_AT_A_TIME + row, row)
    nest = [*columns.outside, block, *columns.inside]
    add = ordered(place, combined(place, total.arg, part), nest, (block,))
    fill = filled(place, first, loops)
    as_outputs = {r: r.replace(arg=r.arg._replace(kind=AxisKind.LOOP)) for r in columns.outside}
    return Accumulation(fill.substitute(as_outputs), add.substitute(as_outputs), rest)


def _in_parts(ast: UOp, total: UOp, columns: _Columns) -> tuple[UOp, UOp, _Columns]:
    """A kernel with its sum as one of parts, which threads divide; and such a part."""
    k = total.src[1]
    size, left = divmod(k.src[0].arg, columns.parts)
    part, row = UOp.range(columns.parts, k.arg.child(0)), UOp.range(size, k.arg.child(1))
    one = _sum(total, part * size + row, row)
    out = UOp(Ops.REDUCE, total.dtype, (one, part), total.arg)
    if left:
        row = UOp.range(left, k.arg.child(2))
        out = UOp(total.arg, total.dtype, (out, _sum(total, row + columns.parts * size, row)))
    return ast.substitute({total: out}), one, columns._replace(outside=[part, *columns.outside])


def _sum(total: UOp, rows: UOp, loop: UOp) -> UOp:
    """A sum like `total`, of the rows `rows` that a loop goes through."""
    return UOp(Ops.REDUCE, total.dtype, (total.src[0].substitute({total.src[1]: rows}), loop), total.arg)


class _Columns(NamedTuple):
    """The loops that a sum of columns is inside of, outermost first: those `inside` of a row, and others; and
    in how many parts the rows go side by side."""

    outside: list[UOp]
    inside: list[UOp]
    parts: int


def _columns(total: Sum) -> _Columns | None:
    """The columns that a reduction is of, if it reads something once, row by row, and has many rows."""
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
            return _Columns(outside, inside, _parts(total.node, outside, inside)) if inside else None
    return None


def _parts(total: UOp, outside: list[UOp], inside: list[UOp]) -> int:
    """How many parts of its rows a sum has, where there are few columns for threads to divide."""
    rows, columns = total.src[1].src[0].arg, rounds(inside)
    if columns * total.dtype.itemsize > cost.LONG_COLUMNS or rounds(outside) >= cost.ROW_PARTS:
        return 1
    if rounds([*outside, *inside]) * rows < cost.MIN_PARTED:
        return 1
    parts = min(rows // cost.MIN_PART_ROWS, cost.ROW_PARTS)
    return parts if parts >= cost.MIN_ROW_PARTS else 1
