"""`await t.data_async()` under CPython: the loop goes on, and the elements are those at the call."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable

import pytest

from polygrad import Tensor, TinyJit, nn
from polygrad.errors import CaptureError

pytestmark = pytest.mark.usefixtures("default_device")


def test_other_tasks_run_while_elements_are_computed(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The computation waits for another task, which it would do for ever if it held up the loop."""
    other_task, threads = threading.Event(), []
    data = Tensor.data

    def slow_data(tensor: Tensor) -> memoryview:
        threads.append(threading.current_thread())
        assert other_task.wait(60)
        return data(tensor)

    async def main() -> list[float]:
        reading = asyncio.ensure_future((Tensor([1.0, 2.0]) * 3).data_async())
        while not threads:
            await asyncio.sleep(0.001)
        other_task.set()
        return (await reading).tolist()

    monkeypatch.setattr(Tensor, "data", slow_data)
    assert asyncio.run(main()) == [3.0, 6.0]
    assert threads != [threading.main_thread()]


def test_writes_after_the_call_do_not_change_the_elements(device: str) -> None:
    async def main() -> list[list[float]]:
        x = Tensor([[1.0, 2.0], [3.0, 4.0]]).realize()
        lazy = x * 10
        tasks = [asyncio.ensure_future(t.data_async()) for t in (x, x[1], lazy)]
        await asyncio.sleep(0)  # they begin
        x.assign(x + 100).realize()
        found = [(await task).tolist() for task in tasks]
        assert x.tolist() == [[101.0, 102.0], [103.0, 104.0]]
        return found

    assert asyncio.run(main()) == [[[1.0, 2.0], [3.0, 4.0]], [3.0, 4.0], [[10.0, 20.0], [30.0, 40.0]]]


def test_many_reads_and_replays_at_once(device: str) -> None:
    step = TinyJit(lambda x: (x * 2 + 1).realize())

    async def one(i: int) -> float:
        return (await (Tensor([float(i)]) + step(Tensor([float(i)]).realize())).data_async()).tolist()[0]

    async def main() -> list[float]:
        return await asyncio.gather(*[one(i) for i in range(40)])

    assert asyncio.run(main()) == [3.0 * i + 1 for i in range(40)]


def test_a_cancelled_read_leaves_nothing(device: str) -> None:
    async def main() -> list[float]:
        x = Tensor([1.0, 2.0])
        task = asyncio.ensure_future(x.data_async())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return (await (x + 1).data_async()).tolist()

    assert asyncio.run(main()) == [2.0, 3.0]


def test_a_captured_function_cannot_read() -> None:
    def read(x: Tensor) -> Tensor:
        with contextlib.suppress(StopIteration):
            (x + 1).data_async().send(None)
        return (x + 1).realize()

    jit = TinyJit(read)
    with pytest.raises(CaptureError, match="a reading of values"):
        for _ in range(3):
            jit(Tensor([1.0]).realize())


def test_without_a_loop_it_reads_at_once(device: str) -> None:
    with pytest.raises(StopIteration) as done:
        (Tensor([1.0, 2.0]) + 1).data_async().send(None)
    assert done.value.value.tolist() == [2.0, 3.0]


def test_steps_in_a_thread_train_as_they_do_without_one(device: str) -> None:
    """Training mode is a thread's, so the step sets it; other tasks go on."""
    batches = [Tensor([[1.0, float(i)]]).realize() for i in range(5)]

    def new_step() -> tuple[Tensor, Callable[..., Tensor]]:
        Tensor.manual_seed(3)
        weight = Tensor([[0.5, -0.25], [0.125, 1.0]], requires_grad=True)
        optimizer = nn.optim.SGD([weight], lr=0.1)

        @TinyJit
        @Tensor.train()
        def step(x: Tensor) -> Tensor:
            optimizer.zero_grad()
            loss = ((x @ weight).dropout(0.5) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss.realize()

        return weight, step

    async def in_threads() -> list[float]:
        turns = 0

        async def count_turns() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        counting = asyncio.ensure_future(count_turns())
        weight, step = new_step()
        losses = [(await asyncio.to_thread(step, x)).item() for x in batches]
        counting.cancel()
        assert turns > len(batches)
        return losses + weight.flatten().tolist()

    weight, step = new_step()
    losses = [step(x).item() for x in batches]
    assert asyncio.run(in_threads()) == losses + weight.flatten().tolist()
