"""Callbacks: what looks on while a run trains, and may stop it."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polygrad import nn
from polygrad.errors import ArgumentError
from polygrad.tensor.tensor import Tensor
from polygrad.training.checkpoint import contents_of
from polygrad.training.writing import CheckpointWriter

if TYPE_CHECKING:
    from polygrad.training.run import TrainingRun


class Callback:
    """The base of callbacks; its methods do nothing. `run.stop()` ends a run after the present step.

    >>> class Halve(Callback):
    ...     def on_epoch(self, run):
    ...         run.optimizer.lr.assign(run.optimizer.lr / 2)
    """

    def on_begin(self, run: TrainingRun) -> None:
        """Before the first step, or before the first one after a checkpoint."""

    def on_step(self, run: TrainingRun) -> None:
        """After each step of the optimizer."""

    def on_epoch(self, run: TrainingRun) -> None:
        """After each epoch, when the history has its values."""

    def on_end(self, run: TrainingRun) -> None:
        """After the last step; not after an exception."""

    def on_close(self, run: TrainingRun) -> None:
        """When the run is left, also by an exception, which is then raised further."""

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps: Tensors and plain values by name."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""


class EarlyStopping(Callback):
    """Stops a run when a value has not improved for `patience` epochs.

    `monitor`: a name in the history; None: "val_loss", or "loss" without validation. `largest`: whether
    larger values are better. `least`: by how much a value must be better. `restore`: at the end, the model
    gets the weights of the best epoch. A value that is not a number is no improvement. `best_epoch` and
    `best_value` are those of the last run; 0 and an infinity before its first value. Raises ArgumentError.

    >>> EarlyStopping("val_accuracy", patience=5, largest=True)
    EarlyStopping(monitor='val_accuracy', patience=5)
    """

    def __init__(
        self,
        monitor: str | None = None,
        patience: int = 3,
        largest: bool = False,
        least: float = 0.0,
        restore: bool = True,
    ) -> None:
        if not isinstance(patience, int) or patience < 1:
            raise ArgumentError(f"EarlyStopping: expected a patience of at least 1 epoch, got {patience!r}")
        if not least >= 0:
            raise ArgumentError(f"EarlyStopping: expected a least improvement of at least 0, got {least!r}")
        self.monitor, self.patience, self.largest = monitor, patience, largest
        self.least, self.restore = float(least), restore
        self._sign = -1.0 if largest else 1.0
        self._monitored = ""
        self._is_loaded = False  # whether the state is that of the run which begins
        self._forget()

    def _forget(self) -> None:
        self.best_epoch = 0
        self.best_value = self._sign * math.inf
        self._weights: dict[str, Tensor] = {}

    def on_begin(self, run: TrainingRun) -> None:
        """Forget another run, and choose what to monitor. Raises ArgumentError for a name that the history
        will not have."""
        if not self._is_loaded:
            self._forget()
        self._is_loaded = False
        default = "val_loss" if "val_loss" in run.names else "loss"
        self._monitored = default if self.monitor is None else self.monitor
        if self._monitored not in run.names:
            raise ArgumentError(
                f"EarlyStopping: monitor: expected one of {', '.join(run.names)}, got {self._monitored!r}"
            )

    def on_epoch(self, run: TrainingRun) -> None:
        """Compare the epoch's value with the best one."""
        value = run.history.last(self._monitored)
        if self._sign * value < self._sign * self.best_value - self.least:
            self.best_epoch, self.best_value = run.epoch, value
            if self.restore:
                weights = nn.state.get_state_dict(run.model)
                self._weights = {name: t.detach().clone() for name, t in weights.items()}
                Tensor.realize(*self._weights.values())
        elif run.epoch - self.best_epoch >= self.patience:
            run.stop(f"{self._monitored} has not improved for {self.patience} epochs")

    def on_end(self, run: TrainingRun) -> None:
        """Give the model the weights of the best epoch."""
        run.final_weights = self._weights or None

    def state_dict(self) -> dict[str, Any]:
        """The best epoch, its value and its weights."""
        best = {"best_epoch": self.best_epoch, "best_value": repr(self.best_value)}
        return best | {f"weights.{name}": t for name, t in self._weights.items()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        self.best_epoch = int(state_dict["best_epoch"])
        self.best_value = float(state_dict["best_value"])
        start = "weights."
        self._weights = {k.removeprefix(start): t for k, t in state_dict.items() if k.startswith(start)}
        self._is_loaded = True

    def __repr__(self) -> str:
        return f"EarlyStopping(monitor={self.monitor!r}, patience={self.patience})"


class Checkpoints(Callback):
    """Writes checkpoints into a folder; `fit(..., resume=folder)` goes on from the newest.

    `every`: epochs, or steps with `unit="step"`. `keep`: how many checkpoints stay there; older ones are
    removed. `background`: steps go on while a file is written, and wait for the copy of the state alone; what
    cannot be written is then an error of the next checkpoint, or of the run's end.

    A checkpoint is there whole or not at all, whenever the process ends or the disk is full, and its bytes
    have a hash, which is compared when it is read. A run that ends leaves one of its last step; so does
    SIGTERM, if `fit` is called in the main thread: the step is finished, the checkpoint is written, and then
    the signal does what it does elsewhere. It is called after the other callbacks, of which a file has the
    state.

    Raises ArgumentError; a run also raises it, before its first step, where the folder has checkpoints of
    later steps, which are another run's. OSError for files that cannot be written.

    >>> Checkpoints("run", every=500, unit="step", keep=2)
    Checkpoints('run', every=500, unit='step', keep=2)
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        every: int = 1,
        unit: str = "epoch",
        keep: int = 3,
        background: bool = True,
    ) -> None:
        for name, value in (("every", every), ("keep", keep)):
            if not isinstance(value, int) or value < 1:
                raise ArgumentError(f"Checkpoints: {name}: expected at least 1, got {value!r}")
        if unit not in ("epoch", "step"):
            raise ArgumentError(f"Checkpoints: unit: expected 'epoch' or 'step', got {unit!r}")
        self.folder, self.every, self.unit, self.keep = Path(folder), every, unit, keep
        self._writer = CheckpointWriter(folder, keep, background)
        self._saved = -1

    def newest(self) -> Path | None:
        """The newest checkpoint of the folder, for `fit(..., resume=checkpoints.newest())`: a run that may be
        a first one. None where there is none. All ranks call it."""
        return self._writer.newest()

    def on_begin(self, run: TrainingRun) -> None:
        """A run that goes on has a checkpoint of this step. Raises ArgumentError for those of later steps."""
        self._writer.begin(run.step)
        self._saved = run.step

    def on_step(self, run: TrainingRun) -> None:
        """Write a checkpoint after `every` steps."""
        if self.unit == "step" and run.step % self.every == 0:
            self._save(run)

    def on_epoch(self, run: TrainingRun) -> None:
        """Write a checkpoint after `every` epochs."""
        if self.unit == "epoch" and run.epoch % self.every == 0:
            self._save(run)

    def on_end(self, run: TrainingRun) -> None:
        """Write a checkpoint of the last step."""
        if run.step != self._saved:
            self._save(run)
        self._writer.wait()

    def on_close(self, run: TrainingRun) -> None:
        """Wait until the file is written."""
        self._writer.wait()

    def _save(self, run: TrainingRun) -> None:
        self._saved = run.step
        self._writer.save(run.step, contents_of(run))

    def __repr__(self) -> str:
        return f"Checkpoints({str(self.folder)!r}, every={self.every}, unit={self.unit!r}, keep={self.keep})"
