"""The optimised form of a kernel: adjacent loops merged, one axis in SIMD lanes, register tiles where loads are reused.

Decisions are made on the untouched kernel by a cost model (how often does each node run, and does it get narrower), then carried out
by splitting ranges: `r -> start + T*outer + L*unrolled + lane`. A size that is no multiple of the tile is covered by further,
smaller tiles of the same kernel: no masks, no scalar cliff but for the last few elements.
"""

from __future__ import annotations

from dataclasses import dataclass

from polygrad.codegen.scopes import Scopes, scopes
from polygrad.codegen.target import Target
from polygrad.codegen.tile import linear_terms
from polygrad.dtype import dtypes
from polygrad.uop.node import Axis, AxisKind, UOp
from polygrad.uop.ops import GroupOp, Ops
from polygrad.uop.symbolic import simplify

_DEAR = {Ops.EXP2: 20, Ops.LOG2: 25, Ops.SIN: 60, Ops.THREEFRY: 80, Ops.FDIV: 4, Ops.RECIPROCAL: 4, Ops.SQRT: 4}
_COUNTED = GroupOp.Elementwise | {Ops.LOAD, Ops.STORE, Ops.REDUCE}
_FREE = frozenset({Ops.CAST})
_SMALL_BODY = 24  # nodes of an elementwise body worth unrolling
_ACCUMULATORS = 4  # independent sums that hide the latency of an add


@dataclass(frozen=True, slots=True)
class Split:
    """How one range is tiled: SIMD lanes (1: none), and how many values (of that width) are unrolled."""

    lanes: int
    unroll: int


def optimize(sink: UOp, target: Target) -> UOp:
    """The optimised form of a kernel AST."""
    sink = merge_loops(sink)
    if not target.simd_bytes:
        return sink
    plan = choose(sink, target)
    for r, split in plan.items():
        sink = split_range(sink, r, split)
    return sink


# --- merging


def merge_loops(sink: UOp) -> UOp:
    """Two neighbouring output loops that every index walks through as one become one."""
    while True:
        loops = [r for r in sink.src[0].src[1:]] if len(sink.src) == 1 and sink.src[0].op is Ops.END else []
        for outer, inner in zip(loops, loops[1:], strict=False):
            merged = _merged(sink, outer, inner)
            if merged is not None:
                sink = merged
                break
        else:
            return sink


def _merged(sink: UOp, outer: UOp, inner: UOp) -> UOp | None:
    if not (outer.src[0].is_const and inner.src[0].is_const):
        return None
    order = sink.toposort()
    n = inner.src[0].arg
    scope = scopes(order)
    both = scope.bit[outer] | scope.bit[inner]
    together: dict[UOp, UOp] = {}
    merged = UOp.range(outer.src[0].arg * n, outer.arg.id, outer.arg.kind)
    for node in order:
        if node.op is Ops.INDEX and scope.mask[node] & both:
            if len(node.src) > 2 and scope.mask[node.src[2]] & both:
                return None
            terms, constant = linear_terms(node.src[1])
            factor = terms.pop(inner, 0)
            if terms.pop(outer, 0) != factor * n or any(scope.mask[a] & both for a in terms):
                return None
            position = merged * factor if factor != 1 else merged
            for atom, f in reversed(terms.items()):
                position = (atom * f if f != 1 else atom) + position
            together[node.src[1]] = position + constant if constant else position
        elif node.dtype is not dtypes.index and node.op is not Ops.INDEX and any(s.dtype is dtypes.index and scope.mask[s] & both for s in node.src):
            if node.op is not Ops.END:
                return None  # an index is used as a value
    new = sink.substitute(together)
    end = new.src[0]
    loops = tuple(merged if r is outer else r for r in end.src[1:] if r is not inner)
    return UOp.sink(UOp(Ops.END, dtypes.void, (end.src[0], *loops)))


# --- choosing


def choose(sink: UOp, target: Target) -> dict[UOp, Split]:
    """The ranges to tile, and how."""
    order = sink.toposort()
    scope = scopes(order)
    strides = _strides(order, scope)
    reduce_ranges = {r for n in order if n.op is Ops.REDUCE for r in n.src[1:]}
    widest = max((n.dtype.itemsize for n in order if n.op in (Ops.LOAD, Ops.STORE, Ops.REDUCE)), default=4)
    native = max(target.simd_bytes // max(min(widest, 4), 4), 1)
    best: tuple[float, int, UOp] | None = None
    for r in scope.ranges:
        size = r.src[0]
        if not size.is_const or size.arg < 2 or not _can_split(r, order, reduce_ranges):
            continue
        lanes = _lanes(native, size.arg)
        if lanes == 1:
            continue
        cost = _cost(order, scope, strides, r, lanes)
        key = (cost, 1 if r in reduce_ranges else 0, r)
        if best is None or key[:2] < best[:2]:
            best = key
    if best is None or best[0] >= 0.9 * _cost(order, scope, strides, None, 1):
        return {}
    lane = best[2]
    lanes = _lanes(native, lane.src[0].arg)
    plan = {lane: Split(lanes, 1)}
    body = sum(_DEAR.get(n.op, 1) for n in order if n.op in GroupOp.Elementwise)
    if not reduce_ranges:
        plan[lane] = Split(lanes, _fit(lane.src[0].arg // lanes, 4) if body < _SMALL_BODY else 1)
        return plan
    if body >= 2 * _SMALL_BODY:
        return plan
    _tile_for_reuse(plan, lane, order, scope, reduce_ranges, target)
    return plan


def _tile_for_reuse(
    plan: dict[UOp, Split], lane: UOp, order: list[UOp], scope: Scopes, reduce_ranges: set[UOp], target: Target
) -> None:
    """Unroll output loops that a load inside the reduction does not depend on: it is loaded once for all of them.
    Without such a loop, several accumulators hide the latency of the sum."""
    reduce_mask = scope.mask_of(reduce_ranges)
    inner_loads = [n for n in order if n.op is Ops.LOAD and scope.mask[n] & reduce_mask]
    lanes = plan[lane].lanes
    vectors = lane.src[0].arg // lanes
    reused = [
        r
        for r in scope.ranges
        if r not in reduce_ranges
        and r is not lane
        and r.src[0].is_const
        and any(not scope.mask[n] & scope.bit[r] for n in inner_loads)
    ]
    if not reused:
        plan[lane] = Split(lanes, _fit(vectors, _ACCUMULATORS))
        return
    reused.sort(key=lambda r: (-sum(not scope.mask[n] & scope.bit[r] for n in inner_loads), -r.arg.id))
    wide = 4 if target.registers >= 32 else 2
    if lane in reduce_ranges:
        plan[reused[0]] = Split(1, min(wide, reused[0].src[0].arg))
        if len(reused) > 1:
            plan[reused[1]] = Split(1, min(4, reused[1].src[0].arg))
        return
    across = _fit(vectors, wide)
    plan[lane] = Split(lanes, across)
    plan[reused[0]] = Split(1, _rows(reused[0].src[0].arg, (target.registers - 3) // across))


def _rows(size: int, most: int) -> int:
    """How many rows of a register tile: up to 6, rather one that divides `size`."""
    best = min(6, most, size)
    for rows in range(best, max(best // 2, 2) - 1, -1):
        if size % rows == 0:
            return rows
    return best


def _fit(count: int, most: int) -> int:
    """The greatest of 1, 2, 4, ... `most` that is at most `count`, a divisor of it if one is near."""
    best = 1
    while best * 2 <= min(count, most):
        best *= 2
    return best if count % best == 0 or count >= 4 * best else max(best // 2, 1)


def _lanes(native: int, size: int) -> int:
    lanes = native
    while lanes > size:
        lanes //= 2
    return lanes if lanes >= min(native, 4) else 1


def _can_split(r: UOp, order: list[UOp], reduce_ranges: set[UOp]) -> bool:
    if r not in reduce_ranges:
        return True
    return all(n.arg in (Ops.ADD, Ops.MAX, Ops.MUL) for n in order if n.op is Ops.REDUCE and r in n.src[1:])


def _strides(order: list[UOp], scope: Scopes) -> dict[UOp, tuple[dict[UOp, int], int]]:
    """For each INDEX, its linear terms, and the ranges it depends on in another way (as a mask)."""
    out = {}
    for node in order:
        if node.op is Ops.INDEX:
            terms, _ = linear_terms(node.src[1])
            crooked = 0
            for atom in terms:
                if atom.op is not Ops.RANGE:
                    crooked |= scope.mask[atom]
            out[node] = (terms, crooked)
    return out


def _cost(
    order: list[UOp], scope: Scopes, strides: dict[UOp, tuple[dict[UOp, int], int]], lane: UOp | None, lanes: int
) -> float:
    """How much work the kernel is with `lane` in SIMD lanes."""
    bit = scope.bit[lane] if lane is not None else 0
    sizes = [r.src[0].vmax for r in scope.ranges]
    total = 0.0
    for node in order:
        if node.op not in _COUNTED or node.op in _FREE or node.dtype is dtypes.index:
            continue
        runs, mask = 1.0, scope.mask[node]
        inner = mask
        if node.op in (Ops.REDUCE, Ops.STORE):
            inner = scope.mask[node.src[0]] | scope.mask[node.src[-1]]
        for i, size in enumerate(sizes):
            if inner >> i & 1:
                runs *= size
        weight = float(_DEAR.get(node.op, 1))
        if node.op in (Ops.LOAD, Ops.STORE):
            index = node.src[0]
            terms, crooked = strides[index]
            step = terms.get(lane, 0) if lane is not None else 0
            if crooked & bit or step not in (0, 1):
                weight = 2.0 * lanes  # lane by lane
        if inner & bit:
            runs /= lanes
        total += weight * runs
    return total


# --- carrying out


def split_range(sink: UOp, r: UOp, split: Split) -> UOp:
    """Tile `r` everywhere. Output loops become several nests, reductions several sums, when the size is no multiple."""
    segments = _segments(r.src[0].arg, split)
    stores: list[UOp] = []
    for nest in sink.src:
        if nest.op is Ops.END and r in nest.src[1:]:
            for i, segment in enumerate(segments):
                ids = _next_id(sink)
                ranges, value = segment.ranges(r, ids)
                inside = [n for n in nest.toposort() if n.op is Ops.RANGE and n is not r]
                renamed = _renamed(inside, ids + 2) if i else {}
                loops = tuple(x for q in nest.src[1:] for x in (ranges if q is r else (renamed.get(q, q),)))
                loops = tuple(x for x in loops if x.arg.kind is AxisKind.LOOP)
                store = _substituted(nest.src[0], {r: value, **renamed})
                stores.append(UOp(Ops.END, dtypes.void, (store, *loops)) if loops else store)
                sink = UOp.sink(*sink.src, *stores)
        else:
            stores.append(_split_reduces(nest, r, segments))
    return UOp.sink(*stores)


def _next_id(root: UOp) -> int:
    return 1 + max(n.arg.id for n in root.toposort() if n.op is Ops.RANGE)


def _renamed(ranges: list[UOp], first: int) -> dict[UOp, UOp]:
    """The same ranges with ids of their own, in the same order: a loop is opened in one place only."""
    return {r: UOp(Ops.RANGE, r.dtype, r.src, Axis(first + r.arg.id, r.arg.kind)) for r in ranges}


@dataclass(frozen=True, slots=True)
class _Segment:
    """`trips` tiles of `split`, from element `start`."""

    start: int
    trips: int
    split: Split

    def ranges(self, r: UOp, next_id: int) -> tuple[tuple[UOp, ...], UOp]:
        """The ranges that replace `r` here, and its value in them."""
        reduces = r.arg.kind is AxisKind.REDUCE
        lanes, unroll = self.split.lanes, self.split.unroll
        out: list[UOp] = []
        value: UOp | None = None
        if self.trips > 1:
            id = r.arg.id if self.start == 0 else next_id + 2 + r.arg.id
            outer = UOp.range(self.trips, id, r.arg.kind)
            out.append(outer)
            value = outer * (lanes * unroll) if lanes * unroll > 1 else outer
        if unroll > 1:
            kind = AxisKind.UNROLL if reduces else AxisKind.UPCAST
            inner = UOp.range(unroll, next_id, kind)
            out.append(inner)
            step = inner * lanes if lanes > 1 else inner
            value = step if value is None else value + step
        if lanes > 1:
            lane = UOp.range(lanes, next_id + 1, AxisKind.LANE)
            out.append(lane)
            value = lane if value is None else value + lane
        if value is None:
            value = UOp.index(self.start)
        elif self.start:
            value = value + self.start
        return tuple(out), value


def _segments(size: int, split: Split) -> list[_Segment]:
    out, at = [], 0
    steps = [split, Split(split.lanes, 1)] if split.lanes > 1 else [split]
    for s in steps:
        trips = (size - at) // (s.lanes * s.unroll)
        if trips:
            out.append(_Segment(at, trips, s))
            at += trips * s.lanes * s.unroll
    if at < size:
        rest = size - at
        if split.lanes > 1:
            out.append(_Segment(at, rest, Split(1, 1)))
        else:
            out.append(_Segment(at, 1, Split(1, rest)))
    return out


def _substituted(root: UOp, replacements: dict[UOp, UOp]) -> UOp:
    """`root` with ranges replaced and the indices that change simplified again."""
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


def _split_reduces(nest: UOp, r: UOp, segments: list[_Segment]) -> UOp:
    new: dict[UOp, UOp] = {}
    ids = _next_id(nest)
    for node in nest.toposort():
        src = tuple([new[s] for s in node.src])
        if node.op is Ops.REDUCE and r in node.src[1:]:
            total: UOp | None = None
            order = src[0].toposort()
            ended = [q for n in order if n.op is Ops.REDUCE for q in n.src[1:]] + [q for q in src[1:] if q is not r]
            for i, segment in enumerate(segments):
                ranges, value = segment.ranges(r, ids)
                renamed = _renamed(ended, ids + 2) if i else {}
                ids += 2 + ids if i else 2
                rest = tuple(x for q in src[1:] for x in (ranges if q is r else (renamed.get(q, q),)))
                inner = _substituted(src[0], {r: value, **renamed})
                part = UOp(Ops.REDUCE, node.dtype, (inner, *rest), node.arg) if rest else inner
                total = part if total is None else UOp(node.arg, node.dtype, (total, part))
            assert total is not None
            new[node] = total
        else:
            new[node] = node if src == node.src else UOp(node.op, node.dtype, src, node.arg)
    return new[nest]
