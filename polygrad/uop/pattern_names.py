"""Short names for the patterns in the rule tables (arithmetic.py, logic.py).

x, y, z are any nodes, c and d are constants. Prefixes restrict x: ix is an `index`, nx an integer, wx an
integer or bool, bx a bool, fx a float. `op(...)` matches its sources in this order: operands are in canonical
order.
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

MAX_TERMS = 32  # the most terms or conjuncts that a rule searches for one to merge with


def op(
    ops: Ops | frozenset[Ops],
    *src: UPat,
    dtype: DType | tuple[DType, ...] | None = None,
    name: str | None = None,
) -> UPat:
    """A pattern for `ops` with the sources `src`, in this order."""
    return UPat(ops, dtype, src, name=name)


def const(value: float) -> UPat:
    """A pattern for the constant `value` of any dtype."""
    return UPat.const(None, value)


def not_(condition: UPat) -> UPat:
    """The negation of a bool."""
    return op(Ops.CMPNE, condition, TRUE)
