"""Lines of a program and the launches that they become, while they are recorded."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from polygrad import Context, Tensor, TinyJit, compile_step, nn
from polygrad.engine.profile import Profile, profile
from polygrad.errors import AnomalyError, CaptureError
from polygrad.runtime.program import Program
from polygrad.tensor.origins import recorded_origins
from polygrad.uop.origins import watch

pytestmark = pytest.mark.usefixtures("default_device")

BRIEF = 0.001  # seconds


def launched(compute: Callable[[], Any]) -> Profile:
    return profile(TinyJit(compute), BRIEF)


def lines_of(result: Profile, function: Callable[..., Any]) -> list[list[tuple[int, bool]]]:
    """The lines of each launch, counted from that of `function`."""
    first = inspect.getsourcelines(function)[1]
    for launch in result.launches:
        assert all(place.file == __file__ for place in launch.places), launch.places
    return [[(place.line - first, place.gradient) for place in launch.places] for launch in result.launches]


def test_a_kernel_has_the_lines_of_what_it_computes_the_result_first(device: str) -> None:
    x, w = Tensor.rand(64, 64).realize(), Tensor.rand(64, 10).realize()

    def compute() -> Tensor:
        a = x @ w
        b = a.contiguous()
        c = b.exp()
        return c * 2

    with recorded_origins():
        result = launched(compute)
    lines = lines_of(result, compute)
    assert [line for line, _ in lines[-1]] == [4, 3]
    assert {line for launch in lines[:-1] for line, _ in launch} <= {1, 2}


def test_equal_kernels_of_several_lines_keep_their_own(device: str) -> None:
    x = Tensor.rand(32, 32).realize()

    def compute() -> Tensor:
        a = (x @ x).contiguous()
        return (a @ a).contiguous()

    with recorded_origins():
        result = launched(compute)
    first, second = result.launches
    assert first.origin.kernel.name == second.origin.kernel.name
    assert [line for launch in lines_of(result, compute) for line, _ in launch] == [1, 2]


def test_a_gradient_has_the_line_of_what_it_is_the_gradient_of(device: str) -> None:
    Tensor.manual_seed(0)
    layers = [nn.Linear(8, 16), nn.Linear(16, 4)]
    optimizer = nn.optim.SGD(nn.state.get_parameters(layers), lr=0.1)
    x = Tensor.rand(4, 8).realize()

    def loss(layers: list[nn.Linear], x: Tensor) -> Tensor:
        hidden = layers[0](x)
        out = layers[1](hidden.relu())
        return out.square().mean()

    with recorded_origins():
        step = compile_step(loss, layers, optimizer, x)
        result = profile(step.run, BRIEF)
    first = inspect.getsourcelines(loss)[1]
    own = {(p.line - first, p.gradient) for launch in result.launches for p in launch.places}
    assert {(1, False), (2, False), (3, False), (2, True)} <= own
    assert all(launch.places for launch in result.launches)  # the optimizer's, too
    assert all(p.file == __file__ for launch in result.launches for p in launch.places)


def test_writes_in_place_and_joined_kernels_have_lines(device: str) -> None:
    x = Tensor.rand(8, 256).realize()
    total = Tensor.zeros(8, 256).contiguous().realize()

    def compute() -> Tensor:
        y = x.softmax(1)
        total.assign(total + y)
        return total

    with recorded_origins():
        result = launched(compute)
    found = {line for launch in lines_of(result, compute) for line, _ in launch}
    assert found == {1, 2}


def test_a_place_may_be_given_by_whoever_records() -> None:
    x = Tensor.rand(4).realize()
    with recorded_origins(lambda: ("program.js", 7)):
        result = launched(lambda: x + 1)
    assert [launch.places for launch in result.launches] == [(("program.js", 7, False),)]


def test_nothing_remains_when_it_ends(device: str) -> None:
    x = Tensor.rand(16).realize()
    before = (x * 3).tolist()
    with recorded_origins():
        assert (x * 3).tolist() == before
        recorded = launched(lambda: x * 3)
    assert watch.origins is None
    assert (x * 3).tolist() == before
    plain = launched(lambda: x * 3)
    assert recorded.launches[0].places and not plain.launches[0].places
    assert recorded.launches[0].program.to_bytes() == plain.launches[0].program.to_bytes()
    assert Program.from_bytes(recorded.launches[0].program.to_bytes()) == plain.launches[0].program


def test_it_ends_after_an_error_and_does_not_nest() -> None:
    with pytest.raises(ZeroDivisionError), recorded_origins():
        raise ZeroDivisionError
    assert watch.origins is None
    with recorded_origins(), pytest.raises(CaptureError, match="no such block inside of another"):
        with recorded_origins():
            raise AssertionError
    assert watch.origins is None


def test_it_works_beside_the_search_for_nan() -> None:
    x = Tensor([1.0, 0.0]).realize()
    with recorded_origins():
        with Context(ANOMALY=1), pytest.raises(AnomalyError, match=r"log .*test_origins\.py"):
            (x - 1).log()
        result = launched(lambda: x * 5)
    assert result.launches[0].places
    (x - 1).log().tolist()  # nobody looks


def test_a_decorator_of_the_standard_library_is_no_line_of_the_program() -> None:
    parameter = Tensor([1.0, 2.0], requires_grad=True)
    optimizer = nn.optim.SGD([parameter], lr=0.1)
    parameter.square().sum().backward()
    with recorded_origins(), Tensor.train():
        optimizer.schedule_step()
        assert watch.origins is not None
        seen = [place for place in watch.origins._origins.values() if place is not None]
    assert seen and {place.file for place in seen} == {__file__}
