"""The numbers of packed weights, and products with them, on every device."""

from __future__ import annotations

import pytest

pytest.importorskip("numpy", reason="it is not in the Pyodide that these tests run in")

import numpy as np
from packed_weights import PACKED, numbers, some_packed

from polygrad import Tensor, nn
from polygrad.dtype import dtypes
from polygrad.nn.quantization import KINDS

pytestmark = pytest.mark.usefixtures("default_device")

# Half of the distance between neighbours, of the largest number of a block.
STEPS = {"int8": 1 / 254, "int4": 1 / 15, "fp8": 1 / 16, "q4_0": 1 / 8, "q4_1": 1 / 15, "q5_0": 1 / 16,
         "q5_1": 1 / 31, "q8_0": 1 / 254}  # fmt: skip


@pytest.mark.parametrize("kind", PACKED)
def test_numbers_within_half_a_step(device: str, kind: str) -> None:
    x = numbers(6, 128)
    packed = nn.PackedWeight.of(Tensor(x), kind)
    found = KINDS[kind]
    blocks = x.reshape(6, -1, found.block or 128)
    error = abs(packed.dense().numpy() - x).reshape(blocks.shape).max(-1)
    assert (error <= STEPS[kind] * 1.02 * abs(blocks).max(-1)).all()
    assert error.max() > 1e-4  # it is not kept whole


@pytest.mark.parametrize("kind", KINDS)
def test_products_and_rows_are_those_of_the_dense_matrix_within_1e_5(device: str, kind: str) -> None:
    packed = some_packed(kind, 24)
    dense = packed.dense().numpy()
    assert packed.shape == dense.shape == (24, 256) and packed.ndim == 2 and packed.numel() == dense.size
    assert packed.dtype is dtypes.float32 and packed.device == device and len(packed) == 24
    for rows in (1, 3, 40):
        x = numbers(rows, 256, seed=rows)
        expected = x @ dense.T
        got = Tensor(x).linear(packed.transpose()).numpy()
        assert abs(got - expected).max() < 1e-5 * abs(expected).max()
    index = np.array([[3, 0], [23, 3]])
    np.testing.assert_array_equal(packed[Tensor(index)].numpy(), dense[index])
    np.testing.assert_array_equal(packed[5].numpy(), dense[5])
    np.testing.assert_array_equal(packed.T.numpy(), dense.T)
    part = packed[4:9]
    assert isinstance(part, nn.PackedWeight) and part.nbytes() * 24 == packed.nbytes() * 5
    np.testing.assert_array_equal(part.dense().numpy(), dense[4:9])
