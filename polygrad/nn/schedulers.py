"""Learning-rate schedulers.

A scheduler counts its steps in a Tensor and writes a function of the count to the learning rates of its
optimizer. So `scheduler.step()` may be part of a captured function, which counts at every replay, or follow a
step that was compiled without it. The scheduler writes the first rate when it is made. Rates are those of
torch's schedulers of the same names, in float32. Every parameter group has its own base rate: the one that it
had when its first scheduler was made.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from polygrad.dtype import dtypes
from polygrad.errors import ArgumentError
from polygrad.helpers import dedup
from polygrad.nn.optimizer import Optimizer, OptimizerGroup, in_range
from polygrad.nn.state import get_state_dict, load_state_dict
from polygrad.tensor.tensor import Tensor


class LRScheduler(ABC):
    """The base of schedulers: `count`, a Tensor with the number of steps taken.

    >>> optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0]))], lr=1.0)
    >>> scheduler = nn.optim.StepLR(optimizer, 1)
    >>> scheduler.step()
    >>> scheduler.count.item()
    1.0
    """

    _scales = True  # the rate is the first rate times a factor that does not depend on it

    def __init__(self, optimizer: Optimizer | OptimizerGroup) -> None:
        self._groups = tuple(optimizer.param_groups)
        for group in self._groups:
            if group.initial_lr is None:
                group["initial_lr"] = group.lr.item()
        home = self.optimizers[0].device
        self.count = Tensor([0.0], device=home, dtype=dtypes.float32, requires_grad=False)
        self._write()

    @property
    def optimizers(self) -> list[Optimizer]:
        """The optimizers whose learning rates it writes."""
        return dedup(group.optimizer for group in self._groups)

    def step(self) -> None:
        """Count one step, and write the new learning rates.

        >>> optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0]))], lr=1.0)
        >>> scheduler = nn.optim.ExponentialLR(optimizer, 0.5)
        >>> scheduler.step()
        >>> optimizer.lr.item()
        0.5
        """
        with Tensor.no_grad():
            self.count.assign(self.count + 1)
        self._write()

    def get_last_lr(self) -> list[float]:
        """The current learning rate of each parameter group.

        >>> optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0]))], lr=1.0)
        >>> nn.optim.ConstantLR(optimizer, 0.5).get_last_lr()
        [0.5]
        """
        return [group.lr.item() for group in self._groups]

    def state_dict(self) -> dict[str, Tensor]:
        """The scheduler's state: its number of steps. The rates belong to the optimizer.

        >>> optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0]))], lr=1.0)
        >>> scheduler = nn.optim.ExponentialLR(optimizer, 0.5)
        >>> scheduler.step()
        >>> state = scheduler.state_dict()
        >>> state['count'].item()
        1
        """
        out: dict[str, Tensor] = get_state_dict(self)
        return out

    def load_state_dict(self, state_dict: Mapping[str, Tensor]) -> None:
        """Restore the state that `state_dict` returned, and write the learning rates. Raises ArgumentError,
        ShapeError.

        >>> optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0]))], lr=1.0)
        >>> scheduler = nn.optim.ExponentialLR(optimizer, 0.5)
        >>> scheduler.load_state_dict({'count': Tensor([2.0])})
        >>> optimizer.lr.item()
        0.25
        """
        load_state_dict(self.state_dict(), state_dict, verbose=False)
        self._write()

    def _write(self) -> None:
        with Tensor.no_grad():
            for i, group in enumerate(self._groups):
                count = self.count.to(group.optimizer.device)
                group["lr"] = self._rate(count, group.initial_lr or 0.0, i).cast(group.lr.dtype)
        self.count.realize(*[group.lr for group in self._groups])

    @abstractmethod
    def _rate(self, count: Tensor, base: float, group: int) -> Tensor:
        """The learning rate after `count` steps of parameter group `group`, which began with `base`."""


class StepLR(LRScheduler):
    """The rate times `gamma` after every `step_size` steps. Raises ArgumentError.

    >>> optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0]))], lr=1.0)
    >>> scheduler = nn.optim.StepLR(optimizer, 2)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(round(optimizer.lr.item(), 3))
    ...     scheduler.step()
    >>> rates
    [1.0, 1.0, 0.1, 0.1]
    """

    def __init__(self, optimizer: Optimizer | OptimizerGroup, step_size: int, gamma: float = 0.1) -> None:
        in_range("StepLR: step_size", step_size, 1)
        in_range("StepLR: gamma", gamma, 0)
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer)

    def _rate(self, count: Tensor, base: float, group: int) -> Tensor:
        return power(self.gamma, (count / self.step_size).floor()) * base


class MultiStepLR(LRScheduler):
    """The rate times `gamma` at each of the counts `milestones`. Raises ArgumentError.

    >>> optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0]))], lr=1.0)
    >>> scheduler = nn.optim.MultiStepLR(optimizer, [1, 3])
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(round(optimizer.lr.item(), 3))
    ...     scheduler.step()
    >>> rates
    [1.0, 0.1, 0.1, 0.01]
    """

    def __init__(
        self, optimizer: Optimizer | OptimizerGroup, milestones: Sequence[int], gamma: float = 0.1
    ) -> None:
        in_range("MultiStepLR: gamma", gamma, 0)
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer)

    def _rate(self, count: Tensor, base: float, group: int) -> Tensor:
        out = Tensor.full((1,), base, dtype=dtypes.float32, device=count.device)
        for m in self.milestones:
            out = (count >= m).where(out * self.gamma, out)
        return out


class ExponentialLR(LRScheduler):
    """The rate times `gamma` after every step. Raises ArgumentError.

    >>> optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0]))], lr=1.0)
    >>> scheduler = nn.optim.ExponentialLR(optimizer, 0.5)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(round(optimizer.lr.item(), 3))
    ...     scheduler.step()
    >>> rates
    [1.0, 0.5, 0.25, 0.125]
    """

    def __init__(self, optimizer: Optimizer | OptimizerGroup, gamma: float) -> None:
        in_range("ExponentialLR: gamma", gamma, 0)
        self.gamma = gamma
        super().__init__(optimizer)

    def _rate(self, count: Tensor, base: float, group: int) -> Tensor:
        return power(self.gamma, count) * base


class LinearLR(LRScheduler):
    """The rate times a factor that changes linearly from `start_factor` to `end_factor` in `total_iters`
    steps, and then stays constant.

    The defaults are a warm-up; a falling factor is a decay. Raises ArgumentError.

    >>> optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0]))], lr=1.0)
    >>> scheduler = nn.optim.LinearLR(optimizer, 0.25, total_iters=3)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(round(optimizer.lr.item(), 3))
    ...     scheduler.step()
    >>> rates
    [0.25, 0.5, 0.75, 1.0]
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

    def _rate(self, count: Tensor, base: float, group: int) -> Tensor:
        part = (count / self.total_iters).minimum(1.0)
        return (part * (self.end_factor - self.start_factor) + self.start_factor) * base


class ConstantLR(LRScheduler):
    """The rate times `factor` for the first `total_iters` steps. Raises ArgumentError.

    >>> optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0]))], lr=1.0)
    >>> scheduler = nn.optim.ConstantLR(optimizer, 0.5, total_iters=2)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(round(optimizer.lr.item(), 3))
    ...     scheduler.step()
    >>> rates
    [0.5, 0.5, 1.0, 1.0]
    """

    def __init__(
        self, optimizer: Optimizer | OptimizerGroup, factor: float = 1 / 3, total_iters: int = 5
    ) -> None:
        in_range("ConstantLR: factor", factor, 0, math.nextafter(1, 2))
        in_range("ConstantLR: total_iters", total_iters, 0)
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer)

    def _rate(self, count: Tensor, base: float, group: int) -> Tensor:
        return (count < self.total_iters).where(base * self.factor, count * 0 + base)


class PolynomialLR(LRScheduler):
    """The rate times (1 - count / total_iters)^power, down to 0, where it stays. Raises ArgumentError.

    >>> optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0]))], lr=1.0)
    >>> scheduler = nn.optim.PolynomialLR(optimizer, 4)
    >>> rates = []
    >>> for _ in range(5):
    ...     rates.append(round(optimizer.lr.item(), 3))
    ...     scheduler.step()
    >>> rates
    [1.0, 0.75, 0.5, 0.25, 0.0]
    """

    def __init__(
        self, optimizer: Optimizer | OptimizerGroup, total_iters: int = 5, power: float = 1.0
    ) -> None:
        in_range("PolynomialLR: total_iters", total_iters, 1)
        in_range("PolynomialLR: power", power, 0)
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer)

    def _rate(self, count: Tensor, base: float, group: int) -> Tensor:
        return (1.0 - (count / self.total_iters).minimum(1.0)).pow(self.power) * base


class CosineAnnealingLR(LRScheduler):
    """From the first rate to `eta_min` in `T_max` steps, along half a cosine, and back in as many.

    Loshchilov and Hutter, 2017. Raises ArgumentError.

    >>> optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0]))], lr=1.0)
    >>> scheduler = nn.optim.CosineAnnealingLR(optimizer, 4)
    >>> rates = []
    >>> for _ in range(5):
    ...     rates.append(round(optimizer.lr.item(), 3))
    ...     scheduler.step()
    >>> rates
    [1.0, 0.854, 0.5, 0.146, 0.0]
    """

    def __init__(self, optimizer: Optimizer | OptimizerGroup, T_max: int, eta_min: float = 0.0) -> None:
        in_range("CosineAnnealingLR: T_max", T_max, 1)
        in_range("CosineAnnealingLR: eta_min", eta_min, 0)
        self.T_max, self.eta_min = T_max, eta_min
        self._scales = eta_min == 0
        super().__init__(optimizer)

    def _rate(self, count: Tensor, base: float, group: int) -> Tensor:
        return anneal(base, self.eta_min, count / self.T_max, "cos")


class SequentialLR(LRScheduler):
    """Schedulers in sequence: each of `milestones` is the count at which the next one starts from 0.

        warm_up = LinearLR(optimizer, 0.1, total_iters=100)
        cosine = CosineAnnealingLR(optimizer, 900)
        scheduler = SequentialLR(optimizer, [warm_up, cosine], [100])

    Step only this one. Raises ArgumentError unless there is one milestone less than schedulers, in order.

    >>> optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0]))], lr=1.0)
    >>> warm_up = nn.optim.LinearLR(optimizer, 0.5, total_iters=2)
    >>> decay = nn.optim.ExponentialLR(optimizer, 0.5)
    >>> scheduler = nn.optim.SequentialLR(optimizer, [warm_up, decay], [2])
    >>> rates = []
    >>> for _ in range(5):
    ...     rates.append(round(optimizer.lr.item(), 3))
    ...     scheduler.step()
    >>> rates
    [0.5, 0.75, 1.0, 0.5, 0.25]
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

    def _rate(self, count: Tensor, base: float, group: int) -> Tensor:
        out = self.schedulers[0]._rate(count, base, group)
        for scheduler, m in zip(self.schedulers[1:], self.milestones, strict=True):
            since = (count - m).maximum(0.0)
            out = (count >= m).where(scheduler._rate(since, base, group), out)
        return out


class ChainedScheduler(LRScheduler):
    """Several schedulers at once, each of which scales the rate: the first rate times all their factors.

    Step only this one. Raises ArgumentError for a scheduler that is not a pure scaling, for instance with an
    `eta_min`.

    >>> optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0]))], lr=1.0)
    >>> warm_up = nn.optim.ConstantLR(optimizer, 0.5, total_iters=2)
    >>> decay = nn.optim.ExponentialLR(optimizer, 0.5)
    >>> scheduler = nn.optim.ChainedScheduler([warm_up, decay])
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(round(optimizer.lr.item(), 3))
    ...     scheduler.step()
    >>> rates
    [0.5, 0.25, 0.25, 0.125]
    """

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | OptimizerGroup | None = None
    ) -> None:
        if not schedulers:
            raise ArgumentError("ChainedScheduler: expected schedulers, got none")
        for x in schedulers:
            if not x._scales:
                raise ArgumentError(
                    f"ChainedScheduler: expected schedulers that scale the rate, got a {type(x).__name__} "
                    "that goes to a rate of its own: use SequentialLR"
                )
        self.schedulers = list(schedulers)
        first = schedulers[0].optimizers
        super().__init__(optimizer or (first[0] if len(first) == 1 else OptimizerGroup(*first)))

    def _rate(self, count: Tensor, base: float, group: int) -> Tensor:
        out = count * 0 + base
        for scheduler in self.schedulers:
            out = out * scheduler._rate(count, 1.0, group)
        return out


def power(base: float, exponent: Tensor) -> Tensor:
    """base^exponent."""
    return (exponent * math.log2(base)).exp2() if base > 0 else exponent.eq(0).cast(dtypes.float32)


def anneal(start: float, end: float, part: Tensor, strategy: str) -> Tensor:
    """Interpolate between `start` and `end` at `part` in 0..1, along half a cosine or a line."""
    if strategy == "linear":
        return part * (end - start) + start
    return ((part * math.pi).cos() + 1) * ((start - end) / 2) + end
