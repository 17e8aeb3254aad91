"""The definition of a product in a tensor graph; `KernelInfo` has that for kernels.

A product is a reduction whose terms are computed from two or more values, each of which is broadcast. They
may be two matrices, but also the rows of two matrices in a table of distances, or an image's windows and
weights.
"""

from __future__ import annotations

from polygrad.schedule import cost
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops
from polygrad.uop.shapes import max_numel

_COMPUTED = GroupOp.Elementwise | GroupOp.Movement


def is_product(reduction: UOp) -> bool:
    """Whether the terms of a REDUCE_AXIS are computed from two or more values, each element of which is read
    MIN_REUSE times or more."""
    size = max_numel(reduction.src[0].shape)
    operands: set[UOp] = set()
    stack, seen = [reduction.src[0]], set()
    while stack:
        value = stack.pop()
        if value in seen or not value.shape:
            continue
        seen.add(value)
        if cost.MIN_REUSE * max_numel(value.shape) <= size:
            operands.add(value)
        elif value.op in _COMPUTED:
            stack += value.src
        else:
            return False
    return len(operands) > 1


def is_large_product(node: UOp) -> bool:
    """Whether a node is a product that is worth a kernel of its own."""
    return (
        node.op is Ops.REDUCE_AXIS and max_numel(node.src[0].shape) >= cost.MIN_PRODUCT and is_product(node)
    )


def is_large_vector_product(node: UOp) -> bool:
    """Whether a node is a sum of products with a vector, each element of which is read often, that is worth a
    kernel of its own: one row times a large matrix."""
    if node.op is not Ops.REDUCE_AXIS or node.arg.op is not Ops.ADD or node.src[0].op is not Ops.MUL:
        return False
    terms = node.src[0]
    if max_numel(terms.shape) < cost.MIN_VECTOR_PRODUCT:
        return False
    return any(_is_repeated(factor, node.arg.axes) for factor in terms.src)


def _is_repeated(factor: UOp, reduced: tuple[int, ...]) -> bool:
    """Whether a factor is repeated MIN_REUSE times or more, and along no reduced axis."""
    if factor.op is not Ops.EXPAND:
        return False
    before, after = factor.src[0].shape, factor.shape
    repeated = [i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a is not b and a != b]
    times = max_numel(after) // max(max_numel(before), 1)
    return times >= cost.MIN_REUSE and not set(repeated) & set(reduced)
