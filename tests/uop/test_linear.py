"""Sizes in canonical form: equal ones are the same node, and worth what they were worth."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polygrad.dtype import dtypes
from polygrad.errors import ArgumentError
from polygrad.helpers import ceildiv
from polygrad.uop.linear import linear_terms, sum_bounds, sum_of
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.sizes import add_terms, canonical, size_text

I, J = UOp.variable("i", 1, 5), UOp.variable("j", 0, 4)
SETTLED = UOp.variable("settled", 3, 3)


@pytest.mark.parametrize(
    "a, b",
    [
        (I + I, 2 * I),
        (25 * I, I * 25),
        (I + J, J + I),
        (I * J * 2, J * (I + I)),
        (I + (10 - I), 10),
        ((I + 1) * (J + 2), I * J + J + 2 * I + 2),
        ((I + 1) * (I - 1), I * I - 1),
        (I * 6 // 6, I),
        ((I * 6 + 7) // 6, I + 1),
        ((I + 1) * 6 // (I + 1), 6),
        (I * (J + 2) // I, J + 2),
        ((I * 4 + 2) // 6, (I * 2 + 1) // 3),
        (I // 2 // 3, I // 6),
        (ceildiv(I, 2), (I + 1) // 2),
        (I * 7 // 5, I + I * 2 // 5),
        (I // 6, 0),
        ((I + 5) // 5, 1 + I // 5),
        (I % 6, I),
        (I * 6 % 3, 0),
        (I * (J + 1) % (J + 1), 0),
        (I.maximum(6), 6),
        (I.maximum(J - 4), I),
        (I.maximum(J + 1), (J + 1).maximum(I)),
        (I // -2, -((I + 1) // 2)),
        (SETTLED, 3),
        (SETTLED.bind(3) + 5, 8),
        (SETTLED * I, 3 * I),
    ],
    ids=str,
)
def test_equal_sizes_are_one_node(a: Any, b: Any):
    assert canonical(a) is canonical(b) or canonical(a) == canonical(b)


@pytest.mark.parametrize(
    "a, b", [(I, J), (I + 1, I), (I * J, I), (I // 2, I), (ceildiv(I, 2), I // 2), (I * J // J, I)], ids=str
)
def test_other_sizes_stay_apart(a: Any, b: Any):
    assert canonical(a) is not canonical(b)


@pytest.mark.parametrize("size", [I + J * 2 + 1, I * J * 3 + I, (I + 1) // 2 + J], ids=str)
def test_binding_keeps_the_form(size: Any):
    bound = {I: I.bind(2), J: J.bind(3)}
    there = canonical(size).substitute(bound)
    assert canonical(there) is there
    assert there.substitute({b: v for v, b in bound.items()}) is canonical(size)


def test_how_a_size_is_written():
    assert str(canonical(2 * J + I.bind(3) + 1)) == "i + j*2 + 1"
    assert str(canonical((I - 1) * 2 * J // 3)) == "(i*j*2 + j*-2)//3"
    assert size_text(I.maximum(J)) == "max(i, j)"
    assert (str(I), str(I.bind(3)), str(canonical(-I)), str(canonical(-I * J))) == (
        "i",
        "i=3",
        "-i",
        "-(i*j)",
    )


def worth(size: Any, values: dict[str, int]) -> int:
    """The value of a size, by Python's own arithmetic; x // 0 = x % 0 = 0."""
    if isinstance(size, int):
        return size
    if size.op is Ops.CONST:
        return size.arg
    if size.op is Ops.DEFINE_VAR:
        return values[size.arg.name]
    a, b = [worth(s, values) for s in size.src]
    if size.op is Ops.IDIV:
        return a // b if b else 0
    if size.op is Ops.MOD:
        return a % b if b else 0
    return {Ops.ADD: a + b, Ops.MUL: a * b, Ops.MAX: max(a, b)}[size.op]


leaf = st.sampled_from([I, J, UOp.variable("k", 2, 7)]) | st.integers(-7, 12).map(UOp.index)
sizes = st.recursive(
    leaf,
    lambda inner: st.builds(
        lambda op, a, b: UOp(op, dtypes.index, (a, b)),
        st.sampled_from([Ops.ADD, Ops.ADD, Ops.MUL, Ops.IDIV, Ops.MOD, Ops.MAX]),
        inner,
        inner,
    ),
    max_leaves=7,
)


@given(size=sizes)
def test_any_size_keeps_its_value_and_has_one_form(size: UOp):
    form = canonical(size)
    assert canonical(form) is form or canonical(form) == form
    for i, j, k in itertools.product((1, 2, 5), (0, 1, 4), (2, 3, 7)):
        values = {"i": i, "j": j, "k": k}
        assert worth(form, values) == worth(size, values), (form, values)


@given(a=sizes, b=sizes, c=sizes)
def test_sums_and_products_in_any_order_are_one_node(a: UOp, b: UOp, c: UOp):
    assert canonical(a + b) == canonical(b + a)
    assert canonical(a + (b + c)) == canonical((c + a) + b)
    assert canonical(a * b) == canonical(b * a)
    assert canonical(a * (b + c)) == canonical(c * a + b * a)
    assert canonical(a - a) == 0


def test_numbers_and_truth_of_sizes():
    one = UOp.variable("n", 4, 4)
    assert (int(one), float(one + 1), bool(one - 4), bool(I)) == (4, 5.0, False, True)
    assert (I < 6, I + 1 > I, I >= 6, I * 2 <= I + 5) == (I < 6, I + 1 > I, I >= 6, I * 2 <= I + 5)
    assert [bool(c) for c in (I < 6, I + 1 > I, I >= 6, I * 2 <= I + 5)] == [True, True, False, True]
    assert [bool(c) for c in (I.eq(I), I.ne(I), I.eq(7), I.ne(7))] == [True, False, False, True]
    for undecided in (lambda: bool(I < 3), lambda: bool(I.eq(2)), lambda: int(I), lambda: float(I.bind(2))):
        with pytest.raises(ArgumentError, match="unbind"):
            undecided()
    with pytest.raises(ArgumentError, match="unbind"):
        bool(J)


def test_arithmetic_with_python_numbers():
    assert (I * 1.5).dtype is dtypes.default_float and (6 / I).dtype is dtypes.default_float
    assert (I / 2).dtype is dtypes.default_float and (I / J).dtype is dtypes.default_float
    assert canonical(I**3) is canonical(I * I * I) and canonical(I**0) == 1
    assert canonical(7 % UOp.variable("n", 8, 9)) == 7
    with pytest.raises(ArgumentError, match="at least 0"):
        I**-1
    with pytest.raises(TypeError):
        I + "1"


A, B = UOp.range(4, 0), UOp.range(6, 1)


def test_linear_terms_collects_each_atom_once():
    assert linear_terms((A * 2 + B) * 3 - A * 6 + 5) == ({B: 3}, 5)
    assert linear_terms(A // 2 * 7 + B * A) == ({A // 2: 7, B * A: 1}, 0)
    assert linear_terms(UOp.index(9)) == ({}, 9)


def test_sum_of_writes_what_linear_terms_reads():
    for x in (A * 2 + B, A * -1 + 3, B):
        assert sum_of(*linear_terms(x)) is x
    assert sum_of({}, 4) == 4 and sum_of({A: 0}, 4) == 4


def test_sums_are_added_atom_by_atom():
    assert list(add_terms({A: 1, B: 2}, {B: 1, A: 3}, -2).items()) == [(A, -5)]
    assert add_terms({}, {A: 1}) == {A: 1}


def test_the_bounds_of_a_sum():
    assert sum_bounds({A: 2, B: -1}, 10) == (5, 16)
    assert sum_bounds({}, 7) == (7, 7)
