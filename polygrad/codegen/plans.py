"""Ways to tile a kernel other than the heuristics': what a search tries. Knows no device: engine/search.py
times them.

A plan is plain data, so that the best can be kept: for each tiled range its axis id, SIMD lanes and
unrolling.
"""

from __future__ import annotations

from polygrad.codegen.heuristics import choose
from polygrad.codegen.materialize import loops_around_rows
from polygrad.codegen.split import Split, split_range
from polygrad.codegen.target import Target
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

Plan = tuple[tuple[int, int, int], ...]

_UNROLLS = (1, 2, 3, 4, 6, 8, 12)


def tile_loops(sink: UOp, target: Target, plan: Plan | None) -> UOp:
    """A kernel tiled by `plan`, or else as the heuristics choose."""
    for r, split in (choose(sink, target) if plan is None else splits_of(sink, plan)).items():
        if split.size > 1:
            sink = split_range(sink, r, split)
    return sink


def first_plan(sink: UOp, target: Target) -> Plan:
    """What the heuristics choose for a kernel whose loops are arranged."""
    return _plan(choose(sink, target))


def splits_of(sink: UOp, plan: Plan) -> dict[UOp, Split]:
    """A plan's splits by range. Ids that the kernel does not have are left out."""
    ranges = {int(n.arg.id): n for n in sink.toposort() if n.op is Ops.RANGE}
    return {ranges[i]: Split(lanes, unroll) for i, lanes, unroll in plan if i in ranges}


def neighbours(sink: UOp, plan: Plan, target: Target) -> list[Plan]:
    """Plans one step away: a range unrolled otherwise, one more range unrolled, the SIMD lanes elsewhere."""
    fixed = loops_around_rows(sink)
    ranges = [n for n in sink.toposort() if n.op is Ops.RANGE and n.src[0].is_const and n not in fixed]
    sizes = {int(r.arg.id): r.src[0].arg for r in ranges}
    native = max(target.simd_bytes // 4, 1)
    out: list[Plan] = []
    for at, (axis, lanes, unroll) in enumerate(plan):
        for other in _UNROLLS:
            if other != unroll and other * lanes <= sizes[axis]:
                out.append((*plan[:at], (axis, lanes, other), *plan[at + 1 :]))
    tiled = {axis for axis, _, _ in plan}
    for axis, size in sizes.items():
        if axis not in tiled and size >= 2:
            out.append((*plan, (axis, 1, min(4, size))))
        if size >= native > 1 and (axis, native, 1) not in plan:
            out.append(((axis, native, 1), *((a, 1, u) for a, _, u in plan if a != axis and u > 1)))
    registers = target.registers
    return [p for p in dict.fromkeys(out) if _tile_size(p) <= 2 * registers]


def _plan(splits: dict[UOp, Split]) -> Plan:
    return tuple((int(r.arg.id), s.lanes, s.unroll) for r, s in splits.items())


def _tile_size(plan: Plan) -> int:
    size = 1
    for _, _, unroll in plan:
        size *= unroll
    return size
