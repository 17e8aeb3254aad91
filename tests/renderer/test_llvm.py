"""LLVMBuilder, instruction by instruction, against numpy: exact to the bit (any NaN equals any other)."""

from __future__ import annotations

import itertools
import math
import re
import threading
from collections.abc import Callable, Sequence

import llvmlite.binding as llvm
import numpy as np
import pytest

from polygrad.codegen.target import Target
from polygrad.dtype import DType, dtypes
from polygrad.errors import CompileError, InternalError
from polygrad.renderer.llvm import LLVMBuilder
from polygrad.renderer.llvm_compile import (
    _make_target_machine,
    compile_ir,
    host_has_half,
    host_target,
    submit,
)
from polygrad.runtime.cpu import CPURuntime
from polygrad.runtime.program import Binding, BufferSpec, Kernel, Launch, Program
from polygrad.uop.ops import GroupOp, Ops

LANES = (1, 4, 16)
COUNT = 96  # elements per operand: a multiple of every number of lanes
INTS, FLOATS = dtypes.ints, (dtypes.float32, dtypes.float64)
RUNTIME = CPURuntime()


@pytest.fixture(autouse=True)
def verified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLYGRAD_VERIFY", "1")


def builder(native_half: bool = host_has_half()) -> LLVMBuilder:
    return LLVMBuilder(host_target(), native_half)


def numpy_type(dtype: DType) -> np.dtype:
    return np.dtype("int64" if dtype == "index" else "uint16" if dtype == "bfloat16" else dtype.name)


def run(text: str, arrays: Sequence[np.ndarray], variables: dict[str, int] | None = None) -> list[np.ndarray]:
    """Run the function `k` of a module on copies of `arrays`; what is in them afterwards."""
    names = tuple(variables or ())
    specs = tuple(BufferSpec(a.nbytes, "uint8", "state") for a in arrays)
    launch = Launch(0, tuple(Binding(i) for i in range(len(arrays))))
    program = Program(
        "CPU",
        "",
        specs,
        (Kernel("k", compile_ir(text), len(arrays), names, language="object", writes=(0,)),),
        (launch,),
    )
    handles = [RUNTIME.allocate(max(a.nbytes, 1)) for a in arrays]
    for handle, array in zip(handles, arrays, strict=True):
        RUNTIME.write(handle, 0, memoryview(np.ascontiguousarray(array)).cast("B"))
    RUNTIME.load(program).run(handles, None, variables or {})
    out = [np.frombuffer(RUNTIME.read(h, 0, a.nbytes), a.dtype) for h, a in zip(handles, arrays, strict=True)]
    for handle in handles:
        RUNTIME.free(handle)
    return out


def elementwise(
    args: Sequence[tuple[DType, np.ndarray]],
    out: DType,
    lanes: int,
    body: Callable[[LLVMBuilder, list[str], int], str],
    native_half: bool = host_has_half(),
) -> np.ndarray:
    """`body(builder, operands, lanes)` over whole arrays, `lanes` elements a round."""
    b, n = builder(native_half), len(args[0][1])
    (result, *operands), _ = b.begin("k", [out, *(d for d, _ in args)], [])
    i = b.loop(b.const(dtypes.index, n // lanes, 1))
    at = b.alu(Ops.MUL, dtypes.index, [i, b.const(dtypes.index, lanes, 1)], 1)
    loaded = [b.load(p, at, 0, d, lanes) for p, (d, _) in zip(operands, args, strict=True)]
    b.store(result, at, 0, body(b, loaded, lanes), out, lanes)
    b.end_loop()
    return run(b.finish(), [np.zeros(n, numpy_type(out)), *(a for _, a in args)])[0]


def same(got: np.ndarray, want: np.ndarray, dtype: DType, loose_zero: bool = False) -> None:
    assert got.dtype == want.dtype
    if dtype == dtypes.bfloat16:
        got, want = bfloat_to_float(got), bfloat_to_float(want)
    if dtype.is_float:
        nan = np.isnan(want)
        np.testing.assert_array_equal(np.isnan(got), nan)
        got, want = got[~nan], want[~nan]
        if loose_zero:
            got, want = got + 0.0, want + 0.0
        np.testing.assert_array_equal(np.signbit(got), np.signbit(want))
    np.testing.assert_array_equal(got, want)


def bfloat_to_float(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def samples(dtype: DType, seed: int, count: int = COUNT) -> np.ndarray:
    """The edges of a dtype, then random values, shuffled."""
    rng = np.random.default_rng(seed)
    if dtype.is_bool:
        return rng.integers(0, 2, count).astype(bool)
    if dtype.is_float:
        single = numpy_type(dtype) if dtype in FLOATS else np.dtype("float32")
        tiny = np.finfo(single).smallest_subnormal
        edges = [
            0.0,
            -0.0,
            math.inf,
            -math.inf,
            math.nan,
            1.0,
            -1.0,
            0.5,
            1.5,
            -2.5,
            tiny,
            -tiny,
            3e9,
            -3e9,
            127.9,
        ]
        edges += [
            2.0**31,
            2.0**63,
            2.0**64,
            -(2.0**31),
            -(2.0**63),
            255.5,
            -0.9,
            65504.0,
            65520.0,
            2.0**-24,
            1e-7,
        ]
        values = np.concatenate(
            [np.array(edges, single), rng.normal(0, 100, count - len(edges)).astype(single)]
        )
        rng.shuffle(values)
        if dtype == dtypes.bfloat16:
            return (values.view(np.uint32) >> 16).astype(np.uint16)
        with np.errstate(over="ignore"):
            return values.astype(numpy_type(dtype))
    edges = [dtype.min, dtype.max, 0, 1, dtype.max // 2, dtype.max - 1, 2, 7]
    values = [
        int(x) for x in rng.integers(dtype.min, dtype.max, count - 40, dtype=numpy_type(dtype), endpoint=True)
    ]
    small = [int(x) for x in rng.integers(max(dtype.min, -20), 20, 32)]
    out = np.array(edges + values + small, numpy_type(dtype))
    rng.shuffle(out)
    return out


# --- ALU

UNARY = {
    Ops.SQRT: np.sqrt, Ops.RECIPROCAL: lambda x: np.ones_like(x) / x,
    Ops.NEG: np.negative, Ops.TRUNC: np.trunc,
}  # fmt: skip
BINARY = {
    Ops.ADD: np.add, Ops.SUB: np.subtract, Ops.MUL: np.multiply, Ops.FDIV: np.divide, Ops.MAX: np.maximum,
    Ops.IDIV: np.floor_divide, Ops.MOD: np.remainder, Ops.AND: np.bitwise_and, Ops.OR: np.bitwise_or,
    Ops.XOR: np.bitwise_xor, Ops.CMPLT: np.less, Ops.CMPNE: np.not_equal, Ops.CMPEQ: np.equal,
}  # fmt: skip
FLOAT_ONLY = {Ops.SQRT, Ops.RECIPROCAL, Ops.FDIV, Ops.TRUNC}
INT_ONLY = {Ops.IDIV, Ops.MOD, Ops.AND, Ops.OR, Ops.XOR}
BOOL_TOO = {Ops.MAX, Ops.AND, Ops.OR, Ops.XOR, Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ, Ops.ADD, Ops.MUL}


def takes(op: Ops, dtype: DType) -> bool:
    if dtype.is_bool:
        return op in BOOL_TOO
    return op not in (INT_ONLY if dtype.is_float else FLOAT_ONLY)


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


# --- conversions


def converted(x: np.ndarray, src: DType, dst: DType) -> np.ndarray:
    """The contract's cast, in numpy."""
    if src == dtypes.bfloat16:
        x, src = bfloat_to_float(x), dtypes.float32
    if dst == dtypes.bfloat16:
        return rounded_to_bfloat(x)
    if dst.is_bool:
        return x != 0
    if src.is_float and dst.is_int:
        out = []
        for v in x.astype(np.float64):
            exact = 0 if math.isnan(v) else (dst.max if v > 0 else dst.min) if math.isinf(v) else int(v)
            out.append(min(max(exact, dst.min), dst.max))
        return np.array(out, numpy_type(dst))
    with np.errstate(over="ignore"):
        return x.astype(numpy_type(dst))


def rounded_to_bfloat(x: np.ndarray) -> np.ndarray:
    """Round to nearest even, once; integers by way of float32."""
    wide = x.astype(np.float64) if x.dtype.kind == "f" else x.astype(np.float32).astype(np.float64)
    with np.errstate(over="ignore"):
        single = wide.astype(np.float32)
    out = []
    for v, s in zip(wide, single, strict=True):
        if math.isnan(v) or math.isinf(v):
            out.append(0x7FC0 if math.isnan(v) else int(s.view(np.uint32)) >> 16)
            continue
        # The two bfloat16 around |v|, and the nearer, or the even one of two that are equally near.
        low = min(int(np.abs(s).view(np.uint32)) >> 16, 0x7F7F)
        if bfloat_value(low) > abs(float(v)):
            low -= 1
        below, above = abs(float(v)) - bfloat_value(low), bfloat_value(low + 1) - abs(float(v))
        bits = low + (above < below or (above == below and low & 1))
        out.append(bits | (0x8000 if math.copysign(1, v) < 0 else 0))
    return np.array(out, np.uint16)


def bfloat_value(bits: int) -> float:
    """Of a bfloat16 without sign; infinity is the number it stands for in rounding."""
    exponent, fraction = bits >> 7, bits & 0x7F
    return math.ldexp(fraction, -133) if exponent == 0 else math.ldexp(128 + fraction, exponent - 134)


@pytest.mark.parametrize("src", dtypes.all, ids=str)
@pytest.mark.parametrize("dst", dtypes.all, ids=str)
def test_cast(src: DType, dst: DType) -> None:
    x = samples(src, 9)
    want = converted(x, src, dst)
    for lanes in LANES:
        same(
            elementwise([(src, x)], dst, lanes, lambda b, a, lanes: b.cast(a[0], src, dst, lanes)), want, dst
        )


@pytest.mark.parametrize("native", [True, False] if host_has_half() else [False])
@pytest.mark.parametrize("lanes", LANES)
def test_every_float16_converts_both_ways(native: bool, lanes: int) -> None:
    x = np.arange(65536, dtype=np.uint16).view(np.float16)
    f16, f32 = dtypes.float16, dtypes.float32
    single = elementwise([(f16, x)], f32, lanes, lambda b, a, lanes: b.cast(a[0], f16, f32, lanes), native)
    same(single, x.astype(np.float32), f32)
    same(
        elementwise([(f32, single)], f16, lanes, lambda b, a, lanes: b.cast(a[0], f32, f16, lanes), native),
        x,
        f16,
    )


@pytest.mark.parametrize("native", [True, False] if host_has_half() else [False])
@pytest.mark.parametrize("src", FLOATS, ids=str)
def test_rounding_to_float16_is_to_nearest_even_once(src: DType, native: bool) -> None:
    half = np.arange(0, 0x7C00, dtype=np.uint16).view(np.float16).astype(np.float64)
    ties = np.concatenate(
        [(half[:-1] + half[1:]) / 2, [65519.99, 65520.0, 65536.0, 1e30, 2.0**-25, 2.0**-26]]
    )
    nearby = np.concatenate([ties, np.nextafter(ties, 0), np.nextafter(ties, 1e9), ties * (1 + 2.0**-23)])
    x = np.concatenate([nearby, -nearby]).astype(numpy_type(src))
    x = np.resize(x, -(-len(x) // 16) * 16)
    with np.errstate(over="ignore"):
        want = x.astype(np.float16)
    f16 = dtypes.float16
    same(elementwise([(src, x)], f16, 16, lambda b, a, lanes: b.cast(a[0], src, f16, 16), native), want, f16)


@pytest.mark.parametrize(
    ("src", "dst"),
    [(a, b) for a in dtypes.all for b in dtypes.all if a.itemsize == b.itemsize and not b.is_bool],
    ids=str,
)
def test_bitcast(src: DType, dst: DType) -> None:
    x = samples(src, 10)
    for lanes in LANES:
        got = elementwise([(src, x)], dst, lanes, lambda b, a, lanes: b.bitcast(a[0], src, dst, lanes))
        np.testing.assert_array_equal(got.view(np.uint8), x.view(np.uint8))


# --- constants and lanes


@pytest.mark.parametrize("dtype", dtypes.all, ids=str)
def test_constants(dtype: DType) -> None:
    values = [True, False] if dtype.is_bool else [0, 1, dtype.max, dtype.min]
    if dtype.is_float:
        values = [0.0, -0.0, 1.0, -1.1, math.inf, -math.inf, math.nan, 1e300, 1e-300, 1e-40, 65520.0, 3.3e38]
    for lanes, value in itertools.product(LANES, values):
        b = builder()
        (p,), _ = b.begin("k", [dtype], [])
        b.store(p, None, 0, b.const(dtype, value, lanes), dtype, lanes)
        source = np.array([value] * lanes, np.float64 if dtype.is_float else numpy_type(dtype))
        want = converted(source, dtypes.float64, dtype) if dtype.is_float else source
        same(run(b.finish(), [np.zeros(lanes, numpy_type(dtype))])[0], want, dtype)


@pytest.mark.parametrize("dtype", dtypes.all, ids=str)
@pytest.mark.parametrize("lanes", LANES)
def test_lanes_constants_splat_extract_and_pack(dtype: DType, lanes: int) -> None:
    x = samples(dtype, 11)[:lanes]
    b = builder()
    (p, q), _ = b.begin("k", [dtype, dtype], [])
    parts = [b.load(q, None, i, dtype, 1) for i in range(lanes)]
    b.store(p, None, 0, b.pack(parts, dtype), dtype, lanes)
    whole = b.load(q, None, 0, dtype, lanes)
    backwards = [b.extract(whole, dtype, i, lanes) for i in reversed(range(lanes))]
    b.store(p, None, lanes, b.pack(backwards, dtype), dtype, lanes)
    b.store(p, None, 2 * lanes, b.splat(parts[-1], dtype, lanes), dtype, lanes)
    b.store(p, None, 3 * lanes, b.splat(b.const(dtype, 1, 1), dtype, lanes), dtype, lanes)
    got = run(b.finish(), [np.zeros(4 * lanes, x.dtype), x])[0]
    one = converted(np.ones(lanes), dtypes.float64, dtype) if dtype.is_float else np.ones(lanes, x.dtype)
    want = np.concatenate([x, x[::-1], np.full(lanes, x[-1]), one])
    np.testing.assert_array_equal(got.view(np.uint8), want.view(np.uint8))


def test_lane_constants() -> None:
    for dtype, values in ((dtypes.int32, range(16)), (dtypes.float32, [i / 3 for i in range(16)])):
        b = builder()
        (p,), _ = b.begin("k", [dtype], [])
        b.store(p, None, 0, b.const_lanes(dtype, list(values)), dtype, 16)
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
        b.store(p, None, 0, b.reduce(op, b.load(q, None, 0, dtype, lanes), dtype, lanes), dtype, 1)
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
    values = b.load(r, None, 0, dtype, lanes)
    got = b.load_masked(q, None, 0, dtype, lanes, b.load(m, None, 0, dtypes.bool, lanes), values)
    b.store(p, None, 0, got, dtype, lanes)
    far = b.load(m, None, 0, dtypes.bool, lanes)
    never = b.alu(Ops.XOR, dtypes.bool, [far, far], lanes)
    outside = b.const(dtypes.index, 1 << 44, 1)
    b.store(p, None, lanes, b.load_masked(q, outside, 0, dtype, lanes, never, values), dtype, lanes)
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
        b.store(p, None, 4 * i, b.load(q, index, offset, f, 4), f, 4)
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
    b.store(p, None, 0, b.get(count), i64, 1)
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
        b.store(p, None, at, b.get(register), i64, 1)
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
    b.store(p, at, 0, b.get(register), dtype, lanes)
    b.set(register, b.load(q, at, 0, dtype, lanes))
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
    with pytest.raises(InternalError, match="1 open"):
        b.finish()


# --- compiling


def matmul_tile(rows: int, vectors: int, lanes: int) -> str:
    """The inner loop of a packed matrix multiplication: rows x vectors accumulators."""
    b, f, index = builder(), dtypes.float32, dtypes.index
    (out, a, w), _ = b.begin("k", [f, f, f], [])
    tile = [[b.register(f, lanes) for _ in range(vectors)] for _ in range(rows)]
    for register in itertools.chain(*tile):
        b.set(register, b.const(f, 0.0, lanes))
    k = b.loop(b.const(index, 64, 1))
    at = b.alu(Ops.MUL, index, [k, b.const(index, rows, 1)], 1)
    bt = b.alu(Ops.MUL, index, [k, b.const(index, vectors * lanes, 1)], 1)
    columns = [b.load(w, bt, v * lanes, f, lanes) for v in range(vectors)]
    for r in range(rows):
        x = b.splat(b.load(a, at, r, f, 1), f, lanes)
        for v, register in enumerate(tile[r]):
            b.set(register, b.alu(Ops.MULACC, f, [x, columns[v], b.get(register)], lanes))
    b.end_loop()
    for i, register in enumerate(itertools.chain(*tile)):
        b.store(out, None, i * lanes, b.get(register), f, lanes)
    return b.finish()


def test_a_register_tile_stays_in_registers() -> None:
    target = host_target()
    if not target.fma:
        pytest.skip("this processor has no fused multiply-add to count")
    lanes = target.simd_bytes // 4
    module = llvm.parse_assembly(matmul_tile(6, 2, lanes), llvm.create_context())
    text = _make_target_machine().emit_assembly(module)
    loop = re.search(r"(\.LBB0_\d+):(.*?)\n\s+j\w+\s+\1\n", text, re.S)
    if loop is None:
        pytest.skip("not an assembly this test can read")
    assert len(re.findall(r"\bvfn?madd", loop[2])) == 12
    assert "rsp" not in loop[2], "accumulators were spilled"


@pytest.mark.parametrize("lanes", LANES)
def test_nothing_calls_a_library_on_an_old_processor(lanes: int) -> None:
    """x86-64-v2: no FMA, no float16 conversions, 128-bit vectors."""
    if not llvm.get_process_triple().startswith("x86_64"):
        pytest.skip("about x86-64 only")
    b = LLVMBuilder(Target("CPU", 16, 16), native_half=False)
    pointers, _ = b.begin("k", dtypes.all, [])
    x = {d: b.load(p, None, 0, d, lanes) for d, p in zip(dtypes.all, pointers, strict=True)}
    for (src, value), (dst, out) in itertools.product(x.items(), zip(dtypes.all, pointers, strict=True)):
        b.store(out, None, 0, b.cast(value, src, dst, lanes), dst, lanes)
    for op, (dtype, out) in itertools.product((*UNARY, *BINARY), zip(dtypes.all, pointers, strict=True)):
        if takes(op, dtype) and dtype not in (dtypes.float16, dtypes.bfloat16):
            kept = dtypes.bool if op in GroupOp.Comparison else dtype
            value = b.alu(op, dtype, [x[dtype]] * (1 if op in UNARY else 2), lanes)
            b.store(pointers[0] if kept.is_bool else out, None, 0, value, kept, lanes)
    target = llvm.Target.from_triple(llvm.get_process_triple())
    machine = target.create_target_machine("x86-64-v2", "", opt=2, reloc="pic", codemodel="default")
    assert "call" not in machine.emit_assembly(llvm.parse_assembly(b.finish(), llvm.create_context()))


def test_several_functions_are_one_module() -> None:
    text = "".join(matmul_tile(2, 1, 4).replace("@k(", f"@k{i}(") for i in range(3))
    assert len(compile_ir(text)) > 3 * 64


def test_compiling_in_threads_gives_what_one_thread_gives() -> None:
    texts = [matmul_tile(rows, 2, 4) for rows in range(1, 9)]
    want = [compile_ir(text) for text in texts]
    assert [future.result() for future in [submit(text) for text in texts]] == want
    got: dict[int, list[bytes]] = {}

    def work(i: int) -> None:
        got[i] = [compile_ir(text) for text in texts]

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(got[i] == want for i in range(4))


def test_text_that_is_no_ir_is_a_compile_error() -> None:
    with pytest.raises(CompileError, match="internal: LLVM could not parse") as e:
        compile_ir("define void @k( {")
    assert "define void @k" in str(e.value)
    undominated = (
        "br i1 %c, label %a, label %b\na:\n  %x = add i32 1, 2\n  br label %b\nb:\n  %y = add i32 %x, 1"
    )
    with pytest.raises(CompileError, match=r"verify.*dominate"):
        compile_ir(f"define void @k(i1 %c) {{\n  {undominated}\n  ret void\n}}\n")
    assert compile_ir("define void @k() {\n  ret void\n}\n"), "the next one works"


def test_the_target_of_this_machine() -> None:
    target = host_target()
    assert target.name == "CPU" and target.simd_bytes in (16, 32, 64) and "llvm" in target.key
    assert Target("CPU").key != target.key
