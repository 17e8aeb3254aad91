"""Loop peeling: the first or last round of a loop that fills memory becomes code of its own, where only that
round has lanes to check.

    for r < 8: row[8*r + lane] = 0 < 8*r + lane ? x[8*r + lane - 1] : 0

    ->  row[lane] = 0 < lane ? x[lane - 1] : 0;  for r < 7: row[8*r + lane + 8] = x[8*r + lane + 7]

A padded row is filled that way: a check of lanes takes as long as the loads that it guards. Loops over output
elements are divided before they have lanes (opts/partition.py), which a STAGE, one value, cannot be.

Runs on kernels whose memory is filled by loops.
"""

from __future__ import annotations

import itertools

from polygrad.codegen.opts.split import renamed_ranges
from polygrad.codegen.opts.tile import is_tile
from polygrad.dtype import dtypes
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.rewrite import graph_rewrite
from polygrad.uop.symbolic import simplify, symbolic


def peel_fills(kernel: UOp) -> UOp:
    """The kernel in which loops that fill memory check lanes in their first and last rounds alone."""
    new: dict[UOp, UOp] = {}
    for node in kernel.toposort():
        src = tuple([new[s] for s in node.src])
        if node.op is Ops.AFTER and node.src[0].op is Ops.PARAM and src[1].op is Ops.END:
            src = (src[0], *(part for fill in src[1:] for part in _parts(fill)))
        new[node] = node.over(src)
    return new[kernel]


def _parts(fill: UOp) -> list[UOp]:
    """The rounds that `fill` is divided into, in order."""
    if fill.op is not Ops.END or fill.src[0].op is not Ops.STORE:
        return [fill]
    order, r = fill.toposort(), fill.src[-1]
    if not r.src[0].is_const or any(n.op is Ops.AFTER for n in order):  # registers would need new names
        return [fill]
    size = r.src[0].arg
    checks = [n for n in order if n.op is Ops.CMPLT and r in n.ranges and any(map(is_tile, n.ranges))]
    checks = [n for n in checks if not _is_decided(n, r, 0, size)]
    start = 1 if any(_is_decided(n, r, 1, size) for n in checks) else 0
    checks = [n for n in checks if not _is_decided(n, r, start, size)]
    stop = size - 1 if any(_is_decided(n, r, start, size - 1) for n in checks) else size
    points = sorted({0, start, stop, size})
    if len(points) == 2:
        return [fill]
    return [_part(fill, a, b, i) for i, (a, b) in enumerate(itertools.pairwise(points))]


def _rounds(r: UOp, start: int, stop: int) -> UOp:
    """The rounds of `r` from `start` to `stop`, as a number."""
    return UOp.range(stop - start, r.arg) + start if stop - start > 1 else UOp.index(start)


def _is_decided(check: UOp, r: UOp, start: int, stop: int) -> bool:
    """Whether a comparison is the same for all lanes in the rounds from `start` to `stop`."""
    return simplify(check.substitute({r: _rounds(r, start, stop)})).is_const


def _part(fill: UOp, start: int, stop: int, number: int) -> UOp:
    """The rounds of the innermost loop from `start` to `stop`, in loops of their own."""
    own = [n for n in fill.toposort() if n.op is Ops.RANGE and n not in fill.ranges]
    new = renamed_ranges(own, lambda axis: axis.segment(number))
    *outer, r = fill.src[1:]
    round_ = _rounds(new[r], start, stop)
    loops = [*(new[q] for q in outer), *round_.ranges]
    store = fill.src[0].substitute(new | {r: round_})
    end = UOp(Ops.END, dtypes.void, (store, *loops)) if loops else store
    return graph_rewrite(end, symbolic)
