"""Splitting a range into tiles: `r -> start + T*outer + L*unrolled + lane`, everywhere a kernel uses it.

A size that is no multiple of the tile T is covered without masks on memory and without a scalar remainder:

- an output range ends in a tile that overlaps the one before: it starts at `size - T`, and writes
  some elements twice with the same value (not in a kernel that reads what it writes);
- a reduced range ends in a tile that overlaps likewise, where the elements already counted are the identity;
- otherwise, and where the size is less than a tile, the rest gets a loop of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from polygrad.codegen.reductions import identity_element
from polygrad.dtype import dtypes
from polygrad.uop.node import Axis, AxisKind, UOp
from polygrad.uop.ops import Ops
from polygrad.uop.scopes import scopes
from polygrad.uop.symbolic import simplify


@dataclass(frozen=True, slots=True)
class Split:
    """How one range is tiled: SIMD lanes (1: none), and how many values (of that width) are unrolled."""

    lanes: int
    unroll: int

    @property
    def size(self) -> int:
        """Elements in a tile."""
        return self.lanes * self.unroll


@dataclass(frozen=True, slots=True)
class _Segment:
    """`trips` tiles from element `start`; `overlap` where the last must end at the range's end; `counted`:
    how many elements before have been seen by another segment (a tile that starts earlier masks them)."""

    start: int
    trips: int
    split: Split
    overlap: bool = False
    counted: int = 0


def split_range(sink: UOp, r: UOp, split: Split) -> UOp:
    """Tile `r` everywhere in a kernel."""
    size = r.src[0].arg
    stores: list[UOp] = []
    for nest in sink.src:
        if nest.op is Ops.END and r in nest.src[1:]:
            for i, segment in enumerate(_output_segments(size, split, reads_its_output(nest))):
                nest_ids = _next_id(UOp.sink(*sink.src, *stores))
                stores.append(_split_nest(nest, r, segment, nest_ids, fresh=i > 0))
        else:
            stores.append(_split_inside(nest, r, split))
    return UOp.sink(*stores)


def _output_segments(size: int, split: Split, in_place: bool) -> list[_Segment]:
    whole, rest = divmod(size, split.size)
    if rest and whole and not in_place:
        return [_Segment(0, whole + 1, split, overlap=True)]
    return _disjoint(size, split)


def _reduce_segments(size: int, split: Split) -> list[_Segment]:
    whole, rest = divmod(size, split.size)
    if split.lanes > 1 and rest and whole:
        out = [_Segment(0, whole, split)]
        at = whole * split.size
        while at < size:  # single vectors; the last one reaches back
            start = min(at, size - split.lanes)
            out.append(_Segment(start, 1, Split(split.lanes, 1), counted=at - start))
            at = start + split.lanes
        return out
    return _disjoint(size, split)


def _disjoint(size: int, split: Split) -> list[_Segment]:
    out, at = [], 0
    for s in (split, Split(split.lanes, 1), Split(1, 1)):
        trips = (size - at) // s.size
        if trips:
            out.append(_Segment(at, trips, s))
            at += trips * s.size
    return out


def reads_its_output(nest: UOp) -> bool:
    """The kernel works in place: each element must be written once, in order."""
    order = nest.toposort()
    written = {n.src[0].src[0] for n in order if n.op is Ops.STORE}
    return any(n.op is Ops.LOAD and n.src[0].src[0] in written for n in order)


def _tile(segment: _Segment, r: UOp, ids: int) -> tuple[tuple[UOp, ...], UOp]:
    """The ranges that replace `r` in a segment, and its value in them. Uses ids `ids` and `ids + 1`, and r's
    own or one beyond them."""
    lanes, unroll = segment.split.lanes, segment.split.unroll
    out: list[UOp] = []
    terms: list[UOp] = []
    if segment.trips > 1:
        outer = UOp.range(segment.trips, r.arg.id if segment.start == 0 else ids + 2 + r.arg.id, r.arg.kind)
        out.append(outer)
        step = outer * segment.split.size if segment.split.size > 1 else outer
        if segment.overlap:
            last = UOp.index(r.src[0].arg - segment.split.size)
            step = (step < last).where(step, last)
        terms.append(step)
    if unroll > 1:
        inner = UOp.range(unroll, ids, AxisKind.UNROLL if r.arg.kind is AxisKind.REDUCE else AxisKind.UPCAST)
        out.append(inner)
        terms.append(inner * lanes if lanes > 1 else inner)
    if lanes > 1:
        lane = UOp.range(lanes, ids + 1, AxisKind.LANE)
        out.append(lane)
        terms.append(lane)
    value = UOp.index(segment.start)
    for i, term in enumerate(terms):
        value = term if i == 0 and segment.start == 0 else value + term
    return tuple(out), value


def _split_nest(nest: UOp, r: UOp, segment: _Segment, ids: int, fresh: bool) -> UOp:
    """A copy of an output nest for one segment; with ranges of its own when it is not the first."""
    ranges, value = _tile(segment, r, ids)
    inside = [n for n in nest.toposort() if n.op is Ops.RANGE and n is not r]
    renamed = with_ids_from(inside, ids + 2) if fresh else {}
    loops = [x for q in nest.src[1:] for x in (ranges if q is r else (renamed.get(q, q),))]
    loops = [x for x in loops if x.arg.kind is AxisKind.LOOP]
    store = substituted(nest.src[0], {r: value, **renamed})
    return UOp(Ops.END, dtypes.void, (store, *loops)) if loops else store


def _split_inside(nest: UOp, r: UOp, split: Split) -> UOp:
    segments = _reduce_segments(r.src[0].arg, split)
    new: dict[UOp, UOp] = {}
    ids = _next_id(nest)
    for node in nest.toposort():
        src = tuple([new[s] for s in node.src])
        if node.op is Ops.AFTER and any(s.op is Ops.END and r in s.src[1:] for s in node.src):
            new[node] = _split_fill(node, src, r, split, ids)
            ids += 2
            continue
        if node.op is not Ops.REDUCE or r not in node.src[1:]:
            new[node] = node if src == node.src else UOp(node.op, node.dtype, src, node.arg)
            continue
        total: UOp | None = None
        inside = scopes(src[0].toposort())
        loops = inside.mask_of(q for q in src[1:] if q in inside.bit)
        again = [n for n in inside.mask if n.op is Ops.REDUCE and inside.mask[n] & loops]  # in every round
        ended = [q for n in again for q in n.src[1:]]
        ended += [q for q in src[1:] if q is not r]
        for i, segment in enumerate(segments):
            ranges, value = _tile(segment, r, ids)
            renamed = with_ids_from(ended, ids + 2) if i else {}
            ids += 2 + ids if i else 2
            inner = substituted(src[0], {r: value, **renamed})
            if segment.counted:
                seen = ranges[-1] < segment.counted  # by lane
                inner = seen.where(identity_element(node.arg, node.dtype), inner)
            rest = tuple(x for q in src[1:] for x in (ranges if q is r else (renamed.get(q, q),)))
            part = UOp(Ops.REDUCE, node.dtype, (inner, *rest), node.arg) if rest else inner
            total = part if total is None else UOp(node.arg, node.dtype, (total, part))
        assert total is not None
        new[node] = total
    return new[nest]


def _split_fill(node: UOp, src: tuple[UOp, ...], r: UOp, split: Split, ids: int) -> UOp:
    """An AFTER whose END fills memory of the kernel's own along `r`: in one loop, or not tiled at all."""
    segments = _output_segments(r.src[0].arg, split, in_place=False)
    if len(segments) > 1:
        return UOp(Ops.AFTER, node.dtype, src)
    ends = [
        _split_nest(s, r, segments[0], ids, fresh=False) if s.op is Ops.END and r in s.src[1:] else s
        for s in src
    ]
    return UOp(Ops.AFTER, node.dtype, tuple(ends))


def _next_id(root: UOp) -> int:
    return 1 + max(n.arg.id for n in root.toposort() if n.op is Ops.RANGE)


def with_ids_from(ranges: list[UOp], first: int) -> dict[UOp, UOp]:
    """The same ranges with ids of their own, in the same order: a loop is opened in one place only."""
    return {r: UOp(Ops.RANGE, r.dtype, r.src, Axis(first + r.arg.id, r.arg.kind)) for r in ranges}


def substituted(root: UOp, replacements: dict[UOp, UOp]) -> UOp:
    """`root` with ranges replaced, and the indices that change simplified again."""
    new: dict[UOp, UOp] = dict(replacements)
    for node in root.toposort():
        if node in new:
            continue
        src = tuple([new[s] for s in node.src])
        if src == node.src:
            new[node] = node
            continue
        if node.op is Ops.INDEX:
            src = (src[0], *(simplify(s) for s in src[1:]))
        new[node] = UOp(node.op, node.dtype, src, node.arg)
    return new[root]
