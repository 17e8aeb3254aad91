"""Exceptions that signals' handlers raise, as Ctrl-C's: they come through at once, and afterwards a Program
has written all that it writes, or nothing that outlives it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from c_compiler import SLOW_CC

from polygrad import Tensor, TinyJit, compile_step, nn
from polygrad.engine import running
from polygrad.engine.running import Outcome, outcome
from polygrad.errors import InterruptedWriteError
from polygrad.monitor import lock
from polygrad.runtime.interface import Control, Executable

pytestmark = pytest.mark.usefixtures("default_device")

INTERRUPTED = Path(__file__).parent / "interrupted.py"
NATIVE = pytest.mark.parametrize("device", ["CPU", "WASM", SLOW_CC])
NATIVE_AND_INTERP = pytest.mark.parametrize("device", ["CPU", "WASM", "INTERP", SLOW_CC])


# --- Ctrl-C in another process


@pytest.mark.e2e
@pytest.mark.skipif(os.name == "nt", reason="there is no SIGINT for one child alone")
@pytest.mark.parametrize(
    ("device", "threads", "size"),
    [
        ("CPU", 1, 4096),
        pytest.param("CPU", 2, 6144, marks=pytest.mark.slow),
        ("WASM", 1, 3072),
        ("INTERP", 1, 192),
        pytest.param("CC", 1, 2048, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("what", ["read", "assign", "replay"])
def test_ctrl_c_comes_through_within_100_ms_and_nothing_is_half_done(
    device: str, threads: int, size: int, what: str
) -> None:
    """The bound that is asserted is loose, for machines that do much else: the Program takes some 10 s."""
    command = [sys.executable, str(INTERRUPTED), device, str(threads), str(size), what]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdin is not None and child.stdout is not None
    with child:
        assert child.stdout.readline() == "begins\n"
        time.sleep(0.05)
        sent = time.perf_counter()
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "KeyboardInterrupt\n"
        waited = time.perf_counter() - sent
        found = json.loads(child.stdout.readline())
    print(f"{device}, {threads} threads, {what}: {1e3 * waited:.1f} ms")
    assert waited < 2
    assert found["right"] and found["again"] == [1.0] * 4
    assert found["steps"] in ([0.0] * 4, [1.0] * 4)  # the last was not made, or all of it
    assert child.returncode == 0


# --- the same in this process: what waits for a run raises


@contextmanager
def interrupted(
    monkeypatch: pytest.MonkeyPatch, seconds: float = 0.02, again: bool = False
) -> Iterator[None]:
    """Inside, a run that has a thread of its own is interrupted after some seconds, and `again` at once."""
    waiting = running._Job.wait_for_the_end

    def wait(job: running._Job, timeout: float | None = None) -> bool:
        time.sleep(seconds)
        raise KeyboardInterrupt

    def wait_for_the_end(job: running._Job, impatient: Callable[[], object]) -> None:
        if again:
            impatient()
        waiting(job, impatient)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(running._Job, "wait", wait)
        patch.setattr(running._Job, "wait_for_the_end", wait_for_the_end)
        yield


def long_product(size: int = 1024) -> Tensor:
    """Some tenths of a second of work in one Program on a quick machine, without much memory."""
    x = Tensor.full((size, size), 1.0 / size).contiguous().realize()
    y = x
    for _ in range(20):  # what took less than 40 ms last time is not interrupted
        y = (y @ x).contiguous()
    return y


def expensive(x: Tensor, rounds: int = 120) -> Tensor:
    """One kernel, of half a second or less in 120 rounds."""
    for _ in range(rounds):
        x = (x + 1.0).sqrt()
    return x


@NATIVE
def test_a_result_that_was_not_computed_is_computed_when_it_is_read(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lazy = long_product(512)
    node = lazy.uop
    with interrupted(monkeypatch, 0.005):
        lazy.realize()
    assert outcome() is Outcome.STOPPED and lazy.uop is node and node.value is None
    assert lazy[0, :3].tolist() == pytest.approx([1 / 512] * 3)


@NATIVE
def test_memory_that_a_stopped_run_has_written_is_as_it_was(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    counter = Tensor.zeros(4).contiguous().realize()

    @TinyJit
    def step() -> Tensor:
        counter.assign(counter + 1).realize()
        return long_product().realize()

    step()
    step()
    step()
    before = counter.tolist()
    with interrupted(monkeypatch):
        step()
    assert outcome() is Outcome.STOPPED
    assert counter.tolist() == before
    result = step()
    assert counter.tolist() == [n + 1 for n in before] and result[0, 0].item() == pytest.approx(1 / 1024)


@NATIVE
def test_a_result_of_a_captured_step_that_was_stopped_says_so_until_the_next_run(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = TinyJit(lambda: long_product().realize())
    step()
    result = step()
    assert result[0, 0].item() == pytest.approx(1 / 1024)
    with interrupted(monkeypatch):
        step()
    with pytest.raises(InterruptedWriteError, match="half-written: run it again"):
        result.tolist()
    assert step()[1, 1].item() == pytest.approx(1 / 1024)
    assert result[0, 0].item() == pytest.approx(1 / 1024)


@NATIVE
def test_an_assignment_that_reads_nothing_it_writes_is_stopped_and_made_when_it_is_read(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = Tensor.zeros(1024, 1024).contiguous().realize()
    target.assign(long_product())
    with interrupted(monkeypatch):
        target.realize()
    assert target[0, :2].tolist() == pytest.approx([1 / 1024] * 2)


@NATIVE
def test_beyond_the_commit_point_a_run_goes_through_to_its_end(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = Tensor.linspace(0.1, 1.0, 1 << 22).realize()
    want = expensive(x)[:5].tolist()
    state = x.clone().realize()
    state.assign(expensive(state))
    with interrupted(monkeypatch):
        state.realize()
    assert outcome() is Outcome.WHOLE
    assert state[:5].tolist() == pytest.approx(want)  # once, not twice


@NATIVE
def test_a_second_interrupt_leaves_memory_half_written_which_is_marked(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = Tensor.linspace(0.1, 1.0, 1 << 22).realize()
    for rounds in (120, 360, 720):  # where the machine is busy, the interrupt may come when a run is over
        state = x.clone().realize()
        view, other = state[:2], (x[:2] * 2).realize()
        state.assign(expensive(state, rounds))
        with interrupted(monkeypatch, again=True):
            state.realize()
        if outcome() is Outcome.HALF:
            break
    assert outcome() is Outcome.HALF
    for read in (lambda: state[:5].tolist(), lambda: view.tolist(), lambda: (state + 1)[:2].tolist()):
        with pytest.raises(InterruptedWriteError, match="replace"):
            read()
    assert other.tolist() == pytest.approx([0.2, 0.2], rel=1e-5)
    state.replace(x)
    assert state[:1].tolist() == pytest.approx([0.1])


@NATIVE_AND_INTERP
@pytest.mark.parametrize("after", [False, True])
def test_an_exception_at_the_end_of_a_short_run_does_not_make_an_assignment_twice(
    device: str, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    """Python's handler runs when native code has returned: then the run was whole."""
    state = Tensor([1.0, 2.0]).realize()
    state.assign(state + 1).realize()
    state.assign(state + 1)
    real = running.run_program

    def run(executable: Executable, *arguments: Any) -> None:
        def whole_or_nothing(*given: Any) -> None:
            if after:
                type(executable).run(executable, *given)
            raise KeyboardInterrupt

        executable.seconds = 0.0
        executable.run = whole_or_nothing  # type: ignore[method-assign]
        try:
            real(executable, *arguments)
        finally:
            del executable.run  # type: ignore[attr-defined]

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("polygrad.engine.programs.run_program", run)
        state.realize()
    assert state.tolist() == [3.0, 4.0]
    assert (state + 1).tolist() == [4.0, 5.0]


@NATIVE
def test_locks_are_free_after_an_interrupt(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with interrupted(monkeypatch):
        long_product().realize()
    assert not lock._is_owned()
    got: list[Any] = []
    thread = threading.Thread(target=lambda: got.append((Tensor([1, 2]) + 1).tolist()))
    thread.start()
    thread.join(60)
    assert got == [[2, 3]]


@NATIVE
def test_a_training_step_is_made_or_not(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dropout's random numbers go on, and parameters with their optimizer's state stay together."""
    Tensor.manual_seed(5)
    model = [nn.Linear(384, 384), lambda x: x.dropout(0.2), Tensor.relu, nn.Linear(384, 384)]
    optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=0.01)
    x, y = Tensor.rand(2048, 384).realize(), Tensor.rand(2048, 384).realize()
    step = compile_step(lambda m, a, b: (a.sequential(m) - b).square().mean(), model, optimizer, x, y)
    state = [*nn.state.get_parameters(model), *nn.state.get_parameters(optimizer)]
    for seconds in (0.005, 0.02, 0.05):
        step.run(x, y)
        before = [t.tolist() for t in state]
        step._step.captured.steps[0].executable.seconds = float("inf")
        with interrupted(monkeypatch, seconds):
            step.run(x, y)
        changed = [t.tolist() != b for t, b in zip(state, before, strict=True) if b]
        made = outcome() is Outcome.WHOLE
        assert sum(changed) >= 4 if made else not any(changed)
    step.run(x, y)
    assert 0 < step.loss_value() < 10


def test_other_threads_run_programs_themselves() -> None:
    """Signals are the main thread's: others would gain nothing."""
    threads: list[str] = []
    real = running._run_apart

    def noting(*arguments: Any) -> None:
        threads.append(threading.current_thread().name)
        real(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "_run_apart", noting)
        other = threading.Thread(target=lambda: (Tensor.rand(33, 7) @ Tensor.rand(7, 5)).realize())
        other.start()
        other.join()
        assert threads == []
        (Tensor.rand(34, 7) @ Tensor.rand(7, 5)).realize()
        assert set(threads) == {threading.main_thread().name}


def test_a_run_that_raises_in_its_thread_raises_here() -> None:
    x = (Tensor.rand(35, 7) @ Tensor.rand(7, 5)) * 2

    def fail(self: Any, *arguments: Any) -> bool:
        raise MemoryError("no room")

    with pytest.MonkeyPatch.context() as patch, pytest.raises(MemoryError, match="no room"):
        patch.setattr("polygrad.runtime.cpu.base.NativeExecutable.run_stoppable", fail)
        x.realize()
    assert len(x.tolist()) == 35


def test_a_fork_can_run_long_programs() -> None:
    long_product(64).realize()
    assert running._runner._thread is not None
    if not hasattr(os, "fork"):
        pytest.skip("there is no fork")
    child = os.fork()
    if child == 0:
        job = running._Job(lambda: True)
        running._runner.start(job)
        job.wakeup.acquire(timeout=10)
        os._exit(0 if running._runner._thread is not None and job.over else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# --- control


def test_control_lets_a_run_commit_or_stop_but_not_both() -> None:
    halted: list[bool] = []
    control = Control(3, lambda: halted.append(True), lambda: False)
    assert control.begin_commit() and control.committed
    assert not control.stop() and not control.stopped and not halted
    assert control.stop(force=True) and control.stopped and halted
    control = Control(3, lambda: halted.append(True), lambda: False)
    assert control.stop() and not control.begin_commit() and not control.committed


def test_what_commits_itself_is_asked() -> None:
    control = Control(3, lambda: None, lambda: True)
    assert control.committed and not control.stop() and control.stop(force=True)
