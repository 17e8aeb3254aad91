"""WGSLBuilder: what WGSL writes differently, and its library. Whole kernels are in `tests/golden`."""

from __future__ import annotations

import math

import pytest

from polygrad.codegen.target import Target, Workgroups
from polygrad.dtype import dtypes
from polygrad.errors import DeviceError
from polygrad.renderer.builder import Address
from polygrad.renderer.wgsl.builder import WGSLBuilder
from polygrad.renderer.wgsl.library import FUNCTIONS, source
from polygrad.uop.ops import Ops

TARGET = Target("WEBGPU", simd_bytes=16, index_bits=32, workgroups=Workgroups(), float64=False)
F32, I32, INDEX = dtypes.float32, dtypes.int32, dtypes.index


def written(dtype, write, result=None):
    """The kernel that stores `write(builder, x)` for the first element x of a buffer of `dtype`."""
    b = WGSLBuilder(TARGET)
    (out, data), _ = b.begin("k", [result or dtype, dtype], [])
    b.store(Address(out), write(b, b.load(Address(data, None, 1), dtype, 1)), result or dtype, 1)
    return str(b.finish())


def stored(dtype, write, result=None):
    """What it stores."""
    text = written(dtype, write, result).split("fn k(")[1]
    return next(line for line in text.splitlines() if "data0" in line).strip()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.5, "1.5f"),
        (math.inf, "arguments.infinity"),
        (-math.inf, "(-arguments.infinity)"),
        (math.nan, "arguments.nan"),
        (-0.0, "bitcast<f32>(0x80000000u)"),
        (1e-40, "bitcast<f32>(0x000116c2u)"),
        (0.0, "0.0f"),
    ],
)
def test_floats_that_a_compiler_might_not_take_are_bits_or_arguments(value, text):
    assert stored(F32, lambda b, x: b.const(F32, value, 1)) == f"data0[0] = {text};"


def test_least_and_long_integers():
    assert stored(I32, lambda b, x: b.const(I32, -(2**31), 1)) == "data0[0] = i32(-2147483648);"
    long = stored(dtypes.int64, lambda b, x: b.const(dtypes.int64, -2, 1))
    assert long == "data0[0] = vec2<u32>(0xfffffffeu, 0xffffffffu);"


def test_float_arithmetic_is_done_as_written():
    two = lambda b: b.const(F32, 2.0, 1)
    add = lambda b, x, y: b.alu(Ops.ADD, F32, [x, y], 1)
    sub = lambda b, x, y: b.alu(Ops.SUB, F32, [x, y], 1)
    assert stored(F32, lambda b, x: sub(b, add(b, x, two(b)), two(b))) == (
        "data0[0] = as_rounded(data1[1] + 2.0f) - 2.0f;"
    )
    product = stored(F32, lambda b, x: b.alu(Ops.MUL, F32, [x, b.const(F32, 0.0, 1)], 1))
    assert product == "data0[0] = data1[1] * arguments.zero;"
    assert stored(F32, lambda b, x: sub(b, x, x)).endswith("as_rounded(x0);")
    multiply_add = lambda b, x: add(b, b.alu(Ops.MUL, F32, [x, two(b)], 1), two(b))
    assert stored(F32, multiply_add) == "data0[0] = data1[1] * 2.0f + 2.0f;"


def test_comparisons_know_nan_and_are_no_templates():
    differ = lambda b, x: b.alu(Ops.CMPNE, F32, [x, b.const(F32, 1.0, 1)], 1)
    assert "!(data1[1] == 1.0f)" in stored(F32, differ, dtypes.bool)
    places = lambda b: b.const(I32, 2, 1)
    less = lambda b, x: b.alu(Ops.CMPLT, I32, [x, b.alu(Ops.SHR, I32, [x, places(b)], 1)], 1)
    assert "x0 < (x0 >> 2u)" in stored(I32, less, dtypes.bool)


def test_narrow_integers_stay_in_range_and_lie_in_words():
    text = written(dtypes.int8, lambda b, x: b.alu(Ops.ADD, dtypes.int8, [x, x], 1))
    assert "store_data0(0, extractBits(x0 + x0, 0u, 8u));" in text
    assert "var<storage, read_write> data0: array<atomic<u32>>;" in text
    assert "var<storage, read_write> data1: array<u32>;" in text
    assert "return extractBits(bitcast<i32>(data1[i >> 2u]), u32(i & 3) * 8u, 8u);" in text


def test_a_buffer_used_by_fours_alone_is_one_of_vectors():
    def kernel(scalar):
        b = WGSLBuilder(TARGET)
        (out, data), _ = b.begin("k", [F32, F32], [])
        i = b.alu(Ops.MUL, INDEX, [b.special("invocation", 0, b.const(INDEX, 8, 1)), b.const(INDEX, 4, 1)], 1)
        b.store(Address(out, i), b.load(Address(data, i, 4), F32, 4), F32, 4)
        if scalar:
            b.store(Address(out, i), b.load(Address(data, i, 1), F32, 1), F32, 1)
        return str(b.finish())

    assert kernel(False).count("array<vec4<f32>>") == 2 and "data0[i >> 2u] = value;" in kernel(False)
    assert "vec4<f32>>" not in kernel(True) and "data0[i + 3] = value.w;" in kernel(True)
    assert "@workgroup_size(8, 1, 1)" in kernel(True)


def test_float64_is_refused():
    with pytest.raises(DeviceError, match="float64: the device has no such dtype: use float32"):
        written(dtypes.float64, lambda b, x: x)


def test_the_library_gives_each_function_once_and_after_what_it_calls():
    for name in FUNCTIONS:
        texts = source([name, name])
        assert texts[-1] == FUNCTIONS[name] and len(set(texts)) == len(texts)
    assert source(["neg_64"]) == [FUNCTIONS["sub_64"], FUNCTIONS["neg_64"]]


def test_conditions_are_no_branches():
    assert not [name for name, text in FUNCTIONS.items() if "&&" in text or "||" in text]
