"""Devices that fail while a write to memory on several devices runs: all have written, or none, or the Tensor
says that its contents are lost. What does not use it goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from polygrad import Tensor, TinyJit
from polygrad.engine.running import run_program
from polygrad.errors import DeviceError, InterruptedWriteError
from polygrad.runtime.program import Program

THREE = ("CPU", "CPU:1", "CPU:2")
ROWS = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
WRITTEN = [[3.0, 5.0], [7.0, 9.0], [11.0, 13.0]]  # twice the rows, plus 1


@contextmanager
def failing(monkeypatch: pytest.MonkeyPatch, fails: Callable[[int, Program], bool]) -> Iterator[None]:
    """Inside, runs for which `fails`, of their number from 0 on and their Program, raise before they begin;
    one does."""
    count = 0

    def run(executable: Any, program: Program, *arguments: Any) -> None:
        nonlocal count
        count += 1
        if fails(count - 1, program):
            raise DeviceError(f"{program.device} is out of order")
        run_program(executable, program, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr("polygrad.engine.programs.run_program", run)
        with pytest.raises(DeviceError, match="is out of order"):
            yield


def sharded(axis: int | None = 0) -> Tensor:
    return Tensor(ROWS, device="CPU").shard(THREE, axis).realize()


def captures_work() -> bool:
    step = TinyJit(lambda a: (a + 1).realize())
    return [step(Tensor([float(i)]).realize()).item() for i in range(4)] == [1, 2, 3, 4]


@pytest.mark.parametrize("axis", [0, None])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_device_that_fails_once_has_written_with_the_others_or_writes_when_it_is_read(
    number: int, axis: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = sharded(axis)
    view, lazy_before = x.permute(1, 0), x * 10
    x.assign(x * 2 + 1)
    lazy_after = x + 1
    with failing(monkeypatch, lambda n, _: n == number + 3):  # first, each device computes `lazy_before`
        x.realize()
    assert captures_work()
    assert lazy_after.tolist() == [[4.0, 6.0], [8.0, 10.0], [12.0, 14.0]]
    assert x.tolist() == WRITTEN and view.tolist() == [[3.0, 7.0, 11.0], [5.0, 9.0, 13.0]]
    assert lazy_before.tolist() == [[10.0, 20.0], [30.0, 40.0], [50.0, 60.0]]
    x.assign(x - 1).realize()
    assert x.tolist() == [[2.0, 4.0], [6.0, 8.0], [10.0, 12.0]]


def test_a_copy_that_waits_for_the_write_keeps_the_old_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    x = sharded()
    y = Tensor.zeros(3, 2).shard(THREE, 0).realize()
    y.assign(y + x)
    both = x.detach() + y  # reads old elements, and waits for a write
    x.assign(x * 2 + 1)
    with failing(monkeypatch, lambda n, _: n == 4):
        (both + x).realize()
    assert (both + x).tolist() == [[5.0, 9.0], [13.0, 17.0], [21.0, 25.0]]
    assert both.tolist() == [[2.0, 4.0], [6.0, 8.0], [10.0, 12.0]] and y.tolist() == ROWS


def test_a_device_that_fails_always_loses_what_others_have_written_and_the_tensor_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x, other = sharded(), sharded()
    view, sum_before = x[:, 0], x.sum().realize()
    with failing(monkeypatch, lambda _, program: program.device == "CPU:1"):
        x.assign(x * 2 + 1).realize()
    message = (
        r"memory of 8 bytes on CPU\S*, last written at .*test_lost_contents.py:\d+: its contents are lost, "
        r"as CPU:1, CPU:2 did not write when other devices had written "
        r"\(DeviceError: CPU:1 is out of order\): give the Tensor new memory with replace"
    )
    for use in (x.tolist, view.tolist, (x + 1).tolist, lambda: x.assign(x + 1).realize()):
        with pytest.raises(InterruptedWriteError, match=message):
            use()
    assert sum_before.item() == 21 and other.tolist() == ROWS and captures_work()
    other.assign(other * 2 + 1).realize()
    assert other.tolist() == WRITTEN
    x.replace(sharded())
    x.assign(x * 2 + 1).realize()
    assert x.tolist() == WRITTEN


def test_the_first_device_that_fails_always_leaves_all_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    x = sharded()
    x.assign(x * 2 + 1)
    for _ in range(3):
        with failing(monkeypatch, lambda _, program: program.device == "CPU"):
            x.realize()
    assert x.tolist() == WRITTEN


def test_a_write_to_one_device_beside_that_to_several_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        x, y = sharded(), Tensor([1.0], device="CPU:3").realize()
        x.assign(x * 2 + 1)
        y.assign(y + 1)
        with failing(monkeypatch, lambda n, _, number=number: n == number):  # type: ignore[misc]
            x.realize(y)
        assert x.tolist() == WRITTEN and y.tolist() == [2.0]


# --- captured functions


def captured() -> tuple[Tensor, Callable[[], Tensor]]:
    """A Tensor on several devices, and a function that writes to it, captured, which has several Programs."""
    x = sharded()

    @TinyJit
    def step() -> Tensor:
        x.assign(x + x.sum()).realize()
        return (x * 2).realize()

    for _ in range(3):
        x.assign(sharded()).realize()
        assert step().tolist() == [[44.0, 46.0], [48.0, 50.0], [52.0, 54.0]]
    x.assign(sharded()).realize()
    return x, step


STEPPED = [[22.0, 23.0], [24.0, 25.0], [26.0, 27.0]]


def test_a_replay_in_which_a_device_fails_once_is_made_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for number in range(6):
        x, step = captured()
        with failing(monkeypatch, lambda n, _, number=number: n == number):  # type: ignore[misc]
            step()
        found.append(x.tolist())
        x.assign(sharded()).realize()
        assert step().tolist() == [[44.0, 46.0], [48.0, 50.0], [52.0, 54.0]] and x.tolist() == STEPPED
    assert found == [ROWS] + [STEPPED] * 5


def test_after_a_replay_in_which_a_device_fails_always_no_step_uses_what_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x, step = captured()
    reads = TinyJit(lambda: (x + 1).realize())
    for _ in range(3):
        reads()
    with failing(monkeypatch, lambda n, program: program.device == "CPU:1" and n > 3):
        step()
    for use in (x.tolist, step, reads):
        for _ in range(2):
            with pytest.raises(InterruptedWriteError, match=r"ended with DeviceError .* replace"):
                use()
    assert captures_work()
    x.replace(sharded())
    assert reads().tolist() == [[2.0, 3.0], [4.0, 5.0], [6.0, 7.0]]
    assert step().tolist() == [[44.0, 46.0], [48.0, 50.0], [52.0, 54.0]] and x.tolist() == STEPPED
    assert reads().tolist() == [[23.0, 24.0], [25.0, 26.0], [27.0, 28.0]]
