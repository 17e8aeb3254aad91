"""Gradients of normalisations, and gradients of these, beside torch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from polygrad import Tensor, nn

Layer = Callable[[], Any]
LAYERS: dict[str, tuple[Layer, Layer, tuple[int, ...]]] = {
    "layer": (lambda: nn.LayerNorm(6), lambda: torch.nn.LayerNorm(6), (4, 6)),
    "layer, two axes": (lambda: nn.LayerNorm((3, 4)), lambda: torch.nn.LayerNorm((3, 4)), (2, 3, 4)),
    "layer, no weight": (
        lambda: nn.LayerNorm(6, elementwise_affine=False),
        lambda: torch.nn.LayerNorm(6, elementwise_affine=False),
        (4, 6),
    ),
    "group": (lambda: nn.GroupNorm(2, 6), lambda: torch.nn.GroupNorm(2, 6), (3, 6, 4, 2)),
    "group, no images": (lambda: nn.GroupNorm(2, 6), lambda: torch.nn.GroupNorm(2, 6), (3, 6)),
    "group, no weight": (
        lambda: nn.GroupNorm(2, 6, affine=False),
        lambda: torch.nn.GroupNorm(2, 6, affine=False),
        (3, 6, 4),
    ),
    "one group": (lambda: nn.GroupNorm(1, 6), lambda: torch.nn.GroupNorm(1, 6), (3, 6, 4)),
    "instance": (lambda: nn.InstanceNorm(3), lambda: torch.nn.InstanceNorm1d(3, affine=True), (2, 3, 5)),
    "batch": (lambda: nn.BatchNorm(3), lambda: torch.nn.BatchNorm1d(3), (4, 3, 2)),
    "batch, rows": (lambda: nn.BatchNorm(3), lambda: torch.nn.BatchNorm1d(3), (7, 3)),
    "batch, no weight": (
        lambda: nn.BatchNorm(3, affine=False),
        lambda: torch.nn.BatchNorm1d(3, affine=False),
        (4, 3, 2),
    ),
    "batch, no running statistics": (
        lambda: nn.BatchNorm(3, track_running_stats=False),
        lambda: torch.nn.BatchNorm1d(3, track_running_stats=False),
        (4, 3, 2),
    ),
}


def _with_random_weights(ours: Any, theirs: Any, rng: np.random.Generator) -> tuple[list[Any], list[Any]]:
    pairs = [(getattr(ours, name), getattr(theirs, name)) for name in ("weight", "bias")]
    pairs = [(a, b) for a, b in pairs if a is not None]
    for a, b in pairs:
        values = rng.standard_normal(a.shape).astype(np.float32)
        a.assign(Tensor(values)).realize()
        with torch.no_grad():
            b.copy_(torch.from_numpy(values))
    return [a for a, _ in pairs], [b for _, b in pairs]


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_and_gradients_of_gradients_are_torchs(name: str) -> None:
    make_ours, make_theirs, shape = LAYERS[name]
    rng = np.random.default_rng(0)
    ours, theirs = make_ours(), make_theirs()
    own_weights, weights = _with_random_weights(ours, theirs, rng)
    x, incoming, again = (rng.standard_normal(shape).astype(np.float32) for _ in range(3))
    x = 2 * x + 3

    with Tensor.train():
        mine = [Tensor(x, requires_grad=True), *own_weights]
        out = ours(mine[0])
        found = list(out.gradient(*mine, gradient=Tensor(incoming)))
        second = (found[0] * Tensor(again)).sum().gradient(*mine[: 1 + bool(weights)])
    leaves = [torch.tensor(x, requires_grad=True), *weights]
    expected_out = theirs(leaves[0])
    expected = torch.autograd.grad(expected_out, leaves, torch.tensor(incoming), create_graph=True)
    expected_second = torch.autograd.grad(
        (expected[0] * torch.tensor(again)).sum(), leaves[: 1 + bool(weights)]
    )
    for a, b in zip([out, *found, *second], [expected_out, *expected, *expected_second], strict=True):
        np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("name", ["group", "batch", "layer"])
def test_16_bit_floats_are_normalised_in_float32(name: str) -> None:
    """And the result is rounded once."""
    make_ours, make_theirs, shape = LAYERS[name]
    rng = np.random.default_rng(1)
    ours, theirs = make_ours(), make_theirs()
    _with_random_weights(ours, theirs, rng)
    x = (rng.standard_normal(shape) + 100).astype(np.float16)
    with Tensor.train():
        narrow = Tensor(x, requires_grad=True)
        out = ours(narrow)
        (gradient,) = out.square().sum().gradient(narrow)
    wide = torch.tensor(x.astype(np.float32), requires_grad=True)
    expected = theirs(wide)
    (expected_gradient,) = torch.autograd.grad(expected.square().sum(), wide)
    np.testing.assert_allclose(out.float().numpy(), expected.detach().numpy(), rtol=2e-3, atol=2e-3)
    atol = 0.02 * float(expected_gradient.abs().max())
    np.testing.assert_allclose(gradient.float().numpy(), expected_gradient.numpy(), rtol=0.02, atol=atol)
