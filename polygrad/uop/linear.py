"""Linear combinations of integer nodes: dicts from nodes, the atoms, to their coefficients, with the constant
apart."""

from __future__ import annotations

from typing import NamedTuple

from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.sizes import Sint

Terms = dict[UOp, int]


class LinearForm(NamedTuple):
    """sum(coefficient * atom) + constant. `terms` has no zeros; atoms stand in the order written."""

    terms: Terms
    constant: int


class Steps(NamedTuple):
    """The argument of INDEX: the part of the position that is constant per tile element, sum(step * range) +
    offset."""

    steps: tuple[tuple[UOp, int], ...]
    offset: int


def linear_terms(index: UOp) -> LinearForm:
    """`index` as a sum; anything but + and * by a constant is an atom."""
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
    return LinearForm({n: f for n, f in terms.items() if f}, constant)


def sum_of(terms: Terms, constant: int = 0) -> Sint:
    """sum(coefficient * atom) + constant, in this order: a node, or an int when there are no atoms."""
    out: UOp | None = None
    for atom, factor in terms.items():
        if factor:
            term = atom if factor == 1 else atom * factor
            out = term if out is None else out + term
    if out is None:
        return constant
    return out + constant if constant else out


def scaled_bounds(bounds: tuple[int, int], factor: int) -> tuple[int, int]:
    """The bounds of a value within `bounds` times `factor`."""
    lo, hi = bounds
    return (lo * factor, hi * factor) if factor > 0 else (hi * factor, lo * factor)


def sum_bounds(terms: Terms, constant: int = 0) -> tuple[int, int]:
    """The least and greatest value of a sum, without wrapping."""
    lo = hi = constant
    for atom, factor in terms.items():
        lower, upper = scaled_bounds(atom.bounds, factor)  # type: ignore[arg-type]
        lo, hi = lo + lower, hi + upper
    return lo, hi
