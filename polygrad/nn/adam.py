"""Optimizers that divide by what gradients were like: Adam, AdamW, LAMB, RMSprop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polygrad.dtype import dtypes
from polygrad.nn.optimizer import Optimizer, check_moments, decays, in_range, write, zeros
from polygrad.tensor.tensor import Tensor


class AdamW(Optimizer):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019). `betas`: b1 and b2, as in torch."""

    def __init__(
        self,
        params: Sequence[Tensor],
        lr: float = 0.001,
        b1: float = 0.9,
        b2: float = 0.999,
        eps: float = 1e-08,
        weight_decay: float = 0.01,
        device: str | None = None,
        betas: Sequence[float] | None = None,
    ) -> None:
        super().__init__(params, lr, device)
        b1, b2 = decays(b1, b2, betas)
        check_moments(type(self).__name__, b1, b2, eps, weight_decay)
        self.b1, self.b2, self.eps, self.weight_decay = b1, b2, eps, weight_decay
        # the powers b1^t and b2^t, kept as Tensors so that every step is the same graph
        self.b1_t, self.b2_t = (Tensor([1.0], device=self.device, dtype=dtypes.float32) for _ in range(2))
        self.m, self.v = [zeros(p) for p in self.params], [zeros(p) for p in self.params]

    def _step(self, grads: list[Any]) -> list[Tensor]:
        self.b1_t.assign(self.b1_t * self.b1)
        self.b2_t.assign(self.b2_t * self.b2)
        m_scale, v_scale = (1.0 - self.b1_t).reciprocal(), (1.0 - self.b2_t).reciprocal()
        for p, g, m, v in zip(self.params, grads, self.m, self.v, strict=True):
            g = g.cast(m.dtype)
            m.assign(m * self.b1 + g * (1.0 - self.b1))
            v.assign(v * self.b2 + g * g * (1.0 - self.b2))
            up = (m * m_scale) / ((v * v_scale).sqrt() + self.eps)
            old = p.detach()
            if self.weight_decay:
                up = up + old * self.weight_decay
            write(p, old - self._scaled(up, old) * self.lr)
        return [self.b1_t, self.b2_t, *self.m, *self.v]

    def _scaled(self, up: Tensor, old: Tensor) -> Tensor:
        """The step `up` of a parameter that is `old`, before the learning rate scales it."""
        return up


def Adam(
    params: Sequence[Tensor],
    lr: float = 0.001,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-08,
    device: str | None = None,
    betas: Sequence[float] | None = None,
) -> AdamW:
    """Adam (Kingma and Ba, 2015): AdamW without weight decay."""
    return AdamW(params, lr, b1, b2, eps, 0.0, device, betas)


class LAMB(AdamW):
    """Adam whose steps are scaled for each parameter, by |p| / |step| (You et al., 2020).

    The scale is 1 where a norm is 0, and everywhere with `adam`.
    """

    def __init__(
        self,
        params: Sequence[Tensor],
        lr: float = 0.001,
        b1: float = 0.9,
        b2: float = 0.999,
        eps: float = 1e-06,
        weight_decay: float = 0.0,
        adam: bool = False,
        device: str | None = None,
        betas: Sequence[float] | None = None,
    ) -> None:
        super().__init__(params, lr, b1, b2, eps, weight_decay, device, betas)
        self.adam = adam

    def _scaled(self, up: Tensor, old: Tensor) -> Tensor:
        if self.adam:
            return up
        length, step = old.square().sum().sqrt(), up.square().sum().sqrt()
        return up * ((length > 0) & (step > 0)).where(length / step, 1.0)


class RMSprop(Optimizer):
    """Gradients divided by the root of a running mean of their squares (Tieleman and Hinton, 2012).

    `alpha`: how much of that mean stays. `centered`: by their standard deviation. As torch.optim.RMSprop.
    """

    def __init__(
        self,
        params: Sequence[Tensor],
        lr: float = 0.01,
        alpha: float = 0.99,
        eps: float = 1e-08,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        device: str | None = None,
    ) -> None:
        super().__init__(params, lr, device)
        in_range("RMSprop: alpha", alpha, 0, 1)
        for name, x in (("eps", eps), ("weight_decay", weight_decay), ("momentum", momentum)):
            in_range(f"RMSprop: {name}", x, 0)
        self.alpha, self.eps, self.weight_decay = alpha, eps, weight_decay
        self.momentum, self.centered = momentum, centered
        self.v = [zeros(p) for p in self.params]
        self.b = [zeros(p) for p in self.params] if momentum else []
        self.mean = [zeros(p) for p in self.params] if centered else []

    def _step(self, grads: list[Any]) -> list[Tensor]:
        for i, (p, g, v) in enumerate(zip(self.params, grads, self.v, strict=True)):
            g, old = g.cast(v.dtype), p.detach().cast(v.dtype)
            if self.weight_decay:
                g = g + old * self.weight_decay
            v.assign(v * self.alpha + g * g * (1.0 - self.alpha))
            spread = v
            if self.centered:
                mean = self.mean[i]
                mean.assign(mean * self.alpha + g * (1.0 - self.alpha))
                # rounded, it may be a little less than 0, whose root is NaN
                spread = (v - mean * mean).maximum(0)
            up = g / (spread.sqrt() + self.eps)
            if self.momentum:
                self.b[i].assign(self.b[i] * self.momentum + up)
                up = self.b[i]
            write(p, old - up * self.lr.cast(v.dtype))
        return [*self.v, *self.b, *self.mean]
