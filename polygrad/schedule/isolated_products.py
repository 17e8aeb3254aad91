"""Matrix products in kernels of their own, for machines with workgroups (Halide's compute_root).

    sum((x @ w) * g)  ->  t = x @ w;  sum(t * g)
    x @ w + h @ u     ->  t = h @ u;  x @ w + t

Tiles in shared memory, in registers and in tensor cores are for a kernel whose only sum is the product's.
What is computed of a product element by element stays in its kernel; another sum over it, another sum beside
it and padding around it (a concatenation is padded operands) do not. The product is stored then, which is
little beside reading its operands again and again.
"""

from __future__ import annotations

from polygrad.helpers import prod
from polygrad.schedule.split_reduction import is_product
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops
from polygrad.uop.shapes import max_numel

_MIN_WORK = 1 << 15  # multiply-adds of a product that is worth a launch
_SUMS = frozenset({Ops.REDUCE_AXIS, Ops.SCAN_AXIS})
_EQUALITY = frozenset({Ops.CMPEQ, Ops.CMPNE})
_MIN_SHARE = 2  # of a product at least one in so many elements is used, or it is computed where it is


def isolate_products(order: list[UOp], points: set[UOp]) -> set[UOp]:
    """Add products that would share a kernel to `points`, the nodes of the toposort `order` that are stored;
    those of the points whose kernels compute one, which should move into no other kernel."""
    inside: dict[UOp, tuple[UOp, ...]] = {}  # the sums that a node's kernel computes for it, in order
    positions: set[UOp] = set()  # what is computed of an ARANGE,
    selections: set[UOp] = set()  # and of where one equals something: a sum over that becomes a load
    for node in order:
        if node.op in GroupOp.Memory or not node.src:
            inside[node] = ()
            if node.op is Ops.ARANGE:
                positions.add(node)
            continue
        sources = [s for s in node.src if s not in points]
        found = {total: None for s in sources for total in inside[s] if total not in points}
        products = [total for total in found if is_large_product(total)]
        if products and node.op in _SUMS | {Ops.PAD}:
            points.update(products)
        elif products and len(found) > 1 and node.op in GroupOp.Elementwise:
            # one may stay, if there is nothing but products
            points.update(products if len(products) < len(found) else products[:-1])
        elif node.op is Ops.SHRINK and _MIN_SHARE * max_numel(node.shape) < max_numel(node.src[0].shape):
            found = {}
        if node.op in _SUMS:
            if selections.isdisjoint(sources):
                found[node] = None
        else:
            is_positional = not positions.isdisjoint(sources)
            if is_positional:
                positions.add(node)
            if (is_positional and node.op in _EQUALITY) or not selections.isdisjoint(sources):
                selections.add(node)
        inside[node] = tuple(total for total in found if total is node or total not in points)
    return {n for n in points if any(map(is_large_product, inside.get(n, ())))}


def is_large_product(total: UOp) -> bool:
    """A sum of products of two operands each of whose elements is read again and again."""
    if total.op is not Ops.REDUCE_AXIS or total.arg.op is not Ops.ADD:
        return False
    terms = total.src[0]
    if terms.op is Ops.CAST:
        terms = terms.src[0]
    return (
        all(isinstance(n, int) for n in terms.shape) and prod(terms.shape) >= _MIN_WORK and is_product(terms)
    )
