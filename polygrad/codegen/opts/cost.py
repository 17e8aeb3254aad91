"""The cost model: what operations cost on a Target, and from what sizes on each Opt pays.

Costs are in operations: a multiply-add of one SIMD value is 1. Every number that a decision depends on is
here or in the Target; bench/calibrate.py measures them on a machine and says how far off they are.
"""

from __future__ import annotations

from polygrad.codegen.lower import strided_loads as strided
from polygrad.codegen.target import Target
from polygrad.dtype import dtypes
from polygrad.helpers import ceildiv
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops

# operations that cost more than one, lane for lane
_OP_COST = {
    Ops.EXP2: 20,
    Ops.LOG2: 25,
    Ops.SIN: 30,
    Ops.POW: 90,
    Ops.THREEFRY: 80,
    Ops.FDIV: 4,
    Ops.RECIPROCAL: 4,
    Ops.SQRT: 4,
}
_COUNTED = GroupOp.ALU | {Ops.BITCAST, Ops.LOAD, Ops.STORE, Ops.REDUCE, Ops.SCAN}

# memory, in operations
SCATTERED_LOAD, SCATTERED_STORE = 2.0, 2.5  # of one lane, where lanes are not neighbours
FAR_LOAD = 3.0  # of an element that is copied first, for it lies far from the next one that a sum reads
FAR_BYTES = 128  # that are read there at a time: two lines
STRIDED_REGISTERS = 2.5  # of a vector that is made of blocks: these, and the vector
LOAD = 0.1  # of a value that is in the nearest cache, beside multiply-adds;
SPLAT = 0.35  # where multiply-adds take nothing from memory
ROUND = 1.5  # of a round of a loop

# latencies, in values
FMA_LATENCY = 8  # multiply-adds in flight that keep the units busy
ADD_LATENCY = 4  # independent sums that do
RUNNING_VALUES = 4  # that go side by side, where each waits for the one before it
ACROSS_LANES = 1.2  # what lanes along a sum cost in all, as a factor, beside an operation for each halving

# bodies, in operations
SMALL_BODY = 24  # is worth unrolling
LONG_BODY = 80  # is more than a processor looks ahead in: what hides its latency is in the same round
SMALL_SUM = 4  # rounds of a sum's loop that is worth unrolling whole
LONG_EPILOGUE = 6  # of a sum: a register tile would not leave registers for it

# what an Opt must save to pay
MIN_PART, MAX_PARTS = 16, 4  # of a loop partition: elements of the least part, and how many
MIN_ROW = 32  # elements of a row that is staged
MIN_BLOCK_ROWS = 16  # of a block that one kernel computes for another
MIN_STAGED_ROWS = 4  # of a register tile that is staged
MIN_ROW_TILES = 16  # how often a panel must be read to be worth copying,
MIN_CONFLICTING_ROW_TILES = 2  # where its rows push each other out of caches,
MIN_GATHERED_ROW_TILES = 4  # where it is not in lanes,
STAGED_READS = 24  # and how often each element, for lanes along the axis that it is copied for
ROWS_AT_A_TIME = 8  # of a sum of columns that goes row by row:
MIN_ROW_BLOCKS, MIN_FAR_ROW = 4, 4 * FAR_BYTES  # where it has so many of these, rows of so many bytes,
MIN_INTERCHANGED = 1 << 16  # and terms;
ROW_PARTS = 16  # in so many parts, which threads divide,
MIN_ROW_PARTS, MIN_PART_ROWS = 4, 64  # or fewer, but so many, of so many rows,
MIN_PARTED, LONG_COLUMNS = 1 << 19, 16 << 10  # if it has so many terms, and a row no more bytes
MIN_SCATTERED = 16  # elements that terms are picked for one by one, and terms, for these to pick them
MIN_COPIED_FOR = 1 << 18  # terms of a sum that an operand is copied for,
MIN_COPIED_READS = 5  # and how often each element of the copy is read
MIN_BLOCKS, MAX_BLOCK = 16, 8  # of column tiles: blocks, for threads to share, and tiles of one
MAX_REORDERED, MIN_LESS_TRAFFIC = 4, 2  # loops that other orders are tried of, and what one must save
MAX_ROWS, MAX_SPLATS = 14, 7  # scalars of a register tile: read by multiply-adds, or by loads of their own
ROWS, VECTORS = 6, 4  # of a register tile, about, before it is chosen

# threads: those that are awake are worth it from 5 us on, to wake some takes 50 us; this is 15 to 60 us
PARALLEL = 5 << 14
LITTLE = 4  # of a thread's share, a part of so much is no one's burden


def op_cost(op: Ops) -> int:
    """What one value of `op` costs."""
    return _OP_COST.get(op, 1)


def is_counted(node: UOp) -> bool:
    """Whether a node costs anything: indices are free, beside what they point at."""
    return node.op in _COUNTED and node.dtype is not dtypes.index


def native_lanes(target: Target, itemsize: int = 4) -> int:
    """How many lanes SIMD values have in a kernel that works on elements of `itemsize` bytes: what a register
    holds, but no fewer than 4 of those that vectors have at all (what transposes blocks wants as many), and
    no more than of 32 bits: narrower elements are computed in those."""
    return max(target.simd_bytes // max(itemsize, 4), min(target.simd_bytes // 4, 4), 1)


def panel_bytes(target: Target) -> int:
    """The most that a panel of a product may take: it is read again for every row tile."""
    return target.cache[1] // 2


def in_blocks(stride: int, lanes: int, block: int) -> bool:
    """Whether lanes that are `stride` elements apart are loaded as blocks of `block` and shuffled."""
    return strided.pays(range(0, abs(stride) * lanes, abs(stride)), block)


def strided_load(stride: int, lanes: int, itemsize: int, target: Target) -> float:
    """What a load of `lanes` elements costs that are `stride` apart: in blocks, or lane by lane."""
    block = max(target.simd_bytes // itemsize, 1)
    wanted = range(0, abs(stride) * lanes, abs(stride))
    if not in_blocks(stride, lanes, block):
        return SCATTERED_LOAD * lanes
    return 2.0 * len(strided.plan(wanted, block, 0, wanted[-1]).starts)


def is_far(step: int, nbytes: int, target: Target) -> bool:
    """Whether a sum that steps so far over an operand of which it reads so many bytes finds little of it in
    caches."""
    return step * nbytes >= target.cache[1] // 8


def conflicts(step: int, count: int, target: Target) -> bool:
    """Whether so many elements, so many bytes apart, push each other out of the second cache: addresses that
    are multiples of a high power of 2 share few of its places."""
    return step > 0 and count >= target.cache[1] // (step & -step)


def worth_staging(target: Target) -> int:
    """The least that goes through memory between two kernels of which one computes it for the other."""
    return target.cache[1]


def stage_bytes(target: Target) -> int:
    """The most that a block of rows between two kernels takes, beside what else their rounds read."""
    return target.cache[1] // 8


def tile_speed(sums: int, vectors: float, scalars: int, target: Target, registers: int = 1) -> float:
    """Multiply-adds of a register tile of so many sums per time that one takes, with the vectors and the
    scalars that are loaded for them: 1 would be the machine's peak. 0 for one that registers do not hold, of
    which a SIMD value takes `registers`."""
    if (sums + vectors + 1) * registers > target.registers or scalars > (
        MAX_ROWS if _takes_scalars(target) else MAX_SPLATS
    ):
        return 0.0
    load = LOAD if _takes_scalars(target) else SPLAT
    return sums / (max(sums, FMA_LATENCY) + load * (vectors + scalars) + ROUND)


def _takes_scalars(target: Target) -> bool:
    """Multiply-adds read a scalar from memory and spread it themselves: AVX-512's do."""
    return target.simd_bytes >= 64


def used(size: int, tile: int) -> float:
    """The part of the tiles' elements that are no repetition."""
    return size / (ceildiv(size, tile) * tile)


# --- workgroups

INVOCATIONS = 256  # of a workgroup that shares nothing
PRODUCT_SIDE = 8  # invocations along each side of a product's tile,
PRODUCT_TILE = 4  # elements that each computes along it,
PRODUCT_CHUNK = 32  # and terms of the sums that are in shared memory at a time
SOFTWARE_SIDE, SOFTWARE_TILE = 4, 8  # the same of a processor that does a GPU's work,
MIN_SOFTWARE_SIDE = 2  # of a product that is worth them,
SOFTWARE_INVOCATIONS = 32  # and how many it should have to do
MIN_PRODUCT_SIDE, MIN_PRODUCT_TERMS = 8, 8  # of a product that is worth tiles in shared memory
MIN_WORKGROUPS = 32  # that keep a machine busy
FEW_WORKGROUPS, BUSY_WORKGROUPS = 128, 256  # of a sum that is divided in parts, and of these, about
MIN_PART_TERMS, MIN_PART_ROW = 256, 1 << 14  # of each such part; of one along memory
MIN_LONG_ROW = 1 << 14  # elements that a workgroup would compute alone, after a sum of them
MANY_WORKGROUPS = 1 << 10  # with more of them, a workgroup may as well have several sums
MAX_SPLIT_K = 4  # parts of a workgroup's sums where a grid has fewer
MIN_SPLIT_TERMS = 64  # terms of each part
MIN_GROUP, GROUP_TERMS = 32, 4  # terms of a sum that a workgroup shares, and of each invocation
GROUP_COLUMNS = 32  # invocations along memory, where a sum goes across it
MAX_COMPARED = 1 << 18  # elements of a sum over one-hots that a GPU compares with each term
MANY_SUMS = 1 << 14  # that one invocation each does, if each goes across memory
SOFTWARE_GROUP, SOFTWARE_COLUMNS = 8, 2  # the same, where barriers take long
BLOCK, BLOCKS = 4, 16  # elements of a transpose's block along each side, and invocations along it;
MIN_BLOCK_SIDE = 16  # of what is worth blocks
SHORT_LOOP = 16  # rounds of a sum's loop that is unrolled whole,
ROUNDS = 4  # how many of another are unrolled,
UNROLLED = 256  # operations that both make at most,
LONG_ROUND = 16  # and values that a round adds which needs neither; half of them, no other rounds
CORE_BLOCKS, CORE_SUBGROUPS = 4, 2  # of a tensor core, along each side: a subgroup's, and a workgroup's
MIN_CORE_USE = 0.3  # of the multiply-adds of its blocks: what has to count, as they overlap at the edges
CORE_CHUNK = 64  # terms in shared memory at a time
VECTOR = 4  # elements of a vector load
