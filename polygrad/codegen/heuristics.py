"""Which ranges of a kernel to tile, and how: decided on the untouched kernel.

The axis for the SIMD lanes comes from a cost model: how often does each node run, and does it get narrower.
The register tile of a reduction whose loads are reused (a matrix product and its kin) comes from counting
instructions: `rows x vectors` multiply-adds need `rows + vectors` loads.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from polygrad.codegen.materialize import loops_around_rows
from polygrad.codegen.split import Split
from polygrad.codegen.target import Target
from polygrad.dtype import dtypes
from polygrad.helpers import ceildiv
from polygrad.uop.linear import linear_terms
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops
from polygrad.uop.scopes import Scopes, scopes

_DEAR = {
    Ops.EXP2: 20,
    Ops.LOG2: 25,
    Ops.SIN: 60,
    Ops.POW: 90,
    Ops.THREEFRY: 80,
    Ops.FDIV: 4,
    Ops.RECIPROCAL: 4,
    Ops.SQRT: 4,
}
_COUNTED = GroupOp.ALU | {Ops.BITCAST, Ops.LOAD, Ops.STORE, Ops.REDUCE}
_SMALL_BODY = 24  # a body of this many nodes is worth unrolling
_ACCUMULATORS = 4  # independent sums that hide the latency of an add
_STAGED_READS = 400  # how often an element must be read for staging (stage.py) to pay
_ACROSS_LANES = 1.2  # what summing across lanes at the end costs in all
_ROWS, _VECTORS = 6, 4  # of a register tile, about
_TILE_LATENCY = 8  # multiply-adds in flight that keep the units busy
_LOAD_COST, _ROUND_COST = 0.1, 1.5  # in multiply-adds: of a load, and of a round of the loop

Strides = dict[UOp, tuple[dict[UOp, int], int]]


@dataclass(slots=True)
class _Kernel:
    """What the choices look at."""

    order: list[UOp]
    scope: Scopes
    strides: Strides
    reduced: set[UOp]
    target: Target
    fixed: set[UOp]  # ranges that are not tiled
    around: dict[UOp, int]  # the loops around the sum that a node is summed up in, as a mask


def choose(sink: UOp, target: Target) -> dict[UOp, Split]:
    """The ranges to tile, and how. Output nests share none, but all have SIMD values of one width."""
    chosen = {r: s for nest in sink.src for r, s in _choose(UOp.sink(nest), target).items()}
    widths = {s.lanes for s in chosen.values() if s.lanes > 1}
    if len(widths) > 1:
        return choose(sink, replace(target, simd_bytes=4 * min(widths)))
    return chosen


def _choose(sink: UOp, target: Target) -> dict[UOp, Split]:
    order = sink.toposort()
    scope = scopes(order)
    reduced = {r for n in order if n.op is Ops.REDUCE for r in n.src[1:]}
    k = _Kernel(
        order, scope, _strides(order, scope), reduced, target, loops_around_rows(sink), _around(order, scope)
    )
    if not reduced and (block := _transposition(k)) is not None:
        return block
    chosen, lanes = _choose_lanes(k)
    if not chosen:
        return {}
    inside = scope.mask_of(reduced)
    body = sum(
        _DEAR.get(n.op, 1)
        for n in order
        if n.op in GroupOp.ALU and n.dtype is not dtypes.index and (scope.mask[n] & inside or not reduced)
    )
    if len(chosen) > 1:
        most = 4 if body < 2 * _SMALL_BODY else 1
        return {r: Split(lanes, _fit(r.src[0].arg // lanes, most)) for r in chosen}
    lane = chosen[0]
    vectors = lane.src[0].arg // lanes
    if not reduced or body >= 2 * _SMALL_BODY:
        return {lane: Split(lanes, _fit(vectors, 4) if body < _SMALL_BODY else 1)}
    return _tile_for_reuse(k, lane, lanes, vectors)


def _choose_lanes(k: _Kernel) -> tuple[list[UOp], int]:
    """The ranges for the SIMD lanes (several, where one loop follows another), and how many lanes."""
    native = _native_lanes(k)
    scalar = _cost(k, [], 1)
    best: tuple[float, list[UOp], int] = (0.9 * scalar, [], 1)
    for r in k.scope.ranges:
        size = r.src[0]
        if r in k.fixed or not size.is_const or (lanes := _lanes(native, size.arg)) == 1:
            continue
        cost = _cost(k, [r], lanes)
        if cost >= scalar:
            continue
        chosen = [r]
        for other in k.scope.ranges:
            if other in k.fixed or not other.src[0].is_const:
                continue
            if other.src[0].arg < lanes or not _apart(k, other, chosen):
                continue
            if (both := _cost(k, [*chosen, other], lanes)) < 0.98 * cost:
                chosen, cost = [*chosen, other], both
        if cost < best[0]:
            best = (cost, chosen, lanes)
    return best[1], best[2]


def _transposition(k: _Kernel) -> dict[UOp, Split] | None:
    """For a kernel that stores along one loop and loads along another: a square block of both, which the
    emitter loads as whole vectors and transposes."""
    terms = {op: [k.strides[n.src[0]][0] for n in k.order if n.op is op] for op in (Ops.STORE, Ops.LOAD)}
    stored = {r for t in terms[Ops.STORE] for r, step in t.items() if step == 1 and r.op is Ops.RANGE}
    if len(stored) != 1 or any(k.strides[n.src[0]][1] for n in k.order if n.op is Ops.LOAD):
        return None
    (lane,) = stored
    jumping = [t for t in terms[Ops.LOAD] if t.get(lane, 1) != 1]
    loaded = {r for t in jumping for r, step in t.items() if step == 1 and r.op is Ops.RANGE}
    if len(loaded) != 1:
        return None
    (across,) = loaded
    lanes = _native_lanes(k)
    if lanes < 4 or any(not r.src[0].is_const or r.src[0].arg < lanes for r in (lane, across)):
        return None
    return {lane: Split(lanes, 1), across: Split(1, lanes)}


def _apart(k: _Kernel, r: UOp, chosen: list[UOp]) -> bool:
    """No node depends on `r` and on a chosen range: their loops come one after the other."""
    mask, bit = k.scope.mask, k.scope.bit[r]
    taken = k.scope.mask_of(chosen)
    for n in k.order:
        m = mask[n.src[0]] if n.op in (Ops.REDUCE, Ops.STORE) else mask[n]
        if m & bit and m & taken and n.op is not Ops.END:
            return False
    return not bit & taken


def _native_lanes(k: _Kernel) -> int:
    """How many 32-bit lanes a vector register has; wider elements take several registers."""
    return max(k.target.simd_bytes // 4, 1)


def _lanes(native: int, size: int) -> int:
    lanes = native
    while lanes > size:
        lanes //= 2
    return lanes if lanes >= min(native, 4) else 1


def _strides(order: list[UOp], scope: Scopes) -> Strides:
    """For each INDEX, its linear terms, and the ranges that it depends on in another way (as a mask)."""
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


def _cost(k: _Kernel, chosen: list[UOp], lanes: int) -> float:
    """How much work the kernel is with the `chosen` ranges in SIMD lanes."""
    bit = k.scope.mask_of(chosen)
    sizes = [r.src[0].vmax for r in k.scope.ranges]
    inside = k.scope.mask_of(k.reduced)
    # how many columns of a register tile share a scalar load
    width = lanes * min([_VECTORS, *(r.src[0].arg // lanes for r in chosen)])
    total = 0.0
    for node in k.order:
        if node.op not in _COUNTED or node.dtype is dtypes.index:
            continue
        mask = k.scope.mask[node]
        if node.op in (Ops.REDUCE, Ops.STORE):
            mask = k.scope.mask[node.src[0]] | k.scope.mask[node.src[-1]]
        runs = 1.0
        for i, size in enumerate(sizes):
            if mask >> i & 1:
                runs *= size
        weight = float(_DEAR.get(node.op, 1))
        if node.op in (Ops.LOAD, Ops.STORE):
            again = _reads(k, node) if node.op is Ops.LOAD and mask & inside else 1
            terms, crooked = k.strides[node.src[0]]
            if crooked & bit or any(terms.get(r, 0) not in (0, 1) for r in chosen):
                # lane by lane; a load may still become a transposition
                weight = (2.0 if node.op is Ops.LOAD else 2.5) * lanes
                if again >= _STAGED_READS and not k.reduced.intersection(
                    chosen
                ):  # copied once, then read as vectors
                    weight = 1.0 + 8 * weight / again
            runs *= max(again / (_ROWS if mask & bit else width), 1.0)
        if mask & bit:
            runs /= lanes
        total += weight * runs
    return total * _ACROSS_LANES if chosen and k.reduced.issuperset(chosen) else total


def _around(order: list[UOp], scope: Scopes) -> dict[UOp, int]:
    out = dict.fromkeys(order, 0)
    for node in reversed(order):
        above = scope.mask[node] if node.op is Ops.REDUCE else out[node]
        for s in node.src:
            out[s] |= above
    return out


def _reads(k: _Kernel, load: UOp) -> int:
    """How often the loops around its sum read the same element again."""
    out = 1
    for i, r in enumerate(k.scope.ranges):
        if r not in k.reduced and k.around[load] >> i & 1 and not k.scope.mask[load] >> i & 1:
            out *= r.src[0].vmax
    return out


def _tile_for_reuse(k: _Kernel, lane: UOp, lanes: int, vectors: int) -> dict[UOp, Split]:
    """Unroll output loops that a load inside the reduction does not depend on: it is loaded once for all of
    them. Without such a loop, several accumulators hide the latency of the sum."""
    scope = k.scope
    inside = scope.mask_of(k.reduced)
    loads = [n for n in k.order if n.op is Ops.LOAD and scope.mask[n] & inside]

    def reuse(r: UOp) -> int:
        """How many loads one tile of `r` shares; that of a whole SIMD value saves more than a scalar's."""
        shared = [scope.mask[n] for n in loads if not scope.mask[n] & scope.bit[r]]
        return len(shared) + sum(len(loads) for m in shared if m & scope.bit[lane])

    tileable = [r for r in scope.ranges if r not in k.reduced and r not in k.fixed and r.src[0].is_const]
    reused = [r for r in tileable if r is not lane and reuse(r)]
    if not reused:
        return {lane: Split(lanes, _fit(vectors, _ACCUMULATORS))}
    reused.sort(key=lambda r: (-reuse(r), -r.arg.id))
    first = reused[0]
    if lane in k.reduced:
        wide = 4 if k.target.registers >= 32 else 2
        plan = {lane: Split(lanes, 1), first: Split(1, min(wide, first.src[0].arg))}
        if len(reused) > 1:
            plan[reused[1]] = Split(1, min(4, reused[1].src[0].arg))
        return plan
    rows, across = _register_tile(first.src[0].arg, lane.src[0].arg, lanes, k.target)
    return {lane: Split(lanes, across), first: Split(1, rows)}


def _register_tile(height: int, width: int, lanes: int, target: Target) -> tuple[int, int]:
    """Rows and vectors of the tile with the most useful multiply-adds per instruction slot."""
    best, best_score = (1, 1), 0.0
    for across in (1, 2, 3, 4):
        if across > 1 and across * lanes > width:
            break
        for rows in range(1, min(height, 14) + 1):
            if rows * across + across + 1 > target.registers:
                break
            work = rows * across
            speed = work / (max(work, _TILE_LATENCY) + _LOAD_COST * (rows + across) + _ROUND_COST)
            score = speed * _useful(height, rows) * _useful(width, across * lanes)
            if score > best_score:
                best, best_score = (rows, across), score
    return best


def _useful(size: int, tile: int) -> float:
    return size / (ceildiv(size, tile) * tile)


def _fit(count: int, most: int) -> int:
    """The greatest of 1, 2, 4, ... `most` that is at most `count`, a divisor of it if one is near."""
    best = 1
    while best * 2 <= min(count, most):
        best *= 2
    return best if count % best == 0 or count >= 4 * best else max(best // 2, 1)
