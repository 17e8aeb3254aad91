"""A training run of a language model on texts, step by step."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from polygrad import nn
from polygrad.errors import ArgumentError, ModelError
from polygrad.helpers import dedup
from polygrad.models.causal_lm import CausalLM
from polygrad.models.low_rank import has_adapters
from polygrad.nn.sealed_files import Snapshot, write_snapshot
from polygrad.tensor.core.generator import generator
from polygrad.tensor.tensor import Tensor
from polygrad.training.checkpoint import seed_of
from polygrad.tuning.data import Data, training_examples
from polygrad.tuning.lora import Adapters, module_of
from polygrad.tuning.masters import MasterWeights
from polygrad.tuning.rows import (
    Row,
    TokenBatch,
    epoch_order,
    packed_rows,
    padded_length,
    single_rows,
    token_batch,
)
from polygrad.tuning.run_state import RunState, digest, load_state, snapshot_of
from polygrad.tuning.steps import Trainer, mean_loss
from polygrad.tuning.texts import Example

SCHEDULES = ("constant", "linear", "cosine")
_RATE, _ADAPTER_RATE = 5e-5, 2e-4


@dataclass(frozen=True)
class Settings:
    """The settings of a run, with AdamW.

    `steps`: their number; None: as many as `epochs` take. `batch_size`, `accumulate`: rows of a batch,
        batches of a step.
    `lr`: None: 5e-5, for adapters 2e-4. `warmup`: steps in which it rises. `schedule`: "constant", "linear"
        or "cosine". `max_norm`: of gradients; None: they are not clipped.
    `max_length`: tokens of a row. `packing`: rows have several texts, which do not see one another.
        `recompute`: layers are computed again for their gradient, which takes less memory.
    `seed`: of orders and dropout.

    Raises ArgumentError.
    """

    epochs: int = 1
    steps: int | None = None
    batch_size: int = 8
    accumulate: int = 1
    lr: float | None = None
    warmup: int = 0
    schedule: str = "linear"
    weight_decay: float = 0.0
    max_norm: float | None = 1.0
    max_length: int = 512
    packing: bool = True
    recompute: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "steps", "batch_size", "accumulate"):
            value = getattr(self, name)
            if (type(value) is not int or value < 1) and (name, value) != ("steps", None):
                raise ArgumentError(f"{name}: expected an int of at least 1, got {value!r}")
        if self.lr is not None and not 0 < self.lr < math.inf:
            raise ArgumentError(f"lr: expected a finite number above 0, got {self.lr!r}")
        if type(self.warmup) is not int or self.warmup < 0:
            raise ArgumentError(f"warmup: expected a number of steps of at least 0, got {self.warmup!r}")
        if self.schedule not in SCHEDULES:
            raise ArgumentError(f"schedule: expected one of {', '.join(SCHEDULES)}, got {self.schedule!r}")

    def part_of_rate(self, step: int, steps: int) -> float:
        """The learning rate at the 0-based `step` of a run of `steps`, as a part of `lr`: it rises in
        `warmup` steps, then it stays, or falls to 0 in a line or along half a cosine."""
        if step < self.warmup:
            return (step + 1) / self.warmup
        done = (step - self.warmup) / max(steps - self.warmup, 1)
        if self.schedule == "linear":
            return 1 - done
        return (1 + math.cos(math.pi * done)) / 2 if self.schedule == "cosine" else 1.0


class TrainingRun:
    """A run that takes a step when it is told to, for a loop of your own. `train` is the loop with files.

    `model`, `data`, `validation`: those of `train`. `steps`: their number in all; `steps_of_epoch`: those in
    which all rows come once. `tokens`: those trained on by `advance`, without padding.

    Raises ArgumentError, ModelError.

        run = tuning.TrainingRun(adapters, records, tuning.Settings(steps=100, lr=0.01))
        while not run.is_done:
            print(run.advance())
    """

    def __init__(
        self,
        model: Any,
        data: Data,
        settings: Settings | None = None,
        validation: Data | float | None = None,
    ) -> None:
        self.settings = settings = settings or Settings()
        adapters = model if isinstance(model, Adapters) else None
        self.instance: Any = adapters.model if adapters is not None else model
        self.module = _checked_module(self.instance, adapters, settings)
        examples, held_out = training_examples(
            data, validation, self.instance, settings.max_length, settings.seed
        )
        self.rows, self.held_out = self._rows(examples), self._rows(held_out)
        self.batch_size = min(settings.batch_size, len(self.rows))
        self.steps_of_epoch = -(-len(self.rows) // (self.batch_size * settings.accumulate))
        self.steps = settings.steps or settings.epochs * self.steps_of_epoch
        default = _RATE if adapters is None else _ADAPTER_RATE
        self.lr = float(default if settings.lr is None else settings.lr)
        self.weights = _weights_to_train(self.module, adapters)
        self.optimizer = _optimizer(list(self.weights.values()), self.lr, settings)
        self.tokens = 0
        self._trainer = Trainer(self.module, self.optimizer, settings.accumulate > 1)
        identity = {**asdict(settings), "lr": self.lr}
        self._state = RunState(identity | {"data": digest(examples), "validation": digest(held_out)})

    @property
    def step(self) -> int:
        """The number of steps that are done."""
        return self._state.step

    @property
    def losses(self) -> list[float]:
        """The mean loss of each step that is done."""
        return self._state.losses

    @property
    def validation(self) -> list[tuple[int, float]]:
        """What `validate` measured: pairs of the number of steps before it and the mean loss."""
        return self._state.validation

    @property
    def is_done(self) -> bool:
        """Whether all steps are done."""
        return self.step >= self.steps

    def advance(self) -> float:
        """Take a step; the mean loss of its tokens that count. Raises ArgumentError when all are done."""
        if self.is_done:
            raise ArgumentError(f"advance: all {self.steps} steps of the run are done")
        step, seed = self.step, self.settings.seed
        batches = self._batches(step)
        rate = self.lr * self.settings.part_of_rate(step, self.steps)
        with generator.restored(), self._recomputing():
            Tensor.manual_seed(seed_of(seed, step))
            loss = self._trainer.step(batches, rate)
        self.losses.append(loss)
        self._state.step = step + 1
        self.tokens += sum(b.tokens for b in batches)
        if hasattr(self.instance, "forget_captures"):
            self.instance.forget_captures()  # they have the weights of before, and other gradients
        return loss

    def validate(self) -> float | None:
        """Measure the mean loss of what is kept for validation, if anything is."""
        if not self.held_out:
            return None
        count = self.batch_size
        parts = (self.held_out[i : i + count] for i in range(0, len(self.held_out), count))
        batches = (b for part in parts for b in self._make_batches(part, self.held_out))
        loss = mean_loss(self.module, batches)
        self.validation.append((self.step, loss))
        return loss

    def save(self, path: Path) -> None:
        """Write the state of the run to a file, which is whole at any time. Raises OSError."""
        write_snapshot(path, self.snapshot())

    def snapshot(self) -> Snapshot:
        """Copies of the state of the run, which another thread may write to a file."""
        return snapshot_of(self._state, self.weights, self.optimizer)

    def load(self, path: Path) -> None:
        """Continue from a file that `save` wrote. Raises ArgumentError where there is none, or the run was
        started with other settings, ModelError for a damaged one."""
        if not path.is_file():
            raise ArgumentError(f"resume: expected a checkpoint, found no file {path}")
        self._state = load_state(path, self._state.settings, self.weights, self.optimizer)

    @contextmanager
    def _recomputing(self) -> Iterator[None]:
        before, self.module.recomputes = self.module.recomputes, self.settings.recompute
        try:
            yield
        finally:
            self.module.recomputes = before

    def _rows(self, examples: Sequence[Example]) -> list[Row]:
        return (
            packed_rows(examples, self.settings.max_length)
            if self.settings.packing
            else single_rows(examples)
        )

    def _batches(self, step: int) -> list[TokenBatch]:
        epoch, number = divmod(step, self.steps_of_epoch)
        size = self.batch_size * self.settings.accumulate
        order = epoch_order(len(self.rows), self.settings.seed, epoch)[number * size : (number + 1) * size]
        return self._make_batches([self.rows[i] for i in order], self.rows)

    def _make_batches(self, rows: Sequence[Row], of: Sequence[Row]) -> list[TokenBatch]:
        """Rows as batches. Packed rows are padded to the longest of all rows, others to the longest among
        themselves."""
        count, device = self.batch_size, getattr(self.instance, "device", None)
        length = padded_length(of if self.settings.packing else rows, self.settings.max_length)
        parts = [rows[i : i + count] for i in range(0, len(rows), count)]
        return [token_batch(part, count, length, device) for part in parts]


def _checked_module(instance: Any, adapters: Adapters | None, settings: Settings) -> CausalLM:
    """The module of a model that can be trained so. Raises ArgumentError, ModelError."""
    module, max_length = module_of(instance), settings.max_length
    if not isinstance(module, CausalLM):
        raise ModelError(f"train: expected a model that predicts the next token, got {type(module).__name__}")
    if adapters is None and has_adapters(module):
        raise ArgumentError("train: the model has adapters: pass what add_lora returned")
    if not 2 <= max_length <= module.max_length:
        raise ArgumentError(f"max_length: expected 2 to {module.max_length}, got {max_length}")
    for table in module.rotaries.values():
        if settings.packing and table.long is not None and max_length > table.short_length:
            raise ArgumentError(
                f"packing: rows of more than {table.short_length} tokens have other positions in this model, "
                "and so would short texts in them: expected packing=False, or a max_length of at most that"
            )
    return module


def _optimizer(params: list[Tensor], lr: float, settings: Settings) -> Any:
    def make(params: list[Tensor]) -> nn.optim.AdamW:
        optimizer = nn.optim.AdamW(params, lr=lr, weight_decay=settings.weight_decay)
        optimizer.clip_gradients(max_norm=settings.max_norm)
        return optimizer

    return MasterWeights(params, make) if any(p.dtype.itemsize < 4 for p in params) else make(params)


def _weights_to_train(module: Any, adapters: Adapters | None) -> dict[str, Tensor]:
    """The weights that are trained, by name, each Tensor once."""
    weights: dict[str, Tensor] = nn.state.get_state_dict(module, buffers=False)
    chosen = dedup([t for t in weights.values() if t.dtype.is_float and t.requires_grad is not False])
    if not chosen:
        raise ArgumentError("train: expected weights that require gradients, got none: the model is frozen")
    tensors = chosen if adapters is None else adapters.parameters
    names = {id(t): name for name, t in reversed(weights.items())}
    return {names[id(t)]: t for t in tensors}
