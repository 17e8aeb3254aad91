"""`TrainingRun`: the loop over epochs and batches, and the state of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from polygrad import nn
from polygrad.engine.stopping import RunStopped, stoppable
from polygrad.errors import ArgumentError
from polygrad.nn.plateau import ReduceLROnPlateau
from polygrad.tensor.core.generator import generator
from polygrad.tensor.tensor import Tensor
from polygrad.training.batches import Batch, BatchSource
from polygrad.training.callbacks import Callback
from polygrad.training.checkpoint import seed_of
from polygrad.training.ranks import any_rank, rank, size
from polygrad.training.steps import Steps


def check_settings(epochs: int, batch_size: int, interval: str, seed: int) -> None:
    """Raises ArgumentError for invalid settings of a run."""
    if not isinstance(seed, int):
        raise ArgumentError(f"fit: seed: expected an integer, got {seed!r}")
    for name, value, least in (("epochs", epochs, 0), ("batch_size", batch_size, 1)):
        if not isinstance(value, int) or value < least:
            raise ArgumentError(f"fit: {name}: expected an integer of at least {least}, got {value!r}")
    if interval not in ("epoch", "step"):
        raise ArgumentError(f"fit: scheduler_interval: expected 'epoch' or 'step', got {interval!r}")


@dataclass
class TrainingRun:
    """A run, as callbacks see it.

    `model`, `optimizer`, `scheduler`: what `fit` was given. `history`: a value of each name for each epoch.
    `epoch`: the number of epochs that are complete. `position`: of batches in the epoch that has begun.
    `step`: of steps in all. `epochs`: how many there will be. `stop_reason`: why it stops early; "" if it
    does not. `should_stop`: asked after each step, and between batches of a validation.
    """

    model: Any
    optimizer: Any
    scheduler: Any
    steps: Steps
    data: BatchSource
    validation: BatchSource | None
    epochs: int
    interval: str
    callbacks: Sequence[Callback]
    seed: int
    history: nn.data.History = field(default_factory=nn.data.History)
    epoch: int = 0
    position: int = 0
    step: int = 0
    stop_reason: str = ""
    final_weights: Mapping[str, Tensor] | None = None
    should_stop: Callable[[], bool] | None = None

    @property
    def names(self) -> list[str]:
        """The names in the history: of what is measured, and with "val_" of the same on validation data."""
        held_out = [f"val_{name}" for name in self.steps.names] if self.validation is not None else []
        return [*self.steps.names, *held_out]

    @property
    def total(self) -> int | None:
        """The number of steps of all epochs; None if that of an epoch is not known."""
        return None if self.data.count is None else self.epochs * self.data.count

    @property
    def values(self) -> dict[str, list[float]]:
        """What a progress bar shows: the number of the epoch, its means so far, and the last validation."""
        out = {"epoch": [min(self.epoch + 1, self.epochs) * 1.0]}
        if self.steps.trained.rows:
            out |= {
                name: [mean] for name, mean in zip(self.steps.names, self.steps.trained.means(), strict=True)
            }
        return out | {name: v[-1:] for name, v in self.history.values.items() if name not in out}

    def stop(self, reason: str = "a callback stopped it") -> None:
        """End the run after the present step."""
        self.stop_reason = reason

    def remaining_steps(self) -> Iterator[int | None]:
        """Take the steps that remain; the number of steps so far after each, of an epoch's last one when its
        values are in the history. None: the run waits for a batch (`BatchSource.epoch`)."""
        try:
            yield from self._all_steps()
        except BaseException as e:
            self._close_after(e)
            raise
        self._call("on_close")

    def _all_steps(self) -> Iterator[int | None]:
        self._call("on_begin")
        while self._goes_on():
            before = self.step
            for batch in self.data.epoch(self.epoch, self.position):
                if batch is None:
                    if not self._goes_on():
                        break
                    yield None
                    continue
                if self.step > before:
                    yield self.step
                with generator.restored():
                    Tensor.manual_seed(seed_of(self.seed, self.step, *_of_rank()))
                    if not self._whole(self.steps.train, batch):
                        break
                self.step += 1
                self.position += 1
                if self.scheduler is not None and self.interval == "step":
                    self.scheduler.step()
                self._call("on_step")
                self._ask()
                if not self._goes_on():
                    break
            else:
                yield from self._end_epoch()
            if self.step > before:
                yield self.step
        self._call("on_end")
        if self.final_weights is not None:
            nn.state.load_state_dict(self.model, self.final_weights, verbose=False)

    def _whole(self, step: Callable[[Batch], None], batch: Batch) -> bool:
        """Take a step. False: it was stopped from outside and has done nothing, and the run ends."""
        try:
            with stoppable():
                step(batch)
            return True
        except RunStopped:
            self.stop("it was aborted")
            return False

    def _ask(self) -> None:
        """Stop if any rank was asked to: all after the same step."""
        if not self.stop_reason and self.should_stop is not None and any_rank(self.should_stop()):
            self.stop("it was asked to")

    def _close_after(self, error: BaseException) -> None:
        """Close the callbacks; `error` is what is raised further, with a note of what they raise."""
        for callback in self.callbacks:
            try:
                callback.on_close(self)
            except Exception as e:
                error.add_note(f"{type(callback).__name__}: {type(e).__name__}: {e}")

    def _goes_on(self) -> bool:
        return self.epoch < self.epochs and not self.stop_reason

    def _end_epoch(self) -> Iterator[None]:
        means = self.steps.trained.means_over_ranks()
        if not means:
            raise ArgumentError(
                f"data: expected at least one batch in each epoch, got none in epoch {self.epoch}"
            )
        measured = dict(zip(self.steps.names, means, strict=True))
        if self.validation is not None:
            yield from self._validate(self.validation)
            if not self._goes_on():
                return  # it was stopped meanwhile
            means = self.steps.evaluated.means_over_ranks()
            if not means:
                raise ArgumentError("validation: expected at least one batch, got none")
            measured |= {f"val_{name}": mean for name, mean in zip(self.steps.names, means, strict=True)}
        self.steps.trained.clear()
        self.history.add(**measured)
        self.epoch, self.position = self.epoch + 1, 0
        if self.scheduler is not None and self.interval == "epoch":
            if isinstance(self.scheduler, ReduceLROnPlateau):
                self.scheduler.step(measured.get("val_loss", measured["loss"]))
            else:
                self.scheduler.step()
        self._call("on_epoch")

    def _validate(self, data: BatchSource) -> Iterator[None]:
        """Measure on all batches. None: it waits for one."""
        self.steps.evaluated.clear()
        position = 0
        for batch in data.epoch(0):
            if batch is None:
                if not self._goes_on():
                    return
                yield None
                continue
            with generator.restored():
                place = (-1 - self.epoch, position, *_of_rank())  # steps: from 0 on
                Tensor.manual_seed(seed_of(self.seed, *place))
                if not self._whole(self.steps.evaluate, batch):
                    return
            position += 1
            if size() == 1:  # ranks have different numbers of batches
                self._ask()
            if not self._goes_on():
                return

    def _call(self, event: str) -> None:
        for callback in self.callbacks:
            getattr(callback, event)(self)


def _of_rank() -> tuple[int, ...]:
    """What distinguishes a rank's random numbers; rank 0 has those of one process."""
    return (rank(),) if rank() else ()
