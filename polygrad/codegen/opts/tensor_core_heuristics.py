"""Products on tensor cores: which core, how many of its blocks a workgroup and a subgroup have, and what goes
through shared memory. The numbers are in cost.py.

    GLOBAL r0, GLOBAL r1
    TENSOR_CORE r0 r1 r2 0                    blocks of 16 rows, 8 columns and 16 terms
    LOCAL r0.0 8, UPCAST r0.0.1 4             2 subgroups, of 4 blocks of rows each
    LOCAL r1.0 8, UPCAST r1.0.1 4             2 subgroups, of 4 blocks of columns
    SPLIT r2.0 2                              terms in chunks of 2 blocks,
    STAGE r2.0.1 LOAD 0, STAGE r2.0.1 LOAD 2  for which both operands are in shared memory
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from polygrad.codegen.opts import cost
from polygrad.codegen.opts.decisions import Decisions, opt_of, stage_of
from polygrad.codegen.opts.gpu_heuristics import (
    find_tiled_product,
    find_unbound_nest,
    limits_of,
    operand_to_stage,
    power,
)
from polygrad.codegen.opts.opt import AxisId, Opt, OptKind
from polygrad.codegen.opts.stage import nodes_of
from polygrad.codegen.opts.tensor_core import efficiency, product_of
from polygrad.codegen.target import Target
from polygrad.helpers import ceildiv, prod
from polygrad.schedule.kernel_info import Product
from polygrad.uop.args import AxisKind
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.shapes import sint_max
from polygrad.uop.tensor_cores import TENSOR_CORES, TensorCore


def tensor_core_products(kernel: UOp, target: Target) -> Decisions:
    """The Opts of a kernel whose sum a tensor core of the target takes."""
    nest = find_unbound_nest(kernel, target)
    product = None if nest is None else find_tiled_product(nest)
    if nest is None or product is None or any(n.op is Ops.SCAN for n in nest.order):
        return
    chosen = _core(product, target)
    if chosen is None:
        return
    core, rows, columns, terms = chosen
    blocks = [ceildiv(rows.src[0].arg, core.m), ceildiv(columns.src[0].arg, core.n)]
    others = int(prod(sint_max(r.src[0]) for r in nest.parallel if r not in (rows, columns)))
    each, subgroups = _shares(blocks, others, limits_of(target).invocations // core.size)
    for r in nest.parallel:
        kernel = yield opt_of(OptKind.GLOBAL, r)
    number = TENSOR_CORES.index(core)
    kernel = yield opt_of(OptKind.TENSOR_CORE, rows, columns, terms, numbers=(number,))
    for r, n, count in zip((rows, columns), each, subgroups, strict=True):
        axis: AxisId = (*r.arg.id, 0)
        if count > 1:
            kernel = yield Opt(OptKind.LOCAL, (axis,), (n * count,))
            axis = (*axis, 1)
        if n > 1:
            kernel = yield Opt(OptKind.UPCAST, (axis,), (n,))
    nbytes = (
        core.operands.itemsize
        * core.k
        * sum(n * count * size for n, count, size in zip(each, subgroups, (core.m, core.n), strict=True))
    )
    most = min(cost.CORE_CHUNK // core.k, limits_of(target).shared_bytes // nbytes)
    count = ceildiv(terms.src[0].arg, core.k)
    chunk = next((n for n in range(min(most, count), 0, -1) if count % n == 0), 0)
    if max(subgroups) < 2 or chunk < 1 or count < 2:  # nobody would share what is copied
        return
    staged: AxisId = (*terms.arg.id, 0)
    if 1 < chunk < count:
        kernel = yield Opt(OptKind.SPLIT, (staged,), (chunk,))
        staged = (*staged, 1)
    elif chunk == 1:
        return
    sides = (rows.arg.id, columns.arg.id)
    while (found := operand_to_stage(_sum_of(kernel), [staged], sides)) is not None:
        axes = [r for r in _sum_of(kernel).src[1:] if r.arg.id == staged and r in found.ranges]
        kernel = yield stage_of(kernel, found, axes)


def _sum_of(kernel: UOp) -> UOp:
    return next(n for n in nodes_of(kernel) if n.op is Ops.REDUCE)


class _Chosen(NamedTuple):
    core: TensorCore
    rows: UOp
    columns: UOp
    terms: UOp


def _core(product: Product, target: Target) -> _Chosen | None:
    """The target's first core that takes a sum, and which loops are its rows, columns and terms: those that
    leave least of its blocks unused. A product of few rows is better one of few columns."""
    total, rows, columns = product.total, product.rows, product.columns
    for core in target.tensor_cores:
        best, best_use = None, cost.MIN_CORE_USE
        for m, n in ((rows, columns), (columns, rows)):
            for k in reversed(total.src[1:]):
                if k.arg.kind is not AxisKind.REDUCE or product_of(total, m, n, k, core) is None:
                    continue
                use = efficiency(m, n, k, core)
                if use > best_use or (best is None and use == best_use):
                    best, best_use = _Chosen(core, m, n, k), use
        if best is not None:
            return best
    return None


def _shares(blocks: Sequence[int], others: int, max_subgroups: int) -> tuple[list[int], list[int]]:
    """How many blocks of rows and of columns a subgroup has, and how many subgroups a workgroup."""
    each = [min(cost.CORE_BLOCKS, power(n)) for n in blocks]
    subgroups = [min(cost.CORE_SUBGROUPS, power(n // e)) for n, e in zip(blocks, each, strict=True)]

    def workgroups() -> int:
        sizes = zip(blocks, each, subgroups, strict=True)
        return others * int(prod(ceildiv(n, e * s) for n, e, s in sizes))

    while prod(subgroups) > max_subgroups:
        subgroups[subgroups.index(max(subgroups))] //= 2
    while workgroups() < cost.MIN_WORKGROUPS and max(each) > 1:
        each[each.index(max(each))] //= 2
    return each, subgroups
