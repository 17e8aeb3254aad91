"""Variants of Adam: Adamax, NAdam, RAdam. As torch's; `betas` are b1 and b2."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from polygrad.dtype import dtypes
from polygrad.errors import InternalError
from polygrad.nn.optimizer import Optimizer, check_moments, decays, in_range, write, zeros
from polygrad.tensor.tensor import Tensor


class _Moments(Optimizer):
    """Running means of gradients and of what they are divided by, and how many steps were made.

    `decoupled`: weight decay scales the parameter, as AdamW's, instead of being added to the gradient.
    """

    def __init__(
        self,
        params: Sequence[Tensor],
        lr: float,
        b1: float,
        b2: float,
        eps: float,
        weight_decay: float,
        decoupled: bool,
        device: str | None,
    ) -> None:
        super().__init__(params, lr, device)
        check_moments(type(self).__name__, b1, b2, eps, weight_decay)
        self.b1, self.b2, self.eps = b1, b2, eps
        self.weight_decay, self.decoupled = weight_decay, decoupled
        self.t = Tensor([0.0], device=self.device, dtype=dtypes.float32)
        self.m, self.v = [zeros(p) for p in self.params], [zeros(p) for p in self.params]

    def _step(self, grads: list[Any]) -> list[Tensor]:
        self.t.assign(self.t + 1.0)
        factors = self._factors()
        for p, g, m, v in zip(self.params, grads, self.m, self.v, strict=True):
            g, old = g.cast(m.dtype), p.detach().cast(m.dtype)
            if self.weight_decay and self.decoupled:
                old = old * (1.0 - self.lr.cast(m.dtype) * self.weight_decay)
            elif self.weight_decay:
                g = g + old * self.weight_decay
            m.assign(m * self.b1 + g * (1.0 - self.b1))
            write(p, old - self._update(g, m, v, [f.cast(m.dtype) for f in factors]))
        return [self.t, *self.m, *self.v]

    def _one_minus_power(self, b: float) -> Tensor:
        """1 - b^t, exact to a few ulp, of a 1-element Tensor."""
        return self.t.const_like(1.0) if b == 0 else -(self.t * math.log(b)).expm1()

    def _factors(self) -> list[Tensor]:
        """What `_update` needs that is the same for all parameters, learning rates among it: (1,) each."""
        raise InternalError(f"{type(self).__name__}: expected an optimizer that defines its step")

    def _update(self, g: Tensor, m: Tensor, v: Tensor, factors: list[Tensor]) -> Tensor:
        """Assign to `v`; what is subtracted from the parameter."""
        raise InternalError(f"{type(self).__name__}: expected an optimizer that defines its step")


class Adamax(_Moments):
    """Adam that divides by the greatest gradient, decayed by b2, so far (Kingma and Ba, 2015)."""

    def __init__(
        self,
        params: Sequence[Tensor],
        lr: float = 0.002,
        b1: float = 0.9,
        b2: float = 0.999,
        eps: float = 1e-08,
        weight_decay: float = 0.0,
        device: str | None = None,
        betas: Sequence[float] | None = None,
    ) -> None:
        super().__init__(params, lr, *decays(b1, b2, betas), eps, weight_decay, False, device)

    def _factors(self) -> list[Tensor]:
        return [self.lr / self._one_minus_power(self.b1)]

    def _update(self, g: Tensor, m: Tensor, v: Tensor, factors: list[Tensor]) -> Tensor:
        v.assign((v * self.b2).maximum(g.abs() + self.eps))
        return m / v * factors[0]


class NAdam(_Moments):
    """Adam with Nesterov's momentum, whose decay grows to b1 by `momentum_decay` (Dozat, 2016)."""

    def __init__(
        self,
        params: Sequence[Tensor],
        lr: float = 0.002,
        b1: float = 0.9,
        b2: float = 0.999,
        eps: float = 1e-08,
        weight_decay: float = 0.0,
        momentum_decay: float = 0.004,
        decoupled: bool = False,
        device: str | None = None,
        betas: Sequence[float] | None = None,
    ) -> None:
        super().__init__(params, lr, *decays(b1, b2, betas), eps, weight_decay, decoupled, device)
        in_range("NAdam: momentum_decay", momentum_decay, 0)
        self.momentum_decay = momentum_decay
        self.mu_product = Tensor([1.0], device=self.device, dtype=dtypes.float32)

    def _step(self, grads: list[Any]) -> list[Tensor]:
        return [*super()._step(grads), self.mu_product]

    def _mu(self, t: Tensor) -> Tensor:
        return (1.0 - (t * (self.momentum_decay * math.log2(0.96))).exp2() * 0.5) * self.b1

    def _factors(self) -> list[Tensor]:
        now, later = self._mu(self.t), self._mu(self.t + 1.0)
        self.mu_product.assign(self.mu_product * now)
        of_gradient = self.lr * (1.0 - now) / (1.0 - self.mu_product)
        of_mean = self.lr * later / (1.0 - self.mu_product * later)
        return [of_gradient, of_mean, self._one_minus_power(self.b2)]

    def _update(self, g: Tensor, m: Tensor, v: Tensor, factors: list[Tensor]) -> Tensor:
        v.assign(v * self.b2 + g * g * (1.0 - self.b2))
        of_gradient, of_mean, v_scale = factors
        return (g * of_gradient + m * of_mean) / ((v / v_scale).sqrt() + self.eps)


class RAdam(_Moments):
    """Adam that adapts only as far as its variance can be told after so few steps (Liu et al., 2020).

    The first steps (five, with the usual b2) are momentum's.
    """

    def __init__(
        self,
        params: Sequence[Tensor],
        lr: float = 0.001,
        b1: float = 0.9,
        b2: float = 0.999,
        eps: float = 1e-08,
        weight_decay: float = 0.0,
        decoupled: bool = False,
        device: str | None = None,
        betas: Sequence[float] | None = None,
    ) -> None:
        super().__init__(params, lr, *decays(b1, b2, betas), eps, weight_decay, decoupled, device)
        in_range("RAdam: b2", b2, 1e-12, 1)

    def _length(self) -> Tensor:
        """rho, how many gradients are in the running mean: 2 / (1 - b2) - 1 - 2t b2^t / (1 - b2^t).

        That is the difference of two large numbers; so, with s = -t log b2, a constant and 1 - s / (e^s - 1)
        times 2t / s, whose series is short where s is small.
        """
        rate = -math.log(self.b2)
        s = self.t * rate
        near = s.minimum(1.0)
        z = near * near
        series = near * (0.5 + near * (-1 / 12 + z * (1 / 720 + z * (-1 / 30240 + z / 1209600))))
        far = s.maximum(1.0)
        rest = (s < 1.0).where(series, 1.0 - far / far.expm1())
        return rest * (2.0 / rate) + (2.0 / (1.0 - self.b2) - 1.0 - 2.0 / rate)

    def _factors(self) -> list[Tensor]:
        whole = 2.0 / (1.0 - self.b2) - 1.0
        rho = self._length()
        is_long = rho > 5.0
        rho = is_long.where(rho, 6.0)
        top = (rho - 4.0) * (rho - 2.0) * whole
        rectified = (top / (rho * ((whole - 4.0) * (whole - 2.0))) * self._one_minus_power(self.b2)).sqrt()
        step = self.lr / self._one_minus_power(self.b1)
        return [step, is_long.where(rectified, 0.0), is_long.where(0.0, step.const_like(1.0))]

    def _update(self, g: Tensor, m: Tensor, v: Tensor, factors: list[Tensor]) -> Tensor:
        v.assign(v * self.b2 + g * g * (1.0 - self.b2))
        step, rectified, plain = factors
        return m * step * (rectified / (v.sqrt() + self.eps) + plain)
