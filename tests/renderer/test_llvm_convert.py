"""LLVMBuilder's conversions against numpy and exact arithmetic: to the bit."""

from __future__ import annotations

import numpy as np
import pytest
from renderer.llvm_functions import FLOATS, LANES, converted, elementwise, numpy_type, same, samples

from polygrad.dtype import DType, dtypes
from polygrad.renderer.llvm.compile import host_has_half

pytestmark = pytest.mark.usefixtures("verified")


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
