"""Causal attention of many rows, which is computed in blocks of rows, beside torch."""

from __future__ import annotations

import numpy as np
import pytest

from polygrad import Tensor, TinyJit, dtypes
from polygrad.errors import ShapeError

torch = pytest.importorskip("torch")
attention = torch.nn.functional.scaled_dot_product_attention

RNG = np.random.default_rng(5)


def samples(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    return [RNG.standard_normal(shape, dtype=np.float32) for shape in shapes]


@pytest.mark.parametrize(
    ("rows", "columns"),
    [(511, 511), (512, 512), (700, 700), (1030, 1030), (1030, 300), (512, 900), (1500, 1)],
)
def test_values_and_gradients_to_2e_5(rows: int, columns: int) -> None:
    q, k, v, g = samples((2, rows, 8), (2, columns, 8), (2, columns, 4), (2, rows, 4))
    ours = [Tensor(x).requires_grad_() for x in (q, k, v)]
    theirs = [torch.tensor(x, requires_grad=True) for x in (q, k, v)]
    got, expected = (
        ours[0].scaled_dot_product_attention(*ours[1:], is_causal=True),
        attention(*theirs, is_causal=True),
    )
    np.testing.assert_allclose(got.numpy(), expected.detach().numpy(), rtol=2e-5, atol=2e-6)
    (got * Tensor(g)).sum().backward()
    (expected * torch.tensor(g)).sum().backward()
    for t, want in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(t.grad.numpy(), want.grad.numpy(), rtol=2e-5, atol=2e-5)


def test_grouped_queries_to_2e_5() -> None:
    q, k, v = samples((1, 6, 600, 8), (1, 2, 600, 8), (1, 2, 600, 8))
    got = Tensor(q).scaled_dot_product_attention(Tensor(k), Tensor(v), is_causal=True, enable_gqa=True)
    expected = attention(*map(torch.tensor, (q, k, v)), is_causal=True, enable_gqa=True)
    np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=2e-5, atol=2e-6)


def test_half_precision_to_2e_3() -> None:
    q, k, v = samples(*[(2, 600, 16)] * 3)
    ours = [Tensor(x, dtype=dtypes.float16) for x in (q, k, v)]
    got = ours[0].scaled_dot_product_attention(*ours[1:], is_causal=True)
    assert got.dtype is dtypes.float16
    expected = attention(*[torch.tensor(x) for x in (q, k, v)], is_causal=True)
    np.testing.assert_allclose(got.float().numpy(), expected.numpy(), atol=2e-3)


def test_rows_do_not_change_with_those_after_them() -> None:
    q, k, v = samples(*[(1, 1024, 8)] * 3)
    whole = Tensor(q).scaled_dot_product_attention(Tensor(k), Tensor(v), is_causal=True).numpy()
    k[:, 600:], v[:, 600:] = 7, -7
    changed = Tensor(q).scaled_dot_product_attention(Tensor(k), Tensor(v), is_causal=True).numpy()
    np.testing.assert_array_equal(changed[:, :600], whole[:, :600])
    assert (changed[:, 600:] != whole[:, 600:]).any(-1).all()


def test_dropout_drops_weights_in_each_block() -> None:
    Tensor.manual_seed(3)
    q = Tensor.zeros(1, 1024, 4)
    with Tensor.train():
        out = q.scaled_dot_product_attention(q, q + 1, dropout_p=0.5, is_causal=True).numpy()[0, :, 0]
    for block in np.split(out[64:], 4):
        assert abs(block.mean() - 1) < 0.05 and block.std() > 0.01


def test_captured_calls_follow_writes() -> None:
    q, k, v = (Tensor(x).realize() for x in samples(*[(1, 520, 8)] * 3))
    step = TinyJit(lambda q, k, v: q.scaled_dot_product_attention(k, v, is_causal=True).realize())
    for _ in range(4):
        got = step(q, k, v).numpy()
        expected = attention(*[torch.tensor(x.numpy()) for x in (q, k, v)], is_causal=True)
        np.testing.assert_allclose(got, expected.numpy(), rtol=2e-5, atol=2e-6)
        v[:, 3:200] = k[:, 3:200] * 2
        k.assign(k + 0.1)


@pytest.mark.parametrize("rows", [4, 1024])
def test_keys_and_values_have_as_many_rows(rows: int) -> None:
    q, k, v = Tensor.zeros(rows, 2), Tensor.zeros(rows, 2), Tensor.zeros(rows + 1, 2)
    for is_causal in (False, True):
        with pytest.raises(ShapeError, match=f"expected {rows} rows, as key has, got {rows + 1}"):
            q.scaled_dot_product_attention(k, v, is_causal=is_causal)


@pytest.mark.parametrize("name", ["self", "key", "value"])
def test_a_vector_is_named(name: str) -> None:
    x = {n: Tensor.zeros(2) if n == name else Tensor.zeros(2, 2) for n in ("self", "key", "value")}
    with pytest.raises(ShapeError, match=rf"{name} has shape \(2,\), expected two axes or more"):
        x["self"].scaled_dot_product_attention(x["key"], x["value"], is_causal=True)
