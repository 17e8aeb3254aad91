"""Rounding to float dtypes: once, to nearest even. INTERP's arithmetic of fractions is the judge."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from polygrad.dtype import DType, as_double, dtypes, float_from_bits, float_to_bits, rounded
from polygrad.runtime.interp_scalar import round_float

HALVES = (dtypes.float16, dtypes.bfloat16)
NARROW = (*HALVES, dtypes.float32)
DIGITS = {dtypes.float16: 11, dtypes.bfloat16: 8, dtypes.float32: 24}


def near_midpoints(dtype: DType) -> list[float]:
    """Doubles at, just above and just below what lies between two numbers of `dtype`, and ends of ranges."""
    out = [0.0, -0.0, math.inf, -math.inf, 65504.0, 65519.99, 65520.0, 1e300, 5e-324, 2.0**-25, 2.0**-134]
    rng = random.Random(str(dtype))
    for _ in range(3000):
        x = (1 + rng.getrandbits(DIGITS[dtype]) * 2.0 ** -DIGITS[dtype]) * 2.0 ** rng.randint(-150, 128)
        out += [x, math.nextafter(x, 0), math.nextafter(x, math.inf)]
        out += [x * (1 + 2.0**-30), x * (1 - 2.0**-30), rng.uniform(-1, 1) * 2.0 ** rng.randint(-160, 130)]
    return out + [-x for x in out]


@pytest.mark.parametrize("dtype", NARROW)
def test_floats_round_once_to_nearest_even(dtype: DType) -> None:
    for x in near_midpoints(dtype):
        got, want = rounded(dtype, x), round_float(dtype, x)
        assert got == want and math.copysign(1, got) == math.copysign(1, want), (x.hex(), got, want)


@pytest.mark.parametrize("dtype", NARROW)
def test_long_integers_round_once(dtype: DType) -> None:
    rng = random.Random(7)
    for _ in range(3000):
        size = rng.randint(DIGITS[dtype] + 2, 100)
        n = (1 << size) + (1 << (size - DIGITS[dtype])) + rng.choice((-1, 0, 1))
        for x in (n, -n, rng.getrandbits(size)):
            assert rounded(dtype, x) == round_float(dtype, x), x


@pytest.mark.parametrize("dtype", (*NARROW, dtypes.float64))
def test_integers_beyond_every_float_are_infinite(dtype: DType) -> None:
    assert rounded(dtype, 10**400) == dtype.cast(10**400) == as_double(10**400) == math.inf
    assert rounded(dtype, -(10**400)) == -math.inf


@pytest.mark.parametrize("dtype", HALVES)
def test_every_pattern_of_bits_is_its_own_rounding(dtype: DType) -> None:
    for bits in range(1 << 16):
        x = float_from_bits(dtype, bits)
        if x == x:
            assert float_to_bits(dtype, x) == bits
        else:
            assert float_to_bits(dtype, x) & 0x7FFF > (0x7C00 if dtype is dtypes.float16 else 0x7F80)


def test_float16_is_numpys() -> None:
    x = np.array(near_midpoints(dtypes.float16))
    with np.errstate(over="ignore"):
        want = x.astype(np.float16)
    np.testing.assert_array_equal([rounded(dtypes.float16, v) for v in x.tolist()], want)


@pytest.mark.parametrize("dtype", (dtypes.float16, dtypes.float32, dtypes.float64))
def test_the_parameters_of_float_formats_are_numpys(dtype: DType) -> None:
    info = np.finfo(dtype.name)
    assert (dtype.significand, dtype.smallest_normal) == (info.nmant + 1, float(info.smallest_normal))


def test_the_parameters_of_bfloat16() -> None:
    assert (dtypes.bfloat16.significand, dtypes.bfloat16.smallest_normal) == (8, 2.0**-126)
