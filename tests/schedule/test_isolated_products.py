"""Products in kernels of their own: which sums share a kernel, and that the results are numpy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from adapter import WEBGPU

from polygrad import Tensor, Variable
from polygrad.engine.normalize import normalize
from polygrad.schedule.schedule import schedule
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

N = 64


def sums_of_kernels(out: Tensor, products_apart: bool = True) -> list[int]:
    """How many sums each kernel has."""
    sink = normalize(UOp.sink(out.uop.base)).sink
    calls = schedule(sink, True, products_apart=products_apart).calls
    return [sum(n.op is Ops.REDUCE for n in call.ast.toposort()) for call in calls]


# name, operation, numpy's, sums of each kernel: with products apart
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
        [1, 1, 0],
    ),
    (
        "padding",
        lambda x, w, g, u: (x @ w).pad(((1, 2), (0, 3))),
        lambda x, w, g, u: np.pad(x @ w, ((1, 2), (0, 3))),
        [1, 0],
    ),
    # and what stays
    (
        "epilogue",
        lambda x, w, g, u: (x @ w + u[0]).relu() * g,
        lambda x, w, g, u: np.maximum(x @ w + u[0], 0) * g,
        [1],
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


def operands(device: str | None = None) -> tuple[list[Tensor], list[Any]]:
    arrays = [np.random.default_rng(i).uniform(-1, 1, (N, N)).astype("float32") for i in range(4)]
    return [Tensor(a, device=device).realize() for a in arrays], arrays


@pytest.mark.parametrize(("operation", "expected"), [pytest.param(c[1], c[3], id=c[0]) for c in CASES])
def test_which_sums_share_a_kernel(operation: Callable[..., Tensor], expected: list[int]) -> None:
    tensors, _ = operands()
    assert sums_of_kernels(operation(*tensors)) == expected


def test_elsewhere_nothing_is_apart() -> None:
    (x, w, g, u), _ = operands()
    assert sums_of_kernels(x @ w + g @ u, products_apart=False) == [2]


@pytest.mark.parametrize("device", [WEBGPU])
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
    assert max(sums_of_kernels(gradient)) == 1


def test_sizes_that_vary_are_left_alone() -> None:
    n = Variable("n", 1, N).bind(40)
    (x, w, *_), _ = operands()
    assert sums_of_kernels((x[:n] @ w).sum()) == [2]
    assert sums_of_kernels((x @ w)[:n].sum()) == [1, 1]
