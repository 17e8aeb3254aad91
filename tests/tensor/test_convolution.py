"""Convolutions of integers, beside Python's own integers. Those of floats are in tests/device and
test_against_torch.py."""

from __future__ import annotations

import numpy as np
import pytest

from polygrad import Tensor


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_products_of_narrow_integers_do_not_wrap_around(dtype: str) -> None:
    limits = np.iinfo(dtype)
    x = np.array([[[limits.max, limits.min, limits.max, 3]]], dtype)
    w = np.array([[[limits.max, limits.max]], [[limits.min, 2]]], dtype)
    for found in (Tensor(x).conv2d(Tensor(w)), Tensor(x).conv2d(Tensor(w), dtype="int32")):
        want = [
            [sum(int(a) * int(b) for a, b in zip(x[0, 0, i : i + 2], row[0])) for i in range(3)] for row in w
        ]
        exact = np.array(want, np.int64).astype(found.dtype.name)
        assert (found.numpy()[0] == exact).all() and found.dtype.itemsize >= 4
