"""Loop partition (index-set splitting): an output loop becomes several where a condition on it changes, so
that each part knows whether the condition holds.

    for r < 9: out[r] = r < 3 ? a[r] : b[r - 3]   ->   for r < 3: out[r] = a[r];  for r < 6: out[r + 3] = b[r]

A padded or concatenated operand is then computed only for the elements that need it: without partition the
gradient of a split into three would add up all three thirds for each element. A condition that also depends
on other loops is decided from some value on, or up to one: only the windows at the ends of a padded row look
beyond it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from polygrad.codegen.opts.loops import nest_of, replace_loops, require_any_order
from polygrad.codegen.opts.split import overlaps, renamed_ranges
from polygrad.codegen.opts.tile import is_bound
from polygrad.dtype import dtypes
from polygrad.errors import OptError
from polygrad.helpers import ceildiv
from polygrad.schedule.kernel_info import NestInfo, nest_info
from polygrad.uop.linear import linear_terms, sum_bounds
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.rewrite import graph_rewrite
from polygrad.uop.sizes import add_terms
from polygrad.uop.symbolic import symbolic


def partition(kernel: UOp, r: UOp, bounds: tuple[int, ...]) -> UOp:
    """The loop `r` divided where its value is one of `bounds`. Raises OptError.

    for r < 9: out[r] = r < 3 ? a[r] : b[r - 3], bounds (3,)

    ->  for r < 3: out[r] = a[r];  for r < 6: out[r + 3] = b[r]
    """
    nest = nest_of(kernel, r)
    require_any_order(r)
    if nest_info(nest).is_in_place:
        raise OptError("expected a kernel that does not read what it writes")
    if overlaps(nest, r) and any(is_bound(n) for n in nest.toposort()):
        raise OptError("expected a loop that writes each element once, as axes are bound")
    points = [0, *bounds, r.src[0].arg]
    if any(a >= b for a, b in itertools.pairwise(points)):
        raise OptError(f"expected increasing values between 0 and {r.src[0].arg}, got {bounds}")
    parts = [_part(nest, r, a, b, i) for i, (a, b) in enumerate(itertools.pairwise(points))]
    return replace_loops(kernel, nest, *parts)


def changes(nest: UOp, r: UOp) -> tuple[int, ...]:
    """The values of `r` at which a comparison changes, or begins or ceases to be decided for all values of
    other loops."""
    size = r.src[0].arg
    comparisons = (n for n in nest.toposort() if n.op is Ops.CMPLT and r in n.ranges)
    return tuple(sorted({p for n in comparisons for p in _changes_at(n, r) if 0 < p < size}))


def divisions(info: NestInfo) -> Iterator[tuple[UOp, tuple[int, ...]]]:
    """The loops of constant size that may be divided where conditions change, and the values at which these
    do. A loop with a sum outside of it is left whole, because each part would compute the sum again."""
    for r in info.parallel:
        if r.src[0].is_const and all(r in total.outer for total in info.sums):
            if bounds := changes(info.node, r):
                yield r, bounds


def _changes_at(comparison: UOp, r: UOp) -> tuple[int, ...]:
    """The values of `r` at which a < b begins or ceases to be always true, or always false. The comparison
    holds where b - a = c*r + other terms is at least 1."""
    a, b = comparison.src
    if a.dtype is not dtypes.index:
        return ()
    left, right = linear_terms(a), linear_terms(b)
    terms = add_terms(right.terms, left.terms, -1)
    c = terms.pop(r, 0)
    if not c or any(r in atom.ranges for atom in terms):
        return ()
    lo, hi = sum_bounds(terms, right.constant - left.constant)
    if c > 0:  # false while c*r + hi < 1, true as soon as c*r + lo >= 1
        return ceildiv(1 - hi, c), ceildiv(1 - lo, c)
    return (lo - 1) // -c + 1, (hi - 1) // -c + 1  # true up to the first, false from the second on


def _part(nest: UOp, r: UOp, start: int, stop: int, number: int) -> UOp:
    """The elements from `start` to `stop` of `r`, in loops of their own."""
    ranges = [n for n in nest.toposort() if n.op is Ops.RANGE]
    new = renamed_ranges(ranges, lambda axis: axis.segment(number))
    new[r] = UOp.range(stop - start, new[r].arg)
    store = nest.src[0].substitute(new | {r: new[r] + start} if start else new)
    return graph_rewrite(UOp(Ops.END, dtypes.void, (store, *(new[q] for q in nest.src[1:]))), symbolic)
