"""The prelude of the rule tables (arithmetic.py, logic.py): short names for patterns.

x, y, z are any nodes, c and d constants; a prefix says more of x: i an `index`, n an integer, w an integer or
bool, b a bool, f a float. `op(...)` takes its sources in the order written: operands are in canonical order.
"""

from __future__ import annotations

from polygrad.dtype import DType, dtypes
from polygrad.uop.ops import Ops
from polygrad.uop.pattern import UPat

INDEX, BOOL = dtypes.index, dtypes.bool
INTS = (INDEX, *dtypes.ints)
WHOLE = (*INTS, BOOL)
FLOATS = dtypes.floats

x, y, z = UPat.var("x"), UPat.var("y"), UPat.var("z")
c, d = UPat.cvar("c"), UPat.cvar("d")
ix = UPat.var("x", INDEX)
nx = UPat.var("x", INTS)
wx = UPat.var("x", WHOLE)
bx = UPat.var("x", BOOL)
fx = UPat.var("x", FLOATS)
gate = UPat.var("gate")
TRUE, FALSE = UPat.const(BOOL, True), UPat.const(BOOL, False)

MAX_TERMS = 32  # terms or conjuncts that a rule looks through for one to merge with


def op(
    ops: Ops | frozenset[Ops],
    *src: UPat,
    dtype: DType | tuple[DType, ...] | None = None,
    name: str | None = None,
) -> UPat:
    """`ops` over `src`, in this order."""
    return UPat(ops, dtype, src, name=name)


def const(value: float) -> UPat:
    """The constant `value` of any dtype."""
    return UPat.const(None, value)


def not_(condition: UPat) -> UPat:
    """!condition."""
    return op(Ops.CMPNE, condition, TRUE)
