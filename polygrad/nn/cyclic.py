"""Cyclic learning rates: OneCycleLR, CyclicLR, CosineAnnealingWarmRestarts, as in torch."""

from __future__ import annotations

from collections.abc import Sequence

from polygrad.errors import ArgumentError
from polygrad.nn.optimizer import Optimizer, OptimizerGroup, in_range
from polygrad.nn.schedulers import LRScheduler, anneal, power
from polygrad.tensor.tensor import Tensor

_MAX_STEPS = 1 << 24  # counts are exact in float32 up to here


class OneCycleLR(LRScheduler):
    """The rate rises to `max_lr` in the first `pct_start` of `total_steps` steps, and then falls to almost 0.

    Smith and Topin, 2018. The rate starts at max_lr / div_factor and ends at that / final_div_factor. The
    rate that the optimizer was made with is not used, and momentum does not change. `three_phase`: fall as
    fast as the rise, then to the final rate. `anneal_strategy`: 'cos' or 'linear'. `max_lr`: for all
    parameter groups, or one for each. The number of steps may be given as `epochs` times `steps_per_epoch`.
    Raises ArgumentError.

    >>> optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0]))], lr=1.0)
    >>> scheduler = nn.optim.OneCycleLR(optimizer, 1.0, total_steps=5)
    >>> rates = []
    >>> for _ in range(5):
    ...     rates.append(round(optimizer.lr.item(), 3))
    ...     scheduler.step()
    >>> rates
    [0.04, 0.95, 0.611, 0.188, 0.0]
    """

    _scales = False

    def __init__(
        self,
        optimizer: Optimizer | OptimizerGroup,
        max_lr: float | Sequence[float],
        total_steps: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        div_factor: float = 25.0,
        final_div_factor: float = 10000.0,
        three_phase: bool = False,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
    ) -> None:
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ArgumentError(
                    "OneCycleLR: expected total_steps, or epochs and steps_per_epoch, got none"
                )
            total_steps = epochs * steps_per_epoch
        if anneal_strategy not in ("cos", "linear"):
            raise ArgumentError(
                f"OneCycleLR: expected anneal_strategy 'cos' or 'linear', got {anneal_strategy!r}"
            )
        if not 0 <= pct_start <= 1:
            raise ArgumentError(f"OneCycleLR: expected pct_start in 0..1, got {pct_start}")
        in_range("OneCycleLR: total_steps", total_steps, 1)
        if not div_factor > 0 or not final_div_factor > 0:
            raise ArgumentError(
                f"OneCycleLR: expected factors over 0, got {div_factor} and {final_div_factor}"
            )
        self.max_lr = each_group("OneCycleLR: max_lr", max_lr, optimizer)
        self.total_steps, self.pct_start = total_steps, pct_start
        self.anneal_strategy, self.div_factor = anneal_strategy, div_factor
        self.final_div_factor, self.three_phase = final_div_factor, three_phase
        super().__init__(optimizer)

    def _rate(self, count: Tensor, base: float, group: int) -> Tensor:
        greatest = self.max_lr[group]
        first, top = greatest / self.div_factor, self.pct_start * self.total_steps - 1
        last, end = first / self.final_div_factor, self.total_steps - 1
        phases = [(first, greatest, top)]
        if self.three_phase:
            phases.append((greatest, first, 2 * top))
        phases.append((phases[-1][1], last, end))
        start, out = 0.0, None
        for low, high, stop in phases:
            part = ((count - start) / (stop - start)) if stop != start else count * 0 + 1
            rate = anneal(low, high, part.minimum(1.0), self.anneal_strategy)
            out = rate if out is None else (count <= start).where(out, rate)
            start = stop
        assert out is not None
        return out


class CyclicLR(LRScheduler):
    """The rate cycles between `base_lr` and `max_lr`: it rises in `step_size_up` steps and falls in
    `step_size_down`.

    Smith, 2017. `mode`: 'triangular'; 'triangular2' halves the amplitude in every cycle; 'exp_range'
    multiplies it by gamma^count. `base_lr`, `max_lr`: for all parameter groups, or one for each. The rate
    that the optimizer was made with is not used, and momentum does not change. Raises ArgumentError.

    >>> optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0]))], lr=1.0)
    >>> scheduler = nn.optim.CyclicLR(optimizer, 0.1, 0.5, step_size_up=2)
    >>> rates = []
    >>> for _ in range(5):
    ...     rates.append(round(optimizer.lr.item(), 3))
    ...     scheduler.step()
    >>> rates
    [0.1, 0.3, 0.5, 0.3, 0.1]
    """

    _scales = False

    def __init__(
        self,
        optimizer: Optimizer | OptimizerGroup,
        base_lr: float | Sequence[float],
        max_lr: float | Sequence[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
    ) -> None:
        if mode not in ("triangular", "triangular2", "exp_range"):
            raise ArgumentError(
                f"CyclicLR: expected mode 'triangular', 'triangular2' or 'exp_range', got {mode!r}"
            )
        in_range("CyclicLR: step_size_up", step_size_up, 1)
        in_range("CyclicLR: gamma", gamma, 0)
        self.base_lr = each_group("CyclicLR: base_lr", base_lr, optimizer)
        self.max_lr = each_group("CyclicLR: max_lr", max_lr, optimizer)
        self.step_size_up = step_size_up
        self.step_size_down = step_size_up if step_size_down is None else step_size_down
        in_range("CyclicLR: step_size_down", self.step_size_down, 1)
        self.mode, self.gamma = mode, gamma
        super().__init__(optimizer)

    def _rate(self, count: Tensor, base: float, group: int) -> Tensor:
        up, down = self.step_size_up, self.step_size_down
        cycle = (count / (up + down)).floor()
        since = count - cycle * (up + down)
        height = (since <= up).where(since / up, (since - (up + down)) / -down)
        height = height * (self.max_lr[group] - self.base_lr[group])
        if self.mode == "triangular2":
            height = height * (-cycle).exp2()
        elif self.mode == "exp_range":
            height = height * power(self.gamma, count)
        return height + self.base_lr[group]


class CosineAnnealingWarmRestarts(LRScheduler):
    """From the first rate to `eta_min` along half a cosine in `T_0` steps; then it restarts, with `T_mult`
    times as many steps each time.

    Loshchilov and Hutter, 2017. Raises ArgumentError.

    >>> optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0]))], lr=1.0)
    >>> scheduler = nn.optim.CosineAnnealingWarmRestarts(optimizer, 2)
    >>> rates = []
    >>> for _ in range(5):
    ...     rates.append(round(optimizer.lr.item(), 3))
    ...     scheduler.step()
    >>> rates
    [1.0, 0.5, 1.0, 0.5, 1.0]
    """

    def __init__(
        self, optimizer: Optimizer | OptimizerGroup, T_0: int, T_mult: int = 1, eta_min: float = 0.0
    ) -> None:
        in_range("CosineAnnealingWarmRestarts: T_0", T_0, 1)
        in_range("CosineAnnealingWarmRestarts: T_mult", T_mult, 1)
        in_range("CosineAnnealingWarmRestarts: eta_min", eta_min, 0)
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        self._scales = eta_min == 0
        super().__init__(optimizer)

    def _rate(self, count: Tensor, base: float, group: int) -> Tensor:
        since, length = count, count * 0 + self.T_0
        if self.T_mult == 1:
            since = count - (count / self.T_0).floor() * self.T_0
        else:
            start, steps = self.T_0, self.T_0 * self.T_mult
            while start < _MAX_STEPS:
                is_past = count >= start
                since, length = is_past.where(count - start, since), is_past.where(float(steps), length)
                start, steps = start + steps, steps * self.T_mult
        return anneal(base, self.eta_min, since / length, "cos")


def each_group(
    what: str, rate: float | Sequence[float], optimizer: Optimizer | OptimizerGroup
) -> list[float]:
    """A learning rate for each parameter group. Raises ArgumentError."""
    groups = len(optimizer.param_groups)
    rates = [rate] * groups if isinstance(rate, (int, float)) else list(rate)
    if len(rates) != groups:
        raise ArgumentError(f"{what}: expected a number, or one for each of {groups} groups, got {rates}")
    for x in rates:
        in_range(what, x, 0)
    return rates
