"""The cost model: what operations cost on a Target, and from what sizes on each Opt pays.

Costs are in operations: a multiply-add of one SIMD value is 1. Every number that an Opt or a kernel pass
depends on is here or in the Target, those of the schedule and of operations are in schedule/cost.py.
bench/calibrate.py measures them on a machine and says how far off they are.
"""

from __future__ import annotations

from typing import NamedTuple

from polygrad.codegen.lower import strided_loads as strided
from polygrad.codegen.target import Target, Workgroups
from polygrad.dtype import dtypes
from polygrad.helpers import ceildiv
from polygrad.schedule.cost import run_cost as run_cost
from polygrad.uop.args import MATRIX_SIDE
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops

_COUNTED = GroupOp.ALU | {Ops.BITCAST, Ops.LOAD, Ops.STORE, Ops.REDUCE, Ops.SCAN}

# costs of running, in operations
SCATTERED_LOAD, SCATTERED_STORE = 2.0, 2.5  # for each lane, if the lanes are not neighbours in memory
FAR_LOAD = 3.0  # for each element that a sum reads in long steps: a panel of them is copied first
LINE_BYTES = 64  # of a cache line, which a cache fetches and stores as a whole
FAR_BYTES = 2 * LINE_BYTES  # what is read there at a time
LITTLE_WORK = 8  # operations for each element, which take less time than storing it
LOAD = 0.1  # of a value in the first cache, if a multiply-add can take one operand from memory
SPLAT = 0.35  # of the same value, if it cannot
ROUND = 1.5  # for each round of a loop
ACROSS_LANES = 1.2  # factor for lanes along a sum; adding the lanes up takes an operation for each halving
STRIDED_REGISTERS = 2.5  # registers that a vector takes while it is shuffled together from blocks

# latencies, in values that are computed side by side
FMA_LATENCY = 8  # multiply-adds that keep the units busy
ADD_LATENCY = 4  # sums that do
RUNNING_VALUES = 4  # running values: each round of a scan waits for the one before

# sizes of a loop's body, in operations
SMALL_BODY = 24  # a body up to this size is unrolled
LONG_BODY = 80  # a processor does not look further ahead, so the round itself has to hide its latencies
INTERLEAVED = 2  # SIMD values of a longer body side by side, with few registers, which hide its latencies
SMALL_SUM = 8  # rounds: a sum with no more is unrolled whole
LONG_EPILOGUE = 6  # a longer one, after a sum, takes the registers of the register tile

# branch-rare-terms
MIN_SEARCH_ROUNDS = 8  # for each output element of a tile: in one of these rounds the branch is taken

# PARTITION
MIN_PART, MAX_PARTS = 16, 4  # elements of the smallest part; number of parts
MIN_WINDOW_ROWS = 4  # rows whose windows lie inside, for those that look beyond to be loops of their own
MIN_COPIED_ROW = 40  # elements: a longer row without sums is divided, however small a part is
MAX_PART_KERNELS = 64  # more parts than MAX_PARTS are kernels, up to this many,
MIN_PART_WRITTEN = 16  # ... if each writes this many elements side by side,
MIN_PART_ELEMENTS = 1024  # ... and this many in all

# SIMD, UPCAST, UNROLL
ROWS, VECTORS = 6, 4  # of the register tile that is assumed before one is chosen
WHOLE_ROW = 6  # SIMD values of a row that is in one tile, the last of which overlaps the one before;
MIN_WHOLE_ROW_GAIN = 1.03  # ... of a register tile if that is faster by this factor: it reads more vectors
STREAMED = 4  # SIMD values of a matrix's row that a product of one row reads in a round
BLOCK_ROUNDS = 16  # rounds of a block's sum that a product of one row unrolls
WINDOW = 12  # elements of a window that is unrolled whole, if its elements are in the same blocks
MAX_ROWS, MAX_SPLATS = 14, 7  # scalars in a register tile, if multiply-adds read them, or if loads do

# STAGE
MIN_ROW = 32  # elements of a row of expensive values
MIN_STAGED_ROWS = 4  # rows of a register tile that is stored before a long epilogue
MIN_ROW_TILES = 16  # row tiles that read a panel, for it to be copied;
MIN_CONFLICTING_ROW_TILES = 2  # ... if rows of the panel evict each other from the cache;
MIN_GATHERED_ROW_TILES = 4  # ... if its lanes are not neighbours in memory
STAGED_READS = 24  # reads of an element from which on the tiling expects its operand to be copied

# SPLIT and REORDER
MIN_MATRIX_ROW_TILES = 2  # ... if matrix registers compute the product
MIN_BLOCKS, MAX_BLOCK = 16, 8  # blocks of column tiles, for threads to divide; column tiles of a block
MAX_REORDERED = 4  # loops of a nest whose orders are all compared
MIN_LESS_TRAFFIC = 2  # factor by which another order has to reduce the memory traffic

# PARALLEL, in operations: 15 to 60 us. Awake threads pay from 5 us on; to wake one takes 50 us.
PARALLEL = 5 << 14
MIN_SHARES = 4  # rounds of each thread from which on it does not matter if one has a round more
LITTLE = 4  # what one thread does alone is less than a share of each thread divided by this

# compute-at
MIN_BLOCK_ROWS = 16  # rows that the producer computes at a time
MAX_REREAD = 4  # bytes that rounds with a copy of their own read again, for each byte of the copies

# scatter
MIN_SCATTERED = 16  # output elements, and also terms

# keyed scan
MAX_KEYS = 1 << 16  # running values, which a thread's cache holds

# interchange
MIN_INTERCHANGED = 1 << 16  # terms of a sum of columns
ROWS_AT_A_TIME = 4  # rows that are added in registers: 4 take 0.6 to 0.95 of the time of 8, and of 2
PRODUCT_ROWS_AT_A_TIME = 16  # ... by a product of few rows
MAX_STREAMED_ROWS = 24  # rows of such a product in wide SIMD values: more are computed faster from panels
MIN_ROW_BLOCKS = 8  # blocks of so many rows
MIN_FAR_ROW = 4 * FAR_BYTES  # bytes from one row to the next


class Parts(NamedTuple):
    """How a sum is divided where fewer than `few` are side by side: into parts of `min_terms` or more, but
    `base` of them in any case, that are `wanted` side by side; at most `most`, and no fewer than `least`."""

    few: int
    wanted: int
    most: int
    min_terms: int
    least: int
    base: int = 0


def sum_parts(terms: int, side_by_side: int, rule: Parts) -> range:
    """The numbers of parts for a sum of so many terms if so many are side by side, the best one first. There
    are fewer parts than terms."""
    if side_by_side >= rule.few:
        return range(0)
    by_terms = min(max(rule.base, terms // rule.min_terms), terms - 1)
    parts = min(rule.most, rule.wanted // side_by_side, by_terms)
    return range(parts, rule.least - 1, -1)


# split-reduce: few sums of so many terms,
MIN_REDUCED = 1 << 17
FEW_PARTS = Parts(few=17, wanted=1 << 12, most=256, min_terms=1 << 14, least=8, base=64)
# products whose operands are read so often, of so many terms; terms of a part, of up to MAX_PART_TERMS where
# all parts are more than MAX_CACHED elements, of which there are at most MAX_STORED
MIN_LONG_REUSE, MIN_LONG_PRODUCT, PART_TERMS = 16, 4 << 10, 1 << 10
MAX_PART_TERMS, MAX_CACHED, MAX_STORED = 4 << 10, 1 << 20, 1 << 22
MIN_LONG_WINDOWS = 6 << 10  # terms of a convolution, whose windows share elements, in parts of MAX_PART_TERMS


def product_parts(terms: int, outputs: int, has_windows: bool) -> range:
    """The numbers of parts for a product of so many terms whose operands should stay in the cache."""
    if terms < (MIN_LONG_WINDOWS if has_windows else MIN_LONG_PRODUCT):
        return range(0)
    parts = ceildiv(terms, MAX_PART_TERMS)
    if not has_windows:
        parts = max(min(ceildiv(terms, PART_TERMS), MAX_CACHED // outputs), parts)
    return range(parts, min(4 * parts, MAX_STORED // outputs) + 1)


# interchange: columns, for threads to divide the rows,
COLUMN_PARTS = Parts(few=16, wanted=256, most=16, min_terms=64, least=4)
MIN_PARTED, LONG_COLUMNS = 1 << 19, 16 << 10  # if terms are many; and bytes of a row few

# separate-windows
MIN_WINDOW_GAIN = 1.2  # factor by which reductions along one axis after the other have less work
WINDOW_ROW = 5  # operations that a row of windows takes more in two loops

# relayout, polyphase, split-k
MIN_COPIED_FOR = 1 << 18  # terms of a sum
MIN_COPIED_READS = 5  # reads of each element of a copied operand of a product
MIN_COPIED_WINDOW_READS = 2  # ... of one that a pooling reads under conditions
MIN_OPERAND_READS = 3  # workgroups that would compute an operand of a product again
MIN_PHASE_GAIN = 1.2  # factor by which kernels of one phase each have fewer terms, for these to be apart


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
    elements = range(0, abs(stride) * lanes, abs(stride))
    if not in_blocks(stride, lanes, block):
        return SCATTERED_LOAD * lanes
    return 2.0 * len(strided.plan(elements, block, 0, elements[-1]).starts)


def is_far(step: int, nbytes: int, target: Target) -> bool:
    """Whether a sum that steps so far over an operand of which it reads so many bytes finds little of it in
    caches."""
    return step * nbytes >= target.cache[1] // 8


def conflicts(step: int, count: int, cache: int) -> bool:
    """Whether so many elements, so many bytes apart, push each other out of a cache of so many bytes:
    addresses that are multiples of a high power of 2 share few of its places."""
    return step > 0 and count >= cache // (step & -step)


def is_streamed(nbytes: int, target: Target) -> bool:
    """Whether a matrix that is read once comes from beyond the second cache, as most that take half of it do:
    what rows of a register tile share saves less than reading several rows side by side takes."""
    return 2 * nbytes >= target.cache[1]


def has_few_rows(span: int, rows: int, sums: int, across: bool, target: Target) -> bool:
    """Whether a product of `rows` rows adds up `sums` bytes of results faster row by row of its matrix, whose
    columns span `span` bytes. `across`: results that a row of the matrix contributes to lie apart. A register
    tile reads a piece of each row: no prefetcher follows, and the more pages a column touches, the longer
    that takes. If the piece, two SIMD values, is less than a cache line, the next tile reads the line again.
    Row by row, results go through the caches once for every few rows instead."""
    if span <= target.cache[1]:
        return False
    if 2 * target.simd_bytes >= FAR_BYTES // 2:
        return rows <= MAX_STREAMED_ROWS and 2 * sums <= target.cache[1] and not across
    return 2 * sums * target.cache[1] <= span * target.cache[0]


def worth_staging(target: Target) -> int:
    """The least that goes through memory between two kernels of which one computes it for the other."""
    return target.cache[1]


def stage_bytes(target: Target) -> int:
    """The most that a block of rows between two kernels takes, beside what else their rounds read."""
    return target.cache[1] // 8


def row_block_bytes(target: Target) -> int:
    """The most that a block of rows takes that share nothing: with the rows it is computed of, it stays in
    the first cache. Gradients of a layer normalisation, rows of 3 KB: 0.97 ms for 1 or 2 rows, 1.77 ms for
    64."""
    return target.cache[0] // 4


def tile_speed(
    sums: int,
    vectors: float,
    scalars: int,
    target: Target,
    registers: int = 1,
    sums_of: int = 1,
    temporaries: int = 1,
) -> float:
    """Multiply-adds of a register tile of so many sums per time that one takes, with the vectors and the
    scalars that are loaded for them: 1 would be the machine's peak. 0 for one that registers do not hold, of
    which a SIMD value takes `registers`, and an element of the tile `sums_of` SIMD values. `temporaries`: a
    scalar spread over lanes, and a product that is added by another instruction."""
    if (sums * sums_of + vectors + temporaries) * registers > target.registers or scalars > (
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


def matrix_tile(rows: int, columns: int) -> tuple[int, int]:
    """The rows and the SIMD values of a product's tile on matrix registers, of which up to four hold sums:
    that with the most useful sums per time. (0, 0): a product is too small for one.

    To multiply two registers takes a cycle for each row, to load one about as long."""
    best, best_speed = (0, 0), 0.0
    for down, vectors in ((2, 2), (1, 4), (4, 1), (1, 3), (3, 1), (1, 2), (2, 1), (1, 1)):
        height = min(down * MATRIX_SIDE, rows)
        if vectors * MATRIX_SIDE > columns or (height > MATRIX_SIDE and height % MATRIX_SIDE):
            continue
        useful = used(rows, height) * used(columns, vectors * MATRIX_SIDE)
        products = height * vectors
        speed = useful * products / max(products, MATRIX_SIDE * (down + vectors))
        if speed > best_speed:
            best, best_speed = (height, vectors), speed
    return best


def has_matrix_panels(rows: int, columns: int, words: int, around: int, target: Target) -> bool:
    """Whether the columns of a product on matrix registers are copied to panels, which `around` loops read
    for all tiles of rows."""
    height, vectors = matrix_tile(rows, columns)
    if not vectors or ceildiv(rows, height) * around < MIN_MATRIX_ROW_TILES:
        return False
    return vectors * MATRIX_SIDE * words * 4 <= panel_bytes(target)


# --- workgroups. `software`: a processor that does a GPU's work, on which barriers take long

# GLOBAL and LOCAL
INVOCATIONS = 256  # invocations of a workgroup that shares nothing
MIN_WORKGROUPS = 32  # workgroups that keep a machine busy
SOFTWARE_INVOCATIONS = 32  # invocations that a grid should have, software
BLOCK, BLOCKS = 4, 16  # elements along a side of a transpose's block; invocations along it
MIN_BLOCK_SIDE = 16  # elements along the sides of a transpose that is done in blocks


class ProductTile(NamedTuple):
    """A product in shared memory: `side`: invocations along each side of a workgroup's tile. `each`: elements
    that an invocation computes along each side. `chunk`: terms that are in shared memory at a time, in
    `depth` buffers. `workgroups`: how many keep a machine busy."""

    side: int
    each: int
    chunk: int
    depth: int
    workgroups: int

    @property
    def elements(self) -> int:
        """Elements along each side of a workgroup's tile."""
        return self.side * self.each


_PRODUCT = ProductTile(side=8, each=4, chunk=32, depth=1, workgroups=MIN_WORKGROUPS)
# on an H200, float32 4096: 42 TFLOP/s, of 10.8 with the other
_COPIED_PRODUCT = ProductTile(side=16, each=8, chunk=16, depth=3, workgroups=128)


def product_tile(limits: Workgroups) -> ProductTile:
    """How a machine's workgroups compute a product. One that copies while it computes is a large one."""
    return _COPIED_PRODUCT if limits.copies else _PRODUCT


# a product in shared memory
MAX_PRODUCT_TILE = 32  # elements along a side that loops are chosen for
MIN_PRODUCT_SIDE, MIN_PRODUCT_TERMS = 8, 8  # rows, and columns; terms
SOFTWARE_SIDE, SOFTWARE_TILE = 4, 8  # PRODUCT_SIDE and PRODUCT_TILE, software,
MIN_SOFTWARE_SIDE = 2  # and MIN_PRODUCT_SIDE
MAX_SPLIT_K = 4  # parts of the terms, for invocations of one workgroup, if a grid has few workgroups
MIN_SPLIT_TERMS = 64  # terms of each part

# TENSOR_CORE
CORE_BLOCKS, CORE_SUBGROUPS = 4, 2  # blocks along a side of a subgroup's tile; subgroups, of a workgroup's
MIN_CORE_USE = 0.3  # share of the multiply-adds that are used: blocks overlap at edges
CORE_CHUNK = 64  # terms that are in shared memory at a time
MIN_MEMORY_CORE_USE = 0.6  # MIN_CORE_USE of a core that reads memory, whose blocks are large;
CORE_DEPTH = 3  # and buffers of its operands: 2 workgroups of 128 x 128 fit a multiprocessor of an H200.
# There, float16 4096: 511 TFLOP/s, with 4 buffers 468, in tiles of 128 x 256 526; with mma.sync at most 285

# GROUP
MIN_GROUP, GROUP_TERMS = 32, 4  # terms of a sum; terms of each invocation
GROUP_COLUMNS = 32  # neighbouring sums of a workgroup, if memory goes along them
MANY_WORKGROUPS = 1 << 10  # with more workgroups, each has several sums
MANY_SUMS = 1 << 14  # with more sums across memory, each is an invocation's
SOFTWARE_GROUP, SOFTWARE_COLUMNS = 8, 2  # INVOCATIONS and GROUP_COLUMNS, software

# SIMD and UNROLL
VECTOR = 4  # elements of a vector load
SHORT_LOOP = 16  # rounds: a sum with no more is unrolled whole,
ROUNDS = 4  # of a longer one, so many rounds,
UNROLLED = 256  # if that makes no more operations,
LONG_ROUND = 16  # and a round adds up fewer values: less than half of that for ROUNDS

# split-k: workgroups of a grid; terms of each part if memory goes across the terms, or along
GRID_PARTS = Parts(few=128, wanted=256, most=256, min_terms=256, least=1)
MIN_PART_TERMS, MIN_PART_ROW = 256, 1 << 14
MIN_LONG_ROW = 1 << 14  # elements of a row that few workgroups would compute after its sum

# scatter and index-put
MAX_COMPARED = 1 << 18  # output elements: with no more, a GPU compares each of them with all positions
