"""Long sums to few elements on machines with workgroups: parts of them, and then their sum (split-K of BLAS
libraries; TVM calls the step rfactor).

    out[i] = sum(x[k, i] for k < 4096)

    ->  part[p, i] = sum(x[512*p + k, i] for k < 512);  out[i] = sum(part[p, i] for p < 8)

A grid has the workgroups that its output elements make, and few of them leave most of a GPU idle. Products,
columns of tall matrices, gradients of weights and biases are such sums. A kernel that computes long rows of
the sum that each has (a softmax) first gets that sum by a kernel of its own: then its grid is that of the
elements. How many parts there are depends on sizes alone.
"""

from __future__ import annotations

from polygrad.codegen.kernels.fission import (
    Fission,
    divided,
    divided_to_fixed_point,
    element_of,
    fission,
    producer,
    sum_apart,
)
from polygrad.codegen.lower.reductions import canonicalized
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
    """The kernels, with long sums to few elements in two, and apart from long rows that read them."""
    if target.workgroups is None or target.workgroups.software:
        return calls
    return divided(divided_to_fixed_point(calls, _inner_sum_apart), _in_parts)


def _canonical(call: KernelCall) -> KernelInfo | None:
    """A kernel that is worth dividing, canonicalized; None where loops go in order."""
    if not kernel_info(call.ast).is_sum_of(cost.MIN_COPIED_FOR):
        return None
    info = kernel_info(canonicalized(call.ast))
    return None if info.has(Ops.SCAN, Ops.STAGE) else info


def _inner_sum_apart(call: KernelCall) -> Fission | None:
    """The innermost sum of few rows, before the rest of a kernel that computes long ones."""
    info = _canonical(call)
    if info is None or not (sums := info.nests[0].sums):
        return None
    total, loops = sums[0], info.nests[0].parallel
    outside = [r for r in loops if r in total.outer]
    rows, elements = rounds(outside), rounds(loops)
    if len(outside) < len(total.outer) or rows >= cost.MIN_WORKGROUPS or elements < rows * cost.MIN_LONG_ROW:
        return None
    return sum_apart(call, info.ast, total.node, outside)


def _in_parts(call: KernelCall) -> Fission | None:
    """The only sum of a kernel whose grid would be small."""
    info = _canonical(call)
    if info is None or (only := info.nests[0].only_sum) is None or not only.loads:
        return None
    ast, total = info.ast, only.node
    outside = [r for r in info.nests[0].parallel if r in only.outer]
    workgroups, least = workgroups_of_sum(info.nests[0], only)
    if len(outside) < len(only.outer) or workgroups >= cost.FEW_WORKGROUPS:
        return None
    terms = only.loops
    most = min(cost.BUSY_WORKGROUPS // workgroups, rounds(terms) // least)
    counts = _counts([r.src[0].arg for r in terms], most)
    if (parts := int(prod(counts))) < 2:
        return None
    blocks: list[UOp] = []  # of each divided loop
    inner: list[UOp] = []
    at: dict[UOp, UOp] = {}
    numbers = iter(range(len(terms) * 2 + len(outside)))
    for r, count in zip(terms, counts, strict=True):
        size = r.src[0].arg // count
        block = UOp.range(count, next(numbers)) if count > 1 else UOp.index(0)
        rest = UOp.range(size, next(numbers), AxisKind.REDUCE) if size > 1 else UOp.index(0)
        at[r] = block * size + rest
        blocks += [block] if count > 1 else []
        inner += [rest] if size > 1 else []
    named = [r.replace(arg=Axis((next(numbers),), AxisKind.LOOP)) for r in outside]
    at |= dict(zip(outside, named, strict=True))
    part = UOp(Ops.REDUCE, total.dtype, (total.src[0].substitute(at), *inner), total.arg)
    loop = UOp.range(parts, terms[0].arg)
    out = UOp(Ops.REDUCE, total.dtype, (element_of(total, len(call.args), [loop, *outside]), loop), total.arg)
    size = parts * rounds(outside)
    made = producer(part, (*blocks, *named), total.dtype, size)
    return fission(ast.substitute({total: out}), [made])


def _counts(sizes: list[int], most: int) -> list[int]:
    """Into how many parts each loop of a sum is divided, the outermost first: at most so many in all."""
    out = []
    for size in sizes:
        count = max(n for n in range(1, max(min(size, most), 1) + 1) if size % n == 0)
        out.append(count)
        most = most // count if count == size else 1
    return out
