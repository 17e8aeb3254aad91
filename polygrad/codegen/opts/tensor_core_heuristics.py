"""Products on tensor cores: which core, how many of its blocks a workgroup and a subgroup have, and what goes
through shared memory. The numbers are in cost.py.

    GLOBAL r0, GLOBAL r1
    TENSOR_CORE r0 r1 r2 0                    blocks of 16 rows, 8 columns and 16 terms
    LOCAL r0.0 8, UPCAST r0.0.1 4             2 subgroups, of 4 blocks of rows each
    LOCAL r1.0 8, UPCAST r1.0.1 4             2 subgroups, of 4 blocks of columns
    SPLIT r2.0 2                              terms in chunks of 2 blocks,
    STAGE r2.0.1 LOAD 0, STAGE r2.0.1 LOAD 2  for which both operands are in shared memory

On a core that reads memory itself, the product of 4,096 squared:

    GLOBAL r0, GLOBAL r1
    TENSOR_CORE r0 r1 r2 6                    blocks of 64 rows, 128 columns and 64 terms
    LOCAL r0.0 2                              2 groups of 4 subgroups, of a block of rows each
    STAGE LOAD 0 3, STAGE LOAD 2 3            the operands in 3 buffers: the next ones are copied meanwhile
"""

from __future__ import annotations

import itertools
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
from polygrad.codegen.opts.loops import mergeable
from polygrad.codegen.opts.opt import AxisId, Opt, OptKind
from polygrad.codegen.opts.stage import nodes_of
from polygrad.codegen.opts.tensor_core import efficiency, product_of
from polygrad.codegen.target import Target
from polygrad.helpers import ceildiv, prod
from polygrad.schedule.kernel_info import NestInfo, Product
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
    while chosen is not None and chosen.core.in_memory and (pair := _mergeable_terms(nest, product)):
        kernel = yield opt_of(OptKind.MERGE, *pair)
        nest = find_unbound_nest(kernel, target)
        product = None if nest is None else find_tiled_product(nest)
        if nest is None or product is None:
            return
        chosen = _core(product, target)
    if chosen is None:
        return
    core, rows, columns, terms, _ = chosen
    if core.in_memory:
        yield from _in_memory(nest, chosen, target)
        return
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
    max_chunk = min(cost.CORE_CHUNK // core.k, limits_of(target).shared_bytes // nbytes)
    count = ceildiv(terms.src[0].arg, core.k)
    chunk = next((n for n in range(min(max_chunk, count), 0, -1) if count % n == 0), 0)
    if max(subgroups) < 2 or chunk < 1 or count < 2:  # nobody would share what is copied
        return
    staged: AxisId = (*terms.arg.id, 0)
    if 1 < chunk < count:
        kernel = yield Opt(OptKind.SPLIT, (staged,), (chunk,))
        staged = (*staged, 1)
    elif chunk == 1:
        return
    sides = (rows.arg.id, columns.arg.id)
    while (operand := operand_to_stage(_sum_of(kernel), [staged], sides)) is not None:
        axes = [r for r in _sum_of(kernel).src[1:] if r.arg.id == staged and r in operand.ranges]
        kernel = yield stage_of(kernel, operand, axes)


def _mergeable_terms(nest: NestInfo, product: Product) -> tuple[UOp, UOp] | None:
    """Neighbouring loops of a product's terms that are one: copies go on from round to round of it."""
    loops = [r for r in product.total.src[1:] if r.src[0].is_const]
    return next((pair for pair in itertools.pairwise(loops) if mergeable(nest.node, *pair)), None)


def workgroup_tile(nest: NestInfo, target: Target) -> tuple[int, int] | None:
    """How many of the rows and columns that `find_tiled_product` finds a workgroup computes on a core that
    reads memory; None for a product that is on no such core."""
    product = find_tiled_product(nest) if target.tensor_cores else None
    chosen = None if product is None else _core(product, target)
    if product is None or chosen is None or not chosen.core.in_memory:
        return None
    sides = chosen.core.m * cost.CORE_SUBGROUPS, chosen.core.n
    return sides if chosen.rows is product.rows else (sides[1], sides[0])


def _in_memory(nest: NestInfo, chosen: _Chosen, target: Target) -> Decisions:
    """The Opts of a product whose operands a core reads in memory: a block of columns to a workgroup, and a
    block of rows to each of its groups of lanes."""
    core, rows, columns, terms, _ = chosen
    limits = limits_of(target)
    for r in nest.parallel:
        kernel = yield opt_of(OptKind.GLOBAL, r)
    kernel = yield opt_of(OptKind.TENSOR_CORE, rows, columns, terms, numbers=(TENSOR_CORES.index(core),))
    count = min(cost.CORE_SUBGROUPS, ceildiv(rows.src[0].arg, core.m))
    if count > 1:
        kernel = yield Opt(OptKind.LOCAL, ((*rows.arg.id, 0),), (count,))
    nbytes = core.operands.itemsize * core.k * (core.m * count + core.n)
    depth = min(cost.CORE_DEPTH, limits.shared_bytes // nbytes)
    for side in range(2):
        product = next(n for n in nodes_of(kernel) if n.op is Ops.WMMA)
        kernel = yield stage_of(kernel, product.src[side], [], depth)


def _sum_of(kernel: UOp) -> UOp:
    return next(n for n in nodes_of(kernel) if n.op is Ops.REDUCE)


class _Chosen(NamedTuple):
    core: TensorCore
    rows: UOp
    columns: UOp
    terms: UOp
    use: float  # the part of its multiply-adds that count


def _core(product: Product, target: Target) -> _Chosen | None:
    """The target's first core that takes a sum, and which loops are its rows, columns and terms: those that
    leave least of its blocks unused. A product of few rows is better one of few columns. Of cores that
    read memory, the one that leaves least."""
    reading = {c: axes for c in target.tensor_cores if c.in_memory and (axes := _axes(product, c))}
    if reading:
        return max(reading.values(), key=lambda f: (f.use, f.rows is product.rows, f.core.n))
    others = (_axes(product, core) for core in target.tensor_cores if not core.in_memory)
    return next((f for f in others if f is not None), None)


def _axes(product: Product, core: TensorCore) -> _Chosen | None:
    """Which loops are the rows, columns and terms of a core, if it takes a sum."""
    total, rows, columns = product.total, product.rows, product.columns
    least = cost.MIN_MEMORY_CORE_USE if core.in_memory else cost.MIN_CORE_USE
    best, best_use = None, least
    for m, n in ((rows, columns), (columns, rows)):
        for k in reversed(total.src[1:]):
            if k.arg.kind is not AxisKind.REDUCE or product_of(total, m, n, k, core) is None:
                continue
            use = efficiency(m, n, k, core)
            if use > best_use or (best is None and use == best_use):
                best, best_use = _Chosen(core, m, n, k, use), use
    return best


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
