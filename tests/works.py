"""Kinds of work in small steps, for tests that let something go wrong in one of them: a signal, a device that
fails. `check_after` looks at what is left."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass

from polygrad import Device, Tensor, TinyJit, compile_step, monitor, nn
from polygrad.engine.programs import clear_caches
from polygrad.engine.recording import watch
from polygrad.tensor.core.aliasing import _observers
from polygrad.tensor.core.modes import modes


@dataclass(frozen=True)
class Work:
    """`act` is the work of one step, and `state` the values that it changes: all of them together, in one
    Program, or each on its own."""

    act: Callable[[], object]
    state: Callable[[], list[object]]
    together: bool = True


def eager_step() -> Work:
    x, results = Tensor([1.0, 2.0, 3.0]).realize(), []
    return Work(lambda: results.append((x * 2 + 1).sum().item()), lambda: [results[-1] if results else None])


def assignment() -> Work:
    x = Tensor([1.0, 2.0, 3.0, 4.0]).realize()
    view = x[1:3]
    return Work(lambda: x.assign(x * 2 + 1).realize(), lambda: [x.tolist(), view.tolist()])


def write_to_view() -> Work:
    x = Tensor([[1.0, 2.0], [3.0, 4.0]]).realize()
    row, before = x[1], x + 0

    def act() -> None:
        row.assign(row + 1)
        x.realize()

    return Work(act, lambda: [x.tolist(), row.tolist(), before.tolist()])


def set_item() -> Work:
    x = Tensor.arange(6.0).reshape(2, 3).contiguous().realize()

    def act() -> None:
        x[:, 1] = x[:, 1] + 1
        x.realize()

    return Work(act, lambda: [x.tolist()])


def several_outputs() -> Work:
    a, b = Tensor([1.0, 2.0]).realize(), Tensor([3.0, 4.0]).realize()

    def act() -> None:
        a.assign(a + 1)
        b.assign(b * 2)
        (a + b).realize(a, b)

    return Work(act, lambda: [a.tolist(), b.tolist()], together=False)


def replay() -> Work:
    state, x = Tensor([1.0, 2.0]).realize(), Tensor([1.0, 1.0]).realize()

    @TinyJit
    def step(x: Tensor) -> Tensor:
        state.assign(state + x)
        return (state * 2).realize(state)

    for _ in range(3):
        step(x)
    return Work(lambda: step(x), lambda: [state.tolist()])


def replay_that_writes_its_argument() -> Work:
    """What was computed from the old contents does not count as computed from the new ones."""
    x = Tensor([1.0, 2.0]).realize()
    computed = [(x + 1).realize()]

    @TinyJit
    def step(x: Tensor) -> Tensor:
        x.assign(x * 2).realize()
        return (x * 1).realize()

    for _ in range(3):
        step(x)

    def act() -> None:
        computed[:] = [(x + 1).realize()]
        step(x)

    return Work(act, lambda: [x.tolist(), (x + 1).tolist()])


def on_two_devices() -> tuple[Tensor, tuple[str, str]]:
    devices = (Device.DEFAULT, f"{Device.DEFAULT}:1")
    return Tensor([[1.0, 2.0], [3.0, 4.0]]).shard(devices, 0).realize(), devices


def sharded_assignment() -> Work:
    x, _ = on_two_devices()
    row, y = x[1], Tensor([1.0]).realize()

    def act() -> None:
        x.assign(x * 2 + 1).realize()
        y.assign(y + 1).realize()

    return Work(act, lambda: [x.tolist(), row.tolist(), y.tolist()], together=False)


def sharded_replay() -> Work:
    x, devices = on_two_devices()

    @TinyJit
    def step(a: Tensor) -> Tensor:
        x.assign(x * 2 + x.sum() + a).realize()
        return (x + 0).realize()

    a = Tensor([1.0]).shard(devices).realize()
    for _ in range(3):
        step(a)
    return Work(lambda: step(a), lambda: [x.tolist()])


def first_calls() -> Work:
    """A function that is called, captured and replayed."""
    state, x = Tensor([1.0, 2.0]).realize(), Tensor([1.0, 1.0]).realize()

    @TinyJit
    def step(x: Tensor) -> Tensor:
        state.assign(state + x)
        return (state * 2).realize(state)

    return Work(lambda: step(x), lambda: [state.tolist()])


def captured_training() -> Work:
    Tensor.manual_seed(3)
    model = nn.Linear(3, 2)
    optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=0.1)
    x, y = Tensor.rand(4, 3).realize(), Tensor.rand(4, 2).realize()
    step = compile_step(lambda m, a, b: (m(a).dropout(0.2) - b).square().mean(), model, optimizer, x, y)
    state = [*nn.state.get_parameters(model), *nn.state.get_parameters(optimizer)]
    step.run(x, y)
    return Work(lambda: step.run(x, y), lambda: [t.tolist() for t in state])


def optimizer_step() -> Work:
    w = Tensor([1.0, -2.0, 3.0], requires_grad=True).realize()
    optimizer = nn.optim.SGD([w], lr=0.125, momentum=0.5)

    def act() -> None:
        optimizer.zero_grad()
        (w * w).sum().backward()
        with Tensor.train():
            optimizer.step()

    return Work(act, lambda: [w.tolist()])


def compilation() -> Work:
    x, results = Tensor([[1.0, 2.0], [3.0, 4.0]]).realize(), []

    def act() -> None:
        clear_caches()
        results.append(((x @ x).softmax(-1) + x).sum(0).tolist())

    return Work(act, lambda: [results[-1] if results else None])


def search() -> Work:
    """With BEAM=1, which the test sets: what an interrupt leaves is looked at after the block's end."""
    x, results = Tensor.arange(24.0).reshape(4, 6).contiguous().realize(), []

    def act() -> None:
        clear_caches()
        results.append((x @ x.transpose()).sum(1).tolist())

    return Work(act, lambda: [results[-1] if results else None])


def file_of_weights() -> Work:
    """A file that is overwritten, and loaded into a model."""
    folder = tempfile.TemporaryDirectory()
    model = nn.Linear(2, 2)
    nn.state.load_state_dict(model, {"weight": Tensor.zeros(2, 2), "bias": Tensor.zeros(2)}, verbose=False)

    def path() -> str:
        return os.path.join(folder.name, "weights.safetensors")

    nn.state.safe_save(nn.state.get_state_dict(model), path())

    def act() -> None:
        n = float(int(model.weight[0, 0].item()) + 1)
        nn.state.safe_save({"weight": Tensor.full((2, 2), n), "bias": Tensor.full((2,), n)}, path())
        nn.state.load_state_dict(model, nn.state.safe_load(path()), verbose=False)
        model.weight.realize(model.bias)

    def state() -> list[object]:
        assert os.listdir(folder.name) == ["weights.safetensors"]
        assert nn.state.safe_load(path())["weight"].shape == (2, 2)
        return [model.weight.tolist()]

    return Work(act, state)


WORK = [
    eager_step, assignment, write_to_view, set_item, several_outputs, replay, replay_that_writes_its_argument,
    sharded_assignment, sharded_replay, first_calls, captured_training, optimizer_step, compilation, search,
    file_of_weights,
]  # fmt: skip


def trajectory(make: Callable[[], Work], steps: int = 4) -> list[list[object]]:
    work = make()
    found = [work.state()]
    for _ in range(steps):
        work.act()
        found.append(work.state())
    return found


def check_is_free() -> None:
    state = monitor._LockState
    assert not monitor.lock._is_owned()
    assert not (state.running or state.computing or state.exclusive or state.overdue)
    assert not monitor._queue and not monitor._overdue.locked()
    assert watch.recording is None
    assert modes.grad_enabled and modes.training is None and not _observers.of_blocks


def check_after(work: Work, wanted: list[list[object]], before: int) -> None:
    """After something went wrong in the step after `before` steps: locks are free, values are those of before
    or after it, and the next step is right."""
    check_is_free()
    steps = [w[before : before + 2] for w in zip(*wanted, strict=True)]
    made = [s.index(value) for s, value in zip(steps, work.state(), strict=True)]  # 0 or 1 of each
    changing = {n for n, (old, new) in zip(made, steps, strict=True) if old != new}
    assert len(changing) <= 1 or not work.together
    work.act()
    assert work.state() == [wanted[before + n + 1][i] for i, n in enumerate(made)]


def ready(make: Callable[[], Work], before: int) -> Work:
    work = make()
    for _ in range(before):
        work.act()
    return work
