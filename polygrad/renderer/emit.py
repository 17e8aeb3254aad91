"""The emitter: walks a linear kernel and drives a Builder.

Each node stands for a tile of values (`tile_axes.py`, `tiles.py`). Here are the walk, loops, constants and
registers. `arithmetic.py`, `matmul.py` and `wmma.py` compute, `loads.py`, `stores.py` and `copies.py` go to
memory.

Knows axes; knows no instruction set.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polygrad.codegen.lower.passes import parameters
from polygrad.dtype import dtypes
from polygrad.errors import InternalError
from polygrad.renderer.access_plan import access_plan
from polygrad.renderer.arithmetic import emit_elementwise, emit_reduce
from polygrad.renderer.builder import Builder
from polygrad.renderer.loads import emit_load
from polygrad.renderer.matmul import emit_matmul
from polygrad.renderer.safepoints import safepoints
from polygrad.renderer.stores import emit_store
from polygrad.renderer.tile_values import coordinates
from polygrad.renderer.tiles import Tiles
from polygrad.renderer.wmma import emit_wmma
from polygrad.uop.args import AddrSpace, AxisKind
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops

# write nothing themselves
_SILENT = frozenset({Ops.AFTER, Ops.INDEX, Ops.SINK, Ops.PARAM, Ops.DEFINE_VAR, Ops.MATMUL})
_OF_WORKGROUPS = frozenset({Ops.SHUFFLE_XOR, Ops.SPECIAL, Ops.BARRIER, Ops.COMMIT})
_SPECIALS = {AxisKind.GLOBAL: "workgroup", AxisKind.LOCAL: "invocation"}


def emit(name: str, linear: Sequence[UOp], builder: Builder) -> Any:
    """The function `name` for a linear kernel, as `builder.finish()` gives it."""
    return _Emitter(name, linear, builder).run()


class _Emitter:
    def __init__(self, name: str, linear: Sequence[UOp], builder: Builder) -> None:
        self.linear = linear
        self.tiles = tiles = Tiles(name, linear, builder)
        self.plan = access_plan(linear, tiles, builder)
        self.safepoints = safepoints(linear, tiles.count_values) if builder.has_safepoints else {}

    def run(self) -> Any:
        self._begin()
        for node in self.linear:
            self._emit(node)
            self.tiles.splat(node)  # outside of the loops that follow
        self.tiles.makers.clear()  # they refer to the tiles, which would wait for Python's collector
        return self.tiles.builder.finish()

    def _begin(self) -> None:
        tiles, params = self.tiles, parameters(self.linear)
        variables = sorted((n for n in self.linear if n.op is Ops.DEFINE_VAR), key=lambda n: n.arg)
        pointers, numbers = tiles.builder.begin(
            tiles.kernel, [p.dtype for p in params], [v.arg.name for v in variables]
        )
        for node, pointer in zip(params, pointers, strict=True):
            tiles.values[node] = [pointer]
        for node, number in zip(variables, numbers, strict=True):
            tiles.values[node] = [number]

    def _emit(self, node: UOp) -> None:
        tiles, op = self.tiles, node.op
        b = tiles.builder
        if op is Ops.CONST:
            tiles.values[node] = [b.const(node.dtype, node.arg, 1)]
        elif op in GroupOp.Elementwise:
            emit_elementwise(tiles, node)
        elif op is Ops.LOAD:
            emit_load(tiles, self.plan, node)
        elif op is Ops.STORE and node.src[1].op is Ops.MATMUL:
            emit_matmul(tiles, node)
        elif op is Ops.STORE:
            emit_store(tiles, self.plan, node)
        elif op is Ops.RANGE:
            self._emit_range(node)
        elif op is Ops.END:
            b.end_loop()
            if self.safepoints.get(node.src[1], 0) > 1:
                b.end_loop()
        elif op is Ops.DEFINE_REG:
            lanes = tiles.lanes if tiles.simd[node] else 1
            tiles.values[node] = [b.register(node.dtype, lanes) for _ in coordinates(tiles.axes[node])]
        elif op is Ops.REDUCE:
            emit_reduce(tiles, node)
        elif op is Ops.WMMA:
            emit_wmma(tiles, node)
        elif op in _OF_WORKGROUPS or (op is Ops.PARAM and node.arg.space is AddrSpace.SHARED):
            self._emit_of_workgroup(node)
        elif op not in _SILENT:
            raise InternalError(f"kernel {tiles.kernel}: {op} is no op of a linear kernel")

    def _emit_of_workgroup(self, node: UOp) -> None:
        """Emit what only machines with workgroups have."""
        tiles, b, op, arg = self.tiles, self.tiles.builder, node.op, node.arg
        if op is Ops.SHUFFLE_XOR:
            lanes = tiles.lanes if tiles.simd[node] else 1
            values = tiles.values[node.src[0]]
            tiles.values[node] = [b.shuffle_xor(v, node.dtype, arg, lanes) for v in values]
        elif op is Ops.SPECIAL:
            tiles.values[node] = [b.special(_SPECIALS[arg.kind], arg.axis, tiles.values[node.src[0]][0])]
        elif op is Ops.BARRIER:
            b.barrier(None if arg is None else arg.groups)
        elif op is Ops.COMMIT:
            b.commit()
        else:
            tiles.values[node] = [b.shared(f"shared{arg.slot}", node.dtype, arg.size, arg.swizzled)]

    def _emit_range(self, node: UOp) -> None:
        tiles, b = self.tiles, self.tiles.builder
        if node.arg.kind is AxisKind.LANE:
            tiles.values[node] = [b.const_lanes(dtypes.index, range(tiles.lanes))]
        elif node.arg.kind in (AxisKind.UPCAST, AxisKind.UNROLL):
            tiles.values[node] = [b.const(dtypes.index, i, 1) for i in range(node.src[0].arg)]
        else:
            tiles.values[node] = [self._open_loop(node.src[0], self.safepoints.get(node, 0))]

    def _open_loop(self, size: UOp, interval: int) -> Any:
        """Open a loop of `size` rounds, which has a safepoint every `interval` rounds, if not 0; its counter.

        for i < 100:            for block < 7:
            body          ->        return if asked to stop         for an interval of 16
                                    for round < min(100 - 16 * block, 16):
                                        body, with i = 16 * block + round
        """
        b, rounds = self.tiles.builder, self.tiles.values[size][0]
        if interval <= 1:
            counter = b.loop(rounds)
            if interval:
                b.safepoint()
            return counter

        def const(value: int) -> Any:
            return b.const(dtypes.index, value, 1)

        def alu(op: Ops, *operands: Any) -> Any:
            return b.alu(op, dtypes.index, operands, 1)

        shift, block = const(interval.bit_length() - 1), const(interval)
        if size.is_const:
            blocks = const(-(-size.arg // interval))
        else:
            blocks = alu(Ops.SHR, alu(Ops.ADD, rounds, const(interval - 1)), shift)
        start = alu(Ops.SHL, b.loop(blocks), shift)
        b.safepoint()
        if not size.is_const or size.arg % interval:
            remaining = alu(Ops.SUB, rounds, start)
            block = alu(Ops.WHERE, alu(Ops.CMPLT, remaining, block), remaining, block)
        return alu(Ops.ADD, start, b.loop(block))
