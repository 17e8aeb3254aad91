"""Captured Programs over batches: one that trains and one that measures, for each combination of shapes.

Both add the measured values to Tensors, weighted by rows. So a run reads numbers when it shows them, and not
after each step. The sums are float32: means of 10^5 batches are right to 5 digits or so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from polygrad import distributed, nn
from polygrad.capture.jit import TinyJit
from polygrad.capture.step import compile_step
from polygrad.dtype import dtypes
from polygrad.errors import ArgumentError
from polygrad.tensor.tensor import Tensor
from polygrad.training.batches import Batch
from polygrad.training.measures import Measure
from polygrad.training.ranks import gathered, size

_RATE = 1e-3
_MAX_SHAPES = 32  # of batches: more are rather a mistake than a plan


class Sums:
    """Sums of measured values over rows, on a device. `rows`: the number of rows, which captured functions
    that add to `values` do not count."""

    def __init__(self, count: int, device: str) -> None:
        self.values = Tensor.zeros(count, device=device, dtype=dtypes.float32).contiguous().realize()
        self.rows = 0.0

    def means(self) -> list[float]:
        """The mean of each value over the rows of this rank."""
        return [x / self.rows for x in self.values.tolist()]

    def means_over_ranks(self) -> list[float]:
        """The mean of each value over all rows of all ranks; [] of none."""
        parts = gathered([self.rows, *self.values.tolist()], "means")
        rows, *values = [sum(column) for column in zip(*parts, strict=True)]
        return [x / rows for x in values] if rows else []

    def clear(self) -> None:
        """Begin again."""
        self.values.assign(Tensor.zeros_like(self.values)).realize()
        self.rows = 0.0


def add_means(sums: Tensor, measured: Mapping[str, Tensor], rows: float) -> None:
    """Add means over `rows` rows to sums over rows; within a captured function, at each replay. Raises
    ArgumentError for what is not a mean over rows."""
    for name, value in measured.items():
        if not isinstance(value, Tensor) or value.numel() != 1:
            actual = value.shape if isinstance(value, Tensor) else type(value).__name__
            raise ArgumentError(f"{name}: expected a Tensor of one element, the mean over rows, got {actual}")
    with Tensor.no_grad():
        row = Tensor.stack(*[m.detach().reshape(()).cast(dtypes.float32) for m in measured.values()])
        sums.assign(sums + row.to(sums.device) * float(rows))


class Steps:
    """The work on a batch. `make_step`, `make_evaluation`: functions of a batch's tensors, made for
    the shapes of a batch; the first takes a step of the optimizer and adds to `trained`, the other adds to
    `evaluated`. `names`: of what is measured, the loss first."""

    def __init__(
        self,
        names: Sequence[str],
        device: str,
        make_step: Callable[[Batch], Callable[..., Any]],
        make_evaluation: Callable[[Batch], Callable[..., Any]],
    ) -> None:
        self.names = list(names)
        self.trained, self.evaluated = (Sums(len(self.names), device) for _ in range(2))
        self._make_step, self._make_evaluation = make_step, make_evaluation
        self._steps: dict[Any, Callable[..., Any]] = {}
        self._evaluations: dict[Any, Callable[..., Any]] = {}

    def train(self, batch: Batch) -> None:
        """Take one step of the optimizer."""
        _by_shape(self._steps, batch, self._make_step)(*batch.tensors)
        self.trained.rows += batch.counted

    def evaluate(self, batch: Batch) -> None:
        """Measure, outside of training mode."""
        function = _by_shape(self._evaluations, batch, self._make_evaluation)
        with Tensor.no_grad(), Tensor.train(False):
            function(*batch.tensors)
        self.evaluated.rows += batch.counted


def default_optimizer(model: Any) -> nn.optim.Optimizer:
    """Adam on the parameters of a model."""
    return nn.optim.Adam(nn.state.get_parameters(model), lr=_RATE)


def captured_steps(model: Any, optimizer: Any, loss: Measure, metrics: Mapping[str, Measure]) -> Steps:
    """Steps of a model. `loss`, `metrics`: functions of (prediction, *targets)."""
    measures = {"loss": loss, **metrics}

    def measure(tensors: tuple[Tensor, ...], inputs: int) -> dict[str, Tensor]:
        prediction = model(*tensors[:inputs])
        return {name: function(prediction, *tensors[inputs:]) for name, function in measures.items()}

    def make_step(batch: Batch) -> Callable[..., Any]:
        inputs, rows, sums = len(batch.inputs), batch.counted, steps.trained.values

        def loss_and_sums(model: Any, *tensors: Tensor) -> Tensor:
            measured = measure(tensors, inputs)
            add_means(sums, measured, rows)
            return measured["loss"]

        if size() > 1:
            return distributed.DataParallel(loss_and_sums, model, optimizer, *batch.tensors).run
        return compile_step(loss_and_sums, model, optimizer, *batch.tensors).run

    def make_evaluation(batch: Batch) -> Callable[..., Any]:
        inputs, rows, sums = len(batch.inputs), batch.counted, steps.evaluated.values

        @TinyJit
        def add(*tensors: Tensor) -> Tensor:
            add_means(sums, measure(tensors, inputs), rows)
            return sums.realize()

        return add

    steps = Steps(list(measures), optimizer.device, make_step, make_evaluation)
    return steps


def shapes_of(tensors: Sequence[Tensor]) -> tuple[Any, ...]:
    """A key of batches that share a Program."""
    return tuple((t.shape, t.dtype) for t in tensors)


def _by_shape(made: dict[Any, Any], batch: Batch, make: Callable[[Batch], Any]) -> Any:
    """The value in `made` for batches of these shapes and dtypes. Raises ArgumentError for too many kinds."""
    key = (shapes_of(batch.tensors), batch.weight)
    if key not in made:
        if len(made) == _MAX_SHAPES:
            shapes = ", ".join(str(t.shape) for t in batch.tensors)
            raise ArgumentError(
                f"data: expected batches of at most {_MAX_SHAPES} shapes, as each is compiled, got also "
                f"{shapes}: pad them to a few"
            )
        made[key] = make(batch)
    return made[key]
