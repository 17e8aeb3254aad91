"""Tensors made by creation functions."""

from __future__ import annotations

import pytest

from polygrad import Tensor, dtypes


@pytest.mark.parametrize("name", ["zeros_like", "ones_like", "empty_like", "rand_like", "randn_like"])
def test_like_a_tensor_where_the_dtype_is_none(name: str) -> None:
    x = Tensor.ones(2, 3, dtype=dtypes.float16)
    assert getattr(x, name)(dtype=None, device=None).dtype is dtypes.float16
    assert x.full_like(1, dtype=None).dtype is dtypes.float16
