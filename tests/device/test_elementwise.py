"""Elementwise operations on each dtype, against Python's own arithmetic rounded or wrapped to the dtype."""

from __future__ import annotations

import itertools
import math
from random import Random

import pytest
from plain import assert_equal, assert_same, dtypes_of, rounded, wrapped

from polygrad import Tensor
from polygrad.dtype import dtypes


def corners(dtype):
    """Values of `dtype` whose pairs go around corners."""
    if dtype.is_bool:
        return [False, True]
    if dtype.is_float:
        return [rounded(x, dtype) for x in (0.0, -0.0, 1.0, -1.5, 0.1, 3.25, -7.7, 1e-6, 1000.0, -60000.0)]
    near = [0, 1, 2, 3, 5, 13, 100, dtype.max, dtype.max - 1, dtype.min]
    return near if dtype.is_unsigned else [*near, -1, -2, -7, dtype.min + 1]


def pairs(dtype):
    both = list(itertools.product(corners(dtype), repeat=2))
    return [a for a, _ in both], [b for _, b in both]


def tensors(device, dtype, *columns):
    return [Tensor(c, device=device, dtype=dtype) for c in columns]


def check(results, a, b, hold, compare=assert_same):
    """All of `results` (name -> Tensor, Python function) at once, element by element."""
    outs = [t for t, _ in results.values()]
    outs[0].realize(*outs[1:])
    for name, (out, fn) in results.items():
        compare(out.tolist(), [hold(fn(x, y)) for x, y in zip(a, b, strict=True)], name)


@pytest.mark.parametrize("dtype", dtypes.ints)
def test_integer_arithmetic_wraps(device, dtype):
    a, b = pairs(dtype)
    x, y = tensors(device, dtype, a, b)
    results = {
        "+": (x + y, lambda a, b: a + b),
        "-": (x - y, lambda a, b: a - b),
        "*": (x * y, lambda a, b: a * b),
        "neg": (-x, lambda a, b: -a),
        "maximum": (x.maximum(y), max),
        "minimum": (x.minimum(y), min),
        "abs": (x.abs(), lambda a, b: abs(a)),
        "&": (x & y, lambda a, b: a & b),
        "|": (x | y, lambda a, b: a | b),
        "^": (x ^ y, lambda a, b: a ^ b),
        "~": (~x, lambda a, b: ~a),
        "constant": (x * 3 + 100, lambda a, b: a * 3 + 100),
    }
    check(results, a, b, lambda v: wrapped(v, dtype))


@pytest.mark.parametrize("dtype", dtypes.ints)
def test_floor_division_and_its_remainder(device, dtype):
    a, b = pairs(dtype)
    x, y = tensors(device, dtype, a, b)
    results = {
        "//": (x // y, lambda a, b: a // b if b else 0),
        "%": (x % y, lambda a, b: a % b if b else 0),
        "// 7": (x // 7, lambda a, b: a // 7),
        "% 7": (x % 7, lambda a, b: a % 7),
        "// 8": (x // 8, lambda a, b: a // 8),
        "% 8": (x % 8, lambda a, b: a % 8),
    }
    if not dtype.is_unsigned:
        results["// -3"] = (x // -3, lambda a, b: a // -3)
        results["% -3"] = (x % -3, lambda a, b: a % -3)
        results["// -1"] = (x // -1, lambda a, b: a // -1)
    check(results, a, b, lambda v: wrapped(v, dtype))


@pytest.mark.parametrize("dtype", dtypes.ints)
def test_shifts_by_every_amount(device, dtype):
    shifts = list(range(dtype.bits))
    for value in corners(dtype):
        a = [value] * len(shifts)
        x, s = tensors(device, dtype, a, shifts)
        results = {
            "<<": (x << s, lambda a, b: a << b),
            ">>": (x >> s, lambda a, b: a >> b),
            "<< 3": (x << 3, lambda a, b: a << 3),
            ">> 3": (x >> 3, lambda a, b: a >> 3),
        }
        check(results, a, shifts, lambda v: wrapped(v, dtype))


@pytest.mark.parametrize("dtype", dtypes.floats)
def test_float_arithmetic_is_correctly_rounded(device, dtype):
    a, b = pairs(dtype)
    x, y = tensors(device, dtype, a, b)
    results = {
        "+": (x + y, lambda a, b: a + b),
        "-": (x - y, lambda a, b: a - b),
        "*": (x * y, lambda a, b: a * b),
        "neg": (-x, lambda a, b: -a),
        "trunc": (x.trunc(), lambda a, b: math.copysign(int(a), a)),
        "floor": (x.floor(), lambda a, b: math.copysign(math.floor(a), a)),
    }
    check(results, a, b, lambda v: rounded(v, dtype))
    extremes = {  # the sign of a zero is free here
        "maximum": (x.maximum(y), max),
        "minimum": (x.minimum(y), min),
        "abs": (x.abs(), lambda a, b: abs(a)),
        "relu": (x.relu(), lambda a, b: max(a, 0.0)),
    }
    check(extremes, a, b, lambda v: rounded(v, dtype), compare=assert_equal)


@pytest.mark.parametrize("dtype", dtypes.floats)
def test_division_within_2_ulp(device, dtype):
    a, b = pairs(dtype)
    kept = [(x, y) for x, y in zip(a, b, strict=True) if y and abs(x / y) < 60000 and abs(x / y) > 1e-4]
    a, b = [x for x, _ in kept], [y for _, y in kept]
    x, y = tensors(device, dtype, a, b)
    ulp = {"float16": 2**-11, "bfloat16": 2**-8, "float32": 2**-24, "float64": 2**-53}[dtype]
    for got, p, q in zip((x / y).tolist(), a, b, strict=True):
        assert abs(got - p / q) <= 4 * ulp * abs(p / q), (p, q, got)


@pytest.mark.parametrize("dtype", dtypes.all)
def test_comparisons_give_bools(device, dtype):
    a, b = pairs(dtype)
    if dtype.is_float:
        specials = [float("nan"), float("inf"), float("-inf"), 0.0]
        both = list(itertools.product(specials, repeat=2))
        a, b = a + [p for p, _ in both], b + [q for _, q in both]
    x, y = tensors(device, dtype, a, b)
    results = {
        "<": (x < y, lambda a, b: a < b),
        ">": (x > y, lambda a, b: a > b),
        "<=": (x <= y, lambda a, b: a <= b),
        ">=": (x >= y, lambda a, b: a >= b),
        "==": (x == y, lambda a, b: a == b),
        "!=": (x != y, lambda a, b: a != b),
        "not": (x.logical_not(), lambda a, b: not a),
    }
    assert {str(t.dtype) for t, _ in results.values()} == {"bool"}
    check(results, a, b, bool)


@pytest.mark.parametrize("dtype", dtypes.all)
def test_where_picks_without_mixing(device, dtype):
    a, b = pairs(dtype)
    x, y = tensors(device, dtype, a, b)
    pick = [i % 3 == 0 for i in range(len(a))]
    p = Tensor(pick, device=device)
    expected = [u if c else v for c, u, v in zip(pick, a, b, strict=True)]
    assert_same(p.where(x, y).tolist(), expected)
    assert_same((x < y).where(x, y).tolist(), [u if u < v else v for u, v in zip(a, b, strict=True)])


def test_where_does_not_let_nan_through(device):
    x = Tensor([-1.0, 0.0, 4.0, 9.0], device=device)
    safe = (x > 0).where(x.sqrt(), 0.0)
    assert safe.tolist() == [0.0, 0.0, 2.0, 3.0]


def test_bool_arithmetic(device):
    x, y = tensors(device, "bool", [False, False, True, True], [False, True, False, True])
    assert (x & y).tolist() == [False, False, False, True]
    assert (x | y).tolist() == [False, True, True, True]
    assert (x ^ y).tolist() == [False, True, True, False]
    assert (x + y).tolist() == [False, True, True, True]
    assert (x * y).tolist() == [False, False, False, True]
    assert x.maximum(y).tolist() == [False, True, True, True]


def test_mixed_dtypes_in_one_kernel(device):
    a = list(range(-9, 10))
    bytes_, words = (
        Tensor(a, device=device, dtype="int8"),
        Tensor([x * 1000 for x in a], device=device, dtype="int64"),
    )
    wide = dtypes_of(device)[-1]
    halves, floats = Tensor(a, device=device, dtype="float16"), Tensor(a, device=device, dtype=wide)
    out = (bytes_ > 0).where(words + bytes_, words - 1).cast(wide) + halves * 0.5 + floats
    expected = [(x * 1000 + x if x > 0 else x * 1000 - 1) + x * 0.5 + x for x in a]
    assert_same(out.tolist(), expected)


def test_a_choice_of_what_it_is_compared_with(device, monkeypatch):
    """GCC 12 vectorizes a load on one side of `? :` wrongly: a lane in a hundred."""
    monkeypatch.setenv("NOOPT", "1")
    random = Random(0)
    for _ in range(30):
        rows, others = ([[random.randint(-9, 9) for _ in range(8)] for _ in range(4)] for _ in range(2))
        x, y = (Tensor(r, dtype="float32", device=device).realize() for r in (rows, others))
        got = (x < (x != 0).where(y, x) * 2.0).tolist()
        pairs = (zip(*p, strict=True) for p in zip(rows, others, strict=True))
        assert got == [[a < (b if a else a) * 2 for a, b in p] for p in pairs]
