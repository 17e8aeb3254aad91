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


FED = {"count": None, "settings": {"batch_size": 16}}


def line() -> nn.Linear:
    Tensor.manual_seed(1)
    model = nn.Linear(1, 1)
    Tensor.realize(*nn.state.get_parameters(model))
    return model


def prepared(model: nn.Linear, **change: Any) -> Training:
    x, y = data()
    return Training(nn.state.get_state_dict(model), None, ["loss"], [[x], [y]], 0.2, OPTIONS | change)


def capture(run: Training, model: nn.Linear, batches: Any = ()) -> None:
    """Steps and evaluations for each size of batches, of the state that a checkpoint has brought; and for
    `batches`, each with what it is for."""
    trained, evaluated = run.sums()

    def step(_: Any, x: Tensor, y: Tensor) -> Tensor:
        loss = model(x).mse_loss(y)
        add(trained, {"loss": loss}, x.shape[0])
        return loss

    def evaluation(x: Tensor, y: Tensor) -> Tensor:
        add(evaluated, {"loss": model(x).mse_loss(y)}, x.shape[0])
        return evaluated.realize()

    rows = [(kind, run.example(kind, n)) for kind in ("step", "evaluation") for n in run.sizes(kind)]
    for kind, example in [*rows, *batches]:
        made = compile_step(step, model, run.optimizer, *example) if kind == "step" else TinyJit(evaluation)
        run.add(kind, made, example)


def finished(
    model: nn.Linear, checkpoint: bytes | None = None, **change: Any
) -> tuple[dict[str, Any], list[bytes]]:
    """Where a run ends, and its checkpoints after each epoch."""
    run = prepared(model, **change)
    run.start(None, {"patience": 9}, None, checkpoint)
    capture(run, model)
    checkpoints: list[bytes] = []
    while not (state := run.advance(60.0, False))["done"]:
        assert state["values"] == {name: values[-1] for name, values in state["history"].items()}
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
        prepared(model, **change).start(None, None, None, checkpoints[0])
    assert model.weight.tolist() == before


def fed(x: Tensor, y: Tensor) -> list[list[Tensor]]:
    """Batches of 16 rows, and of the rest."""
    return [[t[i : i + 16].contiguous().realize() for t in (x, y)] for i in range(0, x.shape[0], 16)]


def batches_run(
    epochs: int, checkpoint: bytes | None = None
) -> tuple[dict[str, Any], list[tuple[str, bytes]], nn.Linear]:
    """A run on batches that are fed one by one: where it ends, its checkpoints, and the model."""
    model, (x, y) = line(), data()
    state = nn.state.get_state_dict(model)
    run = Training(state, None, ["loss"], FED, FED, OPTIONS | {"epochs": epochs, "shuffle": False})
    start, position, _ = run.start(None, None, {"every": 2, "unit": "step", "keep": 9}, checkpoint)
    trained, measured = fed(x, y), fed(x[:20], y[:20])
    examples = [("step", b) for b in (trained[0], trained[-1])]
    capture(run, model, [*examples, *(("evaluation", b) for b in measured)])
    pending: list[tuple[str, list[Tensor] | None]] = []
    for epoch in range(start, epochs):
        pending += [("step", batch) for batch in trained[position if epoch == start else 0 :]]
        pending += [("step", None), *(("evaluation", batch) for batch in measured), ("evaluation", None)]
    held = []
    while True:
        state = run.advance(60.0, False)
        if name := state["checkpoint"]:
            held.append((name, run.take_checkpoint()))
        if state["done"]:
            assert not pending
            return state, held, model
        if state["waiting"]:
            kind, batch = pending.pop(0)
            run.end_epoch(kind) if batch is None else run.feed(kind, batch[:1], batch[1:])


def test_a_run_on_batches_that_are_fed_waits_for_them_and_is_that_on_an_iterable() -> None:
    state, _, model = batches_run(3)
    other, (x, y) = line(), data()
    history = fit(other, fed(x, y), loss="mse", epochs=3, validation=fed(x[:20], y[:20]), seed=3,
                  progress=False)  # fmt: skip
    assert (state["step"], state["steps"], state["epoch"]) == (9, None, 3)
    for name in ("loss", "val_loss"):
        np.testing.assert_allclose(state["history"][name], history[name], rtol=1e-5)
    np.testing.assert_allclose(model.weight.numpy(), other.weight.numpy(), rtol=1e-5)


def test_a_run_on_batches_goes_on_from_each_checkpoint_to_the_last_bit() -> None:
    state, held, model = batches_run(3)
    assert [name for name, _ in held] == [f"step-{i:09d}.safetensors" for i in (2, 4, 6, 8, 9)]
    for _, checkpoint in held:
        resumed, _, again = batches_run(3, checkpoint)
        assert resumed["history"] == state["history"] and resumed["step"] == state["step"]
        assert again.weight.tolist() == model.weight.tolist()
    with pytest.raises(ArgumentError, match="another drop_last"):
        prepared(line()).start(None, None, None, held[0][1])


def test_a_run_that_is_stopped_while_it_waits_for_validation_has_not_ended_the_epoch() -> None:
    model, (x, y) = line(), data()
    run = Training(nn.state.get_state_dict(model), None, ["loss"], FED, FED, OPTIONS)
    run.start(None, None, {"every": 9}, None)
    (batch, *_), (measured, *_) = fed(x, y), fed(x, y)
    capture(run, model, [("step", batch), ("evaluation", measured)])
    for kind in ("step", "evaluation"):
        run.feed(kind, batch[:1], batch[1:])
    run.end_epoch("step")
    state = run.advance(60.0, False)
    assert (state["waiting"], state["step"], state["values"]) == (True, 1, None)
    assert list(run.advance(60.0, True)["values"]) == ["loss"]
    before = run.checkpoint()
    run.stop("enough")
    state = run.advance(60.0, False)
    assert (state["done"], state["epoch"], state["step"], state["history"]) == (True, 0, 1, {})
    assert state["reason"] == "enough" and state["checkpoint"] == "step-000000001.safetensors"
    assert run.take_checkpoint() == before


def test_the_last_checkpoint_has_the_last_weights_and_not_the_best_ones() -> None:
    model = line()
    run = prepared(model, epochs=9)
    run.start(None, {"monitor": "loss", "patience": 1, "largest": True}, {"every": 5}, None)
    capture(run, model)
    while not (state := run.advance(60.0, False))["done"]:
        assert state["checkpoint"] is None
    assert state["reason"] and state["checkpoint"] == f"step-{state['step']:09d}.safetensors"
    saved = nn.state.safe_load(run.take_checkpoint())
    assert saved["weights.weight"].tolist() != model.weight.tolist()
