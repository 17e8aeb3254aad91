"""WasmBuilder's conversions: every pair of dtypes and width, bit for bit; every 16-bit float."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from wasm_kernel import LANES, NUMPY, Machine, elementwise, same, sample

from polygrad.dtype import DType, dtypes

both = pytest.mark.parametrize("lanes", LANES)
PATTERNS = np.arange(65536, dtype=np.uint16)
HALVES = (dtypes.float16, dtypes.bfloat16)


def as_float(x: np.ndarray, dtype: DType) -> np.ndarray:
    return (x.astype(np.uint32) << 16).view(np.float32) if dtype is dtypes.bfloat16 else x


def round_bfloat16(x: np.ndarray) -> np.ndarray:
    """float32 or float64 to the bits of the nearest bfloat16, in exact float64 arithmetic."""
    x = x.astype(np.float64)
    step = np.maximum(np.frexp(np.where(np.isfinite(x), x, 1.0))[1] - 8, -133)
    with np.errstate(all="ignore"):
        rounded = np.ldexp(np.rint(np.ldexp(x, -step)), step).astype(np.float32)
    bits = (rounded.view(np.uint32) >> 16).astype(np.uint16)
    return np.where(np.isnan(x), np.uint16(0x7FC0), bits).astype(np.uint16)


def reference(x: np.ndarray, src: DType, dst: DType) -> np.ndarray:
    x = as_float(x, src)
    if dst is dtypes.bool:
        return x != 0
    with np.errstate(all="ignore"):
        if dst is dtypes.bfloat16:
            return round_bfloat16(x if x.dtype.kind == "f" else x.astype(np.float32))
        if dst is dtypes.float16:
            return (x if x.dtype.kind == "f" else x.astype(np.float32)).astype(np.float16)
        if dst.is_int and src.is_float:
            whole = [
                0 if math.isnan(v) else max(dst.min, min(dst.max, v)) for v in x.astype(np.float64).tolist()
            ]
            return np.array([int(v) for v in whole], NUMPY[dst])
        return x.astype(NUMPY[dst])


@both
@pytest.mark.parametrize("src", dtypes.all, ids=str)
def test_cast_to_every_dtype_exactly(src: DType, lanes: int) -> None:
    x = sample(src, 1)
    machine = Machine([
        elementwise(dst, dst, [src], lanes, lambda b, v, dst=dst: b.cast(v, src, dst, lanes))
        for dst in dtypes.all
    ])  # fmt: skip
    for dst in dtypes.all:
        expected = x if dst is src else reference(x, src, dst)
        got = machine.call(dst, [np.empty(len(x), NUMPY[dst]), x], len(x))[0]
        same(got, expected, f"{src} to {dst}, {lanes} lanes", dst)


def test_cast_of_an_index() -> None:
    f = elementwise("f", dtypes.int64, [dtypes.int64], 4, lambda b, v: b.cast(
        b.cast(v, dtypes.int64, dtypes.index, 4), dtypes.index, dtypes.int64, 4))  # fmt: skip
    x = sample(dtypes.int32, 1).astype(np.int64)
    same(Machine([f]).call("f", [np.empty_like(x), x], len(x))[0], x, "through index")


@both
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_all_patterns_of_a_16_bit_float_to_float32_and_back_exactly(dtype: DType, lanes: int) -> None:
    x = PATTERNS.view(NUMPY[dtype])
    up = elementwise(
        "up", dtypes.float32, [dtype], lanes, lambda b, v: b.cast(v, dtype, dtypes.float32, lanes)
    )
    down = elementwise(
        "down", dtype, [dtypes.float32], lanes, lambda b, v: b.cast(v, dtypes.float32, dtype, lanes)
    )
    machine = Machine([up, down])
    wide = machine.call("up", [np.empty(65536, np.float32), x], 65536)[0]
    same(wide, as_float(x, dtype).astype(np.float32), f"{dtype} to float32")
    back = machine.call("down", [np.empty_like(x), wide], 65536)[0]
    same(back, x, f"{dtype} through float32", dtype)
    assert np.array_equal(np.signbit(wide), PATTERNS >> 15 == 1)


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("src", [dtypes.float32, dtypes.float64], ids=str)
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_rounding_to_a_16_bit_float_at_and_around_every_midpoint_exactly(
    dtype: DType, src: DType, lanes: int
) -> None:
    with np.errstate(all="ignore"):
        values = as_float(PATTERNS[:0x8000].view(NUMPY[dtype]), dtype).astype(NUMPY[src])
        values = values[np.isfinite(values)]
        middle = (values[:-1] / 2 + values[1:] / 2).astype(NUMPY[src])
        x = np.concatenate(
            [middle, np.nextafter(middle, NUMPY[src].type(0)), np.nextafter(middle, NUMPY[src].type(9e9))]
        )
        x = np.concatenate([x, -x])
    x = np.resize(x, -(-len(x) // 4) * 4)
    f = elementwise("f", dtype, [src], lanes, lambda b, v: b.cast(v, src, dtype, lanes))
    got = Machine([f]).call("f", [np.empty(len(x), NUMPY[dtype]), x], len(x))[0]
    same(got, reference(x, src, dtype), f"{src} to {dtype}", dtype)


@both
@pytest.mark.parametrize("src", dtypes.all, ids=str)
def test_bitcast_between_dtypes_of_one_size(src: DType, lanes: int) -> None:
    x = sample(src, 2)
    others = [d for d in dtypes.all if d.itemsize == src.itemsize]
    machine = Machine([
        elementwise(dst, dst, [src], lanes, lambda b, v, dst=dst: b.bitcast(v, src, dst, lanes))
        for dst in others
    ])  # fmt: skip
    for dst in others:
        expected: Any = x != 0 if dst is dtypes.bool else x.view(NUMPY[dst])
        got = machine.call(dst, [np.empty(len(x), NUMPY[dst]), x], len(x))[0]
        assert got.tobytes() == expected.tobytes(), f"{src} as {dst}, {lanes} lanes"
