"""Loop fusion: the parts of a divided inner loop go through the loops around them together.

    for y < 1023: for x < 960: out[x] += a[y, x]
    for y < 1023: for x < 41: out[x + 960] += a[y, x + 960]

    ->  for y < 1023:
            for x < 960: out[x] += a[y, x]
            for x < 41: out[x + 960] += a[y, x + 960]

A part of few elements would go through all rows of a matrix a second time, and read a cache line or two of
each. `opts/split.py` makes such parts of a loop in place that its tiles do not divide, `opts/partition.py` of
one with a condition. Each part stores elements of its own, so their order is free. Parts of an outermost loop
stay one after the other, as they have no loop in common.
"""

from __future__ import annotations

from collections.abc import Iterable

from polygrad.dtype import dtypes
from polygrad.uop.linear import linear_terms
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


def fuse_loops(kernel: UOp) -> UOp:
    """The kernel with neighbouring nests as one where they are parts of the same nest.

    END(STORE(p, x), outer, i), END(STORE(p, y), outer, j)

    ->  END(STORE(AFTER(p, END(STORE(p, x), i)), y), outer, j)
    """
    nests: list[UOp] = []
    for nest in kernel.src:
        fused = _fuse(nests[-1], nest) if nests else None
        if fused is None:
            nests.append(nest)
        else:
            nests[-1] = fused
    return kernel.replace(src=tuple(nests))


def _fuse(first: UOp, second: UOp) -> UOp | None:
    """Two nests as one, if they are parts of the same; else None."""
    if any(nest.op is not Ops.END or nest.src[0].op is not Ops.STORE for nest in (first, second)):
        return None
    if not first.src[1].arg.is_other_segment(second.src[1].arg):
        return None
    common = _common_loops(first.src[1:], second.src[1:])
    while common and not _are_close(first.src[0], second.src[0].substitute(common), common.values()):
        common.popitem()
    if not common:
        return None
    n, store = 1 + len(common), second.src[0].substitute(common)
    done = UOp(Ops.END, dtypes.void, (first.src[0], *first.src[n:])) if first.src[n:] else first.src[0]
    (memory, *position), value = store.src[0].src, store.src[1]
    place = store.src[0].replace(src=(UOp(Ops.AFTER, memory.dtype, (memory, done)), *position))
    remaining = [r.substitute(common) for r in second.src[n:]]
    return UOp(Ops.END, dtypes.void, (store.replace(src=(place, value)), *first.src[1:n], *remaining))


def _common_loops(first: tuple[UOp, ...], second: tuple[UOp, ...]) -> dict[UOp, UOp]:
    """From the outermost on, the loops of `second` that are like those of `first`, with these."""
    common: dict[UOp, UOp] = {}
    for a, b in zip(first, second, strict=False):
        if a.arg.kind is not b.arg.kind or b.src[0].substitute(common) is not a.src[0]:
            break
        common[b] = a
    return common


def _are_close(a: UOp, b: UOp, loops: Iterable[UOp]) -> bool:
    """Whether two stores in the same loops go to the same memory, and are nearer to each other than to those
    of another round."""
    if a.src[0].memory is not b.src[0].memory:
        return False
    around = frozenset(loops)
    left, right = (linear_terms(store.src[0].src[1]) for store in (a, b))
    by_round = [
        {atom: factor for atom, factor in form.terms.items() if not around.isdisjoint(atom.ranges)}
        for form in (left, right)
    ]
    distance = abs(left.constant - right.constant)
    return by_round[0] == by_round[1] and all(distance < abs(factor) for factor in by_round[0].values())
