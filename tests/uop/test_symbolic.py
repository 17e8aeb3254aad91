"""Each rule of the algebra: cases that fire, and cases that must not."""

from __future__ import annotations

import math

import pytest

from polygrad.dtype import dtypes
from polygrad.uop.args import Param
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.path_conditions import simplify_under
from polygrad.uop.printer import infix
from polygrad.uop.symbolic import simplify

R = [UOp.range(size, i) for i, size in enumerate((4, 5, 6, 24))]
r0, r1, r2, r3 = R
n = UOp.variable("n", 1, 10)
rn = UOp.range(n, 9)


def load(dtype, slot=0):  # type: ignore[no-untyped-def]
    pointer = UOp(Ops.PARAM, dtype, (), Param(slot, 1))
    return UOp(Ops.LOAD, dtype, (UOp(Ops.INDEX, dtype, (pointer, UOp.index(0))),))


a, b = load(dtypes.bool), load(dtypes.bool, 1)
f, g = load(dtypes.float32), load(dtypes.float32, 1)
h = load(dtypes.float16)
i, j = load(dtypes.int32), load(dtypes.int32, 1)
u = load(dtypes.uint8)
NAMES = {a: "a", b: "b", f: "f", g: "g", h: "h", i: "i", j: "j", u: "u"}


def i32(x: UOp) -> UOp:
    return x.cast(dtypes.int32)


def show(x: UOp) -> str:
    return infix(x, NAMES)


FIRES = [
    # constants
    (lambda: UOp.index(7) // -2, "-4"),
    (lambda: UOp.index(7) % 0, "0"),
    (lambda: UOp.const(dtypes.int8, 100) + 100, "-56"),
    (lambda: UOp.const(dtypes.float32, 0.1) + 0.2, "0.30000001192092896"),
    (lambda: UOp.const(dtypes.float16, 60000.0) * 2, "inf"),
    (lambda: UOp.const(dtypes.float32, -1.5).cast(dtypes.int32), "-1"),
    (lambda: UOp.const(dtypes.float32, math.nan).cast(dtypes.int8), "0"),
    (lambda: UOp.const(dtypes.float32, 1.0).bitcast(dtypes.int32), "1065353216"),
    (lambda: 3 + r0, "r0+3"),
    (lambda: a.where(UOp.index(1), 0).ne(0), "a"),
    (lambda: a.where(UOp.index(1), 3) * 2 + 1, "(a ? 3 : 7)"),
    (lambda: (a.where(UOp.index(1), 3)).cast(dtypes.float32), "(a ? 1.0 : 3.0)"),
    # sums
    (lambda: r0 + 0, "r0"),
    (lambda: f + 0.0, "f"),
    (lambda: f + UOp.const(dtypes.float32, -0.0), "f"),
    (lambda: (r0 + 1) + 2, "r0+3"),
    (lambda: i + 1 + 2, "i+3"),
    (lambda: (r0 + 1) + r1, "r0+r1+1"),
    (lambda: r0 + (r1 + r2), "r0+r1+r2"),
    (lambda: r0 * 2 + r0 * 3, "r0*5"),
    (lambda: r0 * 2 + r1 + r0 * -2, "r1"),
    (lambda: r1 + r0 + r0 * -1, "r1"),
    (lambda: r0 + r1 + r0, "r0*2+r1"),
    (lambda: f + f, "f*2.0"),
    (lambda: i * 3 + i * 4, "i*7"),
    (lambda: i * 3 + i, "i*4"),
    (lambda: (r3 % 5) + (r3 // 5) * 5, "r3"),
    (lambda: (r3 // 5) * 10 + (r3 % 5) * 2, "r3*2"),
    (lambda: (r3 // 2 % 3) * 2 + r3 % 2, "r3%6"),
    (lambda: (r3 * 7 + r2) % 5 + (r3 * 7 + r2) // 5 * 5, "r3*7+r2"),
    (lambda: (r3 * 2 + r2 + 1) % 5 + (r3 * 7 + r2 + 1) // 5 * 5, "r3*7+r2+1"),
    (lambda: r3 + (r3 // 5) * -5, "r3%5"),
    # products
    (lambda: r0 * 1, "r0"),
    (lambda: r0 * 0, "0"),
    (lambda: i * 2 * 3, "i*6"),
    (lambda: f * -1.0 * 2.0, "f*(-2.0)"),
    (lambda: f * 3.0 * -1.0, "f*(-3.0)"),
    (lambda: (r0 + r1 + 1) * 3, "r0*3+r1*3+3"),
    (lambda: (r0 * 3) * n, "r0*n*3"),
    (lambda: (f * -1.0).alu(Ops.RECIPROCAL), "reciprocal(f)*(-1.0)"),
    (lambda: UOp(Ops.NEG, dtypes.float32, (UOp(Ops.NEG, dtypes.float32, (f,)),)), "f"),
    (lambda: UOp(Ops.TRUNC, dtypes.float32, (i.cast(dtypes.float32),)), "float32(i)"),
    # divisions
    (lambda: r0 // 1, "r0"),
    (lambda: i // 0, "0"),
    (lambda: i // -1, "i*(-1)"),
    (lambda: i % -1, "0"),
    (lambda: i % i, "0"),
    (lambda: n // n, "1"),
    (lambda: r0 // 4, "0"),
    (lambda: (r0 + 8) // 4, "2"),
    (lambda: (r0 + 8) % 4, "r0"),
    (lambda: (r0 - 4) % 4, "r0"),
    (lambda: ((r0 * 5 + r1) * 6 + r2) // 30, "r0"),
    (lambda: ((r0 * 5 + r1) * 6 + r2) % 30, "r1*6+r2"),
    (lambda: ((r0 * 5 + r1) * 6 + r2) // 6 % 5, "r1"),
    (lambda: (r0 * 30 + r2) // 60, "r0//2"),
    (lambda: (r0 * 30 + r2) % 60, "r0%2*30+r2"),
    (lambda: (r0 * 4) // 8, "r0//2"),
    (lambda: (r0 * 4 + 2) % 8, "r0%2*4+2"),
    (lambda: (r3 // 2) // 3, "r3//6"),
    (lambda: (r3 // 2 + 1) // 3, "(r3+2)//6"),
    (lambda: (r3 % 6) // 2, "r3//2%3"),
    (lambda: (r3 % 6) % 2, "r3%2"),
    (lambda: (r3 % 6 + r0) % 3, "(r3+r0)%3"),
    (lambda: (r0 - 1) // 3, "(r0+2)//3-1"),
    (lambda: (r0 * 5) // 4, "r0"),
    (lambda: (r3 * 9 + r0) % 8, "(r3+r0)%8"),
    (lambda: (r0 * n + n * r0) // n, "r0*2"),
    (lambda: (r0 * n + rn) // n, "r0"),
    (lambda: (r0 * n + rn) % n, "r9"),
    (lambda: (r0 * n + r3) // n, "r0+r3//n"),
    (lambda: (r0 * (n + 1) + UOp.range(n + 1, 8)) % (n + 1), "r8"),
    (lambda: (rn * 4 + r0) // (n * 4), "0"),
    (lambda: (i32(r0) * 4 + 3) // 4, "int32(r0)"),
    (lambda: u % 10 // 16, "0"),
    # comparisons
    (lambda: r0 < 4, "True"),
    (lambda: r0 > 3, "False"),
    (lambda: r0 + 1 < 3, "r0<2"),
    (lambda: r0 * -1 + 3 < 3, "r0*(-1)<0"),
    (lambda: r0 * 4 < 6, "r0<2"),
    (lambda: r0 * 6 + r2 < 12, "r0<2"),
    (lambda: UOp.index(5) < r0 * 6 + r2, "0<r0"),
    (lambda: r3 // 5 < 2, "r3<10"),
    (lambda: UOp.index(1) < r3 // 5, "9<r3"),
    (lambda: (r0 < 1).logical_not(), "0<r0"),
    (lambda: (UOp.index(1) < r0).logical_not(), "r0<2"),
    (lambda: f.eq(g).logical_not(), "f!=g"),
    (lambda: a.logical_not().logical_not(), "a"),
    (lambda: a.ne(False), "a"),
    (lambda: a.eq(False), "!a"),
    (lambda: i < i, "False"),
    (lambda: i.eq(i), "True"),
    (lambda: rn < n, "True"),
    (lambda: rn * 4 + r0 < n * 4, "True"),
    (lambda: r0 + r1 < r0 + 3, "r1<3"),
    (lambda: i32(r0) < i32(r1), "r0<r1"),
    (lambda: i32(r0).ne(2), "r0!=2"),
    (lambda: (i + 3).eq(5), "i==2"),
    (lambda: (r0 * 4).eq(8), "r0==2"),
    (lambda: (r0 * 4).eq(6), "False"),
    (lambda: a.cast(dtypes.float32).ne(0.0), "a"),
    (lambda: UOp.const(dtypes.int32, 0) < i32(a), "a"),
    (lambda: i32(a) < 1, "!a"),
    # bools and bits
    (lambda: a & a, "a"),
    (lambda: a & True, "a"),
    (lambda: a & False, "False"),
    (lambda: a | True, "True"),
    (lambda: a & b & a, "a&b"),
    (lambda: a & b & a.logical_not(), "False"),
    (lambda: a | a.logical_not(), "True"),
    (lambda: (r3 < 9) & a & (r3 < 7), "(r3<7)&a"),
    (lambda: (r3 > 9) & (r3 < 7), "False"),
    (lambda: i ^ i, "0"),
    (lambda: i & -1, "i"),
    (lambda: u & 255, "u"),
    (lambda: u & 15 & 6, "u&6"),
    (lambda: i | 0, "i"),
    (lambda: i << 0, "i"),
    # maxima, choices, casts
    (lambda: f.maximum(f), "f"),
    (lambda: f.maximum(-math.inf), "f"),
    (lambda: r0.maximum(0), "r0"),
    (lambda: r0.maximum(7), "7"),
    (lambda: f.maximum(1.0).maximum(2.0), "max(f, 2.0)"),
    (lambda: a.where(f, f), "f"),
    (lambda: UOp.const(dtypes.bool, True).where(f, g), "f"),
    (lambda: a.logical_not().where(f, g), "(a ? g : f)"),
    (lambda: a.where(UOp.const(dtypes.bool, True), False), "a"),
    (lambda: a.where(b, False), "a&b"),
    (lambda: a.where(UOp.const(dtypes.bool, True), b), "a|b"),
    (lambda: a.where(a.where(f, g), f), "f"),
    (lambda: a.where(b.where(f, g), g), "(a&b ? f : g)"),
    (lambda: i.cast(dtypes.int64).cast(dtypes.int32), "i"),
    (lambda: i.cast(dtypes.int64).cast(dtypes.int8), "int8(i)"),
    (lambda: h.cast(dtypes.float32).cast(dtypes.float64), "float64(h)"),
    (lambda: i32(r0).cast(dtypes.index), "r0"),
    (lambda: (i32(r0) * 4 + i32(r1)).cast(dtypes.index), "r0*4+r1"),
    (lambda: i32(a).cast(dtypes.float32), "float32(a)"),
]

STAYS = [
    lambda: (r3 * 3 + r2) % 5 + (r3 * 7 + r2) // 5 * 5,
    # NaN and infinities; sums of floats keep their order, magic-number rounding its constants
    lambda: f * 0.0,
    # rounding
    lambda: f * 3.0 * 2.0,
    lambda: (f * 4.0).alu(Ops.RECIPROCAL),
    lambda: f + 1.0 + 2.0,
    lambda: f * 2.0 + f * 3.0,
    lambda: f * 1e30 * 1e30,
    lambda: f * 1e-30 * 1e-30,
    lambda: (f * 1e-40).alu(Ops.RECIPROCAL),
    lambda: f < f,
    lambda: f.eq(f),
    lambda: f.maximum(1.0),
    # wrapping
    lambda: i + 1 < 3,
    lambda: i * 2 // 2,
    lambda: (i * 4).eq(8),
    lambda: (i + 1) % 4,
    lambda: u * 4 % 8,
    # sums that are no better another way
    lambda: r0 + r1,
    lambda: r1 + r0,
    lambda: r0 * -1 < 0,
    lambda: r0 * 2 + r1 * 3,
    lambda: (r3 % 5) + (r3 // 5) * 4,
    lambda: (r3 % 5) + (r3 // 4) * 5,
    lambda: r3 // 5,
    lambda: (r3 + r0) // 5,
    lambda: (r3 + r0) % 5,
    lambda: (r3 * 3 + r0) // 6,
    lambda: (r3 + r0) % n,
    lambda: rn * 2 < n,
    lambda: (r0 + r1).eq(3),
    # gates that are none
    lambda: a.where(f, g),
    lambda: a & b,
    lambda: (r0 < 3) & (r1 < 3),
    lambda: (r3 > 3) & (r3 < 7),
    lambda: i & 15,
    # casts that lose something
    lambda: i.cast(dtypes.int8).cast(dtypes.int32),
    lambda: f.cast(dtypes.float16).cast(dtypes.float32),
    lambda: i.cast(dtypes.float32).cast(dtypes.int32),
    lambda: f.cast(dtypes.int32).cast(dtypes.float32),
    lambda: (r3 * 20).cast(dtypes.int8).cast(dtypes.index),
    lambda: (i * 4 + j).cast(dtypes.index),
    lambda: (i + 1).cast(dtypes.index),
]


@pytest.mark.parametrize(("make", "expected"), FIRES, ids=[f"{k}: {e}" for k, (_, e) in enumerate(FIRES)])
def test_rule_fires(make, expected) -> None:  # type: ignore[no-untyped-def]
    assert show(simplify(make())) == expected


@pytest.mark.parametrize("make", STAYS, ids=[f"{k}: {show(m())}" for k, m in enumerate(STAYS)])
def test_rule_must_not_fire(make) -> None:  # type: ignore[no-untyped-def]
    x = make()
    assert show(simplify(x)) == show(x)


GIVEN = [
    # (expression, condition, what it is there)
    (lambda: (r0 - 1) // 3, lambda: r0 > 0, "0"),
    (lambda: (r0 + 2) % 3, lambda: r0 > 0, "r0-1"),
    (lambda: (r3 - 2) // 4, lambda: (r3 < 2).logical_not() & (r3 < 6), "0"),
    (lambda: (r0 + r1 - 2) // 4, lambda: (r0 + r1 < 2).logical_not() & (r0 + r1 < 6), "0"),
    (lambda: (r0 < 2).where(r1, r2), lambda: r0 < 2, "r1"),
    (lambda: a.where(r1, r2), lambda: a.logical_not() & b, "r2"),
    (lambda: r3 // 4, lambda: (r3 * -1 < -3) & (r3 < 8), "1"),
    (lambda: r0 + r1, lambda: r0.eq(2), "r1+2"),
    # must not: a condition about something else, or one that never holds
    (lambda: r0 // 3, lambda: r1 < 2, "r0//3"),
    (lambda: r0 // 3, lambda: a, "r0//3"),
    (lambda: r0 // 3, lambda: (r0 < 2) | (r1 < 2), "r0//3"),
    (lambda: r0 // 3, lambda: (r0 + r1 < 1) & (r0 > 2), "r0//3"),
    (lambda: r0 // 3, lambda: UOp.const(dtypes.bool, True), "r0//3"),
]


@pytest.mark.parametrize(
    ("make", "condition", "expected"), GIVEN, ids=[f"{k}: {e}" for k, (_, _, e) in enumerate(GIVEN)]
)
def test_simplify_under(make, condition, expected) -> None:  # type: ignore[no-untyped-def]
    assert show(simplify_under(make(), condition())) == expected


def test_a_gate_that_is_constant_leaves_the_load() -> None:
    pointer = UOp(Ops.PARAM, dtypes.float32, (), Param(0, 8))

    def gated(gate: UOp) -> UOp:
        return UOp(Ops.LOAD, dtypes.float32, (UOp(Ops.INDEX, dtypes.float32, (pointer, r0, gate)), f))

    open_gate = simplify(gated(r0 < 9))
    assert len(open_gate.src) == 1 and open_gate.src[0].src == (pointer, r0)
    assert simplify(gated(r0 > 9)) is f
    assert simplify(gated(r0 < 2)) is gated(r0 < 2)
