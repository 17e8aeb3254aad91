"""Runs of another language, which captures the steps itself: beside `fit`, and from a checkpoint of bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from polygrad import Tensor, nn
from polygrad.capture.jit import TinyJit
from polygrad.capture.step import compile_step
from polygrad.errors import ArgumentError
from polygrad.training import fit
from polygrad.training.binding import Training, add

OPTIONS = {"seed": 3, "batch_size": 16, "shuffle": True, "drop_last": False, "epochs": 4, "interval": "epoch"}


def data() -> tuple[Tensor, Tensor]:
    x = Tensor(np.arange(40, dtype=np.float32).reshape(40, 1) / 40).realize()
    return x, (2 * x + 1).realize()


def line() -> nn.Linear:
    Tensor.manual_seed(1)
    model = nn.Linear(1, 1)
    Tensor.realize(*nn.state.get_parameters(model))
    return model


def prepared(model: nn.Linear, **change: Any) -> Training:
    x, y = data()
    return Training(nn.state.get_state_dict(model), None, ["loss"], [x], [y], 0.2, OPTIONS | change)


def capture(run: Training, model: nn.Linear) -> None:
    """Steps and evaluations for each size of batches, of the state that a checkpoint has brought."""
    trained, evaluated = run.sums()

    def step(_: Any, x: Tensor, y: Tensor) -> Tensor:
        loss = model(x).mse_loss(y)
        add(trained, {"loss": loss}, x.shape[0])
        return loss

    def evaluation(x: Tensor, y: Tensor) -> Tensor:
        add(evaluated, {"loss": model(x).mse_loss(y)}, x.shape[0])
        return evaluated.realize()

    for rows in run.sizes("step"):
        example = run.example("step", rows)
        run.add("step", compile_step(step, model, run.optimizer, *example), example)
    for rows in run.sizes("evaluation"):
        run.add("evaluation", TinyJit(evaluation), run.example("evaluation", rows))


def finished(
    model: nn.Linear, checkpoint: bytes | None = None, **change: Any
) -> tuple[dict[str, Any], list[bytes]]:
    """Where a run ends, and its checkpoints after each epoch."""
    run = prepared(model, **change)
    run.start(None, {"patience": 9}, checkpoint)
    capture(run, model)
    checkpoints: list[bytes] = []
    while not (state := run.advance(60.0))["done"]:
        checkpoints.append(run.checkpoint())
    return state, checkpoints


def test_a_run_is_that_of_fit() -> None:
    model, other = line(), line()
    state, _ = finished(model)
    history = fit(other, data(), loss="mse", epochs=4, batch_size=16, validation=0.2, seed=3, progress=False)
    assert state["epoch"] == 4 and state["step"] == state["steps"] == 8
    for name in ("loss", "val_loss"):
        np.testing.assert_allclose(state["history"][name], history[name], rtol=1e-5)
    np.testing.assert_allclose(model.weight.numpy(), other.weight.numpy(), rtol=1e-5)


def test_a_run_goes_on_from_bytes_to_the_last_bit() -> None:
    whole, again = line(), line()
    state, checkpoints = finished(whole)
    resumed, later = finished(again, checkpoints[1])
    assert resumed == state and len(later) == 2
    assert again.weight.tolist() == whole.weight.tolist()


@pytest.mark.parametrize(
    "change", [{"interval": "step"}, {"seed": 4}, {"batch_size": 8}, {"drop_last": True}]
)
def test_bytes_of_another_run_are_refused(change: dict[str, Any]) -> None:
    _, checkpoints = finished(line(), epochs=1)
    model = line()
    before = model.weight.tolist()
    with pytest.raises(ArgumentError, match="resume: the run in the checkpoint was started with another"):
        prepared(model, **change).start(None, None, checkpoints[0])
    assert model.weight.tolist() == before
