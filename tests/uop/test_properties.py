"""Random expressions, evaluated over all values of their leaves, before and after simplification."""

from __future__ import annotations

import functools
import itertools
import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from uop.evaluation import leaves, value_of

from polygrad.dtype import DType, dtypes
from polygrad.uop.args import Param
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.path_conditions import simplify_under
from polygrad.uop.printer import infix
from polygrad.uop.symbolic import simplify

SIZES = (1, 2, 3, 4, 5, 6)
FACTORS = (-12, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 8, 12)


_LOOPS = (
    [UOp.range(n, i) for i in range(2) for n in SIZES]
    + [UOp.range(n, 2) for n in (24, 35)]
    + [UOp.variable("n", 1, 4)]
)
_WITH_FACTOR = (UOp.__add__, UOp.__mul__, UOp.__floordiv__, UOp.__mod__)
_WITH_ANOTHER = (*_WITH_FACTOR, UOp.__add__, UOp.__add__, UOp.maximum)


@st.composite
def indices(draw: Any, depth: int = 4) -> UOp:
    """Index expressions as movement ops make them, and worse."""
    shape = draw(st.integers(0, 10)) if depth else 0
    if shape <= 1:
        return draw(st.sampled_from(_LOOPS))
    x = draw(indices(depth - 1))
    if shape == 10:  # split and merged again, as two reshapes do
        a, b, m = (draw(st.sampled_from((1, 2, 3, 4, 6))) for _ in range(3))
        parts = [x // (a * b) * (a * b * m), x // a % b * (a * m), x % a * m]
        chosen = draw(st.lists(st.sampled_from(parts), min_size=2, max_size=3, unique=True))
        return functools.reduce(UOp.__add__, chosen)
    if shape <= 4:
        return draw(st.sampled_from(_WITH_FACTOR))(x, draw(st.sampled_from(FACTORS)))
    y = draw(indices(depth - 1))
    if shape <= 7:
        return draw(st.sampled_from(_WITH_ANOTHER))(x, y)
    if shape == 8:
        return draw(conditions(2, depth - 1)).where(x, y)
    narrow = draw(st.sampled_from((dtypes.int8, dtypes.uint8, dtypes.int32)))
    return (x.cast(narrow) + y.cast(narrow)).cast(dtypes.index)


@st.composite
def conditions(draw: Any, depth: int = 3, inner: int = 3) -> UOp:
    shape = draw(st.integers(0, 7)) if depth else draw(st.integers(0, 4))
    if shape <= 4:
        x = draw(indices(inner))
        y = draw(indices(inner)) if shape == 4 else draw(st.sampled_from(FACTORS))
        return draw(st.sampled_from((UOp.__lt__, UOp.__gt__, UOp.__lt__, UOp.__gt__, UOp.ne, UOp.eq)))(x, y)
    a = draw(conditions(depth - 1, inner))
    if shape == 7:
        return a.logical_not()
    b = draw(conditions(depth - 1, inner))
    return a & b if shape == 5 else a | b


def assignments(*xs: UOp, limit: int = 400) -> list[dict[UOp, int]]:
    """Values of the leaves of `xs`: all of them, or a sample."""
    names = list(dict.fromkeys(leaf for x in xs for leaf in leaves(x)))
    spaces = [range(n.vmin, n.vmax + 1) for n in names]
    every = list(itertools.islice(itertools.product(*spaces), 5000))
    if len(every) > limit:
        every = random.Random(0).sample(every, limit)
    return [dict(zip(names, values, strict=True)) for values in every]


def agree(x: UOp, y: UOp, where: UOp | None = None) -> None:
    for values in assignments(x, y, *([where] if where is not None else [])):
        if where is None or value_of(where, values):
            want, got = value_of(x, values), value_of(y, values)
            assert want == got, f"{infix(x)} is {want}, simplified {infix(y)} is {got} at {values}"


@given(indices())
def test_simplify_keeps_the_value_of_index_expressions(x: UOp) -> None:
    y = simplify(x)
    agree(x, y)
    assert simplify(y) is y


@given(conditions())
def test_simplify_keeps_the_value_of_conditions(x: UOp) -> None:
    y = simplify(x)
    agree(x, y)
    assert simplify(y) is y


@given(indices())
def test_bounds_contain_every_value(x: UOp) -> None:
    for values in assignments(x):
        for node in x.toposort():
            value = value_of(node, values)
            assert node.vmin <= value <= node.vmax, (infix(node), value, node.bounds)


@given(indices(), conditions())
def test_simplify_under_keeps_the_value_where_the_condition_holds(x: UOp, condition: UOp) -> None:
    agree(x, simplify_under(x, condition), where=condition)


# --- integers that wrap

BYTES = (dtypes.int8, dtypes.uint8)
_BINARY = (Ops.ADD, Ops.MUL, Ops.IDIV, Ops.MOD, Ops.MAX, Ops.AND, Ops.OR, Ops.XOR, Ops.SUB)


_POINTERS = {d: UOp(Ops.PARAM, d, (), Param(0, 4)) for d in BYTES}
_LOADS = {
    d: [UOp(Ops.LOAD, d, (UOp(Ops.INDEX, d, (p, UOp.index(i))),)) for i in range(2)]
    for d, p in _POINTERS.items()
}


@st.composite
def wrapping(draw: Any, dtype: DType, depth: int = 4) -> UOp:
    """Arithmetic of a byte type."""
    loads = _LOADS[dtype]
    shape = draw(st.integers(0, 9)) if depth else 0
    if shape <= 1:
        return draw(st.sampled_from([*loads, loads[0] % 3, loads[0] % 10, loads[1] % 50]))
    x = draw(wrapping(dtype, depth - 1))
    k = UOp.const(
        dtype, draw(st.sampled_from([0, 1, 2, 3, 4, 8, 12, -1, -2, -4, 127, 128]) | st.integers(-128, 255))
    )
    if shape <= 4:
        return UOp(draw(st.sampled_from(_BINARY)), dtype, (x, k))
    if shape == 5:
        return UOp(
            draw(st.sampled_from((Ops.SHL, Ops.SHR))), dtype, (x, UOp.const(dtype, draw(st.integers(0, 7))))
        )
    if shape == 6:
        via = draw(st.sampled_from((dtypes.int16, dtypes.uint8, dtypes.int8, dtypes.bool, dtypes.float32)))
        return x.cast(via).cast(dtype)
    y = draw(wrapping(dtype, depth - 1))
    if shape <= 8:
        return UOp(draw(st.sampled_from(_BINARY)), dtype, (x, y))
    wide = x.cast(draw(st.sampled_from(BYTES))).cast(dtypes.int16)
    pairs = [
        (x, k),
        (k, x),
        (x, y),
        (x * k, UOp.const(dtype, 8)),
        (wide, UOp.const(dtypes.int16, draw(st.integers(-200, 300)))),
    ]
    pair = draw(st.sampled_from(pairs))
    return UOp(draw(st.sampled_from((Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ))), dtypes.bool, pair).where(x, y)


def byte_values(x: UOp) -> list[dict[UOp, int]]:
    loads = leaves(x)
    if not loads:
        return [{}]
    dtype = loads[0].dtype
    interesting = [
        dtype.min,
        dtype.min + 1,
        *range(dtype.min, dtype.max, 19),
        dtype.max - 1,
        dtype.max,
        0,
        1,
        dtype.cast(-1),
    ]
    spaces = [sorted(set(interesting))] * len(loads) if len(loads) > 1 else [range(dtype.min, dtype.max + 1)]
    return [dict(zip(loads, values, strict=True)) for values in itertools.product(*spaces)]


@given(st.sampled_from(BYTES).flatmap(wrapping))
def test_simplify_keeps_the_value_of_wrapping_integers(x: UOp) -> None:
    y = simplify(x)
    for values in byte_values(x):
        want, got = value_of(x, values), value_of(y, values)
        assert want == got, f"{infix(x)} is {want}, simplified {infix(y)} is {got} at {values}"
    assert simplify(y) is y


@given(st.sampled_from(BYTES).flatmap(wrapping))
def test_bounds_contain_every_value_of_wrapping_integers(x: UOp) -> None:
    nodes = [n for n in x.toposort(lambda n: n.op is not Ops.LOAD) if n.bounds is not None]
    for values in byte_values(x)[::3]:
        for node in nodes:
            value = value_of(node, values)
            assert node.vmin <= value <= node.vmax, (infix(node), value, node.bounds)
