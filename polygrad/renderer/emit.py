"""The emitter: walks a linear kernel and drives a Builder.

Each node stands for a tile of values: one per combination of the UPCAST and UNROLL ranges it depends on, each
a SIMD value if it depends on the LANE range. A value that does not depend on the lanes stays a scalar until a
SIMD operation needs it.

A value that one node alone reads, several times, is written when that node first needs it. Otherwise all
loads of a register tile would be live at once, which takes more registers than there are.

Knows axes; knows no instruction set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from polygrad.codegen.lower import strided_loads as strided
from polygrad.codegen.lower.passes import parameters
from polygrad.codegen.opts.tile import is_tile
from polygrad.dtype import DType, dtypes
from polygrad.errors import InternalError
from polygrad.helpers import prod
from polygrad.renderer.builder import Address, Block, Builder, Operand, Pointer, Value
from polygrad.renderer.neighbours import load_runs, runs_of, store_runs
from polygrad.renderer.safepoints import safepoints
from polygrad.renderer.streams import AHEAD, LINE, streamed_loads
from polygrad.renderer.tile_values import Axes, are_consecutive, by_id, coordinates, tile_constants
from polygrad.uop.args import AddrSpace, AxisKind
from polygrad.uop.linear import Steps
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops

Place = tuple[Address, Sequence[int]]  # the address of the first lane, and the offset of each lane
Blocks = dict[Address, Block]

_COMPUTING = GroupOp.Elementwise | {Ops.LOAD, Ops.STORE, Ops.REDUCE}
_NO_STEPS = Steps((), 0)
_SPECIALS = {AxisKind.GLOBAL: "workgroup", AxisKind.LOCAL: "invocation"}


def emit(name: str, linear: Sequence[UOp], builder: Builder) -> Any:
    """The function `name` for a linear kernel, as `builder.finish()` gives it."""
    return _Emitter(name, linear, builder).run()


def pointer_of(index: UOp) -> UOp:
    """The PARAM or DEFINE_REG under an INDEX."""
    node = index.src[0]
    while node.op is Ops.AFTER:
        node = node.src[0]
    return node


def _each(place: Place) -> list[Address]:
    """The address of each lane."""
    first, offsets = place
    return [Address(first.pointer, first.base, offset) for offset in offsets]


class _Emitter:
    def __init__(self, name: str, linear: Sequence[UOp], builder: Builder) -> None:
        self.name, self.linear, self.builder = name, linear, builder
        self.axes: dict[UOp, Axes] = {}
        self.simd: dict[UOp, bool] = {}  # depends on the LANE range
        self.values: dict[UOp, list[Value]] = {}  # None where `makers` has yet to write a value
        self.splats: dict[UOp, list[Value]] = {}
        self.makers: dict[UOp, Callable[[int], Value]] = {}
        self.deferred: set[UOp] = set()  # nodes whose values are written when first needed
        self.needs_splat: set[UOp] = set()  # scalars that a SIMD operation uses
        self.projections: dict[tuple[Axes, Axes], list[int]] = {}
        ranges = {n for n in linear if n.op is Ops.RANGE}
        ranges.update(r for n in linear if n.op is Ops.INDEX and n.arg is not None for r, _ in n.arg.steps)
        sizes = {n.src[0].arg for n in ranges if n.arg.kind is AxisKind.LANE}
        if len(sizes) > 1:
            raise InternalError(f"kernel {name}: LANE ranges of different sizes, {sorted(sizes)}")
        self.lanes: int = sizes.pop() if sizes else 1
        self.has_wmma = any(n.op is Ops.WMMA for n in linear)
        self._find_axes()
        self._find_axes()  # again, as a register's axes are known only after its last store
        self._find_splats()
        self._find_deferred()
        self.copied = self._find_copied()
        self.in_memory = {
            s for n in linear if n.op is Ops.WMMA and n.arg.in_memory for s in n.src[:2]
        }  # read by the core, not here
        self.safepoints = safepoints(linear, self._count_values) if builder.has_safepoints else {}
        self.streamed = (
            streamed_loads(linear, self.lanes, builder.target) if builder.has_prefetch else frozenset()
        )

    # --- which node depends on which tile ranges

    def _find_axes(self) -> None:
        axes, simd = self.axes, self.simd
        for node in self.linear:
            node_axes: set[UOp] = set()
            lane = False
            if node.op is Ops.RANGE:
                kind = node.arg.kind
                if kind is AxisKind.LANE:
                    lane = True
                elif kind in (AxisKind.UPCAST, AxisKind.UNROLL):
                    node_axes.add(node)
            elif node.op is Ops.DEFINE_REG:
                axes.setdefault(node, ())
                simd.setdefault(node, False)
                continue
            elif node.op is Ops.END:
                pass
            else:
                for s in node.src:
                    node_axes.update(axes[s])
                    lane = lane or simd[s]
                if node.op is Ops.REDUCE:
                    node_axes.difference_update(node.src[1:])
                    lane = lane and not any(r.arg.kind is AxisKind.LANE for r in node.src[1:])
                elif node.op is Ops.WMMA:
                    node_axes.difference_update(node.src[3 + len(node.arg.c.elements) :])
                elif node.op is Ops.INDEX and node.arg is not None:
                    for r, _ in node.arg.steps:
                        if r.arg.kind is AxisKind.LANE:
                            lane = True
                        else:
                            node_axes.add(r)
                elif node.op is Ops.STORE and pointer_of(node.src[0]).op is Ops.DEFINE_REG:
                    reg = pointer_of(node.src[0])
                    axes[reg] = tuple(sorted(node_axes.union(axes[reg]), key=by_id))
                    simd[reg] = simd[reg] or lane
                elif node.op is Ops.AFTER:
                    node_axes, lane = set(axes[node.src[0]]), simd[node.src[0]]
            axes[node] = tuple(sorted(node_axes, key=by_id))
            simd[node] = lane

    def _count_values(self, node: UOp) -> int:
        """The number of values, scalars or SIMD values, that are written for a node."""
        operand = node.src[0] if node.op is Ops.REDUCE else node
        return prod(r.src[0].arg for r in self.axes[operand]) if node.op in _COMPUTING else 0

    def _find_splats(self) -> None:
        for node in self.linear:
            if node.op in GroupOp.Elementwise and self.simd[node]:
                used = node.src
            elif node.op is Ops.LOAD and self.simd[node]:
                used = node.src[1:]
            elif node.op is Ops.STORE:
                pointer = pointer_of(node.src[0])
                simd = self.simd[pointer if pointer.op is Ops.DEFINE_REG else node.src[0]]
                used = node.src[1:] if simd else ()
            else:
                continue
            self.needs_splat.update(s for s in used if not self.simd[s])

    def _find_deferred(self) -> None:
        """Find loads and operations with one reader. The reader is an operation of the same block, and reads
        each value more than once or is deferred itself."""
        block, blocks = 0, {}
        readers: dict[UOp, list[UOp]] = {}
        for node in self.linear:
            if node.op is Ops.BARRIER:
                block += 1
            elif node.op is Ops.STORE:
                block += pointer_of(node.src[0]).op is Ops.PARAM
            elif node.op is Ops.END or (node.op is Ops.RANGE and not is_tile(node)):
                block += 1
            blocks[node] = block
            for s in node.src:
                readers.setdefault(s, []).append(node)
        for node in reversed(self.linear):
            if node.op is Ops.LOAD:
                index = node.src[0]
                if len(index.src) > 2 or pointer_of(index).op is not Ops.PARAM or self._across(index):
                    continue
            elif node.op not in GroupOp.Elementwise:
                continue
            if len(readers.get(node, [])) != 1:
                continue
            (reader,) = readers[node]
            if reader.op not in GroupOp.Elementwise:
                continue
            if blocks[node] == blocks[reader] and (
                reader in self.deferred or set(self.axes[node]) < set(self.axes[reader])
            ):
                self.deferred.add(node)

    def _find_copied(self) -> set[UOp]:
        """Find the loads whose elements a store puts as they are into one of several buffers of a workgroup:
        they may be copied without a way through registers."""
        readers: dict[UOp, list[UOp]] = {}
        for node in self.linear:
            for s in node.src:
                readers.setdefault(s, []).append(node)
        return {
            store.src[1]
            for store in self.linear
            if store.op is Ops.STORE
            and store.src[1].op is Ops.LOAD
            and (memory := pointer_of(store.src[0])).op is Ops.PARAM
            and memory.arg.depth > 1
            and len(store.src[1].src[0].src) == 2
            and (source := pointer_of(store.src[1].src[0])).op is Ops.PARAM
            and source.arg.space is AddrSpace.GLOBAL
            and len(readers[store.src[1]]) == 1
            and self._lanes_copied(store) is not None
        }

    def _lanes_copied(self, store: UOp) -> int | None:
        """How many neighbours a SIMD value copies; 1 for a scalar, None for lanes that are no neighbours."""
        indices = (store.src[0], store.src[1].src[0])
        if not any(self.simd[index] for index in indices):
            return 1
        return self.lanes if all(self._lane_step(index) == 1 for index in indices) else None

    def _project(self, outer: Axes, inner: Axes) -> list[int]:
        """For each coordinate over `outer`, the position of the value over `inner`."""
        key = (outer, inner)
        positions = self.projections.get(key)
        if positions is None:
            sizes = [r.src[0].arg for r in inner]
            places = [outer.index(r) for r in inner]
            positions = []
            for coordinate in coordinates(outer):
                position = 0
                for size, place in zip(sizes, places, strict=True):
                    position = position * size + coordinate[place]
                positions.append(position)
            self.projections[key] = positions
        return positions

    def _value(self, node: UOp, position: int, simd: bool) -> Value:
        """A value of `node`'s tile. `simd`: as a SIMD value, which is the splat of a scalar."""
        if node in self.deferred and self.values[node][position] is None:
            value = self.values[node][position] = self.makers[node](position)
            if node in self.needs_splat:
                self.splats[node][position] = self.builder.splat(value, node.dtype, self.lanes)
        return (self.splats if simd and not self.simd[node] else self.values)[node][position]

    def _make(self, node: UOp, count: int, maker: Callable[[int], Value], order: Iterable[int]) -> None:
        """Write the `count` values of a node's tile: now and in this order or, for a deferred node, each when
        it is first needed."""
        self.values[node] = [None] * count
        if node in self.deferred:
            self.makers[node] = maker
            self.splats[node] = [None] * count
        else:
            for position in order:
                self.values[node][position] = maker(position)

    # --- emission

    def run(self) -> Any:
        params = parameters(self.linear)
        variables = sorted((n for n in self.linear if n.op is Ops.DEFINE_VAR), key=lambda n: n.arg)
        pointers, numbers = self.builder.begin(
            self.name, [p.dtype for p in params], [v.arg.name for v in variables]
        )
        for node, pointer in zip(params, pointers, strict=True):
            self.values[node] = [pointer]
        for node, number in zip(variables, numbers, strict=True):
            self.values[node] = [number]
        for node in self.linear:
            self._emit(node)
        return self.builder.finish()

    def _emit(self, node: UOp) -> None:
        """Emit a node. A scalar that a SIMD operation uses is splat here, outside of the loops that
        follow."""
        self._emit_values(node)
        if node in self.needs_splat and node not in self.deferred:
            b, lanes = self.builder, self.lanes
            if node.op is Ops.CONST:
                self.splats[node] = [b.const(node.dtype, node.arg, lanes)]
            else:
                self.splats[node] = [b.splat(v, node.dtype, lanes) for v in self.values[node]]

    def _emit_values(self, node: UOp) -> None:
        b, op = self.builder, node.op
        if op is Ops.CONST:
            self.values[node] = [b.const(node.dtype, node.arg, 1)]
        elif op in GroupOp.Elementwise:
            self._emit_elementwise(node)
        elif op is Ops.LOAD:
            self._emit_load(node)
        elif op is Ops.STORE:
            self._emit_store(node)
        elif op is Ops.RANGE:
            self._emit_range(node)
        elif op is Ops.END:
            b.end_loop()
        elif op is Ops.DEFINE_REG:
            lanes = self.lanes if self.simd[node] else 1
            self.values[node] = [b.register(node.dtype, lanes) for _ in coordinates(self.axes[node])]
        elif op is Ops.REDUCE:
            self._emit_reduce(node)
        elif op is Ops.WMMA:
            self._emit_wmma(node)
        elif op is Ops.SHUFFLE_XOR:
            lanes = self.lanes if self.simd[node] else 1
            values = self.values[node.src[0]]
            self.values[node] = [b.shuffle_xor(v, node.dtype, node.arg, lanes) for v in values]
        elif op is Ops.SPECIAL:
            self.values[node] = [
                b.special(_SPECIALS[node.arg.kind], node.arg.axis, self.values[node.src[0]][0])
            ]
        elif op is Ops.BARRIER:
            b.barrier(None if node.arg is None else node.arg.groups)
        elif op is Ops.COMMIT:
            b.commit()
        elif op is Ops.PARAM and node.arg.space is AddrSpace.SHARED:
            name, memory = f"shared{node.arg.slot}", node.arg
            self.values[node] = [b.shared(name, node.dtype, memory.size, memory.swizzled)]
        elif op in (Ops.AFTER, Ops.INDEX, Ops.SINK, Ops.PARAM, Ops.DEFINE_VAR):
            pass
        else:
            raise InternalError(f"kernel {self.name}: {op} is no op of a linear kernel")

    def _emit_range(self, node: UOp) -> None:
        b = self.builder
        if node.arg.kind is AxisKind.LANE:
            self.values[node] = [b.const_lanes(dtypes.index, range(self.lanes))]
        elif node.arg.kind in (AxisKind.UPCAST, AxisKind.UNROLL):
            self.values[node] = [b.const(dtypes.index, i, 1) for i in range(node.src[0].arg)]
        else:
            counter = b.loop(self.values[node.src[0]][0])
            self.values[node] = [counter]
            if node in self.safepoints:
                b.safepoint(counter, self.safepoints[node])

    def _emit_elementwise(self, node: UOp) -> None:
        b, op, axes, simd = self.builder, node.op, self.axes[node], self.simd[node]
        lanes = self.lanes if simd else 1
        operand = node.src[-1].dtype
        sources = [(s, self._project(axes, self.axes[s])) for s in node.src]

        def make(k: int) -> Value:
            args = [self._value(s, positions[k], simd) for s, positions in sources]
            if op is Ops.CAST:
                return b.cast(args[0], operand, node.dtype, lanes)
            if op is Ops.BITCAST:
                return b.bitcast(args[0], operand, node.dtype, lanes)
            if op is Ops.DOT:
                return b.dot(node.arg, args[0], args[1], args[2], lanes)
            return b.alu(op, operand, args, lanes)

        count = len(sources[0][1])
        # All uses of one value of the largest deferred source come before the next value is written.
        deferred = [positions for s, positions in sources if s in self.deferred]
        largest = max(deferred, key=max, default=None)
        order = range(count) if largest is None else sorted(range(count), key=largest.__getitem__)
        self._make(node, count, make, order)

    def _emit_reduce(self, node: UOp) -> None:
        """Combine a tile over some of its axes: elements pairwise, then the lanes."""
        b, value, op = self.builder, node.src[0], node.arg
        axes, inner = self.axes[node], self.axes[value]
        lanes = self.lanes if self.simd[value] else 1
        repeats = 1  # of each value, by reduced ranges that it does not depend on
        for r in node.src[1:]:
            if not self.simd[value] if r.arg.kind is AxisKind.LANE else r not in inner:
                repeats *= r.src[0].arg
        groups: dict[int, list[Value]] = {}
        for position, k in enumerate(self._project(inner, axes)):
            groups.setdefault(k, []).append(self.values[value][position])
        out = []
        for k in range(len(groups)):
            parts = groups[k]
            while len(parts) > 1:
                half = len(parts) // 2
                pairs = [b.alu(op, node.dtype, [parts[i], parts[i + half]], lanes) for i in range(half)]
                parts = pairs + parts[2 * half :]
            total = parts[0]
            if self.simd[value] and not self.simd[node]:
                total = b.reduce(op, total, node.dtype, lanes)
            out.append(self._repeat(op, total, node.dtype, repeats, self.lanes if self.simd[node] else 1))
        self.values[node] = out

    def _emit_wmma(self, node: UOp) -> None:
        """Write a call for each coordinate of the node along the axes that are not its core's elements."""
        core, (a, b, c), ranges = node.arg, node.src[:3], node.src[3:]
        if core.in_memory:
            self._emit_wmma_in_memory(node)
            return
        n_c, n_a = len(core.c.elements), len(core.a.elements)
        parts = ((a, ranges[n_c : n_c + n_a]), (b, ranges[n_c + n_a :]), (c, ranges[:n_c]))
        elements_of_c = frozenset(ranges[:n_c])
        outer = tuple([r for r in self.axes[node] if r not in elements_of_c])

        def places(source: UOp, elements: Sequence[UOp]) -> list[list[int]]:
            """For each coordinate over `outer`, the positions of the source's elements among its values."""
            order = tuple(reversed(elements))  # the first element is the fastest
            flat = self._project((*outer, *order), self.axes[source])
            count = prod(r.src[0].arg for r in order)
            return [flat[i : i + count] for i in range(0, len(flat), count)]

        out: list[Value] = [None] * prod(r.src[0].arg for r in self.axes[node])
        fragments = [(source, places(source, elements)) for source, elements in parts]
        for k, targets in enumerate(places(node, ranges[:n_c])):
            values = ([self._value(source, p, False) for p in rows[k]] for source, rows in fragments)
            for p, value in zip(targets, self.builder.wmma(core, *values), strict=True):
                out[p] = value
        self.values[node] = out

    def _emit_wmma_in_memory(self, node: UOp) -> None:
        """Write a call for each coordinate of the node along the axes that are not its core's elements."""
        core, ranges = node.arg, node.src[3:]
        n_c, n_a = len(core.c.elements), len(core.a.elements)
        own = tuple(reversed(ranges[:n_c]))  # the first element is the fastest
        outer = tuple([r for r in self.axes[node] if r not in own])
        operands = [
            self._operands(source, elements, outer)
            for source, elements in zip(
                node.src[:2], (ranges[n_c : n_c + n_a], ranges[n_c + n_a :]), strict=True
            )
        ]
        count = prod(r.src[0].arg for r in own)
        totals = self._project((*outer, *own), self.axes[node.src[2]])
        places = self._project((*outer, *own), self.axes[node])
        out: list[Value] = [None] * len(places)
        for k, (a, b) in enumerate(zip(*operands, strict=True)):
            each = range(k * count, (k + 1) * count)
            c = [self._value(node.src[2], totals[i], False) for i in each]
            for i, value in zip(each, self.builder.wmma_in_memory(core, a, b, c), strict=True):
                out[places[i]] = value
        self.values[node] = out

    def _operands(self, load: UOp, elements: Sequence[UOp], outer: Axes) -> list[Operand]:
        """A tensor core's operand in memory for each coordinate over `outer`."""
        index = load.src[0]
        steps = dict((index.arg or _NO_STEPS).steps)
        step = steps.get(elements[2], 0) if len(elements) > 2 else 0
        return [
            Operand(address, steps[elements[0]] == 1, step)
            for address in self._addresses(index, outer, frozenset(elements))
        ]

    def _repeat(self, op: Ops, value: Value, dtype: DType, repeats: int, lanes: int) -> Value:
        """Combine `repeats` copies of a value, by doubling."""
        b, out = self.builder, None
        while True:
            if repeats & 1:
                out = value if out is None else b.alu(op, dtype, [out, value], lanes)
            repeats >>= 1
            if not repeats:
                return out
            value = b.alu(op, dtype, [value, value], lanes)

    # --- memory

    def _memory(self, index: UOp) -> Pointer:
        """The memory under an INDEX."""
        return self.values[pointer_of(index)][0]

    def _addresses(self, index: UOp, axes: Axes, first: frozenset[UOp] = frozenset()) -> list[Address]:
        """The address for each coordinate over `axes`, of the first element along the axes `first`. Its index
        is a scalar, or SIMD if it is not linear."""
        memory, base = self._memory(index), index.src[1]
        steps = index.arg or _NO_STEPS
        positions = self._project(axes, self.axes[base])
        sizes = [
            (axes.index(r), step)
            for r, step in steps.steps
            if r.arg.kind is not AxisKind.LANE and r not in first
        ]
        out: list[Address] = []
        for k, coordinate in enumerate(coordinates(axes)):
            offset = steps.offset + sum(coordinate[i] * step for i, step in sizes)
            if base.op is Ops.CONST:
                out.append(Address(memory, None, offset + base.arg))
            else:
                out.append(Address(memory, self.values[base][positions[k]], offset))
        return out

    def _lane_step(self, index: UOp) -> int | None:
        """The distance of neighbouring lanes in memory; None when it is not constant."""
        if self.simd[index.src[1]]:
            return None
        return sum(step for r, step in (index.arg or _NO_STEPS).steps if r.arg.kind is AxisKind.LANE)

    def _places(self, index: UOp, axes: Axes) -> list[Place] | None:
        """The place for each coordinate over `axes`. None when the differences between lanes are not
        constant."""
        step, lanes = self._lane_step(index), range(self.lanes)
        if step is not None:
            return [(a, [a.offset + step * i for i in lanes]) for a in self._addresses(index, axes)]
        base: UOp | None = None
        constants = index.src[1]
        if constants.op is Ops.ADD and not self.simd[constants.src[0]]:  # as the pass split-indices leaves it
            base, constants = constants.src
        offsets = tile_constants(constants, axes, self.lanes)
        if offsets is None:
            return None
        memory, bases = self._memory(index), [None] * len(offsets)
        if base is not None:
            bases = [self.values[base][k] for k in self._project(axes, self.axes[base])]
        return [(Address(memory, b, row[0]), row) for b, row in zip(bases, offsets, strict=True)]

    def _emit_load(self, node: UOp) -> None:
        index = node.src[0]
        pointer = pointer_of(index)
        if pointer.op is Ops.DEFINE_REG:
            self.values[node] = [self.builder.get(r) for r in self.values[pointer]]
            self.axes[node], self.simd[node] = self.axes[pointer], self.simd[pointer]
            return
        if node in self.copied or node in self.in_memory:
            return
        axes, simd = self.axes[node], self.simd[node]
        gate = index.src[2] if len(index.src) > 2 else None
        in_runs = self.has_wmma or (pointer.arg.space is AddrSpace.SHARED and pointer.arg.depth > 1)
        if in_runs and gate is None and not simd:
            self.deferred.discard(node)
            self.values[node] = load_runs(self.builder, node.dtype, self._addresses(index, axes))
            return
        if simd and gate is None and (across := self._across(index)) is not None:
            self.values[node] = self._load_transposed(node, axes, across)
            return
        places: list[Place] | None
        if self.simd[index]:
            places = self._places(index, axes)
        else:
            places = [(a, [a.offset]) for a in self._addresses(index, axes)]
        if node in self.streamed:
            self._prefetch(index, axes)
        addresses = self._addresses(index, axes) if places is None else []
        gates = self._project(axes, self.axes[gate]) if gate is not None else [0] * len(places or addresses)
        others = self._project(axes, self.axes[node.src[1]]) if gate is not None else None
        # By condition and base: the offsets of all loads, and an index that may be read in any case.
        readable: dict[tuple[int, Value | None], list[int]] = {}
        for position, (first, offsets) in zip(gates, places or (), strict=False):
            readable.setdefault((position, first.base), []).extend(offsets)
        safe: dict[tuple[int, Value | None], Value] = {}
        blocks: Blocks = {}

        def make(k: int) -> Value:
            if gate is None:
                if places is None:
                    return self._load_lanes(node, self._lanes(addresses[k]))
                return self._load(node, places[k], readable[0, places[k][0].base], blocks, simd)
            assert others is not None
            other = self._value(node.src[1], others[k], simd)
            predicate = self.values[gate][gates[k]]
            if places is None:
                return self._load_gated_lanes(node, self._lanes(addresses[k]), gate, predicate, other)
            if self.simd[gate]:
                return self._load_masked(node, places[k], gate, predicate, other)
            first, offsets = places[k]
            key = (gates[k], first.base)
            all_offsets = readable[key]
            if max(all_offsets) - min(all_offsets) >= pointer.arg.size:  # the condition never holds
                return other
            if key not in safe:
                safe[key] = self._safe(predicate, first.base, min(all_offsets))
            first = first.moved(safe[key])
            loaded = self._load(node, (first, offsets), all_offsets, blocks, simd)
            b = self.builder
            if simd:
                predicate = b.splat(predicate, dtypes.bool, self.lanes)
            return b.alu(Ops.WHERE, node.dtype, [predicate, loaded, other], self.lanes if simd else 1)

        self._make(node, len(gates), make, range(len(gates)))

    def _prefetch(self, index: UOp, axes: Axes) -> None:
        """Fetch what the loads of a tile read some rounds later, once for each line."""
        itemsize, asked = index.dtype.itemsize, set()
        for address in self._addresses(index, axes):
            line = (address.base, address.offset * itemsize // LINE)
            if line not in asked:
                asked.add(line)
                self.builder.prefetch(address.plus(AHEAD // itemsize))

    def _across(self, index: UOp) -> UOp | None:
        """For a load whose lanes are not consecutive: a tile axis along which its elements are, and which is
        as long as a SIMD value. The load can go along that axis, with a transpose. None if there is none."""
        if self.lanes < 4 or self._lane_step(index) in (None, 0, 1):
            return None
        for r, step in (index.arg or _NO_STEPS).steps:
            if step == 1 and r.arg.kind is not AxisKind.LANE and r.src[0].arg == self.lanes:
                return r
        return None

    def _load_transposed(self, node: UOp, axes: Axes, across: UOp) -> list[Value]:
        b, index, lanes = self.builder, node.src[0], self.lanes
        step = self._lane_step(index)
        assert step is not None
        stride = prod(r.src[0].arg for r in axes[axes.index(across) + 1 :])
        addresses = self._addresses(index, axes)
        out: list[Value] = [None] * len(addresses)
        for k, coordinate in enumerate(coordinates(axes)):
            if coordinate[axes.index(across)]:
                continue
            rows = [b.load(addresses[k].plus(step * i), node.dtype, lanes) for i in range(lanes)]
            width = lanes
            while width > 1:  # interleave the first half of the rows with the second
                pairs = [
                    b.interleave(rows[i], rows[i + lanes // 2], node.dtype, lanes) for i in range(lanes // 2)
                ]
                rows = [v for pair in pairs for v in pair]
                width //= 2
            for u, row in enumerate(rows):
                out[k + u * stride] = row
        return out

    def _load(self, node: UOp, place: Place, readable: Sequence[int], blocks: Blocks, simd: bool) -> Value:
        """One value of a load. `readable`: the offsets of all loads at the same index; these loads share
        `blocks`."""
        b, dtype, lanes = self.builder, node.dtype, self.lanes
        first, offsets = place
        if not simd or len(set(offsets)) == 1:
            value = b.load(first, dtype, 1)
            return b.splat(value, dtype, lanes) if simd else value
        if are_consecutive(offsets):
            return b.load(first, dtype, lanes)
        size = b.block_size(dtype, lanes)
        if not strided.pays(offsets, size):
            return self._load_lanes(node, _each(place))
        plan = strided.plan(offsets, size, min(readable), max(readable))
        starts = _each((first, plan.starts))
        for start in starts:
            if start not in blocks:
                blocks[start] = b.load_block(start, dtype, lanes)
        return b.permute([blocks[start] for start in starts], plan.positions, dtype)

    def _load_lanes(self, node: UOp, addresses: Sequence[Address]) -> Value:
        b, dtype = self.builder, node.dtype
        return b.pack([b.load(address, dtype, 1) for address in addresses], dtype)

    def _lanes(self, address: Address) -> list[Address]:
        """The address of each lane of one whose index is a SIMD value."""
        extract, lanes = self.builder.extract, self.lanes
        return [address.moved(extract(address.base, dtypes.index, i, lanes)) for i in range(lanes)]

    def _load_masked(self, node: UOp, place: Place, gate: UOp, predicate: Value, other: Value) -> Value:
        """A SIMD value of a load with a condition for each lane."""
        first, offsets = place
        if are_consecutive(offsets):
            return self.builder.load_masked(first, node.dtype, self.lanes, predicate, other)
        addresses = [first] * self.lanes if len(offsets) == 1 else _each(place)
        return self._load_gated_lanes(node, addresses, gate, predicate, other)

    def _load_gated_lanes(
        self, node: UOp, addresses: Sequence[Address], gate: UOp, predicate: Value, other: Value
    ) -> Value:
        b, dtype, lanes = self.builder, node.dtype, self.lanes
        elements = []
        for i, address in enumerate(addresses):
            condition = b.extract(predicate, dtypes.bool, i, lanes) if self.simd[gate] else predicate
            safe = self._safe(condition, address.base, address.offset)
            elements.append(b.load(address.moved(safe), dtype, 1))
        mask = predicate if self.simd[gate] else b.splat(predicate, dtypes.bool, lanes)
        return b.alu(Ops.WHERE, dtype, [mask, b.pack(elements, dtype), other], lanes)

    def _safe(self, predicate: Value, base: Value | None, offset: int) -> Value:
        """The index if the gate holds, else the index for which the address is the buffer's start."""
        b = self.builder
        index = b.const(dtypes.index, 0, 1) if base is None else base
        return b.alu(Ops.WHERE, dtypes.index, [predicate, index, b.const(dtypes.index, -offset, 1)], 1)

    def _store_lanes(self, addresses: Sequence[Address], value: Value, dtype: DType) -> None:
        """Store a SIMD value lane by lane."""
        b = self.builder
        for i, address in enumerate(addresses):
            b.store(address, b.extract(value, dtype, i, self.lanes), dtype, 1)

    def _copy(self, store: UOp, axes: Axes) -> bool:
        """Copy the elements of a store to memory of the workgroup, under its gate. False: the device has no
        such copies of them, and they were loaded instead."""
        b, (index, load) = self.builder, store.src
        targets, sources = self._addresses(index, axes), self._addresses(load.src[0], axes)
        lanes, runs = self._lanes_copied(store), list[tuple[Address, Address, int]]()
        for run in runs_of(targets) if lanes == 1 else [[p] for p in range(len(targets))]:
            first = sources[run[0]]
            together = all(sources[p] == first.plus(i) for i, p in enumerate(run))
            for part in [run] if together else [[p] for p in run]:
                runs.append((targets[part[0]], sources[part[0]], len(part) * (lanes or 1)))
        if not all(b.copies(*run[:2], load.dtype, run[2]) for run in runs):
            self.copied.discard(load)
            self._emit(load)
            return False
        gate = index.src[2] if len(index.src) > 2 else None
        if gate is not None and self.axes[gate]:
            raise InternalError(f"kernel {self.name}: a copy has a condition for each element")
        if gate is not None:
            b.begin_if(self.values[gate][0])
        for target, source, size in runs:
            b.copy(target, source, load.dtype, size)
        if gate is not None:
            b.end_if()
        return True

    def _emit_store(self, node: UOp) -> None:
        b, (index, value) = self.builder, node.src
        pointer = pointer_of(index)
        if pointer.op is Ops.DEFINE_REG:
            axes, simd = self.axes[pointer], self.simd[pointer]
            positions = self._project(axes, self.axes[value])
            for k, register in enumerate(self.values[pointer]):
                b.set(register, self._value(value, positions[k], simd))
            return
        axes = tuple(sorted({*self.axes[index], *self.axes[value]}, key=by_id))
        positions = self._project(axes, self.axes[value])
        simd = self.simd[index]
        places = self._places(index, axes) if simd else None
        gate = index.src[2] if len(index.src) > 2 else None
        gates = self._project(axes, self.axes[gate]) if gate is not None else []
        one_gate = gate is not None and not self.axes[gate]
        if value in self.copied and self._copy(node, axes):
            return
        if gate is not None and self.simd[gate]:
            raise InternalError(f"kernel {self.name}: a store has a condition for each lane")
        if gate is not None and one_gate:
            values = [self._value(value, p, simd) for p in positions]  # written outside of the block
            b.begin_if(self.values[gate][0])
        if (self.has_wmma or (pointer.op is Ops.PARAM and pointer.arg.depth > 1)) and not simd:
            made = values if one_gate else [self._value(value, p, False) for p in positions]
            conditions = None if one_gate or gate is None else [self.values[gate][g] for g in gates]
            store_runs(b, value.dtype, self._addresses(index, axes), made, conditions)
            if one_gate:
                b.end_if()
            return
        for k, address in enumerate(self._addresses(index, axes)):
            stored = values[k] if one_gate else self._value(value, positions[k], simd)
            if gate is not None and not one_gate:
                b.begin_if(self.values[gate][gates[k]])
            if not simd:
                b.store(address, stored, value.dtype, 1)
            elif places is None:
                self._store_lanes(self._lanes(address), stored, value.dtype)
            else:
                first, offsets = places[k]
                if are_consecutive(offsets):
                    b.store(first, stored, value.dtype, self.lanes)
                else:
                    self._store_lanes(_each(places[k]), stored, value.dtype)
            if gate is not None and not one_gate:
                b.end_if()
        if one_gate:
            b.end_if()
