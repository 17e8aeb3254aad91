"""Splitting a range into tiles: `r -> start + T*r.0 + L*r.1 + r.2`, everywhere a kernel uses it, where r.0 is
a loop over tiles of T elements, r.1 is unrolled and r.2 are L lanes.

A size that is no multiple of T is covered without masks on memory and without a scalar remainder:

- an output range ends in a tile that overlaps the one before: it starts at `size - T`, and writes some
  elements twice with the same value (not in a kernel that reads what it writes);
- an output range shorter than a tile is in one tile, whose last SIMD value overlaps the one before;
- a reduced range ends in a tile that overlaps likewise, where the elements already counted are the identity;
- otherwise, as where a reduced range is shorter than a tile, the rest gets a loop of its own.

An axis of a grid or a workgroup ends in a tile that overlaps, too, but its stores are gated: an element is
written by one invocation, the one whose tile comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from polygrad.codegen.lower.reductions import identity_element
from polygrad.codegen.opts.tile import is_bound, is_tile
from polygrad.dtype import dtypes
from polygrad.errors import OptError
from polygrad.schedule.kernel_info import key_of, nest_info
from polygrad.uop.args import AddrSpace, Axis, AxisKind
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.printer import axis_name
from polygrad.uop.symbolic import simplify


@dataclass(frozen=True, slots=True)
class Tile:
    """How one range is tiled: SIMD lanes (1: none), and how many values (of that width) are unrolled."""

    lanes: int
    unroll: int

    @property
    def size(self) -> int:
        """Elements in a tile."""
        return self.lanes * self.unroll

    def fits(self, size: int) -> bool:
        """Whether a range of `size` elements needs all SIMD values of the tile, if the last one may overlap
        the one before."""
        return self.lanes <= size and self.lanes * (self.unroll - 1) < size


@dataclass(frozen=True, slots=True)
class _Segment:
    """`trips` tiles from element `start`. `overlap`: the last tile must end at the range's end, or the last
    SIMD value of a single tile. `counted`: the number of earlier elements that another segment has counted (a
    tile that starts among them masks them). `number`: of the segment, where there are several."""

    start: int
    trips: int
    tile: Tile
    overlap: bool = False
    counted: int = 0
    number: int | None = None


def tile_range(kernel: UOp, r: UOp, tile: Tile) -> UOp:
    """Tile `r` everywhere in a kernel. Raises OptError."""
    _check(kernel, r, tile)
    size = r.src[0].arg
    nests: list[UOp] = []
    for nest in kernel.src:
        if nest.op is Ops.END and r in nest.src[1:]:
            in_place = nest_info(nest).is_in_place
            if in_place and is_bound(r) and size % tile.size:
                raise OptError(
                    f"expected a tile that divides {size}, as the kernel works in place, got {tile.size}"
                )
            segments = _output_segments(size, tile, in_place)
            nests += [_split_nest(nest, r, segment) for segment in segments]
        else:
            nests.append(_split_inside(nest, r, tile))
    return UOp.sink(*nests)


def _check(kernel: UOp, r: UOp, tile: Tile) -> None:
    size = r.src[0].arg
    if tile.size < 2 or not tile.fits(size) or tile.lanes & (tile.lanes - 1):
        raise OptError(
            f"expected a tile of 2 to {size} elements, beyond which only its last SIMD value may reach, and "
            f"a power of 2 of lanes, got {tile.unroll} x {tile.lanes} lanes"
        )
    for n in kernel.toposort():
        if n.op is Ops.RANGE and n is not r and r in n.ranges:
            raise OptError(
                f"expected an axis that the size of no other depends on, got {axis_name(r.arg.id)}"
            )
        if (n.op is Ops.STAGE or key_of(n) is not None) and r in n.ranges:
            raise OptError(f"expected an axis that no memory is filled inside of, got {axis_name(r.arg.id)}")
        if tile.lanes > 1 and n.op is Ops.RANGE and n.arg.kind is AxisKind.LANE:
            if n.src[0].arg != tile.lanes:
                raise OptError(f"expected lanes of one width, {n.src[0].arg}, got {tile.lanes}")
        if tile.lanes > 1 and r in (loops := n.src[0].ranges if n.op in _ENDS else n.ranges):
            if any(q.arg.kind is AxisKind.LANE for q in loops):
                raise OptError("expected values of one SIMD axis, got some that depend on another, too")


_ENDS = frozenset({Ops.REDUCE, Ops.STORE, Ops.STAGE})


def _number(segments: list[_Segment]) -> list[_Segment]:
    if len(segments) == 1:
        return segments
    return [_Segment(s.start, s.trips, s.tile, s.overlap, s.counted, i) for i, s in enumerate(segments)]


def _output_segments(size: int, tile: Tile, in_place: bool) -> list[_Segment]:
    whole, remainder = divmod(size, tile.size)
    if remainder and not in_place:
        return [_Segment(0, whole + 1, tile, overlap=True)]
    return _disjoint(size, tile, Tile(tile.lanes, max(remainder // tile.lanes, 1)))


def _reduce_segments(size: int, tile: Tile) -> list[_Segment]:
    whole, remainder = divmod(size, tile.size)
    if tile.lanes > 1 and remainder and whole:
        out = [_Segment(0, whole, tile)]
        covered = whole * tile.size
        while covered < size:  # single vectors; the last one reaches back
            start = min(covered, size - tile.lanes)
            out.append(_Segment(start, 1, Tile(tile.lanes, 1), counted=covered - start))
            covered = start + tile.lanes
        return _number(out)
    return _disjoint(size, tile, Tile(tile.lanes, 1))


def _disjoint(size: int, tile: Tile, rest: Tile) -> list[_Segment]:
    """Segments of tiles, of what is left in tiles of `rest`, and of single elements."""
    out, covered = [], 0
    for t in (tile, rest, Tile(1, 1)):
        trips = (size - covered) // t.size
        if trips:
            out.append(_Segment(covered, trips, t))
            covered += trips * t.size
    return _number(out)


def overlaps(nest: UOp, r: UOp) -> bool:
    """Whether rounds of an output loop write the same elements: its tiles overlap, and no gate selects the
    tile that stores."""
    if nest.op is not Ops.END:
        return False
    _, index, *gates = nest.src[0].src[0].src
    is_cut = any(n.op is Ops.WHERE and r in n.ranges and not _is_loaded(n) for n in index.toposort())
    return is_cut and not any(r in g.ranges for g in gates)


def _tile(segment: _Segment, r: UOp) -> tuple[tuple[UOp, ...], UOp]:
    """The ranges that replace `r` in a segment, and its value in them."""
    axis: Axis = r.arg if segment.number is None else r.arg.segment(segment.number)
    lanes, unroll = segment.tile.lanes, segment.tile.unroll
    out: list[UOp] = []
    terms: list[UOp] = []
    if segment.trips > 1:
        outer = UOp.range(segment.trips, axis.child(0))
        out.append(outer)
        step = outer * segment.tile.size if segment.tile.size > 1 else outer
        if segment.overlap:
            last = UOp.index(r.src[0].arg - segment.tile.size)
            step = (step < last).where(step, last)
        terms.append(step)
    if unroll > 1:
        kind = AxisKind.UNROLL if axis.kind is AxisKind.REDUCE else AxisKind.UPCAST
        inner = UOp.range(unroll, axis.child(1, kind))
        out.append(inner)
        step = inner * lanes if lanes > 1 else inner
        if segment.overlap and segment.trips == 1:
            step = (inner < unroll - 1).where(step, UOp.index(r.src[0].arg - lanes))
        terms.append(step)
    if lanes > 1:
        lane = UOp.range(lanes, axis.child(2, AxisKind.LANE))
        out.append(lane)
        terms.append(lane)
    value = UOp.index(segment.start)
    for i, term in enumerate(terms):
        value = term if i == 0 and segment.start == 0 else value + term
    return tuple(out), value


def _split_nest(nest: UOp, r: UOp, segment: _Segment) -> UOp:
    """A copy of an output nest for one segment, with ranges of its own where there are several."""
    ranges, value = _tile(segment, r)
    renamed: dict[UOp, UOp] = {}
    if segment.number is not None:
        inner_ranges = [n for n in nest.toposort() if n.op is Ops.RANGE and n is not r]
        renamed = renamed_ranges(inner_ranges, partial(Axis.segment, number=segment.number))
    loops = [x for q in nest.src[1:] for x in (ranges if q is r else (renamed.get(q, q),))]
    loops = [x for x in loops if not is_tile(x)]
    store = substituted(nest.src[0], {r: value, **renamed})
    if segment.overlap and segment.trips > 1 and is_bound(r):
        store = gated(store, value >= ranges[0] * segment.tile.size)
    gates = store.src[0].src[2:]
    if any(q.arg.kind is AxisKind.LANE for g in gates for q in g.ranges):
        raise OptError(
            "expected lanes that are all stored or none: SIMD divides the axis, and comes before LOCAL"
        )
    return UOp(Ops.END, dtypes.void, (store, *loops)) if loops else store


def _is_loaded(position: UOp) -> bool:
    """Whether a position is read from memory."""
    return any(n.op is Ops.LOAD for n in position.toposort())


def gated(store: UOp, condition: UOp) -> UOp:
    """A STORE that is executed where its gate, if it has one, and a condition hold."""
    (pointer, index, *gates), value = store.src[0].src, store.src[1]
    for g in gates:
        condition = g & condition
    place = UOp(Ops.INDEX, store.src[0].dtype, (pointer, index, simplify(condition)), store.src[0].arg)
    return UOp(Ops.STORE, dtypes.void, (place, value))


def _split_inside(nest: UOp, r: UOp, tile: Tile) -> UOp:
    """A nest with `r` tiled where it is reduced, or where memory of the kernel's own is filled.

    REDUCE(f(r), r)               ->  REDUCE(f(T*r.0 + L*r.1 + r.2), r.0, r.1, r.2)
    STAGE(value, index, r, ...)   ->  STAGE(value and index at T*r.0 + L*r.1 + r.2, r.0, r.1, r.2, ...)
    """
    new: dict[UOp, UOp] = {}
    for node in nest.toposort():
        src = tuple([new[s] for s in node.src])
        if node.op is Ops.STAGE and r in node.src[2:]:
            new[node] = _split_fill(node, src, r, tile)
        elif node.op is Ops.REDUCE and r in node.src[1:]:
            new[node] = _split_reduce(node, src, r, tile)
        else:
            new[node] = node.over(src)
    return new[nest]


def _split_reduce(node: UOp, src: tuple[UOp, ...], r: UOp, tile: Tile) -> UOp:
    """A REDUCE over `src` with `r` in tiles: the sum of its segments, the full tiles and the remainder.

    REDUCE(f(r), r < 70), tiles of 32   ->   REDUCE(f(32*r.0 + r.1), r.0 < 2, r.1 < 32) + REDUCE(f(64 + r), r
    < 6)
    """
    total: UOp | None = None
    loops = set(src[1:])
    nodes = src[0].toposort()
    nested = [n for n in nodes if n.op is Ops.REDUCE and n.ranges & loops]  # in every round
    ended = [q for n in nested for q in n.src[1:]] + [q for q in src[1:] if q is not r]
    stages = [n for n in nodes if n.op is Ops.STAGE and not n.ranges.isdisjoint(ended)]  # in those
    ended += [q for n in stages for q in n.src[2:]]
    for segment in _reduce_segments(r.src[0].arg, tile):
        ranges, value = _tile(segment, r)
        renamed: dict[UOp, UOp] = {}
        if segment.number is not None:
            renamed = renamed_ranges(ended, partial(Axis.segment, number=segment.number))
        inner = substituted(src[0], {r: value, **renamed})
        if segment.counted:
            seen = ranges[-1] < segment.counted  # by lane
            inner = seen.where(identity_element(node.arg, node.dtype), inner)
        ranges_over = tuple(x for q in src[1:] for x in (ranges if q is r else (renamed.get(q, q),)))
        part = UOp(Ops.REDUCE, node.dtype, (inner, *ranges_over), node.arg) if ranges_over else inner
        total = part if total is None else UOp(node.arg, node.dtype, (total, part))
    assert total is not None
    return total


def _split_fill(node: UOp, src: tuple[UOp, ...], r: UOp, tile: Tile) -> UOp:
    """A STAGE filled along `r` in tiles, in one loop, because a tile may write elements again (but not in
    memory that several invocations fill)."""
    size = r.src[0].arg
    if node.arg.space is AddrSpace.SHARED and size % tile.size:
        raise OptError(
            f"expected a tile that divides {size}, as a workgroup fills the memory, got {tile.size}"
        )
    (segment,) = _output_segments(r.src[0].arg, tile, in_place=False)
    ranges, value = _tile(segment, r)
    value_and_index = (substituted(src[0], {r: value}), simplify(src[1].substitute({r: value})))
    loops = tuple(x for q in src[2:] for x in (ranges if q is r else (q,)))
    return UOp(Ops.STAGE, node.dtype, (*value_and_index, *loops), node.arg)


def renamed_ranges(ranges: Iterable[UOp], rename: Callable[[Axis], Axis]) -> dict[UOp, UOp]:
    """RANGEs with other axes; sizes that depend on others of them follow."""
    distinct = dict.fromkeys(ranges)
    new: dict[UOp, UOp] = {}
    for q in UOp.sink(*distinct).toposort():
        if q in distinct:
            size = q.src[0] if q.src[0].is_const else q.src[0].substitute(new)
            new[q] = UOp(Ops.RANGE, q.dtype, (size,), rename(q.arg))
    return new


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
        elif node.op is Ops.STAGE:
            src = (src[0], simplify(src[1]), *src[2:])
        new[node] = UOp(node.op, node.dtype, src, node.arg)
    return new[root]
