"""Split-K, for machines with workgroups: a long sum becomes sums of its parts, and the sum of these (TVM
calls the step rfactor).

    out[i] = sum(x[k, i] for k < 4096)

    ->  part[p, i] = sum(x[512*p + k, i] for k < 512);  out[i] = sum(part[p, i] for p < 8)

A grid has as many workgroups as its output elements fill; few workgroups leave most of a GPU idle. Products,
columns of tall matrices, and gradients of weights and biases are such sums. In a softmax of few long rows,
the sums of the rows become kernels of their own: the grid of the rest is that of all elements. The number of
parts depends on sizes alone.
"""

from __future__ import annotations

from polygrad.codegen.kernels.fission import (
    Fission,
    divide_kernels,
    divide_to_fixed_point,
    load_element,
    make_fission,
    make_producer,
    store_sum_before,
)
from polygrad.codegen.lower.reductions import canonicalize
from polygrad.codegen.opts import cost
from polygrad.codegen.opts.gpu_heuristics import workgroups_of_sum
from polygrad.codegen.target import Target
from polygrad.helpers import prod
from polygrad.schedule.kernel_info import KernelInfo, kernel_info, rounds
from polygrad.schedule.kernels import KernelCall
from polygrad.uop.args import Axis, AxisKind
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


def split_k(calls: list[KernelCall], target: Target) -> list[KernelCall]:
    """The kernels, with long sums to few elements in two steps, and stored before the long rows that read
    them."""
    if target.workgroups is None or target.workgroups.software:
        return calls
    return divide_kernels(divide_to_fixed_point(calls, _store_inner_sum), _split_sum)


def _canonical_info(call: KernelCall) -> KernelInfo | None:
    """What a kernel in canonical form is; None if it is too small to be divided, or loops go in order."""
    if not kernel_info(call.ast).is_sum_of(cost.MIN_COPIED_FOR):
        return None
    info = kernel_info(canonicalize(call.ast))
    return None if info.has(Ops.SCAN, Ops.STAGE) else info


def _store_inner_sum(call: KernelCall) -> Fission | None:
    """A kernel that computes few long rows of their sums, with the innermost sum stored before."""
    info = _canonical_info(call)
    if info is None or not (sums := info.nests[0].sums):
        return None
    total, loops = sums[0], info.nests[0].parallel
    outside = [r for r in loops if r in total.outer]
    rows, elements = rounds(outside), rounds(loops)
    if len(outside) < len(total.outer) or rows >= cost.MIN_WORKGROUPS or elements < rows * cost.MIN_LONG_ROW:
        return None
    return store_sum_before(call, info.ast, total.node, outside)


def _split_sum(call: KernelCall) -> Fission | None:
    """A kernel with one sum and a small grid, with the sums of the parts stored before."""
    info = _canonical_info(call)
    if info is None or (only := info.nests[0].only_sum) is None or not only.loads:
        return None
    ast, total = info.ast, only.node
    outside = [r for r in info.nests[0].parallel if r in only.outer]
    workgroups, min_terms = workgroups_of_sum(info.nests[0], only)
    if len(outside) < len(only.outer) or workgroups >= cost.FEW_WORKGROUPS:
        return None
    terms = only.loops
    max_parts = min(cost.BUSY_WORKGROUPS // workgroups, rounds(terms) // min_terms)
    counts = _count_parts([r.src[0].arg for r in terms], max_parts)
    if (parts := int(prod(counts))) < 2:
        return None
    blocks: list[UOp] = []  # of each divided loop
    inner: list[UOp] = []
    at: dict[UOp, UOp] = {}
    numbers = iter(range(len(terms) * 2 + len(outside)))
    for r, count in zip(terms, counts, strict=True):
        size = r.src[0].arg // count
        block = UOp.range(count, next(numbers)) if count > 1 else UOp.index(0)
        term = UOp.range(size, next(numbers), AxisKind.REDUCE) if size > 1 else UOp.index(0)
        at[r] = block * size + term
        blocks += [block] if count > 1 else []
        inner += [term] if size > 1 else []
    named = [r.replace(arg=Axis((next(numbers),), AxisKind.LOOP)) for r in outside]
    at |= dict(zip(outside, named, strict=True))
    part = UOp(Ops.REDUCE, total.dtype, (total.src[0].substitute(at), *inner), total.arg)
    loop = UOp.range(parts, terms[0].arg)
    partial = load_element(total, len(call.args), [loop, *outside])
    out = UOp(Ops.REDUCE, total.dtype, (partial, loop), total.arg)
    size = parts * rounds(outside)
    made = make_producer(part, (*blocks, *named), total.dtype, size)
    return make_fission(ast.substitute({total: out}), [made])


def _count_parts(sizes: list[int], max_parts: int) -> list[int]:
    """The number of parts of each loop of a sum, outermost first: `max_parts` in all at the most."""
    out = []
    for size in sizes:
        count = max(n for n in range(1, max(min(size, max_parts), 1) + 1) if size % n == 0)
        out.append(count)
        max_parts = max_parts // count if count == size else 1
    return out
