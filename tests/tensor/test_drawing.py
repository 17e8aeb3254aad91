"""multinomial without replacement, and images resized by cubic curves: torch is the judge."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from polygrad import Context, Tensor
from polygrad.errors import ArgumentError, ShapeError

pytestmark = pytest.mark.usefixtures("default_device")


def test_draws_without_replacement_are_different_and_never_of_probability_0(device):
    Tensor.manual_seed(3)
    p = Tensor([[0.1, 0.0, 5.0, 0.2, 0.0, 1.0], [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]])
    for _ in range(5):
        got = p.multinomial(4)
        assert got.shape == (2, 4) and got.dtype == "int32"
        assert sorted(got[0].tolist()) == [0, 2, 3, 5] and len(set(got[1].tolist())) == 4
    assert sorted(p[1].multinomial(6).tolist()) == [0, 1, 2, 3, 4, 5]


def test_draws_without_replacement_have_torchs_distribution(device):
    weights, n = [0.5, 0.1, 0.25, 0.15], 4000
    Tensor.manual_seed(1)
    torch.manual_seed(1)
    ours = Tensor([weights] * n).multinomial(2).numpy()
    theirs = torch.multinomial(torch.tensor([weights] * n), 2).numpy()
    counts = [np.bincount(x[:, 0] * 4 + x[:, 1], minlength=16) / n for x in (ours, theirs)]
    np.testing.assert_allclose(counts[0], counts[1], atol=5 * np.sqrt(2 * 0.25 / n))
    want = [w / (1 - v) * v for v in weights for w in weights]
    want = np.where(np.eye(4).ravel() == 1, 0, want)
    np.testing.assert_allclose(counts[0], want, atol=5 * np.sqrt(0.25 / n))


def test_too_few_to_draw_from(device):
    p = Tensor([[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]])
    with pytest.raises(ArgumentError, match="at most 3, or replacement=True, got 4"):
        p.multinomial(4)
    with Context(CHECK=1), pytest.raises(ArgumentError, match="2 probabilities above 0 in row 1, got 1"):
        p.multinomial(2)
    assert p.multinomial(7, replacement=True).shape == (2, 7)


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("size", [(4, 5), (9, 7), (3, 2), (1, 1), (6, 20)])
def test_bicubic_is_torchs(device, size, align_corners):
    a = np.random.default_rng(0).normal(size=(2, 3, 6, 5)).astype(np.float32)
    x, t = Tensor(a, requires_grad=True), torch.tensor(a, requires_grad=True)
    got = x.interpolate(size, mode="bicubic", align_corners=align_corners)
    want = torch.nn.functional.interpolate(t, size, mode="bicubic", align_corners=align_corners)
    np.testing.assert_allclose(got.numpy(), want.detach().numpy(), rtol=1e-4, atol=1e-5)
    got.square().sum().backward()
    want.square().sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), t.grad.numpy(), rtol=1e-3, atol=1e-4)


def test_bicubic_is_of_two_axes():
    with pytest.raises(ShapeError, match="two sizes"):
        Tensor.ones(1, 1, 4).interpolate(8, mode="bicubic")


@pytest.mark.parametrize(
    ("formula", "shapes"),
    [
        ("...ij,...jk->...ik", [(2, 1, 3, 4), (5, 4, 2)]),
        ("...ij,jk", [(2, 3, 4), (4, 5)]),
        ("i...->...", [(3, 4, 5)]),
        ("...", [(3, 4)]),
        ("b...h,...h->b...", [(2, 3, 4), (3, 4)]),
        ("...ii->...i", [(2, 3, 3)]),
        ("...ii", [(2, 3, 3)]),
        ("a...b->b...a", [(2, 3, 4, 5)]),
        ("...,...->...", [(3, 1), (2, 3, 4)]),
        (" ... i j , ... j -> ... i ", [(2, 3, 4), (2, 4)]),
        ("Ab...,b...->A...", [(2, 3, 4), (3, 4)]),
        ("i...,j...->ij...", [(2, 4), (3, 4)]),
    ],
)
def test_einsum_with_an_ellipsis(formula, shapes):
    arrays = [np.random.default_rng(i).normal(size=s).astype(np.float32) for i, s in enumerate(shapes)]
    xs, ts = (
        [Tensor(a, requires_grad=True) for a in arrays],
        [torch.tensor(a, requires_grad=True) for a in arrays],
    )
    got, want = Tensor.einsum(formula, *xs), torch.einsum(formula, *ts)
    np.testing.assert_allclose(got.numpy(), want.detach().numpy(), rtol=1e-5, atol=1e-5)
    got.square().sum().backward()
    want.square().sum().backward()
    for x, t in zip(xs, ts, strict=True):
        np.testing.assert_allclose(x.grad.numpy(), t.grad.numpy(), rtol=1e-4, atol=1e-4)
