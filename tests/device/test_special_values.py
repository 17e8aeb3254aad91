"""The functions of real numbers where they are awkward: signed zeros, infinities, NaN, denormals, huge
arguments."""

from __future__ import annotations

import math
import random
import struct

import pytest
from plain import assert_equal, assert_same, keeps_denormals, rounded

from polygrad import Tensor
from polygrad.dtype import dtypes

INF, NAN = math.inf, math.nan
FLOATS = (dtypes.float32, dtypes.float64)


def _ordered(x, dtype):
    """`x` as an integer such that neighbours differ by 1."""
    code, width = ("<f", 32) if dtype == "float32" else ("<d", 64)
    bits = int.from_bytes(struct.pack(code, x), "little")
    return -(bits & ((1 << (width - 1)) - 1)) if bits >> (width - 1) else bits


def _ulps(got, expected, dtype):
    if got != got or expected != expected:
        return 0 if got != got and expected != expected else INF
    return abs(_ordered(got, dtype) - _ordered(rounded(expected, dtype), dtype))


def _random_floats(dtype, lo, hi, count):
    rng = random.Random(count)
    return [rounded(rng.uniform(lo, hi), dtype) for _ in range(count)]


def _apply(name, xs, device, dtype):
    return getattr(Tensor(xs, device=device, dtype=dtype), name)().tolist()


def _within(name, fn, xs, device, dtype, most):
    if not keeps_denormals(device, dtype):
        xs = [x for x in xs if _is_normal(x, dtype) and _is_normal(fn(x), dtype)]
    for x, got in zip(xs, _apply(name, xs, device, dtype), strict=True):
        expected = fn(x)
        assert _ulps(got, expected, dtype) <= most, f"{name}({x!r}): expected {expected!r}, got {got!r}"


def _is_normal(x, dtype):
    return x == 0 or abs(x) >= (2.0**-126 if dtype == "float32" else 2.0**-1022)


def exp2(x):
    try:
        return 2.0**x
    except OverflowError:
        return INF


@pytest.mark.parametrize("dtype", FLOATS)
def test_exact_cases(device, dtype):
    tiny = 2.0**-149 if dtype == "float32" else 5e-324
    if not keeps_denormals(device, dtype):
        tiny = 2.0**-126
    cases = {
        "exp2": [
            (0.0, 1.0),
            (-0.0, 1.0),
            (INF, INF),
            (-INF, 0.0),
            (3.0, 8.0),
            (-1.0, 0.5),
            (5000.0, INF),
            (-5000.0, 0.0),
        ],
        "log2": [
            (0.0, -INF),
            (-0.0, -INF),
            (INF, INF),
            (1.0, 0.0),
            (8.0, 3.0),
            (tiny, math.log2(tiny)),
            (0.5, -1.0),
        ],
        "sin": [(0.0, 0.0), (-0.0, -0.0), (tiny, tiny), (-tiny, -tiny)],
        "sqrt": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (4.0, 2.0)],
        "reciprocal": [(INF, 0.0), (-INF, -0.0), (0.0, INF), (-0.0, -INF), (4.0, 0.25), (-0.5, -2.0)],
        "trunc": [
            (INF, INF),
            (-INF, -INF),
            (0.0, 0.0),
            (-0.0, -0.0),
            (-0.7, -0.0),
            (0.7, 0.0),
            (2.0**66, 2.0**66),
        ],
    }
    for name, table in cases.items():
        xs = [rounded(x, dtype) for x, _ in table]
        assert_same(_apply(name, xs, device, dtype), [y for _, y in table], name)
    for name, xs in {
        "exp2": [NAN],
        "log2": [NAN, -1.0, -INF],
        "sin": [NAN, INF, -INF],
        "sqrt": [NAN, -1.0, -INF],
    }.items():
        assert_same(_apply(name, xs, device, dtype), [NAN] * len(xs), name)


@pytest.mark.parametrize("dtype", FLOATS)
def test_exp2_within_2_ulp(device, dtype):
    top, bottom = (127.999, -149.0) if dtype == "float32" else (1023.999, -1074.0)
    xs = _random_floats(dtype, bottom, top, 200) + _random_floats(dtype, -1, 1, 100)
    _within("exp2", exp2, xs, device, dtype, 2 if dtype == "float32" else 3)


@pytest.mark.parametrize("dtype", FLOATS)
def test_log2_within_2_ulp(device, dtype):
    exponents = (-149, 127) if dtype == "float32" else (-1074, 1023)
    xs = [rounded(2.0**e, dtype) for e in _random_floats(dtypes.float64, *exponents, 200)]
    xs += _random_floats(dtype, 0.5, 2.0, 100)
    _within("log2", math.log2, xs, device, dtype, 2 if dtype == "float32" else 3)


@pytest.mark.parametrize("dtype", FLOATS)
def test_sin_within_2_ulp(device, dtype):
    xs = _random_floats(dtype, -7, 7, 150) + _random_floats(dtype, -1e5, 1e5, 100)
    xs += [rounded(x, dtype) for x in (1e-30, 1e10, 3e15, 1e22, 1e30, -1e38, math.pi, 2 * math.pi, 355.0)]
    if dtype == "float64":
        xs += [1e300, -1.7e308, 5e-324]
    _within("sin", math.sin, xs, device, dtype, 2 if dtype == "float32" else 3)


@pytest.mark.parametrize("dtype", FLOATS)
def test_sqrt_is_correctly_rounded(device, dtype):
    xs = [abs(x) for x in _random_floats(dtype, 0, 1e30, 50)] + [
        rounded(x, dtype) for x in (1e-45, 1e-40, 2.0, 3.0)
    ]
    _within("sqrt", math.sqrt, xs, device, dtype, 0)


@pytest.mark.parametrize("dtype", (dtypes.float16, dtypes.bfloat16))
def test_narrow_floats_are_computed_wide_and_rounded_within_1_ulp(device, dtype):
    xs = [rounded(x, dtype) for x in _random_floats(dtype, -8, 8, 60)]
    step = 2.0**-10 if dtype == "float16" else 2.0**-7
    for name, fn in (("exp2", exp2), ("sin", math.sin)):
        for x, got in zip(xs, _apply(name, xs, device, dtype), strict=True):
            expected = rounded(fn(x), dtype)
            assert abs(got - expected) <= step * abs(expected), (name, x, got, expected)


def test_float16_overflows_to_infinity_and_keeps_denormals(device):
    x = Tensor([60000.0, 40000.0, 6e-8, 1e-7], device=device, dtype="float16")
    assert_same(
        (x + x).tolist(),
        [INF, INF, *(rounded(2 * rounded(v, dtypes.float16), dtypes.float16) for v in (6e-8, 1e-7))],
    )


@pytest.mark.parametrize("dtype", dtypes.floats)
def test_max_propagates_nan(device, dtype):
    x = Tensor([[1.0, NAN, 3.0], [NAN, 1.0, 2.0], [5.0, INF, -INF]], device=device, dtype=dtype)
    assert_same(x.max(axis=1).tolist(), [NAN, NAN, INF])
    assert_same(x[0].maximum(x[2]).tolist(), [5.0, NAN, 3.0])
    assert_same(x[2].maximum(x[0]).tolist(), [5.0, NAN, 3.0])
    assert_same(x.min(axis=1).tolist(), [NAN, NAN, -INF])


@pytest.mark.parametrize("dtype", FLOATS)
def test_denormals_are_not_flushed(device, dtype):
    if not keeps_denormals(device, dtype):
        pytest.skip("this adapter flushes denormal numbers, as WebGPU allows")
    tiny = 2.0**-149 if dtype == "float32" else 5e-324
    x = Tensor([tiny, 3 * tiny, -tiny], device=device, dtype=dtype)
    assert_same((x + x).tolist(), [2 * tiny, 6 * tiny, -2 * tiny])
    assert (x > 0).tolist() == [True, True, False]


def test_signed_zeros_through_arithmetic(device):
    x = Tensor([0.0, -0.0, 1.0], device=device)
    assert_same((x * -1).tolist(), [-0.0, 0.0, -1.0])
    assert_same((-x).tolist(), [-0.0, 0.0, -1.0])
    assert_same((x + -0.0).tolist(), [0.0, -0.0, 1.0])
    assert_equal((x + 0.0).tolist(), [0.0, 0.0, 1.0])  # the compiler takes x + 0 for x
    y = Tensor([0.0, 0.0, 1.0], device=device)
    assert_same((x + y).tolist(), [0.0, 0.0, 2.0])
    assert_same((x * y).tolist(), [0.0, -0.0, 1.0])


def test_infinities_through_arithmetic(device):
    x = Tensor([INF, -INF, 0.0, NAN], device=device)
    assert_same((x * 0).tolist(), [NAN, NAN, 0.0, NAN])
    assert_same((x - x).tolist(), [NAN, NAN, 0.0, NAN])
    assert x.isnan().tolist() == [False, False, False, True]
    assert x.isinf().tolist() == [True, True, False, False]
    assert (x == x).tolist() == [True, True, True, False]
    assert (x != x).tolist() == [False, False, False, True]
