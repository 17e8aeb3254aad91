"""Devices that fail at the n-th call: an allocation for which there is no memory, and any call of CUDA's
driver. Then there is an error of polygrad, values are those from before or after the step, and the next step
is right."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from adapter import WEBGPU
from c_compiler import SLOW_CC
from conftest import EMULATED_DRIVER
from works import (
    WORK,
    Work,
    assignment,
    check_after,
    ready,
    replay,
    search,
    set_item,
    sharded_assignment,
    sharded_replay,
    trajectory,
    write_to_view,
)

from polygrad import Device, Tensor
from polygrad.engine import programs
from polygrad.errors import DeviceError, InterruptedWriteError, OutOfMemoryError
from polygrad.uop.intern import collect

pytestmark = pytest.mark.usefixtures("default_device")

DEVICES = ["CPU", "WASM", "INTERP", SLOW_CC, WEBGPU, EMULATED_DRIVER]
SEVERAL = [work for work in WORK if work is not search]
SHARDED = (sharded_assignment, sharded_replay)
IN_PLACE = (
    assignment,
    replay,
    set_item,
    sharded_assignment,
    write_to_view,
)  # a second step allocates nothing


def skip_if_single(make: Callable[[], Work], device: str) -> None:
    if make in SHARDED and device in ("WEBGPU", "EMULATED_DRIVER"):
        pytest.skip("the process has one such device")


@contextmanager
def without_memory_at(number: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Inside, there is no memory for the allocation of this number, from 0 on, and when it is tried once
    more. Gives a list of the sizes that were asked for."""
    asked: list[int] = []
    runtimes = list(Device._runtimes.values())

    def failing(allocate: Callable[[int], Any]) -> Callable[[int], Any]:
        def call(nbytes: int) -> Any:
            asked.append(nbytes)
            if number <= len(asked) - 1 <= number + 1:
                raise OutOfMemoryError(f"no room for {nbytes} bytes")
            return allocate(nbytes)

        return call

    with monkeypatch.context() as patch:
        for runtime in runtimes:
            patch.setattr(runtime, "allocate", failing(runtime.allocate), raising=False)
        yield asked


def check_without_memory(
    make: Callable[[], Work], before: int, numbers: Iterable[int], monkeypatch: pytest.MonkeyPatch
) -> int:
    """Let there be no memory for some allocations of a step; how often that was an error."""
    wanted, errors = trajectory(make, before + 3), 0
    for number in numbers:
        work = ready(make, before)
        programs._arenas.clear()
        collect()  # values of the step before
        failed = False
        with without_memory_at(number, monkeypatch) as asked:
            try:
                work.act()
            except OutOfMemoryError as error:
                assert "no room for" in str(error)
                failed = True
        if failed:
            errors += 1
            check_after(work, wanted, before)
            continue
        assert work.state() == wanted[before + 1]
        if len(asked) <= number:
            break
    return errors


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("make", SEVERAL, ids=lambda w: w.__name__)
def test_after_an_allocation_without_memory_the_next_step_is_right(
    make: Callable[[], Work], device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_if_single(make, device)
    errors = check_without_memory(make, 1, range(3), monkeypatch)
    assert (errors > 0) == (make not in IN_PLACE)


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("before", [0, 1, 2])
@pytest.mark.parametrize("make", SEVERAL, ids=lambda w: w.__name__)
def test_after_any_allocation_without_memory_the_next_step_is_right(
    make: Callable[[], Work], before: int, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_if_single(make, device)
    check_without_memory(make, before, itertools.count(), monkeypatch)


# --- CUDA's driver


class FailingDriver:
    """CUDA's driver, whose call `at`, counted from 0, is not made and gives an error."""

    def __init__(self, driver: Any, at: int, error: Any) -> None:
        self.driver, self.at, self.error, self.calls = driver, at, error, 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.driver, name)
        if not (name.startswith("cu") and name[2].isupper()):
            return found

        def call(*arguments: Any) -> tuple[Any, ...]:
            self.calls += 1
            return (self.error, None) if self.calls - 1 == self.at else found(*arguments)

        return call


def check_driver(
    make: Callable[[], Work],
    before: int,
    numbers: Iterable[int],
    error: str,
    monkeypatch: pytest.MonkeyPatch,
) -> int:
    """Let calls of CUDA's driver fail in a step; how often that was an error."""
    native = pytest.importorskip("polygrad.runtime.cuda.native")
    wanted, errors = trajectory(make, before + 3), 0
    for number in numbers:
        work = ready(make, before)
        collect()
        failed = False
        driver = FailingDriver(native.driver, number, getattr(native.driver.CUresult, error))
        with monkeypatch.context() as patch:
            patch.setattr(native, "driver", driver)
            try:
                work.act()
            except (DeviceError, OutOfMemoryError) as e:
                assert any(words in str(e) for words in ("failed", "no room for", "is lost"))
                failed = True
        if not failed:
            assert work.state() == wanted[before + 1]
            if driver.calls <= number:
                break
            continue
        errors += 1
        try:
            work.state()
        except DeviceError as e:
            assert "is lost" in str(e)
        except InterruptedWriteError as e:
            assert "replace" in str(e)
        else:
            if "ILLEGAL" not in error:  # which loses the context, and all that is on the GPU
                check_after(work, wanted, before)
                continue
        work = ready(make, before)
        work.act()
        assert work.state() == wanted[before + 1]
    return errors


CUDA_ERRORS = [
    "CUDA_ERROR_OUT_OF_MEMORY",
    "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
    "CUDA_ERROR_ILLEGAL_ADDRESS",
]


def test_what_can_be_computed_again_is_after_a_device_was_lost() -> None:
    """Also where older Tensors live that the same operations have made of the same values."""
    native = pytest.importorskip("polygrad.runtime.cuda.native")
    if shutil.which("g++") is None:
        pytest.skip("there is no g++")
    gpu, weight = "EMULATED_DRIVER", Tensor([1.0, 2.0], device="CPU").realize()
    own = Tensor([1.0], device=gpu).realize()

    def computed() -> list[Tensor]:
        copy = weight.to(gpu)
        return [copy, copy + 1, Tensor.arange(2.0, device=gpu).contiguous()]

    older = [x.realize() for x in computed()]
    fails = (native.driver.CUresult.CUDA_ERROR_ILLEGAL_ADDRESS, None)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(DeviceError, match="all that it held is lost"):
        patch.setattr(native, "driver", FailingDriver(native.driver, 0, fails[0]))
        (own + 1).realize()
    assert (Tensor([3.0], device=gpu) * 2).tolist() == [6.0]
    assert [x.tolist() for x in computed()] == [[1.0, 2.0], [2.0, 3.0], [0.0, 1.0]]
    for lost in (own, *older):  # they say so, or are computed again
        try:
            assert lost.tolist() in ([1.0, 2.0], [2.0, 3.0], [0.0, 1.0])
        except DeviceError as e:
            assert "is lost" in str(e)
    with pytest.raises(DeviceError, match="is lost"):
        own.tolist()


@pytest.mark.parametrize("device", [EMULATED_DRIVER])
@pytest.mark.parametrize("error", CUDA_ERRORS)
@pytest.mark.parametrize("before", [1, 2])
@pytest.mark.parametrize("make", SEVERAL, ids=lambda w: w.__name__)
def test_after_any_call_of_the_driver_that_fails_the_next_step_is_right(
    make: Callable[[], Work], before: int, error: str, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_if_single(make, device)
    assert check_driver(make, before, itertools.count(), error, monkeypatch) > 0
