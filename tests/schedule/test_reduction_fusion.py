"""Reduction fusion: where it fires, where it must not, and that values stay those of separate kernels."""

from __future__ import annotations

import numpy as np
import pytest

from polygrad import Tensor
from polygrad.engine.normalize import normalize
from polygrad.uop.node import UOp
from tests.schedules import schedule

RNG = np.random.default_rng(5)


def kernel_counts(*outputs: Tensor) -> tuple[int, int]:
    """Kernels without and with reduction fusion."""
    sink = normalize(UOp.sink(*[t.uop.base for t in outputs])).sink
    return len(schedule(sink).calls), len(schedule(sink, optimized=True).calls)


def rows(n: int = 64, k: int = 512) -> Tensor:
    return Tensor(RNG.standard_normal((n, k)).astype(np.float32)).realize()


def test_softmax_and_layernorm_become_one_kernel() -> None:
    x = rows()
    assert kernel_counts(x.softmax(-1)) == (3, 1)
    assert kernel_counts(x.layernorm()) == (3, 1)


def test_a_batch_of_rows_is_matched_axis_by_axis() -> None:
    x = Tensor(RNG.standard_normal((4, 8, 300)).astype(np.float32)).realize()
    assert kernel_counts(x.softmax(-1))[1] == 1


def test_not_into_a_matrix_product() -> None:
    """The statistics of a row would be computed again for every column tile."""
    x, w = rows(64, 300), rows(300, 64)
    centred = x - x.sum(-1, keepdim=True)
    plain, fused = kernel_counts(centred @ w)
    assert fused == plain


def test_not_along_the_outer_axis() -> None:
    """Columns are the inner loop of the reader: each would be reduced once per row."""
    x = rows(512, 64)
    plain, fused = kernel_counts(x - x.sum(0, keepdim=True) * 0.5)
    assert fused == plain


def test_not_when_the_result_is_wanted_or_read_twice() -> None:
    x = rows()
    total = x.sum(-1, keepdim=True)
    assert kernel_counts(x - total, total) == (2, 2)
    assert kernel_counts(x - total, x * total)[1] == 3


def test_not_past_a_write_to_what_it_reads() -> None:
    """The sum of the old rows, read by a kernel that runs after the rows are overwritten."""
    data = RNG.standard_normal((16, 300)).astype(np.float32)
    x, y = Tensor(data).realize(), rows(16, 300)
    total = x.sum(-1, keepdim=True)
    x.assign(x * 2)
    out = y - total
    Tensor.realize(x, out)
    np.testing.assert_allclose(out.numpy(), y.numpy() - data.sum(-1, keepdims=True), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(8, 300), (33, 257), (64, 1000), (3, 5, 301)])
def test_softmax_of_any_row_length_within_1e_6(device: str, shape: tuple[int, ...]) -> None:
    if device == "INTERP":
        shape = (*shape[:-1], 29)
    data = RNG.standard_normal(shape).astype(np.float32) * 4
    out = Tensor(data, device=device).softmax(-1).numpy()
    want = np.exp(data.astype(np.float64) - data.max(-1, keepdims=True))
    np.testing.assert_allclose(out, want / want.sum(-1, keepdims=True), atol=1e-6)
