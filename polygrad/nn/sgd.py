"""Gradient descent, with momentum or averaging: SGD, ASGD, LARS, Muon."""

from __future__ import annotations

import math

from polygrad.errors import ArgumentError
from polygrad.nn.optimizer import Optimizer, Params, Part, check_numbers, in_range, wide, write
from polygrad.nn.param_groups import ParamGroup
from polygrad.tensor.tensor import Tensor


class SGD(Optimizer):
    """Stochastic gradient descent, with momentum (Nesterov's if asked), weight decay added to the gradient.

    `classic`: the learning rate scales the gradient before it is added to the momentum.

    >>> w = nn.Parameter(Tensor([1.0, -2.0]))
    >>> optimizer = nn.optim.SGD([w], lr=0.1)
    >>> with Tensor.train():
    ...     (w * w).sum().backward()
    ...     optimizer.step()
    <Tensor () float32 on CPU, lazy: tolist() shows it>
    >>> [round(x, 4) for x in w.tolist()]
    [0.8, -1.6]
    """

    _options = ("momentum", "weight_decay", "nesterov", "classic")
    _state_names = ("b",)
    b: list[Tensor]

    def __init__(
        self,
        params: Params,
        lr: float = 0.001,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        classic: bool = False,
        device: str | None = None,
    ) -> None:
        self.momentum, self.weight_decay = momentum, weight_decay
        self.nesterov, self.classic = nesterov, classic
        super().__init__(params, lr, device)

    def _check(self, group: ParamGroup) -> None:
        check_numbers(group, ("momentum", "weight_decay"))
        if group["nesterov"] and group["momentum"] == 0:
            raise ArgumentError(f"{group.owner}: expected a momentum with nesterov=True, got 0")

    def _keeps(self, name: str) -> bool:
        return any(g["momentum"] for g in self.param_groups)

    def _step(self, part: Part) -> list[Tensor]:
        momentum, weight_decay, nesterov, classic = (part.group[k] for k in self._options)
        rate = part.group.lr
        for i, p, g in part.members:
            g = g.cast(wide(p))
            lr = rate.cast(g.dtype)
            if weight_decay:
                g = g + p.detach() * weight_decay
            if classic:
                g = g * lr
            if momentum:
                write(self.b[i], self.b[i] * momentum + g)
                g = g + self.b[i] * momentum if nesterov else self.b[i]
            write(p, p.detach() - (g if classic else g * lr))
        return [self.b[i] for i, _, _ in part.members] if momentum else []


class ASGD(Optimizer):
    """SGD that also keeps the mean of the parameters after step `t0`, in `ax` (Polyak and Juditsky, 1992).

    The learning rate of step t is lr / (1 + lambd lr t)^alpha; `lambd` decays the parameters, too. Until
    `t0`, `ax` equals the parameters. As in torch, where a changed learning rate takes effect one step later.

    >>> w = nn.Parameter(Tensor([1.0, -2.0]))
    >>> optimizer = nn.optim.ASGD([w], lr=0.1)
    >>> with Tensor.train():
    ...     (w * w).sum().backward()
    ...     optimizer.step()
    <Tensor () float32 on CPU, lazy: tolist() shows it>
    >>> [round(x, 4) for x in w.tolist()]
    [0.8, -1.6]
    """

    _options = ("lambd", "alpha", "t0", "weight_decay")
    _counters = {"t": 0.0}
    _state_names = ("ax",)
    t: Tensor
    ax: list[Tensor]

    def __init__(
        self,
        params: Params,
        lr: float = 0.01,
        lambd: float = 0.0001,
        alpha: float = 0.75,
        t0: float = 1000000.0,
        weight_decay: float = 0.0,
        device: str | None = None,
    ) -> None:
        self.lambd, self.alpha, self.t0, self.weight_decay = lambd, alpha, t0, weight_decay
        super().__init__(params, lr, device)

    def _check(self, group: ParamGroup) -> None:
        check_numbers(group, ("lambd", "weight_decay"))

    def _step(self, part: Part) -> list[Tensor]:
        lambd, alpha, t0, weight_decay = (part.group[k] for k in self._options)
        t, lr = part.clock["t"], part.group.lr
        started = t > 0
        rate = started.where(lr / (t * lr * lambd + 1.0).pow(alpha), lr)
        share = started.where((t - t0).maximum(1.0).reciprocal(), 1.0)
        for i, p, g in part.members:
            ax = self.ax[i]
            g, old = g.cast(ax.dtype), p.detach().cast(ax.dtype)
            if weight_decay:
                g = g + old * weight_decay
            eta = rate.cast(ax.dtype)
            new = old * (1.0 - eta * lambd) - g * eta
            write(ax, ax + (new - ax) * share.cast(ax.dtype))
            write(p, new)
        t.assign(t + 1.0)
        return [t, *[self.ax[i] for i, _, _ in part.members]]


class LARS(Optimizer):
    """Layer-wise adaptive rate scaling (You et al., 2017): SGD whose steps are scaled for each parameter.

    The scale is `tcoef` * |p| / (|g| + weight_decay * |p|), and 1 where a norm is 0. `pre_wd`: weight decay
    is added to the gradient, else subtracted from the parameter. `classic`: the learning rate scales the
    gradient before it is added to the momentum.

    >>> w = nn.Parameter(Tensor([1.0, -2.0]))
    >>> optimizer = nn.optim.LARS([w], lr=0.1)
    >>> with Tensor.train():
    ...     (w * w).sum().backward()
    ...     optimizer.step()
    <Tensor () float32 on CPU, lazy: tolist() shows it>
    >>> [round(x, 4) for x in w.tolist()]
    [0.9999, -1.9998]
    """

    _options = ("momentum", "weight_decay", "nesterov", "classic", "pre_wd", "tcoef")
    _state_names = ("b",)
    b: list[Tensor]

    def __init__(
        self,
        params: Params,
        lr: float = 0.001,
        momentum: float = 0.9,
        weight_decay: float = 0.0001,
        nesterov: bool = False,
        classic: bool = True,
        pre_wd: bool = True,
        tcoef: float = 0.001,
        device: str | None = None,
    ) -> None:
        self.momentum, self.weight_decay, self.tcoef = momentum, weight_decay, tcoef
        self.nesterov, self.classic, self.pre_wd = nesterov, classic, pre_wd
        super().__init__(params, lr, device)

    def _check(self, group: ParamGroup) -> None:
        check_numbers(group, ("momentum", "weight_decay", "tcoef"))

    def _keeps(self, name: str) -> bool:
        return any(g["momentum"] for g in self.param_groups)

    def _step(self, part: Part) -> list[Tensor]:
        momentum, weight_decay, nesterov, classic, pre_wd, tcoef = (part.group[k] for k in self._options)
        for i, p, g in part.members:
            g, old = g.cast(wide(p)), p.detach().cast(wide(p))
            scale = part.group.lr.cast(g.dtype)
            if tcoef:
                scale = scale * _trust(old, g, tcoef, weight_decay)
            if pre_wd and weight_decay:
                g = g + old * weight_decay
            if classic:
                g = g * scale
            if momentum:
                write(self.b[i], self.b[i] * momentum + g)
                g = g + self.b[i] * momentum if nesterov else self.b[i]
            if not classic:
                g = g * scale
            if not pre_wd and weight_decay:
                g = g + old * weight_decay * part.group.lr
            write(p, old - g)
        return [self.b[i] for i, _, _ in part.members] if momentum else []


def _trust(p: Tensor, g: Tensor, tcoef: float, weight_decay: float) -> Tensor:
    """The factor by which LARS scales the step of a parameter."""
    length, slope = p.square().sum().sqrt(), g.square().sum().sqrt()
    ratio = length * tcoef / (slope + length * weight_decay)
    return ((length > 0) & (slope > 0)).where(ratio, 1.0)


class Muon(Optimizer):
    """Momentum whose matrices are approximately orthogonalized before they are subtracted (Jordan, 2024).

    For the hidden matrices of a network; a parameter with more axes is a matrix of its first axis by all
    others. Orthogonalization takes `ns_steps` of the Newton-Schulz iteration with the odd polynomial of
    `ns_coefficients`. Weight decay is decoupled. `adjust_lr_fn`: how the learning rate grows with the shape
    (rows, columns), as in torch: 'original', by sqrt(max(1, rows / columns)), 'match_rms_adamw', by 0.2 *
    sqrt(max(rows, columns)), or None, not at all.

    >>> w = nn.Parameter(Tensor.eye(2))
    >>> optimizer = nn.optim.Muon([w], lr=0.1)
    >>> with Tensor.train():
    ...     (w * w).sum().backward()
    ...     optimizer.step()
    <Tensor () float32 on CPU, lazy: tolist() shows it>
    >>> w.shape
    (2, 2)
    """

    _options = ("momentum", "weight_decay", "ns_steps", "ns_coefficients", "nesterov", "adjust_lr_fn")
    _state_names = ("b",)
    b: list[Tensor]

    def __init__(
        self,
        params: Params,
        lr: float = 0.001,
        momentum: float = 0.95,
        weight_decay: float = 0.1,
        ns_steps: int = 5,
        ns_coefficients: tuple[float, ...] = (3.4445, -4.775, 2.0315),
        nesterov: bool = True,
        adjust_lr_fn: str | None = None,
        device: str | None = None,
    ) -> None:
        self.momentum, self.weight_decay, self.nesterov = momentum, weight_decay, nesterov
        self.ns_steps, self.ns_coefficients = ns_steps, tuple(ns_coefficients)
        self.adjust_lr_fn = adjust_lr_fn
        super().__init__(params, lr, device)

    def _check(self, group: ParamGroup) -> None:
        check_numbers(group, ("momentum", "weight_decay"))
        in_range(f"{group.owner}: ns_steps", group["ns_steps"], 0, 100)
        if group["adjust_lr_fn"] not in (None, "original", "match_rms_adamw"):
            raise ArgumentError(
                f"{group.owner}: expected adjust_lr_fn 'original', 'match_rms_adamw' or None, got "
                f"{group['adjust_lr_fn']!r}"
            )
        flat = [p.shape for p in group.params if p.ndim < 2]
        if flat:
            raise ArgumentError(
                f"{group.owner}: expected parameters with at least 2 axes, got shapes {flat}: give them to "
                "another optimizer, in an OptimizerGroup"
            )

    def _step(self, part: Part) -> list[Tensor]:
        momentum, weight_decay, steps, coefficients, nesterov, adjust = (part.group[k] for k in self._options)
        for i, p, g in part.members:
            b = self.b[i]
            g, old = g.cast(b.dtype), p.detach().cast(b.dtype)
            b.assign(b * momentum + g)
            g = g + b * momentum if nesterov else b
            rows = int(g.shape[0])
            matrix = g.reshape(rows, -1)
            up = _orthogonalize(matrix, steps, coefficients).reshape(g.shape)
            columns = int(matrix.shape[1])
            factor = {
                None: 1.0,
                "original": math.sqrt(max(1, rows / columns)),
                "match_rms_adamw": 0.2 * math.sqrt(max(rows, columns)),
            }[adjust]
            lr = part.group.lr.cast(b.dtype)
            write(p, old * (1 - lr * weight_decay) - up * (lr * factor))
        return [self.b[i] for i, _, _ in part.members]


def _orthogonalize(x: Tensor, steps: int, coefficients: tuple[float, ...]) -> Tensor:
    """The matrix with singular values near 1 and the same singular vectors, by the Newton-Schulz iteration.

    X <- sum of coefficients[i] * (X Xᵀ)^i X, from X / |X| (Bernstein and Newhouse, 2024, "Old optimizer, new
    norm").
    """
    if x.shape[0] > x.shape[1]:
        return _orthogonalize(x.T, steps, coefficients).T
    x = x / (x.square().sum().sqrt() + 1e-7)
    for _ in range(steps):
        gram = x @ x.T
        term, total = x, x * coefficients[0]
        for c in coefficients[1:]:
            term = gram @ term
            total = total + term * c
        x = total
    return x
