"""A limit on the operations that a kernel takes for an element, beyond which compilers do badly. The toposort
of a longer expression is divided into blocks, and values that a block needs from earlier blocks are
materialised.

    for 1,000 steps: v -= h * sin(x);  x += h * v      kernels for x and v after every ninth step

The blocks of repeated steps are alike, so few kernels are compiled for any number of steps.
"""

from __future__ import annotations

from polygrad.dtype import dtypes
from polygrad.schedule import cost
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops

_STORABLE = GroupOp.Elementwise | {Ops.REDUCE_AXIS}


def limit_operations(bounds: dict[UOp, int], points: set[UOp]) -> None:
    """Add to `points`, the materialised nodes, until no kernel costs much more to compile than
    MAX_OPERATIONS. `bounds`: for each point an upper bound of its kernel's cost."""
    for root in [n for n, bound in bounds.items() if bound > cost.MAX_OPERATIONS]:
        expression = _expression(root, points)
        if _total(expression) <= cost.MAX_OPERATIONS:
            continue
        reductions = [n for n in expression if n.op is Ops.REDUCE_AXIS and n is not root and n not in points]
        for end in (*reductions, root):  # those inside others first
            _divide(end, points)


def exceeds_limit(*kernels: UOp) -> bool:
    """Whether one kernel that computes all of these ASTs would take too many operations."""
    return sum(_total(ast.toposort()) for ast in kernels) > cost.MAX_OPERATIONS


def _expression(root: UOp, points: set[UOp]) -> list[UOp]:
    """The nodes that the kernel of `root` computes and reads, in order."""
    return root.toposort(lambda n: n is root or n not in points)


def _total(nodes: list[UOp]) -> int:
    return sum(cost.compile_cost(n.op) for n in nodes)


def _divide(end: UOp, points: set[UOp]) -> None:
    """Divide the expression of each element that `end` stores or, if it is a reduction, combines. Another
    reduction in it stays whole, in one block, so that the one-hot of a gather is never stored."""
    order = end.toposort(lambda n: n is end or (n not in points and n.op is not Ops.REDUCE_AXIS))
    blocks: dict[UOp, int] = {}
    block = total = 0
    for node in order:
        is_reduction = node.op is Ops.REDUCE_AXIS and node is not end and node not in points
        operations = _total(_expression(node, points)) if is_reduction else cost.compile_cost(node.op)
        if total and total + operations > cost.MAX_OPERATIONS:
            block, total = block + 1, 0
        total += operations
        blocks[node] = block
    if block == 0:
        return
    for node in order:
        if node.op in GroupOp.Movement or (node in points and node is not end):
            continue
        for view in node.src:
            source, _ = view.movements()
            if blocks.get(source, block) < blocks[node] and _is_worth_storing(source, points):
                points.add(source)


def _is_worth_storing(node: UOp, points: set[UOp]) -> bool:
    """Whether a node is stored rather than computed again. Sums of Variables cannot be: memory has no
    elements of their dtype."""
    if node.op not in _STORABLE or node in points or node.dtype is dtypes.index:
        return False
    return cost.compile_cost(node.op) > 1 or any(s.src and s not in points for s in node.src)
