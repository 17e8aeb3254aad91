"""Learning rates that follow a schedule.

A scheduler counts its steps in a Tensor and writes a function of the count to the learning rates of its
optimizer. So `scheduler.step()` may be a part of a captured function, which counts on at every replay, or
stand behind a step that was compiled without it. The first rate is there from the start; it is written when
the scheduler is made. Rates are those of torch's schedulers of the same names, in float32.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

from polygrad.dtype import dtypes
from polygrad.errors import ArgumentError
from polygrad.nn.optimizer import Optimizer, OptimizerGroup, in_range
from polygrad.tensor.tensor import Tensor


class LRScheduler(ABC):
    """The base of schedulers: `count`, a Tensor with the number of steps taken."""

    def __init__(self, optimizer: Optimizer | OptimizerGroup) -> None:
        self.optimizers = list(optimizer.optimizers) if isinstance(optimizer, OptimizerGroup) else [optimizer]
        for o in self.optimizers:
            if o.initial_lr is None:
                o.initial_lr = float(o.lr.item())
        home = self.optimizers[0].device
        self.count = Tensor([0.0], device=home, dtype=dtypes.float32, requires_grad=False)
        self._write()

    def step(self) -> None:
        """Count one step, and write the learning rates that follow."""
        with Tensor.no_grad():
            self.count.assign(self.count + 1)
        self._write()

    def _write(self) -> None:
        with Tensor.no_grad():
            for o in self.optimizers:
                o.lr.assign(self._rate(self.count.to(o.device), o.initial_lr or 0.0).cast(o.lr.dtype))
        self.count.realize(*[o.lr for o in self.optimizers])

    @abstractmethod
    def _rate(self, count: Tensor, base: float) -> Tensor:
        """The learning rate after `count` steps of an optimizer that began with `base`."""


class StepLR(LRScheduler):
    """The rate times `gamma` after every `step_size` steps. Raises ArgumentError."""

    def __init__(self, optimizer: Optimizer | OptimizerGroup, step_size: int, gamma: float = 0.1) -> None:
        in_range("StepLR: step_size", step_size, 1)
        in_range("StepLR: gamma", gamma, 0)
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer)

    def _rate(self, count: Tensor, base: float) -> Tensor:
        return _power(self.gamma, (count / self.step_size).floor()) * base


class MultiStepLR(LRScheduler):
    """The rate times `gamma` at each of the counts `milestones`. Raises ArgumentError."""

    def __init__(
        self, optimizer: Optimizer | OptimizerGroup, milestones: Sequence[int], gamma: float = 0.1
    ) -> None:
        in_range("MultiStepLR: gamma", gamma, 0)
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer)

    def _rate(self, count: Tensor, base: float) -> Tensor:
        out = Tensor.full((1,), base, dtype=dtypes.float32, device=count.device)
        for m in self.milestones:
            out = (count >= m).where(out * self.gamma, out)
        return out


class ExponentialLR(LRScheduler):
    """The rate times `gamma` after every step. Raises ArgumentError."""

    def __init__(self, optimizer: Optimizer | OptimizerGroup, gamma: float) -> None:
        in_range("ExponentialLR: gamma", gamma, 0)
        self.gamma = gamma
        super().__init__(optimizer)

    def _rate(self, count: Tensor, base: float) -> Tensor:
        return _power(self.gamma, count) * base


class LinearLR(LRScheduler):
    """The rate times a factor that goes from `start_factor` to `end_factor` in `total_iters` steps, and
    stays.

    A warm-up, as it is; with factors the other way round, a decay. Raises ArgumentError.
    """

    def __init__(
        self,
        optimizer: Optimizer | OptimizerGroup,
        start_factor: float = 1 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
    ) -> None:
        if not 0 < start_factor <= 1 or not 0 <= end_factor <= 1:
            raise ArgumentError(
                "LinearLR: expected start_factor in (0, 1] and end_factor in [0, 1], got "
                f"{start_factor} and {end_factor}"
            )
        in_range("LinearLR: total_iters", total_iters, 1)
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer)

    def _rate(self, count: Tensor, base: float) -> Tensor:
        part = (count / self.total_iters).minimum(1.0)
        return (part * (self.end_factor - self.start_factor) + self.start_factor) * base


class CosineAnnealingLR(LRScheduler):
    """From the first rate to `eta_min` in `T_max` steps, along half a cosine, and back in as many.

    Loshchilov and Hutter, 2017. Raises ArgumentError.
    """

    def __init__(self, optimizer: Optimizer | OptimizerGroup, T_max: int, eta_min: float = 0.0) -> None:
        in_range("CosineAnnealingLR: T_max", T_max, 1)
        in_range("CosineAnnealingLR: eta_min", eta_min, 0)
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer)

    def _rate(self, count: Tensor, base: float) -> Tensor:
        return _annealed(base, self.eta_min, count / self.T_max, "cos")


class OneCycleLR(LRScheduler):
    """Up to `max_lr` in the first `pct_start` of `total_steps` steps, and down to next to nothing in the
    rest.

    Smith and Topin, 2018. It starts at max_lr / div_factor and ends at that / final_div_factor; the rate that
    the optimizer was made with does not matter, and momentum stays as it is. `three_phase`: down as fast as
    up, then to the end. `anneal_strategy`: 'cos' or 'linear'. Raises ArgumentError.
    """

    def __init__(
        self,
        optimizer: Optimizer | OptimizerGroup,
        max_lr: float,
        total_steps: int,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        div_factor: float = 25.0,
        final_div_factor: float = 10000.0,
        three_phase: bool = False,
    ) -> None:
        if anneal_strategy not in ("cos", "linear"):
            raise ArgumentError(
                f"OneCycleLR: expected anneal_strategy 'cos' or 'linear', got {anneal_strategy!r}"
            )
        if not 0 <= pct_start <= 1:
            raise ArgumentError(f"OneCycleLR: expected pct_start in 0..1, got {pct_start}")
        in_range("OneCycleLR: max_lr", max_lr, 0)
        in_range("OneCycleLR: total_steps", total_steps, 1)
        if not div_factor > 0 or not final_div_factor > 0:
            raise ArgumentError(
                f"OneCycleLR: expected factors over 0, got {div_factor} and {final_div_factor}"
            )
        self.max_lr, self.total_steps, self.pct_start = max_lr, total_steps, pct_start
        self.anneal_strategy, self.div_factor = anneal_strategy, div_factor
        self.final_div_factor, self.three_phase = final_div_factor, three_phase
        super().__init__(optimizer)

    def _rate(self, count: Tensor, base: float) -> Tensor:
        first, top = self.max_lr / self.div_factor, self.pct_start * self.total_steps - 1
        last, end = first / self.final_div_factor, self.total_steps - 1
        phases = [(first, self.max_lr, top)]
        if self.three_phase:
            phases.append((self.max_lr, first, 2 * top))
        phases.append((phases[-1][1], last, end))
        start, out = 0.0, None
        for low, high, stop in phases:
            part = ((count - start) / (stop - start)) if stop != start else count * 0 + 1
            rate = _annealed(low, high, part.minimum(1.0), self.anneal_strategy)
            out = rate if out is None else (count <= start).where(out, rate)
            start = stop
        assert out is not None
        return out


class SequentialLR(LRScheduler):
    """One scheduler after the other: each of `milestones` is the count at which the next one begins anew.

        warm_up = LinearLR(optimizer, 0.1, total_iters=100)
        cosine = CosineAnnealingLR(optimizer, 900)
        scheduler = SequentialLR(optimizer, [warm_up, cosine], [100])

    Step this one only. Raises ArgumentError unless there is one milestone less than schedulers, in order.
    """

    def __init__(
        self,
        optimizer: Optimizer | OptimizerGroup,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
    ) -> None:
        if len(milestones) != len(schedulers) - 1 or list(milestones) != sorted(set(milestones)):
            raise ArgumentError(
                f"SequentialLR: expected {len(schedulers) - 1} milestones in order, one for each change, "
                f"got {list(milestones)}"
            )
        self.schedulers, self.milestones = list(schedulers), list(milestones)
        super().__init__(optimizer)

    def _rate(self, count: Tensor, base: float) -> Tensor:
        out = self.schedulers[0]._rate(count, base)
        for scheduler, m in zip(self.schedulers[1:], self.milestones, strict=True):
            out = (count >= m).where(scheduler._rate(count - m, base), out)
        return out


def _power(base: float, exponent: Tensor) -> Tensor:
    return (exponent * math.log2(base)).exp2() if base > 0 else exponent.eq(0).cast(dtypes.float32)


def _annealed(start: float, end: float, part: Tensor, strategy: str) -> Tensor:
    """Between `start` and `end`: `part` of the way, along half a cosine or a line."""
    if strategy == "linear":
        return part * (end - start) + start
    return ((part * math.pi).cos() + 1) * ((start - end) / 2) + end
