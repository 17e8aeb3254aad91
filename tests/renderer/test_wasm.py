"""WasmBuilder's arithmetic: every op on every dtype and width, under wasmtime, against numpy, bit for bit."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from wasm_kernel import LANES, NUMPY, Machine, apply, elementwise, same, sample

from polygrad.dtype import DType, dtypes
from polygrad.errors import CompileError, InternalError
from polygrad.renderer.builder import Address
from polygrad.renderer.wasm.builder import WASM_DOTS, WasmBuilder
from polygrad.uop.ops import Ops
from polygrad.wasm.opcodes import opcode

BINARY: dict[Ops, Callable[..., Any]] = {
    Ops.ADD: operator.add,
    Ops.SUB: operator.sub,
    Ops.MUL: operator.mul,
    Ops.FDIV: operator.truediv,
    Ops.MAX: np.maximum,
    Ops.AND: operator.and_,
    Ops.OR: operator.or_,
    Ops.XOR: operator.xor,
}
COMPARE = {Ops.CMPLT: operator.lt, Ops.CMPNE: operator.ne, Ops.CMPEQ: operator.eq}
DIVIDE = {Ops.IDIV: np.floor_divide, Ops.MOD: np.mod}
SHIFT = {Ops.SHL: np.left_shift, Ops.SHR: np.right_shift}
UNARY: dict[Ops, Callable[..., Any]] = {Ops.NEG: operator.neg, Ops.TRUNC: np.trunc}
FLOAT_ONLY: dict[Ops, Callable[..., Any]] = {Ops.SQRT: np.sqrt, Ops.RECIPROCAL: np.reciprocal}
COMPUTED = tuple(d for d in dtypes.all if d not in (dtypes.float16, dtypes.bfloat16))

both = pytest.mark.parametrize("lanes", LANES)


def binary_ops(dtype: DType) -> dict[Ops, Callable[..., Any]]:
    if dtype.is_float:
        return {op: f for op, f in BINARY.items() if op not in (Ops.AND, Ops.OR, Ops.XOR)}
    if dtype.is_bool:
        names = (Ops.ADD, Ops.MUL, Ops.MAX, Ops.AND, Ops.OR, Ops.XOR)
        return {op: f for op, f in BINARY.items() if op in names}
    return {op: f for op, f in BINARY.items() if op is not Ops.FDIV}


@both
@pytest.mark.parametrize("dtype", COMPUTED, ids=str)
def test_binary_and_unary_ops_exactly(dtype: DType, lanes: int) -> None:
    a, b = sample(dtype, 1), sample(dtype, 2)
    unary = {} if dtype.is_bool else (UNARY | (FLOAT_ONLY if dtype.is_float else {}))
    ops = binary_ops(dtype) | unary
    arity = {op: 1 if op in unary else 2 for op in ops}
    machine = Machine(
        [elementwise(op.name, dtype, [dtype] * arity[op], lanes, apply(op, dtype, lanes)) for op in ops]
    )
    for op, reference in ops.items():
        args = [a, b][: arity[op]]
        with np.errstate(all="ignore"):
            expected = reference(*args).astype(a.dtype)
        got = machine.call(op.name, [np.empty_like(a), *args], len(a))[0]
        if op is Ops.MAX and dtype.is_float:  # numpy's maximum of zeros of both signs is either
            got, expected = got + 0.0, expected + 0.0
        same(got, expected, f"{op} of {dtype}, {lanes} lanes")


@both
@pytest.mark.parametrize("dtype", COMPUTED, ids=str)
def test_comparisons_exactly(dtype: DType, lanes: int) -> None:
    a, b = sample(dtype, 3), sample(dtype, 4)
    b[::3] = a[::3]
    machine = Machine([
        elementwise(op.name, dtypes.bool, [dtype, dtype], lanes, apply(op, dtype, lanes)) for op in COMPARE
    ])  # fmt: skip
    for op, reference in COMPARE.items():
        got = machine.call(op.name, [np.empty(len(a), bool), a, b], len(a))[0]
        same(got, reference(a, b), f"{op} of {dtype}, {lanes} lanes")


@both
@pytest.mark.parametrize("dtype", dtypes.all, ids=str)
def test_where_exactly(dtype: DType, lanes: int) -> None:
    c, a, b = sample(dtypes.bool, 1), sample(dtype, 5), sample(dtype, 6)
    for relaxed in (False, True):
        f = elementwise(
            "f", dtype, [dtypes.bool, dtype, dtype], lanes, apply(Ops.WHERE, dtype, lanes), relaxed
        )
        same(
            Machine([f]).call("f", [np.empty_like(a), c, a, b], len(a))[0],
            np.where(c, a, b),
            f"{dtype} {lanes}",
        )


@both
@pytest.mark.parametrize("dtype", COMPUTED, ids=str)
def test_mulacc_exactly(dtype: DType, lanes: int) -> None:
    a, b, c = (sample(dtype, s) for s in (7, 8, 9))
    f = elementwise("f", dtype, [dtype] * 3, lanes, apply(Ops.MULACC, dtype, lanes))
    with np.errstate(all="ignore"):
        expected = a * b + c
    same(Machine([f]).call("f", [np.empty_like(a), a, b, c], len(a))[0], expected, f"{dtype}, {lanes} lanes")


@both
def test_dot_products_are_exact_and_wrap(lanes: int) -> None:
    r = np.random.default_rng(3)
    a, b = (r.choice([-(2**15), 2**15 - 1, 0, 1, -1, 777], 512).astype(np.int16) for _ in range(2))
    c = r.integers(-(2**31), 2**31, 256).astype(np.int32)
    for kinds in WASM_DOTS:
        f = elementwise(
            "f",
            dtypes.int32,
            [dtypes.uint32, dtypes.uint32, dtypes.int32],
            lanes,
            lambda b, *values, kinds=kinds: b.dot(kinds, *values, lanes),
        )
        expected = (a.astype(np.int64) * b).reshape(-1, 2).sum(1) + c
        arrays = [np.empty_like(c), a.view(np.uint32), b.view(np.uint32), c]
        got = Machine([f]).call("f", arrays, len(c))[0]
        same(got, expected.astype(np.int32), f"{kinds}, {lanes} lanes")


@both
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=str)
def test_relaxed_mulacc_is_fused_or_not(dtype: DType, lanes: int) -> None:
    r = np.random.default_rng(0)
    a, b, c = (r.normal(size=64).astype(NUMPY[dtype]) for _ in range(3))
    f = elementwise("f", dtype, [dtype] * 3, lanes, apply(Ops.MULACC, dtype, lanes), relaxed=True)
    got = Machine([f]).call("f", [np.empty_like(a), a, b, c], len(a))[0]
    exact = a.astype(np.longdouble) * b + c
    assert np.all(np.abs(got - exact) <= np.finfo(a.dtype).eps * (np.abs(a * b) + np.abs(c)))


@both
@pytest.mark.parametrize("dtype", dtypes.ints, ids=str)
def test_division_rounds_to_minus_infinity(dtype: DType, lanes: int) -> None:
    a, b = sample(dtype, 10, 1024), sample(dtype, 11, 1024)
    b[(b == 0) | ((b == -1) if not dtype.is_unsigned else False)] = 7
    machine = Machine(
        [elementwise(op.name, dtype, [dtype] * 2, lanes, apply(op, dtype, lanes)) for op in DIVIDE]
    )
    for op, reference in DIVIDE.items():
        got = machine.call(op.name, [np.empty_like(a), a, b], len(a))[0]
        same(got, reference(a, b), f"{op} of {dtype}, {lanes} lanes")


@both
@pytest.mark.parametrize("dtype", dtypes.ints, ids=str)
def test_division_by_a_constant(dtype: DType, lanes: int) -> None:
    a = sample(dtype, 12)
    divisors = [3, 10, dtype.max] + ([] if dtype.is_unsigned else [-3, dtype.min])
    for op, reference in DIVIDE.items():
        functions = [
            elementwise(f"by{k}", dtype, [dtype], lanes, lambda b, x, d=d, op=op: b.alu(
                op, dtype, [x, b.const(dtype, d, lanes)], lanes))
            for k, d in enumerate(divisors)
        ]  # fmt: skip
        machine = Machine(functions)
        for k, d in enumerate(divisors):
            got = machine.call(f"by{k}", [np.empty_like(a), a], len(a))[0]
            same(got, reference(a, np.array(d, a.dtype)), f"{op} of {dtype} by {d}, {lanes} lanes")


@both
@pytest.mark.parametrize("dtype", dtypes.ints, ids=str)
def test_shifts_by_each_lane_by_a_scalar_and_by_a_constant(dtype: DType, lanes: int) -> None:
    a, amount = sample(dtype, 13), (np.arange(256) % dtype.bits).astype(NUMPY[dtype])
    for op, reference in SHIFT.items():

        def by_scalar(b: WasmBuilder, x: Any, n: Any, op: Ops = op) -> Any:
            first = b.splat(b.extract(n, dtype, 0, lanes), dtype, lanes)
            return b.alu(op, dtype, [x, first], lanes)

        def by_constant(b: WasmBuilder, x: Any, op: Ops = op) -> Any:
            return b.alu(op, dtype, [x, b.const(dtype, dtype.bits - 3, lanes)], lanes)

        machine = Machine([
            elementwise("each", dtype, [dtype] * 2, lanes, apply(op, dtype, lanes)),
            elementwise("scalar", dtype, [dtype] * 2, lanes, by_scalar),
            elementwise("constant", dtype, [dtype], lanes, by_constant),
        ])  # fmt: skip
        out = np.empty_like(a)
        first = np.repeat(amount[::lanes], lanes)
        same(machine.call("each", [out, a, amount], 256)[0], reference(a, amount), f"{op} each")
        same(machine.call("scalar", [out, a, amount], 256)[0], reference(a, first), f"{op} scalar")
        same(
            machine.call("constant", [out, a], 256)[0],
            reference(a, np.array(dtype.bits - 3, a.dtype)),
            f"{op} const",
        )


@pytest.mark.parametrize("lanes", LANES[1:])
@pytest.mark.parametrize("dtype", COMPUTED, ids=str)
def test_reduce_exactly(dtype: DType, lanes: int) -> None:
    ops: dict[Ops, Callable[..., Any]] = {Ops.ADD: operator.add, Ops.MUL: operator.mul, Ops.MAX: np.maximum}
    x = sample(dtype, 14)
    for op, reference in ops.items():
        b = WasmBuilder()
        (to, source), (n,) = b.begin("f", [dtype, dtype], ["n"])
        i = b.loop(n)
        at = b.alu(Ops.MUL, dtypes.index, [i, b.const(dtypes.index, lanes, 1)], 1)
        b.store(
            Address(to, i), b.reduce(op, b.load(Address(source, at), dtype, lanes), dtype, lanes), dtype, 1
        )
        b.end_loop()
        rounds = len(x) // lanes
        got = Machine([b.finish()]).call("f", [np.empty(rounds, x.dtype), x], rounds)[0]
        tree = x.reshape(rounds, lanes)
        with np.errstate(all="ignore"):
            while tree.shape[1] > 1:
                half = tree.shape[1] // 2
                tree = reference(tree[:, :half], tree[:, half:])
        expected = tree[:, 0]
        if op is Ops.MAX and dtype.is_float:
            got, expected = got + 0.0, expected + 0.0
        same(got, expected, f"{op} of {dtype}, {lanes} lanes")


@both
@pytest.mark.parametrize("dtype", dtypes.all, ids=str)
def test_constants_splat_extract_and_pack_exactly(dtype: DType, lanes: int) -> None:
    x = sample(dtype, 15, 64)
    values = [
        np.uint32(v << 16).view(np.float32) if dtype is dtypes.bfloat16 else v for v in x[:lanes].tolist()
    ]

    def reverse(b: WasmBuilder, v: Any) -> Any:
        return b.pack([b.extract(v, dtype, lane, lanes) for lane in reversed(range(lanes))], dtype)

    def first(b: WasmBuilder, v: Any) -> Any:
        return b.splat(b.extract(v, dtype, 0, lanes), dtype, lanes)

    def constant(b: WasmBuilder, v: Any) -> Any:
        scalar = b.const(dtype, values[0], 1)
        return (
            scalar if lanes == 1 else b.pack([scalar] * (lanes - 1) + [b.extract(v, dtype, 0, lanes)], dtype)
        )

    def constants(b: WasmBuilder, v: Any) -> Any:
        return b.const(dtype, values[0], 1) if lanes == 1 else b.const_lanes(dtype, values)

    machine = Machine([
        elementwise(f.__name__, dtype, [dtype], lanes, f) for f in (reverse, first, constant, constants)
    ])  # fmt: skip
    groups, out = x.reshape(-1, lanes), np.empty_like(x)
    mixed = np.where(np.arange(lanes) < max(lanes - 1, 1), x[0], groups[:, :1])
    expected = {
        "reverse": groups[:, ::-1],
        "first": np.repeat(groups[:, :1], lanes, 1),
        "constant": mixed.astype(x.dtype),
        "constants": np.broadcast_to(x[:lanes], groups.shape),
    }
    for name, e in expected.items():
        got = machine.call(name, [out, x], len(x))[0]
        same(got, np.ascontiguousarray(e).ravel(), f"{name} of {dtype}, {lanes} lanes", dtype)


@pytest.mark.parametrize("lanes", [1, 4])
def test_an_op_of_a_storage_type_is_our_bug(lanes: int) -> None:
    b = WasmBuilder()
    b.begin("f", [dtypes.float16], [])
    x = b.const(dtypes.float16, 1.0, lanes)
    with pytest.raises(InternalError, match="MUL of float16"):
        b.alu(Ops.MUL, dtypes.float16, [x, x], lanes)


def test_too_many_values_are_refused() -> None:
    b = WasmBuilder()
    (p,), _ = b.begin("f", [dtypes.int32], [])
    with pytest.raises(CompileError, match="50000"):
        for k in range(50_001):
            b.load(Address(p, None, k), dtypes.int32, 1)


@pytest.mark.parametrize("lanes", [4, 8])
@pytest.mark.parametrize("swapped", [False, True], ids=["a < b ? b : a", "a < b ? a : b"])
@pytest.mark.parametrize("constant", [False, True])
def test_a_choice_of_what_is_compared_is_one_instruction_and_keeps_its_nan(
    lanes: int, swapped: bool, constant: bool
) -> None:
    def body(b: WasmBuilder, x: Any, y: Any) -> Any:
        y = b.const(dtypes.float32, 1.0, lanes) if constant else y
        less = b.alu(Ops.CMPLT, dtypes.float32, [x, y], lanes)
        return b.alu(Ops.WHERE, dtypes.float32, [less, *((x, y) if swapped else (y, x))], lanes)

    x, y = sample(dtypes.float32, 11), sample(dtypes.float32, 12)
    kernel = elementwise("f", dtypes.float32, [dtypes.float32] * 2, lanes, body)
    assert opcode("f32x4.pmin" if swapped else "f32x4.pmax").code in kernel.code
    got = Machine([kernel]).call("f", [np.empty_like(x), x, y], x.size)[0]
    other = np.float32(1.0) if constant else y
    want = np.where(x < other, *((x, other) if swapped else (other, x)))
    same(got, want.astype(np.float32), "chosen")


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=str)
def test_a_scalar_multiply_add_rounds_as_lanes_do(dtype: DType) -> None:
    x, y, z = (sample(dtype, seed) for seed in (13, 14, 15))
    results = []
    for lanes in (1, 4):
        kernel = elementwise("f", dtype, [dtype] * 3, lanes, apply(Ops.MULACC, dtype, lanes), relaxed=True)
        results.append(Machine([kernel]).call("f", [np.empty_like(x), x, y, z], x.size)[0])
    same(results[0], results[1], "in a lane")
