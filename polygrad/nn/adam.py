"""Optimizers that divide gradients by their running RMS: Adam, AdamW, LAMB, RMSprop."""

from __future__ import annotations

from polygrad.nn.optimizer import (
    Optimizer,
    Params,
    Part,
    check_moments,
    check_numbers,
    decays,
    in_range,
    write,
)
from polygrad.nn.param_groups import ParamGroup
from polygrad.tensor.tensor import Tensor


class AdamW(Optimizer):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019). `betas`: torch's name for b1 and b2.

    `decoupled=False`: weight decay is added to the gradient, as torch's Adam does.

    >>> w = nn.Parameter(Tensor([1.0, -2.0]))
    >>> optimizer = nn.optim.AdamW([w], lr=0.1)
    >>> with Tensor.train():
    ...     (w * w).sum().backward()
    ...     optimizer.step()
    <Tensor () float32 on CPU, lazy: tolist() shows it>
    >>> [round(x, 4) for x in w.tolist()]
    [0.899, -1.898]
    """

    _options: tuple[str, ...] = ("b1", "b2", "eps", "weight_decay", "decoupled")
    # the powers b1^t and b2^t
    _counters = {"b1_t": 1.0, "b2_t": 1.0}
    _state_names = ("m", "v")
    b1_t: Tensor
    b2_t: Tensor
    m: list[Tensor]
    v: list[Tensor]

    def __init__(
        self,
        params: Params,
        lr: float = 0.001,
        b1: float = 0.9,
        b2: float = 0.999,
        eps: float = 1e-08,
        weight_decay: float = 0.01,
        device: str | None = None,
        betas: tuple[float, float] | None = None,
        decoupled: bool = True,
    ) -> None:
        self.b1, self.b2 = decays(b1, b2, betas)
        self.eps, self.weight_decay, self.decoupled = eps, weight_decay, decoupled
        super().__init__(params, lr, device)

    def _check(self, group: ParamGroup) -> None:
        check_moments(group)

    def _step(self, part: Part) -> list[Tensor]:
        group, b1_t, b2_t = part.group, part.clock["b1_t"], part.clock["b2_t"]
        b1, b2, weight_decay = group["b1"], group["b2"], group["weight_decay"]
        b1_t.assign(b1_t * b1)
        b2_t.assign(b2_t * b2)
        m_scale, v_scale = (1.0 - b1_t).reciprocal(), (1.0 - b2_t).reciprocal()
        for i, p, g in part.members:
            m, v, old = self.m[i], self.v[i], p.detach()
            g = g.cast(m.dtype)
            if weight_decay and not group["decoupled"]:
                g = g + old * weight_decay
            m.assign(m * b1 + g * (1.0 - b1))
            v.assign(v * b2 + g * g * (1.0 - b2))
            up = (m * m_scale) / ((v * v_scale).sqrt() + group["eps"])
            if weight_decay and group["decoupled"]:
                up = up + old * weight_decay
            write(p, old - self._scale_step(up, old) * group.lr)
        positions = [i for i, _, _ in part.members]
        return [b1_t, b2_t, *[self.m[i] for i in positions], *[self.v[i] for i in positions]]

    def _scale_step(self, up: Tensor, old: Tensor) -> Tensor:
        """The step `up` of a parameter with value `old`, before it is multiplied by the learning rate."""
        return up


def Adam(
    params: Params,
    lr: float = 0.001,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-08,
    device: str | None = None,
    weight_decay: float = 0.0,
    betas: tuple[float, float] | None = None,
) -> AdamW:
    """Adam (Kingma and Ba, 2015): AdamW whose weight decay, if any, is added to the gradient."""
    return AdamW(params, lr, b1, b2, eps, weight_decay, device, betas, decoupled=False)


class LAMB(AdamW):
    """Adam whose steps are scaled for each parameter, by |p| / |step| (You et al., 2020).

    The scale is 1 where a norm is 0, and everywhere with `adam`.

    >>> w = nn.Parameter(Tensor([1.0, -2.0]))
    >>> optimizer = nn.optim.LAMB([w], lr=0.1)
    >>> with Tensor.train():
    ...     (w * w).sum().backward()
    ...     optimizer.step()
    <Tensor () float32 on CPU, lazy: tolist() shows it>
    >>> [round(x, 4) for x in w.tolist()]
    [0.8419, -1.8419]
    """

    def __init__(
        self,
        params: Params,
        lr: float = 0.001,
        b1: float = 0.9,
        b2: float = 0.999,
        eps: float = 1e-06,
        weight_decay: float = 0.0,
        adam: bool = False,
        device: str | None = None,
        betas: tuple[float, float] | None = None,
    ) -> None:
        self.adam = adam
        super().__init__(params, lr, b1, b2, eps, weight_decay, device, betas)

    def _scale_step(self, up: Tensor, old: Tensor) -> Tensor:
        if self.adam:
            return up
        length, step = old.square().sum().sqrt(), up.square().sum().sqrt()
        return up * ((length > 0) & (step > 0)).where(length / step, 1.0)


class RMSprop(Optimizer):
    """Gradients divided by the root of a running mean of their squares (Tieleman and Hinton, 2012).

    `alpha`: the decay of that mean. `centered`: divide by the standard deviation. As torch.optim.RMSprop.

    >>> w = nn.Parameter(Tensor([1.0, -2.0]))
    >>> optimizer = nn.optim.RMSprop([w], lr=0.1)
    >>> with Tensor.train():
    ...     (w * w).sum().backward()
    ...     optimizer.step()
    <Tensor () float32 on CPU, lazy: tolist() shows it>
    >>> [round(x, 4) for x in w.tolist()]
    [0.0, -1.0]
    """

    _options = ("alpha", "eps", "weight_decay", "momentum", "centered")
    _state_names = ("v", "b", "mean")
    v: list[Tensor]
    b: list[Tensor]
    mean: list[Tensor]

    def __init__(
        self,
        params: Params,
        lr: float = 0.01,
        alpha: float = 0.99,
        eps: float = 1e-08,
        weight_decay: float = 0.0,
        momentum: float = 0.0,
        centered: bool = False,
        device: str | None = None,
    ) -> None:
        self.alpha, self.eps, self.weight_decay = alpha, eps, weight_decay
        self.momentum, self.centered = momentum, centered
        super().__init__(params, lr, device)

    def _check(self, group: ParamGroup) -> None:
        in_range(f"{group.owner}: alpha", group["alpha"], 0, 1)
        check_numbers(group, ("eps", "weight_decay", "momentum"))

    def _keeps(self, name: str) -> bool:
        number = {"b": "momentum", "mean": "centered"}.get(name)
        return number is None or any(g[number] for g in self.param_groups)

    def _step(self, part: Part) -> list[Tensor]:
        alpha, eps, weight_decay, momentum, centered = (part.group[k] for k in self._options)
        for i, p, g in part.members:
            v = self.v[i]
            g, old = g.cast(v.dtype), p.detach().cast(v.dtype)
            if weight_decay:
                g = g + old * weight_decay
            v.assign(v * alpha + g * g * (1.0 - alpha))
            variance = v
            if centered:
                mean = self.mean[i]
                mean.assign(mean * alpha + g * (1.0 - alpha))
                # rounding may make it less than 0, and the root NaN
                variance = (v - mean * mean).maximum(0)
            up = g / (variance.sqrt() + eps)
            if momentum:
                self.b[i].assign(self.b[i] * momentum + up)
                up = self.b[i]
            write(p, old - up * part.group.lr.cast(v.dtype))
        state_lists = [self.v, *([self.b] if momentum else []), *([self.mean] if centered else [])]
        return [state[i] for state in state_lists for i, _, _ in part.members]
