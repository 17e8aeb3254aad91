"""POW, evaluated by numpy over many arguments, against references of higher precision; its cheap forms."""

from __future__ import annotations

import numpy as np
import pytest
from codegen.test_transcendental import FLOATS, HAS_WIDER, REASON, random_bits, ulps
from codegen.vectorised import Array, evaluate

from polygrad.codegen.lower.decompose import decompose
from polygrad.codegen.lower.transcendental.logarithm import log2_magnitude
from polygrad.codegen.lower.transcendental.power import ordinary_power
from polygrad.codegen.target import Target
from polygrad.dtype import DType, dtypes
from polygrad.uop.alu import evaluate as fold
from polygrad.uop.args import Param
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.power import constant_power
from polygrad.uop.rewrite import graph_rewrite

WIDER = {dtypes.float32: np.float64, dtypes.float64: np.longdouble}
EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 3.0, -3.0, 1e-40, 3e38, np.inf, -np.inf, np.nan]


def argument(dtype: DType, slot: int) -> UOp:
    return UOp(Ops.PARAM, dtype, (), Param(slot, 1))


def decomposed(node: UOp, fused: bool = False) -> UOp:
    return graph_rewrite(node, decompose(Target("test", fma=fused, scalar_fma=fused), fused))


def power(dtype: DType, a: Array, e: Array, fused: bool = False) -> Array:
    base, exponent = argument(dtype, 0), argument(dtype, 1)
    graph = decomposed(UOp(Ops.POW, dtype, (base, exponent)), fused)
    return evaluate(graph, {base: a, exponent: e})


def operations(node: UOp) -> set[Ops]:
    return {n.op for n in node.toposort()}


@pytest.mark.skipif(not HAS_WIDER, reason=REASON)
@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
def test_within_2_ulp(dtype: DType, fused: bool) -> None:
    kind, wider, rng = FLOATS[dtype][0], WIDER[dtype], np.random.default_rng(4)
    most = 150 if dtype is dtypes.float32 else 1075
    near_1 = rng.uniform(0.9, 1.1, 200_000).astype(kind)
    a = np.concatenate(
        [np.abs(random_bits(dtype, 200_000)), near_1, rng.uniform(0, 60, 200_000).astype(kind)]
    )
    with np.errstate(all="ignore"):
        e = (rng.uniform(-most, most, a.size) / np.log2(a.astype(wider))).astype(kind)
        expected = a.astype(wider) ** e.astype(wider)
    errors = ulps(power(dtype, a, e, fused), expected)
    worst = errors.argmax()
    assert errors[worst] <= 2, f"{a[worst]!r} ** {e[worst]!r} is {errors[worst]} ulp off"


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
def test_ordinary_powers_have_the_same_bits(dtype: DType, fused: bool) -> None:
    kind, rng = FLOATS[dtype][0], np.random.default_rng(6)
    a = np.concatenate([random_bits(dtype, 100_000), rng.uniform(0, 8, 100_000).astype(kind)])
    e = rng.uniform(-400, 400, a.size).astype(kind)
    base, exponent = argument(dtype, 0), argument(dtype, 1)
    log = log2_magnitude(base, fused)
    values = {base: a, exponent: e}
    got, ordinary = (
        evaluate(decomposed(x, fused), values) for x in ordinary_power(base, exponent, log, fused)
    )
    expected = power(dtype, a, e, fused)
    bits = FLOATS[dtype][1]
    np.testing.assert_array_equal(got[ordinary].view(bits), expected[ordinary].view(bits))
    limits = np.finfo(kind)
    inside = (a >= limits.tiny) & (expected > 16 * limits.tiny) & (expected < limits.max / 16)
    assert ordinary[inside].all() and not ordinary[~(a >= limits.tiny)].any()


@pytest.mark.parametrize("fused", [False, True])
def test_whole_powers_of_whole_numbers_exactly_up_to_2_to_the_23(fused: bool) -> None:
    a, e = (x.ravel() for x in np.meshgrid(np.arange(1, 2897), np.arange(24)))
    small = a.astype(np.float64) ** e <= 2**23
    a, e = a[small].astype(np.float32), e[small].astype(np.float32)
    for sign in (1, -1):
        expected = (sign * a.astype(np.float64)) ** e
        np.testing.assert_array_equal(power(dtypes.float32, sign * a, e, fused), expected)


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_constant_base_or_exponent_makes_no_difference(dtype: DType) -> None:
    kind = FLOATS[dtype][0]
    with np.errstate(over="ignore"):
        edges = np.array([*EDGES, 0.3, -1.7, 100.0], kind)
    one = argument(dtype, 0)
    for x in edges:
        constant, rest = UOp.const(dtype, float(x)), edges
        if abs(x) != 0.5:  # as a constant the square root, which differs at -0.0 and -inf
            by_constant = evaluate(decomposed(UOp(Ops.POW, dtype, (one, constant))), {one: rest})
            expected = power(dtype, rest, np.full_like(rest, x))
            np.testing.assert_allclose(by_constant, expected, rtol=16 * np.finfo(kind).eps, err_msg=str(x))
        of_constant = evaluate(decomposed(UOp(Ops.POW, dtype, (constant, one))), {one: rest})
        np.testing.assert_array_equal(of_constant, power(dtype, np.full_like(rest, x), rest), str(x))


@pytest.mark.parametrize("dtype", FLOATS)
def test_folding_has_the_special_values_of_the_device(dtype: DType) -> None:
    for a in EDGES:
        values = power(dtype, np.full(len(EDGES), a, FLOATS[dtype][0]), np.array(EDGES, FLOATS[dtype][0]))
        folded = [fold(Ops.POW, dtype, (a, e)) for e in EDGES]
        np.testing.assert_allclose(values, folded, rtol=1e-6, atol=1e-44, err_msg=str(a))
        number = ~np.isnan(values)
        np.testing.assert_array_equal(np.signbit(values[number]), np.signbit(np.array(folded)[number]))


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
def test_infinities_and_zeros_to_denormal_exponents_exactly(dtype: DType, fused: bool) -> None:
    kind = FLOATS[dtype][0]
    least = np.finfo(kind).smallest_subnormal
    a = np.array([np.inf, np.inf, 0.0, 0.0, 7.0, np.inf], kind)
    e = np.array([least, -least, least, -least, least, np.finfo(kind).tiny], kind)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(power(dtype, a, e, fused), [np.inf, 0.0, 0.0, np.inf, 1.0, np.inf])
        one = argument(dtype, 0)
        constant = decomposed(UOp(Ops.POW, dtype, (one, UOp.const(dtype, float(least)))), fused)
        np.testing.assert_array_equal(evaluate(constant, {one: a[:1]}), [np.inf])


@pytest.mark.parametrize("exponent", [2.5, -2.0, -3.0, -0.5, 1.5, 63.5, -64.0])
def test_whole_and_half_exponents_take_no_logarithm(exponent: float) -> None:
    x = argument(dtypes.float32, 0)
    found = operations(decomposed(UOp(Ops.POW, dtypes.float32, (x, UOp.const(dtypes.float32, exponent)))))
    assert Ops.SHR not in found and Ops.TRUNC not in found
    assert (Ops.SQRT in found) == (exponent != int(exponent))


@pytest.mark.parametrize("exponent", [0.3, 64.5, 65.0, -100.0, np.inf])
def test_other_exponents_take_a_logarithm(exponent: float) -> None:
    x = argument(dtypes.float32, 0)
    found = operations(decomposed(UOp(Ops.POW, dtypes.float32, (x, UOp.const(dtypes.float32, exponent)))))
    assert Ops.SHR in found and Ops.SQRT not in found


def test_constant_powers_that_are_right_with_their_derivatives_are_taken_apart_in_the_graph() -> None:
    x = argument(dtypes.float32, 0)
    assert constant_power(x, 1.0) is x
    assert constant_power(x, 3.0) is x * (x * x)
    assert constant_power(x, 0.5).op is Ops.SQRT and constant_power(x, -1.0).op is Ops.RECIPROCAL
    for exponent in (0.3, 1.5, -2.0, 65.0, float("nan"), float("inf")):
        assert constant_power(x, exponent).op is Ops.POW
