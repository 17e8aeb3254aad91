"""Optimizers that follow the gradient, with momentum or a mean of the steps: SGD, ASGD, LARS, Muon."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from polygrad.dtype import dtypes
from polygrad.errors import ArgumentError
from polygrad.nn.optimizer import Optimizer, in_range, wide, write, zeros
from polygrad.tensor.tensor import Tensor


class SGD(Optimizer):
    """Stochastic gradient descent, with momentum (Nesterov's if asked), weight decay added to the gradient.

    `classic`: the learning rate scales the gradient before it is added to the momentum.
    """

    def __init__(
        self,
        params: Sequence[Tensor],
        lr: float = 0.001,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        classic: bool = False,
        device: str | None = None,
    ) -> None:
        super().__init__(params, lr, device)
        in_range("SGD: momentum", momentum, 0)
        in_range("SGD: weight_decay", weight_decay, 0)
        if nesterov and momentum == 0:
            raise ArgumentError("SGD: expected a momentum with nesterov=True, got 0")
        self.momentum, self.weight_decay, self.nesterov, self.classic = (
            momentum,
            weight_decay,
            nesterov,
            classic,
        )
        self.b = [zeros(p) for p in self.params] if momentum else []

    def _step(self, grads: list[Any]) -> list[Tensor]:
        for i, (p, g) in enumerate(zip(self.params, grads, strict=True)):
            g = g.cast(wide(p))
            lr = self.lr.cast(g.dtype)
            if self.weight_decay:
                g = g + p.detach() * self.weight_decay
            if self.classic:
                g = g * lr
            if self.momentum:
                self.b[i].assign(self.b[i] * self.momentum + g)
                g = g + self.b[i] * self.momentum if self.nesterov else self.b[i]
            write(p, p.detach() - (g if self.classic else g * lr))
        return self.b


class ASGD(Optimizer):
    """SGD that also keeps the mean of the parameters after step `t0`, in `ax` (Polyak and Juditsky, 1992).

    The learning rate of step t is lr / (1 + lambd lr t)^alpha; `lambd` decays the parameters, too. Until
    `t0`, `ax` are the parameters. As torch's.
    """

    def __init__(
        self,
        params: Sequence[Tensor],
        lr: float = 0.01,
        lambd: float = 0.0001,
        alpha: float = 0.75,
        t0: float = 1000000.0,
        weight_decay: float = 0.0,
        device: str | None = None,
    ) -> None:
        super().__init__(params, lr, device)
        in_range("ASGD: lambd", lambd, 0)
        in_range("ASGD: weight_decay", weight_decay, 0)
        self.lambd, self.alpha, self.t0, self.weight_decay = lambd, alpha, t0, weight_decay
        self.t = Tensor([0.0], device=self.device, dtype=dtypes.float32)
        self.ax = [zeros(p) for p in self.params]

    def _step(self, grads: list[Any]) -> list[Tensor]:
        started = self.t > 0
        rate = started.where(self.lr / (self.t * self.lr * self.lambd + 1.0).pow(self.alpha), self.lr)
        share = started.where((self.t - self.t0).maximum(1.0).reciprocal(), 1.0)
        for p, g, ax in zip(self.params, grads, self.ax, strict=True):
            g, old = g.cast(ax.dtype), p.detach().cast(ax.dtype)
            if self.weight_decay:
                g = g + old * self.weight_decay
            eta = rate.cast(ax.dtype)
            new = old * (1.0 - eta * self.lambd) - g * eta
            ax.assign(ax + (new - ax) * share.cast(ax.dtype))
            write(p, new)
        self.t.assign(self.t + 1.0)
        return [self.t, *self.ax]


class LARS(Optimizer):
    """Layer-wise adaptive rate scaling (You et al., 2017): SGD whose steps are scaled for each parameter.

    The scale is `tcoef` * |p| / (|g| + weight_decay * |p|), and 1 where a norm is 0. `pre_wd`: weight decay
    is added to the gradient, else subtracted from the parameter. `classic`: the learning rate scales the
    gradient before it is added to the momentum.
    """

    def __init__(
        self,
        params: Sequence[Tensor],
        lr: float = 0.001,
        momentum: float = 0.9,
        weight_decay: float = 0.0001,
        nesterov: bool = False,
        classic: bool = True,
        pre_wd: bool = True,
        tcoef: float = 0.001,
        device: str | None = None,
    ) -> None:
        super().__init__(params, lr, device)
        for name, x in (("momentum", momentum), ("weight_decay", weight_decay), ("tcoef", tcoef)):
            in_range(f"LARS: {name}", x, 0)
        self.momentum, self.weight_decay, self.tcoef = momentum, weight_decay, tcoef
        self.nesterov, self.classic, self.pre_wd = nesterov, classic, pre_wd
        self.b = [zeros(p) for p in self.params] if momentum else []

    def _step(self, grads: list[Any]) -> list[Tensor]:
        for i, (p, g) in enumerate(zip(self.params, grads, strict=True)):
            g, old = g.cast(wide(p)), p.detach().cast(wide(p))
            scale = self.lr.cast(g.dtype)
            if self.tcoef:
                scale = scale * self._trust(old, g)
            if self.pre_wd and self.weight_decay:
                g = g + old * self.weight_decay
            if self.classic:
                g = g * scale
            if self.momentum:
                self.b[i].assign(self.b[i] * self.momentum + g)
                g = g + self.b[i] * self.momentum if self.nesterov else self.b[i]
            if not self.classic:
                g = g * scale
            if not self.pre_wd and self.weight_decay:
                g = g + old * self.weight_decay * self.lr
            write(p, old - g)
        return self.b

    def _trust(self, p: Tensor, g: Tensor) -> Tensor:
        length, slope = p.square().sum().sqrt(), g.square().sum().sqrt()
        ratio = length * self.tcoef / (slope + length * self.weight_decay)
        return ((length > 0) & (slope > 0)).where(ratio, 1.0)


class Muon(Optimizer):
    """Momentum whose matrices are made orthogonal, nearly, before they are subtracted (Jordan, 2024).

    For the matrices inside of a network; a parameter of more axes is a matrix of its first axis by the rest.
    `ns_steps` of the Newton-Schulz iteration with the odd polynomial of `ns_coefficients` do it. Weight decay
    is decoupled. `adjust_lr_fn`: how the learning rate grows with the shape (rows, columns), as in torch:
    'original', by sqrt(max(1, rows / columns)), 'match_rms_adamw', by 0.2 * sqrt(max(rows, columns)), or not.
    """

    def __init__(
        self,
        params: Sequence[Tensor],
        lr: float = 0.001,
        momentum: float = 0.95,
        weight_decay: float = 0.1,
        ns_steps: int = 5,
        ns_coefficients: tuple[float, ...] = (3.4445, -4.775, 2.0315),
        nesterov: bool = True,
        adjust_lr_fn: str | None = None,
        device: str | None = None,
    ) -> None:
        super().__init__(params, lr, device)
        in_range("Muon: momentum", momentum, 0)
        in_range("Muon: weight_decay", weight_decay, 0)
        in_range("Muon: ns_steps", ns_steps, 0, 100)
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ArgumentError(
                f"Muon: expected adjust_lr_fn 'original', 'match_rms_adamw' or None, got {adjust_lr_fn!r}"
            )
        flat = [p.shape for p in self.params if p.ndim < 2]
        if flat:
            raise ArgumentError(
                f"Muon: expected parameters with at least 2 axes, got shapes {flat}: give them to another "
                "optimizer, in an OptimizerGroup"
            )
        self.momentum, self.weight_decay, self.nesterov = momentum, weight_decay, nesterov
        self.ns_steps, self.ns_coefficients = ns_steps, tuple(ns_coefficients)
        self.adjust_lr_fn = adjust_lr_fn
        self.b = [zeros(p) for p in self.params]

    def _step(self, grads: list[Any]) -> list[Tensor]:
        for p, g, b in zip(self.params, grads, self.b, strict=True):
            g, old = g.cast(b.dtype), p.detach().cast(b.dtype)
            b.assign(b * self.momentum + g)
            g = g + b * self.momentum if self.nesterov else b
            rows = int(g.shape[0])
            matrix = g.reshape(rows, -1)
            up = _orthogonalized(matrix, self.ns_steps, self.ns_coefficients).reshape(g.shape)
            columns = int(matrix.shape[1])
            factor = {
                None: 1.0,
                "original": math.sqrt(max(1, rows / columns)),
                "match_rms_adamw": 0.2 * math.sqrt(max(rows, columns)),
            }[self.adjust_lr_fn]
            lr = self.lr.cast(b.dtype)
            write(p, old * (1 - lr * self.weight_decay) - up * (lr * factor))
        return self.b


def _orthogonalized(x: Tensor, steps: int, coefficients: tuple[float, ...]) -> Tensor:
    """The matrix with singular values near 1 and the same singular vectors, by the Newton-Schulz iteration.

    X <- sum of coefficients[i] * (X Xᵀ)^i X, from X / |X| (Bernstein and Newhouse, 2024, "Old optimizer, new
    norm").
    """
    if x.shape[0] > x.shape[1]:
        return _orthogonalized(x.T, steps, coefficients).T
    x = x / (x.square().sum().sqrt() + 1e-7)
    for _ in range(steps):
        gram = x @ x.T
        term, total = x, x * coefficients[0]
        for c in coefficients[1:]:
            term = gram @ term
            total = total + term * c
        x = total
    return x
