"""Learning rates by Python functions: LambdaLR, MultiplicativeLR, ReduceLROnPlateau, as in torch.

They call Python functions and read numbers, so they must be stepped outside of captured functions. Captured
steps see the new rates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from polygrad.dtype import dtypes
from polygrad.engine.recording import watch
from polygrad.errors import ArgumentError
from polygrad.nn.cyclic import each_group
from polygrad.nn.optimizer import Optimizer, OptimizerGroup, in_range
from polygrad.nn.schedulers import LRScheduler
from polygrad.tensor.tensor import Tensor

_HOST = "INTERP"  # has float64 everywhere


class LambdaLR(LRScheduler):
    """The first rate times `lr_lambda(count)`, a function of the number of steps; or a function for each
    group.

    Step it outside of captured functions. Raises ArgumentError.

    >>> optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0]))], lr=1.0)
    >>> scheduler = nn.optim.LambdaLR(optimizer, lambda count: 1 / (1 + count))
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(round(optimizer.lr.item(), 3))
    ...     scheduler.step()
    >>> rates
    [1.0, 0.5, 0.333, 0.25]
    """

    _scales = False  # in torch, it overwrites the rate of earlier schedulers in a chain

    def __init__(self, optimizer: Optimizer | OptimizerGroup, lr_lambda: Any) -> None:
        self.lr_lambdas = _functions(type(self).__name__, lr_lambda, len(optimizer.param_groups))
        super().__init__(optimizer)

    def _rate(self, count: Tensor, base: float, group: int) -> Tensor:
        return count.const_like(base * self._factor(_read(type(self).__name__, count), group))

    def _factor(self, count: int, group: int) -> float:
        return float(self.lr_lambdas[group](count))


class MultiplicativeLR(LambdaLR):
    """The rate times `lr_lambda(count)` at each step; a function, or one for each parameter group.

    Step it outside of captured functions. Raises ArgumentError.

    >>> optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0]))], lr=1.0)
    >>> scheduler = nn.optim.MultiplicativeLR(optimizer, lambda count: 0.5)
    >>> rates = []
    >>> for _ in range(4):
    ...     rates.append(round(optimizer.lr.item(), 3))
    ...     scheduler.step()
    >>> rates
    [1.0, 0.5, 0.25, 0.125]
    """

    _scales = True

    def __init__(self, optimizer: Optimizer | OptimizerGroup, lr_lambda: Any) -> None:
        # the product of the factors up to each count
        self._products = [[1.0] for _ in optimizer.param_groups]
        super().__init__(optimizer, lr_lambda)

    def _factor(self, count: int, group: int) -> float:
        products = self._products[group]
        while len(products) <= count:
            products.append(products[-1] * float(self.lr_lambdas[group](len(products))))
        return products[count]


class ReduceLROnPlateau(LRScheduler):
    """Multiply the rates by `factor` when a metric has not improved for more than `patience` steps.

        scheduler.step(validation_loss)

    `mode`: whether lower ('min') or higher ('max') is better. An improvement must exceed `threshold`,
    relative to the best so far ('rel') or absolute ('abs'). After a reduction, `cooldown` steps do not count.
    Rates do not fall below `min_lr` (or one for each group), and changes of less than `eps` are skipped.
    Raises ArgumentError.

    >>> optimizer = nn.optim.SGD([nn.Parameter(Tensor([1.0]))], lr=1.0)
    >>> scheduler = nn.optim.ReduceLROnPlateau(optimizer, patience=1)
    >>> for loss in (0.5, 0.6, 0.6, 0.6):
    ...     scheduler.step(loss)
    >>> round(optimizer.lr.item(), 3)
    0.1
    """

    _scales = False

    def __init__(
        self,
        optimizer: Optimizer | OptimizerGroup,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 0.0001,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | Sequence[float] = 0.0,
        eps: float = 1e-08,
    ) -> None:
        in_range("ReduceLROnPlateau: factor", factor, 0, 1)
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ArgumentError(
                "ReduceLROnPlateau: expected mode 'min' or 'max' and threshold_mode 'rel' or 'abs', got "
                f"{mode!r} and {threshold_mode!r}"
            )
        self.mode, self.factor, self.patience, self.threshold = mode, factor, patience, threshold
        self.threshold_mode, self.cooldown, self.eps = threshold_mode, cooldown, eps
        self.min_lr = each_group("ReduceLROnPlateau: min_lr", min_lr, optimizer)
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = 0
        super().__init__(optimizer)

    def step(self, metrics: Any = None) -> None:
        """Count one step with the number `metrics` (or a Tensor of one element). Raises ArgumentError."""
        if metrics is None:
            raise ArgumentError("ReduceLROnPlateau.step: expected the metric that should improve, got none")
        watch.forbid("a step of ReduceLROnPlateau", "step it outside of the captured function")
        current = float(metrics)
        with Tensor.no_grad():
            self.count.assign(self.count + 1)
        if self._is_better(current):
            self.best, self.num_bad_epochs = current, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter, self.num_bad_epochs = self.cooldown_counter - 1, 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self.count.realize()

    def _is_better(self, x: float) -> bool:
        sign = -1.0 if self.mode == "min" else 1.0
        if self.threshold_mode == "abs":
            least = self.best + sign * self.threshold
        else:
            least = self.best * (1.0 + sign * self.threshold)
        return x < least if self.mode == "min" else x > least

    def _reduce(self) -> None:
        for group, least in zip(self._groups, self.min_lr, strict=True):
            old = group.lr.item()
            new = max(old * self.factor, least)
            if old - new > self.eps:
                group["lr"] = new

    def state_dict(self) -> dict[str, Tensor]:
        """The scheduler's own state. The rates belong to the optimizer."""
        counts = [self.num_bad_epochs, self.cooldown_counter]
        return {
            **super().state_dict(),
            "best": Tensor([self.best], device=_HOST, dtype=dtypes.float64),
            "counts": Tensor(counts, device=_HOST, dtype=dtypes.int32),
        }

    def load_state_dict(self, state_dict: Mapping[str, Tensor]) -> None:
        """Restore the state that `state_dict` returned. Raises ArgumentError, ShapeError."""
        state = dict(state_dict)
        for name in ("best", "counts"):
            if name not in state:
                raise ArgumentError(f"load_state_dict: missing {name!r}")
        self.best = state.pop("best").item()
        self.num_bad_epochs, self.cooldown_counter = state.pop("counts").tolist()
        self.count.assign(state["count"].to(self.count.device).cast(self.count.dtype)).realize()

    def _write(self) -> None:
        """Nothing: only `step` changes rates."""

    def _rate(self, count: Tensor, base: float, group: int) -> Tensor:
        raise ArgumentError(
            "ReduceLROnPlateau: it depends on a metric, so it cannot be part of another scheduler"
        )


def _functions(name: str, lr_lambda: Any, groups: int) -> list[Callable[[int], float]]:
    functions = [lr_lambda] * groups if callable(lr_lambda) else list(lr_lambda)
    if len(functions) != groups or not all(callable(f) for f in functions):
        raise ArgumentError(
            f"{name}: lr_lambda: expected a function, or one for each of {groups} groups, got {lr_lambda!r}"
        )
    return functions


def _read(name: str, count: Tensor) -> int:
    watch.forbid(f"a step of {name}, which calls Python", "step it outside of the captured function")
    return int(count.item())
