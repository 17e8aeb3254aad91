"""Powers where they are awkward: value and both gradients against torch on every device."""

from __future__ import annotations

import math

import pytest
from plain import keeps_denormals

np = pytest.importorskip("numpy", reason="it holds the arrays")
torch = pytest.importorskip("torch", reason="it is the judge")

from polygrad import Tensor  # noqa: E402

# bases and exponents: all pairs of these are tried. torch's powers on the CPU keep denormals.
HUGE = {"float32": 3e38, "float64": 1.7e308}
DENORMAL = {"float32": 1e-40, "float64": 1e-310}
RTOL = {"float32": 5e-7, "float64": 1e-15}  # 4 ulp: the gradients are products


def numbers(dtype, device):
    # the reciprocal of the largest numbers is denormal
    extreme = [DENORMAL[dtype], HUGE[dtype]] if keeps_denormals(device, dtype) else [1e37]
    finite = [0.5, 1.0, 2.0, 2.5, 3.0, *extreme]
    return [0.0, -0.0, math.nan, math.inf, -math.inf, *finite, *(-x for x in finite)]


def pairs(dtype, device):
    xs = np.array(numbers(dtype, device), dtype)
    return np.repeat(xs, len(xs)), np.tile(xs, len(xs))


def same(got, want, dtype, what, device):
    """Equal within RTOL; NaN where it is NaN, and zeros and infinities have their signs."""
    got, want = np.asarray(got, dtype), np.asarray(want, dtype)
    limits = np.finfo(dtype)
    tiny = float(limits.smallest_subnormal if keeps_denormals(device, dtype) else limits.smallest_normal)
    np.testing.assert_allclose(got, want, RTOL[dtype], tiny, err_msg=what)
    number = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[number]), np.signbit(want[number]), err_msg=what)


def expected(a, e, f):
    a, e = (torch.tensor(x, requires_grad=True) for x in (a, e))
    out = f(a, e)
    out.sum().backward()
    return [x if x is None else x.detach().numpy() for x in (out, a.grad, e.grad)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tensor_to_the_tensor_within_4_ulp(device, dtype):
    base, exponent = pairs(dtype, device)
    value, of_base, of_exponent = expected(base, exponent, lambda a, e: a**e)
    a, e = Tensor(base, device=device), Tensor(exponent, device=device)
    out = a**e
    da, de = out.sum().gradient(a, e)
    same(out.numpy(), value, dtype, "value", device)
    same(da.numpy(), of_base, dtype, "gradient of the base", device)
    same(de.numpy(), of_exponent, dtype, "gradient of the exponent", device)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tensor_to_a_scalar_within_4_ulp(device, dtype):
    bases = np.array(numbers(dtype, device), dtype)
    for exponent in numbers(dtype, device) + [0.3, -0.3, 1.5, -1.5, 4.0, 7.0, -7.0, 65.0, 64.5]:
        # one by one: where there are enough for its vectors, torch rounds the exponent to float32 first
        value, of_base, _ = expected(bases, bases, lambda a, e, by=exponent: torch.stack([x**by for x in a]))
        if abs(exponent) == DENORMAL[dtype]:  # torch makes e * a^-1 of e / a, and 1 / a overflows
            both = np.abs(bases) == bases.dtype.type(DENORMAL[dtype])
            of_base[both] = bases.dtype.type(exponent) / bases[both]
        a = Tensor(bases, device=device)
        out = a**exponent
        (da,) = out.sum().gradient(a)
        same(out.numpy(), value, dtype, f"x**{exponent}", device)
        same(da.numpy(), of_base, dtype, f"gradient of x**{exponent}", device)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scalar_to_the_tensor_within_4_ulp(device, dtype):
    exponents = np.array(numbers(dtype, device), dtype)
    for base in numbers(dtype, device) + [math.e, 10.0]:
        value, _, of_exponent = expected(exponents, exponents, lambda a, e, x=base: x**e)
        e = Tensor(exponents, device=device)
        out = base**e
        (de,) = out.sum().gradient(e)
        same(out.numpy(), value, dtype, f"{base}**x", device)
        same(de.numpy(), of_exponent, dtype, f"gradient of {base}**x", device)
