"""`fit`: train a model on rows, or on batches, by captured steps."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from polygrad import nn
from polygrad.errors import ArgumentError
from polygrad.training.batches import sources_of
from polygrad.training.callbacks import Callback, Checkpoints
from polygrad.training.checkpoint import load_checkpoint
from polygrad.training.measures import Measure, loss_of, metrics_of
from polygrad.training.ranks import rank, size
from polygrad.training.run import TrainingRun, check_settings
from polygrad.training.steps import captured_steps, default_optimizer
from polygrad.training.termination import termination


def fit(
    model: Any,
    data: Any,
    *,
    loss: str | Measure,
    epochs: int = 1,
    batch_size: int = 32,
    optimizer: Any = None,
    metrics: Mapping[str, str | Measure] | Sequence[str] = (),
    validation: Any = None,
    scheduler: Any = None,
    scheduler_interval: str = "epoch",
    callbacks: Iterable[Callback] = (),
    shuffle: bool = True,
    drop_last: bool = False,
    seed: int = 0,
    resume: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> nn.data.History:
    """Train `model`; a History with the mean of the loss and of each metric for each epoch.

    model: called as `model(*inputs)`, gives a prediction.
    data: a pair (inputs, targets) of Tensors or arrays with as many rows each; either may be a tuple of
        several, targets also (). Or an iterable of such pairs, the batches, that is iterated once in each
        epoch; a method `set_epoch` is told its number.
    loss: called as `loss(prediction, *targets)`, gives the mean over the rows of a batch, a Tensor of one
        element; or "cross_entropy", "binary_cross_entropy" (of logits), "mse", "mae", "huber".
    metrics: such functions by name, or a list of "accuracy", "mse", "mae".
    optimizer: by default Adam with a learning rate of 0.001 on the model's parameters.
    validation: data on which loss and metrics are measured after each epoch, outside of training mode, as
        "val_loss" and so on; or the fraction of `data` that is held out.
    scheduler: of learning rates, stepped after each epoch, or with `scheduler_interval="step"` after each
        step.
    shuffle: rows are in another order in each epoch, by `seed`.
    drop_last: a smaller batch at an epoch's end is left out.
    seed: of the order and of what is random in the model; a run with the same seed has the same results.
    resume: a checkpoint, or a folder of them (`Checkpoints`): the run goes on from there, with the results
        that it would have had without the interruption. `epochs` may be another number.
    progress: a bar on standard error.

    After `distributed.init()`, all ranks call it with the same arguments. Each has its part of each batch, so
    `batch_size` is of all ranks together and a multiple of their number; a smaller batch that cannot be
    divided is computed by every rank. Gradients are averaged, and values measured, over all ranks
    (`DataParallel`).

    Each shape of batches is compiled once. Raises ArgumentError, ShapeError, and what `compile_step` raises.

    >>> from polygrad import Tensor, nn
    >>> x = Tensor.arange(64).reshape(64, 1) / 64
    >>> model = nn.Linear(1, 1)
    >>> history = fit(model, (x, 2 * x + 1), loss="mse", epochs=2, validation=0.25, progress=False)
    >>> {name: len(values) for name, values in history.values.items()}
    {'loss': 2, 'val_loss': 2}
    """
    check_settings(epochs, batch_size, scheduler_interval, seed)
    # checkpoints come last: they have what the other callbacks keep of the same epoch
    listeners = sorted(callbacks, key=lambda callback: isinstance(callback, Checkpoints))
    for callback in listeners:
        if not isinstance(callback, Callback):
            raise ArgumentError(f"fit: callbacks: expected training.Callback objects, got {callback!r}")
    if optimizer is None:
        optimizer = default_optimizer(model)
    steps = captured_steps(model, optimizer, loss_of(loss), metrics_of(metrics))
    train, measured = sources_of(data, validation, batch_size, seed, shuffle, drop_last, rank(), size())
    run = TrainingRun(model, optimizer, scheduler, steps, train, measured, epochs, scheduler_interval,
                      listeners, seed)  # fmt: skip
    if resume is not None:
        load_checkpoint(resume, run)
    remaining = None if run.total is None else run.total - run.step
    saves = any(isinstance(x, Checkpoints) for x in listeners)
    with termination(saves) as is_terminated:
        run.should_stop = is_terminated if saves else None
        steps_to_take: Iterable[Any] = run.remaining_steps()
        if progress and rank() == 0:
            steps_to_take = nn.data.progress(steps_to_take, "training", remaining, run)
        for _ in steps_to_take:
            pass
    if is_terminated():
        signal.raise_signal(signal.SIGTERM)
    return run.history
