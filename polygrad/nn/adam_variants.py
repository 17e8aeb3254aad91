"""Variants of Adam: Adamax, NAdam, RAdam. As torch's; b1 and b2 are its betas."""

from __future__ import annotations

import math

from polygrad.errors import InternalError
from polygrad.nn.optimizer import Clock, Optimizer, Params, Part, check_moments, decays, in_range, write
from polygrad.nn.param_groups import ParamGroup
from polygrad.tensor.tensor import Tensor


class _Moments(Optimizer):
    """The base of the variants: running means of gradients and of their divisors, and the number of steps.

    `decoupled`: weight decay scales the parameter, as AdamW's, instead of being added to the gradient.
    """

    _options: tuple[str, ...] = ("b1", "b2", "eps", "weight_decay", "decoupled")
    _counters = {"t": 0.0}
    _state_names = ("m", "v")
    t: Tensor
    m: list[Tensor]
    v: list[Tensor]

    def __init__(
        self,
        params: Params,
        lr: float,
        b1: float,
        b2: float,
        eps: float,
        weight_decay: float,
        decoupled: bool,
        device: str | None,
        betas: tuple[float, float] | None,
    ) -> None:
        self.b1, self.b2 = decays(b1, b2, betas)
        self.eps, self.weight_decay, self.decoupled = eps, weight_decay, decoupled
        super().__init__(params, lr, device)

    def _check(self, group: ParamGroup) -> None:
        check_moments(group)

    def _step(self, part: Part) -> list[Tensor]:
        group, clock = part.group, part.clock
        b1, weight_decay, decoupled = group["b1"], group["weight_decay"], group["decoupled"]
        clock["t"].assign(clock["t"] + 1.0)
        factors = self._factors(group, clock)
        for i, p, g in part.members:
            m, v = self.m[i], self.v[i]
            g, old = g.cast(m.dtype), p.detach().cast(m.dtype)
            if weight_decay and decoupled:
                old = old * (1.0 - group.lr.cast(m.dtype) * weight_decay)
            elif weight_decay:
                g = g + old * weight_decay
            m.assign(m * b1 + g * (1.0 - b1))
            write(p, old - self._update(group, g, m, v, [f.cast(m.dtype) for f in factors]))
        positions = [i for i, _, _ in part.members]
        return [clock["t"], *[self.m[i] for i in positions], *[self.v[i] for i in positions]]

    def _factors(self, group: ParamGroup, clock: Clock) -> list[Tensor]:
        """The factors that `_update` needs and all parameters share, with learning rates: (1,) each."""
        raise InternalError(f"{type(self).__name__}: expected an optimizer that defines its step")

    def _update(self, group: ParamGroup, g: Tensor, m: Tensor, v: Tensor, factors: list[Tensor]) -> Tensor:
        """Assign to `v`; return the value to subtract from the parameter."""
        raise InternalError(f"{type(self).__name__}: expected an optimizer that defines its step")


def _one_minus_power(b: float, t: Tensor) -> Tensor:
    """1 - b^t, exact to a few ulp, of a 1-element Tensor."""
    return t.const_like(1.0) if b == 0 else -(t * math.log(b)).expm1()


class Adamax(_Moments):
    """Adam that divides by the greatest past gradient, which decays by b2 (Kingma and Ba, 2015).

    >>> w = nn.Parameter(Tensor([1.0, -2.0]))
    >>> optimizer = nn.optim.Adamax([w], lr=0.1)
    >>> with Tensor.train():
    ...     (w * w).sum().backward()
    ...     optimizer.step()
    <Tensor () float32 on CPU, lazy: tolist() shows it>
    >>> [round(x, 4) for x in w.tolist()]
    [0.9, -1.9]
    """

    def __init__(
        self,
        params: Params,
        lr: float = 0.002,
        b1: float = 0.9,
        b2: float = 0.999,
        eps: float = 1e-08,
        weight_decay: float = 0.0,
        device: str | None = None,
        betas: tuple[float, float] | None = None,
    ) -> None:
        super().__init__(params, lr, b1, b2, eps, weight_decay, False, device, betas)

    def _factors(self, group: ParamGroup, clock: Clock) -> list[Tensor]:
        return [group.lr / _one_minus_power(group["b1"], clock["t"])]

    def _update(self, group: ParamGroup, g: Tensor, m: Tensor, v: Tensor, factors: list[Tensor]) -> Tensor:
        v.assign((v * group["b2"]).maximum(g.abs() + group["eps"]))
        return m / v * factors[0]


class NAdam(_Moments):
    """Adam with Nesterov's momentum, whose decay grows to b1 by `momentum_decay` (Dozat, 2016).

    >>> w = nn.Parameter(Tensor([1.0, -2.0]))
    >>> optimizer = nn.optim.NAdam([w], lr=0.1)
    >>> with Tensor.train():
    ...     (w * w).sum().backward()
    ...     optimizer.step()
    <Tensor () float32 on CPU, lazy: tolist() shows it>
    >>> [round(x, 4) for x in w.tolist()]
    [0.8944, -1.8944]
    """

    _options = (*_Moments._options, "momentum_decay")
    _counters = {"t": 0.0, "mu_product": 1.0}
    mu_product: Tensor

    def __init__(
        self,
        params: Params,
        lr: float = 0.002,
        b1: float = 0.9,
        b2: float = 0.999,
        eps: float = 1e-08,
        weight_decay: float = 0.0,
        momentum_decay: float = 0.004,
        decoupled: bool = False,
        device: str | None = None,
        betas: tuple[float, float] | None = None,
    ) -> None:
        self.momentum_decay = momentum_decay
        super().__init__(params, lr, b1, b2, eps, weight_decay, decoupled, device, betas)

    def _check(self, group: ParamGroup) -> None:
        super()._check(group)
        in_range(f"{group.owner}: momentum_decay", group["momentum_decay"], 0)

    def _step(self, part: Part) -> list[Tensor]:
        return [*super()._step(part), part.clock["mu_product"]]

    def _factors(self, group: ParamGroup, clock: Clock) -> list[Tensor]:
        rate = group["momentum_decay"] * math.log2(0.96)
        now, later = ((1.0 - (t * rate).exp2() * 0.5) * group["b1"] for t in (clock["t"], clock["t"] + 1.0))
        product = clock["mu_product"]
        product.assign(product * now)
        of_gradient = group.lr * (1.0 - now) / (1.0 - product)
        of_mean = group.lr * later / (1.0 - product * later)
        return [of_gradient, of_mean, _one_minus_power(group["b2"], clock["t"])]

    def _update(self, group: ParamGroup, g: Tensor, m: Tensor, v: Tensor, factors: list[Tensor]) -> Tensor:
        b2 = group["b2"]
        v.assign(v * b2 + g * g * (1.0 - b2))
        of_gradient, of_mean, v_scale = factors
        return (g * of_gradient + m * of_mean) / ((v / v_scale).sqrt() + group["eps"])


class RAdam(_Moments):
    """Adam that rectifies the variance of its adaptive learning rate in early steps (Liu et al., 2020).

    The first steps (five, with the usual b2) use momentum alone.

    >>> w = nn.Parameter(Tensor([1.0, -2.0]))
    >>> optimizer = nn.optim.RAdam([w], lr=0.1)
    >>> with Tensor.train():
    ...     (w * w).sum().backward()
    ...     optimizer.step()
    <Tensor () float32 on CPU, lazy: tolist() shows it>
    >>> [round(x, 4) for x in w.tolist()]
    [0.8, -1.6]
    """

    def __init__(
        self,
        params: Params,
        lr: float = 0.001,
        b1: float = 0.9,
        b2: float = 0.999,
        eps: float = 1e-08,
        weight_decay: float = 0.0,
        decoupled: bool = False,
        device: str | None = None,
        betas: tuple[float, float] | None = None,
    ) -> None:
        super().__init__(params, lr, b1, b2, eps, weight_decay, decoupled, device, betas)

    def _check(self, group: ParamGroup) -> None:
        super()._check(group)
        in_range(f"{group.owner}: b2", group["b2"], 1e-12, 1)

    def _length(self, b2: float, t: Tensor) -> Tensor:
        """rho, the effective length of the running mean: 2 / (1 - b2) - 1 - 2t b2^t / (1 - b2^t).

        That is a difference of two large numbers. It is computed, with s = -t log b2, as a constant plus 2t /
        s times 1 - s / (e^s - 1), which has a short series for small s.
        """
        rate = -math.log(b2)
        s = t * rate
        near = s.minimum(1.0)
        z = near * near
        series = near * (0.5 + near * (-1 / 12 + z * (1 / 720 + z * (-1 / 30240 + z / 1209600))))
        far = s.maximum(1.0)
        complement = (s < 1.0).where(series, 1.0 - far / far.expm1())
        return complement * (2.0 / rate) + (2.0 / (1.0 - b2) - 1.0 - 2.0 / rate)

    def _factors(self, group: ParamGroup, clock: Clock) -> list[Tensor]:
        b2, t = group["b2"], clock["t"]
        max_length = 2.0 / (1.0 - b2) - 1.0
        rho = self._length(b2, t)
        is_long = rho > 5.0
        rho = is_long.where(rho, 6.0)
        top = (rho - 4.0) * (rho - 2.0) * max_length
        rectified = (top / (rho * ((max_length - 4.0) * (max_length - 2.0))) * _one_minus_power(b2, t)).sqrt()
        step = group.lr / _one_minus_power(group["b1"], t)
        return [step, is_long.where(rectified, 0.0), is_long.where(0.0, step.const_like(1.0))]

    def _update(self, group: ParamGroup, g: Tensor, m: Tensor, v: Tensor, factors: list[Tensor]) -> Tensor:
        b2 = group["b2"]
        v.assign(v * b2 + g * g * (1.0 - b2))
        step, rectified, plain = factors
        return m * step * (rectified / (v.sqrt() + group["eps"]) + plain)
