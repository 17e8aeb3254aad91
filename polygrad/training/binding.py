"""Training runs for bindings in other languages: `polygrad/bridge.py` calls these functions as
`$fit.NAME`.

The other side has the functions of loss and metrics. It captures them, for each shape of batches, as steps
and evaluations that add to `sums`, and hands them over (`add`). Then the run is Python's: `advance` takes
steps for some time, so that the other side may show progress, call callbacks and write checkpoints in
between. Data are rows, or batches that the other side makes and feeds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from polygrad.errors import InternalError
from polygrad.tensor.tensor import Tensor
from polygrad.training.batches import Batch, BatchSource, FedBatches, RowBatches, pair_of, sources_of
from polygrad.training.callbacks import Callback, Checkpoints, EarlyStopping
from polygrad.training.checkpoint import contents_of, restore
from polygrad.training.checkpoint_files import checkpoint_name
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


class HeldCheckpoints(Checkpoints):
    """Checkpoints that the other side writes into its folder: the state as of when `Checkpoints` writes it.

    `held`: the name of a file and its bytes, until the other side takes them.
    """

    def __init__(self, every: int = 1, unit: str = "epoch", keep: int = 3) -> None:
        super().__init__("", every, unit, keep)
        self.held: tuple[str, bytes] | None = None

    def on_begin(self, run: TrainingRun) -> None:
        """The other side has looked into its folder."""
        self._saved = run.step

    def _save(self, run: TrainingRun) -> None:
        self._saved = run.step
        self.held = checkpoint_name(run.step), contents_of(run).to_bytes()


class Training:
    """A run that is prepared. `model`: Tensors by name. `names`: of what is measured, the loss first.
    `data`: [inputs, targets], lists of Tensors of rows; or {"count", "settings"} of batches that are fed
    (`FedBatches`). `validation`: such data, a fraction of rows, or None."""

    def __init__(
        self,
        model: Mapping[str, Tensor],
        optimizer: Any,
        names: Sequence[str],
        data: Any,
        validation: Any,
        options: Mapping[str, Any],
    ) -> None:
        self.model, self.options = dict(model), dict(options)
        self.optimizer = optimizer or default_optimizer(self.model)
        self._captured: dict[Any, Callable[..., Any]] = {}
        self._steps = Steps(names, self.optimizer.device, self._find("step"), self._find("evaluation"))
        seed, size = self.options["seed"], self.options["batch_size"]
        check_settings(self.options["epochs"], size, self.options["interval"], seed)
        self._data, self._validation = sources_of(
            _data_of(data),
            _data_of(validation),
            size,
            seed,
            self.options["shuffle"],
            self.options["drop_last"],
        )
        self._run: TrainingRun | None = None
        self._checkpoints: HeldCheckpoints | None = None
        self._remaining: Iterator[int | None] = iter(())

    def sums(self) -> list[Tensor]:
        """What steps and evaluations add to: float32, an element for each name."""
        return [self._steps.trained.values, self._steps.evaluated.values]

    def example(self, kind: str, rows: int) -> list[Tensor]:
        """The first rows of the data, as a batch for a "step" or an "evaluation"."""
        source = self._source(kind)
        assert isinstance(source, RowBatches)
        return [t[:rows].contiguous().realize() for t in source.rows.tensors]

    def sizes(self, kind: str) -> list[int]:
        """The numbers of rows of batches for a "step" or an "evaluation"; none of batches that are fed."""
        source = self._source(kind)
        return source.sizes if isinstance(source, RowBatches) else []

    def feed(self, kind: str, inputs: Sequence[Tensor], targets: Sequence[Tensor]) -> None:
        """The next batch for a "step" or an "evaluation", which has been captured for its shapes. Raises
        ShapeError."""
        source = self._source(kind)
        assert isinstance(source, FedBatches)
        what = "data" if kind == "step" else "validation"
        source.feed(pair_of((tuple(inputs), tuple(targets)), what))

    def end_epoch(self, kind: str) -> None:
        """The epoch has no more batches for a "step" or an "evaluation"."""
        source = self._source(kind)
        assert isinstance(source, FedBatches)
        source.feed(None)

    def _source(self, kind: str) -> BatchSource | None:
        return self._data if kind == "step" else self._validation

    def add(self, kind: str, function: Any, tensors: Sequence[Tensor]) -> None:
        """A captured step or evaluation of batches like `tensors`."""
        self._captured[kind, shapes_of(tensors)] = function.run if kind == "step" else function

    def start(
        self,
        scheduler: Any,
        early_stopping: Mapping[str, Any] | None,
        checkpoints: Mapping[str, Any] | None,
        checkpoint: bytes | None,
    ) -> list[int]:
        """Start, or go on from a checkpoint. The number of complete epochs, the position in the next one, and
        the number of steps. Raises ArgumentError."""
        callbacks: list[Callback] = [] if early_stopping is None else [EarlyStopping(**early_stopping)]
        if checkpoints is not None:
            self._checkpoints = HeldCheckpoints(**checkpoints)
            callbacks.append(self._checkpoints)
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
            restore([checkpoint], self._run, "the checkpoint")
        self._remaining = self._run.remaining_steps()
        return [self._run.epoch, self._run.position, self._run.step]

    def advance(self, seconds: float, measures: bool) -> dict[str, Any]:
        """Take steps for a time, at most to the end of the epoch, to a checkpoint, or to where the run waits
        for a batch; where it stands. `measures`: whether the values so far are read from the device; they
        are at the end of an epoch."""
        run, saves = self._started(), self._checkpoints
        end, epoch = time.perf_counter() + seconds, run.epoch
        done = object()
        step: object = run.step
        while run.epoch == epoch and time.perf_counter() < end and not (saves and saves.held):
            step = next(self._remaining, done)
            if step is None or step is done:
                break
        measures = measures or run.epoch > epoch or step is done
        return {
            "done": step is done,
            "waiting": step is None,
            "epoch": run.epoch,
            "step": run.step,
            "steps": run.total,
            "values": {k: v[-1] for k, v in run.values.items() if k != "epoch"} if measures else None,
            "history": run.history.values,
            "reason": run.stop_reason,
            "checkpoint": saves.held[0] if saves and saves.held else None,
        }

    def take_checkpoint(self) -> bytes:
        """The bytes of the file that `advance` named, which has to be written before the run goes on."""
        if self._checkpoints is None or self._checkpoints.held is None:
            raise InternalError("training: there is no checkpoint to take")
        _, data = self._checkpoints.held
        self._checkpoints.held = None
        return data

    def svg(self) -> str:
        """The history as curves: SVG text; "" without any."""
        history = self._started().history
        return history.svg(x_label="epoch") if history.values else ""

    def stop(self, reason: str) -> None:
        """End the run: the next `advance` is the last one."""
        self._started().stop(reason)

    def checkpoint(self) -> bytes:
        """The state of the run as a safetensors file."""
        return contents_of(self._started()).to_bytes()

    def _started(self) -> TrainingRun:
        if self._run is None:
            raise InternalError("training: start comes first")
        return self._run

    def _find(self, kind: str) -> Callable[[Batch], Callable[..., Any]]:
        return lambda batch: self._captured[kind, shapes_of(batch.tensors)]


def _data_of(data: Any) -> Any:
    """Data as `sources_of` takes them."""
    if isinstance(data, Mapping):
        return FedBatches(data["count"], data["settings"])
    return tuple([tuple(part) for part in data]) if isinstance(data, list) else data
