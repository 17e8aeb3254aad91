"""Slow paths: a computation that few arguments need goes behind a branch, which is taken when a tile of
values has one of them.

    SIN(x)  ->  reg = far(x) ? x : SIN(x, NEAR)
                loop (is any x of the tile far?) times:
                    reg = far(x) ? SIN(reg) : reg

    POW(a, e)  ->  reg = a^e as of ordinary arguments
                   loop (is any power of the tile special?) times:
                       reg = special ? a^e : reg

A loop of zero or one rounds is a branch that linear kernels have already. A value depends on its own argument
alone, not on its neighbours in the tile. Compilers call this outlining of cold code.

Where the values of a tile are computed one after the other (on machines with workgroups, where only memory
accesses are vectors), the loop has a round for each value that is far. So its code is that of one value.

                loop (how many x of the tile are far?) times:
                    i = the last of the tile whose reg is far;  reg[i] = SIN(reg[i])

There a power has no branch: its special cases are a few selections, which take less than one.

Runs on kernels whose reductions are registers, before the tile is taken out of the indices.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from operator import mul
from typing import NamedTuple

from polygrad.codegen.lower.transcendental.logarithm import log2_magnitude
from polygrad.codegen.lower.transcendental.power import has_ordinary_power, ordinary_power, special_power
from polygrad.codegen.lower.transcendental.sine import is_far
from polygrad.codegen.opts.tile import is_tile
from polygrad.dtype import dtypes
from polygrad.uop.args import Axis, AxisKind, Magnitude, Reg
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

_FLOATS = frozenset({dtypes.float32, dtypes.float64})


def branch_slow_paths(kernel: UOp, fused: bool, serial: bool = False) -> UOp:
    """The kernel in which every SIN takes the short reduction, and the long one behind a branch, and in which
    special cases of POW are behind one. `fused`: scalars have a fused multiply-add, as SIMD values do.
    `serial`: a tile's values are computed one after the other anyway.

    SIN(x)  ->  reg = far(x) ? x : SIN(x, NEAR);  END(reg = far(x) ? SIN(reg) : reg, RANGE(is any x far?));
    LOAD(reg)
    """
    order = kernel.toposort()
    if not any(_has_slow_path(n, serial) for n in order):
        return kernel
    register = sum(n.op is Ops.DEFINE_REG for n in order)
    axis = 1 + max((n.arg.id[0] for n in order if n.op is Ops.RANGE), default=-1)
    new: dict[UOp, UOp] = {}
    for node in order:
        src = [new[s] for s in node.src]
        if _has_slow_path(node, serial):
            src = [x if x.dtype in _FLOATS else x.cast(dtypes.float32) for x in src]
            branch = _Branch(Reg(register), Axis((axis,), AxisKind.LOOP))
            value = (
                _sin(src[0], branch, fused, serial)
                if node.op is Ops.SIN
                else _power(src[0], src[1], branch, fused)
            )
            new[node] = value.cast(node.dtype)
            register, axis = register + 1, axis + 1
        else:
            new[node] = node.over(tuple(src))
    return new[kernel]


def _has_slow_path(node: UOp, serial: bool) -> bool:
    if node.op is Ops.POW:
        return not serial and has_ordinary_power(*node.src)
    return node.op is Ops.SIN


class _Branch(NamedTuple):
    """The register of a value, and the axis of the loop that is its branch."""

    register: Reg
    axis: Axis

    def value(self, start: UOp, rounds: UOp, slow: Callable[[UOp], UOp]) -> UOp:
        """`start`, or where `rounds` are more than 0, what `slow` makes of it."""
        reg = UOp(Ops.DEFINE_REG, start.dtype, (), self.register)

        def at(*after: UOp) -> UOp:
            pointer = UOp(Ops.AFTER, start.dtype, (reg, *after)) if after else reg
            return UOp(Ops.INDEX, start.dtype, (pointer, UOp.index(0)))

        outer = sorted((r for r in start.ranges if not is_tile(r)), key=lambda r: r.arg)
        first = UOp(Ops.STORE, dtypes.void, (at(*outer), start))
        loop = UOp(Ops.RANGE, dtypes.index, (rounds.cast(dtypes.index),), self.axis)
        last = UOp(Ops.STORE, dtypes.void, (at(), slow(UOp(Ops.LOAD, start.dtype, (at(first, loop),)))))
        return UOp(Ops.LOAD, start.dtype, (at(UOp(Ops.END, dtypes.void, (last, loop))),))


def _tile(x: UOp) -> list[UOp]:
    return sorted((r for r in x.ranges if is_tile(r)), key=lambda r: r.arg)


def _any(condition: UOp) -> UOp:
    """Whether a condition holds anywhere in the tile."""
    tile = _tile(condition)
    return UOp(Ops.REDUCE, dtypes.bool, (condition, *tile), Ops.MAX) if tile else condition


def _power(a: UOp, e: UOp, branch: _Branch, fused: bool) -> UOp:
    """a^e. Both paths share the logarithm."""
    log = log2_magnitude(a, fused)
    power, ordinary = ordinary_power(a, e, log, fused)

    def special(value: UOp) -> UOp:
        # operands that depend on `value`, so that nothing else is computed outside of the branch
        base, exponent = (x if x.is_const else ordinary.where(value, x) for x in (a, e))
        return ordinary.where(value, special_power(base, exponent, log, fused))

    return branch.value(power, _any(ordinary.logical_not()), special)


def _sin(x: UOp, branch: _Branch, fused: bool, serial: bool) -> UOp:
    far, tile = is_far(x, fused), _tile(x)
    start = far.where(x, UOp(Ops.SIN, x.dtype, (x,), Magnitude.NEAR))
    if serial and tile:
        rounds = UOp(Ops.REDUCE, dtypes.int32, (far.cast(dtypes.int32), *tile), Ops.ADD)
        return branch.value(start, rounds, lambda value: _last_far(value, tile, fused))
    return branch.value(start, _any(far), lambda value: far.where(UOp(Ops.SIN, x.dtype, (value,)), value))


def _last_far(start_value: UOp, tile: list[UOp], fused: bool) -> UOp:
    """A tile of values, with the sine of the last far value in its place."""
    place = UOp.const(dtypes.int32, 1)  # the 1-based place in the tile
    for r, stride in zip(tile, accumulate((r.src[0].arg for r in tile), mul, initial=1), strict=False):
        place = place + r.cast(dtypes.int32) * stride
    none = UOp.const(dtypes.int32, 0)
    far = is_far(start_value, fused).where(place, none)
    is_last = place.eq(UOp(Ops.REDUCE, dtypes.int32, (far, *tile), Ops.MAX))
    argument = is_last.where(start_value, UOp.const(start_value.dtype, 0))
    argument = UOp(Ops.REDUCE, start_value.dtype, (argument, *tile), Ops.ADD)
    return is_last.where(UOp(Ops.SIN, start_value.dtype, (argument,)), start_value)
