"""LLVMBuilder, instruction by instruction, against numpy: exact to the bit (any NaN equals any other)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from renderer.llvm_functions import (
    BINARY,
    COUNT,
    FLOATS,
    INTS,
    LANES,
    UNARY,
    builder,
    converted,
    elementwise,
    numpy_type,
    run,
    same,
    samples,
    takes,
)

from polygrad.dtype import DType, dtypes
from polygrad.errors import InternalError
from polygrad.renderer.builder import Address
from polygrad.renderer.llvm.builder import LLVMBuilder
from polygrad.renderer.llvm.compile import host_target
from polygrad.renderer.llvm.x86_products import X86_DOTS
from polygrad.uop.args import Dot
from polygrad.uop.ops import GroupOp, Ops

pytestmark = pytest.mark.usefixtures("verified")

# --- ALU


@pytest.mark.parametrize(
    ("op", "dtype"), [(op, d) for op in UNARY for d in (*INTS, *FLOATS) if takes(op, d)], ids=str
)
def test_unary(op: Ops, dtype: DType) -> None:
    x = samples(dtype, 1)
    with np.errstate(all="ignore"):
        want = UNARY[op](x)
    for lanes in LANES:
        got = elementwise([(dtype, x)], dtype, lanes, lambda b, a, lanes: b.alu(op, dtype, a, lanes))
        same(got, want, dtype)


@pytest.mark.parametrize(
    ("op", "dtype"),
    [(op, d) for op in BINARY for d in (dtypes.bool, *INTS, *FLOATS) if takes(op, d)],
    ids=str,
)
def test_binary(op: Ops, dtype: DType) -> None:
    x, y = samples(dtype, 1), samples(dtype, 2)
    if op in (Ops.IDIV, Ops.MOD):
        y[(y == 0) | (y == np.array(-1).astype(y.dtype))] = 3
    out = dtypes.bool if op in GroupOp.Comparison else dtype
    with np.errstate(all="ignore"):
        want = BINARY[op](x, y)
    for lanes in LANES:
        got = elementwise(
            [(dtype, x), (dtype, y)], out, lanes, lambda b, a, lanes: b.alu(op, dtype, a, lanes)
        )
        same(got, want, out, loose_zero=op is Ops.MAX)


@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_division_by_a_constant_is_floor_division(dtype: DType) -> None:
    x = samples(dtype, 3)
    divisors = [d for d in (1, 2, 3, 7, 8, 10, 64, 100, dtype.max, -2, -3, -8) if dtype.min <= d <= dtype.max]
    for divisor, op, lanes in itertools.product(divisors, (Ops.IDIV, Ops.MOD), (1, 16)):

        def body(b: LLVMBuilder, a: list[str], lanes: int, op: Ops = op, divisor: int = divisor) -> str:
            return b.alu(op, dtype, [*a, b.const(dtype, divisor, lanes)], lanes)

        got = elementwise([(dtype, x)], dtype, lanes, body)
        same(got, BINARY[op](x, x.dtype.type(divisor)), dtype)


@pytest.mark.parametrize("dtype", INTS, ids=str)
@pytest.mark.parametrize("op", [Ops.SHL, Ops.SHR], ids=str)
def test_shifts(op: Ops, dtype: DType) -> None:
    x = samples(dtype, 4)
    amount = (np.arange(COUNT) % dtype.bits).astype(x.dtype)
    want = np.left_shift(x, amount) if op is Ops.SHL else np.right_shift(x, amount)
    for lanes in LANES:
        got = elementwise(
            [(dtype, x), (dtype, amount)], dtype, lanes, lambda b, a, lanes: b.alu(op, dtype, a, lanes)
        )
        same(got, want, dtype)


@pytest.mark.parametrize("dtype", dtypes.all, ids=str)
def test_where(dtype: DType) -> None:
    mask, x, y = samples(dtypes.bool, 5), samples(dtype, 6), samples(dtype, 7)
    for lanes in LANES:
        args = [(dtypes.bool, mask), (dtype, x), (dtype, y)]
        same(
            elementwise(args, dtype, lanes, lambda b, a, lanes: b.alu(Ops.WHERE, dtype, a, lanes)),
            np.where(mask, x, y),
            dtype,
        )


@pytest.mark.parametrize("dtype", dtypes.all, ids=str)
@pytest.mark.parametrize("lanes", [4, 16])
def test_lanes_are_any_elements_of_blocks(dtype: DType, lanes: int) -> None:
    b, x = builder(), samples(dtype, 8)
    orders = [np.random.default_rng(k).integers(0, (k + 1) * lanes, lanes).tolist() for k in range(4)]
    orders += [list(range(lanes))[::-1], [3 * lanes] * lanes]
    (to, source), _ = b.begin("k", [dtype] * 2, [])
    blocks = [b.load_block(Address(source, None, k * lanes + k), dtype, lanes) for k in range(4)]
    for k, order in enumerate(orders):
        b.store(Address(to, None, k * lanes), b.permute(blocks, order, dtype), dtype, lanes)
    got = run(b.finish(), [np.zeros(len(orders) * lanes, x.dtype), x])[0]
    elements = np.concatenate([x[k * lanes + k :][:lanes] for k in range(4)])
    same(got, np.concatenate([elements[order] for order in orders]), dtype)


@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_mulacc_of_integers_wraps(dtype: DType) -> None:
    x, y, z = (samples(dtype, seed) for seed in (1, 2, 3))
    for lanes in LANES:
        args = [(dtype, x), (dtype, y), (dtype, z)]
        same(
            elementwise(args, dtype, lanes, lambda b, a, lanes: b.alu(Ops.MULACC, dtype, a, lanes)),
            x * y + z,
            dtype,
        )


def need(kinds: Dot) -> None:
    if kinds not in host_target().dots:
        pytest.skip(f"this processor has no instruction {X86_DOTS[kinds].name}")


@pytest.mark.parametrize("kinds", [k for k in X86_DOTS if not k.a.is_float], ids=str)
def test_dot_products_are_exact_and_wrap(kinds: Dot) -> None:
    need(kinds)
    rng = np.random.default_rng(3)
    a, b = (
        rng.choice([d.min, d.max, 0, 1, 77], COUNT * kinds.elements).astype(d.name)
        for d in (kinds.a, kinds.b)
    )
    c = rng.integers(-(2**31), 2**31, COUNT).astype(np.int32)
    want = ((a.astype(np.int64) * b).reshape(COUNT, -1).sum(1) + c).astype(np.int32)
    words, sums = dtypes.uint32, dtypes.int32
    args = [(words, a.view(np.uint32)), (words, b.view(np.uint32)), (sums, c)]
    for lanes in LANES:
        got = elementwise(args, sums, lanes, lambda b, a, lanes: b.dot(kinds, a[0], a[1], a[2], lanes))
        same(got, want, sums)


def test_dot_products_of_bfloat16_are_summed_in_float32() -> None:
    kinds = Dot(dtypes.bfloat16, dtypes.bfloat16)
    need(kinds)
    rng = np.random.default_rng(4)
    a, b = (rng.standard_normal(COUNT * 2).astype(np.float32).view(np.uint32) >> 16 for _ in range(2))
    c = rng.standard_normal(COUNT).astype(np.float32)
    x, y = ((v << 16).view(np.float32).astype(np.float64) for v in (a, b))
    args = [(dtypes.uint32, v.astype(np.uint16).view(np.uint32)) for v in (a, b)] + [(dtypes.float32, c)]
    for lanes in LANES:
        got = elementwise(
            args, dtypes.float32, lanes, lambda b, v, lanes: b.dot(kinds, v[0], v[1], v[2], lanes)
        )
        np.testing.assert_allclose(got, (x * y).reshape(COUNT, 2).sum(1) + c, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_mulacc_is_fused_where_the_target_says_so_and_only_there(dtype: DType) -> None:
    step = {dtypes.float32: 2.0**-12, dtypes.float64: 2.0**-27}[dtype]
    x = np.full(COUNT, 1 + step, numpy_type(dtype))
    z = np.full(COUNT, -(1 + 2 * step), numpy_type(dtype))
    for lanes in LANES:
        args = [(dtype, x), (dtype, x), (dtype, z)]
        got = elementwise(args, dtype, lanes, lambda b, a, lanes: b.alu(Ops.MULACC, dtype, a, lanes))
        assert (got == (step * step if host_target().fma else 0.0)).all()
        added = elementwise(
            args,
            dtype,
            lanes,
            lambda b, a, lanes: b.alu(Ops.ADD, dtype, [b.alu(Ops.MUL, dtype, a[:2], lanes), a[2]], lanes),
        )
        assert (added == 0.0).all(), "a multiplication and an addition must stay two roundings"


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("constant", [0.0, -1.5, math.inf, math.nan])
def test_max_with_a_constant_keeps_nan(dtype: DType, constant: float) -> None:
    x = samples(dtype, 8)
    for lanes, swap in itertools.product((1, 16), (False, True)):

        def body(b: LLVMBuilder, a: list[str], lanes: int, swap: bool = swap) -> str:
            pair = [a[0], b.const(dtype, constant, lanes)]
            return b.alu(Ops.MAX, dtype, pair[::-1] if swap else pair, lanes)

        same(
            elementwise([(dtype, x)], dtype, lanes, body), np.maximum(x, x.dtype.type(constant)), dtype, True
        )


def test_an_unknown_op_is_an_internal_error() -> None:
    b = builder()
    b.begin("k", [], [])
    with pytest.raises(InternalError, match="EXP2"):
        b.alu(Ops.EXP2, dtypes.float32, [b.const(dtypes.float32, 1.0, 1)], 1)


# --- constants and lanes


@pytest.mark.parametrize("dtype", dtypes.all, ids=str)
def test_constants(dtype: DType) -> None:
    values = [True, False] if dtype.is_bool else [0, 1, dtype.max, dtype.min]
    if dtype.is_float:
        values = [0.0, -0.0, 1.0, -1.1, math.inf, -math.inf, math.nan, 1e300, 1e-300, 1e-40, 65520.0, 3.3e38]
    for lanes, value in itertools.product(LANES, values):
        b = builder()
        (p,), _ = b.begin("k", [dtype], [])
        b.store(Address(p), b.const(dtype, value, lanes), dtype, lanes)
        source = np.array([value] * lanes, np.float64 if dtype.is_float else numpy_type(dtype))
        want = converted(source, dtypes.float64, dtype) if dtype.is_float else source
        same(run(b.finish(), [np.zeros(lanes, numpy_type(dtype))])[0], want, dtype)


@pytest.mark.parametrize("dtype", dtypes.all, ids=str)
@pytest.mark.parametrize("lanes", LANES)
def test_lanes_constants_splat_extract_and_pack(dtype: DType, lanes: int) -> None:
    x = samples(dtype, 11)[:lanes]
    b = builder()
    (p, q), _ = b.begin("k", [dtype, dtype], [])
    parts = [b.load(Address(q, None, i), dtype, 1) for i in range(lanes)]
    b.store(Address(p), b.pack(parts, dtype), dtype, lanes)
    whole = b.load(Address(q), dtype, lanes)
    backwards = [b.extract(whole, dtype, i, lanes) for i in reversed(range(lanes))]
    b.store(Address(p, None, lanes), b.pack(backwards, dtype), dtype, lanes)
    b.store(Address(p, None, 2 * lanes), b.splat(parts[-1], dtype, lanes), dtype, lanes)
    b.store(Address(p, None, 3 * lanes), b.splat(b.const(dtype, 1, 1), dtype, lanes), dtype, lanes)
    got = run(b.finish(), [np.zeros(4 * lanes, x.dtype), x])[0]
    one = converted(np.ones(lanes), dtypes.float64, dtype) if dtype.is_float else np.ones(lanes, x.dtype)
    want = np.concatenate([x, x[::-1], np.full(lanes, x[-1]), one])
    np.testing.assert_array_equal(got.view(np.uint8), want.view(np.uint8))


def test_lane_constants() -> None:
    for dtype, values in ((dtypes.int32, range(16)), (dtypes.float32, [i / 3 for i in range(16)])):
        b = builder()
        (p,), _ = b.begin("k", [dtype], [])
        b.store(Address(p), b.const_lanes(dtype, list(values)), dtype, 16)
        same(
            run(b.finish(), [np.zeros(16, numpy_type(dtype))])[0],
            np.array(list(values), numpy_type(dtype)),
            dtype,
        )


@pytest.mark.parametrize("dtype", [*INTS, *FLOATS], ids=str)
@pytest.mark.parametrize("op", [Ops.ADD, Ops.MUL, Ops.MAX], ids=str)
def test_reduce_halves_until_one_is_left(op: Ops, dtype: DType) -> None:
    for lanes in (2, 4, 16):
        x = samples(dtype, 12)[:lanes]
        b = builder()
        (p, q), _ = b.begin("k", [dtype, dtype], [])
        b.store(Address(p), b.reduce(op, b.load(Address(q), dtype, lanes), dtype, lanes), dtype, 1)
        want = x
        with np.errstate(all="ignore"):
            while len(want) > 1:
                want = BINARY[op](want[: len(want) // 2], want[len(want) // 2 :])
        same(run(b.finish(), [np.zeros(1, x.dtype), x])[0], want, dtype, loose_zero=op is Ops.MAX)


# --- memory


@pytest.mark.parametrize("dtype", dtypes.all, ids=str)
@pytest.mark.parametrize("lanes", LANES[1:])
def test_masked_load(dtype: DType, lanes: int) -> None:
    x, other, mask = samples(dtype, 13)[:lanes], samples(dtype, 14)[:lanes], samples(dtypes.bool, 15)[:lanes]
    b = builder()
    (p, q, r, m), _ = b.begin("k", [dtype, dtype, dtype, dtypes.bool], [])
    values = b.load(Address(r), dtype, lanes)
    got = b.load_masked(Address(q), dtype, lanes, b.load(Address(m), dtypes.bool, lanes), values)
    b.store(Address(p), got, dtype, lanes)
    far = b.load(Address(m), dtypes.bool, lanes)
    never = b.alu(Ops.XOR, dtypes.bool, [far, far], lanes)
    outside = b.const(dtypes.index, 1 << 44, 1)
    b.store(
        Address(p, None, lanes), b.load_masked(Address(q, outside), dtype, lanes, never, values), dtype, lanes
    )
    out = run(b.finish(), [np.zeros(2 * lanes, x.dtype), x, other, mask])[0]
    np.testing.assert_array_equal(
        out.view(np.uint8), np.concatenate([np.where(mask, x, other), other]).view(np.uint8)
    )


def test_addresses_add_index_and_offset() -> None:
    x = np.arange(64, dtype=np.float32)
    b = builder()
    (p, q), (start,) = b.begin("k", [dtypes.float32] * 2, ["start"])
    f, fixed = dtypes.float32, b.const(dtypes.index, 5, 1)
    for i, (index, offset) in enumerate(
        [(None, 0), (None, 3), (fixed, 0), (fixed, 2), (start, 0), (start, -4)]
    ):
        b.store(Address(p, None, 4 * i), b.load(Address(q, index, offset), f, 4), f, 4)
    got = run(b.finish(), [np.zeros(24, np.float32), x], {"start": 20})[0]
    assert got[::4].tolist() == [0, 3, 5, 7, 20, 16]


# --- loops and registers


def summed(sizes: Sequence[int], symbolic: bool) -> int:
    """Rounds of a nest of loops, counted in a register."""
    b, i64 = builder(), dtypes.int64
    (p,), values = b.begin("k", [i64], [f"n{i}" for i in range(len(sizes))] if symbolic else [])
    count = b.register(i64, 1)
    b.set(count, b.const(i64, 0, 1))
    for i, size in enumerate(sizes):
        b.loop(values[i] if symbolic else b.const(dtypes.index, size, 1))
    b.set(count, b.alu(Ops.ADD, i64, [b.get(count), b.const(i64, 1, 1)], 1))
    for _ in sizes:
        b.end_loop()
    b.store(Address(p), b.get(count), i64, 1)
    variables = {f"n{i}": size for i, size in enumerate(sizes)} if symbolic else {}
    return int(run(b.finish(), [np.full(1, -1)], variables)[0][0])


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize(
    "sizes", [(), (0,), (1,), (7,), (3, 4), (3, 0), (0, 3), (1, 5), (2, 1, 3), (2, 3, 4)]
)
def test_loops_run_as_often_as_they_say(sizes: tuple[int, ...], symbolic: bool) -> None:
    assert summed(sizes, symbolic) == math.prod(sizes)


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("inner_size", [0, 1, 3])
def test_registers_keep_their_values_across_loops(inner_size: int, symbolic: bool) -> None:
    """One register read inside only, one set inside only, one reset by the outer loop, one swapped."""
    b, i64 = builder(), dtypes.int64
    (p,), variables = b.begin("k", [i64], ["n"] if symbolic else [])

    def const(value: int) -> str:
        return b.const(i64, value, 1)

    def add(x: str, y: str) -> str:
        return b.alu(Ops.ADD, i64, [x, y], 1)

    read, last, inner, total, first, second = (b.register(i64, 1) for _ in range(6))
    for register, value in ((read, 10), (last, -1), (total, 0), (first, 1), (second, 2)):
        b.set(register, const(value))
    i = b.loop(b.const(dtypes.index, 4, 1))
    b.set(inner, const(0))
    j = b.loop(variables[0] if symbolic else b.const(dtypes.index, inner_size, 1))
    b.set(inner, add(b.get(inner), add(b.get(read), j)))
    b.set(last, add(b.alu(Ops.MUL, i64, [i, const(100)], 1), j))
    old = b.get(first)
    b.set(first, b.get(second))
    b.set(second, old)
    b.end_loop()
    b.set(total, add(b.get(total), b.get(inner)))
    b.end_loop()
    for at, register in enumerate((read, last, total, first, second)):
        b.store(Address(p, None, at), b.get(register), i64, 1)
    got = run(b.finish(), [np.zeros(5, np.int64)], {"n": inner_size} if symbolic else {})[0].tolist()

    want_last, want_total, pair = -1, 0, (1, 2)
    for x in range(4):
        for y in range(inner_size):
            want_total, want_last, pair = want_total + 10 + y, 100 * x + y, pair[::-1]
    assert got == [10, want_last, want_total, *pair]


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("dtype", dtypes.all, ids=str)
def test_registers_of_every_dtype(dtype: DType, lanes: int) -> None:
    x = samples(dtype, 16)[: 4 * lanes]
    b = builder()
    (p, q), _ = b.begin("k", [dtype, dtype], [])
    register = b.register(dtype, lanes)
    b.set(register, b.const(dtype, 0, lanes))
    i = b.loop(b.const(dtypes.index, 4, 1))
    at = b.alu(Ops.MUL, dtypes.index, [i, b.const(dtypes.index, lanes, 1)], 1)
    b.store(Address(p, at), b.get(register), dtype, lanes)
    b.set(register, b.load(Address(q, at), dtype, lanes))
    b.end_loop()
    got = run(b.finish(), [np.zeros(4 * lanes, x.dtype), x])[0]
    want = np.concatenate([np.zeros(lanes, x.dtype), x[: 3 * lanes]])
    np.testing.assert_array_equal(got.view(np.uint8), want.view(np.uint8))


def test_reading_a_register_never_set_is_an_internal_error() -> None:
    b = builder()
    b.begin("k", [], [])
    with pytest.raises(InternalError, match="register"):
        b.get(b.register(dtypes.int32, 1))


def test_finishing_with_a_loop_open_is_an_internal_error() -> None:
    b = builder()
    b.begin("k", [], [])
    b.loop(b.const(dtypes.index, 2, 1))
    with pytest.raises(InternalError, match="1 loops are still open"):
        b.finish()
