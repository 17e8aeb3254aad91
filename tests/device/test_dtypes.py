"""Every dtype: stored, loaded, cast to every other, at sizes that fill vectors and sizes that do not."""

from __future__ import annotations

import struct

import pytest
from plain import assert_same, converted, dtypes_of, rounded

from polygrad import Tensor
from polygrad.dtype import dtypes

INF, NAN = float("inf"), float("nan")
INTS = [0, 1, 2, 3, -1, -2, 7, 100, 127, 128, 255, 256, -128, -129, 32767, 32768, 65535, 65536, -32769]
INTS += [2**31 - 1, 2**31, -(2**31), 2**32 - 1, 2**32, 2**63 - 1, -(2**63), 2**64 - 1, 2**52 + 1]
FLOATS = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    0.99,
    -0.99,
    1.5,
    2.5,
    -2.5,
    3.7,
    -3.7,
    127.4,
    128.0,
    255.9,
    256.0,
    -129.0,
]
FLOATS += [
    65503.0,
    65519.0,
    65520.0,
    1e5,
    -1e5,
    2147483647.0,
    2147483648.0,
    -2147483649.0,
    4294967296.0,
    9.3e18,
]
FLOATS += [-9.3e18, 1.9e19, 1e30, -1e30, 1e-7, 6e-8, 2.9e-8, 1e-40, INF, -INF, NAN]


def values(dtype):
    """Elements of `dtype`, its extremes among them."""
    if dtype.is_bool:
        return [False, True, True, False, True]
    if dtype.is_int:
        return [x for x in INTS if dtype.min <= x <= dtype.max] + [dtype.min, dtype.max]
    return [rounded(x, dtype) for x in FLOATS]


@pytest.mark.parametrize("dtype", dtypes.all)
def test_elements_come_back_as_they_went(device, dtype):
    data = values(dtype)
    t = Tensor(data, device=device, dtype=dtype)
    assert t.dtype == dtype and t.device == device
    assert_same(t.tolist(), data)
    assert_same(t.clone().tolist(), data, "through a kernel")


@pytest.mark.parametrize("dtype", dtypes.all)
def test_copies_of_every_length(device, dtype):
    data = values(dtype) * 3
    t = Tensor(data, device=device, dtype=dtype)
    lengths = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33)
    copies = [t[1 : 1 + n].contiguous() for n in lengths]
    copies[0].realize(*copies[1:])
    for n, copy in zip(lengths, copies, strict=True):
        assert_same(copy.tolist(), data[1 : 1 + n], f"length {n}")


@pytest.mark.parametrize("src", dtypes.all)
def test_cast_to_every_dtype(device, src):
    data = values(src)
    t = Tensor(data, device=device, dtype=src)
    targets = dtypes_of(device)
    casts = [t.cast(dst).contiguous() for dst in targets]
    casts[0].realize(*casts[1:])
    for dst, cast in zip(targets, casts, strict=True):
        assert cast.dtype == dst
        known = [(i, converted(x, dst)) for i, x in enumerate(data)]
        got = cast.tolist()
        assert_same([got[i] for i, _ in known], [x for _, x in known], f"{src} to {dst}")


@pytest.mark.parametrize(("src", "dst", "codes"), [
    ("float32", "int32", "fi"), ("int32", "float32", "if"), ("float64", "uint64", "dQ"),
    ("int64", "float64", "qd"),
    ("float16", "uint16", "eH"), ("int16", "float16", "he"), ("int8", "uint8", "bB"), ("uint8", "int8", "Bb"),
])  # fmt: skip
def test_bitcast_keeps_the_bits(device, src, dst, codes):
    if "float64" in (src, dst) and dtypes.float64 not in dtypes_of(device):
        pytest.skip(f"{device} has no float64")
    data = [x for x in values(getattr(dtypes, src)) if x == x]
    raw = struct.pack(f"={len(data)}{codes[0]}", *data)
    t = Tensor(data, device=device, dtype=src).clone().bitcast(dst)
    assert_same(t.tolist(), list(struct.unpack(f"={len(data)}{codes[1]}", raw)))


def test_bool_of_bytes_is_whether_they_are_not_zero(device):
    t = Tensor([0, 1, 2, 255, 128], device=device, dtype="uint8")
    assert t.bool().int().tolist() == [0, 1, 1, 1, 1]
    assert (t.bool() & Tensor([True] * 5, device=device)).tolist() == [False, True, True, True, True]


@pytest.mark.parametrize("dtype", dtypes.all)
def test_constants_of_every_dtype(device, dtype):
    for value in (0, 1, 3, 120):
        expected = converted(value, dtype)
        assert_same(Tensor.full((5,), value, device=device, dtype=dtype).tolist(), [expected] * 5)


def test_an_integer_that_was_a_float_saturates(device):
    x = Tensor([-5, 100], dtype=dtypes.int8, device=device).realize()
    assert x.cast(dtypes.float32).cast(dtypes.uint8).tolist() == [0, 100]
    assert x.cast(dtypes.uint8).tolist() == [251, 100]
