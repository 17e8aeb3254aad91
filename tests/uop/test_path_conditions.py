"""Path conditions: what a conjunction says, and expressions under it. More cases: test_symbolic.py."""

from __future__ import annotations

from polygrad.dtype import dtypes
from polygrad.uop.node import UOp
from polygrad.uop.path_conditions import conjuncts, simplify_under
from polygrad.uop.symbolic import simplify

I, J = UOp.range(8, 0), UOp.range(8, 1)
FALSE = UOp.const(dtypes.bool, False)


def test_conjuncts_stand_from_left_to_right():
    a, b, c = I < 3, J < 5, UOp.index(1) < I
    assert conjuncts((a & b) & c) == conjuncts(a & (b & c)) == [a, b, c]
    assert conjuncts(a) == [a]


def test_a_disjunction_is_one_conjunct():
    either = (I < 3) | (J < 5)
    assert conjuncts(either) == [either]


def test_a_bound_on_a_sum_bounds_its_terms():
    assert simplify_under(I // 4 + J // 4, I + J < 4) is UOp.index(0)
    assert simplify_under(I // 4, I < 5) is simplify(I // 4)


def test_contradicting_conditions_leave_the_expression():
    assert simplify_under(I // 4, (I < 3) & (UOp.index(5) < I)) is simplify(I // 4)


def test_a_conjunct_is_true_and_what_one_negates_false():
    loaded = UOp.variable("flag", 0, 1).cast(dtypes.bool)
    assert simplify_under(loaded.logical_not() | (I < 2), loaded & (I < 2)).arg is True
    assert simplify_under(loaded & (J < 3), loaded.logical_not()) is FALSE
