"""Slow paths: a computation that few arguments need goes behind a branch, which is taken when a tile of
values has one of them.

    SIN(x)  ->  reg = far(x) ? x : SIN(x, NEAR)
                loop (is any x of the tile far?) times:
                    reg = far(x) ? SIN(reg) : reg

A loop of zero or one rounds is a branch that linear kernels have already. A value depends on its own argument
alone, not on its neighbours in the tile. Compilers call this outlining of cold code.

Where the values of a tile are computed one after the other (on machines with workgroups, where only memory
accesses are vectors), the loop has a round for each value that is far. So its code is that of one value.

                loop (how many x of the tile are far?) times:
                    i = the last of the tile whose reg is far;  reg[i] = SIN(reg[i])

Runs on kernels whose reductions are registers, before the tile is taken out of the indices.
"""

from __future__ import annotations

from itertools import accumulate
from operator import mul

from polygrad.codegen.lower import transcendental
from polygrad.codegen.opts.tile import is_tile
from polygrad.dtype import dtypes
from polygrad.uop.args import Axis, AxisKind, Magnitude, Reg
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

_FLOATS = frozenset({dtypes.float32, dtypes.float64})


def branch_slow_paths(kernel: UOp, fused: bool, serial: bool = False) -> UOp:
    """The kernel in which every SIN takes the short reduction, and the long one behind a branch. `fused`:
    scalars have a fused multiply-add, as SIMD values do. `serial`: a tile's values are computed one after the
    other anyway.

    SIN(x)  ->  reg = far(x) ? x : SIN(x, NEAR);  END(reg = far(x) ? SIN(reg) : reg, RANGE(is any x far?));
    LOAD(reg)
    """
    order = kernel.toposort()
    if not any(n.op is Ops.SIN for n in order):
        return kernel
    register = sum(n.op is Ops.DEFINE_REG for n in order)
    axis = 1 + max((n.arg.id[0] for n in order if n.op is Ops.RANGE), default=-1)
    new: dict[UOp, UOp] = {}
    for node in order:
        src = tuple([new[s] for s in node.src])
        if node.op is Ops.SIN:
            x = src[0] if node.dtype in _FLOATS else src[0].cast(dtypes.float32)
            sine = _sin(x, Reg(register), Axis((axis,), AxisKind.LOOP), fused, serial)
            new[node] = sine.cast(node.dtype)
            register, axis = register + 1, axis + 1
        else:
            new[node] = node.over(src)
    return new[kernel]


def _sin(x: UOp, number: Reg, axis: Axis, fused: bool, serial: bool) -> UOp:
    dtype, far = x.dtype, transcendental.is_far(x, fused)
    outer = sorted((r for r in x.ranges if not is_tile(r)), key=lambda r: r.arg)
    tile = sorted((r for r in x.ranges if is_tile(r)), key=lambda r: r.arg)
    reg = UOp(Ops.DEFINE_REG, dtype, (), number)

    def at(*after: UOp) -> UOp:
        pointer = UOp(Ops.AFTER, dtype, (reg, *after)) if after else reg
        return UOp(Ops.INDEX, dtype, (pointer, UOp.index(0)))

    near = UOp(Ops.SIN, dtype, (x,), Magnitude.NEAR)
    start = UOp(Ops.STORE, dtypes.void, (at(*outer), far.where(x, near)))
    if serial and tile:
        rounds = UOp(Ops.REDUCE, dtypes.int32, (far.cast(dtypes.int32), *tile), Ops.ADD)
    else:
        rounds = UOp(Ops.REDUCE, dtypes.bool, (far, *tile), Ops.MAX) if tile else far
    branch = UOp(Ops.RANGE, dtypes.index, (rounds.cast(dtypes.index),), axis)
    start_value = UOp(Ops.LOAD, dtype, (at(start, branch),))
    if serial and tile:
        value = _last_far(start_value, tile, fused)
    else:
        value = far.where(UOp(Ops.SIN, dtype, (start_value,)), start_value)
    slow = UOp(Ops.STORE, dtypes.void, (at(), value))
    return UOp(Ops.LOAD, dtype, (at(UOp(Ops.END, dtypes.void, (slow, branch))),))


def _last_far(start_value: UOp, tile: list[UOp], fused: bool) -> UOp:
    """A tile of values, with the sine of the last far value in its place."""
    place = UOp.const(dtypes.int32, 1)  # the 1-based place in the tile
    for r, stride in zip(tile, accumulate((r.src[0].arg for r in tile), mul, initial=1), strict=False):
        place = place + r.cast(dtypes.int32) * stride
    none = UOp.const(dtypes.int32, 0)
    far = transcendental.is_far(start_value, fused).where(place, none)
    is_last = place.eq(UOp(Ops.REDUCE, dtypes.int32, (far, *tile), Ops.MAX))
    argument = is_last.where(start_value, UOp.const(start_value.dtype, 0))
    argument = UOp(Ops.REDUCE, start_value.dtype, (argument, *tile), Ops.ADD)
    return is_last.where(UOp(Ops.SIN, start_value.dtype, (argument,)), start_value)
