"""Sums of columns, a block of rows at a time (TVM calls the step rfactor).

    sum(x[k, c] for k < K)  ->  part[b, c] = sum(x[64*b + k, c] for k < 64);  sum(part[b, c] for b < K / 64)

A sum of columns goes through them a few at a time, and each time from row to row. Where pages are small, the
processor has the addresses of few at hand: those of a block of rows stay for all of its columns. `part` is
computed by a kernel of its own, before; rows beyond the last block are summed up beside it.
"""

from __future__ import annotations

from typing import NamedTuple

from polygrad.codegen import cost
from polygrad.codegen.fission import (
    Fission,
    divided,
    divided_to_fixed_point,
    element_of,
    fission,
    is_divisible,
    producer,
    sum_apart,
)
from polygrad.codegen.reductions import canonicalized
from polygrad.codegen.target import Target
from polygrad.schedule.kernels import KernelCall
from polygrad.uop.args import Axis, AxisKind
from polygrad.uop.linear import linear_terms
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


def rfactor(calls: list[KernelCall], target: Target) -> list[KernelCall]:
    """The kernels, with sums of columns in two: of blocks, and of what these have. A sum of columns that
    another sum needs (the mean, of a variance) is first computed by a kernel of its own."""
    if not target.pages:
        return calls
    calls = divided_to_fixed_point(calls, lambda call: _inner_sum_apart(call, target))
    return divided(calls, lambda call: _in_blocks(call, target))


def _inner_sum_apart(call: KernelCall, target: Target) -> Fission | None:
    """The innermost of several sums, if it is of columns, before the rest of the kernel."""
    if not is_divisible(call.ast):
        return None
    sums = [n for n in call.ast.toposort() if n.op is Ops.REDUCE]
    if len(sums) < 2 or _columns(sums[0], target) is None:
        return None
    return sum_apart(call, call.ast, sums[0], sorted(sums[0].ranges, key=lambda r: r.arg))


def _in_blocks(call: KernelCall, target: Target) -> Fission | None:
    """The only sum of a kernel, if it is of columns: of blocks of rows, then of the blocks."""
    if not is_divisible(call.ast):
        return None
    ast = canonicalized(call.ast)
    sums = [n for n in ast.toposort() if n.op is Ops.REDUCE]
    if len(sums) != 1 or not (columns := _columns(sums[0], target)):
        return None
    (total,) = sums
    value, k = total.src
    count, rest = divmod(k.src[0].arg, columns.rows)
    blocks = UOp.range(count, 0)
    loops = [r.replace(arg=Axis((i,), AxisKind.LOOP)) for i, r in enumerate(columns.loops, 1)]
    row = UOp.range(columns.rows, len(loops) + 1, AxisKind.REDUCE)
    at = {k: blocks * columns.rows + row, **dict(zip(columns.loops, loops, strict=True))}
    part = UOp(Ops.REDUCE, total.dtype, (value.substitute(at), row), total.arg)
    block = UOp.range(count, k.arg.child(0))
    read = element_of(total, len(call.args), [block, *columns.loops])
    out = UOp(Ops.REDUCE, total.dtype, (read, block), total.arg)
    if rest:
        last = UOp.range(rest, k.arg.child(1))
        beyond = value.substitute({k: last + count * columns.rows})
        out = UOp(total.arg, total.dtype, (out, UOp(Ops.REDUCE, total.dtype, (beyond, last), total.arg)))
    size = cost.rounds([blocks, *loops])
    return fission(ast.substitute({total: out}), [producer(part, (blocks, *loops), total.dtype, size)])


class _Columns(NamedTuple):
    """What a sum of columns is inside of, outermost first; `rows`: of a block."""

    loops: list[UOp]
    rows: int


def _columns(total: UOp, target: Target) -> _Columns | None:
    """The columns that a reduction is of, if it reads something once, row by row, and has rows for blocks."""
    if len(total.src) != 2:
        return None
    value, k = total.src
    for load in value.toposort():
        if load.op is not Ops.LOAD or load.ranges != value.ranges:
            continue
        terms, _ = linear_terms(load.src[0].src[1])
        if terms.keys() != load.ranges or 1 not in terms.values():
            continue
        nbytes = abs(terms.get(k, 0)) * load.dtype.itemsize
        if nbytes >= cost.MIN_FAR_ROW:
            rows = target.pages * max(target.page // nbytes, 1)
            loops = sorted(load.ranges - {k}, key=lambda r: -abs(terms[r]))
            return _Columns(loops, rows) if loops and k.src[0].arg >= cost.MIN_ROW_BLOCKS * rows else None
    return None
