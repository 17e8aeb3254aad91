"""Run one expression in polygrad and in torch, forward and backward, and compare."""

from __future__ import annotations

import numpy as np
import torch

from polygrad import Tensor


def sample(*shape, low=-2.0, high=2.0, seed=0, dtype="float32"):
    """Uniform random values as a numpy array, the same at each call."""
    return np.random.default_rng((seed, *shape)).uniform(low, high, shape).astype(dtype)


def agree(fn, *arrays, reference=None, grad=True, rtol=1e-5, atol=1e-5):
    """`fn` of Tensors against `reference` (default: `fn` itself) of torch tensors.

    Values, and gradients of a weighted sum.
    """
    ours = [Tensor(a, requires_grad=grad and a.dtype.kind == "f") for a in arrays]
    theirs = [torch.tensor(a, requires_grad=grad and a.dtype.kind == "f") for a in arrays]
    got, want = fn(*ours), (reference or fn)(*theirs)
    assert got.shape == tuple(want.shape), (got.shape, tuple(want.shape))
    wanted = [want.detach().numpy()]
    results = [got]
    if grad and want.dtype.is_floating_point:
        weights = sample(*got.shape, low=0.5, high=1.5, seed=99, dtype=wanted[0].dtype)
        leaves = [t for t in ours if t.requires_grad]
        results += (got * Tensor(weights)).sum().gradient(*leaves)
        (want * torch.tensor(weights)).sum().backward()
        wanted += [
            (np.zeros(t.shape, np.float32) if t.grad is None else t.grad.numpy())
            for t in theirs
            if t.requires_grad
        ]
    results[0].realize(*results[1:])
    for a, b in zip(results, wanted, strict=True):
        np.testing.assert_allclose(a.numpy(), b, rtol=rtol, atol=atol)
