"""Training runs for bindings in other languages: `polygrad/bridge.py` calls these functions as
`$fit.NAME`.

The other side has the functions of loss and metrics. It captures them, for each shape of batches, as steps
and evaluations that add to `sums`, and hands them over (`add`). Then the run is Python's: `advance` takes
steps for some time, so that the other side may show progress and call callbacks in between.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from polygrad.errors import InternalError
from polygrad.tensor.tensor import Tensor
from polygrad.training.batches import Batch, RowBatches, sources_of
from polygrad.training.callbacks import EarlyStopping
from polygrad.training.checkpoint import checkpoint_bytes, restore
from polygrad.training.measures import loss_of, metrics_of
from polygrad.training.run import TrainingRun, check_settings
from polygrad.training.steps import Steps, add_means, default_optimizer, shapes_of


def measure(kind: str, name: str, prediction: Tensor, *targets: Tensor) -> Tensor:
    """A loss or a metric by its name. Raises ArgumentError."""
    if kind == "loss":
        return loss_of(name)(prediction, *targets)
    return metrics_of([name])[name](prediction, *targets)


def add(sums: Tensor, measured: Mapping[str, Tensor], rows: int) -> None:
    """`add_means`, of a step's or an evaluation's values."""
    add_means(sums, measured, rows)


class Training:
    """A run that is prepared. `model`: Tensors by name. `names`: of what is measured, the loss first.
    `inputs`, `targets`: Tensors of rows. `validation`: such a pair, a fraction, or None."""

    def __init__(
        self,
        model: Mapping[str, Tensor],
        optimizer: Any,
        names: Sequence[str],
        inputs: Sequence[Tensor],
        targets: Sequence[Tensor],
        validation: Any,
        options: Mapping[str, Any],
    ) -> None:
        self.model, self.options, self.inputs = dict(model), dict(options), len(inputs)
        self.optimizer = optimizer or default_optimizer(self.model)
        self._captured: dict[Any, Callable[..., Any]] = {}
        self._steps = Steps(names, self.optimizer.device, self._find("step"), self._find("evaluation"))
        seed, size = self.options["seed"], self.options["batch_size"]
        check_settings(self.options["epochs"], size, self.options["interval"], seed)
        data = (tuple(inputs), tuple(targets))
        if isinstance(validation, list):
            validation = tuple([tuple(part) for part in validation])
        self._data, self._validation = sources_of(
            data, validation, size, seed, self.options["shuffle"], self.options["drop_last"]
        )
        self._run: TrainingRun | None = None
        self._remaining: Iterator[int] = iter(())

    def sums(self) -> list[Tensor]:
        """What steps and evaluations add to: float32, an element for each name."""
        return [self._steps.trained.values, self._steps.evaluated.values]

    def example(self, kind: str, rows: int) -> list[Tensor]:
        """The first rows of the data, as a batch for a "step" or an "evaluation"."""
        source = self._source(kind)
        assert source is not None
        return [t[:rows].contiguous().realize() for t in source.rows.tensors]

    def sizes(self, kind: str) -> list[int]:
        """The numbers of rows of batches for a "step" or an "evaluation"."""
        source = self._source(kind)
        return [] if source is None else source.sizes

    def _source(self, kind: str) -> RowBatches | None:
        source = self._data if kind == "step" else self._validation
        assert source is None or isinstance(source, RowBatches)
        return source

    def add(self, kind: str, function: Any, tensors: Sequence[Tensor]) -> None:
        """A captured step or evaluation of batches like `tensors`."""
        self._captured[kind, shapes_of(tensors)] = function.run if kind == "step" else function

    def start(
        self, scheduler: Any, early_stopping: Mapping[str, Any] | None, checkpoint: bytes | None
    ) -> int:
        """Start, or go on from a checkpoint; the number of complete epochs. Raises ArgumentError."""
        callbacks = [] if early_stopping is None else [EarlyStopping(**early_stopping)]
        options = self.options
        self._run = TrainingRun(
            self.model,
            self.optimizer,
            scheduler,
            self._steps,
            self._data,
            self._validation,
            options["epochs"],
            options["interval"],
            callbacks,
            options["seed"],
        )
        if checkpoint is not None:
            restore(checkpoint, self._run, "the checkpoint")
        self._remaining = self._run.remaining_steps()
        return self._run.epoch

    def advance(self, seconds: float) -> dict[str, Any]:
        """Take steps for a time, at most to the end of the epoch; where the run stands."""
        run = self._started()
        end, epoch = time.perf_counter() + seconds, run.epoch
        is_done = False
        while not is_done and run.epoch == epoch and time.perf_counter() < end:
            is_done = next(self._remaining, None) is None
        return {
            "done": is_done,
            "epoch": run.epoch,
            "step": run.step,
            "steps": run.total,
            "values": {name: values[-1] for name, values in run.values.items() if name != "epoch"},
            "history": run.history.values,
            "reason": run.stop_reason,
        }

    def svg(self) -> str:
        """The history as curves: SVG text; "" without any."""
        history = self._started().history
        return history.svg(x_label="epoch") if history.values else ""

    def stop(self, reason: str) -> None:
        """End the run: the next `advance` is the last one."""
        self._started().stop(reason)

    def checkpoint(self) -> bytes:
        """The state of the run as a safetensors file."""
        return checkpoint_bytes(self._started())

    def _started(self) -> TrainingRun:
        if self._run is None:
            raise InternalError("training: start comes first")
        return self._run

    def _find(self, kind: str) -> Callable[[Batch], Callable[..., Any]]:
        return lambda batch: self._captured[kind, shapes_of(batch.tensors)]
