"""Loads that are prefetched: of large buffers of narrow numbers that a sum reads once."""

from __future__ import annotations

import numpy as np
import pytest
from renderer.llvm_functions import builder, elementwise

from polygrad import Tensor
from polygrad.codegen.lower.passes import LoweringContext, run_passes
from polygrad.codegen.opts.cost import LINE_BYTES
from polygrad.codegen.target import Target
from polygrad.dtype import dtypes
from polygrad.renderer.emit import emit
from polygrad.renderer.llvm.builder import LLVMBuilder
from polygrad.renderer.streams import AHEAD, streamed_loads
from polygrad.uop.node import UOp
from tests.codegen.test_split import ast_of, empty

TARGET = Target("CPU", simd_bytes=64, registers=32, fma=True)
COLUMNS = 1024
FAR = TARGET.cache[1] // COLUMNS  # rows of bytes that the second cache does not hold


def linear_of(rows: int, dtype: str, x_rows: int = 1) -> list[UOp]:
    weight = Tensor.zeros(rows, COLUMNS, dtype=dtype).contiguous().realize()
    linear = run_passes(
        ast_of(empty(x_rows, COLUMNS).linear(weight.cast("float32").transpose())), LoweringContext(TARGET)
    )
    assert isinstance(linear, list)
    return linear


def streamed(rows: int, dtype: str, x_rows: int = 1) -> list[str]:
    """The dtypes of the loads that are prefetched."""
    return [n.dtype.name for n in streamed_loads(linear_of(rows, dtype, x_rows), 16, TARGET)]


def test_a_large_matrix_of_narrow_numbers_is() -> None:
    assert streamed(FAR, "int8") == ["int8"]
    assert streamed(FAR, "bfloat16") == ["bfloat16"]


@pytest.mark.parametrize(
    ("rows", "dtype", "x_rows"), [(FAR - 16, "int8", 1), (FAR, "float32", 1), (FAR, "int8", 64)]
)
def test_a_small_one_wide_numbers_and_one_that_is_read_again_are_not(
    rows: int, dtype: str, x_rows: int
) -> None:
    assert streamed(rows, dtype, x_rows) == []


def test_a_round_asks_for_each_line_once() -> None:
    """Four vectors of 16 bytes are one line, four of bfloat16 two."""
    for dtype, lines in (("int8", 1), ("bfloat16", 2)):
        text = emit("k", linear_of(FAR, dtype), LLVMBuilder(TARGET, native_half=True))
        assert text.count("@llvm.prefetch.p0(") == lines
        assert f"i64 {AHEAD}\n" in text
    assert LINE_BYTES == 64


def test_the_product_is_numpy_s_within_1e_4() -> None:
    rng = np.random.default_rng(0)
    w = rng.integers(-127, 128, (FAR + 3, COLUMNS)).astype(np.int8)
    x = rng.standard_normal((1, COLUMNS)).astype(np.float32)
    got = Tensor(x, device="CPU").linear(Tensor(w, device="CPU").cast("float32").transpose()).numpy()
    want = x.astype(np.float64) @ w.T.astype(np.float64)
    assert np.abs(got - want).max() < 1e-4 * np.abs(want).max()


@pytest.mark.parametrize("native_half", [False, True])
def test_a_converted_half_in_all_lanes_has_the_bits_of_the_half(native_half: bool) -> None:
    if native_half and not builder().native_half:
        pytest.skip("this processor does not convert halves")
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    chosen = halves[np.isfinite(halves)][::7][:96]

    def body(b: LLVMBuilder, operands: list[str], lanes: int) -> str:
        first = b.extract(operands[0], dtypes.float16, lanes - 1, lanes)
        return b.splat(b.cast(first, dtypes.float16, dtypes.float32, 1), dtypes.float32, lanes)

    got = elementwise([(dtypes.float16, chosen)], dtypes.float32, 16, body, native_half)
    np.testing.assert_array_equal(got, np.repeat(chosen.astype(np.float32)[15::16], 16))
