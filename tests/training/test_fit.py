"""`fit` beside the same loop in torch, and runs that go on from a checkpoint beside unbroken ones."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from polygrad import Tensor, nn, training
from polygrad.errors import ArgumentError, ShapeError
from polygrad.tensor.core.generator import generator
from polygrad.training import Callback, Checkpoints, EarlyStopping, TrainingRun, fit

ROWS, FEATURES, CLASSES = 37, 5, 3


def table(rows: int = ROWS, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    x = random.standard_normal((rows, FEATURES)).astype(np.float32)
    return x, (x[:, 0] > x[:, 1]).astype(np.int32) + (x[:, 2] > 1)


class Net:
    def __init__(self, dropout: float = 0.0) -> None:
        self.first, self.second = nn.Linear(FEATURES, 8), nn.Linear(8, CLASSES)
        self.dropout = dropout

    def __call__(self, x: Tensor) -> Tensor:
        return self.second(self.first(x).relu().dropout(self.dropout))


def network(dropout: float = 0.0) -> Net:
    Tensor.manual_seed(7)
    model = Net(dropout)
    Tensor.realize(*nn.state.get_parameters(model))
    return model


def weights(model: Any) -> dict[str, list[Any]]:
    return {name: t.tolist() for name, t in nn.state.get_state_dict(model).items()}


def in_torch(model: Net) -> torch.nn.Module:
    out = torch.nn.Sequential(torch.nn.Linear(FEATURES, 8), torch.nn.ReLU(), torch.nn.Linear(8, CLASSES))
    with torch.no_grad():
        for ours, theirs in ((model.first, out[0]), (model.second, out[2])):
            theirs.weight.copy_(torch.from_numpy(ours.weight.numpy()))
            theirs.bias.copy_(torch.from_numpy(ours.bias.numpy()))
    return out


@pytest.mark.parametrize("batch_size, drop_last", [(8, False), (8, True), (37, False), (100, False)])
def test_a_run_is_the_same_loop_in_torch(device: str, batch_size: int, drop_last: bool) -> None:
    x, y = table()
    xv, yv = table(11, seed=1)
    model = network()
    judge = in_torch(model)
    if drop_last and batch_size > ROWS:
        pytest.skip("no batch")
    optimizer = torch.optim.Adam(judge.parameters(), lr=0.01)
    expected: dict[str, list[float]] = {name: [] for name in ("loss", "accuracy", "val_loss", "val_accuracy")}
    for epoch in range(4):
        measured = []
        numbers = nn.data.batches(Tensor.arange(ROWS), batch_size, drop_last=drop_last, seed=3 + epoch)
        for (rows,) in numbers:
            a, b = torch.from_numpy(x[rows.numpy()]), torch.from_numpy(y[rows.numpy()]).long()
            scores = judge(a)
            loss = torch.nn.functional.cross_entropy(scores, b)
            measured.append((loss.item(), (scores.argmax(1) == b).float().mean().item(), len(a)))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total = sum(n for *_, n in measured)
        expected["loss"].append(sum(v * n for v, _, n in measured) / total)
        expected["accuracy"].append(sum(v * n for _, v, n in measured) / total)
        with torch.no_grad():
            scores, b = judge(torch.from_numpy(xv)), torch.from_numpy(yv).long()
            expected["val_loss"].append(torch.nn.functional.cross_entropy(scores, b).item())
            expected["val_accuracy"].append((scores.argmax(1) == b).float().mean().item())
    history = fit(
        model,
        (x, y),
        loss="cross_entropy",
        optimizer=nn.optim.Adam(nn.state.get_parameters(model), lr=0.01),
        metrics=["accuracy"],
        epochs=4,
        batch_size=batch_size,
        drop_last=drop_last,
        validation=(xv, yv),
        seed=3,
        progress=False,
    )
    assert list(history.values) == list(expected)
    for name, values in expected.items():
        np.testing.assert_allclose(history[name], values, rtol=1e-4, atol=1e-5, err_msg=name)
    np.testing.assert_allclose(model.second.weight.numpy(), judge[2].weight.detach().numpy(), atol=1e-4)
    assert model.first.weight.grad is None and not Tensor.training


class Interrupt(Callback):
    """Raises in the step after `step`, as a process that is killed ends there, before its checkpoint."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_step(self, run: TrainingRun) -> None:
        if run.step == self.step + 1:
            raise KeyboardInterrupt


def run(folder: Path, *more: Callback, resume: bool = False, interval: str = "step") -> tuple[Any, ...]:
    """A run with everything that has a state: its weights, history, optimizer and scheduler."""
    model = network(0.3)
    optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=0.02)
    scheduler = nn.optim.CosineAnnealingLR(optimizer, 12)
    stopping = EarlyStopping(patience=2)
    history = fit(
        model,
        table(),
        loss="cross_entropy",
        optimizer=optimizer,
        scheduler=scheduler,
        scheduler_interval=interval,
        epochs=3,
        batch_size=8,
        validation=0.2,
        callbacks=[Checkpoints(folder, unit="step", keep=2), stopping, *more],
        seed=5,
        resume=folder if resume else None,
        progress=False,
    )
    state = {name: t.tolist() for name, t in optimizer.state_dict().items()}
    return weights(model), history.values, state, scheduler.count.tolist(), stopping.best_epoch


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, ...]:
    return run(tmp_path_factory.mktemp("unbroken"))


@pytest.mark.parametrize("step", [1, 3, 4, 5, 8, 11])
def test_a_run_goes_on_to_the_last_bit(tmp_path: Path, unbroken: tuple[Any, ...], step: int) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, Interrupt(step))
    assert len(list(tmp_path.iterdir())) == min(step, 2)
    assert run(tmp_path, resume=True) == unbroken


def test_a_finished_run_that_goes_on_has_nothing_to_do(tmp_path: Path, unbroken: tuple[Any, ...]) -> None:
    run(tmp_path)
    again = run(tmp_path, resume=True)
    assert again[1:] == unbroken[1:]


def test_more_epochs_go_on_where_fewer_ended(tmp_path: Path) -> None:
    def go(epochs: int, resume: bool) -> Any:
        model = network(0.2)
        history = fit(model, table(), loss="cross_entropy", epochs=epochs, batch_size=16, progress=False,
                      callbacks=[Checkpoints(tmp_path)], resume=tmp_path if resume else None)  # fmt: skip
        return weights(model), history.values

    go(2, False)
    longer = go(5, True)
    for old in tmp_path.iterdir():
        old.unlink()
    assert longer == go(5, False)


def test_early_stopping_restores_the_best_epoch() -> None:
    values = iter([3.0, 2.0, 2.5, math.nan, 1.0])
    seen: list[dict[str, Any]] = []

    class Scripted(Callback):
        def on_epoch(self, run: TrainingRun) -> None:
            run.history.values["loss"][-1] = next(values)
            seen.append(weights(run.model))

    model = network()
    stopping = EarlyStopping(patience=2)
    history = fit(
        model, table(), loss="cross_entropy", epochs=9, callbacks=[Scripted(), stopping], progress=False
    )
    assert len(history["loss"]) == 4 and stopping.best_epoch == 2
    assert weights(model) == seen[1] != seen[3]


def test_early_stopping_of_what_should_be_large() -> None:
    values = iter([0.5, 0.75, 0.76, 0.77])

    class Scripted(Callback):
        def on_epoch(self, run: TrainingRun) -> None:
            run.history.values["accuracy"][-1] = next(values)

    stopping = EarlyStopping("accuracy", patience=1, largest=True, least=0.05, restore=False)
    history = fit(network(), table(), loss="cross_entropy", metrics=["accuracy"], epochs=4, progress=False,
                  callbacks=[Scripted(), stopping])  # fmt: skip
    assert history["accuracy"] == [0.5, 0.75, 0.76]


def test_early_stopping_forgets_the_run_before() -> None:
    stopping, model = EarlyStopping(patience=1), network()
    fit(network(), table(), loss="cross_entropy", epochs=6, validation=0.2, callbacks=[stopping],
        progress=False)  # fmt: skip
    still = nn.optim.SGD(nn.state.get_parameters(model), lr=0.0)
    before = weights(model)
    history = fit(model, table(), loss="cross_entropy", epochs=6, optimizer=still, callbacks=[stopping],
                  shuffle=False, progress=False)  # fmt: skip
    assert stopping.monitor is None and stopping.best_epoch == 1 and len(history["loss"]) == 2
    assert stopping.best_value == history["loss"][0] and weights(model) == before


def test_a_checkpoint_has_what_callbacks_after_it_keep(tmp_path: Path) -> None:
    """Wherever `Checkpoints` is in the list: the file of an epoch has its value as the best one."""

    def go(epochs: int, resume: bool) -> EarlyStopping:
        model, stopping = network(), EarlyStopping(patience=9, largest=True)
        fit(model, table(), loss="cross_entropy", epochs=epochs, progress=False,
            callbacks=[Checkpoints(tmp_path), stopping], resume=tmp_path if resume else None)  # fmt: skip
        return stopping

    first = go(1, False)
    again = go(1, True)
    assert (
        (again.best_epoch, again.best_value) == (first.best_epoch, first.best_value) == (1, first.best_value)
    )
    assert again.best_value > 0 and go(4, True).best_epoch == 1  # the loss was never as large


def test_a_folder_with_later_checkpoints_is_refused(tmp_path: Path) -> None:
    def go(epochs: int, **more: Any) -> Any:
        return fit(network(), table(), loss="cross_entropy", batch_size=8, epochs=epochs, progress=False,
                   callbacks=[Checkpoints(tmp_path)], **more)  # fmt: skip

    go(2)
    names = sorted(p.name for p in tmp_path.iterdir())
    (tmp_path / "step-notes.safetensors").touch()
    for more in ({}, {"resume": tmp_path / names[0]}):
        with pytest.raises(ArgumentError, match=r"steps after [05], got .*step-000000010.*resume="):
            go(1, **more)
    assert len(go(3, resume=tmp_path)["loss"]) == 3
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        *names,
        "step-000000015.safetensors",
        "step-notes.safetensors",
    ]


def test_a_callback_stops_within_an_epoch_and_the_folder_has_its_last_step(tmp_path: Path) -> None:
    class Stop(Callback):
        def on_step(self, run: TrainingRun) -> None:
            if run.step == 3:
                run.stop()

    model = network()
    history = fit(model, table(), loss="cross_entropy", batch_size=8, epochs=2, progress=False,
                  callbacks=[Checkpoints(tmp_path), Stop()])  # fmt: skip
    assert history.values == {}
    assert [p.name for p in tmp_path.iterdir()] == ["step-000000003.safetensors"]
    again = network()
    fit(again, table(), loss="cross_entropy", batch_size=8, epochs=2, progress=False, resume=tmp_path)
    whole = network()
    fit(whole, table(), loss="cross_entropy", batch_size=8, epochs=2, progress=False)
    assert weights(again) == weights(whole) != weights(model)


class Loader:
    """Batches that depend on the epoch."""

    def __init__(self) -> None:
        self.epochs: list[int] = []

    def set_epoch(self, epoch: int) -> None:
        self.epochs.append(epoch)

    def __iter__(self) -> Iterator[Any]:
        x, y = table(12, seed=self.epochs[-1])
        yield x[:8], y[:8]
        yield x[8:], y[8:]


def test_a_loader_gives_its_own_batches(tmp_path: Path) -> None:
    class Stop(Callback):
        def on_step(self, run: TrainingRun) -> None:
            if run.step == 3:
                run.stop()

    whole, loader = network(), Loader()
    history = fit(whole, loader, loss="cross_entropy", epochs=3, progress=False)
    assert loader.epochs == [0, 1, 2] and len(history["loss"]) == 3
    broken = network()
    fit(
        broken,
        Loader(),
        loss="cross_entropy",
        epochs=3,
        progress=False,
        callbacks=[Checkpoints(tmp_path), Stop()],
    )
    again, loader = network(), Loader()
    assert (
        fit(again, loader, loss="cross_entropy", epochs=3, progress=False, resume=tmp_path)["loss"]
        == history["loss"]
    )
    assert loader.epochs == [1, 2] and weights(again) == weights(whole)


def test_several_inputs_and_no_target() -> None:
    class Pair:
        def __init__(self) -> None:
            self.a, self.b = nn.Linear(FEATURES, 1), nn.Linear(2, 1)

        def __call__(self, x: Tensor, z: Tensor) -> Tensor:
            return self.a(x) - self.b(z)

    x, _ = table()
    z = Tensor(np.ones((ROWS, 2), np.float32))
    history = fit(
        Pair(), ((x, z), ()), loss=lambda p: p.square().mean(), epochs=3, progress=False, batch_size=ROWS
    )
    assert history["loss"] == sorted(history["loss"], reverse=True)


def test_draws_after_a_run_are_those_without_it() -> None:
    Tensor.manual_seed(1)
    expected = Tensor.rand(4).tolist()
    model = network(0.5)
    Tensor.manual_seed(1)
    fit(model, table(), loss="cross_entropy", progress=False)
    assert Tensor.rand(4).tolist() == expected


def test_draws_after_a_run_depend_on_no_seed_where_none_was_set(monkeypatch: pytest.MonkeyPatch) -> None:
    model, clock = network(0.5), iter([11, 12])
    monkeypatch.setattr(time, "time_ns", lambda: next(clock))
    found = []
    for _ in range(2):
        generator.reset(None)
        fit(model, table(), loss="cross_entropy", progress=False)
        found.append(Tensor.rand(4).tolist())
    Tensor.manual_seed(11)
    assert found[0] == Tensor.rand(4).tolist() != found[1]


def test_a_model_that_is_random_when_measured_depends_on_the_seed_alone() -> None:
    class Noisy(Net):
        def __call__(self, x: Tensor) -> Tensor:
            return self.second(self.first(x + Tensor.randn(*x.shape)))

    def go(drawn_before: int) -> tuple[list[float], list[float]]:
        Tensor.manual_seed(7)
        model = Noisy()
        Tensor.realize(*nn.state.get_parameters(model))
        Tensor.manual_seed(drawn_before)
        still = nn.optim.SGD(nn.state.get_parameters(model), lr=0.0)
        history = fit(model, table(), loss="cross_entropy", epochs=3, optimizer=still, validation=0.3,
                      batch_size=6, progress=False)  # fmt: skip
        return history["val_loss"], Tensor.rand(2).tolist()

    values, drawn_after = go(1)
    assert go(2)[0] == values and len(set(values)) == 3
    Tensor.manual_seed(1)
    assert Tensor.rand(2).tolist() == drawn_after


def test_the_rates_of_schedulers() -> None:
    def rates(interval: str, make: Any) -> list[float]:
        model, seen = network(), []
        optimizer = nn.optim.SGD(nn.state.get_parameters(model), lr=1.0)

        class Watch(Callback):
            def on_epoch(self, run: TrainingRun) -> None:
                seen.append(round(run.optimizer.lr.item(), 4))

        fit(model, table(), loss="cross_entropy", optimizer=optimizer, scheduler=make(optimizer), epochs=2,
            batch_size=16, scheduler_interval=interval, callbacks=[Watch()], progress=False)  # fmt: skip
        return seen

    half = lambda optimizer: nn.optim.ExponentialLR(optimizer, 0.5)
    assert rates("epoch", half) == [0.5, 0.25]
    assert rates("step", half) == [0.125, 0.0156]
    plateau = lambda optimizer: nn.optim.ReduceLROnPlateau(
        optimizer, patience=0, threshold=10, threshold_mode="abs"
    )
    assert rates("epoch", plateau) == [1.0, 0.1]


def test_the_bar_shows_the_epoch_and_the_means(capsys: pytest.CaptureFixture[str]) -> None:
    history = fit(network(), table(), loss="cross_entropy", epochs=2, batch_size=8, validation=0.25)
    last = capsys.readouterr().err.splitlines()[-1]
    assert "8/8" in last and "epoch 2" in last and f"val_loss {history['val_loss'][-1]:.4g}" in last


@pytest.mark.parametrize(
    "change, error",
    [
        ({"data": table()[0]}, "data: expected a tuple"),
        ({"data": iter([table()])}, "data: expected a tuple"),
        ({"data": (*table(), table()[0])}, "data: expected a pair"),
        ({"data": []}, "at least one batch"),
        ({"loss": "mean_squares"}, "loss: expected a function or one of .*mse"),
        ({"loss": lambda p, y: p}, "loss: expected a Tensor of one element"),
        ({"loss": ["mse"]}, "loss: expected a function or one of .*mse"),
        ({"metrics": ["recall"]}, "metrics: recall: expected"),
        ({"metrics": {"loss": "mse"}}, "names other than loss"),
        ({"metrics": "accuracy"}, "metrics: expected a list"),
        ({"epochs": -1}, "epochs"),
        ({"batch_size": 0}, "batch_size"),
        ({"seed": None}, "seed: expected an integer, got None"),
        ({"batch_size": 64, "drop_last": True}, "at least one batch"),
        ({"validation": 1.0}, "validation: expected data, or a fraction"),
        ({"validation": 1}, "validation: expected data, or a fraction"),
        ({"data": [table()], "validation": 0.5}, "fraction of an iterable"),
        ({"scheduler_interval": "batch"}, "scheduler_interval"),
        ({"callbacks": [print]}, "callbacks"),
        ({"callbacks": [EarlyStopping("val_loss")]}, "monitor: expected one of loss"),
        ({"resume": "/nowhere"}, "resume"),
    ],
)
def test_bad_arguments(change: dict[str, Any], error: str) -> None:
    model = network()
    before = weights(model)
    arguments: dict[str, Any] = {"data": table(), "loss": "cross_entropy", "progress": False} | change
    with pytest.raises((ArgumentError, OSError), match=error):
        fit(model, arguments.pop("data"), **arguments)
    assert weights(model) == before


def test_rows_that_do_not_fit() -> None:
    x, y = table()
    with pytest.raises(ShapeError, match="as many rows each"):
        fit(network(), (x, y[1:]), loss="cross_entropy")
    with pytest.raises(ShapeError, match="mse: expected targets of shape"):
        fit(nn.Linear(FEATURES, 1), (x, x[:, 0]), loss="mse", progress=False)


def test_the_accuracy_of_one_score_takes_targets_of_its_shape() -> None:
    x, y = table()
    options: dict[str, Any] = {"loss": lambda p, y: p.mean(), "metrics": ["accuracy"], "progress": False}
    still = nn.Linear(FEATURES, 1)
    still.weight.assign(Tensor([[1.0, 0, 0, 0, 0]])).realize()
    still.bias.assign(Tensor([0.0])).realize()
    optimizer = nn.optim.SGD([still.weight, still.bias], lr=0.0)
    sides = (y > 0).astype(np.int32)
    history = fit(still, (x, sides[:, None]), optimizer=optimizer, **options)
    np.testing.assert_allclose(history["accuracy"], [((x[:, 0] > 0) == sides).mean()], rtol=1e-6)
    with pytest.raises(ShapeError, match=r"accuracy: expected targets of shape \(32, 1\), got \(32,\)"):
        fit(still, (x, sides), optimizer=optimizer, **options)


def test_checkpoints_of_another_run(tmp_path: Path) -> None:
    fit(network(), table(), loss="cross_entropy", progress=False, callbacks=[Checkpoints(tmp_path)])
    (path,) = tmp_path.iterdir()

    def go(model: Any, **change: Any) -> None:
        before = weights(model)
        with pytest.raises(ArgumentError, match="resume") as error:
            fit(model, table(), loss="cross_entropy", resume=path, progress=False, **change)
        assert weights(model) == before
        assert path.name in str(error.value)

    go(network(), batch_size=4)
    go(network(), seed=1)
    go(network(), drop_last=True)
    go(network(), scheduler_interval="step")
    model = network()
    go(model, optimizer=nn.optim.SGD(nn.state.get_parameters(model), lr=0.1))
    go(network(), metrics=["accuracy"])
    go(network(), validation=table(8, seed=1))
    go(nn.Linear(FEATURES, CLASSES))
    data = path.read_bytes()
    for damage in (data[: len(data) // 2], data.replace(b'\\"epoch\\"', b'\\"epoke\\"'), b""):
        path.write_bytes(damage)
        go(network())


def test_the_package_lists_what_it_has() -> None:
    assert set(training.__all__) <= set(dir(training))
