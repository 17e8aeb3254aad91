"""Threads of the user's program build and compute graphs of their own at the same time; forks of it, too."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device_suite import CPU_FIRST
from user_threads import in_threads, switching_often

from polygrad import Tensor, TinyJit, Variable, compile_step, monitor, nn
from polygrad.errors import CaptureError, ShapeError
from polygrad.runtime.interface import Executable
from polygrad.runtime.interp.device import InterpRuntime
from polygrad.runtime.program import Program
from polygrad.uop.intern import collect

N_THREADS = 6


@pytest.fixture
def small_switch_interval() -> Iterator[None]:
    with switching_often():
        yield


# --- random work, each with its judge


def random_graph(rng: np.random.Generator, device: str, shared: tuple[Tensor, np.ndarray]) -> None:
    """A chain of random operations on random data and a shared parameter, read back."""
    shape = tuple(int(n) for n in rng.integers(2, 6, size=2))
    a = rng.standard_normal(shape).astype(np.float32)
    x, y = Tensor(a, device=device), a.astype(np.float64)
    parameter, values = shared
    for _ in range(int(rng.integers(2, 7))):
        match rng.integers(7):
            case 0:
                k = float(rng.standard_normal())
                x, y = x * k + 1, y * k + 1
            case 1:
                x, y = x.tanh(), np.tanh(y)
            case 2:
                x, y = x.transpose(), y.T
            case 3:
                x, y = x - x.mean(0), y - y.mean(0)
            case 4:
                x, y = x.maximum(0.1), np.maximum(y, 0.1)
            case 5:
                n = x.shape[1]
                x, y = x @ parameter[:n, :n], y @ values[:n, :n]
            case _:
                x = x.realize()
    np.testing.assert_allclose(x.numpy(), y, rtol=2e-4, atol=2e-4)


def gradients(rng: np.random.Generator, device: str, shared: tuple[Tensor, np.ndarray]) -> None:
    """backward through a product with the shared parameter."""
    a = rng.standard_normal((3, 8)).astype(np.float32)
    x = Tensor(a, device=device, requires_grad=True)
    (x @ shared[0] * x).sum().backward()
    assert x.grad is not None
    expected = a @ shared[1] + a @ shared[1].T
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=2e-4, atol=2e-4)


def training(rng: np.random.Generator, device: str, shared: tuple[Tensor, np.ndarray]) -> None:
    """Some steps of gradient descent on |w - t|^2, eager."""
    target = rng.standard_normal(7).astype(np.float32)
    w = Tensor(np.zeros(7, dtype=np.float32), device=device)
    t = Tensor(target, device=device)
    optimizer = nn.optim.SGD([w], lr=0.25)
    with Tensor.train():
        for _ in range(3):
            optimizer.zero_grad()
            ((w - t) * (w - t)).sum().backward()
            optimizer.step()
    np.testing.assert_allclose(w.numpy(), target * (1 - 0.5**3), rtol=1e-5, atol=1e-6)


def captured(rng: np.random.Generator, device: str, shared: tuple[Tensor, np.ndarray]) -> None:
    """A captured function of its own, with state that it writes to."""
    state = Tensor(np.zeros(8, dtype=np.float32), device=device).realize()

    @TinyJit
    def step(x: Tensor) -> Tensor:
        state.assign(state + x @ shared[0])
        return state * 2

    total = np.zeros(8)
    for _ in range(4):
        a = rng.standard_normal(8).astype(np.float32)
        total += a @ shared[1]
        np.testing.assert_allclose(step(Tensor(a, device=device)).numpy(), total * 2, rtol=2e-4, atol=2e-4)


def writes(rng: np.random.Generator, device: str, shared: tuple[Tensor, np.ndarray]) -> None:
    """Writes through views."""
    a = rng.standard_normal((4, 5)).astype(np.float32)
    x = Tensor(a, device=device)
    before, row = x + 1, x[2]
    a2 = a.copy()
    row += 3
    a2[2] += 3
    x[:, 1] = 7
    a2[:, 1] = 7
    np.testing.assert_allclose(row.numpy(), a2[2], rtol=1e-6)
    np.testing.assert_allclose(x.numpy(), a2, rtol=1e-6)
    np.testing.assert_allclose(before.numpy(), a + 1, rtol=1e-6)


def errors(rng: np.random.Generator, device: str, shared: tuple[Tensor, np.ndarray]) -> None:
    """Errors, also inside a capture."""
    with pytest.raises(ShapeError):
        Tensor([1.0, 2.0], device=device) + Tensor([1.0, 2.0, 3.0], device=device)

    @TinyJit
    def reads(x: Tensor) -> Tensor:
        return x * (x.sum().item() if calls else 2.0)

    calls = 0
    x = Tensor([1.0, 2.0], device=device)
    assert reads(x).tolist() == [2.0, 4.0]
    calls = 1
    with pytest.raises(CaptureError):
        reads(x)


def sizes(rng: np.random.Generator, device: str, shared: tuple[Tensor, np.ndarray]) -> None:
    """Symbolic sizes, whose arithmetic is no Tensor's."""
    count = int(rng.integers(1, 8))
    n = Variable("n", 1, 8).bind(count)
    x = shared[0][:n]
    assert (x.shape[0] * 2 + 1) // 2 is (n * 2 + 1) // 2
    np.testing.assert_allclose(x.sum(0).numpy(), shared[1][:count].sum(0), rtol=1e-4, atol=1e-5)


def garbage(rng: np.random.Generator, device: str, shared: tuple[Tensor, np.ndarray]) -> None:
    """Free nodes while others make some; drop large reads."""
    for _ in range(3):
        _ = (Tensor(np.ones(300_000, dtype=np.float32), device=device) + 1).numpy()
        collect()


WORK = [random_graph, random_graph, gradients, training, captured, writes, errors, sizes, garbage]


def test_threads_with_graphs_of_their_own(device: str, small_switch_interval: None) -> None:
    rounds = {"CPU": 40, "WASM": 25, "INTERP": 12, "CC": 4}[device]
    values = np.random.default_rng(1).standard_normal((8, 8)).astype(np.float32)
    shared = Tensor(values, device=device, requires_grad=False), values

    def work(i: int) -> None:
        rng = np.random.default_rng(i)
        for _ in range(rounds):
            job = WORK[int(rng.integers(len(WORK)))]
            if job is garbage and device == "INTERP":
                continue
            job(rng, device, shared)

    in_threads(work, N_THREADS)


def test_threads_compile_steps_of_their_own(small_switch_interval: None) -> None:
    def work(i: int) -> None:
        rng = np.random.default_rng(i)
        w0 = rng.standard_normal((4, 3)).astype(np.float32)
        x, y = rng.standard_normal((5, 4)).astype(np.float32), rng.standard_normal((5, 3)).astype(np.float32)
        w = Tensor(w0)
        model = type("Model", (), {})()
        model.w = w
        step = compile_step(
            lambda m, a, b: ((a @ m.w - b) * (a @ m.w - b)).sum(), model, nn.optim.SGD([w], 0.01), x, y
        )
        expected = w0.astype(np.float64)
        for _ in range(5):
            step.run(x, y)
            expected -= 0.01 * 2 * x.T @ (x @ expected - y)
        np.testing.assert_allclose(w.numpy(), expected, rtol=1e-4, atol=1e-4)

    in_threads(work, N_THREADS)


def test_threads_share_a_captured_function() -> None:
    state = Tensor(np.zeros(4, dtype=np.int32)).realize()

    @TinyJit
    def count(x: Tensor) -> None:
        state.assign(state + x)

    one = Tensor(np.ones(4, dtype=np.int32)).realize()
    in_threads(lambda _: [count(one) for _ in range(20)] and None, N_THREADS)
    assert state.tolist() == [20 * N_THREADS] * 4


# --- what belongs to a thread


def test_training_and_no_grad_belong_to_a_thread() -> None:
    seen: list[tuple[bool, bool | None]] = []
    ready, go = threading.Event(), threading.Event()
    x = Tensor([1.0], requires_grad=True)

    def other() -> None:
        seen.append((Tensor.training, (x * 2).requires_grad))
        with Tensor.train(False):
            ready.set()
            go.wait()
        seen.append((Tensor.training, (x * 2).requires_grad))

    with Tensor.train(), Tensor.no_grad():
        thread = threading.Thread(target=other)
        thread.start()
        ready.wait()
        assert (Tensor.training and (x * 2).requires_grad is None) or not (x * 2).requires_grad
        go.set()
        thread.join()
        assert Tensor.training
    assert not Tensor.training
    assert seen == [(False, True)] * 2


def test_training_set_outside_of_train_is_that_of_all_threads() -> None:
    Tensor.training = True
    try:
        with ThreadPoolExecutor() as pool:
            assert pool.submit(lambda: Tensor.training).result()
        with Tensor.test():
            Tensor.training = True  # until the end of the block
            assert Tensor.training
            Tensor.training = False
    finally:
        Tensor.training = False


def test_an_optimizers_step_keeps_gradients_of_other_threads() -> None:
    x = Tensor([1.0, 2.0])
    (x * x).sum().backward()  # lazy, and not read yet

    def train() -> None:
        w = Tensor([1.0])
        optimizer = nn.optim.SGD([w], 0.1)
        with Tensor.train():
            (w * w).sum().backward()
            optimizer.step()

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    assert x.grad is not None and x.grad.tolist() == [2.0, 4.0]


def test_a_capture_keeps_gradients_of_earlier_graphs() -> None:
    w, x = Tensor([1.0, 2.0, 3.0]).realize(), Tensor([2.0, 2.0, 2.0]).realize()
    loss = (w * x).sum()
    double = TinyJit(lambda a: a * 2)
    double(x), double(x)
    loss.backward()
    assert w.grad is not None and w.grad.tolist() == [2.0, 2.0, 2.0]
    assert x.grad is not None and x.grad.tolist() == [1.0, 2.0, 3.0]


# --- waiting


def test_graphs_are_built_while_a_program_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Program runs for as long as another thread takes to build a graph, whose value waits for it."""
    n = 1013
    x = Tensor.arange(n, device="INTERP").realize()
    slow = (x * 3 + 1).sum()
    running, is_built = threading.Event(), threading.Event()
    load = InterpRuntime.load

    def load_slow(self: InterpRuntime, program: Program) -> Executable:
        executable = load(self, program)
        run = executable.run

        def run_slowly(*arguments: Any) -> None:
            running.set()
            assert is_built.wait(60), "no graph can be built while this runs"
            run(*arguments)

        monkeypatch.setattr(executable, "run", run_slowly)
        return executable

    monkeypatch.setattr(InterpRuntime, "load", load_slow)
    with ThreadPoolExecutor(1) as pool:
        computed = pool.submit(slow.realize)
        assert running.wait(60)
        built = (x + 1).sum() * 2
        assert not computed.done()
        is_built.set()
        assert built.item() == 2 * (n * (n - 1) // 2 + n)
        computed.result()
    assert slow.item() == 3 * (n * (n - 1) // 2) + n


@pytest.mark.parametrize("realizes", [False, True], ids=["building", "computing"])
def test_no_thread_starves_beside_one_that_never_pauses(realizes: bool) -> None:
    stop, x = threading.Event(), Tensor([1.0, 2.0, 3.0]).realize()
    y = Tensor.arange(4000, device="INTERP").realize()  # takes long enough to run without the lock

    def work() -> None:
        while not stop.is_set():
            z = (x + 1) * 2
            if realizes:
                z.realize(), (y + 1).realize()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for t in threads:
        t.start()
    try:
        waits = []
        for i in range(20):
            started = time.perf_counter()
            assert (x * i).sum().item() == 6 * i
            waits.append(time.perf_counter() - started)
    finally:
        stop.set()
        for t in threads:
            t.join()
    assert sorted(waits)[len(waits) // 2] < 2  # each of the others computes at most once in between


def test_a_finalizer_never_waits() -> None:
    """A thread that drops memory while another holds the lock goes on; the memory is freed afterwards."""
    done: list[int] = []

    @monitor.exclusive
    def drop() -> None:
        thread = threading.Thread(target=lambda: monitor.defer(lambda: done.append(1)))
        thread.start()
        thread.join(timeout=20)
        assert not thread.is_alive() and not done

    drop()
    monitor.defer(lambda: done.append(2))
    assert done == [1, 2]


# --- forks

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")


def in_child(work: Callable[[], bool], seconds: float = 60) -> bool:
    """What `work` says in a forked process; False also when it dies or does not end."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if work() else 1
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


@needs_fork
def test_a_forked_child_computes_after_the_workers_were_started() -> None:
    script = """
import os, numpy as np
from polygrad import Tensor, set_num_threads
set_num_threads(2)
a = np.random.default_rng(0).standard_normal((512, 512)).astype(np.float32)
def product():
    return (Tensor(a) @ Tensor(a)).numpy()
whole = product()
import threading
workers = [t for t in threading.enumerate() if t.name == "polygrad-1"]
assert len(workers) == 1, threading.enumerate()
child = os.fork()
if child == 0:
    same = np.array_equal(product(), whole)
    started = [t for t in threading.enumerate() if t.name == "polygrad-1" and t.is_alive()]
    os._exit(0 if same and len(started) == 1 and started[0] is not workers[0] else 1)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 0, status
assert np.array_equal(product(), whole)
"""
    root = Path(__file__).resolve().parent.parent
    environment = {**os.environ, "DEVICE": "CPU"}
    subprocess.run([sys.executable, "-c", script], check=True, cwd=root, env=environment, timeout=120)


@needs_fork
@pytest.mark.parametrize("device", CPU_FIRST)
def test_a_fork_waits_for_other_threads_and_the_child_computes(device: str) -> None:
    x = Tensor([1.0, 2.0, 3.0], device=device).realize()
    stop = threading.Event()

    def work(seed: int) -> None:
        rng = random.Random(seed)
        while not stop.is_set():  # sizes that are new: kernels are compiled, by threads of a pool
            (x.reshape(1, 3).expand(rng.randint(2, 900), 3) * rng.randint(1, 3) + 1).sum().realize()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for t in threads:
        t.start()
    try:
        for _ in range(20):
            assert in_child(lambda: (x * os.getpid()).tolist() == [k * os.getpid() for k in (1.0, 2.0, 3.0)])
    finally:
        stop.set()
        for t in threads:
            t.join()
    assert (x * 2).tolist() == [2.0, 4.0, 6.0]


# --- free-threaded Python


def test_free_threaded_python_is_warned_of() -> None:
    script = "import sys; sys._is_gil_enabled = lambda: False; import polygrad"
    run = subprocess.run([sys.executable, "-W", "always", "-c", script], capture_output=True, text=True)
    assert run.returncode == 0 and "PYTHON_GIL=1" in run.stderr
