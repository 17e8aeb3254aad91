"""Gradient clipping, by norm or by value."""

from __future__ import annotations

import math
from collections.abc import Sequence

from polygrad.dtype import dtypes
from polygrad.errors import ArgumentError, GradientError
from polygrad.tensor.tensor import Tensor


def clip_grad_norm_(
    params: Tensor | Sequence[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
) -> Tensor:
    """Scale the gradients of `params` so that their joint norm is at most `max_norm`. Returns the norm before
    scaling, a float32 Tensor of shape ().

    Lazy, unless `error_if_nonfinite`: raises GradientError for a norm that is infinite or NaN. `norm_type`: p
    of the p-norm, or infinity for the greatest magnitude. Parameters without a gradient do not count. Raises
    ArgumentError for a negative max_norm, or a norm_type of 0 or less.

    >>> w = nn.Parameter(Tensor([3.0, 4.0]))
    >>> _ = (w * w).sum().backward()
    >>> round(nn.optim.clip_grad_norm_([w], 1.0).item(), 4)
    10.0
    >>> [round(x, 4) for x in w.grad.tolist()]
    [0.6, 0.8]
    """
    if not max_norm >= 0 or not norm_type > 0:
        raise ArgumentError(
            f"clip_grad_norm_: expected max_norm of at least 0 and norm_type over 0, got {max_norm} and "
            f"{norm_type}"
        )
    owners = _with_gradients(params)
    if not owners:
        return Tensor(0.0)
    with Tensor.no_grad():
        total = _norm([_gradient(p) for p in owners], norm_type)
        if error_if_nonfinite and not math.isfinite(total.item()):
            raise GradientError(f"clip_grad_norm_: expected a finite norm, got {total.item()}")
        scale = (max_norm / (total + 1e-6)).minimum(1.0)
        for p in owners:
            g = _gradient(p)
            p.grad = (g * scale.to(g.device)).cast(g.dtype)
    return total


def clip_grad_value_(params: Tensor | Sequence[Tensor], clip_value: float) -> None:
    """Clamp the elements of the gradients of `params` to ±clip_value. Raises ArgumentError if it is
    negative.

    >>> w = nn.Parameter(Tensor([3.0, 4.0]))
    >>> _ = (w * w).sum().backward()
    >>> nn.optim.clip_grad_value_([w], 7.0)
    >>> w.grad.tolist()
    [6.0, 7.0]
    """
    if not clip_value >= 0:
        raise ArgumentError(f"clip_grad_value_: expected a clip_value of at least 0, got {clip_value}")
    with Tensor.no_grad():
        for p in _with_gradients(params):
            p.grad = _gradient(p).clamp(-clip_value, clip_value)


def _with_gradients(params: Tensor | Sequence[Tensor]) -> list[Tensor]:
    return [p for p in ([params] if isinstance(params, Tensor) else params) if p.grad is not None]


def _gradient(p: Tensor) -> Tensor:
    assert p.grad is not None
    return p.grad


def _norm(gradients: Sequence[Tensor], p: float) -> Tensor:
    device = gradients[0].device
    sizes = [g.cast(dtypes.float32).abs().to(device) for g in gradients]
    if p == math.inf:
        parts = [g.max() for g in sizes]
        return parts[0].stack(*parts[1:]).max()
    parts = [(g.square() if p == 2 else g.pow(p)).sum() for g in sizes]
    total = parts[0].stack(*parts[1:]).sum()
    return total.sqrt() if p == 2 else total.pow(1 / p)
