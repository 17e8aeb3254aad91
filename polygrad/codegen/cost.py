"""The cost model: what operations cost on a Target, and from what sizes on each Opt pays.

Costs are in operations: a multiply-add of one SIMD value is 1. Every number that a decision depends on is
here or in the Target; bench/calibrate.py measures them on a machine and says how far off they are.
"""

from __future__ import annotations

from collections.abc import Collection

from polygrad.codegen import strided
from polygrad.codegen.target import Target
from polygrad.dtype import dtypes
from polygrad.helpers import ceildiv
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops

# operations that cost more than one, lane for lane
_OP_COST = {
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

# memory, in operations
SCATTERED_LOAD, SCATTERED_STORE = 2.0, 2.5  # of one lane, where lanes are not neighbours
LOAD = 0.1  # of a value that is in the nearest cache, beside multiply-adds
ROUND = 1.5  # of a round of a loop

# latencies, in values
FMA_LATENCY = 8  # multiply-adds in flight that keep the units busy
ADD_LATENCY = 4  # independent sums that do
ACROSS_LANES = 1.2  # what a sum across lanes at the end costs in all, as a factor

# bodies, in operations
SMALL_BODY = 24  # is worth unrolling
SMALL_SUM = 4  # rounds of a sum's loop that is worth unrolling whole
LONG_EPILOGUE = 6  # of a sum: a register tile would not leave registers for it

# what an Opt must save to pay
MIN_PART, MAX_PARTS = 16, 4  # of a loop partition: elements of the least part, and how many
MIN_ROW = 32  # elements of a row that is staged
MIN_STAGED_ROWS = 4  # of a register tile that is staged
MIN_ROW_TILES = 16  # how often a panel must be read to be worth copying,
MIN_GATHERED_ROW_TILES = 40  # where the copy goes lane by lane,
STAGED_READS = 400  # and how often each element, for lanes along the axis that it is copied for
MIN_BLOCKS, MAX_BLOCK = 16, 8  # of column tiles: blocks, for threads to share, and tiles of one
ROWS, VECTORS = 6, 4  # of a register tile, about, before it is chosen

# threads: those that are awake are worth it from 5 us on, to wake some takes 50 us; this is 15 to 60 us
PARALLEL = 5 << 14


def op_cost(op: Ops) -> int:
    """What one value of `op` costs."""
    return _OP_COST.get(op, 1)


def is_counted(node: UOp) -> bool:
    """Whether a node costs anything: indices are free, beside what they point at."""
    return node.op in _COUNTED and node.dtype is not dtypes.index


def rounds(ranges: Collection[UOp]) -> int:
    """How often what is inside of these loops runs."""
    out = 1
    for r in ranges:
        out *= r.src[0].vmax
    return out


def native_lanes(target: Target) -> int:
    """How many 32-bit lanes a vector register has; wider elements take several registers."""
    return max(target.simd_bytes // 4, 1)


def strided_load(stride: int, lanes: int, itemsize: int, target: Target) -> float:
    """What a load of `lanes` elements costs that are `stride` apart: in blocks, or lane by lane."""
    block = max(target.simd_bytes // itemsize, 1)
    wanted = range(0, abs(stride) * lanes, abs(stride))
    if not strided.pays(wanted, block):
        return SCATTERED_LOAD * lanes
    return 2.0 * len(strided.plan(wanted, block, 0, wanted[-1]).starts)


def register_tile(height: int, width: int, lanes: int, target: Target) -> tuple[int, int]:
    """Rows and vectors of the register tile with the most useful multiply-adds per time: `rows x vectors` of
    them need `rows + vectors` loads."""
    best, best_speed = (1, 1), 0.0
    for vectors in (1, 2, 3, 4):
        if vectors > 1 and vectors * lanes > width:
            break
        for rows in range(1, min(height, 14) + 1):
            if rows * vectors + vectors + 1 > target.registers:
                break
            speed = tile_speed(rows, vectors) * _used(height, rows) * _used(width, vectors * lanes)
            if speed > best_speed:
                best, best_speed = (rows, vectors), speed
    return best


def tile_speed(rows: int, vectors: int) -> float:
    """Multiply-adds of a register tile per time that one takes: 1 would be the machine's peak."""
    work = rows * vectors
    return work / (max(work, FMA_LATENCY) + LOAD * (rows + vectors) + ROUND)


def _used(size: int, tile: int) -> float:
    """The part of the tiles' elements that are no repetition."""
    return size / (ceildiv(size, tile) * tile)
