"""Which ranges of an output nest to tile, and how.

The axis for the SIMD lanes: how often does each node run, and does it get narrower. The register tile of a
reduction whose loads are reused (a matrix product and its kin): `rows x vectors` multiply-adds need
`rows + vectors` loads.
"""

from __future__ import annotations

from typing import NamedTuple

from polygrad.codegen.opts import cost
from polygrad.codegen.opts.matmul import has_matrices, product_of
from polygrad.codegen.opts.split import Tile
from polygrad.codegen.opts.stage import loops_around, nodes_of
from polygrad.codegen.target import Target
from polygrad.dtype import dtypes
from polygrad.helpers import ceildiv, prod
from polygrad.schedule.kernel_info import Access, nest_info, rounds
from polygrad.uop.args import MATRIX_SIDE, AxisKind
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops


class _CostItem(NamedTuple):
    """What costs something: a node and what `Tiling.cost` asks of it."""

    op: Ops
    itemsize: int
    weight: int
    loops: frozenset[UOp]  # that it depends on
    runs: int  # how often they go round
    reads: int  # of a load in a sum: how often the loops around the sum read the same element again
    strides: dict[UOp, int]  # of its index
    nonlinear: frozenset[UOp]  # ranges that its index depends on in another way,
    shared: frozenset[UOp]  # but for those of which a few neighbours read one element
    far: bool  # of a load in a sum: how far its elements lie apart


class Tiling:
    """The choice of an output nest's tiles, or of one that fills memory (`is_output`: False)."""

    def __init__(
        self, nest: UOp, target: Target, most_lanes: int | None = None, is_output: bool = True
    ) -> None:
        self.target = target
        self.is_output = is_output
        # elements may be written twice
        self.may_overlap = is_output and not nest_info(nest).is_in_place
        self.order = nodes_of(nest)
        self.ranges = [n for n in self.order if n.op is Ops.RANGE]
        self.reduced = {r for n in self.order if n.op is Ops.REDUCE for r in n.src[1:]}
        self.inner = self._inner_loops()
        self.scanned = [r for r in self.ranges if r.arg.kind is AxisKind.SCAN]
        # one memory is filled at a time, and running values go in order
        self.fixed = loops_around(nest).union(self.scanned)
        self.items = self._items()
        self.itemsize = self._itemsize()
        self.native = min(cost.native_lanes(target, self.itemsize), most_lanes or target.simd_bytes)

    def _inner_loops(self) -> set[UOp]:
        """The loops of sums of integers that are computed in each round of another sum, the blocks of a
        product; of all sums where there are none. Both have a register for each element of a tile."""
        blocks = [n for n in self.order if n.op is Ops.REDUCE and n.dtype.is_int]
        return {r for n in blocks if not n.ranges.isdisjoint(self.reduced) for r in n.src[1:]} or self.reduced

    def _itemsize(self) -> int:
        """Bytes of the elements that most of the work is on."""
        work: dict[int, int] = {}
        for item in self.items:
            work[item.itemsize] = work.get(item.itemsize, 0) + item.weight * item.runs
        return max(work, key=work.__getitem__, default=4)

    def _items(self) -> list[_CostItem]:
        around: dict[UOp, frozenset[UOp]] = dict.fromkeys(self.order, frozenset())  # loops of the sums above
        for node in reversed(self.order):
            above = node.ranges if node.op is Ops.REDUCE else around[node]
            for s in node.src if node.op is not Ops.STAGE else ():
                around[s] |= above
        out = []
        for node in self.order:
            if not cost.is_counted(node):
                continue
            loops, reads = node.ranges, 1
            strides: dict[UOp, int] = {}
            nonlinear: frozenset[UOp] = frozenset()
            far = False
            shared: frozenset[UOp] = frozenset()
            if node.op in (Ops.REDUCE, Ops.STORE):
                loops = node.src[0].ranges | node.src[-1].ranges
            if node.op in (Ops.LOAD, Ops.STORE):
                access = Access(node)
                terms, strides = access.terms, access.strides
                shared = frozenset(a.src[0] for a in terms if _is_shared(a))
                others = [a.ranges for a in terms if a.op is not Ops.RANGE and not _is_shared(a)]
                nonlinear = frozenset().union(*others)
            if node.op is Ops.LOAD and not loops.isdisjoint(self.reduced):
                reads = rounds(around[node] - self.reduced - loops)
                far = self._is_far(node, strides)
            weight = cost.run_cost(node.op)
            width, runs = _width(node), rounds(loops)
            out.append(_CostItem(node.op, width, weight, loops, runs, reads, strides, nonlinear, shared, far))
        return out

    def _is_far(self, load: UOp, strides: dict[UOp, int]) -> bool:
        summed = [r for r in strides if r in self.reduced]
        nbytes = rounds(summed) * load.dtype.itemsize
        return bool(summed) and cost.is_far(min(abs(strides[r]) for r in summed), nbytes, self.target)

    def cost(self, chosen: list[UOp], lanes: int) -> float:
        """How much work the nest is with the `chosen` ranges in SIMD lanes."""
        # how many columns of a register tile share a scalar load
        width = lanes * min([cost.VECTORS, *(r.src[0].arg // lanes for r in chosen)])
        # The last SIMD value of a sum overlaps the one before: its lanes are partly masked.
        terms = {r: lanes * (cost.used(r.src[0].arg, lanes) if r in self.reduced else 1.0) for r in chosen}
        total = 0.0
        for item in self.items:
            vector = not item.loops.isdisjoint(chosen)
            weight, runs = float(item.weight), float(item.runs)
            if item.op in (Ops.LOAD, Ops.STORE):
                steps = {item.strides.get(r, 0) for r in chosen}
                steps.update(2 for r in chosen if r in item.shared)
                scattered = not item.nonlinear.isdisjoint(chosen)
                if scattered or not steps <= {0, 1}:  # a load may still become a transposition
                    if item.op is Ops.STORE:
                        weight = cost.SCATTERED_STORE * lanes
                    elif scattered:
                        weight = cost.SCATTERED_LOAD * lanes
                    else:
                        weight = max(
                            cost.strided_load(s, lanes, item.itemsize, self.target) for s in steps - {0, 1}
                        )
                    copied = self.inner is self.reduced and self.reduced.isdisjoint(chosen)
                    if copied and item.reads >= cost.STAGED_READS:
                        weight = 1.0 + 8 * weight / item.reads  # copied once, then read as vectors
                runs *= max(item.reads / (cost.ROWS if vector else width), 1.0)
                if item.far and not vector and chosen and self.reduced.isdisjoint(chosen):
                    total += cost.FAR_LOAD * item.runs
            total += weight * runs / min((n for r, n in terms.items() if r in item.loops), default=1.0)
        if not chosen or not self.reduced.issuperset(chosen):
            return total
        results = sum(rounds(i.loops - self.reduced) for i in self.items if i.op is Ops.REDUCE)
        return total * cost.ACROSS_LANES + results * (lanes.bit_length() - 1)

    def choose(self) -> dict[UOp, Tile]:
        """The ranges to tile, and how."""
        if not self.reduced and not self.scanned and (block := self.transposition()) is not None:
            return block
        if self.target.matrices and (matrix := self.matrix_tile()):
            return matrix
        chosen, lanes = self.simd_axes()
        if not chosen:
            return self.running_values()
        body = sum(
            cost.run_cost(n.op)
            for n in self.order
            if n.op in GroupOp.ALU
            and n.dtype is not dtypes.index
            and (not self.reduced or not n.ranges.isdisjoint(self.inner))
        )
        if len(chosen) > 1:
            max_unroll = 4 if body < 2 * cost.SMALL_BODY else 1
            return {r: Tile(lanes, _fit(r.src[0].arg // lanes, max_unroll)) for r in chosen}
        lane = chosen[0]
        vectors = lane.src[0].arg // lanes
        if not self.reduced or body >= 2 * cost.SMALL_BODY:
            return {lane: Tile(lanes, self.side_by_side(lane, lanes, body))}
        return self.tile_for_reuse(lane, lanes, vectors)

    def side_by_side(self, lane: UOp, lanes: int, body: int) -> int:
        """How many SIMD values of a row are computed side by side, with a body of so many operations: all of
        a short row, of which the last may overlap the one before."""
        limit, longest_row = 4, cost.WHOLE_ROW
        if body >= cost.SMALL_BODY:
            few = 4 if body >= cost.LONG_BODY else 1
            limit = longest_row = few if self.target.registers >= 32 else cost.INTERLEAVED
        row = ceildiv(lane.src[0].arg, lanes)
        return row if self.may_overlap and row <= longest_row else _fit(lane.src[0].arg // lanes, limit)

    def running_values(self) -> dict[UOp, Tile]:
        """Scalar running values side by side: those along the innermost loop that they do not go along."""
        loops = [
            r for r in self.ranges if r not in self.fixed and r not in self.reduced and r.src[0].is_const
        ]
        if not self.scanned or not loops:
            return {}
        row = max(loops, key=lambda r: r.arg)
        size = _fit(row.src[0].arg, cost.RUNNING_VALUES)
        return {row: Tile(1, size)} if size > 1 else {}

    def simd_axes(self) -> tuple[list[UOp], int]:
        """The ranges for the SIMD lanes (several, where one loop follows another), and how many lanes."""
        native = self.native
        scalar = self.cost([], 1)
        best: tuple[float, list[UOp], int] = (0.9 * scalar, [], 1)
        candidates = [r for r in self.ranges if r not in self.fixed and r.src[0].is_const]
        for r in candidates:
            lanes = _lanes(native, r.src[0].arg)
            if lanes == 1 or (work := self.cost([r], lanes)) >= scalar:
                continue
            chosen = [r]
            for other in candidates:
                if other.src[0].arg < lanes or not self.is_independent(other, chosen):
                    continue
                if (both := self.cost([*chosen, other], lanes)) < 0.98 * work:
                    chosen, work = [*chosen, other], both
            if work < best[0]:
                best = (work, chosen, lanes)
        _, chosen, lanes = best
        return chosen, lanes // 2 if self._splits_lines(chosen, lanes) else lanes

    def _splits_lines(self, chosen: list[UOp], lanes: int) -> bool:
        """Whether SIMD values as long as a cache line would lie across two lines when they are stored, as the
        rows begin anywhere in a line. Values of half the length do so half as often. That is worth it where
        the nest computes little; plain copies are faster in long values."""
        memory = [i for i in self.items if i.op is Ops.LOAD or i.op is Ops.STORE]
        work = sum(i.weight for i in self.items if i.op is not Ops.LOAD and i.op is not Ops.STORE)
        if len(chosen) != 1 or self.reduced or not self.is_output or not 0 < work <= cost.LITTLE_WORK:
            return False
        (lane,) = chosen
        if any(i.strides.get(lane, 0) > 1 or lane in i.nonlinear for i in memory):
            return False
        return any(
            i.op is Ops.STORE
            and lanes * i.itemsize == cost.LINE_BYTES
            and any(step * i.itemsize % cost.LINE_BYTES for r, step in i.strides.items() if r is not lane)
            for i in memory
        )

    def is_independent(self, r: UOp, chosen: list[UOp]) -> bool:
        """No node depends on `r` and on a chosen range: their loops come one after the other."""
        for n in self.order:
            loops = n.src[0].ranges if n.op in (Ops.REDUCE, Ops.STORE) else n.ranges
            if r in loops and not loops.isdisjoint(chosen) and n.op is not Ops.END:
                return False
        return r not in chosen

    def transposition(self) -> dict[UOp, Tile] | None:
        """For a nest that stores along one of its loops and loads along another: a square block of both,
        which the emitter loads as whole vectors and transposes."""
        loads = [i for i in self.items if i.op is Ops.LOAD]
        stores = [i for i in self.items if i.op is Ops.STORE]
        stored = {r for i in stores for r, step in i.strides.items() if step == 1}
        if len(stored) != 1 or any(i.nonlinear or i.shared for i in loads):
            return None
        (lane,) = stored
        loaded = {
            r for i in loads if i.strides.get(lane, 1) != 1 for r, step in i.strides.items() if step == 1
        }
        if len(loaded) != 1:
            return None
        (across,) = loaded
        if lane in self.fixed or across in self.fixed:
            return None
        lanes = self.native
        if lanes < 4 or any(not r.src[0].is_const or r.src[0].arg < lanes for r in (lane, across)):
            return None
        return {lane: Tile(lanes, 1), across: Tile(1, lanes)}

    def tile_for_reuse(self, lane: UOp, lanes: int, vectors: int) -> dict[UOp, Tile]:
        """Unroll output loops that a load inside the reduction does not depend on: it is loaded once for all
        of them. Without such a loop, several accumulators hide the latency of the sum."""
        summed = [i for i in self.items if i.op is Ops.LOAD and not i.loops.isdisjoint(self.inner)]
        loads = [i.loops for i in summed]

        def reuse(r: UOp) -> int:
            """How many loads a tile of `r` shares; that of a whole SIMD value saves more than a scalar's."""
            shared = [loops for loops in loads if r not in loops]
            return len(shared) + sum(len(loads) for loops in shared if lane in loops)

        reused = [
            r
            for r in self.ranges
            if r is not lane
            and r not in self.reduced
            and r not in self.fixed
            and r.src[0].is_const
            and reuse(r)
        ]
        if not reused:
            far = any(item.far and lane in item.loops for item in self.items)
            max_vectors = cost.FAR_BYTES // self.target.simd_bytes if far else 0
            tiles = {lane: Tile(lanes, _fit(vectors, max(cost.ADD_LATENCY, max_vectors)))}
            return tiles if lane in self.reduced else tiles | self.small_sums(lane)
        if self.inner is not self.reduced and self._is_read_once(summed, lane, reused):
            return {lane: Tile(lanes, 1)} | self.whole_blocks()
        if lane not in self.reduced and (window := self.window(summed, lane, lanes, reused)):
            return window
        # the loops nest in the order of their ids
        reused.sort(key=lambda r: (reuse(r), r.arg.id), reverse=True)
        first = reused[0]
        if lane in self.reduced:
            wide = 4 if self.target.registers >= 32 else 2
            matrices = [i for i in summed if lane in i.loops and i.loops.issuperset(reused)]
            if matrices and (
                wide == 4 or any(cost.is_streamed(i.runs * i.itemsize, self.target) for i in matrices)
            ):
                return self.streamed_sum(lane, lanes, vectors)
            # as many sums at a time as hide their latency, two of each row where there are few rows
            across = _fit(vectors, 2) if wide == 2 and len(reused) == 1 else 1
            tiles = {lane: Tile(lanes, across), first: Tile(1, min(wide, first.src[0].arg))}
            if len(reused) > 1:
                tiles[reused[1]] = Tile(1, min(4, reused[1].src[0].arg))
            return tiles
        return self.register_tile(lane, lanes, summed, reused)

    def matrix_tile(self) -> dict[UOp, Tile]:
        """The tile of a product that matrix registers compute (matmul.py); empty for other sums."""
        sums = [n for n in self.order if n.op is Ops.REDUCE]
        stores = [i for i in self.items if i.op is Ops.STORE]
        if (
            not self.is_output
            or self.fixed
            or len(sums) != 1
            or len(stores) != 1
            or cost.native_lanes(self.target) != MATRIX_SIDE
        ):
            return {}
        store = stores[0]
        lane = next((r for r, step in store.strides.items() if step == 1 and r not in self.fixed), None)
        product = None if lane is None else product_of(sums[0], lane)
        if lane is None or product is None or not has_matrices(product.kinds, self.target):
            return {}
        loads = [Access(n) for n in sums[0].toposort() if n.op is Ops.LOAD]
        if any(a.op is not Ops.RANGE or not a.src[0].is_const for x in loads for a in x.terms):
            return {}
        own = [r for r in product.rows.ranges if r not in product.columns.ranges and r not in self.fixed]
        rows = max(own, key=lambda r: (r.src[0].arg, r.arg), default=None)
        if rows is None or rows.src[0].arg < 2:
            return {}
        sizes = (rows.src[0].arg, lane.src[0].arg)
        around = rounds([r for r in own if r is not rows])
        words = product.words.src[0].arg
        if product.needs_panel(lane) and not cost.has_matrix_panels(*sizes, words, around, self.target):
            return {}
        height, vectors = cost.matrix_tile(*sizes)
        tile = {lane: vectors * MATRIX_SIDE, rows: height}
        if all(r in tile and r.src[0].arg <= tile[r] for r in store.loops):
            # one tile, but memory for its sums has to be filled inside of a loop
            if height > MATRIX_SIDE:
                height = height // 2 // MATRIX_SIDE * MATRIX_SIDE
            else:
                vectors //= 2
        return {lane: Tile(MATRIX_SIDE, vectors), rows: Tile(1, height)} if vectors else {}

    def _is_read_once(self, loads: list[_CostItem], lane: UOp, reused: list[UOp]) -> bool:
        """Whether a product has one row: no tile would use a vector of the matrix twice."""
        return all(i.loops.issuperset(reused) for i in loads if lane in i.loops)

    def window(self, loads: list[_CostItem], lane: UOp, lanes: int, reused: list[UOp]) -> dict[UOp, Tile]:
        """The tile of a sum over small windows whose columns are lanes some elements apart, if no output
        elements share a vector (a depthwise convolution with a stride): the window unrolled whole, as its
        elements are in the same blocks of memory. Empty for another sum."""
        vectors = [i for i in loads if lane in i.loops]
        if len(vectors) != 1 or not vectors[0].loops.issuperset(reused):
            return {}
        steps = {r: abs(step) for r, step in vectors[0].strides.items()}
        step = steps.get(lane, 0)
        window = [r for r in self.reduced if r.src[0].is_const and 2 <= r.src[0].arg]
        if step < 2 or not self.reduced.issubset(window) or prod(r.src[0].arg for r in window) > cost.WINDOW:
            return {}
        if not any(0 < steps.get(r, 0) < lanes * step for r in window):
            return {}
        return {lane: Tile(lanes, 1), **{r: Tile(1, r.src[0].arg) for r in window}}

    def whole_blocks(self) -> dict[UOp, Tile]:
        """The loops of the inner sums, unrolled whole if they have few rounds: memory is read as a stream."""
        tiles: dict[UOp, Tile] = {}
        values = 1
        for r in sorted(self.inner, key=lambda r: r.arg.id, reverse=True):
            size = r.src[0].arg if r.src[0].is_const else 0
            if 2 <= size and values * size <= cost.BLOCK_ROUNDS:
                tiles[r] = Tile(1, size)
                values *= size
        return tiles

    def streamed_sum(self, lane: UOp, lanes: int, vectors: int) -> dict[UOp, Tile]:
        """Several accumulators of one sum, for a product of one row: each element of the matrix is read once,
        and memory is read fastest as one stream. What rows would share is read from the first cache."""
        count = _fit(vectors, cost.STREAMED)
        tiles = {lane: Tile(lanes, count)}
        for r in sorted(self.reduced - {lane}, key=lambda r: r.arg.id, reverse=True):
            size = r.src[0].arg if r.src[0].is_const else 0
            if 2 <= size and count * size <= cost.STREAMED:
                tiles[r] = Tile(1, size)
                count *= size
        return tiles

    def register_tile(
        self, lane: UOp, lanes: int, loads: list[_CostItem], reused: list[UOp]
    ) -> dict[UOp, Tile]:
        """The tile with the most useful multiply-adds per time: vectors along the lanes, and up to two other
        axes. Each of `loads` has a value for each element of the axes it depends on."""
        best: dict[UOp, int] = {}
        best_speed = 0.0
        registers = max(lanes * self.itemsize // self.target.simd_bytes, 1)  # of a SIMD value
        vector_loads = [(i, self._registers_of_vector(i, lane, lanes)) for i in loads if lane in i.loops]
        scalar_loads = [i for i in loads if lane not in i.loops]
        sums_of = 1 if self.inner is self.reduced else 2
        has_products = not self.target.adding_dots and any(n.op is Ops.DOT for n in self.order)
        temporaries = 2 if has_products else 1

        def consider(tile: dict[UOp, int]) -> None:
            nonlocal best, best_speed
            vectors = sum(count * _elements(tile, i) for i, count in vector_loads)
            scalars = sum(_elements(tile, i) for i in scalar_loads)
            sums = prod(tile.values())
            speed = cost.tile_speed(sums, vectors, scalars, self.target, registers, sums_of, temporaries)
            for r, n in tile.items():
                speed *= cost.used(r.src[0].arg, n * lanes if r is lane else n)
            if tile[lane] > max_vectors:
                speed /= cost.MIN_WHOLE_ROW_GAIN
            if speed > best_speed:
                best, best_speed = tile, speed

        row = ceildiv(lane.src[0].arg, lanes)  # the SIMD values of a whole row, of which the last may overlap
        max_vectors = min(cost.VECTORS, lane.src[0].arg // lanes)
        counts = list(range(max_vectors, 0, -1))
        if max_vectors < row <= cost.WHOLE_ROW and self.may_overlap:
            counts.append(row)
        for vectors in counts:  # of equals, the widest along the lanes
            room = (self.target.registers - 1) // vectors
            for i, first in enumerate(reused[: cost.MAX_REORDERED]):
                for rows in range(1, min(first.src[0].arg, cost.MAX_ROWS, room) + 1):
                    consider({lane: vectors, first: rows})
                    for second in reused[i + 1 : cost.MAX_REORDERED]:
                        for more in range(2, min(second.src[0].arg, cost.VECTORS, room // rows) + 1):
                            consider({lane: vectors, first: rows, second: more})
        return {r: Tile(lanes if r is lane else 1, n) for r, n in best.items()}

    def _registers_of_vector(self, load: _CostItem, lane: UOp, lanes: int) -> float:
        """How many registers a vector of a load takes while it is made, of the size of a SIMD value."""
        stride, block = abs(load.strides.get(lane, 0)), max(self.target.simd_bytes // load.itemsize, 1)
        if stride < 2 or load.reads >= cost.STAGED_READS or not cost.in_blocks(stride, lanes, block):
            return 1.0
        return cost.STRIDED_REGISTERS

    def small_sums(self, lane: UOp) -> dict[UOp, Tile]:
        """Reduced loops of a few rounds (a pooling window), unrolled whole, the innermost first: not those
        that a condition depends on that differs from lane to lane, nor where loads work out their indices."""
        tiles: dict[UOp, Tile] = {}
        if any(i.nonlinear for i in self.items):
            return tiles
        conditions = [n.src[0].ranges for n in self.order if n.op is Ops.WHERE]
        conditional = frozenset().union(*[loops for loops in conditions if lane in loops])
        values = 1
        for r in sorted(self.reduced - conditional, key=lambda r: r.arg.id, reverse=True):
            size = r.src[0].arg if r.src[0].is_const else 0
            if 2 <= size <= cost.SMALL_SUM and values * size < cost.SMALL_BODY:
                tiles[r] = Tile(1, size)
                values *= size
        return tiles


def _elements(tile: dict[UOp, int], load: _CostItem) -> int:
    """How many values of a load a tile has."""
    return int(prod(n for r, n in tile.items() if r in load.loops))


def _width(node: UOp) -> int:
    """Bytes of an element that a node works on."""
    operand = node.src[0 if node.op in (Ops.REDUCE, Ops.LOAD) else -1].dtype
    # THREEFRY is of words of 32 bits; comparisons of indices are for what they guard
    return 4 if node.op is Ops.THREEFRY or operand is dtypes.index else operand.itemsize


def _is_shared(atom: UOp) -> bool:
    """Whether two or four neighbours of a range have one value of this term of an index."""
    return atom.op is Ops.IDIV and atom.src[0].op is Ops.RANGE and atom.src[1].arg in (2, 4)


def _lanes(native: int, size: int) -> int:
    lanes = native
    while lanes > size:
        lanes //= 2
    return lanes if lanes >= min(native, 4) else 1


def _fit(count: int, limit: int) -> int:
    """The greatest of 1, 2, 4, ... `limit` that is at most `count`, a divisor of it if one is near."""
    best = 1
    while best * 2 <= min(count, limit):
        best *= 2
    return best if count % best == 0 or count >= 4 * best else max(best // 2, 1)
