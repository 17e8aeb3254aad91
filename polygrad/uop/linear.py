"""Index expressions as linear combinations: sum(factor * atom) + constant."""

from __future__ import annotations

from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


def linear_terms(index: UOp) -> tuple[dict[UOp, int], int]:
    """`index` as sum(factor * atom) + constant."""
    terms: dict[UOp, int] = {}
    constant = 0
    stack = [(index, 1)]
    while stack:
        node, factor = stack.pop()
        if node.op is Ops.ADD:
            stack.append((node.src[1], factor))
            stack.append((node.src[0], factor))
        elif node.op is Ops.CONST:
            constant += factor * node.arg
        elif node.op is Ops.MUL and node.src[1].is_const:
            stack.append((node.src[0], factor * node.src[1].arg))
        else:
            terms[node] = terms.get(node, 0) + factor
    return {n: f for n, f in terms.items() if f}, constant


def sum_of(terms: dict[UOp, int], constant: int = 0) -> UOp:
    """The UOp of sum(factor * atom) + constant."""
    out: UOp | None = None
    for atom, factor in terms.items():
        term = atom if factor == 1 else atom * factor
        out = term if out is None else out + term
    if out is None:
        return UOp.index(constant)
    return out + constant if constant else out
