"""Runs that are advanced a step at a time: those of `train`, with other work between the steps."""

from __future__ import annotations

from typing import Any

import pytest
import tuning_models
from tuning_models import TEXTS

from polygrad import Tensor, hf
from polygrad.errors import ArgumentError
from polygrad.tuning import Adapters, Settings, TrainingRun, add_lora, train

RECORDS = [{"text": t} for t in TEXTS]
OPTIONS: dict[str, Any] = {"batch_size": 2, "max_length": 32, "lr": 1e-2}


def adapted(dropout: float = 0.0) -> Adapters:
    model = hf.load_hf(tuning_models.folder(dropout=dropout))
    Tensor.manual_seed(7)
    return add_lora(model, rank=4, alpha=8, targets="all-linear", dropout=dropout)


def losses_of(run: TrainingRun) -> list[float]:
    while not run.is_done:
        run.advance()
    return run.losses


def test_its_losses_are_those_of_train_whatever_is_done_in_between() -> None:
    report = train(adapted(0.2), RECORDS, epochs=3, validation=0.25, **OPTIONS)
    run = TrainingRun(adapted(0.2), RECORDS, Settings(epochs=3, **OPTIONS), validation=0.25)
    Tensor.manual_seed(3)
    drawn = []
    while not run.is_done:
        assert run.advance() == run.losses[-1]
        drawn.append(Tensor.rand(2).tolist())
        run.instance.generate("the", max_new_tokens=2)
        if run.step % run.steps_of_epoch == 0:
            run.validate()
    assert (run.losses, run.validation, run.tokens) == (report.losses, report.validation, report.tokens)
    Tensor.manual_seed(3)
    assert drawn == [Tensor.rand(2).tolist() for _ in drawn]


def test_what_is_generated_between_steps_is_of_the_weights_of_then() -> None:
    run = TrainingRun(adapted(), RECORDS, Settings(steps=8, lr=3e-2, max_length=32))
    prompt = list(range(5, 12))
    run.instance.generate(prompt, max_new_tokens=4, stop_tokens=())
    losses_of(run)
    given = run.instance.generate(prompt, max_new_tokens=4, stop_tokens=()).tokens
    want = prompt[:]
    for _ in range(4):
        want.append(run.instance.forward(input_ids=[want])["logits"][0, -1].argmax().item())
    assert list(given) == want[len(prompt) :]


def test_a_number_of_steps_ends_a_run_within_an_epoch_with_the_rate_of_its_end() -> None:
    run = TrainingRun(adapted(), RECORDS, Settings(steps=run_length(), **OPTIONS))
    assert run.steps_of_epoch < run.steps < 2 * run.steps_of_epoch
    rates = []
    while not run.is_done:
        run.advance()
        rates.append(run.optimizer.lr.item())
    assert rates == pytest.approx([1e-2 * (1 - i / run.steps) for i in range(run.steps)])
    with pytest.raises(ArgumentError, match=rf"all {run.steps} steps of the run are done"):
        run.advance()
    assert len(run.losses) == run.step == run.steps


def run_length() -> int:
    """One step more than an epoch has."""
    return TrainingRun(adapted(), RECORDS, Settings(**OPTIONS)).steps_of_epoch + 1


def test_a_batch_has_no_more_rows_than_there_are() -> None:
    one, other = (
        TrainingRun(adapted(), RECORDS, Settings(steps=3, **{**OPTIONS, "batch_size": count}))
        for count in (64, 4)
    )
    assert one.batch_size == len(one.rows) <= 4
    assert losses_of(one) == losses_of(other)
