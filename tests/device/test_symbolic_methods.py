"""Tensor methods over symbolic axes give what they give over axes of fixed size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

np = pytest.importorskip("numpy", reason="it compares the results")

from polygrad import Tensor, Variable, nn  # noqa: E402
from polygrad.tensor.core.sizes import value_with  # noqa: E402

I, J = Variable("i", 1, 6), Variable("j", 2, 5)
BINDINGS = ((3, 4), (5, 2), (6, 5))
inf = float("inf")

# name: a function of t (7, 6, 5), of labels (7) below 5, and of two sizes
METHODS: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    # reductions
    "mean": lambda t, y, i, j: t[:i, :, :j].mean(),
    "mean of half": lambda t, y, i, j: t.half()[:, :i].mean(1),
    "std": lambda t, y, i, j: t[:, :i, :j].std((1, 2)),
    "var": lambda t, y, i, j: t[:, :i].var(1),
    "prod": lambda t, y, i, j: t[:, :i].prod(1),
    "any": lambda t, y, i, j: (t[:, :i] > 1).any(1),
    "all": lambda t, y, i, j: (t[:, :i] > -1).all(1),
    "argmax": lambda t, y, i, j: t[:, :i].argmax(),
    "argmin": lambda t, y, i, j: t[:, :i].argmin(1),
    "logsumexp": lambda t, y, i, j: t[:, :i].logsumexp(1),
    "log_softmax": lambda t, y, i, j: t[:i].log_softmax(0),
    "layernorm": lambda t, y, i, j: t[:i, :, :j].layernorm(),
    "normalize": lambda t, y, i, j: t[:i].normalize(dim=0),
    "cumsum": lambda t, y, i, j: t[:i, :, :j].flatten().cumsum(0),
    "cummax": lambda t, y, i, j: t[:, :i].cummax(1)[0],
    "cumprod": lambda t, y, i, j: t[:, :i].cumprod(1),
    "logcumsumexp": lambda t, y, i, j: t[:, :i].logcumsumexp(1),
    # products
    "matmul": lambda t, y, i, j: t[0, :i] @ t[1, :i].T,
    "matmul of a batch": lambda t, y, i, j: t[:i, :, :j] @ t[:i, :, :j].transpose(1, 2),
    "dot": lambda t, y, i, j: t[0, 0, :j].dot(t[0, 1, :j]),
    "einsum": lambda t, y, i, j: Tensor.einsum("abc,adc->abd", t[:, :i], t[:, :j]),
    "attention": lambda t, y, i, j: t[:, :i].scaled_dot_product_attention(t[:, :i], t[:, :i], is_causal=True),
    "conv2d": lambda t, y, i, j: t[:, :, :j].unsqueeze(1).conv2d(t[:3, :3, :2].unsqueeze(1), padding=1),
    "conv_transpose2d": lambda t, y, i, j: (
        t[:, :i, :j].unsqueeze(0).conv_transpose2d(t[:, :3, :2].unsqueeze(1), stride=2)
    ),
    "max_pool2d": lambda t, y, i, j: t[:, :i, :j].max_pool2d((2, 2), stride=3, padding=1),
    "avg_pool2d": lambda t, y, i, j: t[:, :i, :j].avg_pool2d((2, 2), ceil_mode=True),
    "unfold": lambda t, y, i, j: t[:, :i].unfold(1, 2, 1),
    # movement
    "pad with -inf": lambda t, y, i, j: t[:i].pad(((i, j), None, None), value=-inf).max(0),
    "pad by reflection": lambda t, y, i, j: t[:, :i].pad((0, 0, 1, 1), mode="reflect"),
    "pad in a circle": lambda t, y, i, j: t[:, :i].pad((0, 0, 1, 1), mode="circular"),
    "pad by the border": lambda t, y, i, j: t[:, :i].pad((0, 0, 1, 2), mode="replicate"),
    "pad by less than nothing": lambda t, y, i, j: t[:, :i].pad((0, 0, -1, 2)),
    "pad_to": lambda t, y, i, j: t[:i].pad_to(10, 6, 5),
    "shrink_to": lambda t, y, i, j: t.shrink_to(i, None, j),
    "roll": lambda t, y, i, j: t[:i].roll((1, -2), (0, 2)),
    "roll of all": lambda t, y, i, j: t[:, :i, :j].roll(3),
    "roll by a size": lambda t, y, i, j: t[:i].roll(j, 0),
    "cat": lambda t, y, i, j: t[:i].cat(t[:j], t[:1], dim=0),
    "stack": lambda t, y, i, j: t[:, :i].stack(t[:, :i] * 2, dim=1).flatten(0, 1),
    "split": lambda t, y, i, j: t[:, :i].split(2, 1),
    "chunk": lambda t, y, i, j: t[:, :i].chunk(2, 1),
    "repeat": lambda t, y, i, j: t[:2].repeat(1, i, 1),
    "repeat_interleave": lambda t, y, i, j: t[:, :i].repeat_interleave(2, 1),
    "reshape": lambda t, y, i, j: t[:i].reshape(2, i, 15).permute(1, 0, 2).reshape(6 * i, -1),
    "unflatten": lambda t, y, i, j: t[:, :i].repeat(1, 2, 1).unflatten(1, (2, -1)),
    "squeeze": lambda t, y, i, j: t[:1, :i].squeeze(),
    "diag": lambda t, y, i, j: t[0, 0, :j].diag(),
    "diagonal": lambda t, y, i, j: t[0, :i, :j].diagonal(),
    "triu": lambda t, y, i, j: t[:, :i, :j].triu(),
    "tril": lambda t, y, i, j: t[:, :i, :j].tril(1),
    "meshgrid": lambda t, y, i, j: t[0, :i, 0].meshgrid(t[0, 0, :j]),
    # indexing
    "index by a list": lambda t, y, i, j: t[:i][:, [0, 2]],
    "index by tensors": lambda t, y, i, j: t[:i, Tensor([0, 1], device=t.device), j - 1],
    "index by as many": lambda t, y, i, j: t[:i][Tensor.arange(i, device=t.device)],
    "gather": lambda t, y, i, j: t[:i, :, 0].gather(1, y[:i].reshape(-1, 1)),
    "scatter": lambda t, y, i, j: Tensor.zeros(i, 5, device=t.device).scatter(1, y[:i].reshape(-1, 1), 3.0),
    "one_hot": lambda t, y, i, j: y[:i].one_hot(5),
    "sort": lambda t, y, i, j: t[:, :i].sort(1),
    "topk": lambda t, y, i, j: t[:, :, :j].topk(2),
    "masked_fill": lambda t, y, i, j: t[:i].masked_fill(t[:i] > 0, j),
    "where": lambda t, y, i, j: (t[:i] > 0).where(i, j) + (t[:i] < 0).where(t[:i], i),
    "clamp": lambda t, y, i, j: t[:i].clamp(0, i),
    "setitem": lambda t, y, i, j: _set(t.clone().realize(), i, j),
    # models
    "cross_entropy": lambda t, y, i, j: t[:i, 0].cross_entropy(y[:i]),
    "linear": lambda t, y, i, j: t[:i].linear(t[0].T, t[0, :, 0]),
}


def _set(x: Tensor, i: Any, j: Any) -> Tensor:
    x[:i, :, j - 1] = 7.0
    x[i - 1] = Tensor.ones(6, 5, device=x.device)
    return x


def read(x: Any) -> list[Any]:
    if isinstance(x, (tuple, list)):
        return [a for y in x for a in read(y)]
    return [x.shrink([(0, value_with(n)) for n in x.shape]).numpy()]


@pytest.mark.parametrize("name", METHODS)
def test_agree_with_fixed_sizes_rtol_1e_5(device, name):
    data = np.random.default_rng(0).normal(size=(7, 6, 5)).astype(np.float32)
    t = Tensor(data, device=device).realize()
    y = Tensor([0, 3, 2, 4, 1, 2, 0], device=device).realize()
    for i, j in BINDINGS:
        expected, got = read(METHODS[name](t, y, i, j)), read(METHODS[name](t, y, I.bind(i), J.bind(j)))
        for a, b in zip(got, expected, strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6, err_msg=f"i = {i}, j = {j}")


def test_a_layer_over_a_symbolic_batch():
    layer, data = nn.Linear(5, 3), Tensor.rand(6, 5).realize()
    for n in (1, 4, 6):
        np.testing.assert_allclose(read(layer(data[: I.bind(n)]))[0], layer(data[:n]).numpy(), rtol=1e-6)
