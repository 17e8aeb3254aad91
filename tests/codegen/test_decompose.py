"""Decompositions: for every row a case that fires and one that must not, and values against numpy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from codegen.vectorised import cast, evaluate, numpy_dtype, round_bfloat16

from polygrad.codegen.lower.decompose import decompose
from polygrad.codegen.target import Target
from polygrad.dtype import DType, dtypes
from polygrad.uop.args import AxisKind, Param, Reg
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops
from polygrad.uop.rewrite import graph_rewrite

PLAIN, FMA = Target("test"), Target("test", fma=True)
INTS = (dtypes.index, *dtypes.ints)
HALVES = (dtypes.float16, dtypes.bfloat16)


def variable(dtype: DType, slot: int = 0) -> UOp:
    return UOp(Ops.PARAM, dtype, (), Param(slot, 1))


def lowered(node: UOp, target: Target = PLAIN, optimized: bool = True) -> UOp:
    return graph_rewrite(node, decompose(target, optimized))


def ops(node: UOp) -> list[str]:
    """The names of the operations of `node`, sources first."""
    return [n.op.name for n in node.toposort() if n.op in GroupOp.Elementwise]


def is_unchanged(node: UOp, **kwargs: Any) -> bool:
    return lowered(node, **kwargs) is node


def xy(dtype: DType) -> tuple[UOp, UOp]:
    return variable(dtype, 0), variable(dtype, 1)


def neg(x: UOp) -> UOp:
    return UOp(Ops.NEG, x.dtype, (x,))


def sub(x: UOp, y: UOp) -> UOp:
    return UOp(Ops.SUB, x.dtype, (x, y))


def fdiv(x: UOp, y: UOp) -> UOp:
    return UOp(Ops.FDIV, x.dtype, (x, y))


def reciprocal(x: UOp) -> UOp:
    return UOp(Ops.RECIPROCAL, x.dtype, (x,))


# --- cheaper forms


def test_what_is_chosen_where_a_load_is_not_made_is_its_alternative() -> None:
    memory = UOp(Ops.PARAM, dtypes.float32, (), Param(0, 8))
    made, other = variable(dtypes.bool, 1), variable(dtypes.bool, 2)
    lowest, zero = UOp.const(dtypes.float32, -np.inf), UOp.const(dtypes.float32, 0.0)

    def load(alternative: UOp) -> UOp:
        index = UOp(Ops.INDEX, dtypes.float32, (memory, UOp.index(3), made))
        return UOp(Ops.LOAD, dtypes.float32, (index, alternative))

    assert lowered(made.where(load(zero), lowest)) is load(lowest)
    assert is_unchanged(other.where(load(zero), lowest))
    assert is_unchanged(made.where(load(zero), variable(dtypes.float32, 3)))


@pytest.mark.parametrize("dtype", [*INTS, dtypes.float32, dtypes.float64])
def test_times_minus_one_is_neg(dtype: DType) -> None:
    x = variable(dtype)
    if dtype.is_unsigned:
        assert is_unchanged(x * -1)  # the constant is the greatest one; nothing to gain
    else:
        assert lowered(x * -1) is neg(x)
    assert lowered(x * -3).op is Ops.MUL


@pytest.mark.parametrize("dtype", INTS)
def test_integers_times_a_power_of_two_is_a_shift(dtype: DType) -> None:
    x = variable(dtype)
    for n in range(1, 7):
        assert lowered(x * 2**n) is x << n
    for c in (3, 6, 100, -4):
        assert lowered(x * c).op is Ops.MUL


def test_floats_times_a_power_of_two_is_a_product() -> None:
    assert is_unchanged(variable(dtypes.float32) * 2.0)


@pytest.mark.parametrize("dtype", INTS)
def test_division_by_a_power_of_two_is_a_shift_and_a_mask(dtype: DType) -> None:
    x = variable(dtype)
    assert lowered(x // 8) is x >> 3
    assert lowered(x % 8) is x & 7
    for c in (3, 6, 100):
        assert is_unchanged(x // c) and is_unchanged(x % c)


@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.uint8])
@pytest.mark.parametrize("c", [2, 4, 16, 64])
def test_division_by_a_power_of_two_has_the_values_of_floor_division(dtype: DType, c: int) -> None:
    x = variable(dtype)
    values = np.arange(dtype.min, dtype.max + 1, dtype=numpy_dtype(dtype))
    np.testing.assert_array_equal(evaluate(lowered(x // c), {x: values}), values // values.dtype.type(c))
    np.testing.assert_array_equal(evaluate(lowered(x % c), {x: values}), values % values.dtype.type(c))


@pytest.mark.parametrize("dtype", [dtypes.int32, dtypes.index, dtypes.float32, dtypes.float64])
def test_sums_with_negated_terms_are_differences(dtype: DType) -> None:
    x, y = xy(dtype)
    assert lowered(x + y * -1) is sub(x, y)
    assert lowered(x * -1 + y) is sub(y, x)
    assert lowered(x * -1 + 3) is sub(UOp.const(dtype, 3), x)
    assert is_unchanged(x + y)
    assert is_unchanged(x + -3)


def test_sums_with_negative_powers_of_two_are_differences_of_shifts() -> None:
    x, y = xy(dtypes.index)
    assert lowered(x + y * -4) is sub(x, y << 2)
    assert is_unchanged(x + y * -3)
    a, b = xy(dtypes.float32)
    assert is_unchanged(a + b * -4)


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64])
def test_reciprocals_are_divisions(dtype: DType) -> None:
    x, y = xy(dtype)
    one = UOp.const(dtype, 1)
    assert lowered(reciprocal(x)) is fdiv(one, x)
    # a product with a reciprocal is none: it is rounded twice, as where the reciprocal is in memory
    assert lowered(x * reciprocal(y)) is x * fdiv(one, y)
    assert is_unchanged(x * fdiv(UOp.const(dtype, 2), y))


@pytest.mark.parametrize("op", [Ops.MAX, Ops.SQRT, Ops.TRUNC, Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ])
def test_ops_that_every_target_has_stay(op: Ops) -> None:
    x, y = xy(dtypes.float32)
    assert is_unchanged(x.alu(op) if op in GroupOp.Unary else x.alu(op, y))


def test_bool_operations_stay() -> None:
    x, y = xy(dtypes.bool)
    for node in (x & y, x | y, x ^ y, x.logical_not(), x.where(y, x)):
        assert is_unchanged(node)


# --- fused multiply-add


def register(dtype: DType) -> UOp:
    """What a sum so far is, as a node."""
    reg = UOp(Ops.DEFINE_REG, dtype, (), Reg(0))
    after = UOp(Ops.AFTER, dtype, (reg, UOp.range(4, 0)))
    return UOp(Ops.LOAD, dtype, (UOp(Ops.INDEX, dtype, (after, UOp.index(0))),))


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64])
def test_a_sum_takes_in_a_product_in_one_operation_where_the_target_fuses(dtype: DType) -> None:
    x, y = xy(dtype)
    total = register(dtype)
    assert lowered(total + x * y, FMA) is UOp(Ops.MULACC, dtype, (x, y, total))
    assert is_unchanged(total + x * y, target=PLAIN)
    assert is_unchanged(total + x * y, target=FMA, optimized=False)


def test_multiply_add_stays_two_operations_otherwise() -> None:
    """It rounds alike wherever it is computed, whether its product is in memory there or not."""
    x, y = xy(dtypes.float32)
    assert is_unchanged(x * y + x, target=FMA)
    assert is_unchanged(x * y + x, target=replace(FMA, scalar_fma=True))
    i, j = xy(dtypes.int32)
    assert is_unchanged(i * j + i, target=FMA)


def test_multiply_adds_of_the_tensor_graph_stay_where_scalars_round_as_lanes_do() -> None:
    x, y = xy(dtypes.float32)
    node = UOp(Ops.MULACC, dtypes.float32, (x, y, x))
    assert lowered(node, FMA) is x * y + x
    for target in (PLAIN, replace(FMA, scalar_fma=True)):
        assert is_unchanged(node, target=target)
    total = UOp(Ops.MULACC, dtypes.float32, (x, y, register(dtypes.float32)))
    assert is_unchanged(total, target=FMA)


def test_polynomials_fuse_only_where_scalars_round_as_lanes_do() -> None:
    (x, _) = xy(dtypes.float32)
    assert not any(n.op is Ops.MULACC for n in lowered(UOp(Ops.EXP2, x.dtype, (x,)), FMA).toposort())
    assert any(
        n.op is Ops.MULACC
        for n in lowered(UOp(Ops.EXP2, x.dtype, (x,)), replace(FMA, scalar_fma=True)).toposort()
    )


# --- integer division


@pytest.mark.parametrize(
    "dtype", [dtypes.int8, dtypes.int32, dtypes.int64, dtypes.uint8, dtypes.uint32, dtypes.uint64]
)
@pytest.mark.parametrize("op", [Ops.IDIV, Ops.MOD])
def test_division_by_anything_has_numpys_values_and_divides_by_nothing_bad(dtype: DType, op: Ops) -> None:
    x, y = xy(dtype)
    ends = [dtype.min, dtype.min + 1, dtype.max - 1, dtype.max]
    values = np.array([*ends, *(v for v in range(-9, 10) if v >= dtype.min)], numpy_dtype(dtype))
    inputs = {x: np.repeat(values, len(values)), y: np.tile(values, len(values))}
    out = lowered(UOp(op, dtype, (x, y)))
    divisors = [n.src[1] for n in out.toposort() if n.op is op]
    assert len(divisors) == 1
    assert not np.isin(evaluate(divisors[0], inputs), [0] if dtype.is_unsigned else [0, -1]).any()
    with np.errstate(all="ignore"):
        expected = (np.floor_divide if op is Ops.IDIV else np.remainder)(inputs[x], inputs[y])
    np.testing.assert_array_equal(evaluate(out, inputs), expected)


def test_a_divisor_whose_bounds_exclude_0_and_minus_1_is_not_guarded() -> None:
    x = variable(dtypes.index)
    n = UOp.variable("n", 1, 10)
    assert is_unchanged(x // n) and is_unchanged(x % n)
    assert is_unchanged(x // -3) and is_unchanged(x % -3)
    assert not is_unchanged(x // UOp.variable("n", 0, 10))


def test_a_users_own_selection_is_no_guard() -> None:
    x, y = xy(dtypes.int32)
    divisor = (x < 3).where(UOp.const(dtypes.int32, 1), y)
    assert not is_unchanged(x // divisor)


# --- 16-bit floats


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("op", [Ops.ADD, Ops.MUL, Ops.MAX, Ops.SQRT, Ops.RECIPROCAL, Ops.TRUNC])
def test_16_bit_arithmetic_is_float32_arithmetic_rounded_every_time(dtype: DType, op: Ops) -> None:
    x, y = xy(dtype)
    out = lowered(x.alu(op) if op in GroupOp.Unary else x.alu(op, y))
    for n in out.toposort():
        assert n.dtype is not dtype or n.op in (Ops.PARAM, Ops.CAST)
    generator = np.random.default_rng(0)
    a, b = (cast(generator.normal(0, 100, 1000), dtypes.float64, dtype) for _ in range(2))
    wide = [v.astype(np.float32) for v in (a, b)]
    with np.errstate(all="ignore"):
        expected = {
            Ops.ADD: lambda: wide[0] + wide[1], Ops.MUL: lambda: wide[0] * wide[1],
            Ops.MAX: lambda: np.maximum(*wide), Ops.SQRT: lambda: np.sqrt(wide[0]),
            Ops.TRUNC: lambda: np.trunc(wide[0]), Ops.RECIPROCAL: lambda: np.float32(1) / wide[0],
        }[op]()  # fmt: skip
    np.testing.assert_array_equal(evaluate(out, {x: a, y: b}), cast(expected, dtypes.float32, dtype))


@pytest.mark.parametrize("dtype", HALVES)
def test_16_bit_chains_round_between_operations(dtype: DType) -> None:
    x, y = xy(dtype)
    assert ops(lowered(x * y + y)) == ["CAST", "CAST", "MUL", "CAST", "CAST", "ADD", "CAST"]


@pytest.mark.parametrize("dtype", HALVES)
def test_16_bit_comparisons_are_float32s(dtype: DType) -> None:
    x, y = xy(dtype)
    assert ops(lowered(x < y)) == ["CAST", "CAST", "CMPLT"]
    assert ops(lowered(x < 0.5)) == ["CAST", "CMPLT"]
    assert lowered(x < 0.1).src[1].arg != 0.1  # a constant is rounded first


@pytest.mark.parametrize("dtype", HALVES)
def test_16_bit_selections_and_casts_stay(dtype: DType) -> None:
    x, y = xy(dtype)
    condition = variable(dtypes.bool, 2)
    for node in (
        condition.where(x, y),
        x.cast(dtypes.float32),
        x.cast(dtypes.int32),
        x.bitcast(dtypes.uint16),
    ):
        assert is_unchanged(node)


def test_reductions_that_a_tile_leaves_are_float32s() -> None:
    x = variable(dtypes.float16)
    lane = UOp.range(4, 0, AxisKind.LANE)
    reduced = UOp(Ops.REDUCE, dtypes.float16, (x, lane), Ops.MAX)
    wide = UOp(Ops.REDUCE, dtypes.float32, (x.cast(dtypes.float32), lane), Ops.MAX)
    assert lowered(reduced) is wide.cast(dtypes.float16)


def test_large_integers_become_bfloat16_with_one_rounding() -> None:
    n = variable(dtypes.int32)
    values = np.array([(1 << 24) + (1 << 16) + 1, 123456789, -5], np.int32)
    out = evaluate(lowered(n.cast(dtypes.bfloat16)), {n: values})
    assert out[0] == (1 << 24) + (1 << 17)  # above the middle by less than float32 sees
    np.testing.assert_array_equal(out[1:], round_bfloat16(values[1:].astype(np.float32)))
    small = variable(dtypes.int16)
    assert is_unchanged(small.cast(dtypes.bfloat16))


# --- what must be gone


@pytest.mark.parametrize("dtype", dtypes.floats)
@pytest.mark.parametrize("op", [Ops.EXP2, Ops.LOG2, Ops.SIN])
def test_transcendentals_become_operations_that_every_builder_has(dtype: DType, op: Ops) -> None:
    left = {n.op for n in lowered(UOp(op, dtype, (variable(dtype),))).toposort()}
    assert left <= {
        Ops.PARAM, Ops.CONST, Ops.CAST, Ops.BITCAST, Ops.ADD, Ops.SUB, Ops.MUL, Ops.FDIV, Ops.SHL, Ops.SHR,
        Ops.AND, Ops.OR, Ops.XOR, Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ, Ops.WHERE,
    }  # fmt: skip


def test_a_second_pass_changes_nothing() -> None:
    x, y = xy(dtypes.float32)
    i, j = xy(dtypes.int32)
    for node in (x.alu(Ops.SIN) * reciprocal(y), i // j, (i % j) * 4 + j * -1, x.cast(dtypes.float16) * 3.0):
        once = lowered(node, FMA)
        assert lowered(once, FMA) is once
