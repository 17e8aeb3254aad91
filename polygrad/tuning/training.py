"""`train`: a training run with validation, checkpoints, the curve and the result in a folder."""

from __future__ import annotations

import functools
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from polygrad import nn
from polygrad.errors import ArgumentError
from polygrad.nn.sealed_files import write_snapshot
from polygrad.pictures.curves import chart
from polygrad.training.writing import BackgroundWriter
from polygrad.tuning.data import Data
from polygrad.tuning.lora import Adapters
from polygrad.tuning.peft_files import save_adapters
from polygrad.tuning.run import Settings, TrainingRun
from polygrad.tuning.run_state import FILE


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
    steps: int | None = None,
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
    `validation`: data, or the part of `data` that is kept for it. Its mean loss is measured after each epoch.
    `output`: the folder of checkpoints, of the curve (loss.svg), and of the result: adapters, or the model.
    `resume`: go on from the checkpoint in `output`, with the same settings: to the last bit as if it had not
        been interrupted. `checkpoint_every`: steps; None: after each epoch.
    `should_stop`: asked after each step; True: a checkpoint is written, and the run ends.
    Others are those of `Settings`.

    Raises ArgumentError, ModelError; OSError for files that cannot be written.
    """
    if resume and output is None:
        raise ArgumentError("resume: expected an output folder, which has the checkpoint, got none")
    if checkpoint_every is not None and checkpoint_every < 1:
        raise ArgumentError(f"checkpoint_every: expected at least 1, got {checkpoint_every}")
    settings = Settings(epochs, steps, batch_size, accumulate, lr, warmup, schedule, weight_decay, max_norm,
                        max_length, packing, recompute, seed)  # fmt: skip
    run = TrainingRun(model, data, settings, validation)
    target = None if output is None else Path(output)
    if resume:
        assert target is not None
        run.load(target / FILE)
    report = _go(run, target, checkpoint_every, should_stop, label)
    if target is not None:
        _write(target, report, model)
    return report


def _go(
    run: TrainingRun, target: Path | None, every: int | None, should_stop: Callable[[], bool], label: str
) -> Report:
    """Take all remaining steps, or those until `should_stop`. Checkpoints are written meanwhile."""
    shown, start, files = nn.data.History(), time.perf_counter(), BackgroundWriter()
    with files:
        for _ in nn.data.progress(range(run.step, run.steps), label, history=shown):
            loss = run.advance()
            rate = run.tokens / (time.perf_counter() - start)
            shown.values |= {"loss": [loss], "tokens/s": [rate]}
            is_epochs_end = run.step % run.steps_of_epoch == 0 or run.is_done
            measured = run.validate() if is_epochs_end else None
            if measured is not None:
                shown.values["validation"] = [measured]
            stops = should_stop()
            if target is not None and (stops or (run.step % every == 0 if every else is_epochs_end)):
                files.start(functools.partial(write_snapshot, target / FILE, run.snapshot()))
            if stops:
                break
    seconds = time.perf_counter() - start
    return Report(run.step, run.steps, run.losses, run.validation, run.tokens, seconds)


def _write(target: Path, report: Report, model: Any) -> None:
    target.mkdir(parents=True, exist_ok=True)
    if any(math.isfinite(x) for x in report.losses):
        (target / "loss.svg").write_text(report.svg(), encoding="utf-8")
    if report.is_done and isinstance(model, Adapters):
        save_adapters(model, target)
    elif report.is_done:
        model.save(target)
