"""Elementary and special functions at the numbers where formulas fail: near overflow and zeros, denormal and
huge numbers, whole ones and halves, infinities and NaN, in float32 against float64.

A row: the name, the bound in units of the last place, and an absolute bound, either of which is enough. What
is below the least normal number may be 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy import special

from polygrad import Tensor
from polygrad.uop.ops import Ops

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
DEVICES = ["CPU", "WASM", "INTERP"]
LEAST_NORMAL = 2.0**-126


def hard_points() -> np.ndarray:
    """Powers of two, what is beside them, and numbers at which some function changes; both signs."""
    single = np.float32
    powers = np.ldexp(1.0, np.arange(-149, 128)).astype(single)
    lists = (
        powers, np.nextafter(powers, single(np.inf)), np.nextafter(powers, single(0)),
        powers * single(1.4142135),
        np.arange(80) / 2, np.linspace(0.01, 12, 200), np.linspace(80, 95, 80), np.linspace(100, 130, 40),
        np.arange(1, 30) * np.pi / 2, 1 - np.ldexp(1.0, -np.arange(1, 25)),
        1 + np.ldexp(1.0, -np.arange(1, 24)),
        [88.72283, 88.8, 89.0, 89.4, 89.41598, 89.41599, 89.5, 87.33654, 103.97, 3.4028235e38],
        [1e-40, 1e5, 1e10],
        [np.inf, np.nan, 2.0**23 + 0.5, 0.46875, 0.85],
    )  # fmt: skip
    found = np.concatenate([np.asarray(x, single) for x in lists])
    return np.unique(np.concatenate([found, -found]))


POINTS = hard_points()
Rows = dict[str, tuple[float, float]]
# name: (ulp, absolute)
ROWS: Rows = {
    **dict.fromkeys("sqrt reciprocal square round floor ceil trunc frac relu6 relu".split(), (0.5, 0.0)),
    **dict.fromkeys("exp exp2 log log2 rsqrt sin deg2rad rad2deg softsign".split(), (1.5, 0.0)),
    **dict.fromkeys("expm1 log10 log1p asin atan erf erfinv elu celu selu hardswish".split(), (3.0, 0.0)),
    **dict.fromkeys("acos asinh acosh atanh sinh cosh tanh logit softplus logsigmoid".split(), (4.0, 0.0)),
    "cos": (1.0, 2.5e-7), "sigmoid": (2.0, 0.0), "silu": (12.0, 1e-35), "mish": (12.0, 1e-35),
    "sinc": (2.0, 1e-7),
    "erfc": (20.0, 0.0), "lgamma": (8.0, 1e-5), "digamma": (12.0, 1e-5), "i0": (24.0, 0.0),
    "gelu": (4.0, 1e-6), "hardsigmoid": (2.0, 1e-7), "quick_gelu": (60.0, 1e-35), "tanhshrink": (4.0, 2.5e-7),
    "tan": (2.0, 0.0),
}  # fmt: skip
REFERENCES: dict[str, Callable[[Any], Any]] = {
    "gelu": lambda x: F.gelu(x, approximate="tanh"),
    "quick_gelu": lambda x: x * torch.sigmoid(1.702 * x),
    # at whole numbers pi x is no multiple of pi, as it is rounded
    "sinc": lambda x: torch.where(x == x.round(), x.eq(0).double() + 0 * x, torch.sinc(x)),
    "i0": lambda x: torch.where(x.isinf(), math.inf, torch.special.i0(x)),
}


def reference(name: str, x: np.ndarray) -> np.ndarray:
    f = REFERENCES.get(name) or getattr(torch, name, None) or getattr(F, name)
    return np.asarray(f(torch.from_numpy(x.astype(np.float64))).numpy())


def differing(name: str, device: str, x: np.ndarray) -> list[str]:
    """The points at which the function is off by more than its bounds."""
    units, absolute = ROWS[name]
    got, want = getattr(Tensor(x, device=device), name)().numpy(), reference(name, x)
    rounded = want.astype(np.float32)
    if device == "INTERP":  # exp there has a rounded product, whose error grows with the exponent
        units = max(units, 60.0)
    if name == "tan":  # the quotient of two that are as good as they are: where neither is small
        keep = np.abs(np.cos(x.astype(np.float64))) > 0.05
        got, want, rounded, x = got[keep], want[keep], rounded[keep], x[keep]
        units = 128.0
    same_kind = (np.isnan(got) == np.isnan(rounded)) & (
        (np.isinf(got) | np.isinf(rounded)) <= (got == rounded)
    )
    allowed = np.maximum(units * np.spacing(np.abs(rounded)).astype(np.float64), absolute)
    allowed = np.where(np.abs(want) < LEAST_NORMAL, np.maximum(allowed, LEAST_NORMAL), allowed)
    near = np.isinf(rounded) | np.isnan(rounded) | (np.abs(got.astype(np.float64) - want) <= allowed)
    at_the_end = (np.abs(want) > 3.4e38) & (np.abs(got) > 3.4e38) & (np.sign(want) == np.sign(got))
    wrong = ~(at_the_end | (same_kind & near))
    return [f"{name}({x[i]!r}): {got[i]!r}, expected {rounded[i]!r}" for i in np.flatnonzero(wrong)]


@pytest.mark.parametrize("device", DEVICES)
def test_functions_are_within_their_bounds_at_hard_points(device: str) -> None:
    x = POINTS if device != "INTERP" else POINTS[::5]
    found = [line for name in ROWS for line in differing(name, device, x)]
    assert not found, f"{len(found)} differ:\n" + "\n".join(found[:30])


@pytest.mark.parametrize("device", DEVICES)
def test_cosh_and_sinh_are_finite_up_to_the_end_of_float32(device: str) -> None:
    x = np.array([88.8, 89.0, 89.4, 89.41], np.float32)
    want = np.cosh(x.astype(np.float64))
    for name, sign in (("cosh", 1), ("sinh", 1), ("cosh", -1), ("sinh", -1)):
        got = getattr(Tensor(x * sign, device=device), name)().numpy()
        np.testing.assert_allclose(np.abs(got), want, rtol=5e-6)
    assert Tensor([89.5], device=device).cosh().tolist() == [math.inf]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("device", DEVICES)
def test_tanh_within_4_ulp_and_at_most_1(device: str, dtype: Any) -> None:
    count = 2_000 if device == "INTERP" else 200_000
    x = np.concatenate([np.geomspace(1e-6, 25, count), np.linspace(0, 2, count)]).astype(dtype)
    expected = np.tanh(x.astype(np.longdouble))
    for sign in (1, -1):
        got = sign * Tensor(x * dtype(sign), device=device).tanh().numpy()
        errors = np.abs(got - expected) / np.spacing(expected.astype(dtype))
        assert errors.max() <= 4 and got.max() <= 1, f"{errors.max()} ulp at {x[errors.argmax()]!r}"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tanh_rounds_to_a_whole_number_without_a_conversion(dtype: str) -> None:
    ops = {n.op for n in Tensor.empty(4, dtype=dtype).tanh().uop.toposort()}
    assert ops.isdisjoint({Ops.TRUNC, Ops.CAST})


# name: scipy's function, or numpy's, and the error beside the value, or 1 where that is less
FLOAT64: dict[str, tuple[Callable[[Any], Any], float]] = {
    **{n: (getattr(np, n), 1e-15) for n in "exp exp2 log log2 log10 expm1 log1p sin cos tanh".split()},
    **{n: (getattr(np, f"arc{n[1:]}"), 1e-15) for n in "asin acos atan asinh acosh atanh".split()},
    **{n: (getattr(special, n), 1e-15) for n in ("erf", "erfinv")},
    "sinh": (np.sinh, 5e-15), "cosh": (np.cosh, 5e-15), "tan": (np.tan, 1e-12),
    "sigmoid": (special.expit, 1e-15), "softplus": (lambda x: np.logaddexp(0, x), 1e-15),
    "erfc": (special.erfc, 2e-15), "i0": (special.i0, 5e-15),
    "lgamma": (special.gammaln, 4e-14), "digamma": (special.digamma, 5e-13),
}  # fmt: skip


@pytest.mark.parametrize("name", FLOAT64)
def test_functions_of_float64_are_as_exact_as_float64_allows(name: str) -> None:
    judge, bound = FLOAT64[name]
    x = np.concatenate(
        [np.geomspace(1e-8, 300, 997), np.linspace(0.001, 24, 4999), np.linspace(0.01, 1, 997)]
    )
    if name == "digamma":  # near its poles the reflected part has few digits
        x = x[np.abs(x - x.round()) > 0.01]
    x = np.concatenate([x, -x])
    got, want = getattr(Tensor(x), name)().numpy(), judge(x)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    errors = np.abs(got - want) / np.maximum(np.abs(want), 1)
    errors = errors[np.isfinite(want)]
    assert errors.max() <= bound, f"{errors.max()} at {x[np.isfinite(want)][errors.argmax()]!r}"


def test_digamma_of_positive_float64_within_2e_15() -> None:
    x = np.concatenate([np.geomspace(1e-8, 300, 997), np.linspace(0.001, 24, 4999)])
    want = special.digamma(x)
    errors = np.abs(Tensor(x).digamma().numpy() - want) / np.maximum(np.abs(want), 1)
    assert errors.max() <= 2e-15, f"{errors.max()} at {x[errors.argmax()]!r}"


def test_the_complementary_error_function_of_float64_has_14_digits_where_it_is_tiny() -> None:
    x = np.linspace(0.4, 26, 4999)
    np.testing.assert_allclose(Tensor(x).erfc().numpy(), special.erfc(x), rtol=1e-13)


@pytest.mark.parametrize("n", [0, 2, 3, 4, 5])  # torch's trigamma, n = 1, has nine digits
def test_polygamma_of_float64_is_torchs(n: int) -> None:
    x = np.concatenate([np.linspace(-2.9, 3, 117), np.geomspace(3, 1e6, 60)])
    expected = torch.polygamma(n, torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(Tensor(x).polygamma(n).numpy(), expected, rtol=2e-12, atol=1e-14)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_tanh_of_16_bits_is_that_of_float32_rounded(dtype: str) -> None:
    x = Tensor(np.linspace(-6, 6, 999, dtype=np.float32)).cast(dtype).realize()
    np.testing.assert_array_equal(x.tanh().float().numpy(), x.float().tanh().cast(dtype).float().numpy())


@pytest.mark.parametrize("device", DEVICES)
def test_sinc_is_1_at_denormal_numbers_and_0_at_whole_ones(device: str) -> None:
    assert Tensor([1e-40, -1e-40, 1e-45, 1e-20], device=device).sinc().tolist() == [1.0] * 4
    assert Tensor([1.0, -2.0, 7.0, 2.0**30, 3e38], device=device).sinc().abs().tolist() == [0.0] * 5


def test_gradients_at_hard_points_are_torchs() -> None:
    x = np.array([88.8, -88.8, 89.3, 0.0, 1e-40, 0.3, -0.6, 3.0], np.float32)
    for name in ("cosh", "sinh", "tanh", "sinc", "softplus", "elu", "logsigmoid", "asinh"):
        t, s = Tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
        getattr(t, name)().sum().backward()
        (getattr(torch, name, None) or getattr(F, name))(s).sum().backward()
        assert t.grad is not None and s.grad is not None
        np.testing.assert_allclose(t.grad.numpy(), s.grad.numpy(), rtol=1e-5, atol=1e-6, err_msg=name)


def test_cosh_of_bools_is_that_of_0_and_1() -> None:
    np.testing.assert_allclose(Tensor([True, False]).cosh().numpy(), [np.cosh(1), 1], rtol=1e-6)
