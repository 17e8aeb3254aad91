"""Constant offsets separated from indices: a kernel that works on a part of a buffer gets a pointer to it.

    x[64:128] @ w:  x[d*r + k + 64*d] * w[...]        ->  p[d*r + k] * w[...],  p = x + 64*d

So all rows and all batches of a tensor have one kernel, which is compiled once. (LLVM's pass of this kind is
SeparateConstOffsetFromGEP.) Offsets keep the alignment of buffers; the remainder stays in the index.
"""

from __future__ import annotations

from dataclasses import replace

from polygrad.schedule.kernels import KernelCall
from polygrad.uop.args import AddrSpace
from polygrad.uop.linear import linear_terms, sum_of
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


def separate_offsets(calls: list[KernelCall], alignment: int) -> list[KernelCall]:
    """The kernels with offsets, in bytes, that are multiples of `alignment`. It is the last pass over
    KernelCalls: no other considers offsets."""
    separated = {ast: _separate(ast, alignment) for ast in {call.ast for call in calls}}
    return [_with(call, *separated[call.ast]) for call in calls]


def _with(call: KernelCall, ast: UOp, offsets: dict[int, int]) -> KernelCall:
    if ast is call.ast:
        return call
    return replace(call, ast=ast, offsets=tuple([offsets.get(i, 0) for i in range(len(call.args))]))


def _separate(ast: UOp, alignment: int) -> tuple[UOp, dict[int, int]]:
    """The kernel with PARAMs of the size that it accesses, and the byte offset of each slot that has one.

    LOAD(INDEX(PARAM 1 of 256 float32, 64 + k < 128))

    ->  LOAD(INDEX(PARAM 1 of 64 float32, k)), {1: 256}
    """
    order = ast.toposort()
    new: dict[UOp, UOp] = {}
    skipped: dict[UOp, int] = {}  # the number of elements by which each PARAM begins later
    for param, indices in _accesses(order).items():
        first = max(min(index.vmin for index in indices), 0)
        start = first - first % (alignment // param.dtype.itemsize)
        size = min(max(index.vmax for index in indices) + 1, param.arg.size) - start
        if 0 < size < param.arg.size:
            new[param] = param.replace(arg=param.arg._replace(size=size))
            skipped[param] = start
    if not new:
        return ast, {}
    for node in order:
        if node in new:
            continue
        src = tuple([new[s] for s in node.src])
        if node.op is Ops.INDEX and skipped.get(node.src[0]):
            terms, constant = linear_terms(src[1])
            src = (src[0], UOp.index(sum_of(terms, constant - skipped[node.src[0]])), *src[2:])
        new[node] = node.over(src)
    return new[ast], {param.arg.slot: n * param.dtype.itemsize for param, n in skipped.items()}


def _accesses(order: list[UOp]) -> dict[UOp, list[UOp]]:
    """The indices at which each buffer is accessed, for buffers that are accessed in no other way."""
    indices_of: dict[UOp, list[UOp]] = {}
    others: set[UOp] = set()
    for node in order:
        for source in node.src:
            if source.op is not Ops.PARAM or source.arg.space is not AddrSpace.GLOBAL:
                continue
            if node.op is Ops.INDEX and source is node.src[0]:
                indices_of.setdefault(source, []).append(node.src[1])
            else:
                others.add(source)
    return {param: indices for param, indices in indices_of.items() if param not in others}
