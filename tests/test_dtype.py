"""Rounding to float dtypes: once, to nearest even. INTERP's arithmetic of fractions is the judge."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import numpy as np
import pytest
import torch

from polygrad import Tensor
from polygrad.dtype import (
    DType,
    as_double,
    dtypes,
    float_from_bits,
    float_to_bits,
    promote,
    rounded,
    to_dtype,
)
from polygrad.errors import DTypeError
from polygrad.runtime.interp.scalar import round_float

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


# --- what can be asked of dtypes


@pytest.mark.parametrize("dtype", dtypes.floats)
def test_limits_of_floats_are_numpys_and_torchs(dtype: DType) -> None:
    info, theirs = dtypes.finfo(dtype), torch.finfo(getattr(torch, dtype.name))
    assert (info.bits, info.eps, info.max, info.min) == (theirs.bits, theirs.eps, theirs.max, theirs.min)
    assert info.tiny == info.smallest_normal == theirs.tiny and dtypes.finfo(dtype.name) == info
    if dtype is not dtypes.bfloat16:
        own = np.finfo(dtype.name)
        assert (info.nmant, info.nexp) == (own.nmant, own.iexp)
        assert info.smallest_subnormal == float(own.smallest_subnormal)
    assert rounded(dtype, info.max) == info.max and rounded(dtype, 1 + info.eps) == 1 + info.eps
    assert rounded(dtype, info.smallest_subnormal) == info.smallest_subnormal > 0


@pytest.mark.parametrize("dtype", dtypes.ints)
def test_limits_of_integers_are_numpys(dtype: DType) -> None:
    info, theirs = dtypes.iinfo(dtype), np.iinfo(dtype.name)
    assert (info.bits, info.min, info.max) == (theirs.bits, theirs.min, theirs.max)
    assert (info.min, info.max, info.bits) == (dtype.min, dtype.max, dtype.bitsize)


def test_kinds_of_dtypes() -> None:
    kinds = {d: np.dtype(d.name).kind for d in dtypes.all if d is not dtypes.bfloat16}
    for d, kind in kinds.items():
        assert dtypes.is_float(d) is dtypes.is_float(d.name) is (kind == "f")
        assert dtypes.is_int(d) is (kind in "iu") and dtypes.is_unsigned(d) is (kind == "u")
        assert dtypes.is_bool(d) is (kind == "b")
    assert dtypes.uints + dtypes.sints != dtypes.ints
    assert set(dtypes.uints) | set(dtypes.sints) == set(dtypes.ints)
    assert {d for d, k in kinds.items() if k == "u"} == set(dtypes.uints)
    assert set(dtypes.floats) | set(dtypes.ints) | {dtypes.bool} == set(dtypes.all)


def test_the_least_dtype_above_others() -> None:
    assert dtypes.least_upper_dtype("int8", dtypes.uint8) is dtypes.int16
    assert dtypes.least_upper_dtype("float16", "bfloat16", "bool") is dtypes.float32
    for bad in ((), ("index",), ("complex64",), (3,)):
        with pytest.raises(DTypeError, match="expected"):
            dtypes.least_upper_dtype(*bad)


@pytest.mark.parametrize("ask", [dtypes.finfo, dtypes.iinfo])
@pytest.mark.parametrize("bad", ["bool", "index", "void", "float31", None])
def test_limits_of_other_dtypes_are_refused(ask: Callable[[object], object], bad: object) -> None:
    with pytest.raises(DTypeError, match="expected"):
        ask(bad)
    with pytest.raises(DTypeError, match="use finfo"):
        dtypes.iinfo("float32")
    with pytest.raises(DTypeError, match="use iinfo"):
        dtypes.finfo("int8")


WEAK = (True, 1, 1.5)


@pytest.mark.parametrize("dtype", [d for d in dtypes.all if d is not dtypes.bfloat16])
@pytest.mark.parametrize("scalar", WEAK, ids=str)
def test_python_scalars_are_weak_as_in_numpy_2(dtype: DType, scalar: float) -> None:
    """An array's dtype stays unless the scalar is of a higher kind, which gives the default of that kind (of
    numpy int64 and float64, here int32 and float32)."""
    defaults = {"int64": "int32", "float64": "float32"}
    want = np.result_type(np.dtype(dtype.name), scalar).name
    want = want if want == dtype else defaults.get(want, want)
    for got in (Tensor([1], dtype=dtype) + scalar, scalar + Tensor([1], dtype=dtype)):
        assert got.dtype == want


@pytest.mark.parametrize("dtype", dtypes.ints)
def test_integers_beyond_a_dtype_overflow_as_in_numpy_2(dtype: DType) -> None:
    for n in (dtype.max + 1, dtype.min - 1):
        with pytest.raises(OverflowError):
            np.zeros(1, dtype.name) + n
        with pytest.raises(OverflowError, match=f"{dtype}.*got {n}"):
            Tensor([0], dtype=dtype) + n
    assert (Tensor([0], dtype=dtype) + dtype.max).item() == dtype.max


@pytest.mark.parametrize("name", ["int8", "int16", "int32", "int64"])
def test_uint64_and_signed_integers_are_numpys_float64(name: str) -> None:
    assert promote(dtypes.uint64, to_dtype(name)) is dtypes.float64
    assert np.promote_types("uint64", name) == "float64"
    assert promote(dtypes.uint64, to_dtype(name), dtypes.float16) is dtypes.float16


def test_no_integers_become_a_float_that_cannot_hold_them() -> None:
    for a in dtypes.ints:
        for b in dtypes.ints:
            assert str(promote(a, b)) == str(np.promote_types(str(a), str(b)))
