"""Optimizers that adapt each element's step to its gradients: Adagrad, Adadelta, Rprop, as in torch."""

from __future__ import annotations

from polygrad.errors import ArgumentError
from polygrad.nn.optimizer import Optimizer, Params, Part, check_numbers, in_range, write, zeros
from polygrad.nn.param_groups import ParamGroup
from polygrad.tensor.tensor import Tensor


class Adagrad(Optimizer):
    """Gradients divided by the root of the sum of all their squares so far (Duchi et al., 2011).

    `lr_decay`: the learning rate of step t is lr / (1 + (t - 1) lr_decay). `initial_accumulator_value`: the
    initial value of the sum.

    >>> w = nn.Parameter(Tensor([1.0, -2.0]))
    >>> optimizer = nn.optim.Adagrad([w], lr=0.1)
    >>> with Tensor.train():
    ...     (w * w).sum().backward()
    ...     optimizer.step()
    <Tensor () float32 on CPU, lazy: tolist() shows it>
    >>> [round(x, 4) for x in w.tolist()]
    [0.9, -1.9]
    """

    _options = ("lr_decay", "weight_decay", "initial_accumulator_value", "eps")
    _counters = {"t": 0.0}
    _state_names = ("total",)
    t: Tensor
    total: list[Tensor]

    def __init__(
        self,
        params: Params,
        lr: float = 0.01,
        lr_decay: float = 0.0,
        weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0,
        eps: float = 1e-10,
        device: str | None = None,
    ) -> None:
        self.lr_decay, self.weight_decay, self.eps = lr_decay, weight_decay, eps
        self.initial_accumulator_value = initial_accumulator_value
        super().__init__(params, lr, device)

    def _check(self, group: ParamGroup) -> None:
        check_numbers(group, self._options)

    def _initial(self, name: str, p: Tensor) -> Tensor:
        return zeros(p, self._group_of(p)["initial_accumulator_value"])

    def _step(self, part: Part) -> list[Tensor]:
        lr_decay, weight_decay, _, eps = (part.group[k] for k in self._options)
        t, lr = part.clock["t"], part.group.lr
        rate = lr / (t * lr_decay + 1.0) if lr_decay else lr
        for i, p, g in part.members:
            total = self.total[i]
            g, old = g.cast(total.dtype), p.detach().cast(total.dtype)
            if weight_decay:
                g = g + old * weight_decay
            total.assign(total + g * g)
            write(p, old - g / (total.sqrt() + eps) * rate.cast(total.dtype))
        t.assign(t + 1.0)
        return [t, *[self.total[i] for i, _, _ in part.members]]


class Adadelta(Optimizer):
    """Gradients scaled by the ratio of the RMS of past steps to the RMS of gradients (Zeiler, 2012).

    `rho`: the decay of the running means of both squares.

    >>> w = nn.Parameter(Tensor([1.0, -2.0]))
    >>> optimizer = nn.optim.Adadelta([w])
    >>> with Tensor.train():
    ...     (w * w).sum().backward()
    ...     optimizer.step()
    <Tensor () float32 on CPU, lazy: tolist() shows it>
    >>> [round(x, 4) for x in w.tolist()]
    [0.9968, -1.9968]
    """

    _options = ("rho", "eps", "weight_decay")
    _state_names = ("v", "steps")
    v: list[Tensor]
    steps: list[Tensor]

    def __init__(
        self,
        params: Params,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-06,
        weight_decay: float = 0.0,
        device: str | None = None,
    ) -> None:
        self.rho, self.eps, self.weight_decay = rho, eps, weight_decay
        super().__init__(params, lr, device)

    def _check(self, group: ParamGroup) -> None:
        in_range(f"{group.owner}: rho", group["rho"], 0, 1)
        check_numbers(group, ("eps", "weight_decay"))

    def _step(self, part: Part) -> list[Tensor]:
        rho, eps, weight_decay = (part.group[k] for k in self._options)
        for i, p, g in part.members:
            v, steps = self.v[i], self.steps[i]
            g, old = g.cast(v.dtype), p.detach().cast(v.dtype)
            if weight_decay:
                g = g + old * weight_decay
            v.assign(v * rho + g * g * (1.0 - rho))
            up = (steps + eps).sqrt() / (v + eps).sqrt() * g
            steps.assign(steps * rho + up * up * (1.0 - rho))
            write(p, old - up * part.group.lr.cast(v.dtype))
        return [state[i] for state in (self.v, self.steps) for i, _, _ in part.members]


class Rprop(Optimizer):
    """Steps by the gradient's sign, whose size adapts for each element (Riedmiller and Braun, 1993).

    `etas`: the factors of a step size when the sign changed (that step is skipped, too) and when it did not.
    `step_sizes`: the least and the greatest step size; `lr` is the first one. Meant for full batches.

    >>> w = nn.Parameter(Tensor([1.0, -2.0]))
    >>> optimizer = nn.optim.Rprop([w], lr=0.1)
    >>> with Tensor.train():
    ...     (w * w).sum().backward()
    ...     optimizer.step()
    <Tensor () float32 on CPU, lazy: tolist() shows it>
    >>> [round(x, 4) for x in w.tolist()]
    [0.9, -1.9]
    """

    _options = ("etas", "step_sizes")
    _state_names = ("before", "size")
    before: list[Tensor]
    size: list[Tensor]

    def __init__(
        self,
        params: Params,
        lr: float = 0.01,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-06, 50.0),
        device: str | None = None,
    ) -> None:
        self.etas, self.step_sizes = tuple(etas), tuple(step_sizes)
        super().__init__(params, lr, device)

    def _check(self, group: ParamGroup) -> None:
        etas, step_sizes = group["etas"], group["step_sizes"]
        if not 0 < etas[0] < 1 < etas[1]:
            raise ArgumentError(f"{group.owner}: expected etas below and above 1, got {etas}")
        if not 0 < step_sizes[0] <= step_sizes[1]:
            raise ArgumentError(
                f"{group.owner}: expected step_sizes from less to more, above 0, got {step_sizes}"
            )

    def _initial(self, name: str, p: Tensor) -> Tensor:
        return zeros(p, self._group_of(p).first_lr if name == "size" else 0.0)

    def _step(self, part: Part) -> list[Tensor]:
        etas, step_sizes = part.group["etas"], part.group["step_sizes"]
        for i, p, g in part.members:
            before, size = self.before[i], self.size[i]
            g, old = g.cast(size.dtype), p.detach().cast(size.dtype)
            turn = (g * before).sign()
            factor = (turn > 0).where(etas[1], (turn < 0).where(etas[0], turn.const_like(1.0)))
            size.assign((size * factor).clamp(*step_sizes))
            before.assign((turn < 0).where(0.0, g))
            write(p, old - before.sign() * size)
        return [state[i] for state in (self.before, self.size) for i, _, _ in part.members]
