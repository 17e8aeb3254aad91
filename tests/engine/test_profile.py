"""Profiles: they name every launch, and change nothing of what is computed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from polygrad import Tensor, TinyJit, compile_step, nn
from polygrad.capture.step import CompiledStep
from polygrad.engine.compile import _kept_graphs, _kernels
from polygrad.engine.profile import Profile, profile
from polygrad.engine.recording import watch
from polygrad.errors import ArgumentError, CaptureError

pytestmark = pytest.mark.usefixtures("default_device")

BRIEF = 0.005  # seconds


def training() -> tuple[CompiledStep, Tensor, Tensor]:
    """A step with dropout, so that random numbers are part of its state, and its data."""
    Tensor.manual_seed(3)
    layers = [nn.Linear(6, 9), Tensor.relu, lambda x: x.dropout(0.3), nn.Linear(9, 3)]
    optimizer = nn.optim.Adam(nn.state.get_parameters(layers), lr=0.01)
    x, y = Tensor.rand(8, 6).realize(), Tensor([0, 1, 2, 0, 1, 2, 0, 1]).realize()
    step = compile_step(lambda m, a, b: a.sequential(m).cross_entropy(b), layers, optimizer, x, y)
    return step, x, y


def counting(compute: Callable[[], object]) -> tuple[Callable[[], object], list[int]]:
    calls = [0]

    def call() -> object:
        calls[0] += 1
        return compute()

    return call, calls


def names(found: Profile) -> list[str]:
    return [launch.origin.kernel.name for launch in found.launches]


def test_a_profiled_training_step_trains_on_as_if_nobody_had_looked(device: str) -> None:
    step, x, y = training()
    call, calls = counting(lambda: step.run(x, y))
    found = profile(call, BRIEF)
    profiled = step.loss_value()
    plain, x, y = training()
    for _ in range(calls[0]):
        plain.run(x, y)
    assert profiled == plain.loss_value()
    assert calls[0] >= 4 and found.rounds >= 1


def test_the_launches_are_those_of_the_program_with_their_code(device: str) -> None:
    step, x, y = training()
    found = profile(lambda: step.run(x, y), BRIEF)
    program = step.program
    assert names(found) == [program.kernels[x.kernel].name for x in program.launches]
    for launch, original in zip(found.launches, program.launches, strict=True):
        assert launch.origin.kernel.code
        assert launch.buffers == tuple(program.buffers[b.buffer] for b in original.bindings)
        assert launch.seconds > 0
    assert found.seconds > 0


def test_a_function_that_is_not_captured_yet_is_captured_first(device: str) -> None:
    a = np.random.default_rng(0).standard_normal((5, 7)).astype(np.float32)
    x = Tensor(a).realize()
    double = TinyJit(lambda: (x * 2).sum(axis=0).realize())
    found = profile(double, BRIEF)
    assert len(found.launches) == 1
    np.testing.assert_allclose(double().numpy(), 2 * a.sum(axis=0), rtol=1e-5, atol=1e-6)


def test_what_is_computed_already_launches_nothing(device: str) -> None:
    x = Tensor([1.0, 2.0]).realize()
    assert profile(x.realize, BRIEF).launches == ()


def test_other_kernels_in_each_call_are_an_error() -> None:
    sizes = iter(range(2, 100))
    with pytest.raises(ArgumentError, match=r"launched other kernels than the call before.*capture it"):
        profile(lambda: (Tensor.ones(next(sizes)).contiguous() * 3).realize(), BRIEF)
    assert watch.runner is None


def test_kernels_that_change_later_are_an_error() -> None:
    sizes = iter([7] * 4 + [8] * 1000)
    data = {n: Tensor([1.0] * n).realize() for n in (7, 8)}
    with pytest.raises(ArgumentError, match="a call launched the kernels"):
        profile(lambda: TinyJit(lambda: (data[next(sizes)] * 3).realize())(), 0.5)
    assert watch.runner is None


def test_an_exception_of_the_computation_passes_and_ends_the_profile() -> None:
    def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        profile(fail)
    assert watch.runner is None


def test_no_profile_inside_a_profile_or_a_capture() -> None:
    with pytest.raises(CaptureError, match="another profile is active"):
        profile(lambda: profile(lambda: None))
    x = Tensor([1.0]).realize()

    def body() -> Tensor:
        profile(lambda: None)
        return x + 1

    captured = TinyJit(body)
    captured()
    with pytest.raises(CaptureError, match="a profile"):
        captured()


def test_a_kernel_that_is_no_longer_in_memory_is_an_error() -> None:
    step, x, y = training()
    step.run(x, y)
    _kernels.clear()
    _kept_graphs.clear()  # it is compiled again from a graph whose Program came from the disk
    with pytest.raises(CaptureError, match="capture the function again"):
        profile(lambda: step.run(x, y))
    assert watch.runner is None
    step.run(x, y)  # it runs as before


def test_printed_it_is_a_table_of_its_kernels_the_longest_first() -> None:
    a, b = Tensor.rand(64, 64).realize(), Tensor.rand(64, 64).realize()
    found = profile(TinyJit(lambda: ((a @ b).softmax(1) @ b).sum().realize()), BRIEF)
    headline, head, line, *rows = str(found).splitlines()
    assert (
        headline.startswith(f"{len(found.launches)} launches, ")
        and f"mean of {found.rounds} calls" in headline
    )
    assert head.split() == ["kernel", "device", "launches", "time", "share", "operations", "memory"]
    assert set(line) <= {"-", " "} and len(rows) == len(set(names(found)))
    assert {row.split()[0] for row in rows} == set(names(found)) and {row.split()[1] for row in rows} == {
        "CPU"
    }
    shares = [float(row.partition(" %")[0].split()[-1]) for row in rows]
    assert shares == sorted(shares, reverse=True) and abs(sum(shares) - 100) < 0.5
    assert all(row.endswith("B/s") and "FLOP/s" in row for row in rows)
    assert repr(found) == str(found)


def test_launches_of_one_kernel_are_one_row() -> None:
    a, b = Tensor.rand(16, 16).realize(), Tensor.rand(16, 16).realize()
    found = profile(TinyJit(lambda: ((a @ b).contiguous() @ b).realize()), BRIEF)
    (name,) = set(names(found))
    assert str(found).splitlines()[-1].split()[:3] == [name, "CPU", "2"]
    assert "<table>" in found._repr_html_() and found._repr_html_().count("<tr>") == 2
