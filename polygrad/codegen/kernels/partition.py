"""A kernel for each operand of a concatenation of many (index-set splitting).

    for r < 80: out[r] = r < 8 ? a[r] : r < 16 ? b[r - 8] : ...   ->   for r < 8: out[r] = a[r];  ...

A concatenation of few operands is one kernel with a loop for each of them (opts/partition.py). With many
operands each element would be selected from all of them. Kernels of equal operands differ only in the
constant part of their indices, so they share code (separate_offsets.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from polygrad.codegen.kernels.division import axes_of, divide_loop
from polygrad.codegen.kernels.kernel_opt import AxisId, KernelContext, KernelOpt, Kind, Proposal
from polygrad.codegen.opts import cost
from polygrad.codegen.opts.partition import divisions
from polygrad.errors import OptError
from polygrad.helpers import prod
from polygrad.schedule.kernel_info import NestInfo, kernel_info
from polygrad.schedule.kernels import KernelCall
from polygrad.uop.node import UOp


def propose_partition(call: KernelCall, context: KernelContext) -> Iterator[Proposal]:
    """The first loop on which conditions change more often than one kernel has loops."""
    info = kernel_info(call.ast)
    nest = info.only_nest
    if nest is None or not info.is_static or nest.is_in_place:
        return
    for r, bounds in divisions(nest):
        if len(bounds) >= context.least(cost.MAX_PARTS):
            yield Proposal(KernelOpt(Kind.PARTITION, (), (r.arg.id,), bounds), _pays(nest, r, bounds))
            return


def _pays(nest: NestInfo, r: UOp, bounds: Sequence[int]) -> bool:
    """Whether there is enough work for each kernel, in rows of the output that fill lines of the cache."""
    smallest = min(b - a for a, b in itertools.pairwise((0, *bounds, r.src[0].arg)))
    row = smallest * nest.write.stride(r)
    elements = smallest * prod(q.src[0].arg for q in nest.parallel if q is not r)
    few = len(bounds) < cost.MAX_PART_KERNELS
    return few and row >= cost.MIN_PART_WRITTEN and elements >= cost.MIN_PART_ELEMENTS


def partition(ast: UOp, axes: Sequence[AxisId], bounds: Sequence[int]) -> tuple[UOp, ...]:
    """A kernel for each part of a loop over output elements, which `bounds` divide. Raises OptError.

    for r < 9: out[r] = r < 3 ? a[r] : b[r - 3], bounds (3,)

    ->  for r < 3: out[r] = a[r]  and  for r < 6: out[r + 3] = b[r]
    """
    info = kernel_info(ast)
    nest = info.only_nest
    if nest is None or not info.is_static or nest.is_in_place:
        raise OptError("expected a kernel of constant sizes with one output nest, which it does not read")
    (loop,) = axes_of(info, axes)
    points = (0, *bounds, loop.src[0].arg)
    if loop not in nest.parallel or any(a >= b for a, b in itertools.pairwise(points)):
        raise OptError(f"expected a loop over output elements, and increasing numbers in it, got {bounds}")
    return tuple(divide_loop(ast, loop, bounds))
