"""Products in kernels of their own: which sums share a kernel, and that the results are numpy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from adapter import WEBGPU

from polygrad import Tensor, Variable
from polygrad.engine.normalize import normalize
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from tests.schedules import schedule

N = 64


def sums_of_kernels(out: Tensor, grid: bool = False) -> list[int]:
    """How many sums each kernel has."""
    sink = normalize(UOp.sink(out.uop.base)).sink
    calls = schedule(sink, True, grid=grid).calls
    return [sum(n.op is Ops.REDUCE for n in call.ast.toposort()) for call in calls]


# name, operation, numpy's, sums of each kernel
Case = tuple[str, Callable[..., Tensor], Callable[..., Any], list[int]]
CASES: list[Case] = [
    ("sum of all", lambda x, w, g, u: ((x @ w) * g).sum(), lambda x, w, g, u: ((x @ w) * g).sum(), [1, 1]),
    (
        "mean squared error",
        lambda x, w, g, u: ((x @ w).relu() - g).square().mean(),
        lambda x, w, g, u: ((np.maximum(x @ w, 0) - g) ** 2).mean(),
        [1, 1],
    ),
    ("sum of rows", lambda x, w, g, u: ((x @ w) * g).sum(1), lambda x, w, g, u: ((x @ w) * g).sum(1), [1, 1]),
    ("two products", lambda x, w, g, u: x @ w + g @ u, lambda x, w, g, u: x @ w + g @ u, [1, 1]),
    (
        "a product and a sum",
        lambda x, w, g, u: x @ w + (g.reshape(N, N, 1) * u.reshape(1, N, N)).exp().sum(1),
        lambda x, w, g, u: x @ w + np.exp(g[:, :, None] * u[None]).sum(1),
        [1, 1],
    ),
    (
        "concatenation",
        lambda x, w, g, u: (x @ w).cat(g @ u, x, dim=1),
        lambda x, w, g, u: np.concatenate([x @ w, g @ u, x], 1),
        [2],  # in loops of their own
    ),
    (
        "a product of concatenations",
        lambda x, w, g, u: (x @ w).cat(g, dim=1) * (g @ u).cat(x, dim=1),
        lambda x, w, g, u: np.concatenate([x @ w, g], 1) * np.concatenate([g @ u, x], 1),
        [1, 1],
    ),
    (
        "padding",
        lambda x, w, g, u: (x @ w).pad(((1, 2), (0, 3))),
        lambda x, w, g, u: np.pad(x @ w, ((1, 2), (0, 3))),
        [1],
    ),
    (
        "sum of a concatenation",
        lambda x, w, g, u: (x @ w).cat(g @ u, x, dim=1).sum(0),
        lambda x, w, g, u: np.concatenate([x @ w, g @ u, x], 1).sum(0),
        [1, 1, 1],
    ),
    (
        "running sums",
        lambda x, w, g, u: (x @ w).cumsum(1),
        lambda x, w, g, u: (x @ w).cumsum(1),
        [1, 0],
    ),
    (
        "maxima of columns",
        lambda x, w, g, u: (x @ w + u[0]).max(0),
        lambda x, w, g, u: (x @ w + u[0]).max(0),
        [1, 1],
    ),
    (
        "a narrow product",
        lambda x, w, g, u: (x @ w[:, :8]).max(1),
        lambda x, w, g, u: (x @ w[:, :8]).max(1),
        [1, 1],
    ),
    (
        "distances",
        lambda x, w, g, u: (x.reshape(N, 1, N) - w.reshape(1, N, N)).square().sum(2).min(1),
        lambda x, w, g, u: ((x[:, None] - w[None]) ** 2).sum(2).min(1),
        [1, 1],
    ),
    (
        "a product of maxima and sums",
        lambda x, w, g, u: (x.reshape(N, N, 1) + w.reshape(1, N, N)).max(1).sum(),
        lambda x, w, g, u: (x[:, :, None] + w[None]).max(1).sum(),
        [1, 1],
    ),
    (
        "maxima of a convolution",
        lambda x, w, g, u: x.reshape(1, 1, N, N).conv2d(g[:8, :9].reshape(8, 1, 3, 3)).max((2, 3)),
        lambda x, w, g, u: np.max(
            [
                [
                    (np.lib.stride_tricks.sliding_window_view(x, (3, 3)) * g[i, :9].reshape(3, 3)).sum((2, 3))
                    for i in range(8)
                ]
            ],
            (2, 3),
        ),
        [1, 1],
    ),
    # and what stays
    (
        "epilogue",
        lambda x, w, g, u: (x @ w + u[0]).relu() * g,
        lambda x, w, g, u: np.maximum(x @ w + u[0], 0) * g,
        [1],
    ),
    (
        "gradient of a convolution",
        lambda x, w, g, u: (
            x.reshape(1, 1, N, N)
            .conv2d(g[:8, :9].reshape(8, 1, 3, 3), padding=1)
            .gradient(x, gradient=w.reshape(1, 1, N, N).expand(1, 8, N, N))[0]
        ),
        lambda x, w, g, u: sum(
            np.pad(w, 1)[2 - i : 2 - i + N, 2 - j : 2 - j + N] * g[:8, 3 * i + j].sum()
            for i in range(3)
            for j in range(3)
        ),
        [2],  # which lowering makes one
    ),
    (
        "a vector and a matrix",
        lambda x, w, g, u: ((x[0] @ w) * g[0]).sum(),
        lambda x, w, g, u: ((x[0] @ w) * g[0]).sum(),
        [2],
    ),
    (
        "a sum of equal rows",
        lambda x, w, g, u: (x[:1].expand(4096, N).sum(0) * g[0]).sum(),
        lambda x, w, g, u: (4096 * x[0] * g[0]).sum(),
        [2],  # one of which needs no loop
    ),
    ("two sums of all", lambda x, w, g, u: x.sum() + g.max(), lambda x, w, g, u: x.sum() + g.max(), [2]),
    (
        "maxima of sums",
        lambda x, w, g, u: x.reshape(N, 8, 8).sum(2).max(1),
        lambda x, w, g, u: x.reshape(N, 8, 8).sum(2).max(1),
        [2],
    ),
    (
        "a row of a product",
        lambda x, w, g, u: ((x @ w)[3] * g[3]).sum(),
        lambda x, w, g, u: ((x @ w)[3] * g[3]).sum(),
        [2],
    ),
    (
        "small products",
        lambda x, w, g, u: (x[:4] @ w[:, :4]).sum(),
        lambda x, w, g, u: (x[:4] @ w[:, :4]).sum(),
        [2],
    ),
    (
        "gather",
        lambda x, w, g, u: (x @ w)[:, Tensor([3, 1, 2], dtype="int32", device=x.device)],
        lambda x, w, g, u: (x @ w)[:, [3, 1, 2]],
        [1, 1],
    ),
]

ON_GRIDS = {
    "concatenation": [1, 1, 0],
    "a product of concatenations": [1, 1, 0],
    "padding": [1, 0],
    "a product of maxima and sums": [2],
}


def operands(device: str | None = None) -> tuple[list[Tensor], list[Any]]:
    arrays = [np.random.default_rng(i).uniform(-1, 1, (N, N)).astype("float32") for i in range(4)]
    return [Tensor(a, device=device).realize() for a in arrays], arrays


@pytest.mark.parametrize(("operation", "expected"), [pytest.param(c[1], c[3], id=c[0]) for c in CASES])
def test_which_sums_share_a_kernel(operation: Callable[..., Tensor], expected: list[int]) -> None:
    tensors, _ = operands()
    assert sums_of_kernels(operation(*tensors)) == expected


@pytest.mark.parametrize("case", [pytest.param(c, id=c[0]) for c in CASES])
def test_on_grids_padding_is_apart_and_maxima_are_no_products(case: Case) -> None:
    name, operation, _, elsewhere = case
    tensors, _ = operands()
    assert sums_of_kernels(operation(*tensors), grid=True) == ON_GRIDS.get(name, elsewhere)


@pytest.mark.parametrize("device", ["CPU", "WASM", WEBGPU])
@pytest.mark.parametrize(("operation", "wanted"), [pytest.param(c[1], c[2], id=c[0]) for c in CASES])
def test_results_are_those_of_numpy_within_1e_4(
    operation: Callable[..., Tensor], wanted: Callable[..., Any], device: str
) -> None:
    tensors, arrays = operands(device)
    np.testing.assert_allclose(operation(*tensors).numpy(), wanted(*arrays), rtol=1e-4, atol=1e-4)


def test_the_products_of_attention_and_of_its_gradients_are_apart() -> None:
    (x, w, g, _), _ = operands()

    def attention(x: Tensor) -> Tensor:
        heads = [t.reshape(1, N, 2, -1).transpose(1, 2) for t in (x @ w.cat(w, w, dim=1)).chunk(3, -1)]
        return heads[0].scaled_dot_product_attention(heads[1], heads[2], is_causal=True)

    gradient = attention(x).gradient(w, gradient=g.reshape(1, 2, N, -1))[0]
    assert max(sums_of_kernels(gradient, grid=True)) == 1
    assert sorted(sums_of_kernels(gradient))[-2:] == [1, 3]  # the gradients of q, k and v, side by side


def test_products_of_sizes_that_vary_are_apart() -> None:
    n = Variable("n", 1, N).bind(40)
    (x, w, *_), (a, b, *_) = operands()
    for out, expected in (((x[:n] @ w).sum(), (a[:40] @ b).sum()), ((x @ w)[:n].sum(), (a @ b)[:40].sum())):
        assert sums_of_kernels(out) == [1, 1]
        np.testing.assert_allclose(out.item(), expected, rtol=1e-4)


def _gated(rows: int, size: int) -> Tensor:
    """Two products with the same rows, as in a gated feed-forward layer."""
    x, w, u = (Tensor.empty(*shape).contiguous().realize() for shape in [(rows, size), *[(size, size)] * 2])
    return (x @ w.transpose()).silu() * (x @ u.transpose())


@pytest.mark.parametrize(("size", "sums"), [(64, [2]), (256, [2]), (512, [1, 1])])
def test_large_products_with_one_row_have_kernels_of_their_own(size: int, sums: list[int]) -> None:
    assert sums_of_kernels(_gated(1, size)) == sums


def test_on_grids_the_gradient_of_a_gather_is_apart_from_a_product() -> None:
    """As in a model whose embedding is its last layer, too."""
    ids = Tensor([3, 5, 3] * 20, dtype="int32").realize()

    def gradient(w: Tensor, x: Tensor) -> Tensor:
        w = w.detach()
        w.requires_grad = True
        ((w[ids] @ w.T) * x[: len(ids)]).sum().backward()
        return w.grad

    (w, x, *_), _ = operands()
    assert max(sums_of_kernels(gradient(w, x), True)) == 1


def test_on_grids_products_with_one_row_share_a_kernel() -> None:
    assert sums_of_kernels(_gated(1, 512), grid=True) == [2]


def test_a_product_with_a_vector_shares_no_kernel_with_a_sum_before_it() -> None:
    x, w, v = (Tensor.empty(*shape).contiguous().realize() for shape in ((512, 512), (512, 512), (512,)))
    assert sums_of_kernels(x.exp().sum(1) + w @ v) == [1, 1]


def test_sums_of_squares_are_no_products_with_a_row() -> None:
    x = Tensor.empty(512, 512).contiguous().realize()
    assert sums_of_kernels((x * x).sum(1) * x.exp().sum(1)) == [2]


def test_blocks_of_a_product_of_integers_stay_in_the_sum_of_floats() -> None:
    """Those of few terms; longer ones, and those of floats, are stored."""
    x, w = (Tensor.empty(N, 8, 128, dtype="int8").contiguous().realize() for _ in range(2))

    def scaled(dtype: str, size: int) -> Tensor:
        a, b = (t.cast(dtype).reshape(N, 8 * 128 // size, size) for t in (x, w))
        blocks = (a.unsqueeze(1) * b.unsqueeze(0)).sum(-1, dtype=dtype).float()
        return (blocks * b[..., 0].float()).sum(-1)

    assert sums_of_kernels(scaled("int32", 32)) == [2]
    assert sums_of_kernels(scaled("int32", 32) + x[0, 0, :N].float()) == [2]
    assert sums_of_kernels(scaled("int32", 32).softmax(-1))[0] == 2
    assert sums_of_kernels(scaled("int32", 512)) == [1, 1]
    assert sums_of_kernels(scaled("float32", 32)) == [1, 1]


@pytest.mark.parametrize(("padding", "expected"), [(1, [1, 1]), (0, [1, 1])])
def test_a_convolution_that_is_padded_and_pooled_is_stored(padding: int, expected: list[int]):
    rng = np.random.default_rng(0)
    x, w = (Tensor(rng.normal(size=shape)).float().realize() for shape in ((1, 4, 32, 32), (8, 4, 3, 3)))
    out = x.conv2d(w, stride=2, padding=1).relu().max_pool2d(3, 2, padding=padding)
    assert [n for n in sums_of_kernels(out) if n] == expected
    torch = pytest.importorskip("torch")
    a, b = torch.tensor(x.numpy()), torch.tensor(w.numpy())
    wanted = torch.nn.functional.conv2d(a, b, stride=2, padding=1).relu()
    wanted = torch.nn.functional.max_pool2d(wanted, 3, 2, padding)
    np.testing.assert_allclose(out.numpy(), wanted.numpy(), rtol=1e-4, atol=1e-4)
