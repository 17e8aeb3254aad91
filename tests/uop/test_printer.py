"""Listings and infix text."""

from __future__ import annotations

import pytest

from polygrad.dtype import dtypes
from polygrad.uop.args import AxisKind, Param, Reg
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.printer import infix, render

r0, r1 = UOp.range(4, 0), UOp.range(3, 1, AxisKind.REDUCE)
n = UOp.variable("n", 1, 10)

INFIX = [
    (r0 * 4 + r1, "r0*4+r1"),
    ((r0 + r1) * 4, "(r0+r1)*4"),
    (r0 + (r1 + 1), "r0+(r1+1)"),
    (r0 + -1, "r0-1"),
    (r0 * -1, "r0*(-1)"),
    (r0 // (r1 // 2), "r0//(r1//2)"),
    (r0 // 3 % 2, "r0//3%2"),
    ((r0 < 3) & (r1 < n), "(r0<3)&(r1<n)"),
    ((r0 < 3).logical_not(), "!(r0<3)"),
    ((r0 < 3).where(r0, r1), "(r0<3 ? r0 : r1)"),
    (r0.cast(dtypes.float32), "float32(r0)"),
    (UOp(Ops.NEG, dtypes.index, (r0 + r1,)), "-(r0+r1)"),
    (UOp(Ops.SUB, dtypes.index, (r0, r1)), "r0-r1"),
    (r0.maximum(r1), "max(r0, r1)"),
]


@pytest.mark.parametrize(("x", "text"), INFIX, ids=[t for _, t in INFIX])
def test_infix(x: UOp, text: str) -> None:
    assert infix(x) == text


def test_infix_of_loads_is_by_number_or_by_name() -> None:
    load = UOp(
        Ops.LOAD,
        dtypes.int32,
        (UOp(Ops.INDEX, dtypes.int32, (UOp(Ops.PARAM, dtypes.int32, (), Param(0, 1)), r0)),),
    )
    assert infix(load + 1) == "%4+1"
    assert infix(load + 1, {load: "x"}) == "x+1"


def row_sums() -> list[UOp]:
    """sum over axis 1 of a (4, 3), linear."""
    out, a = (UOp(Ops.PARAM, dtypes.float32, (), Param(i, s)) for i, s in ((0, 4), (1, 12)))
    register, zero = UOp(Ops.DEFINE_REG, dtypes.float32, (), Reg(0)), UOp.index(0)
    index = lambda p, i: UOp(Ops.INDEX, dtypes.float32, (p, i))
    load = lambda i: UOp(Ops.LOAD, dtypes.float32, (i,))
    store = lambda i, v: UOp(Ops.STORE, dtypes.void, (i, v))
    after = lambda x, *deps: UOp(Ops.AFTER, x.dtype, (x, *deps))
    start = store(index(after(register, r0), zero), UOp.const(dtypes.float32, 0.0))
    partial = load(index(after(register, start, r1), zero))
    step = store(index(register, zero), partial + load(index(a, r0 * 3 + r1)))
    inner = UOp(Ops.END, dtypes.void, (step, r1))
    done = store(index(out, r0), load(index(after(register, inner), zero)))
    return UOp.sink(UOp(Ops.END, dtypes.void, (done, r0))).toposort()


def test_a_linear_kernel_has_its_loops_indented() -> None:
    assert (
        render(row_sums())
        == """\
   0 PARAM          float32                  0 4
   1 CONST          index                    4
   2 RANGE          index    1               0 LOOP        r0
   3   INDEX        float32  0 2
   4   DEFINE_REG   float32                  0
   5   CONST        index                    0
   6   INDEX        float32  4 5
   7   AFTER        float32  4 2
   8   INDEX        float32  7 5
   9   CONST        float32                  0.0
  10   STORE        void     8 9
  11   CONST        index                    3
  12   RANGE        index    11              1 REDUCE      r1
  13     AFTER      float32  4 10 12
  14     INDEX      float32  13 5
  15     LOAD       float32  14
  16     PARAM      float32                  1 12
  17     MUL        index    2 11                          r0*3
  18     ADD        index    17 12                         r0*3+r1
  19     INDEX      float32  16 18
  20     LOAD       float32  19
  21     ADD        float32  15 20
  22     STORE      void     6 21
  23   END          void     22 12
  24   AFTER        float32  4 23
  25   INDEX        float32  24 5
  26   LOAD         float32  25
  27   STORE        void     3 26
  28 END            void     27 2
  29 SINK           void     28"""
    )


def test_a_graph_lists_sources_first_without_indentation() -> None:
    assert (
        render((r0 * 3 + r1) // n)
        == """\
   0 CONST          index                    4
   1 RANGE          index    0               0 LOOP        r0
   2 CONST          index                    3
   3 MUL            index    1 2                           r0*3
   4 RANGE          index    2               1 REDUCE      r1
   5 ADD            index    3 4                           r0*3+r1
   6 DEFINE_VAR     index                    n 1 10
   7 IDIV           index    5 6                           (r0*3+r1)//n"""
    )


def test_a_deep_formula_is_cut_to_numbers() -> None:
    x: UOp = r0
    for _ in range(20_000):
        x = (x + r1) % 7
    text = render(x)
    assert max(map(len, text.splitlines())) < 200
