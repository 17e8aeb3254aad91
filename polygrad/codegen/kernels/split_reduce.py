"""A reduction in parts, and the reduction of these (split-K; TVM calls the step rfactor).

    out[i] = sum(x[k, i] for k < 4096)

    ->  part[p, i] = sum(x[512*p + k, i] for k < 512);  out[i] = sum(part[p, i] for p < 8)

Parts are output elements, which threads and workgroups divide; the terms of a sum they do not.
`cost.sum_parts` says when and how many, by sizes alone: so the result does not depend on the number of
threads, by the bit. A sum that others need is stored by a kernel of its own first: in a softmax of long rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from polygrad.codegen.kernels.division import (
    axes_of,
    canonical_info,
    load_value,
    store_sum_before,
    store_value,
)
from polygrad.codegen.kernels.kernel_opt import AxisId, KernelContext, KernelOpt, Kind, Proposal
from polygrad.codegen.opts import cost
from polygrad.codegen.opts.gpu_heuristics import workgroups_of_sum
from polygrad.codegen.opts.tensor_core_heuristics import workgroup_tile
from polygrad.errors import OptError
from polygrad.helpers import prod
from polygrad.schedule.kernel_info import KernelInfo, NestInfo, Sum, kernel_info, rounds
from polygrad.schedule.kernels import KernelCall
from polygrad.uop.args import Axis, AxisKind
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


def _info(call: KernelCall, context: KernelContext) -> KernelInfo | None:
    """A kernel in canonical form; None if it is too small to be divided, or loops go in order."""
    limits = context.target.workgroups
    if limits is None or limits.software or not kernel_info(call.ast).is_sum_of(cost.MIN_COPIED_FOR):
        return None
    info = canonical_info(call.ast)
    return None if info.has(Ops.SCAN, Ops.STAGE) else info


def propose_parts_of_few(call: KernelCall, context: KernelContext) -> Iterator[Proposal]:
    """Parts of long sums to few elements, of which there would be none for threads to divide; and of a
    product of long sums, so that what each part reads again and again stays in the cache (BLAS libraries
    block along the terms for that)."""
    info = kernel_info(call.ast)
    reduced = [r for r in info.ranges if r.arg.kind is AxisKind.REDUCE]
    if info.only_nest is None or not info.is_static or rounds(reduced) < context.least(cost.MIN_LONG_PRODUCT):
        return
    info = canonical_info(call.ast)
    if info.has(Ops.SCAN, Ops.STAGE):
        return
    nest = info.nests[0]
    for total in nest.sums:
        outputs = rounds(total.outer)
        if not total.loads or not total.outer.issubset(nest.parallel) or total.selection is not None:
            continue
        pays, is_product = True, _is_product(total, nest)
        if total.terms >= cost.MIN_REDUCED and outputs < cost.FEW_PARTS.few:
            counts = cost.sum_parts(total.terms, outputs, cost.FEW_PARTS)
        elif is_product and total.terms >= cost.MIN_LONG_PRODUCT:
            counts = cost.product_parts(total.terms, outputs, has_windows=len(total.loops) > 1)
        else:
            pays, counts = False, range(cost.FEW_PARTS.least, 1, -1)
        if pays or context.searching:
            yield from _propose_parts(total, counts, pays, has_rest=is_product)


def _is_product(total: Sum, nest: NestInfo) -> bool:
    return total is nest.only_sum and total.op is Ops.ADD and total.reuse >= cost.MIN_LONG_REUSE


def _propose_parts(
    total: Sum, counts: range, pays: bool = True, has_rest: bool = False
) -> Iterator[Proposal]:
    """The loops of a sum, the outermost first, in equal parts, in all as many as possible of `counts`.
    `has_rest`: a single loop that has no equal parts is divided nevertheless, and has a rest."""
    parts: dict[AxisId, int] = {}
    for r in total.loops:
        size = r.src[0].arg
        count = next((n for n in counts if n <= size and size % n == 0), 0)
        if not count and counts and has_rest and len(total.loops) == 1:
            count = counts.start
        if count > 1:
            parts[r.arg.id] = count
        if count:
            counts = range(counts.start // count if count == size and counts.step < 0 else 0, 0, -1)
    if parts and prod(parts.values()) < total.terms:
        yield Proposal(KernelOpt(Kind.SPLIT_REDUCE, (), tuple(parts), tuple(parts.values())), pays)


def propose_root_of_rows(call: KernelCall, context: KernelContext) -> Iterator[Proposal]:
    """The innermost sum of a kernel that computes few long rows of it: the grid of the rest is that of all
    elements."""
    info = _info(call, context)
    if info is None or not (sums := info.nests[0].sums):
        return
    loops = info.nests[0].parallel
    outside = [r for r in loops if r in sums[0].outer]
    rows, elements = rounds(outside), rounds(loops)
    if len(outside) == len(sums[0].outer) and elements > rows:
        pays = rows < cost.MIN_WORKGROUPS and elements >= rows * cost.MIN_LONG_ROW
        yield Proposal(KernelOpt(Kind.COMPUTE_ROOT, numbers=(0,)), pays)


def propose_parts(call: KernelCall, context: KernelContext) -> Iterator[Proposal]:
    """Parts of a sum of whose output elements a grid has few workgroups."""
    info = _info(call, context)
    if info is None or (only := info.nests[0].only_sum) is None or not only.loads:
        return
    if not only.outer.issubset(info.nests[0].parallel):
        return
    workgroups, min_terms = workgroups_of_sum(
        info.nests[0], only, workgroup_tile(info.nests[0], context.target)
    )
    rule = cost.GRID_PARTS._replace(min_terms=min_terms)
    yield from _propose_parts(only, cost.sum_parts(only.terms, workgroups, rule))


# --- the mechanism


def compute_root(ast: UOp, slots: int, number: int) -> tuple[UOp, ...]:
    """A kernel that stores one sum of another, and that one, which reads it. `slots`: how many arguments it
    has.

    out[i, j] = f(sum(x[i, k] for k), j)  ->  t[i] = sum(x[i, k] for k);  out[i, j] = f(t[i], j)
    """
    info = canonical_info(ast)
    (nest,) = info.nests
    if number >= len(nest.sums):
        raise OptError(f"sum {number}: the kernel has {len(nest.sums)} sums")
    total = nest.sums[number]
    if total.node is nest.value and total.outer.issuperset(nest.loops):
        raise OptError(f"sum {number}: it is all that the kernel computes")
    return store_sum_before(info.ast, total.node, slots)


def split_reduce(ast: UOp, slots: int, axes: Sequence[AxisId], parts: Sequence[int]) -> tuple[UOp, ...]:
    """A kernel that stores parts of a sum of another, and that one, which adds them. Terms that no part has
    are added last. `slots`: how many arguments the kernel has; `axes`: loops of the sum.

    out[i] = sum(x[k, i] for k < 4096)

    ->  part[p, i] = sum(x[512*p + k, i] for k < 512);  out[i] = sum(part[p, i] for p < 8)
    """
    info = canonical_info(ast)
    counts = dict(zip(axes_of(info, axes), parts, strict=False))
    only = next((s for s in info.nests[0].sums if counts.keys() <= set(s.loops)), None)
    if only is None or len(axes) != len(parts) or any(not 1 < n <= r.src[0].arg for r, n in counts.items()):
        raise OptError("expected loops of a sum, and 2 parts of each up to as many as it has rounds")
    if prod(counts.values()) >= only.terms:
        raise OptError(f"expected fewer parts than the {only.terms} terms of the sum")
    total, outside = only.node, sorted(only.outer, key=lambda r: r.arg)
    if any(r.arg.kind is not AxisKind.LOOP for r in outside) or info.has(Ops.SCAN, Ops.STAGE):
        raise OptError("expected a kernel whose loops may run in any order, and without memory of its own")
    left = {r: r.src[0].arg % n for r, n in counts.items()}
    if any(left.values()) and len(counts) > 1:
        raise OptError("expected parts of equal size if several loops are divided")
    blocks: list[UOp] = []  # of each divided loop
    inner: list[UOp] = []
    at: dict[UOp, UOp] = {}
    numbers = itertools.count()
    for r in only.loops:
        count = counts.get(r, 1)
        size = r.src[0].arg // count
        at[r] = UOp.index(0)
        if count > 1:
            blocks.append(UOp.range(count, next(numbers)))
            at[r] = blocks[-1] * size
        if size > 1:
            inner.append(UOp.range(size, next(numbers), AxisKind.REDUCE))
            at[r] = at[r] + inner[-1] if count > 1 else inner[-1]
    named = [r.replace(arg=Axis((next(numbers),), AxisKind.LOOP)) for r in outside]
    at |= dict(zip(outside, named, strict=True))
    for n in total.src[0].toposort():
        if n.op is Ops.RANGE and n not in at:  # of a sum inside of it
            at[n] = n.replace(arg=n.arg._replace(id=(next(numbers),)))
    part = total.src[0].substitute(at)
    if inner:  # parts have more than one term
        part = UOp(Ops.REDUCE, total.dtype, (part, *inner), total.arg)
    loop = UOp.range(int(prod(parts)), total.src[1].arg)
    out = UOp(Ops.REDUCE, total.dtype, (load_value(total.dtype, [loop, *outside], slots), loop), total.arg)
    for r, count in left.items():
        if count:
            row = UOp.range(count, r.arg.child(2))
            last = total.src[0].substitute({r: row + (r.src[0].arg - count)})
            loops = [row if s is r else s for s in only.loops]
            out = UOp(total.arg, total.dtype, (out, UOp(Ops.REDUCE, total.dtype, (last, *loops), total.arg)))
    return store_value(part, [*blocks, *named], slots), info.ast.substitute({total: out})
