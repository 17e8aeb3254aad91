"""exp2, log2 and sin, evaluated by numpy over many arguments, against references of higher precision."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from codegen.vectorised import Array, evaluate, round_bfloat16

from polygrad.codegen.lower.decompose import decompose
from polygrad.codegen.lower.transcendental.sine import is_far
from polygrad.codegen.target import Target
from polygrad.dtype import DType, dtypes
from polygrad.uop.args import Exponent, Magnitude, Param
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.rewrite import graph_rewrite

OPS = {"exp2": Ops.EXP2, "log2": Ops.LOG2, "sin": Ops.SIN}
REFERENCE: dict[str, Callable[[Array], Array]] = {"exp2": np.exp2, "log2": np.log2, "sin": np.sin}
FLOATS = {dtypes.float32: (np.float32, np.uint32), dtypes.float64: (np.float64, np.uint64)}
HAS_WIDER = np.finfo(np.longdouble).nmant > 52
REASON = "numpy's longdouble is float64 on this machine: no reference is more precise"


def compute(name: str, dtype: DType, x: Array, fused: bool = False) -> Array:
    """What the decomposition of one op gives for `x`; with `fused`, on a target with fused multiply-add."""
    argument = UOp(Ops.PARAM, dtype, (), Param(0, 1))
    table = decompose(Target("test", fma=fused, scalar_fma=fused), fused)
    return evaluate(graph_rewrite(UOp(OPS[name], dtype, (argument,)), table), {argument: x})


def reference(name: str, x: Array) -> Array:
    with np.errstate(all="ignore"):
        return REFERENCE[name](x.astype(np.float64 if x.dtype == np.float32 else np.longdouble))


def ulps(actual: Array, expected: Array) -> Array:
    """The distance in units of `expected`'s last place in `actual`'s dtype; equal infinities are 0 apart."""
    with np.errstate(all="ignore"):
        rounded = expected.astype(actual.dtype)
        unit = np.spacing(np.minimum(np.abs(rounded), np.finfo(actual.dtype).max)).astype(expected.dtype)
        distance = np.abs(actual.astype(expected.dtype) - expected) / unit
    same = (actual == rounded) | (np.isnan(actual) & np.isnan(expected))
    return np.where(same, 0, np.where(np.isnan(distance), np.inf, distance))


def assert_within(limit: float, name: str, x: Array, actual: Array) -> None:
    errors = ulps(actual, reference(name, x))
    worst = errors.argmax()
    assert errors[worst] <= limit, f"{name}({x[worst]!r}) = {actual[worst]!r}, {errors[worst]} ulp off"


def specials(dtype: DType) -> Array:
    """Every kind of float: zeros, infinities, NaN, denormals, ends of ranges, halves, powers of 2."""
    kind, bits = FLOATS[dtype]
    info = np.finfo(kind)
    powers = np.ldexp(1.0, np.arange(info.minexp - info.nmant, info.maxexp)).astype(kind)
    steps = np.arange(-1100, 1100, 0.5).astype(kind)
    positive = np.concatenate([
        np.array([0, np.inf, np.nan, info.max, info.tiny, info.smallest_subnormal, np.pi, 22.0 / 7], kind),
        powers, *(np.nextafter(powers, kind(end)) for end in (0, np.inf)), steps,
        *(np.nextafter(steps, kind(end)) for end in (-np.inf, np.inf)),
        np.arange(1, 1000).astype(bits).view(kind),  # denormals
        (np.arange(1, 2000) * (np.pi / 2)).astype(kind), (np.arange(1, 2000) * 1e15 * np.pi).astype(kind),
    ])  # fmt: skip
    return np.concatenate([positive, -positive])


def random_bits(dtype: DType, count: int) -> Array:
    kind, bits = FLOATS[dtype]
    generator = np.random.default_rng(1)
    return generator.integers(0, np.iinfo(bits).max, count, dtype=bits, endpoint=True).view(kind)


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("name", OPS)
def test_float32_within_2_ulp(name: str, fused: bool) -> None:
    generator = np.random.default_rng(2)
    uniform = [generator.uniform(-a, a, 300_000).astype(np.float32) for a in (1, 4, 160)]
    x = np.concatenate([specials(dtypes.float32), random_bits(dtypes.float32, 1_000_000), *uniform])
    assert_within(2, name, x, compute(name, dtypes.float32, x, fused))


@pytest.mark.skipif(not HAS_WIDER, reason=REASON)
@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("name", OPS)
def test_float64_within_2_ulp(name: str, fused: bool) -> None:
    generator = np.random.default_rng(3)
    uniform = [generator.uniform(-a, a, 50_000) for a in (1, 4, 1100)]
    x = np.concatenate([specials(dtypes.float64), random_bits(dtypes.float64, 100_000), *uniform])
    assert_within(2, name, x, compute(name, dtypes.float64, x, fused))


# 2^(x c), and the range of x
PRODUCTS = {
    "exp": (1 / math.log(2), 90.0),
    "exp of -x": (-1 / math.log(2), 90.0),
    "exp of 2x": (2 / math.log(2), 45.0),
    "10^x": (math.log2(10), 38.0),
    "by 3/4": (0.75, 170.0),
    "by 2": (2.0, 64.0),
}


def exact(c: float) -> Array:
    """c as a longdouble, of more digits where it is a multiple of log2 e."""
    log2_e = np.longdouble(1) / np.log(np.longdouble(2))
    ratio = np.longdouble(c) / log2_e
    return log2_e * np.round(ratio) if abs(ratio - np.round(ratio)) < 1e-15 else np.longdouble(c)


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", PRODUCTS)
def test_exp2_of_a_product_within_2_ulp(name: str, dtype: DType, fused: bool) -> None:
    """Where nothing fuses, the optimised form, too: Cody and Waite's reduction."""
    if dtype is dtypes.float64 and not HAS_WIDER:
        pytest.skip(REASON)
    c, reach = PRODUCTS[name]
    generator = np.random.default_rng(4)
    kind, _ = FLOATS[dtype]
    reach = reach if dtype is dtypes.float32 else 8 * reach
    x = np.concatenate([generator.uniform(-a, a, 100_000).astype(kind) for a in (1, reach)])
    argument = UOp(Ops.PARAM, dtype, (), Param(0, 1))
    table = decompose(Target("test", fma=fused, scalar_fma=fused), True)
    root = UOp(Ops.EXP2, dtype, (argument * c,), Exponent.SCALED)
    with np.errstate(all="ignore"):
        got = evaluate(graph_rewrite(root, table), {argument: x})
        want = np.exp2(x.astype(np.longdouble) * exact(c))
    errors = ulps(got, want)
    assert errors.max() <= 2, (x[errors.argmax()], errors.max())
    ends = np.array([np.inf, -np.inf, np.nan, 1e30, -1e30, 0.0, -0.0], kind)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(
            evaluate(graph_rewrite(root, table), {argument: ends}), np.exp2(ends * kind(c))
        )


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", PRODUCTS)
def test_exp2_of_a_nonpositive_product_has_the_bits_of_any_product(
    name: str, dtype: DType, fused: bool
) -> None:
    """Subnormal results, 0 and NaN, too; in fewer operations, unless the product itself is exact."""
    c, reach = PRODUCTS[name]
    generator = np.random.default_rng(5)
    kind, _ = FLOATS[dtype]
    reach = reach if dtype is dtypes.float32 else 8 * reach
    magnitudes = [generator.uniform(0, a, 100_000).astype(kind) for a in (1, reach, 2 * reach)]
    ends = np.array([0.0, 1e-30, 1e30, np.inf, np.nan, np.finfo(kind).tiny, np.finfo(kind).max], kind)
    x = np.concatenate([*magnitudes, ends]) * kind(-math.copysign(1.0, c))
    argument = UOp(Ops.PARAM, dtype, (), Param(0, 1))
    table = decompose(Target("test", fma=fused, scalar_fma=fused), True)
    forms = [
        graph_rewrite(UOp(Ops.EXP2, dtype, (argument * c,), fact), table)
        for fact in (Exponent.SCALED, Exponent.NONPOSITIVE)
    ]
    any_product, nonpositive = forms
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(
            evaluate(nonpositive, {argument: x}), evaluate(any_product, {argument: x})
        )
    if math.frexp(c)[0] != 0.5:
        assert len(nonpositive.toposort()) < len(any_product.toposort())


def test_log2_of_every_float32_from_half_to_two_within_2_ulp() -> None:
    ends = np.array([0.5, 2.0], np.float32).view(np.int32)
    for start in range(ends[0], ends[1], 1 << 22):
        x = np.arange(start, start + (1 << 22), dtype=np.int32).view(np.float32)
        assert_within(2, "log2", x, compute("log2", dtypes.float32, x))


def test_sin_of_every_float32_in_one_far_binade_within_2_ulp() -> None:
    x = np.arange(1 << 23, dtype=np.int32)[::3] | np.array(2.0**100, np.float32).view(np.int32)
    assert_within(2, "sin", x.view(np.float32), compute("sin", dtypes.float32, x.view(np.float32)))


def near_sin(dtype: DType, x: Array, fused: bool) -> Array:
    """The sine with the short reduction, of those arguments that it is for."""
    argument = UOp(Ops.PARAM, dtype, (), Param(0, 1))
    assert not evaluate(is_far(argument, fused), {argument: x}).any()
    sine = UOp(Ops.SIN, dtype, (argument,), Magnitude.NEAR)
    table = decompose(Target("test", fma=fused, scalar_fma=fused))
    return evaluate(graph_rewrite(sine, table), {argument: x})


@pytest.mark.parametrize("fused", [False, True])
def test_the_short_sine_of_float32_within_2_ulp(fused: bool) -> None:
    """Numbers up to where it ends, more of the last binade, and all that are next to multiples of pi/2."""
    end = 4096.0 if fused else 512.0
    bits = [int(np.array(v, np.float32).view(np.int32)) for v in (1e-8, end / 2, end)]
    turns = (np.arange(1, int(end / 1.6)) * (np.pi / 2)).astype(np.float32)
    near_turns = [(turns.view(np.int32) + i).view(np.float32) for i in range(-3, 4)]
    for part in (np.arange(bits[0], bits[1], 331, np.int32), np.arange(bits[1], bits[2], 7, np.int32)):
        x = np.concatenate([part.view(np.float32), *near_turns, np.zeros(1, np.float32)])
        assert_within(2, "sin", x, near_sin(dtypes.float32, x, fused))
        assert_within(2, "sin", -x, near_sin(dtypes.float32, -x, fused))


@pytest.mark.skipif(not HAS_WIDER, reason=REASON)
def test_the_short_sine_of_float64_within_2_ulp() -> None:
    """Not fused: numpy has no float that holds a product of two float64."""
    generator = np.random.default_rng(4)
    turns = np.concatenate([np.arange(1, 5000), generator.integers(1, 2**19, 20_000)]) * (np.pi / 2)
    x = np.concatenate([turns, *(generator.uniform(-a, a, 50_000) for a in (1, 100, 2.0**20))])
    assert_within(2, "sin", x, near_sin(dtypes.float64, x, False))


def test_the_short_sine_of_zeros_and_nan() -> None:
    for fused in (False, True):
        got = near_sin(dtypes.float32, np.array([0.0, -0.0, np.nan, np.inf], np.float32), fused)
        np.testing.assert_array_equal(got, np.array([0.0, -0.0, np.nan, np.nan], np.float32))
        assert np.signbit(got[:2]).tolist() == [False, True]


# Significand and exponent of arguments nearest to multiples of pi/2 (by continued fractions), and the sine
HARDEST = [
    (dtypes.float32, 16367173, 73, -3.229539596495242371e-09),
    (dtypes.float32, 10741887, 12, -4.025292063837105138e-09),
    (dtypes.float32, 16367173, 72, 1.0),
    (dtypes.float64, 6381956970095103, 798, -9.374331848509255222e-19),
    (dtypes.float64, 6411027962775774, -46, -1.237961273176715400e-18),
    (dtypes.float64, 7763785107565477, -28, 3.397007659797200759e-18),
    (dtypes.float64, 6381956970095103, 797, 1.0),
]


@pytest.mark.parametrize(("dtype", "significand", "exponent", "expected"), HARDEST)
def test_sin_nearest_to_multiples_of_half_pi_within_2_ulp(
    dtype: DType, significand: int, exponent: int, expected: float
) -> None:
    argument = np.array([math.ldexp(significand, exponent)], FLOATS[dtype][0])
    actual = compute("sin", dtype, argument)
    assert abs(float(actual[0]) - expected) <= 2 * np.spacing(abs(FLOATS[dtype][0](expected)))


SPECIAL_VALUES: dict[str, list[tuple[float, float]]] = {
    "exp2": [
        (np.inf, np.inf), (-np.inf, 0.0), (np.nan, np.nan), (0.0, 1.0), (-0.0, 1.0), (1e-310, 1.0),
        (-1.0, 0.5), (1e300, np.inf), (-1e300, 0.0),
    ],
    "log2": [
        (np.inf, np.inf), (-np.inf, np.nan), (np.nan, np.nan), (0.0, -np.inf), (-0.0, -np.inf), (1.0, 0.0),
        (-1.0, np.nan), (-1e-40, np.nan), (2.0, 1.0), (0.25, -2.0), (2.0**-149, -149.0),
    ],
    "sin": [
        (np.inf, np.nan), (-np.inf, np.nan), (np.nan, np.nan), (0.0, 0.0), (-0.0, -0.0), (1e-40, 1e-40),
        (-1e-40, -1e-40),
    ],
}  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", OPS)
def test_special_values_exactly(name: str, dtype: DType) -> None:
    kind: Any = FLOATS[dtype][0]
    with np.errstate(all="ignore"):
        x, expected = (np.array(column).astype(kind) for column in zip(*SPECIAL_VALUES[name], strict=True))
    actual = compute(name, dtype, x)
    np.testing.assert_array_equal(actual, expected)
    signs = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(actual[signs]), np.signbit(expected[signs]))


@pytest.mark.parametrize(
    ("dtype", "powers"), [(dtypes.float32, (-149, 128)), (dtypes.float64, (-1074, 1024))]
)
def test_whole_powers_exactly_down_to_the_last_denormal(dtype: DType, powers: tuple[int, int]) -> None:
    kind = FLOATS[dtype][0]
    n = np.arange(*powers).astype(kind)
    x = np.ldexp(kind(1), n.astype(np.int32))
    np.testing.assert_array_equal(compute("exp2", dtype, n), x)
    np.testing.assert_array_equal(compute("log2", dtype, x), n)


@pytest.mark.parametrize("name", OPS)
def test_every_float16_within_1_ulp(name: str) -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    actual = compute(name, dtypes.float16, x)
    assert actual.dtype == np.float16
    assert ulps(actual, reference(name, x.astype(np.float32))).max() <= 1


@pytest.mark.parametrize("name", OPS)
def test_every_bfloat16_is_the_rounded_float32(name: str) -> None:
    x = (np.arange(1 << 16, dtype=np.uint32) << 16).view(np.float32)
    expected = round_bfloat16(compute(name, dtypes.float32, x))
    np.testing.assert_array_equal(compute(name, dtypes.bfloat16, x), expected)
