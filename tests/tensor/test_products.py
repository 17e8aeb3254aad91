"""Matrix products in every dtype: floats beside float64, integers exact."""

from __future__ import annotations

import numpy as np
import pytest

from polygrad import Tensor
from polygrad.dtype import DType, dtypes

RNG = np.random.default_rng(5)
SHAPES = [(1, 1, 1), (3, 5, 7), (16, 64, 16), (37, 100, 29), (128, 256, 128), (129, 67, 130)]
INTEGERS = (dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.uint16)


def in_float64(x: Tensor) -> np.ndarray:
    return np.asarray(x.cast("float64").numpy())


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_float_products_are_summed_in_float32_at_least(
    device: str, dtype: DType, shape: tuple[int, int, int]
) -> None:
    """The sum of the rounded operands' products within float32's error bound, and then rounded once."""
    if device == "INTERP" and np.prod(shape) > 1 << 15:
        pytest.skip("INTERP would take seconds")
    m, k, n = shape
    a, b = (
        Tensor(RNG.standard_normal(s).astype(np.float32), device=device).cast(dtype).realize()
        for s in ((m, k), (k, n))
    )
    x, y = in_float64(a), in_float64(b)
    bound = k * (2.0**-53 if dtype is dtypes.float64 else 2.0**-24) * (np.abs(x) @ np.abs(y))
    last = {dtypes.float16: 2.0**-11, dtypes.bfloat16: 2.0**-8}.get(dtype, 0.0) * np.abs(x @ y)
    for got in (a @ b, a @ b.T.contiguous().realize().T, a.T.contiguous().realize().T @ b):
        assert np.all(np.abs(in_float64(got) - x @ y) <= bound + last)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_integer_products_are_exact(device: str, dtype: DType, shape: tuple[int, int, int]) -> None:
    if device == "INTERP" and np.prod(shape) > 1 << 15:
        pytest.skip("INTERP would take seconds")
    m, k, n = shape
    kind = np.dtype(dtype.name)
    x, y = (RNG.integers(dtype.min, dtype.max, s, endpoint=True).astype(kind) for s in ((m, k), (k, n)))
    wide = dtypes.uint32 if dtype.is_unsigned else dtypes.int32
    got = Tensor(x, device=device).dot(Tensor(y, device=device), dtype=wide)
    exact = x.astype(np.int64) @ y.astype(np.int64)
    np.testing.assert_array_equal(got.numpy(), exact.astype(wide.name))


@pytest.mark.parametrize("pair", [("int8", "int8"), ("uint8", "int8"), ("int8", "uint8"), ("uint8", "uint8")])
def test_sums_of_extremes_are_exact(device: str, pair: tuple[str, str]) -> None:
    """Each operand all least, all greatest, or both in turn: no instruction may saturate on the way."""
    m, k, n = (64, 512, 64) if device != "INTERP" else (4, 12, 20)
    sides = []
    for name, shape in zip(pair, ((m, k), (k, n)), strict=True):
        least, greatest = np.iinfo(name).min, np.iinfo(name).max
        mixed = np.where(np.arange(np.prod(shape)) % 2 == 0, least, greatest).reshape(shape)
        sides.append([np.full(shape, least), np.full(shape, greatest), mixed])
    for x in sides[0]:
        for y in sides[1]:
            a, b = Tensor(x.astype(pair[0]), device=device), Tensor(y.astype(pair[1]), device=device)
            np.testing.assert_array_equal(a.dot(b, dtype="int32").numpy(), (x @ y).astype(np.int32))


def test_without_a_dtype_integer_products_wrap_as_numpys_do(device: str) -> None:
    x, y = (RNG.integers(-128, 127, s).astype(np.int8) for s in ((9, 31), (31, 18)))
    np.testing.assert_array_equal((Tensor(x, device=device) @ Tensor(y, device=device)).numpy(), x @ y)
