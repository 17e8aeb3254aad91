"""CBuilder, operation by operation, against numpy: exact to the bit (any NaN equals any other)."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from c_compiler import has_c_compiler, needs_c_compiler
from renderer.c_functions import LANES, Functions
from renderer.llvm_functions import (
    BINARY,
    COUNT,
    FLOATS,
    INTS,
    UNARY,
    converted,
    numpy_type,
    samples,
    takes,
)

from polygrad.codegen.target import Target
from polygrad.dtype import DType, dtypes
from polygrad.errors import CompileError, InternalError
from polygrad.renderer.builder import Address
from polygrad.renderer.cstyle.c import CBuilder
from polygrad.renderer.cstyle.c_compile import compile_c, host_has_half
from polygrad.uop.ops import GroupOp, Ops

pytestmark = needs_c_compiler


@pytest.mark.parametrize("dtype", [dtypes.bool, *INTS, *FLOATS], ids=str)
def test_arithmetic(dtype: DType) -> None:
    f, x, y, z = Functions(), samples(dtype, 1), samples(dtype, 2), samples(dtype, 3)
    divisor = y.copy()
    if dtype.is_int:
        divisor[(y == 0) | (y == np.array(-1).astype(y.dtype))] = 3
    with np.errstate(all="ignore"):
        for op in UNARY if not dtype.is_bool else ():
            if takes(op, dtype):
                f.elementwise(
                    f"{op}", [(dtype, x)], UNARY[op](x), dtype, lambda b, a, n, op=op: b.alu(op, dtype, a, n)
                )
        for op in BINARY:
            if takes(op, dtype):
                other = divisor if op in (Ops.IDIV, Ops.MOD) else y
                out = dtypes.bool if op in GroupOp.Comparison else dtype
                f.elementwise(
                    f"{op}",
                    [(dtype, x), (dtype, other)],
                    BINARY[op](x, other),
                    out,
                    lambda b, a, n, op=op: b.alu(op, dtype, a, n),
                    loose_zero=op is Ops.MAX,
                )
        if dtype.is_int:
            args = [(dtype, x), (dtype, y), (dtype, z)]
            f.elementwise("MULACC", args, x * y + z, dtype, lambda b, a, n: b.alu(Ops.MULACC, dtype, a, n))
    f.check()


@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_division_by_constants_and_shifts(dtype: DType) -> None:
    f, x = Functions(), samples(dtype, 3)
    divisors = [d for d in (1, 2, 3, 7, 8, 100, dtype.max, -2, -3) if dtype.min <= d <= dtype.max]
    for divisor, op in itertools.product(divisors, (Ops.IDIV, Ops.MOD)):

        def body(b: CBuilder, a: list[Any], n: int, op: Ops = op, divisor: int = divisor) -> Any:
            return b.alu(op, dtype, [*a, b.const(dtype, divisor, n)], n)

        want = BINARY[op](x, x.dtype.type(divisor))
        f.elementwise(f"{op} {divisor}", [(dtype, x)], want, dtype, body)
    amount = (np.arange(COUNT) % dtype.bits).astype(x.dtype)
    for op, shift in ((Ops.SHL, np.left_shift), (Ops.SHR, np.right_shift)):
        args = [(dtype, x), (dtype, amount)]
        f.elementwise(f"{op}", args, shift(x, amount), dtype, lambda b, a, n, op=op: b.alu(op, dtype, a, n))
    f.check()


@pytest.mark.parametrize("dtype", dtypes.all, ids=str)
def test_selection_and_lanes(dtype: DType) -> None:
    f = Functions()
    mask, x, y = samples(dtypes.bool, 5), samples(dtype, 6), samples(dtype, 7)
    args = [(dtypes.bool, mask), (dtype, x), (dtype, y)]
    f.elementwise("WHERE", args, np.where(mask, x, y), dtype, lambda b, a, n: b.alu(Ops.WHERE, dtype, a, n))
    for lanes in LANES:
        b, values = f.builder(), x[:lanes]
        (p, q), _ = b.begin(f.name, [dtype, dtype], [])
        parts = [b.load(Address(q, None, i), dtype, 1) for i in range(lanes)]
        b.store(Address(p), b.pack(parts, dtype), dtype, lanes)
        whole = b.load(Address(q), dtype, lanes)
        backwards = [b.extract(whole, dtype, i, lanes) for i in reversed(range(lanes))]
        b.store(Address(p, None, lanes), b.pack(backwards, dtype), dtype, lanes)
        b.store(Address(p, None, 2 * lanes), b.splat(parts[-1], dtype, lanes), dtype, lanes)
        want = np.concatenate([values, values[::-1], np.full(lanes, values[-1])])
        f.add("pack, extract, splat", b.finish(), [np.zeros(3 * lanes, x.dtype), values], want, dtype)
    for lanes in (4, 16):
        orders = [np.random.default_rng(k).integers(0, (k + 1) * lanes, lanes).tolist() for k in range(4)]
        orders += [list(range(lanes))[::-1], [3 * lanes] * lanes]
        b = f.builder()
        (p, q), _ = b.begin(f.name, [dtype] * 2, [])
        blocks = [b.load_block(Address(q, None, k * lanes + k), dtype, lanes) for k in range(4)]
        for k, order in enumerate(orders):
            b.store(Address(p, None, k * lanes), b.permute(blocks, order, dtype), dtype, lanes)
        first, second = (b.load(Address(q, None, k * lanes), dtype, lanes) for k in range(2))
        low, high = b.interleave(first, second, dtype, lanes)
        b.store(Address(p, None, len(orders) * lanes), low, dtype, lanes)
        b.store(Address(p, None, (len(orders) + 1) * lanes), high, dtype, lanes)
        elements = np.concatenate([x[k * lanes + k :][:lanes] for k in range(4)])
        zipped = np.stack([x[:lanes], x[lanes : 2 * lanes]], 1).reshape(-1)
        want = np.concatenate([elements[order] for order in orders] + [zipped])
        f.add("permute, interleave", b.finish(), [np.zeros(len(want), x.dtype), x], want, dtype)
    f.check()


@pytest.mark.parametrize("dtype", dtypes.all, ids=str)
def test_masked_loads_read_nothing_where_the_mask_is_false(dtype: DType) -> None:
    f, x, other, mask = Functions(), samples(dtype, 13), samples(dtype, 14), samples(dtypes.bool, 15)
    for lanes in LANES[1:]:
        b = f.builder()
        (p, q, r, m), _ = b.begin(f.name, [dtype, dtype, dtype, dtypes.bool], [])
        values, some = b.load(Address(r), dtype, lanes), b.load(Address(m), dtypes.bool, lanes)
        b.store(Address(p), b.load_masked(Address(q), dtype, lanes, some, values), dtype, lanes)
        none = b.alu(Ops.XOR, dtypes.bool, [some, some], lanes)
        outside = b.const(dtypes.index, 1 << 44, 1)
        b.store(
            Address(p, None, lanes),
            b.load_masked(Address(q, outside), dtype, lanes, none, values),
            dtype,
            lanes,
        )
        want = np.concatenate([np.where(mask, x, other)[:lanes], other[:lanes]])
        f.add("masked", b.finish(), [np.zeros(2 * lanes, x.dtype), x, other, mask], want, dtype)
    f.check()


@pytest.mark.parametrize("dtype", dtypes.all, ids=str)
def test_constants(dtype: DType) -> None:
    f = Functions()
    values: list[Any] = [True, False] if dtype.is_bool else [0, 1, dtype.max, dtype.min, dtype.max - 1]
    if dtype.is_float:
        values = [0.0, -0.0, 1.0, -1.1, math.inf, -math.inf, math.nan, 1e300, 1e-300, 1e-40, 65520.0, 3.3e38]
        values += [0.1, 1 / 3, 16777217.0, 5e-324, 1.4e-45, 3.4028234663852886e38]
    for lanes, value in itertools.product(LANES, values):
        b = f.builder()
        (p,), _ = b.begin(f.name, [dtype], [])
        b.store(Address(p), b.const(dtype, value, lanes), dtype, lanes)
        source = np.array([value] * lanes, np.float64 if dtype.is_float else numpy_type(dtype))
        want = converted(source, dtypes.float64, dtype) if dtype.is_float else source
        f.add(f"{value}", b.finish(), [np.zeros(lanes, numpy_type(dtype))], want, dtype)
    f.check()


@pytest.mark.parametrize("dtype", [dtypes.bool, *INTS, *FLOATS], ids=str)
def test_reduce_halves_until_one_is_left(dtype: DType) -> None:
    f = Functions()
    for lanes, op in itertools.product((2, 4, 16), (Ops.ADD, Ops.MUL, Ops.MAX)):
        want = x = samples(dtype, 12)[:lanes]
        b = f.builder()
        (p, q), _ = b.begin(f.name, [dtype, dtype], [])
        b.store(Address(p), b.reduce(op, b.load(Address(q), dtype, lanes), dtype, lanes), dtype, 1)
        with np.errstate(all="ignore"):
            while len(want) > 1:
                want = BINARY[op](want[: len(want) // 2], want[len(want) // 2 :])
        f.add(f"{op}", b.finish(), [np.zeros(1, x.dtype), x], want, dtype, op is Ops.MAX)
    f.check()


@pytest.mark.parametrize("native", [True, False] if has_c_compiler() and host_has_half() else [False])
@pytest.mark.parametrize("src", dtypes.all, ids=str)
def test_cast(src: DType, native: bool) -> None:
    f, x = Functions(native_half=native), samples(src, 9)
    for dst in dtypes.all:
        f.elementwise(
            f"{src} to {dst}",
            [(src, x)],
            converted(x, src, dst),
            dst,
            lambda b, a, n, dst=dst: b.cast(a[0], src, dst, n),
        )
        if src.itemsize == dst.itemsize and not src.is_bool and not dst.is_bool:
            f.elementwise(
                f"bits of {src} as {dst}",
                [(src, x)],
                x.view(numpy_type(dst)),
                dst,
                lambda b, a, n, dst=dst: b.bitcast(a[0], src, dst, n),
            )
    f.check()


@pytest.mark.parametrize("native", [True, False] if has_c_compiler() and host_has_half() else [False])
def test_every_float16_converts_both_ways_and_rounds_once(native: bool) -> None:
    f, f16 = Functions(native_half=native), dtypes.float16
    every = np.arange(65536, dtype=np.uint16).view(np.float16)
    half = every[:0x7C00].astype(np.float64)
    ties = np.concatenate(
        [(half[:-1] + half[1:]) / 2, [65519.99, 65520.0, 65536.0, 1e30, 2.0**-25, 2.0**-26]]
    )
    nearby = np.concatenate([ties, np.nextafter(ties, 0), np.nextafter(ties, 1e9), ties * (1 + 2.0**-23)])
    for dtype in FLOATS:
        wide = every.astype(numpy_type(dtype))
        f.elementwise("wide", [(f16, every)], wide, dtype, lambda b, a, n, d=dtype: b.cast(a[0], f16, d, n))
        x = np.concatenate([wide, *(s * nearby.astype(numpy_type(dtype)) for s in (1, -1))])
        x = np.resize(x, -(-len(x) // 16) * 16)
        with np.errstate(over="ignore"):
            want = x.astype(np.float16)
        f.elementwise("narrow", [(dtype, x)], want, f16, lambda b, a, n, d=dtype: b.cast(a[0], d, f16, n))
    f.check()


@pytest.mark.parametrize("fused", [True, False])
def test_mulacc_is_fused_where_the_target_says_so_and_only_there(fused: bool) -> None:
    f = Functions(Target("CC", 64, 32, fma=fused))
    for dtype, step in ((dtypes.float32, 2.0**-12), (dtypes.float64, 2.0**-27)):
        x, z = (np.full(COUNT, v, numpy_type(dtype)) for v in (1 + step, -(1 + 2 * step)))
        args = [(dtype, x), (dtype, x), (dtype, z)]
        want = np.full(COUNT, step * step if fused else 0.0, numpy_type(dtype))
        f.elementwise("MULACC", args, want, dtype, lambda b, a, n, d=dtype: b.alu(Ops.MULACC, d, a, n))
        f.elementwise(
            "a multiplication and an addition are two roundings",
            args,
            np.zeros_like(x),
            dtype,
            lambda b, a, n, d=dtype: b.alu(Ops.ADD, d, [b.alu(Ops.MUL, d, a[:2], n), a[2]], n),
        )
    f.check()


def test_a_register_is_read_before_it_is_written() -> None:
    """Two registers that swap their values in each round."""
    f, i64 = Functions(), dtypes.int64
    b = f.builder()
    (p,), _ = b.begin(f.name, [i64], [])
    first, second = b.register(i64, 1), b.register(i64, 1)
    b.set(first, b.const(i64, 1, 1))
    b.set(second, b.const(i64, 2, 1))
    b.loop(b.const(dtypes.index, 3, 1))
    x, y = b.get(first), b.get(second)
    b.set(first, y)
    b.set(second, x)
    b.end_loop()
    b.store(Address(p), b.get(first), i64, 1)
    b.store(Address(p, None, 1), b.get(second), i64, 1)
    f.add("swapped", b.finish(), [np.zeros(2, np.int64)], np.array([2, 1]), i64)
    f.check()


def test_a_load_stays_before_a_store_to_the_same_place() -> None:
    f, i64 = Functions(), dtypes.int64
    b = f.builder()
    (p,), _ = b.begin(f.name, [i64], [])
    old = b.load(Address(p), i64, 1)
    b.store(Address(p), b.const(i64, 5, 1), i64, 1)
    b.store(Address(p, None, 1), old, i64, 1)
    f.add("in order", b.finish(), [np.array([7, 0])], np.array([5, 7]), i64)
    f.check()


def test_an_unknown_op_and_an_open_loop_are_internal_errors() -> None:
    b = CBuilder(Target("CC"))
    b.begin("k", [], [])
    with pytest.raises(InternalError, match="EXP2"):
        b.alu(Ops.EXP2, dtypes.float32, [b.const(dtypes.float32, 1.0, 1)], 1)
    b.loop(b.const(dtypes.index, 3, 1))
    with pytest.raises(InternalError, match="a block is still open"):
        b.finish()


def test_a_compile_error_says_the_line() -> None:
    with pytest.raises(CompileError, match=r"(?s)undeclared.*line 2: return y;"):
        compile_c("int f(void) {\n  return y;\n}\n")
