"""A training run of a language model on texts: data, steps, validation, checkpoints, the curve."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from polygrad import nn
from polygrad.errors import ArgumentError, ModelError
from polygrad.helpers import dedup
from polygrad.models.causal_lm import CausalLM
from polygrad.models.low_rank import has_adapters
from polygrad.pictures.curves import chart
from polygrad.tensor.core.generator import generator
from polygrad.tensor.tensor import Tensor
from polygrad.training.checkpoint import seed_of
from polygrad.tuning.lora import Adapters, module_of
from polygrad.tuning.masters import MasterWeights
from polygrad.tuning.peft_files import save_adapters
from polygrad.tuning.rows import (
    Row,
    TokenBatch,
    epoch_order,
    packed_rows,
    padded_length,
    single_rows,
    token_batch,
)
from polygrad.tuning.run_state import (
    FILE,
    RunState,
    digest,
    load_state,
    save_state,
)
from polygrad.tuning.steps import Trainer, mean_loss
from polygrad.tuning.texts import Example, examples_of, read_records

SCHEDULES = ("constant", "linear", "cosine")
_RATE, _ADAPTER_RATE = 5e-5, 2e-4

Data = str | os.PathLike[str] | Iterable[Mapping[str, Any]] | Iterable[Example]


@dataclass(frozen=True)
class Settings:
    """The settings of a run; see `train`."""

    epochs: int
    batch_size: int
    accumulate: int
    lr: float
    warmup: int
    schedule: str
    weight_decay: float
    max_norm: float | None
    max_length: int
    packing: bool
    recompute: bool
    seed: int

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "accumulate"):
            if type(getattr(self, name)) is not int or getattr(self, name) < 1:
                raise ArgumentError(f"{name}: expected an int of at least 1, got {getattr(self, name)!r}")
        if not 0 < self.lr < math.inf:
            raise ArgumentError(f"lr: expected a finite number above 0, got {self.lr!r}")
        if type(self.warmup) is not int or self.warmup < 0:
            raise ArgumentError(f"warmup: expected a number of steps of at least 0, got {self.warmup!r}")
        if self.schedule not in SCHEDULES:
            raise ArgumentError(f"schedule: expected one of {', '.join(SCHEDULES)}, got {self.schedule!r}")

    def rate(self, step: int, steps: int) -> float:
        """The learning rate of the 0-based `step` of a run of `steps`: it rises to `lr` in `warmup` steps,
        then it stays, or falls to 0 in a line or along half a cosine."""
        if step < self.warmup:
            return self.lr * (step + 1) / self.warmup
        part = (step - self.warmup) / max(steps - self.warmup, 1)
        if self.schedule == "linear":
            return self.lr * (1 - part)
        return self.lr * (1 + math.cos(math.pi * part)) / 2 if self.schedule == "cosine" else self.lr


@dataclass
class Report:
    """What a run did. `steps`: of `of` in all. `losses`: of each. `validation`: (steps, mean loss) pairs.
    `tokens`: trained on in this call. `seconds`: of this call. `is_done`: whether it went to its end."""

    steps: int
    of: int
    losses: list[float] = field(default_factory=list)
    validation: list[tuple[int, float]] = field(default_factory=list)
    tokens: int = 0
    seconds: float = 0.0

    @property
    def is_done(self) -> bool:
        return self.steps == self.of

    def svg(self) -> str:
        """The losses as curves: SVG text."""
        series: dict[str, Sequence[float]] = {"loss": self.losses}
        if self.validation:
            # a value is drawn until the next one was measured
            held, at = [], 0
            for step in range(1, len(self.losses) + 1):
                while at + 1 < len(self.validation) and self.validation[at + 1][0] <= step:
                    at += 1
                held.append(self.validation[at][1] if self.validation[at][0] <= step else math.nan)
            series["validation"] = held
        return chart(series, title="Loss")


def train(
    model: Any,
    data: Data,
    *,
    epochs: int = 1,
    batch_size: int = 8,
    accumulate: int = 1,
    lr: float | None = None,
    warmup: int = 0,
    schedule: str = "linear",
    weight_decay: float = 0.0,
    max_norm: float | None = 1.0,
    max_length: int = 512,
    packing: bool = True,
    recompute: bool = False,
    validation: Data | float | None = None,
    output: str | os.PathLike[str] | None = None,
    resume: bool = False,
    checkpoint_every: int | None = None,
    seed: int = 0,
    should_stop: Callable[[], bool] = lambda: False,
    label: str = "training",
) -> Report:
    """Train a language model on texts with AdamW; a Report.

    `model`: a LanguageModel, of which all weights are trained, or Adapters, which are. 16-bit weights have
        float32 masters.
    `data`: the path of a JSONL file, records (see `polygrad.tuning.texts`), or Examples.
    `batch_size`, `accumulate`: rows of a batch, batches of a step.
    `lr`: 5e-5 unless given, 2e-4 for adapters. `warmup`: steps in which it rises. `schedule`: "constant",
        "linear" or "cosine". `max_norm`: of gradients; None: they are not clipped.
    `max_length`: tokens of a row. `packing`: rows have several texts, which do not see one another.
        `recompute`: layers are computed again for their gradient, which takes less memory.
    `validation`: data, or the part of `data` that is kept for it. Its mean loss is measured after each epoch.
    `output`: the folder of checkpoints, of the curve (loss.svg), and of the result: adapters, or the model.
    `resume`: go on from the checkpoint in `output`, with the same settings: to the last bit as if it had not
        been interrupted. `checkpoint_every`: steps; None: after each epoch.
    `should_stop`: asked after each step; True: a checkpoint is written, and the run ends.

    Raises ArgumentError, ModelError; OSError for files that cannot be written.
    """
    adapters = model if isinstance(model, Adapters) else None
    instance = adapters.model if adapters is not None else model
    module = module_of(instance)
    if not isinstance(module, CausalLM):
        raise ModelError(f"train: expected a model that predicts the next token, got {type(module).__name__}")
    if adapters is None and has_adapters(module):
        raise ArgumentError("train: the model has adapters: pass what add_lora returned")
    if resume and output is None:
        raise ArgumentError("resume: expected an output folder, which has the checkpoint, got none")
    if checkpoint_every is not None and checkpoint_every < 1:
        raise ArgumentError(f"checkpoint_every: expected at least 1, got {checkpoint_every}")
    if not 2 <= max_length <= module.max_length:
        raise ArgumentError(f"max_length: expected 2 to {module.max_length}, got {max_length}")
    for table in module.rotaries.values():
        if packing and table.long is not None and max_length > table.short_length:
            raise ArgumentError(
                f"packing: rows of more than {table.short_length} tokens have other positions in this model, "
                "and so would short texts in them: expected packing=False, or a max_length of at most that"
            )
    lr = lr if lr is not None else _RATE if adapters is None else _ADAPTER_RATE
    settings = Settings(epochs, batch_size, accumulate, float(lr), warmup, schedule, weight_decay, max_norm,
                        max_length, packing, recompute, seed)  # fmt: skip
    examples, held_out = _data(data, validation, instance, max_length, seed)
    weights = _weights_to_train(module, adapters)
    with generator.restored():
        run = _TrainingRun(settings, module, weights, examples, held_out, getattr(instance, "device", None))
        target = None if output is None else Path(output)
        if resume:
            assert target is not None
            run.load(target / FILE)
        before, module.recomputes = module.recomputes, recompute
        try:
            report = run.go(target, checkpoint_every, should_stop, label)
        finally:
            module.recomputes = before
    if hasattr(instance, "forget_captures"):
        instance.forget_captures()  # what it captured may have other gradients
    if target is not None:
        _write(target, report, instance, adapters)
    return report


class _TrainingRun:
    """A run between its start and its end."""

    def __init__(
        self,
        settings: Settings,
        module: CausalLM,
        weights: Mapping[str, Tensor],
        examples: Sequence[Example],
        held_out: Sequence[Example],
        device: str | None,
    ) -> None:
        self.settings, self.module, self.weights, self.device = settings, module, weights, device
        self.rows = self._rows(examples)
        self.held_out = self._rows(held_out)
        size = settings.batch_size * settings.accumulate
        self.steps_of_epoch = -(-len(self.rows) // size)
        self.steps = settings.epochs * self.steps_of_epoch
        self.optimizer = _optimizer(list(weights.values()), settings)
        self.trainer = Trainer(module, self.optimizer, settings.accumulate > 1)
        identity = {**asdict(settings), "data": digest(examples), "validation": digest(held_out)}
        self.state = RunState(identity)

    def _rows(self, examples: Sequence[Example]) -> list[Row]:
        make = (lambda x: packed_rows(x, self.settings.max_length)) if self.settings.packing else single_rows
        return make(examples)

    def load(self, path: Path) -> None:
        """Continue from a file."""
        if not path.is_file():
            raise ArgumentError(f"resume: expected a checkpoint, found no file {path}")
        self.state = load_state(path, self.state.settings, self.weights, self.optimizer)

    def go(
        self, target: Path | None, every: int | None, should_stop: Callable[[], bool], label: str
    ) -> Report:
        """Take all remaining steps, or those until `should_stop`."""
        state, shown = self.state, nn.data.History()
        start, tokens = time.perf_counter(), 0
        remaining_steps = range(state.step, self.steps)
        for step in nn.data.progress(remaining_steps, label, history=shown):
            batches = self._batches(step)
            Tensor.manual_seed(seed_of(self.settings.seed, step))
            loss = self.trainer.step(batches, self.settings.rate(step, self.steps))
            state.losses.append(loss)
            state.step = step + 1
            tokens += sum(b.tokens for b in batches)
            rate = tokens / (time.perf_counter() - start)
            shown.values |= {"loss": [loss], "tokens/s": [rate]}
            is_epochs_end = state.step % self.steps_of_epoch == 0
            if is_epochs_end and self.held_out:
                state.validation.append((state.step, self._validation_loss()))
                shown.values["validation"] = [state.validation[-1][1]]
            stops = should_stop()
            if target is not None and (stops or (state.step % every == 0 if every else is_epochs_end)):
                save_state(target / FILE, state, self.weights, self.optimizer)
            if stops:
                break
        seconds = time.perf_counter() - start
        return Report(state.step, self.steps, state.losses, state.validation, tokens, seconds)

    def _batches(self, step: int) -> list[TokenBatch]:
        epoch, number = divmod(step, self.steps_of_epoch)
        size = self.settings.batch_size * self.settings.accumulate
        order = epoch_order(len(self.rows), self.settings.seed, epoch)
        return self._make_batches(
            [self.rows[i] for i in order[number * size : (number + 1) * size]], self.rows
        )

    def _make_batches(self, rows: Sequence[Row], of: Sequence[Row]) -> list[TokenBatch]:
        """Rows as batches. Packed rows are padded to the longest of all rows, others to the longest among
        themselves."""
        count = self.settings.batch_size
        length = padded_length(of if self.settings.packing else rows, self.settings.max_length)
        parts = [rows[i : i + count] for i in range(0, len(rows), count)]
        return [token_batch(part, count, length, self.device) for part in parts]

    def _validation_loss(self) -> float:
        count = self.settings.batch_size
        parts = (self.held_out[i : i + count] for i in range(0, len(self.held_out), count))
        return mean_loss(self.module, (b for part in parts for b in self._make_batches(part, self.held_out)))


def _optimizer(params: list[Tensor], settings: Settings) -> Any:
    def make(params: list[Tensor]) -> nn.optim.AdamW:
        optimizer = nn.optim.AdamW(params, lr=settings.lr, weight_decay=settings.weight_decay)
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


def _data(
    data: Data, validation: Data | float | None, instance: Any, max_length: int, seed: int
) -> tuple[list[Example], list[Example]]:
    """Examples to train on, and those that are kept for validation."""
    records, where = _records(data, "data")
    held_out: list[Any] = []
    if isinstance(validation, (int, float)) and not isinstance(validation, bool):
        if not 0 < validation < 1:
            raise ArgumentError(f"validation: expected a part between 0 and 1, got {validation}")
        order = epoch_order(len(records), seed, -1)
        count = round(validation * len(records))
        if not 0 < count < len(records):
            raise ArgumentError(f"validation: {validation} of {len(records)} records leaves one side empty")
        held_out = [records[i] for i in sorted(order[:count])]
        records = [records[i] for i in sorted(order[count:])]
        place = where
    elif validation is not None:
        held_out, place = _records(validation, "validation")
    examples = _examples(records, instance, max_length, where)
    if not examples:
        raise ArgumentError(
            f"{where}: expected at least one text with a token that counts in the loss, got none"
        )
    return examples, _examples(held_out, instance, max_length, place) if held_out else []


def _records(data: Any, where: str) -> tuple[list[Any], str]:
    if isinstance(data, (str, os.PathLike)):
        return list(read_records(data)), os.fspath(data)
    records = list(data)
    if not records:
        raise ArgumentError(f"{where}: expected at least one record, got none")
    return records, where


def _examples(records: list[Any], instance: Any, max_length: int, where: str) -> list[Example]:
    if all(isinstance(x, Example) for x in records):
        cut = [Example(x.ids[:max_length], x.labels[:max_length]) for x in records]
        return [x for x in cut if x.counted]
    tokenizer = getattr(instance, "tokenizer", None)
    if tokenizer is None:
        raise ModelError("train: text needs a tokenizer, and the model's folder has none: pass Examples")
    return examples_of(records, tokenizer, max_length, where)


def _write(target: Path, report: Report, instance: Any, adapters: Adapters | None) -> None:
    target.mkdir(parents=True, exist_ok=True)
    if any(math.isfinite(x) for x in report.losses):
        (target / "loss.svg").write_text(report.svg(), encoding="utf-8")
    if report.is_done and adapters is not None:
        save_adapters(adapters, target)
    elif report.is_done:
        instance.save(target)
