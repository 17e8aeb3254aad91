"""What is right, by torch: the values and gradients of a program, and how far others may be from them.

torch runs a program three times: in double precision, which is the truth, in single precision, and in single
precision on inputs with other last bits. How far these are apart says how far a right implementation may be.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from soak.program import NAMES, Program

APART = 30  # times as far as torch's runs in single precision
ROUGH, FINE = 2e-2, 3e-5  # of the largest number, with 16-bit floats and without
# What two roundings of a loss's weights, which are below 2, may leave of a gradient that is 0: that of a
# logarithm is multiplied and divided by log(2).
TWO_ROUNDINGS = 2.0**-22


@dataclass
class Truth:
    """What each output and each gradient has to be, and by how much it may differ."""

    values: list[np.ndarray]
    tolerances: list[float]
    gradients: dict[int, np.ndarray] = field(default_factory=dict)
    gradient_tolerances: dict[int, float] = field(default_factory=dict)


def weights(shape: tuple[int, ...], number: int) -> np.ndarray:
    """What output `number` is weighted by in the loss."""
    return np.random.default_rng((7, number)).uniform(0.5, 1.5, shape).astype(np.float32)


def _on_torch(p: Program, arrays: list[np.ndarray], dtype: torch.dtype) -> tuple[list[Any], dict[int, Any]]:
    leaves = [torch.tensor(a) for a in arrays]
    leaves = [t.to(dtype).requires_grad_() if t.is_floating_point() else t for t in leaves]
    outputs = p.evaluate(leaves, NAMES, ours=False)
    loss = sum((o * torch.tensor(weights(tuple(o.shape), i)).to(dtype)).sum() for i, o in enumerate(outputs))
    floats = {i: t for i, t in enumerate(leaves) if t.is_floating_point()}
    gradients: dict[int, Any] = {}
    if loss.requires_grad:
        found = torch.autograd.grad(loss, list(floats.values()), allow_unused=True)
        gradients = {i: g.double().numpy() for i, g in zip(floats, found, strict=True) if g is not None}
    return [o.detach().double().numpy() for o in outputs], gradients


def truth(p: Program, salt: int = 0) -> Truth:
    """By torch."""
    arrays = p.arrays(salt)
    rng = np.random.default_rng(3)
    others = [
        a if a.dtype.kind == "i" else (a * (1 + rng.choice((-1, 0, 1), a.shape) * 1.2e-7)).astype(np.float32)
        for a in arrays
    ]
    exact, gradients = _on_torch(p, arrays, torch.float64)
    runs = [_on_torch(p, a, torch.float32) for a in (arrays, others)]

    def tolerance(want: np.ndarray, got: list[np.ndarray]) -> float:
        apart = max((float(np.abs(g - want).max(initial=0)) for g in got), default=0.0)
        size = float(np.abs(want).max(initial=0))
        return APART * apart + (ROUGH if p.rough else FINE) * size + 1e-7

    t = Truth(exact, [tolerance(w, [r[0][i] for r in runs]) for i, w in enumerate(exact)], gradients)
    for i, g in gradients.items():
        t.gradient_tolerances[i] = tolerance(g, [r[1][i] for r in runs if i in r[1]]) + TWO_ROUNDINGS
    return t
