"""GLOBAL and LOCAL axes become numbers of workgroups and invocations; what a workgroup shares gets its memory
and barriers.

    RANGE GLOBAL, LOCAL     SPECIAL, the number along one of 3 dimensions. Axes that no value depends on
                            together share a dimension: softmax's three passes over a row are the same
                            invocations
    STAGE, SHARED           memory that the invocations fill together, element e by invocation e % count
    REDUCE over LOCAL axes  a tree in shared memory: each invocation stores its part, then half of them add
                            what the other half has, then half of those, ...; where subgroups exchange values
                            in registers, what they can of the tree, by SHUFFLE_XOR
    STORE                   gated where several invocations would do it

    for k:                              for k:
        STAGE(a tile of x, at k)            barrier                 all have read what was there
        use it                              memory[e] = x[...]      e = invocation, + count, + 2*count, ...
                                            barrier
                                            use memory

Of memory in several buffers (`Memory.depth`, here 3) a round fills the one that is read two rounds later:

    for k < 2: memory[k] = x[...]; COMMIT       in each round of the loops around k
    for k:
        barrier         all copies but the last group's are complete, and all have read what was there
        memory[(k + 2) % 3] = x[...]; COMMIT
        use memory[k % 3]

Barriers are never in divergent control flow: they are inside of loops that all invocations go round equally
often, and gates are on single stores. What is filled in the same loops shares its barriers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from polygrad.codegen.opts.split import gated, substituted
from polygrad.codegen.opts.tile import is_bound, is_tile, loops_of
from polygrad.codegen.target import Workgroups
from polygrad.dtype import dtypes
from polygrad.errors import OptError
from polygrad.helpers import ceildiv, prod
from polygrad.schedule.index_maps import flat_index
from polygrad.uop.args import AddrSpace, Axis, AxisKind, Param, Pending, Special
from polygrad.uop.linear import linear_terms
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.printer import axis_name
from polygrad.uop.shapes import sint_max
from polygrad.uop.symbolic import simplify

_DIMENSIONS = 3
_VECTOR_BYTES = 16  # that an invocation copies at once
_EXCHANGED = frozenset(
    {dtypes.float32, dtypes.int32, dtypes.uint32, dtypes.float64, dtypes.int64, dtypes.uint64}
)
_MIN_WIDTH = 1024  # workgroups along x that are worth looking for where a grid is folded


def bind_workgroups(kernel: UOp, limits: Workgroups) -> UOp:
    """The kernel with its GLOBAL and LOCAL axes bound. Raises OptError for more than a workgroup has.

    END(STORE(out[r0*32 + r1], x), r0 GLOBAL, r1 < 32 LOCAL)

    ->  STORE(out[SPECIAL(workgroup 0)*32 + SPECIAL(invocation 0)], x)
    """
    order = kernel.toposort()
    if not any(is_bound(n) or _is_shared(n) for n in order):
        return kernel
    return _Binder(kernel, limits).run()


def grid_of(linear: Iterable[UOp]) -> tuple[UOp, UOp, UOp]:
    """The sizes of a linear kernel's grid, in which Variables may occur."""
    return _sizes(linear, AxisKind.GLOBAL)


def workgroup_of(linear: Iterable[UOp]) -> tuple[int, int, int]:
    """How many invocations a linear kernel's workgroups have along each dimension."""
    x, y, z = (size.arg for size in _sizes(linear, AxisKind.LOCAL))
    return x, y, z


def subgroup_of(linear: Iterable[UOp], limits: Workgroups) -> int:
    """How many invocations a linear kernel counts on in a subgroup; 0 where it has no use for them."""
    return limits.subgroup if any(n.op in (Ops.SHUFFLE_XOR, Ops.WMMA) for n in linear) else 0


def _sizes(linear: Iterable[UOp], kind: AxisKind) -> tuple[UOp, UOp, UOp]:
    found = {n.arg.axis: n.src[0] for n in linear if n.op is Ops.SPECIAL and n.arg.kind is kind}
    x, y, z = (found.get(axis, UOp.index(1)) for axis in range(_DIMENSIONS))
    return x, y, z


def _is_shared(node: UOp) -> bool:
    return node.op is Ops.STAGE and node.arg.space is AddrSpace.SHARED


# --- dimensions


def _dimensions(order: Sequence[UOp], kind: AxisKind) -> list[list[UOp]]:
    """The axes of a kind that share each dimension: of one size, and no value depends on two of them. The
    first has those that memory is read along element by element."""
    axes = [n for n in order if n.op is Ops.RANGE and n.arg.kind is kind]
    together = [axes_of_value for n in order if len(axes_of_value := n.ranges.intersection(axes)) > 1]
    strides: dict[UOp, int] = {}
    for n in order:
        if n.op is Ops.INDEX and n.src[0].op is Ops.PARAM:
            for atom, step in linear_terms(n.src[1])[0].items():
                for r in atom.ranges:
                    strides[r] = min(abs(step), strides.get(r, abs(step)))
    longest = max(strides.values(), default=0) + 1
    out: list[list[UOp]] = []
    for r in sorted(axes, key=lambda r: (-strides.get(r, longest), r.arg.id), reverse=True):
        for members in out:
            if members[0].src == r.src and not any(r in t and not t.isdisjoint(members) for t in together):
                members.append(r)
                break
        else:
            out.append([r])
    return out


def _coordinates(position: UOp, sizes: Sequence[UOp]) -> list[UOp]:
    """A position as one of each axis, the first fastest."""
    out = []
    for size in sizes[:-1]:
        out.append(position % size)
        position = position // size
    return [*out, position]


class _Grid:
    """The dimensions of the grid: `numbers[i]` is where a workgroup is along the axes `axes[i]`; `gate`:
    whether it has anything to do (None: all have)."""

    def __init__(self, order: Sequence[UOp], limits: Workgroups) -> None:
        self.axes = _dimensions(order, AxisKind.GLOBAL)
        self.gate: UOp | None = None
        sizes = [members[0].src[0] for members in self.axes]
        if len(sizes) <= _DIMENSIONS and all(sint_max(n) <= limits.count for n in sizes):
            self.numbers = [_special(n, AxisKind.GLOBAL, i) for i, n in enumerate(sizes)]
            return
        total = simplify(UOp.index(prod(sizes)))
        width = _width(total, limits.count)
        height = simplify((total + (width - 1)) // width)
        if sint_max(height) > limits.count:
            raise OptError(f"expected a grid of at most {limits.count**2} workgroups, got {sint_max(total)}")
        position = _special(UOp.index(width), AxisKind.GLOBAL, 0)
        if height.op is not Ops.CONST or height.arg > 1:
            position = position + _special(height, AxisKind.GLOBAL, 1) * width
        if not total.is_const or total.arg % width:
            self.gate = position < total
            position = -(-position).maximum(1 - total)
        self.numbers = [simplify(n) for n in _coordinates(position, sizes)]


def _width(total: UOp, most: int) -> int:
    """How many workgroups of a folded grid lie along x: as many as divide it, if they can."""
    if sint_max(total) <= most and total.is_const:
        return int(total.arg)
    fits = range(most, _MIN_WIDTH, -1)
    return next((n for n in fits if total.is_const and total.arg % n == 0 and total.arg // n <= most), most)


def _special(size: UOp, kind: AxisKind, axis: int) -> UOp:
    return UOp(Ops.SPECIAL, dtypes.index, (size,), Special(kind, axis))


class _Workgroup:
    """The dimensions of a workgroup: `numbers[i]` is that of an invocation for the axes `axes[i]`;
    `position`: its number in all `count`."""

    def __init__(self, order: Sequence[UOp], limits: Workgroups) -> None:
        self.axes = _dimensions(order, AxisKind.LOCAL)
        sizes = [members[0].src[0].arg for members in self.axes]
        lanes = _lanes(order, limits)
        if lanes:  # of one dimension, the first: neighbours are in one subgroup, or in several in a row
            sizes.insert(0, int(prod(r.src[0].arg for r in lanes)))
        self.count = int(prod(sizes))
        within = len(sizes) <= _DIMENSIONS and all(n <= m for n, m in zip(sizes, limits.sizes, strict=False))
        if not within or self.count > limits.invocations:
            raise OptError(
                f"expected workgroups of at most {limits.invocations} invocations in {_DIMENSIONS} "
                f"dimensions, no more than {limits.sizes}, got {sizes}"
            )
        self.numbers = [_special(UOp.index(n), AxisKind.LOCAL, i) for i, n in enumerate(sizes)]
        self.strides = [int(prod(sizes[:i])) for i in range(len(sizes))]  # in the invocation's number
        self.position = UOp.index(0)
        for number, size in reversed(list(zip(self.numbers, sizes, strict=True))):
            self.position = simplify(self.position * size + number)
        if lanes:
            lane, *others = self.numbers
            self.numbers = [*map(simplify, _coordinates(lane, [r.src[0] for r in lanes])), *others]
            self.axes = [*([r] for r in lanes), *self.axes]
            self.strides = [*(0 for _ in lanes), *self.strides[1:]]


def _lanes(order: Sequence[UOp], limits: Workgroups) -> list[UOp]:
    """The axes of the lanes of a subgroup, the fastest first."""
    lanes = [n for n in order if n.op is Ops.RANGE and n.arg.kind is AxisKind.SUBGROUP]
    count = prod(r.src[0].arg for r in lanes)
    if lanes and (not limits.subgroup or count % limits.subgroup):
        raise OptError(f"expected subgroups of {count} invocations, got {limits.subgroup}")
    return sorted(lanes, key=lambda r: r.arg.id)


# --- what a workgroup shares


class _Item:
    """Memory of a workgroup: `phases` are its effects, each of what comes before it; between them all
    invocations wait for each other. `fill`: for memory in several buffers, the effect that fills one in
    another round of a loop: of the pointer, the rounds by their loop, and the buffer."""

    def __init__(
        self,
        memory: UOp,
        phases: list[Callable[[UOp], UOp]],
        fill: Callable[[UOp, dict[UOp, UOp], UOp], UOp] | None = None,
    ) -> None:
        self.memory, self.phases, self.fill = memory, phases, fill
        self.pointer = memory  # after the last phase


_Pending = dict[tuple[frozenset[UOp], int], list[tuple[UOp, _Item]]]  # by loops around, and number of buffers


class _Binder:
    def __init__(self, kernel: UOp, limits: Workgroups) -> None:
        self.kernel, self.limits = kernel, limits
        self.order = kernel.toposort()
        self.grid, self.group = _Grid(self.order, limits), _Workgroup(self.order, limits)
        self.new: dict[UOp, UOp] = {}
        for part in (self.grid, self.group):
            for members, number in zip(part.axes, part.numbers, strict=True):
                self.new.update(dict.fromkeys(members, number))
        self.nbytes = self.slots = 0
        self.starts: dict[UOp, UOp] = {}  # by STAGE, of the buffer that is read
        self.has_cores = any(n.op is Ops.WMMA for n in self.order)

    def run(self) -> UOp:
        pending: _Pending = {}
        level = 0
        for depth, _, node in sorted(self._levels(), key=lambda entry: entry[:2]):
            if depth > level:
                self._complete(pending)
                pending, level = {}, depth
            if node in self.new:
                continue
            if node.op is Ops.REDUCE and self._is_in_registers(node):
                self.new[node] = self._exchange(node)
                continue
            item = self._item(node)
            if item is not None:
                loops = loops_of(node)
                depth = node.arg.depth if node.op is Ops.STAGE else 1
                if depth > 1:
                    loops |= self._loops_outside(loops)
                pending.setdefault((loops, depth), []).append((node, item))
                continue
            src = tuple([self.new[s] for s in node.src])
            if node.op is Ops.INDEX and (start := self.starts.get(node.src[0])) is not None:
                src = (src[0], src[1] + start, *src[2:])
            if node.op is Ops.END or (node.op is Ops.STORE and node in self.kernel.src):
                self.new[node] = self._nest(node, src)
            else:
                self.new[node] = node.over(src)
        return self.new[self.kernel]

    def _levels(self) -> list[tuple[int, int, UOp]]:
        """Each node with the number of memories that one after the other must be filled before it."""
        depth: dict[UOp, int] = {}
        for n in self.order:
            depth[n] = max((depth[s] + self._is_item(s) for s in n.src), default=0)
        return [(depth[n], i, n) for i, n in enumerate(self.order)]

    def _is_item(self, node: UOp) -> bool:
        if node.op is not Ops.REDUCE:
            return node.op is Ops.STAGE
        return any(map(_is_local, node.src[1:])) and not self._is_in_registers(node)

    def _item(self, node: UOp) -> _Item | None:
        if not self._is_item(node):
            return None
        return self._fill_together(node) if node.op is Ops.STAGE else self._lower_group(node)

    def _loops_outside(self, loops: frozenset[UOp]) -> frozenset[UOp]:
        """The loops around the innermost of `loops`. Each of their rounds goes through all buffers from the
        first on, even if the value in them does not depend on it."""
        if not loops:
            return loops
        inner = max(loops, key=lambda r: r.arg)
        ends = [n for n in self.order if n.op in (Ops.REDUCE, Ops.END) and inner in n.src[1:]]
        return frozenset(
            r for n in ends for r in loops_of(n.src[0]) if r not in n.src[1:] or r.arg <= inner.arg
        )

    def _complete(self, pending: _Pending) -> None:
        for (loops, depth), found in pending.items():
            outer = [self.new[r] for r in sorted(loops, key=lambda r: r.arg)]
            _require_uniform(outer)
            if depth > 1:
                self._pipeline(outer, depth, found)
                continue
            before = _barrier(outer) if outer else None
            for phase in range(max(len(item.phases) for _, item in found)):
                active = [item for _, item in found if phase < len(item.phases)]
                barrier = _barrier([item.phases[phase](_after(item.memory, before)) for item in active])
                for item in active:
                    item.pointer = _after(item.memory, barrier)
                before = barrier
            for node, item in found:
                self.new[node] = item.pointer if node.op is Ops.STAGE else self._total(node, item.pointer)

    def _pipeline(self, loops: list[UOp], depth: int, found: Sequence[tuple[UOp, _Item]]) -> None:
        """Fill memory in `depth` buffers, in each round of the innermost loop one for a later round."""
        if not loops or not loops[-1].src[0].is_const or loops[-1].src[0].arg < depth:
            raise OptError(f"expected a loop of {depth} rounds or more around memory in {depth} buffers")
        *outer, loop = loops
        count = loop.src[0].arg

        def filled(before: UOp | None, at: UOp, buffer: UOp, gate: UOp | None) -> UOp:
            stores = [
                item.fill(_after(item.memory, before), {loop: at}, buffer) for _, item in found if item.fill
            ]
            return UOp(Ops.COMMIT, dtypes.void, tuple(_guarded(s, gate) for s in stores))

        ahead = UOp.range(depth - 1, loop.arg.copy(self.slots, AxisKind.LOOP))
        first = filled(_barrier(outer) if outer else None, ahead, ahead, None)
        inside = (r for fill in first.src if fill.op is Ops.END for r in fill.src[1:])
        own = {r: r.replace(arg=r.arg.copy(self.slots)) for r in inside}
        first = UOp(Ops.END, dtypes.void, (first.substitute(own), ahead))
        ready = UOp(Ops.BARRIER, dtypes.void, (first, loop), Pending(depth - 2))
        later = loop + (depth - 1)
        at = (later < count).where(later, UOp.index(count - 1))
        next_one = filled(ready, at, later % depth, later < count)
        for node, item in found:
            self.new[node] = UOp(Ops.AFTER, item.memory.dtype, (item.memory, ready, next_one))
            self.starts[node] = (loop % depth) * node.arg.size

    def _memory(self, node: UOp, size: int, depth: int = 1, swizzled: bool = False) -> UOp:
        size *= depth
        self.nbytes += size * node.dtype.itemsize
        if self.nbytes > self.limits.shared_bytes:
            raise OptError(
                f"expected at most {self.limits.shared_bytes} bytes of memory in a workgroup, got "
                f"{self.nbytes}"
            )
        self.slots += 1
        return UOp(Ops.PARAM, node.dtype, (), Param(self.slots - 1, size, AddrSpace.SHARED, depth, swizzled))

    # --- stages

    def _fill_together(self, node: UOp) -> _Item:
        """A STAGE: filled by all invocations, in the order in which memory holds what is read."""
        if node.arg.space is not AddrSpace.SHARED:
            raise OptError("expected memory of a workgroup: STAGE comes after LOCAL")
        ranges = [r for r in node.src[2:] if not is_tile(r)]
        inside = [n for n in node.src[0].toposort() if self._is_item(n)]
        if any(not n.ranges.isdisjoint(ranges) for n in inside):
            raise OptError(
                "expected memory whose elements invocations compute each for itself, got some that takes a "
                "workgroup for each"
            )
        steps = _steps(node.src[0])
        ranges.sort(key=lambda r: steps.get(r, 0) or 1 << 62)  # fastest first
        vector: dict[UOp, UOp] = {}
        if self.has_cores or node.arg.depth > 1:
            ranges, vector = _vector(node, ranges, steps)
        size, count = int(prod(r.src[0].arg for r in ranges)), self.group.count
        element, loops = self.group.position, []
        if size > count:
            axis = Axis((*ranges[0].arg.id, 0), AxisKind.LOOP)
            loops = [UOp.range(ceildiv(size, count), axis)]
            element = element + loops[0] * count
        gate = None if size % count == 0 else element < size
        if gate is not None:
            element = (element < size - 1).where(element, size - 1)
        places = _coordinates(element, [r.src[0] for r in ranges]) if ranges else []
        where = {self.new.get(r, r): simplify(p) for r, p in zip(ranges, places, strict=True)}
        where |= {r: simplify(place.substitute(where)) for r, place in vector.items()}
        bound_value, bound_index = self.new[node.src[0]], self.new[node.src[1]]

        def fill(pointer: UOp, at: dict[UOp, UOp] | None = None, buffer: UOp | None = None) -> UOp:
            place = bound_index.substitute(where)
            if buffer is not None:
                place = place + buffer * node.arg.size
            store = _store(pointer, simplify(place), substituted(bound_value, where | (at or {})))
            if gate is not None:
                store = gated(store, gate)
            return UOp(Ops.END, dtypes.void, (store, *loops)) if loops else store

        memory = self._memory(node, node.arg.size, node.arg.depth, node.arg.swizzled)
        return _Item(memory, [fill], fill)

    # --- reductions

    def _lower_group(self, node: UOp) -> _Item:
        """A REDUCE over one LOCAL axis: a tree of the invocations' parts."""
        axis = _shared_axis(node)
        part = self._part(node)
        number, size = self.new[axis], axis.src[0].arg
        gate = self._idle([axis, *self._beside(node)])

        def start(pointer: UOp) -> UOp:
            store = _store(pointer, self._place(node, axis, number), part)
            return store if gate is None else gated(store, gate)

        if self._has_shuffles(node):  # the rest is in registers, of all invocations: see _total
            return _Item(self._memory(node, self._extent(node, axis)), [start])
        slot = self.slots

        def half(count: int) -> Callable[[UOp], UOp]:
            def step(pointer: UOp) -> UOp:
                active = number < count
                if gate is not None:
                    # those that would do the same must not even read what is written: they take no part
                    axis_of_branch = Axis((*axis.arg.id, slot, count), AxisKind.LOOP)
                    branch = UOp.range((active & gate).cast(dtypes.index), axis_of_branch)
                    pointer = UOp(Ops.AFTER, pointer.dtype, (*pointer.src, branch))
                    here, there = (self._place(node, axis, n) for n in (number, number + count))
                    both = UOp(node.arg, node.dtype, (_load(pointer, here), _load(pointer, there)))
                    return UOp(Ops.END, dtypes.void, (_store(pointer, here, both), branch))
                there = self._place(node, axis, active.where(number + count, number))
                here = self._place(node, axis, number)
                both = UOp(node.arg, node.dtype, (_load(pointer, here), _load(pointer, there)))
                return gated(_store(pointer, here, both), active)

            return step

        halves = [half(size >> i) for i in range(1, size.bit_length())]
        return _Item(self._memory(node, self._extent(node, axis)), [start, *halves])

    def _beside(self, node: UOp) -> list[UOp]:
        """The axes that the parts of a group's reduction have beside its own: other invocations, the tile."""
        kept = [r for r in node.ranges if _is_local(r) or is_tile(r)]
        return sorted(kept, key=lambda r: (r.arg.kind is AxisKind.LANE, r.arg.id))

    def _extent(self, node: UOp, axis: UOp) -> int:
        return int(prod(r.src[0].arg for r in (axis, *self._beside(node))))

    def _place(self, node: UOp, axis: UOp, number: UOp) -> UOp:
        beside = self._beside(node)
        sizes = tuple(r.src[0].arg for r in (axis, *beside))
        return simplify(flat_index(sizes, (number, *(self.new[r] for r in beside))))

    def _total(self, node: UOp, pointer: UOp) -> UOp:
        axis = _shared_axis(node)
        if not self._has_shuffles(node):
            return _load(pointer, self._place(node, axis, UOp.index(0)))
        inner = self._exchanging(axis)
        lane = simplify(self.new[axis] % inner)
        count = axis.src[0].arg // inner
        values = [_load(pointer, self._place(node, axis, lane + i * inner)) for i in range(count)]
        while count > 1:  # as the tree does
            count //= 2
            values = [UOp(node.arg, node.dtype, (values[i], values[i + count])) for i in range(count)]
        return self._butterfly(node, values[0], inner)

    def _part(self, node: UOp) -> UOp:
        """What an invocation has of a reduction."""
        loops = [self.new[r] for r in node.src[1:] if not _is_local(r)]
        value = self.new[node.src[0]]
        return UOp(Ops.REDUCE, node.dtype, (value, *loops), node.arg) if loops else value

    # --- reductions in registers

    def _has_shuffles(self, node: UOp) -> bool:
        """Whether the invocations of a subgroup exchange such values."""
        is_word = node.dtype in _EXCHANGED and node.dtype.itemsize <= self.limits.shuffle_bytes
        return is_word and self.group.count % self.limits.subgroup == 0

    def _exchanging(self, axis: UOp) -> int:
        """How many neighbours along an axis are in one subgroup."""
        at = next(i for i, members in enumerate(self.group.axes) if axis in members)
        stride = self.group.strides[at]
        if stride & (stride - 1):
            return 1
        return max(min(axis.src[0].arg, self.limits.subgroup // stride), 1)

    def _is_in_registers(self, node: UOp) -> bool:
        """Whether a reduction needs no memory of the workgroup."""
        axes = [r for r in node.src[1:] if _is_local(r)]
        if len(axes) != 1 or not self._has_shuffles(node):
            return False
        return self._exchanging(axes[0]) == axes[0].src[0].arg

    def _exchange(self, node: UOp) -> UOp:
        _require_uniform(self.new[r] for r in loops_of(node))
        return self._butterfly(node, self._part(node), _shared_axis(node).src[0].arg)

    def _butterfly(self, node: UOp, value: UOp, count: int) -> UOp:
        """`value` of `count` neighbours combined: the sums of the tree, in all of them.

        value, 4 neighbours  ->  v = value + SHUFFLE_XOR(value, 2);  v + SHUFFLE_XOR(v, 1)
        """
        axis = _shared_axis(node)
        at = next(i for i, members in enumerate(self.group.axes) if axis in members)
        while count > 1:
            count //= 2
            mask = count * self.group.strides[at]
            value = UOp(node.arg, node.dtype, (value, UOp(Ops.SHUFFLE_XOR, node.dtype, (value,), mask)))
        return value

    # --- stores

    def _idle(self, axes: Iterable[UOp]) -> UOp | None:
        """The condition that picks one of the invocations that would store the same; None where each has an
        element of its own along `axes`."""
        is_first = None
        for members, number in zip(self.group.axes, self.group.numbers, strict=True):
            if not any(r in members for r in axes):
                is_first_of_axis = number < 1
                is_first = is_first_of_axis if is_first is None else is_first & is_first_of_axis
        return is_first

    def _nest(self, node: UOp, src: tuple[UOp, ...]) -> UOp:
        """An output nest without the loops that are bound.

        END(STORE(place, x), r GLOBAL, k)  ->  END(STORE(place, x) where r's invocation is not idle, k)
        """
        is_loop = node.op is Ops.END
        axes = node.src[1:] if is_loop else ()
        conditions = [self._idle(axes), self.grid.gate]
        for members, number in zip(self.grid.axes, self.grid.numbers, strict=True):
            if not any(r in members for r in axes):
                conditions.append(number < 1)
        store = src[0] if is_loop else UOp(Ops.STORE, dtypes.void, src)
        for condition in conditions:
            if condition is not None:
                store = gated(store, condition)
        loops = [new for r, new in zip(axes, src[1:], strict=is_loop) if not is_bound(r)]
        return UOp(Ops.END, dtypes.void, (store, *loops)) if loops else store


def _require_uniform(loops: Iterable[UOp]) -> None:
    """Raises OptError for a loop that some invocations go round more often than others."""
    for r in loops:
        if any(n.op is Ops.SPECIAL and n.arg.kind is AxisKind.LOCAL for n in r.src[0].toposort()):
            raise OptError(
                f"expected barriers in loops that all invocations go round equally often, got one in "
                f"{axis_name(r.arg.id)}"
            )


def _shared_axis(node: UOp) -> UOp:
    """The LOCAL axis that a reduction is over."""
    axis, *more = [r for r in node.src[1:] if _is_local(r)]
    if more:
        raise OptError("expected a reduction that one GROUP shares")
    return axis


def _is_local(r: UOp) -> bool:
    return r.op is Ops.RANGE and r.arg.kind is AxisKind.LOCAL


def _steps(value: UOp) -> dict[UOp, int]:
    """How far apart in memory neighbours along each axis are, in the first load of a value."""
    load = next((n for n in value.toposort() if n.op is Ops.LOAD), None)
    terms = {} if load is None else linear_terms(load.src[0].src[1])[0]
    out = {r: abs(f) for a, f in terms.items() for r in a.ranges}  # of one that stops at an edge, too
    return out | {a: abs(f) for a, f in terms.items() if a.op is Ops.RANGE}


def _vector(node: UOp, ranges: Sequence[UOp], steps: dict[UOp, int]) -> tuple[list[UOp], dict[UOp, UOp]]:
    """The axes of a STAGE, fastest first, without what an invocation copies at once, as neighbours in memory:
    up to 16 bytes; and the positions along the others. What is copied while invocations compute goes to
    neighbours in memory, too."""
    left, places, size = list(ranges), dict[UOp, UOp](), 1
    to = linear_terms(node.src[1])[0]
    for r in ranges:
        n, room = r.src[0].arg, _VECTOR_BYTES // node.dtype.itemsize // size
        if steps.get(r) != size or n & (n - 1) or room < 2:
            break
        if node.arg.depth > 1 and to.get(r) != size:
            break
        if n > room:  # of a long axis a part
            if node.arg.depth > 1 or node.arg.swizzled:
                blocks = UOp.range(n // room, r.arg.child(0))
                places[r] = blocks * room + UOp.range(room, r.arg.child(1, AxisKind.UPCAST))
                left[left.index(r)] = blocks
            break
        if r is ranges[-1]:
            break
        places[r] = r.replace(arg=r.arg._replace(kind=AxisKind.UPCAST))
        left.remove(r)
        size *= n
    return left, places


def _guarded(fill: UOp, gate: UOp | None) -> UOp:
    """What fills memory, done where a condition holds.

    END(STORE(place, x), loops)  ->  END(STORE(place, x) gated, loops)
    """
    if gate is None:
        return fill
    if fill.op is Ops.END:
        return fill.replace(src=(gated(fill.src[0], gate), *fill.src[1:]))
    return gated(fill, gate)


def _after(pointer: UOp, what: UOp | None) -> UOp:
    return pointer if what is None else UOp(Ops.AFTER, pointer.dtype, (pointer, what))


def _barrier(effects: list[UOp]) -> UOp:
    return UOp(Ops.BARRIER, dtypes.void, tuple(effects))


def _store(pointer: UOp, index: UOp, value: UOp) -> UOp:
    return UOp(Ops.STORE, dtypes.void, (UOp(Ops.INDEX, value.dtype, (pointer, index)), value))


def _load(pointer: UOp, index: UOp) -> UOp:
    return UOp(Ops.LOAD, pointer.dtype, (UOp(Ops.INDEX, pointer.dtype, (pointer, index)),))
