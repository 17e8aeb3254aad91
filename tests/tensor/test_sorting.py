"""sort, argsort and topk against torch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from polygrad import Tensor
from polygrad.errors import ArgumentError

A = np.random.default_rng(0).integers(0, 6, (3, 9)).astype(np.float32)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dim", [0, 1])
def test_sort_is_stable_and_agrees_with_torch(dim, descending):
    values, positions = Tensor(A).sort(dim, descending)
    want = torch.tensor(A).sort(dim=dim, descending=descending, stable=True)
    np.testing.assert_array_equal(values.numpy(), want.values.numpy())
    np.testing.assert_array_equal(positions.numpy(), want.indices.numpy())
    np.testing.assert_array_equal(Tensor(A).argsort(dim, descending).numpy(), want.indices.numpy())


def test_sort_of_bools_and_short_axes():
    assert Tensor([True, False, True]).sort()[0].tolist() == [False, True, True]
    assert [t.tolist() for t in Tensor([[5], [4]]).sort()] == [[[5], [4]], [[0], [0]]]


def test_topk_and_its_gradient():
    values, positions = Tensor(A[0]).topk(3)
    assert (
        values.tolist() == sorted(A[0].tolist(), reverse=True)[:3]
        and A[0][positions.tolist()].tolist() == values.tolist()
    )
    assert Tensor(A[0]).topk(2, largest=False)[0].tolist() == sorted(A[0].tolist())[:2]
    x = Tensor([3.0, 1.0, 2.0])
    assert (x.topk(2)[0] * Tensor([10.0, 1.0])).sum().gradient(x)[0].tolist() == [10, 0, 1]
    with pytest.raises(ArgumentError, match="topk"):
        x.topk(4)
