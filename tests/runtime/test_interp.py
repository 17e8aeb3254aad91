"""INTERP against numpy: every op of every dtype, memory, loops, errors."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest
from codegen.vectorised import Array, evaluate, numpy_dtype, round_bfloat16

from polygrad.codegen.lower.passes import LoweringContext, run_passes
from polygrad.codegen.target import Target
from polygrad.dtype import DType, dtypes
from polygrad.errors import CompileError, InternalError, OutOfMemoryError, ProgramError
from polygrad.renderer.interp_json import render_interp
from polygrad.runtime.interp.device import InterpRuntime
from polygrad.runtime.interp.python import load_kernel
from polygrad.runtime.interp.scalar import round_float
from polygrad.runtime.program import Binding, BufferSpec, Kernel, Launch, Program, Variable
from polygrad.uop.args import Param, Reg
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

RUNTIME = InterpRuntime()
INTS, FLOATS = dtypes.ints, dtypes.floats


def encoded(x: Array, dtype: DType) -> bytes:
    """The bytes of elements; bfloat16 comes as float32 values."""
    if dtype is dtypes.bfloat16:
        return (round_bfloat16(x).view(np.uint32) >> 16).astype(np.uint16).tobytes()
    return x.astype(numpy_dtype(dtype)).tobytes()


def decoded(data: memoryview, dtype: DType) -> Array:
    if dtype is dtypes.bfloat16:
        return (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32)
    return np.frombuffer(data, numpy_dtype(dtype))


def in_order(sink: UOp) -> list[UOp]:
    """The linear form of a kernel that needs no more than its loops put in order."""
    linear = run_passes(sink, LoweringContext(Target("INTERP"), optimized=False), after="decompose")
    assert isinstance(linear, list)
    return linear


def run(
    sink: UOp, buffers: list[tuple[DType, Array]], variables: dict[str, int] | None = None
) -> list[Array]:
    """Run one kernel over `buffers`, in slot order; their contents afterwards."""
    variables = variables or {}
    code = render_interp("test", in_order(sink))
    program = Program(
        device="INTERP",
        target="test",
        buffers=tuple(BufferSpec(len(x), d, "state") for d, x in buffers),
        kernels=(Kernel("test", code, len(buffers), tuple(variables), language="linear", writes=(0,)),),
        launches=(Launch(0, tuple(Binding(i) for i in range(len(buffers)))),),
        variables=tuple(Variable(name, 0, 100) for name in variables),
    )
    handles = []
    for d, x in buffers:
        raw = encoded(x, d)
        handles.append(RUNTIME.allocate(len(raw)))
        RUNTIME.write(handles[-1], 0, memoryview(raw))
    RUNTIME.load(program).run(handles, None, variables)
    return [decoded(RUNTIME.read(h, 0, len(h)), d) for h, (d, _) in zip(handles, buffers, strict=True)]


def elementwise(op: Ops, dtype: DType, *inputs: tuple[DType, Array], arg: Any = None) -> tuple[Array, Array]:
    """What INTERP and numpy make of one op over arrays."""
    n = len(inputs[0][1])
    r = UOp.range(n, 0)
    loads = []
    for slot, (d, _) in enumerate(inputs, 1):
        loads.append(UOp(Ops.LOAD, d, (UOp(Ops.INDEX, d, (UOp(Ops.PARAM, d, (), Param(slot, n)), r)),)))
    value = UOp(op, dtype, tuple(loads), arg)
    out = UOp(Ops.INDEX, dtype, (UOp(Ops.PARAM, dtype, (), Param(0, n)), r))
    store = UOp(Ops.STORE, dtypes.void, (out, value))
    sink = UOp.sink(UOp(Ops.END, dtypes.void, (store, r)))
    blank = np.zeros(n, numpy_dtype(dtype))
    actual = run(sink, [(dtype, blank), *inputs])[0]
    return actual, evaluate(value, {load: x for load, (_, x) in zip(loads, inputs, strict=True)})


def values(dtype: DType) -> Array:
    """Ends of the range, zeros, infinities, NaN, denormals, and ordinary numbers."""
    if dtype.is_bool:
        return np.array([False, True])
    if dtype.is_int:
        few = [dtype.min, dtype.min + 1, dtype.max - 1, dtype.max, *range(max(dtype.min, -9), 10), 100]
        return np.array(few, numpy_dtype(dtype))
    few = [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        1.0,
        -1.0,
        0.5,
        1.5,
        -2.5,
        3.1415926,
        1e-7,
        -6e-8,
        65504.0,
        1e30,
        -3e38,
        1e-40,
    ]
    with np.errstate(over="ignore"):
        out = np.array(few).astype(numpy_dtype(dtype))
    return round_bfloat16(out) if dtype is dtypes.bfloat16 else out


def pairs(dtype: DType) -> tuple[tuple[DType, Array], tuple[DType, Array]]:
    """Every two of `values(dtype)`."""
    v = values(dtype)
    return (dtype, np.repeat(v, len(v))), (dtype, np.tile(v, len(v)))


def assert_same(actual: Array, expected: Array) -> None:
    np.testing.assert_array_equal(actual, expected)
    if np.issubdtype(actual.dtype, np.floating):
        known = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(actual[known]), np.signbit(expected[known]))


ARITHMETIC = [Ops.ADD, Ops.SUB, Ops.MUL]
COMPARISONS = [Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ]


@pytest.mark.parametrize("dtype", [*INTS, dtypes.float32, dtypes.float64])
@pytest.mark.parametrize("op", ARITHMETIC)
def test_arithmetic_exactly_as_numpy(op: Ops, dtype: DType) -> None:
    assert_same(*elementwise(op, dtype, *pairs(dtype)))


@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize("op", [Ops.IDIV, Ops.MOD, Ops.MAX, Ops.AND, Ops.OR, Ops.XOR])
def test_integer_operations_exactly_as_numpy(op: Ops, dtype: DType) -> None:
    assert_same(*elementwise(op, dtype, *pairs(dtype)))


@pytest.mark.parametrize("dtype", INTS)
@pytest.mark.parametrize("op", [Ops.SHL, Ops.SHR])
def test_shifts_exactly_as_numpy(op: Ops, dtype: DType) -> None:
    v = values(dtype)
    amounts = np.arange(dtype.bits).astype(v.dtype)
    inputs = (dtype, np.repeat(v, len(amounts))), (dtype, np.tile(amounts, len(v)))
    assert_same(*elementwise(op, dtype, *inputs))


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64])
@pytest.mark.parametrize("op", [Ops.FDIV, Ops.MAX])
def test_float_operations_exactly_as_numpy(op: Ops, dtype: DType) -> None:
    actual, expected = elementwise(op, dtype, *pairs(dtype))
    if op is Ops.MAX:  # which zero is the greater is nobody's business
        np.testing.assert_array_equal(actual, expected)
    else:
        assert_same(actual, expected)


@pytest.mark.parametrize("dtype", [*dtypes.all])
@pytest.mark.parametrize("op", COMPARISONS)
def test_comparisons_exactly_as_numpy(op: Ops, dtype: DType) -> None:
    assert_same(*elementwise(op, dtypes.bool, *pairs(dtype)))


@pytest.mark.parametrize("op", [Ops.AND, Ops.OR, Ops.XOR])
def test_bool_operations_exactly_as_numpy(op: Ops) -> None:
    assert_same(*elementwise(op, dtypes.bool, *pairs(dtypes.bool)))


@pytest.mark.parametrize("dtype", [*INTS, dtypes.float32, dtypes.float64])
def test_neg_exactly_as_numpy(dtype: DType) -> None:
    assert_same(*elementwise(Ops.NEG, dtype, (dtype, values(dtype))))


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64])
@pytest.mark.parametrize("op", [Ops.SQRT, Ops.RECIPROCAL, Ops.TRUNC])
def test_float_functions_exactly_as_numpy(op: Ops, dtype: DType) -> None:
    assert_same(*elementwise(op, dtype, (dtype, values(dtype))))


@pytest.mark.parametrize(("op", "function"), [(Ops.EXP2, np.exp2), (Ops.LOG2, np.log2), (Ops.SIN, np.sin)])
def test_functions_left_whole_are_float64s_rounded(op: Ops, function: Any) -> None:
    x = values(dtypes.float32)
    r = UOp.range(len(x), 0)
    source, out = (
        UOp(Ops.INDEX, dtypes.float32, (UOp(Ops.PARAM, dtypes.float32, (), Param(slot, len(x))), r))
        for slot in (1, 0)
    )
    value = UOp(op, dtypes.float32, (UOp(Ops.LOAD, dtypes.float32, (source,)),))
    sink = UOp.sink(UOp(Ops.END, dtypes.void, (UOp(Ops.STORE, dtypes.void, (out, value)), r)))
    actual = run(sink, [(dtypes.float32, np.zeros_like(x)), (dtypes.float32, x)])[0]
    with np.errstate(all="ignore"):
        assert_same(actual, function(x.astype(np.float64)).astype(np.float32))


@pytest.mark.parametrize("dtype", dtypes.all)
def test_where_exactly_as_numpy(dtype: DType) -> None:
    a, b = pairs(dtype)
    condition = np.arange(len(a[1])) % 3 == 0
    assert_same(*elementwise(Ops.WHERE, dtype, (dtypes.bool, condition), a, b))


@pytest.mark.parametrize("dtype", [*INTS, dtypes.float64])
def test_multiply_add_exactly_as_numpy(dtype: DType) -> None:
    a, b = pairs(dtype)
    a, b = ((d, x[np.isfinite(x)] if d.is_float else x) for d, x in (a, b))
    n = min(len(a[1]), len(b[1]))
    a, b = (dtype, a[1][:n]), (dtype, b[1][:n])
    actual, _ = elementwise(Ops.MULACC, dtype, a, b, a)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(actual, a[1] * b[1] + a[1])  # two roundings: no fused target is INTERP


@pytest.mark.parametrize(("src", "dst"), [*itertools.product(dtypes.all, dtypes.all)])
def test_casts_exactly_as_numpy_saturating(src: DType, dst: DType) -> None:
    assert_same(*elementwise(Ops.CAST, dst, (src, values(src))))


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16, dtypes.float32])
def test_casts_round_once_to_nearest_even(dtype: DType) -> None:
    x = np.random.default_rng(0).normal(0, 1, 2000) * 10.0 ** np.random.default_rng(1).integers(-46, 40, 2000)
    assert_same(*elementwise(Ops.CAST, dtype, (dtypes.float64, x)))


@pytest.mark.parametrize("dtype", [dtypes.int64, dtypes.uint64])
def test_large_integers_become_float32_with_one_rounding(dtype: DType) -> None:
    base = np.array([1 << 24, 1 << 40, 1 << 53, 1 << 62], numpy_dtype(dtype))
    x = np.concatenate(
        [base + base.dtype.type(k) for k in (0, 1, 2, 3)] + [base + base // 2**24 + base.dtype.type(1)]
    )
    assert_same(*elementwise(Ops.CAST, dtypes.float32, (dtype, x)))


SAME_SIZE = [
    (a, b) for a, b in itertools.product(dtypes.all[1:], repeat=2) if a.itemsize == b.itemsize and a is not b
]


@pytest.mark.parametrize(("src", "dst"), SAME_SIZE)
def test_bitcasts_keep_the_bits(src: DType, dst: DType) -> None:
    x = values(src)
    if src.is_float:
        x = x[~np.isnan(x)]
    r = UOp.range(len(x), 0)
    load = UOp(Ops.LOAD, src, (UOp(Ops.INDEX, src, (UOp(Ops.PARAM, src, (), Param(1, len(x))), r)),))
    out = UOp(Ops.INDEX, dst, (UOp(Ops.PARAM, dst, (), Param(0, len(x))), r))
    store = UOp(Ops.STORE, dtypes.void, (out, load.bitcast(dst)))
    sink = UOp.sink(UOp(Ops.END, dtypes.void, (store, r)))
    blank = np.zeros(len(x), numpy_dtype(dst))
    results = run(sink, [(dst, blank), (src, x)])
    keep = ~np.isnan(results[0]) if dst.is_float else np.ones(len(x), bool)
    width = src.itemsize
    raw = [np.frombuffer(encoded(y, d), f"u{width}") for y, d in zip(results, (dst, src), strict=True)]
    np.testing.assert_array_equal(raw[0][keep], raw[1][keep])


# --- kernels


def param(slot: int, size: int, dtype: DType = dtypes.float32) -> UOp:
    return UOp(Ops.PARAM, dtype, (), Param(slot, size))


def at(pointer: UOp, *index: UOp) -> UOp:
    return UOp(Ops.INDEX, pointer.dtype, (pointer, *index))


def load(pointer: UOp, *index: UOp) -> UOp:
    return UOp(Ops.LOAD, pointer.dtype, (at(pointer, *index),))


def row_sums(rows: Any, columns: int) -> UOp:
    """out[i] = sum over j of in[i, j]."""
    i, j = UOp.range(rows, 0), UOp.range(columns, 1)
    reg = UOp(Ops.DEFINE_REG, dtypes.float32, (), Reg(0))
    zero = UOp.index(0)

    def after(*deps: UOp) -> UOp:
        return at(UOp(Ops.AFTER, dtypes.float32, (reg, *deps)), zero)

    start = UOp(Ops.STORE, dtypes.void, (after(i), UOp.const(dtypes.float32, 0)))
    term = UOp(Ops.LOAD, dtypes.float32, (after(start, j),)) + load(param(1, 12), i * columns + j)
    end = UOp(Ops.END, dtypes.void, (UOp(Ops.STORE, dtypes.void, (at(reg, zero), term)), j))
    total = UOp(Ops.LOAD, dtypes.float32, (after(end),))
    return UOp.sink(UOp(Ops.END, dtypes.void, (UOp(Ops.STORE, dtypes.void, (at(param(0, 4), i), total)), i)))


def test_a_register_accumulates_inside_a_loop() -> None:
    x = np.arange(12, dtype=np.float32)
    out = run(row_sums(4, 3), [(dtypes.float32, np.zeros(4)), (dtypes.float32, x)])[0]
    np.testing.assert_array_equal(out, x.reshape(4, 3).sum(1))


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_a_variable_is_a_loops_size(rows: int) -> None:
    x = np.arange(12, dtype=np.float32)
    sink = row_sums(UOp.variable("for", 0, 4), 3)  # any name will do
    out = run(sink, [(dtypes.float32, np.full(4, -1.0)), (dtypes.float32, x)], {"for": rows})[0]
    np.testing.assert_array_equal(out, [*x.reshape(4, 3).sum(1)[:rows], *[-1.0] * (4 - rows)])


def gated(index: UOp, gate: UOp, r: UOp) -> UOp:
    value = UOp(Ops.LOAD, dtypes.float32, (at(param(1, 3), index, gate), UOp.const(dtypes.float32, 7)))
    return UOp.sink(UOp(Ops.END, dtypes.void, (UOp(Ops.STORE, dtypes.void, (at(param(0, 5), r), value)), r)))


def test_a_gated_load_gives_the_other_value_and_touches_no_memory() -> None:
    r = UOp.range(5, 0)
    sink = gated(r + -1, (UOp.index(0) < r) & (r < 4), r)
    out = run(sink, [(dtypes.float32, np.zeros(5)), (dtypes.float32, np.array([1, 2, 3]))])[0]
    assert out.tolist() == [7, 1, 2, 3, 7]


@pytest.mark.parametrize("offset", [-1, 1])
def test_an_index_outside_a_buffer_raises(offset: int) -> None:
    r = UOp.range(5, 0)
    sink = gated(r + offset, (r < 3), r)
    with pytest.raises(IndexError):
        run(sink, [(dtypes.float32, np.zeros(5)), (dtypes.float32, np.array([1, 2, 3]))])


def test_scratch_lies_in_the_arena_at_its_offset() -> None:
    r = UOp.range(4, 0)
    copy = UOp.sink(
        UOp(
            Ops.END,
            dtypes.void,
            (UOp(Ops.STORE, dtypes.void, (at(param(0, 4), r), load(param(1, 4), r) * 2)), r),
        )
    )
    kernel = Kernel("copy", render_interp("copy", in_order(copy)), 2, language="linear", writes=(0,))
    specs = (
        BufferSpec(4, "float32", "output"),
        BufferSpec(4, "float32", "scratch", 64),
        BufferSpec(8, "float32", "input"),
    )
    launches = (Launch(0, (Binding(1), Binding(2, 16))), Launch(0, (Binding(0), Binding(1))))
    program = Program("INTERP", "test", specs, (kernel,), launches, arena=80)
    out, source, arena = (RUNTIME.allocate(n) for n in (16, 32, 80))
    RUNTIME.write(source, 0, memoryview(np.arange(8, dtype=np.float32).tobytes()))
    RUNTIME.load(program).run([out, None, source], arena, {})
    assert np.frombuffer(RUNTIME.read(out, 0, 16), np.float32).tolist() == [16, 20, 24, 28]
    assert np.frombuffer(RUNTIME.read(arena, 64, 16), np.float32).tolist() == [8, 10, 12, 14]


# --- memory and errors


def test_read_is_a_copy_and_write_goes_to_its_offset() -> None:
    handle = RUNTIME.allocate(4)
    RUNTIME.write(handle, 1, memoryview(b"ab"))
    data = RUNTIME.read(handle, 1, 2)
    data[0] = 0
    assert bytes(RUNTIME.read(handle, 0, 4)) == b"\xffab\xff"


def test_too_much_memory_is_an_error_that_says_so() -> None:
    with pytest.raises(OutOfMemoryError, match="no room for an allocation of 4611686018427387904 bytes"):
        RUNTIME.allocate(1 << 62)


def test_programs_and_kernels_of_others_are_refused() -> None:
    program = Program("CPU", "test", (), (), ())
    with pytest.raises(ProgramError, match="expected a Program for INTERP, got one for CPU"):
        RUNTIME.load(program)
    with pytest.raises(ProgramError, match="expected a kernel in JSON"):
        RUNTIME.load(
            Program("INTERP", "test", (), (Kernel("k", b"\0asm", 0, language="linear", writes=(0,)),), ())
        )


def test_a_buffer_too_small_for_its_pointer_is_refused() -> None:
    code = render_interp("k", in_order(row_sums(4, 3)))
    specs = (BufferSpec(4, "float32", "output"), BufferSpec(12, "float32", "input"))
    program = Program(
        "INTERP",
        "t",
        specs,
        (Kernel("k", code, 2, language="linear", writes=(0,)),),
        (Launch(0, (Binding(0), Binding(1))),),
    )
    with pytest.raises(
        ProgramError, match="k expected pointer 1 to end at byte 48, got an allocation of 47 bytes"
    ):
        RUNTIME.load(program).run([RUNTIME.allocate(16), RUNTIME.allocate(47)], None, {})


def test_optimised_kernels_and_unknown_ops_are_refused() -> None:
    tiled = UOp(Ops.INDEX, dtypes.float32, (param(0, 4), UOp.index(0)), ((), 1))
    with pytest.raises(InternalError, match="unoptimised"):
        render_interp("k", [*tiled.src, tiled])
    x = load(param(0, 1), UOp.index(0))
    power = UOp(Ops.POW, dtypes.float32, (x, x))
    sink = UOp.sink(UOp(Ops.STORE, dtypes.void, (at(param(0, 1), UOp.index(0)), power)))
    code = render_interp("k", in_order(sink))
    with pytest.raises(CompileError, match="got POW of float32"):
        RUNTIME.load(Program("INTERP", "t", (), (Kernel("k", code, 1, language="linear", writes=(0,)),), ()))


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16, dtypes.float32])
def test_rounding_by_fractions_is_the_machines(dtype: DType) -> None:
    x = values(dtypes.float64)
    x = np.concatenate(
        [x, np.random.default_rng(2).normal(0, 1e-38, 300), np.random.default_rng(3).normal(0, 1e5, 300)]
    )
    x = x.astype(np.float32).astype(np.float64)
    with np.errstate(all="ignore"):
        narrow = x.astype(np.float32)
        expected = round_bfloat16(narrow) if dtype is dtypes.bfloat16 else narrow.astype(numpy_dtype(dtype))
    assert_same(np.array([round_float(dtype, float(v)) for v in x]), expected.astype(np.float64))


@pytest.mark.parametrize(
    "instruction",
    [
        ["PARAM", "float32", [], ["0):\n import os\n os._exit(3)\n#", 4, 0]],
        ["PARAM", "float32", [], [0, "4", 0]],
        ["PARAM", "float32", [], [0, True, 0]],
        ["DEFINE_REG", "float32", [], ["0\n import os; os._exit(3)"]],
        ["CONST", "int32", [], "1; import os; os._exit(3)"],
        ["CONST", "int32", [], [1]],
    ],
)
def test_text_of_a_kernel_never_becomes_source(instruction: list[Any]) -> None:
    code = json.dumps({"name": "f", "instructions": [instruction]}).encode()
    with pytest.raises(CompileError, match="expected an integer in an instruction, got"):
        load_kernel(code)
