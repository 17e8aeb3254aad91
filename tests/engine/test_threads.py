"""Kernels that threads divide: what they compute does not depend on how many there are, by the bit."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest
from c_compiler import SLOW_CC

import polygrad
from polygrad import Device, Tensor, TinyJit, Variable, get_num_threads, nn, set_num_threads
from polygrad.engine import programs
from polygrad.errors import ArgumentError, ProgramError
from polygrad.runtime.program import Program


@pytest.fixture(autouse=True, params=["CPU", SLOW_CC])
def _default(request):
    device, threads = Device.DEFAULT, get_num_threads()
    Device.DEFAULT = request.param
    yield
    Device.DEFAULT = device
    set_num_threads(threads)


def data(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def matmul():
    return Tensor(data(160, 200)) @ Tensor(data(200, 176, seed=1))


def matmul_of_a_long_stride():
    return Tensor(data(256, 1024)) @ Tensor(data(1024, 512, seed=1)).T.contiguous().T


def batched_matmul():
    return Tensor(data(3, 96, 96)) @ Tensor(data(3, 96, 96, seed=1))


def softmax():
    return Tensor(data(301, 515)).softmax(-1)


def reduce_rows():
    return Tensor(data(511, 1030)).sum(-1)


def reduce_columns():
    return Tensor(data(1030, 511)).max(0)


def reduce_all():
    return (Tensor(data(1023, 1025)) * 2).sum()


def elementwise():
    return (Tensor(data(1 << 20)).exp() + 1).log().sin()


def several_kernels():
    x = Tensor(data(384, 384))
    y = ((x @ x).relu() @ x).softmax(-1)
    return (y - y.mean(0)).contiguous() @ x + y.sum()


def convolution():
    return Tensor(data(4, 8, 40, 40)).conv2d(Tensor(data(16, 8, 3, 3, seed=1))).relu()


BODIES = [
    matmul, matmul_of_a_long_stride, batched_matmul, softmax, reduce_rows, reduce_columns, reduce_all,
    elementwise, several_kernels, convolution,
]  # fmt: skip


def parallel_kernels(program: Program) -> list[bool]:
    return [program.kernels[x.kernel].parallel for x in program.launches]


def recorded(body) -> list[Program]:
    """The Programs that `body` runs."""
    seen: list[Program] = []
    perform = programs._perform

    def note(ready, *rest):
        seen.append(ready.compiled.program)
        perform(ready, *rest)

    programs._perform = note
    try:
        body().realize()
    finally:
        programs._perform = perform
    return seen


@pytest.mark.parametrize("body", BODIES, ids=lambda f: f.__name__)
def test_results_are_the_same_by_the_bit_with_any_number_of_threads(body):
    results = []
    for threads in (1, 2, 3, 4, 2, 1):
        set_num_threads(threads)
        results.append(body().numpy())
    assert all((r == results[0]).all() for r in results[1:])


def test_large_kernels_are_divided_and_small_ones_are_not():
    assert any(parallel_kernels(recorded(several_kernels)[-1]))
    small = recorded(lambda: Tensor(data(8, 8)) @ Tensor(data(8, 8)))[-1]
    assert not any(parallel_kernels(small)) and small.threads == 1


def test_captured_results_are_the_same_by_the_bit():
    x, y = Tensor(data(384, 384)).realize(), Tensor(data(384, 384, seed=1)).realize()

    @TinyJit
    def step(x, y):
        z = (x @ y).softmax(-1)
        small = z[:4, :4].contiguous().sum(0)
        return z @ x + small.sum(), small

    for _ in range(2):
        step(x, y)
    results = []
    for threads in (1, 2, 3, 4, 1):
        set_num_threads(threads)
        results.append([r.numpy().copy() for r in step(x, y)])
    for large, small in results[1:]:
        assert (large == results[0][0]).all() and (small == results[0][1]).all()


@pytest.mark.parametrize("captured", [False, True])
def test_training_steps_are_the_same_by_the_bit(captured):
    def train(threads: int) -> list[np.ndarray]:
        set_num_threads(threads)
        Tensor.manual_seed(3)
        layers = [nn.Linear(300, 400), nn.Linear(400, 200)]
        optimizer = nn.optim.Adam(nn.state.get_parameters(layers), lr=0.01)
        x, goal = Tensor(data(96, 300)).realize(), Tensor(data(96, 200, seed=1)).realize()

        def step(x, goal):
            optimizer.zero_grad()
            loss = ((layers[1](layers[0](x).relu()) - goal) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss.realize()

        run = TinyJit(step) if captured else step
        with Tensor.train():
            losses = [run(x, goal).numpy().copy() for _ in range(5)]
        assert losses[-1] < losses[0]
        return [*losses, *(p.numpy() for p in nn.state.get_parameters(layers))]

    first, *others = [train(threads) for threads in (1, 2, 3)]
    for other in others:
        assert all((a == b).all() for a, b in zip(first, other, strict=True))


def test_symbolic_sizes():
    x = Tensor(data(300, 300)).realize()
    for rows in (7, 300, 123):
        results = []
        for threads in (1, 2, 3):
            set_num_threads(threads)
            n = Variable("rows", 1, 300).bind(rows)
            results.append((x[:n] @ x).sum(0).numpy())
        assert (results[0] == results[1]).all() and (results[0] == results[2]).all()
        np.testing.assert_allclose(results[0], (x.numpy()[:rows] @ x.numpy()).sum(0), atol=1e-2)


def test_programs_go_through_bytes_with_their_bound():
    program = recorded(matmul)[-1]
    assert program.threads > 1
    assert Program.from_bytes(program.to_bytes()) == program


def test_a_program_runs_with_no_more_threads_than_its_bound():
    set_num_threads(64)
    assert (matmul().numpy() == matmul().numpy()).all()


def test_errors_leave_the_threads_fit():
    set_num_threads(2)
    program = recorded(matmul)[-1]
    executable = Device[Device.DEFAULT].load(program)
    for _ in range(3):
        with pytest.raises(ProgramError):
            executable.run([None] * len(program.buffers), None, {})
        before = matmul().numpy()
    assert (matmul().numpy() == before).all()


def test_python_threads_run_programs_at_the_same_time():
    set_num_threads(2)
    x = data(192, 192)
    program = recorded(lambda: Tensor(x) @ Tensor(x))[-1]
    expected = (Tensor(x) @ Tensor(x)).numpy()
    runtime = Device[Device.DEFAULT]
    wrong: list[int] = []

    def work(i: int) -> None:
        executable = runtime.load(program)
        handles = [None if b.role == "scratch" else runtime.allocate(x.nbytes) for b in program.buffers]
        arena = runtime.allocate(program.arena) if program.arena else None
        for handle, buffer in zip(handles, program.buffers, strict=True):
            if buffer.role == "input":
                runtime.write(handle, 0, memoryview(x).cast("B"))
        output = next(h for h, b in zip(handles, program.buffers, strict=True) if b.role == "output")
        for _ in range(100):
            executable.run(handles, arena, {})
            got = np.frombuffer(runtime.read(output, 0, x.nbytes), np.float32)
            if (got != expected.ravel()).any():
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# --- how many


@pytest.mark.parametrize("n", [0, -1, 1.5, "2", None, True, 1025])
def test_set_num_threads_refuses_what_is_no_number_of_threads(n):
    with pytest.raises(ArgumentError, match="expected an integer from 1 to 1024"):
        set_num_threads(n)


def test_the_number_is_what_was_set():
    set_num_threads(3)
    assert get_num_threads() == polygrad.get_num_threads() == 3


@pytest.mark.parametrize("name", ["thread", "threads", "part", "parts"])
def test_variables_may_not_have_the_names_that_kernels_use(name):
    with pytest.raises(ArgumentError, match=name):
        Variable(name, 1, 3)


@pytest.mark.parametrize(
    ("given", "printed"),
    [
        ("3", "3"),
        ("1", "1"),
        ("", "default"),
        ("0", "ArgumentError"),
        ("many", "ArgumentError"),
        ("-1", "ArgumentError"),
    ],
)
def test_the_environment_says_how_many(given, printed, monkeypatch):
    code = """
import os, polygrad
try:
    n = polygrad.get_num_threads()
except polygrad.errors.ArgumentError as e:
    assert "POLYGRAD_THREADS" in str(e)
    print("ArgumentError")
else:
    print("default" if not os.environ["POLYGRAD_THREADS"] and n >= 1 else n)
"""
    monkeypatch.setenv("POLYGRAD_THREADS", given)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == printed
