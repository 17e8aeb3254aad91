"""Bounds of integers that are as tight as values allow. That bounds hold is tested in test_properties.py."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import pytest

from polygrad.uop.node import UOp


@pytest.mark.parametrize("op", [operator.floordiv, operator.mod], ids=lambda op: op.__name__)
@pytest.mark.parametrize("c", [1, 2, 3, 8])
def test_quotients_and_remainders_by_a_constant_have_the_bounds_of_their_values(
    op: Callable[[Any, int], Any], c: int
) -> None:
    for lo, hi in itertools.combinations(range(-9, 10), 2):
        values = [op(x, c) for x in range(lo, hi + 1)]
        assert op(UOp.variable("x", lo, hi), c).bounds == (min(values), max(values)), (lo, hi)
