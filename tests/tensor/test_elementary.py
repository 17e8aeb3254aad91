"""Functions built from others: how near they come to the true value."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from polygrad import Tensor

X = np.concatenate([
    np.linspace(-6, 6, 20_001), np.logspace(-38, 0, 1000), -np.logspace(-38, 0, 1000),
    [0.0, -0.0, np.inf, -np.inf, np.nan, 0.85, 4.0],
])  # fmt: skip


def true_erf(x: np.ndarray) -> np.ndarray:
    return torch.erf(torch.from_numpy(x.astype(np.float64))).numpy()


def test_erf_within_3_ulp_in_float32(device: str) -> None:
    x = X.astype(np.float32)
    if device == "INTERP":
        x = np.concatenate([x[::50], x[-7:]])
    got, want = Tensor(x, device=device).erf().numpy(), true_erf(x)
    unit = np.spacing(np.abs(want.astype(np.float32)))
    known = ~np.isnan(want)
    assert np.all(np.abs(got.astype(np.float64) - want)[known] <= 3 * unit[known])
    np.testing.assert_array_equal(np.isnan(got), ~known)
    np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(want[known]))


def test_exp_within_1_ulp_in_float32(device: str) -> None:
    if device == "INTERP":
        pytest.skip("kernels without optimisation take 2 to the power of the rounded product")
    x = np.concatenate([np.linspace(-87, 88.7, 20_001), np.linspace(-1, 1, 5001)]).astype(np.float32)
    got, want = Tensor(x, device=device).exp().numpy(), np.exp(x.astype(np.float64))
    assert np.all(np.abs(got - want) <= np.spacing(want.astype(np.float32)))


def test_exp_of_16_bits_is_rounded_once(device: str) -> None:
    x = np.linspace(-9, 11, 401).astype(np.float16)
    want = np.exp(x.astype(np.float64)).astype(np.float16)
    got = Tensor(x, device=device).exp().numpy()
    assert np.all(np.abs(got.astype(np.float64) - want) <= np.spacing(want))


def test_erf_within_2e_8_of_its_value_in_float64(device: str) -> None:
    x = X[::50] if device == "INTERP" else X
    np.testing.assert_allclose(Tensor(x, device=device).erf().numpy(), true_erf(x), rtol=2e-8)


def test_the_slope_of_erf_within_1e_6(device: str) -> None:
    x = np.linspace(-5, 5, 101)
    t = Tensor(x.astype(np.float32), device=device, requires_grad=True)
    t.erf().sum().backward()
    assert t.grad is not None
    np.testing.assert_allclose(t.grad.numpy(), 2 / np.sqrt(np.pi) * np.exp(-(x**2)), atol=1e-6)
