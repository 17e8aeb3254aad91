"""Matrix products in kernels of their own (Halide's compute_root).

    sum((x @ w) * g)  ->  t = x @ w;  sum(t * g)
    x @ w + h @ u     ->  t = h @ u;  x @ w + t    also where x and h are rows

Tiles in registers, in shared memory and in tensor cores are for kernels whose only sum is that of a product.
Elementwise consumers of the product stay in its kernel. Another reduction or a scan over it, and another sum
beside it, do not; neither does padding of a convolution along several axes. On machines with workgroups no
padding does (a concatenation consists of padded operands; on other machines its loop is partitioned). Storing
the product costs little beside reading its operands again and again. For a product of few terms it would cost
much, so a product of integers stays in the sum of floats that it is a term of.
"""

from __future__ import annotations

from polygrad.schedule import cost
from polygrad.schedule.products import is_large_product, is_large_vector_product
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops
from polygrad.uop.shapes import max_numel

_SUMS = frozenset({Ops.REDUCE_AXIS, Ops.SCAN_AXIS})
_EQUALITY = frozenset({Ops.CMPEQ, Ops.CMPNE})


def isolate_products(order: list[UOp], points: set[UOp], grid: bool) -> set[UOp]:
    """Add products that would share a kernel to `points`, the nodes of the toposort `order` that are stored.
    The result is the points whose kernels compute a product, which should move into no other kernel. `grid`:
    for a machine with workgroups, where products share no kernel with padding, and maxima are no products."""
    ends = _SUMS | {Ops.PAD} if grid else _SUMS
    large = {n for n in order if is_large_product(n) and not (grid and n.arg.op is Ops.MAX)}
    vectors = set() if grid else {n for n in order if is_large_vector_product(n)}
    flattened = {n: inner for n in order if (inner := _inner_sum(n)) is not None}
    windowed = set(flattened.values())
    sums_of: dict[UOp, tuple[UOp, ...]] = {}  # the sums that a node's kernel computes for it, in order
    padded: set[UOp] = set()  # around whose sums there is padding: where one is, others are not
    positions: dict[UOp, frozenset[int]] = {}  # nodes computed from ARANGEs: the sizes of these
    selections: dict[UOp, frozenset[int]] = {}  # nodes computed from comparisons with ARANGEs
    for node in order:
        if node.op in GroupOp.Memory or not node.src:
            sums_of[node] = ()
            if node.op is Ops.ARANGE:
                positions[node] = frozenset({max_numel(node.shape)})
            continue
        sources = [s for s in node.src if s not in points]
        sums = {total: None for s in sources for total in sums_of[s] if total not in points}
        for inner in [total for total in sums if total is flattened.get(node) or _is_block(total, node)]:
            del sums[inner]
            if inner in large:
                large.add(node)
        products = [total for total in sums if total in large]
        if node.op is Ops.PAD:
            products = [total for total in products if total not in windowed]
        if not grid and _is_padded(node, [s for s in sources if sums_of[s]], padded):
            padded.add(node)
        if products and (node.op in ends or _is_framed(node, products)):
            points.update(products)
        elif len(sums) > 1 and node.op in GroupOp.Elementwise and node not in padded:
            # one product may stay, if there are only products
            products = [total for total in sums if total in large or total in vectors]
            points.update(products if len(products) < len(sums) else products[:-1])
        elif node.op is Ops.SHRINK and cost.MIN_USED_SHARE * max_numel(node.shape) < max_numel(
            node.src[0].shape
        ):
            sums = {}
        if node.op in _SUMS:
            selected = _sizes_of(selections, sources)
            if not selected or (grid and _is_scatter(node, selected)):
                sums[node] = None
        else:
            if compared := _sizes_of(positions, sources):
                positions[node] = compared
            selected = _sizes_of(selections, sources) | (compared if node.op in _EQUALITY else frozenset())
            if selected:
                selections[node] = selected
        sums_of[node] = tuple(total for total in sums if total is node or total not in points)
    large |= points & vectors
    return {n for n in points if not large.isdisjoint(sums_of.get(n, ()))}


def _sizes_of(sizes: dict[UOp, frozenset[int]], sources: list[UOp]) -> frozenset[int]:
    """All sizes that belong to the sources."""
    return frozenset().union(*(sizes.get(s, ()) for s in sources))


def _is_scatter(total: UOp, selected: frozenset[int]) -> bool:
    """Whether a reduction of selected terms stays a sum: the gradient of a gather. One over the positions of
    a one-hot becomes a load. `selected`: the sizes of the ARANGEs whose elements terms are selected by."""
    sizes = {max_numel((total.src[0].shape[axis],)) for axis in total.arg.axes}
    return total.arg.op is Ops.ADD and sizes.isdisjoint(selected)


def _is_framed(node: UOp, products: list[UOp]) -> bool:
    """Whether a node is padding along several axes of products over windows: a convolution before a pooling.
    No partition of one loop decides both its conditions and those of the padding of its own image."""
    if node.op is not Ops.PAD or sum((lo, hi) != (0, 0) for lo, hi in node.arg) < 2:
        return False
    return any(_is_windowed(s) for total in products for s in total.src[0].src)


def _is_windowed(operand: UOp) -> bool:
    while operand.op in GroupOp.Movement:
        if operand.op is Ops.SHEAR:
            return True
        operand = operand.src[0]
    return False


def _is_block(total: UOp, node: UOp) -> bool:
    """Whether a sum of few integers is a term of a sum of floats: a block of a product of integers with a
    scale for each block. Storing it would cost more than reading its operands."""
    if not (total.dtype.is_int and node.dtype.is_float and node.op is Ops.REDUCE_AXIS):
        return False
    terms = max_numel(total.src[0].shape) // max(max_numel(total.shape), 1)
    return node.arg.op is Ops.ADD and terms <= cost.MAX_BLOCK_TERMS


def _is_padded(node: UOp, sources: list[UOp], padded: set[UOp]) -> bool:
    """Whether a node is padding, or computed from padding. With sums in several of its `sources` it is a
    concatenation."""
    if node.op is Ops.PAD:
        return True
    joins = node.op in GroupOp.Movement or node.op in GroupOp.Elementwise
    return joins and 0 < len(sources) <= (2 if node.op is Ops.ADD else 1) and padded.issuperset(sources)


def _inner_sum(node: UOp) -> UOp | None:
    """The inner one of two sums with windows between them, which are lowered as one sum. This is the gradient
    of a convolution, which is a product again."""
    if node.op is not Ops.REDUCE_AXIS or node.arg.op is not Ops.ADD:
        return None
    inner, has_windows = node.src[0], False
    while inner.op in GroupOp.Movement:
        has_windows |= inner.op is Ops.SHEAR
        inner = inner.src[0]
    is_sum = inner.op is Ops.REDUCE_AXIS and inner.arg.op is Ops.ADD
    return inner if has_windows and is_sum else None
