"""Scalar evaluation against numpy and struct, bit for bit."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polygrad.dtype import DType, dtypes
from polygrad.uop.alu import convert, evaluate, identity_element, reinterpret, rounded
from polygrad.uop.ops import GroupOp, Ops

INTS = list(dtypes.ints)
NP_FLOATS = [dtypes.float16, dtypes.float32, dtypes.float64]
EDGES = [
    0.0, -0.0, 1.0, -1.0, 0.1, 1.5, -2.5, 65504.0, 65520.0, 3.4e38,
    3.5e38, 1e-45, 6e-8, 1e308, 5e-324, math.inf, -math.inf, math.nan,
]  # fmt: skip
floats = st.floats(width=64) | st.floats(width=32) | st.floats(width=16) | st.sampled_from(EDGES)

INTEGER_OPS = {
    Ops.ADD: np.add, Ops.SUB: np.subtract, Ops.MUL: np.multiply, Ops.IDIV: np.floor_divide, Ops.MOD: np.mod,
    Ops.MAX: np.maximum, Ops.AND: np.bitwise_and, Ops.OR: np.bitwise_or, Ops.XOR: np.bitwise_xor,
    Ops.CMPLT: np.less, Ops.CMPNE: np.not_equal, Ops.CMPEQ: np.equal,
}  # fmt: skip
FLOAT_OPS = {
    Ops.ADD: np.add, Ops.SUB: np.subtract, Ops.MUL: np.multiply, Ops.FDIV: np.divide, Ops.MAX: np.maximum,
    Ops.CMPLT: np.less, Ops.CMPNE: np.not_equal, Ops.CMPEQ: np.equal,
}  # fmt: skip
FLOAT_UNARY = {Ops.NEG: np.negative, Ops.TRUNC: np.trunc, Ops.SQRT: np.sqrt, Ops.RECIPROCAL: np.reciprocal}


def same(a: float, b: float) -> bool:
    return (a != a and b != b) or struct.pack("<d", a) == struct.pack("<d", b)


@given(st.sampled_from(INTS), st.sampled_from(sorted(INTEGER_OPS)), st.data())
def test_integer_ops_are_numpys(dtype: DType, op: Ops, data: st.DataObject) -> None:
    values = st.integers(dtype.min, dtype.max) | st.sampled_from(
        [0, 1, 2, dtype.min, dtype.max, dtype.cast(-1)]
    )
    a, b = data.draw(values), data.draw(values)
    with np.errstate(all="ignore"):
        want = INTEGER_OPS[op](np.array([a], dtype), np.array([b], dtype))[0].item()
    assert evaluate(op, dtype, (a, b)) == want


@given(st.sampled_from(INTS), st.sampled_from([Ops.SHL, Ops.SHR]), st.data())
def test_shifts_are_numpys(dtype: DType, op: Ops, data: st.DataObject) -> None:
    a, b = data.draw(st.integers(dtype.min, dtype.max)), data.draw(st.integers(0, dtype.bits - 1))
    function = np.left_shift if op is Ops.SHL else np.right_shift
    assert evaluate(op, dtype, (a, b)) == function(np.array([a], dtype), np.array([b], dtype))[0].item()


@pytest.mark.parametrize("base", [0.0, -0.0, 1e200, -1e200, -2.5, math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("exponent", [2.0, 3.0, -2.0, -3.0, 1.5, 0.0, math.inf, math.nan])
def test_powers_are_numpys(base: float, exponent: float) -> None:
    with np.errstate(all="ignore"):
        want = np.power(np.float64(base), np.float64(exponent)).item()
    assert same(evaluate(Ops.POW, dtypes.float64, (base, exponent)), want)


def test_shifts_out_of_range_and_ops_of_other_dtypes_have_no_value() -> None:
    assert evaluate(Ops.SHL, dtypes.int32, (1, 32)) is None
    assert evaluate(Ops.SHR, dtypes.int32, (1, -1)) is None
    assert evaluate(Ops.SQRT, dtypes.int32, (4,)) is None
    assert evaluate(Ops.XOR, dtypes.float32, (1.0, 2.0)) is None


@given(st.sampled_from(NP_FLOATS), st.sampled_from(sorted(FLOAT_OPS)), floats, floats)
def test_float_ops_are_numpys_bit_for_bit(dtype: DType, op: Ops, a: float, b: float) -> None:
    with np.errstate(all="ignore"):
        want = FLOAT_OPS[op](np.array([a], dtype), np.array([b], dtype))[0].item()
    got = evaluate(op, dtype, (a, b))
    if op is Ops.MAX and want == 0:  # of zeros of both signs either may win
        assert got == 0
    else:
        assert same(float(got), float(want))


@given(st.sampled_from(NP_FLOATS), st.sampled_from(sorted(FLOAT_UNARY)), floats)
def test_unary_float_ops_are_numpys_bit_for_bit(dtype: DType, op: Ops, a: float) -> None:
    with np.errstate(all="ignore"):
        want = FLOAT_UNARY[op](np.array([a], dtype))[0].item()
    assert same(evaluate(op, dtype, (a,)), want)


@given(st.sampled_from([(Ops.EXP2, np.exp2), (Ops.LOG2, np.log2), (Ops.SIN, np.sin)]), floats)
def test_transcendentals_of_float32_are_numpys_float64_rounded_within_1_ulp(pair, a: float) -> None:  # type: ignore[no-untyped-def]
    op, function = pair
    with np.errstate(all="ignore"):
        want = np.float32(function(np.float64(np.float32(a))))
    got = evaluate(op, dtypes.float32, (a,))
    assert same(got, want.item()) or abs(got - want.item()) <= np.spacing(abs(want)).item()


@given(st.sampled_from(NP_FLOATS), floats)
def test_rounding_is_numpys(dtype: DType, a: float) -> None:
    with np.errstate(all="ignore"):
        assert same(rounded(dtype, a), np.array([a]).astype(dtype)[0].item())


@given(floats)
def test_bfloat16_is_the_nearest_even_upper_half_of_a_float32(a: float) -> None:
    got = rounded(dtypes.bfloat16, a)
    with np.errstate(all="ignore"):
        x = np.float32(a)
    if not np.isfinite(x):
        assert same(got, x.item())
        return
    bits = int(x.view(np.uint32))
    down = np.uint32(bits & 0xFFFF0000).view(np.float32).item()
    up = np.uint32((bits & 0xFFFF0000) + 0x10000).view(np.float32).item()
    lower, tie = bits & 0xFFFF, 0x8000
    want = up if lower > tie or (lower == tie and bits & 0x10000) else down
    assert same(got, want)


@given(st.sampled_from(INTS), st.sampled_from(INTS), st.data())
def test_integer_casts_wrap_as_numpys(src: DType, dst: DType, data: st.DataObject) -> None:
    a = data.draw(st.integers(src.min, src.max))
    assert convert(a, src, dst) == np.array([a], src).astype(dst)[0].item()


@given(st.sampled_from(INTS), st.sampled_from([dtypes.float32, dtypes.float64]), st.data())
def test_integers_become_the_nearest_float(src: DType, dst: DType, data: st.DataObject) -> None:
    a = data.draw(st.integers(src.min, src.max))
    assert same(convert(a, src, dst), np.array([a], src).astype(dst)[0].item())


CASTS = [
    (math.nan, dtypes.float32, dtypes.int32, 0),
    (math.inf, dtypes.float32, dtypes.int8, 127),
    (-math.inf, dtypes.float32, dtypes.uint8, 0),
    (-3.99, dtypes.float32, dtypes.int32, -3),
    (1e20, dtypes.float32, dtypes.uint64, (1 << 64) - 1),
    (math.nan, dtypes.float32, dtypes.bool, True),
    (-0.0, dtypes.float32, dtypes.bool, False),
    (0.1, dtypes.float64, dtypes.float32, 0.10000000149011612),
    (True, dtypes.bool, dtypes.float16, 1.0),
    (256, dtypes.int32, dtypes.bool, True),
    ((1 << 24) + 1, dtypes.int32, dtypes.float32, 16777216.0),
    ((1 << 60) + (1 << 36) + 1, dtypes.int64, dtypes.float32, float((1 << 60) + (1 << 37))),
    (-1, dtypes.index, dtypes.uint8, 255),
    (1 << 40, dtypes.int64, dtypes.index, 1 << 40),
]


@pytest.mark.parametrize(("value", "src", "dst", "expected"), CASTS)
def test_casts(value, src: DType, dst: DType, expected) -> None:  # type: ignore[no-untyped-def]
    got = convert(value, src, dst)
    assert got == expected and type(got) is type(expected)


BITS = [
    (1.0, dtypes.float32, dtypes.uint32, 0x3F800000),
    (-0.0, dtypes.float64, dtypes.int64, -(1 << 63)),
    (255, dtypes.uint8, dtypes.int8, -1),
    (1.0, dtypes.bfloat16, dtypes.uint16, 0x3F80),
    (0x3F80, dtypes.uint16, dtypes.bfloat16, 1.0),
    (0x3C00, dtypes.int16, dtypes.float16, 1.0),
    (1.0, dtypes.float32, dtypes.int64, None),
    (1, dtypes.index, dtypes.int64, None),
]


@pytest.mark.parametrize(("value", "src", "dst", "expected"), BITS)
def test_bitcasts(value, src: DType, dst: DType, expected) -> None:  # type: ignore[no-untyped-def]
    assert reinterpret(value, src, dst) == expected


@pytest.mark.parametrize("op", sorted(GroupOp.Reduce))
@pytest.mark.parametrize("dtype", dtypes.all)
def test_the_identity_element_changes_nothing(op: Ops, dtype: DType) -> None:
    if dtype.is_bool and op is not Ops.MAX:
        pytest.skip("bools are added and multiplied as integers")
    identity = identity_element(op, dtype)
    for x in (dtype.min, dtype.max, 0, 1, dtype.cast(-3)):
        for operands in ([x, identity], [identity, x]):
            assert evaluate(op, dtype, operands) == x
