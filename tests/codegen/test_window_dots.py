"""Dot products of windows: what becomes of convolutions of narrow numbers, and that random ones are exact."""

from __future__ import annotations

import numpy as np
import pytest

hypothesis = pytest.importorskip("hypothesis")
torch = pytest.importorskip("torch")
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from polygrad import Tensor  # noqa: E402
from polygrad.codegen.target import Target  # noqa: E402
from polygrad.dtype import dtypes  # noqa: E402
from polygrad.engine.normalize import normalize  # noqa: E402
from polygrad.schedule.kernels import KernelCall  # noqa: E402
from polygrad.uop.args import AxisKind, Dot  # noqa: E402
from polygrad.uop.node import UOp  # noqa: E402
from polygrad.uop.ops import Ops  # noqa: E402
from polygrad.uop.spec import verify  # noqa: E402
from tests.codegen.grid_kernels import decided  # noqa: E402
from tests.schedules import schedule  # noqa: E402

MIXED = Dot(dtypes.uint8, dtypes.int8)
TARGET = Target("test", simd_bytes=64, registers=32, fma=True, dots=frozenset({MIXED}))
NARROW = ("int8", "uint8", "int16")


def empty(*shape: int, dtype: str) -> Tensor:
    return Tensor.zeros(*shape, dtype=dtype).contiguous().realize()


def kernels(out: Tensor) -> list[KernelCall]:
    calls = list(schedule(normalize(UOp.sink(out.uop.base)).sink, optimized=True).calls)
    made = decided("relayout", calls, TARGET)
    for call in made:
        verify(call.ast.toposort(), "kernel")
    return made


def dots(calls: list[KernelCall]) -> list[UOp]:
    return [n for call in calls for n in call.ast.toposort() if n.op is Ops.DOT]


def summed(call: KernelCall) -> list[int]:
    """Sizes of the loops that the product sums over, outermost first."""
    (total,) = [n for n in call.ast.toposort() if n.op is Ops.REDUCE]
    return [r.src[0].arg for r in total.src[1:]]


def convolution(x: str = "uint8", w: str = "int8", channels: int = 32, total: str = "int32", **settings):
    """Of 32 to 32 channels, 3 x 3, padded."""
    groups = settings.get("groups", 1)
    a, b = empty(1, channels, 28, 28, dtype=x), empty(32, channels // groups, 3, 3, dtype=w)
    return a.cast(total).conv2d(b.cast(total), padding=1, **settings)


@pytest.mark.parametrize(
    ("x", "w", "count"),
    [("uint8", "int8", 3), ("int8", "uint8", 3), ("int8", "int8", 4), ("uint8", "uint8", 4)],
)
def test_channels_become_words_and_positions_in_the_kernel_stay_loops(x: str, w: str, count: int) -> None:
    made = kernels(convolution(x, w))
    assert len(made) == count and summed(made[-1]) == [8, 3, 3]
    (dot,) = dots(made)
    assert dot.arg == MIXED
    assert not any(len(n.src) > 1 for n in made[-1].ast.toposort() if n.op is Ops.LOAD)  # no padding is left


def test_windows_that_overlap_are_packed_once() -> None:
    pack = next(call for call in kernels(convolution()) if call.args[0].arg.size == 8 * 30 * 30)
    assert not any(r.arg.kind is AxisKind.REDUCE for r in pack.ast.toposort() if r.op is Ops.RANGE)


def test_sums_that_an_offset_needs_are_those_of_the_weights() -> None:
    for dtype in ("int8", "uint8"):
        sums = kernels(convolution(dtype, dtype))[-2]
        assert sums.args[0].arg.size == 32


def test_a_number_of_channels_that_is_no_multiple_of_4_is_filled_up() -> None:
    assert summed(kernels(convolution(channels=34))[-1]) == [9, 3, 3]


def test_computed_codes_are_stored_in_8_bits() -> None:
    a, b = empty(256, 256, dtype="float32"), empty(256, 256, dtype="int8")
    codes = (a * 3).round().clamp(0, 255).cast("uint8")
    made = kernels(codes.dot(b, dtype="int32"))
    assert len(dots(made)) == 1 and made[0].args[0].dtype is dtypes.uint8


def test_none_for_a_convolution_of_each_channel_wider_numbers_or_floats() -> None:
    assert not dots(kernels(convolution(groups=32)))
    assert not dots(kernels(convolution("int32")))
    assert not dots(kernels(convolution(total="float32")))


def extremes(rng, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    limits = np.iinfo(dtype)
    if rng.integers(2):
        return rng.choice([limits.min, limits.max], shape).astype(dtype)
    return rng.integers(limits.min, limits.max, shape, endpoint=True).astype(dtype)


@pytest.mark.parametrize("device", ["CPU", "WASM"])
def test_random_convolutions_are_exact(device: str, eager_copies: None) -> None:
    @settings(max_examples=30, deadline=None)
    @given(
        st.tuples(st.integers(1, 2), st.integers(1, 9), st.integers(1, 20), st.integers(1, 2)),
        st.tuples(st.integers(5, 20), st.integers(5, 20)),
        st.tuples(st.integers(1, 3), st.integers(1, 3)),
        st.tuples(st.integers(1, 2), st.integers(1, 2), st.integers(0, 2)),
        st.sampled_from(NARROW),
        st.sampled_from(NARROW),
        st.integers(0, 127),
        st.integers(0, 2**31),
    )
    def check(counts, sizes, kernel, steps, x, w, fill, seed):
        batch, inputs, outputs, groups = counts
        stride, dilation, padding = steps
        rng = np.random.default_rng(seed)
        a = extremes(rng, x, (batch, inputs * groups, *sizes))
        b = extremes(rng, w, (outputs * groups, inputs, *kernel))
        padded = Tensor(a, device=device).pad((padding,) * 4, value=fill)
        got = padded.cast("int32").conv2d(
            Tensor(b, device=device).cast("int32"), stride=stride, dilation=dilation, groups=groups
        )
        whole = torch.nn.functional.pad(torch.tensor(a.astype(np.int64)), (padding,) * 4, value=fill)
        weights = torch.tensor(b.astype(np.int64))
        exact = torch.nn.functional.conv2d(whole, weights, stride=stride, dilation=dilation, groups=groups)
        np.testing.assert_array_equal(got.numpy(), exact.numpy().astype(np.int32))

    check()


def rows_of_a_product(target: Target) -> int:
    """How many kernels the softmax of a product of bytes is."""
    a, b = empty(4096, 512, dtype="uint8"), empty(512, 512, dtype="int8")
    out = a.dot(b, dtype="int32").float().softmax(-1)
    calls = list(schedule(normalize(UOp.sink(out.uop.base)).sink, optimized=True).calls)
    return len(decided("compute-at", calls, target)) - len(calls)


def test_a_product_of_bytes_moves_into_no_other_kernel() -> None:
    assert rows_of_a_product(TARGET) == 0
    assert rows_of_a_product(Target("test", simd_bytes=64, registers=32, fma=True)) == -1
