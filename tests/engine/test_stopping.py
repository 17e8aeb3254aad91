"""Stops that another thread asks for, as a page does of its worker (`polygrad/engine/stopping.py`)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from polygrad import Device, Tensor, TinyJit, compile_step, nn
from polygrad.engine import running, stopping
from polygrad.engine.stopping import RunStopped, stoppable, watched
from polygrad.errors import InterruptedWriteError
from polygrad.shared_words import CLOSED, COMMITTED, OPEN, STOP

pytestmark = pytest.mark.usefixtures("default_device")

WASM = pytest.mark.parametrize("device", ["WASM"])


class Stopper:
    """What `loader/src/stops.ts` is in a worker: a thread asks for a stop some time after a run begins."""

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds, self.flag, self.begun = seconds, False, 0
        self.host: Any = Device["WASM"].host  # type: ignore[attr-defined]
        self._thread: threading.Timer | None = None
        self._stopped = False

    def asked(self) -> bool:
        return self.flag

    def begin(self) -> bool:
        self.begun += 1
        self.host.set_word(COMMITTED, OPEN)
        if self.seconds is not None and self._thread is None:
            self._thread = threading.Timer(self.seconds, self._stop)
            self._thread.start()
        return not self.flag

    def _stop(self) -> None:
        self.flag = True
        if self.host.word(COMMITTED) == OPEN:  # wasmtime's memory is not shared: there is no exchange
            self._stopped = True
            self.host.set_word(STOP, 1)

    def end(self) -> bool:
        if self._thread is not None:
            self._thread.join()
        self.host.set_word(COMMITTED, CLOSED)
        self.host.set_word(STOP, 0)
        return self._stopped


@pytest.fixture(autouse=True)
def all_runs_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_BRIEF_SECONDS", 0.0)


def long_product(size: int = 256) -> Tensor:
    x = Tensor.full((size, size), 1.0 / size).contiguous().realize()
    y = x
    for _ in range(60):
        y = (y @ x).contiguous()
    return y


def stopped(stopper: Stopper, run: Callable[[], Any]) -> float:
    """The seconds until a run was stopped."""
    started = time.perf_counter()
    with watched(stopper), pytest.raises(RunStopped), stoppable():
        run()
    return time.perf_counter() - started


@WASM
def test_a_captured_step_stops_in_the_middle_and_has_done_nothing(device: str) -> None:
    counter = Tensor.zeros(4).contiguous().realize()

    @TinyJit
    def step() -> Tensor:
        counter.assign(counter + 1).realize()
        return long_product().realize()

    step()
    step()
    started = time.perf_counter()
    result = step()
    whole = time.perf_counter() - started
    assert stopped(Stopper(whole / 10), step) < 0.8 * whole
    assert counter.tolist() == [3.0] * 4
    with pytest.raises(InterruptedWriteError, match="run it again"):
        result.tolist()
    assert step()[0, 0].item() == pytest.approx(1 / 256)
    assert counter.tolist() == [4.0] * 4


@WASM
def test_a_run_does_not_begin_after_a_stop(device: str) -> None:
    counter = Tensor.zeros(4).contiguous().realize()
    step = TinyJit(lambda: counter.assign(counter + 1).realize())
    step()
    step()
    stopper = Stopper()
    stopper.flag = True
    stopped(stopper, step)
    assert counter.tolist() == [2.0] * 4 and stopper.begun == 0
    step()
    assert counter.tolist() == [3.0] * 4


@WASM
def test_what_is_not_stoppable_goes_on(device: str) -> None:
    counter = Tensor.zeros(4).contiguous().realize()
    step = TinyJit(lambda: counter.assign(counter + 1).realize())
    stopper = Stopper()
    stopper.flag = True
    with watched(stopper):
        with stoppable():
            step()  # the first run, whose writes are lazy
        step()
        assert stopping.stopper() is None
    assert counter.tolist() == [2.0] * 4


@WASM
def test_nothing_stops_after_a_program_has_written(device: str) -> None:
    counter = Tensor.zeros(4).contiguous().realize()
    stopper = Stopper()
    with watched(stopper), stoppable():
        Tensor([1.0]).exp().realize()
        assert stopping.stopper() is stopper
        counter.assign(counter + 1).realize()
        stopper.flag = True
        counter.assign(counter + 1).realize()
    assert counter.tolist() == [2.0] * 4
    stopper.flag = False
    with watched(stopper), pytest.raises(RunStopped), stoppable(each_program=True):
        counter.assign(counter + 1).realize()
        stopper.flag = True
        Tensor([2.0]).exp().realize()
    assert counter.tolist() == [3.0] * 4


@WASM
def test_a_training_step_goes_on_as_if_it_had_not_been_stopped(device: str) -> None:
    """Weights, moments and random numbers are the same to the last bit."""

    class Net:
        def __init__(self) -> None:
            self.layers = [nn.Linear(256, 256) for _ in range(4)]

        def __call__(self, x: Tensor) -> Tensor:
            for layer in self.layers:
                x = layer(x).relu().dropout(0.5)
            return x

    def train(stops: bool) -> list[Any]:
        Tensor.manual_seed(1)
        model = Net()
        optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=0.01)
        x = Tensor.rand(512, 256).realize()
        step = compile_step(lambda model, x: model(x).square().mean(), model, optimizer, x)
        for i in range(4):
            if stops and i in (0, 2):
                stopped(Stopper(0.003), lambda: step.run(x))
            step.run(x)
        state = nn.state.get_state_dict([model.layers, optimizer])
        return [step.loss_value(), *(t.tolist() for t in state.values())]

    assert train(True) == train(False)
