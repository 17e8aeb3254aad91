"""Training of networks for tables: standardised data, mini-batches, early stopping on a validation part."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from polygrad import nn
from polygrad.capture.jit import TinyJit
from polygrad.capture.step import compile_step
from polygrad.models.tables.networks import TableNetwork
from polygrad.tensor.tensor import Tensor

_FEW = 10  # with fewer rows there is no validation part
_PREDICTED = 256  # rows that are predicted at a time: one shape, so one kernel for any number of rows


@dataclass(frozen=True)
class Standard:
    """Means and deviations of columns, float32 (columns,), by which they are standardised. A column that is
    constant has the deviation 1."""

    mean: Tensor
    deviation: Tensor

    @classmethod
    def of(cls, values: Tensor) -> Standard:
        """Of float32 (rows, columns)."""
        mean = values.mean(0).realize()
        deviation = (values - mean).square().mean(0).sqrt()
        return cls(mean, (deviation > 1e-7 * (mean.abs() + 1e-30)).where(deviation, 1.0).realize())

    def apply(self, values: Tensor) -> Tensor:
        return (values - self.mean) / self.deviation

    def undo(self, values: Tensor) -> Tensor:
        return values * self.deviation + self.mean


@dataclass(frozen=True)
class Recipe:
    """How to fit. `max_iter`: epochs. `patience`: epochs without a better loss of the held-out part, which is
    `validation_fraction` of all; 0: all rows are trained on, for all epochs."""

    max_iter: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    validation_fraction: float
    patience: int
    seed: int


@dataclass
class Fitted:
    """`losses`: the mean of each epoch. `held_out`: the loss of the held-out part after each epoch; empty if
    nothing is held out. `best`: the 0-based epoch whose weights are kept."""

    losses: list[float]
    held_out: list[float]
    best: int


def split_rows(rows: int, recipe: Recipe, groups: Sequence[int] | None) -> tuple[list[int], list[int]]:
    """Rows to train on, and rows held out: the same part of each of `groups`, the classes."""
    fraction = recipe.validation_fraction if recipe.patience else 0.0
    if rows < _FEW or not fraction:
        return list(range(rows)), []
    order = list(range(rows))
    random.Random(recipe.seed).shuffle(order)
    if groups is None:
        count = max(1, round(fraction * rows))
        return order[count:], order[:count]
    train_rows: list[int] = []
    validation_rows: list[int] = []
    of: dict[int, list[int]] = {}
    for i in order:
        of.setdefault(groups[i], []).append(i)
    for class_rows in of.values():
        count = round(fraction * len(class_rows))
        validation_rows += class_rows[:count]
        train_rows += class_rows[count:]
    random.Random(recipe.seed).shuffle(train_rows)
    return train_rows, validation_rows


def fit_network(
    make: Callable[[], TableNetwork], x: Tensor, y: Tensor, parts: tuple[list[int], list[int]], recipe: Recipe
) -> tuple[TableNetwork, Fitted]:
    """A network fitted to standardised rows x (rows, features) and targets y."""
    Tensor.manual_seed(recipe.seed)
    network = make()
    train_rows, validation_rows = parts
    params = nn.state.get_parameters(network)
    optimizer = nn.optim.AdamW(params, lr=recipe.learning_rate, weight_decay=recipe.weight_decay)
    train_data = [t[Tensor(train_rows, dtype="int32")].realize() for t in (x, y)]
    out = [t[Tensor(validation_rows, dtype="int32")].realize() for t in (x, y)] if validation_rows else []
    size = min(recipe.batch_size, len(train_rows))

    def loss_of(network: TableNetwork, x: Tensor, y: Tensor) -> Tensor:
        loss: Tensor = network.forward(x, y)["loss"]
        return loss

    @TinyJit
    def held_out_loss(x: Tensor, y: Tensor) -> Tensor:
        return loss_of(network, x, y)

    step = None
    fitted = Fitted([], [], 0)
    best: dict[str, Tensor] = {}
    for epoch in range(recipe.max_iter):
        total = []
        for a, b in nn.data.batches(train_data, size, drop_last=True, seed=recipe.seed + epoch):
            step = step or compile_step(loss_of, network, optimizer, a, b)
            step.run(a, b)
            total.append(step.loss_value())
        fitted.losses.append(sum(total) / len(total))
        if not validation_rows:
            fitted.best = epoch
            continue
        with Tensor.no_grad():
            fitted.held_out.append(held_out_loss(*out).item())
        if fitted.held_out[-1] == min(fitted.held_out):
            fitted.best = epoch
            best = {k: t.detach().clone().realize() for k, t in nn.state.get_state_dict(network).items()}
        elif epoch - fitted.best >= recipe.patience:
            break
    if best:
        nn.state.load_state_dict(network, best, verbose=False)
    return network, fitted


def predict(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """`function` of rows x (rows, features), in batches of one size, so that a row's result does not depend
    on the other rows."""
    rows = x.shape[0]
    out = []
    with Tensor.no_grad():
        for start in range(0, rows, _PREDICTED):
            part = x[start : start + _PREDICTED]
            count = part.shape[0]
            padded = part.pad(((0, _PREDICTED - count), (0, 0))).contiguous().realize()
            out.append(function(padded).contiguous().realize()[:count])
        return out[0].cat(*out[1:]).realize() if len(out) > 1 else out[0].contiguous().realize()
