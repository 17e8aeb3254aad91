"""Optimizers whose steps follow from the gradients' history alone: Adagrad, Adadelta, Rprop. As torch's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polygrad.dtype import dtypes
from polygrad.errors import ArgumentError
from polygrad.nn.optimizer import Optimizer, in_range, write, zeros
from polygrad.tensor.tensor import Tensor


class Adagrad(Optimizer):
    """Gradients divided by the root of the sum of all their squares so far (Duchi et al., 2011).

    `lr_decay`: the learning rate of step t is lr / (1 + (t - 1) lr_decay). `initial_accumulator_value`: what
    the sum starts with.
    """

    def __init__(
        self,
        params: Sequence[Tensor],
        lr: float = 0.01,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        device: str | None = None,
    ) -> None:
        super().__init__(params, lr, device)
        for name, x in (("lr_decay", lr_decay), ("weight_decay", weight_decay), ("eps", eps)):
            in_range(f"Adagrad: {name}", x, 0)
        in_range("Adagrad: initial_accumulator_value", initial_accumulator_value, 0)
        self.lr_decay, self.weight_decay, self.eps = lr_decay, weight_decay, eps
        self.t = Tensor([0.0], device=self.device, dtype=dtypes.float32)
        self.total = [zeros(p) for p in self.params]
        if initial_accumulator_value:
            for total in self.total:
                total.assign(total + initial_accumulator_value).realize()

    def _step(self, grads: list[Any]) -> list[Tensor]:
        rate = self.lr / (self.t * self.lr_decay + 1.0) if self.lr_decay else self.lr
        for p, g, total in zip(self.params, grads, self.total, strict=True):
            g, old = g.cast(total.dtype), p.detach().cast(total.dtype)
            if self.weight_decay:
                g = g + old * self.weight_decay
            total.assign(total + g * g)
            write(p, old - g / (total.sqrt() + self.eps) * rate.cast(total.dtype))
        self.t.assign(self.t + 1.0)
        return [self.t, *self.total]


class Adadelta(Optimizer):
    """Gradients scaled by what steps were like over what gradients were like (Zeiler, 2012).

    `rho`: how much of the running means of both squares stays.
    """

    def __init__(
        self,
        params: Sequence[Tensor],
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-06,
        weight_decay: float = 0.0,
        device: str | None = None,
    ) -> None:
        super().__init__(params, lr, device)
        in_range("Adadelta: rho", rho, 0, 1)
        in_range("Adadelta: eps", eps, 0)
        in_range("Adadelta: weight_decay", weight_decay, 0)
        self.rho, self.eps, self.weight_decay = rho, eps, weight_decay
        self.v, self.steps = [zeros(p) for p in self.params], [zeros(p) for p in self.params]

    def _step(self, grads: list[Any]) -> list[Tensor]:
        for p, g, v, steps in zip(self.params, grads, self.v, self.steps, strict=True):
            g, old = g.cast(v.dtype), p.detach().cast(v.dtype)
            if self.weight_decay:
                g = g + old * self.weight_decay
            v.assign(v * self.rho + g * g * (1.0 - self.rho))
            up = (steps + self.eps).sqrt() / (v + self.eps).sqrt() * g
            steps.assign(steps * self.rho + up * up * (1.0 - self.rho))
            write(p, old - up * self.lr.cast(v.dtype))
        return [*self.v, *self.steps]


class Rprop(Optimizer):
    """Steps of the gradient's sign, the larger the steadier it is, by element (Riedmiller and Braun, 1993).

    `etas`: what a step is multiplied by when the sign changed (it is left out once, too) and when it stayed.
    `step_sizes`: the least and the greatest step; `lr` is the first. For whole batches, not for samples.
    """

    def __init__(
        self,
        params: Sequence[Tensor],
        lr: float = 0.01,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-06, 50.0),
        device: str | None = None,
    ) -> None:
        super().__init__(params, lr, device)
        if not 0 < etas[0] < 1 < etas[1]:
            raise ArgumentError(f"Rprop: expected etas below and above 1, got {etas}")
        if not 0 < step_sizes[0] <= step_sizes[1]:
            raise ArgumentError(f"Rprop: expected step_sizes from less to more, above 0, got {step_sizes}")
        self.etas, self.step_sizes = tuple(etas), tuple(step_sizes)
        self.before = [zeros(p) for p in self.params]
        self.size = [zeros(p) for p in self.params]
        for size in self.size:
            size.assign(size + float(lr)).realize()

    def _step(self, grads: list[Any]) -> list[Tensor]:
        for p, g, before, size in zip(self.params, grads, self.before, self.size, strict=True):
            g, old = g.cast(size.dtype), p.detach().cast(size.dtype)
            turn = (g * before).sign()
            factor = (turn > 0).where(self.etas[1], (turn < 0).where(self.etas[0], turn.const_like(1.0)))
            size.assign((size * factor).clamp(*self.step_sizes))
            before.assign((turn < 0).where(0.0, g))
            write(p, old - before.sign() * size)
        return [*self.before, *self.size]
