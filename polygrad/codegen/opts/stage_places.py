"""Rows that a kernel computes, sums up and reads again lie in its output, where they can.

    for each row i: { every row[k] = exp(x[i, k]); sum of row[k];     for every c: out[i, c] = row[c] / sum }

    ->  for each row i: { every out[i, k] = exp(x[i, k]); sum of out[i, k];
                          for every c: out[i, c] = out[i, c] / sum }

Lines of the output then come into the cache while exponentials are computed, not while they are divided,
which is little work beside memory. Not where loops end in a tile that overlaps the one before: its elements
would be divided twice.
"""

from __future__ import annotations

from typing import NamedTuple

from polygrad.uop.args import AddrSpace
from polygrad.uop.linear import Terms, linear_terms, sum_of
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


class StagePlace(NamedTuple):
    """A STAGE, the memory that its elements lie in, and the position of the first one there."""

    stage: UOp
    memory: UOp
    first: UOp


def stage_in_output(kernel: UOp) -> StagePlace | None:
    """A STAGE whose elements can lie in the output."""
    if len(kernel.src) != 1 or kernel.src[0].op is not Ops.END:
        return None
    store = kernel.src[0].src[0]
    place = store.src[0]
    output, order = place.src[0], kernel.toposort()
    if len(place.src) != 2 or output.op is not Ops.PARAM or output.arg.space is not AddrSpace.GLOBAL:
        return None
    if any(n.op is Ops.LOAD and n.src[0].src[0] is output for n in order):
        return None
    for stage in (n for n in order if n.op is Ops.STAGE):
        if (first := _first_place(stage, store, order)) is not None:
            return StagePlace(stage, output, first)
    return None


def _first_place(stage: UOp, store: UOp, order: list[UOp]) -> UOp | None:
    """Where in the output the first element of a STAGE lies, if each round of the loops around stores all of
    its elements, in order, each after it was read for the last time."""
    place = store.src[0]
    if stage.dtype is not place.dtype or stage.arg.space is not AddrSpace.LOCAL:
        return None
    reads = {n for n in order if n.op is Ops.INDEX and n.src[0] is stage}
    if any(n.op is Ops.STAGE and n is not stage and not reads.isdisjoint(n.toposort()) for n in order):
        return None
    stored = linear_terms(place.src[1])
    for read in reads:
        form = linear_terms(read.src[1])
        inner = frozenset(form.terms)
        outer = {a: f for a, f in stored.terms.items() if a not in inner}
        is_row = all(stored.terms.get(a) == f for a, f in form.terms.items()) and not form.constant
        if not is_row or any(not a.ranges.isdisjoint(inner) for a in outer):
            continue
        if not _is_whole(form.terms, stage.arg.size):
            continue
        if reads.intersection(_in_round(store.src[1], inner)) == {read}:
            return UOp.index(sum_of(outer, stored.constant))
    return None


def _in_round(value: UOp, inner: frozenset[UOp]) -> list[UOp]:
    """The nodes of a value without those of reductions that are done before the loops `inner`."""
    return value.toposort(lambda n: n.op is not Ops.REDUCE or not n.ranges.isdisjoint(inner))


def _is_whole(terms: Terms, size: int) -> bool:
    """Whether a position is that of all of `size` elements, once each: digits in a mixed radix."""
    if any(a.op is not Ops.RANGE or not a.src[0].is_const for a in terms):
        return False
    reach = 1
    for a, factor in sorted(terms.items(), key=lambda t: t[1]):
        if factor != reach:
            return False
        reach *= a.src[0].arg
    return reach == size
