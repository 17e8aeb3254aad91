"""Lanes that are a constant number of elements apart: views with steps, windows, channels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

np = pytest.importorskip("numpy", reason="it holds the arrays")
torch = pytest.importorskip("torch", reason="it is the judge")

from polygrad import Tensor, dtypes  # noqa: E402
from polygrad.dtype import DType  # noqa: E402

DTYPES = (
    dtypes.bool, dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.uint16, dtypes.int32, dtypes.uint32,
    dtypes.int64, dtypes.float16, dtypes.float32, dtypes.float64,
)  # fmt: skip


def data(dtype: DType, *shape: int) -> Any:
    rng = np.random.default_rng(7)
    low, high = (0, 2) if dtype is dtypes.bool else (0, 200) if dtype.is_unsigned else (-100, 100)
    return rng.integers(low, high, shape).astype(dtype.name)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("step", [-4, -3, -2, -1, 2, 3, 4, 5])
@pytest.mark.parametrize("width", [16, 37, 64, 131])
def test_steps_of_a_view(device: str, dtype: DType, step: int, width: int) -> None:
    x = data(dtype, 3, width)
    got = Tensor(x, device=device)[:, ::step].contiguous().numpy()
    np.testing.assert_array_equal(got, x[:, ::step])


@pytest.mark.parametrize("dtype", [dtypes.uint8, dtypes.int8, dtypes.float16, dtypes.float32], ids=str)
@pytest.mark.parametrize("channels", [2, 3, 4])
def test_channels_become_planes(device: str, dtype: DType, channels: int) -> None:
    x = data(dtype, 19, 23, channels)
    got = Tensor(x, device=device).permute(2, 0, 1).cast(dtypes.float32).contiguous().numpy()
    np.testing.assert_array_equal(got, x.transpose(2, 0, 1).astype(np.float32))


@pytest.mark.parametrize("opts", ["SIMD r0 4 4", "SIMD r0 4 1", "UPCAST r0 2"])
def test_pairs_are_complex_numbers(device: str, opts: str) -> None:
    if device == "INTERP":
        pytest.skip("INTERP's kernels are scalar: they take no Opts")
    x, y = data(dtypes.float32, 128, 2), data(dtypes.float32, 128, 2)
    a, b = Tensor(x, device=device), Tensor(y, device=device)
    got = (a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]).contiguous(opts=opts).numpy()
    np.testing.assert_array_equal(got, x[:, 0] * y[:, 1] - x[:, 1] * y[:, 0])


POOLS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[torch.Tensor], torch.Tensor]]] = {
    "max 2x2": (lambda x: x.max_pool2d(2), lambda x: torch.nn.functional.max_pool2d(x, 2)),
    "max 3x3 by 2": (lambda x: x.max_pool2d(3, 2), lambda x: torch.nn.functional.max_pool2d(x, 3, 2)),
    "mean 2x2": (lambda x: x.avg_pool2d(2), lambda x: torch.nn.functional.avg_pool2d(x, 2)),
    "mean 4x4": (lambda x: x.avg_pool2d(4), lambda x: torch.nn.functional.avg_pool2d(x, 4)),
    "max 3x3 by 3": (lambda x: x.max_pool2d(3), lambda x: torch.nn.functional.max_pool2d(x, 3)),
}


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("size", [(16, 48), (17, 37), (48, 70)])
def test_pooling_and_its_gradient_within_1e_6(device: str, pool: str, size: tuple[int, int]) -> None:
    ours, theirs = POOLS[pool]
    x = (
        np.random.default_rng(3)
        .permutation(2 * 3 * size[0] * size[1])
        .reshape(2, 3, *size)
        .astype(np.float32)
    )
    a, b = Tensor(x, device=device), torch.tensor(x, requires_grad=True)
    y, want = ours(a), theirs(b)
    (gradient,) = (y * y).sum().gradient(a)
    np.testing.assert_allclose(y.numpy(), want.detach().numpy(), rtol=1e-6)
    (want * want).sum().backward()
    assert b.grad is not None
    np.testing.assert_allclose(gradient.numpy(), b.grad.numpy(), rtol=1e-6)


def test_a_convolution_that_goes_two_by_two_within_1e_4(device: str) -> None:
    rng = np.random.default_rng(5)
    x, w = (
        rng.normal(size=(1, 6, 21, 40)).astype(np.float32),
        rng.normal(size=(5, 6, 3, 3)).astype(np.float32),
    )
    got = Tensor(x, device=device).conv2d(Tensor(w, device=device), stride=2, padding=1).numpy()
    want = torch.nn.functional.conv2d(torch.tensor(x), torch.tensor(w), stride=2, padding=1).numpy()
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("times", [2, 4])
def test_neighbours_share_an_element(device: str, times: int) -> None:
    x = data(dtypes.float32, 5, 32)
    opts = None if device == "INTERP" else "SIMD r1 4 4"
    repeated = Tensor(x, device=device).reshape(5, 32, 1).expand(5, 32, times).reshape(5, 32 * times)
    got = (repeated + Tensor.zeros(5, 32 * times, device=device).contiguous()).contiguous(opts=opts).numpy()
    np.testing.assert_array_equal(got, np.repeat(x, times, axis=1))
