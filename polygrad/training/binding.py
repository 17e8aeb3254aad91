"""Training runs for bindings in other languages: `polygrad/bridge.py` calls these functions as
`$training.NAME`.

The other side has the functions of loss and metrics. It captures them, for each shape of batches, as steps
and evaluations that add to `sums`, and hands them over (`add`). Then the run is Python's: `advance` takes
steps for some time, so that the other side may show progress and call callbacks in between.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from polygrad.errors import ArgumentError, InternalError
from polygrad.tensor.tensor import Tensor
from polygrad.training.batches import Batch, RowBatches, split_rows
from polygrad.training.callbacks import EarlyStopping
from polygrad.training.checkpoint import checkpoint_bytes, restore
from polygrad.training.run import TrainingRun
from polygrad.training.steps import Steps, shapes_of


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
        self.model, self.optimizer, self.options = dict(model), optimizer, dict(options)
        self._captured: dict[Any, Callable[..., Any]] = {}
        self._steps = Steps(names, optimizer.device, self._find("step"), self._find("evaluation"))
        rows, held_out = Batch(tuple(inputs), tuple(targets)), None
        seed, size = self.options["seed"], self.options["batch_size"]
        if isinstance(validation, (int, float)):
            rows, held_out = split_rows(rows, validation, seed)
        elif validation is not None:
            held_out = Batch(*(tuple(part) for part in validation))
        self._data = RowBatches(rows, size, seed, self.options["shuffle"], self.options["drop_last"])
        self._validation = None if held_out is None else RowBatches(held_out, size, seed, False, False)
        self._run: TrainingRun | None = None
        self._remaining: Iterator[int] = iter(())

    def sums(self) -> list[Tensor]:
        """What steps and evaluations add to: float32, an element for each name."""
        return [self._steps.trained.values, self._steps.evaluated.values]

    def examples(self, kind: str) -> list[list[Tensor]]:
        """The first rows of the data, as batches of each shape that "step" or "evaluation" will get."""
        source = self._data if kind == "step" else self._validation
        if source is None:
            return []
        rows = source.rows.rows
        sizes = {min(source.size, rows)}
        if rows > source.size and rows % source.size and not source.drop_last:
            sizes.add(rows % source.size)
        if source.drop_last and rows < source.size:
            raise ArgumentError(f"fit: data: expected at least one batch of {source.size} rows, got {rows}")
        return [[t[:size].contiguous().realize() for t in source.rows.tensors] for size in sorted(sizes)]

    def add(self, kind: str, function: Any, tensors: Sequence[Tensor]) -> None:
        """A captured step or evaluation of batches like `tensors`."""
        self._captured[kind, shapes_of(tensors)] = function.run if kind == "step" else function

    def start(
        self, scheduler: Any, early_stopping: Mapping[str, Any] | None, checkpoint: bytes | None
    ) -> list[str]:
        """Start, or go on from a checkpoint; the names that the history will have. Raises ArgumentError."""
        callbacks = [] if early_stopping is None else [EarlyStopping(**early_stopping)]
        options = self.options
        settings = {"rows": self._data.rows.rows, "scheduler": type(scheduler).__name__}
        settings |= {name: options[name] for name in ("seed", "batch_size", "shuffle", "drop_last")}
        for sums in (self._steps.trained, self._steps.evaluated):
            sums.clear()
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
            settings,
        )
        if checkpoint is not None:
            restore(checkpoint, self._run, "the checkpoint")
        self._remaining = self._run.remaining_steps()
        return self._run.names

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
