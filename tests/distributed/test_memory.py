"""Collectives on memory that Python cannot access: through a copy on the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from polygrad import Tensor, TinyJit, distributed, nn
from polygrad.distributed.engine import Single
from polygrad.distributed.group import Group, group
from polygrad.distributed.memory import buffer_of
from polygrad.errors import DeviceError
from polygrad.runtime.buffer import Buffer


class Equal(Single):
    """Rank 0 of two that always have the same arrays."""

    size = 2

    def __init__(self) -> None:
        self.addresses: list[int] = []  # of what was reduced

    def all_reduce(self, array: Any, op: str) -> None:
        self.addresses.append(array.ctypes.data)
        array *= 2

    def all_to_all(self, array: Any, out: Any) -> None:
        out[: len(array) // 2] = out[len(array) // 2 :] = array[: len(array) // 2]

    def all_gather(self, array: Any, out: Any) -> None:
        out[: len(array)] = out[len(array) :] = array


@pytest.fixture(params=["host", "other"])
def two_equal_ranks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polygrad.distributed.group._group", Group(Equal(), "a test", 5.0, check=False))
    if request.param == "other":

        def view(self: Buffer) -> memoryview:
            raise DeviceError("no access")

        monkeypatch.setattr(Buffer, "view", view)


def address_of(x: Tensor) -> int:
    return np.frombuffer(buffer_of(x).view(), np.uint8).ctypes.data


@pytest.mark.parametrize("two_equal_ranks", ["host"], indirect=True)
@pytest.mark.usefixtures("two_equal_ranks")
def test_memory_of_the_host_is_not_copied() -> None:
    engine: Any = group().engine
    x = Tensor([1.0, 2.0]).realize()
    place = address_of(x)
    distributed.all_reduce_(x)
    total = distributed.all_reduce(x + 1).realize()
    assert engine.addresses == [place, address_of(total)] and address_of(x) == place
    model = nn.Linear(300, 300)
    step = distributed.DataParallel(
        lambda model, x: model(x).sum(),
        model,
        nn.optim.SGD(nn.state.get_parameters(model)),
        Tensor.ones(2, 300),
    )
    for _ in range(2):
        engine.addresses.clear()
        step.run()
        captured = step.step._step.captured
        own = {np.frombuffer(b.view(), np.uint8).ctypes.data for b in captured.buffers if b is not None}
        assert len(engine.addresses) == 3 and set(engine.addresses) <= own  # weight, bias, loss


@pytest.mark.usefixtures("two_equal_ranks")
def test_the_result_reaches_the_device() -> None:
    x = Tensor([1.0, 2.0]).realize()
    assert distributed.all_reduce(x).tolist() == [2, 4] and x.tolist() == [1, 2]
    assert distributed.all_gather(x).tolist() == [1, 2, 1, 2]
    view = x[1:]
    assert distributed.all_reduce_(x).tolist() == [2, 4] and view.tolist() == [4]


@pytest.mark.usefixtures("two_equal_ranks")
def test_the_result_reaches_the_device_in_replays() -> None:
    total = TinyJit(lambda x: (distributed.all_reduce(x * 3) + 1).realize())
    for i in range(5):
        assert total(Tensor([float(i), 1.0])).tolist() == [6 * i + 1, 7]


@pytest.mark.parametrize("two_equal_ranks", ["host"], indirect=True)
@pytest.mark.parametrize("sharded", [False, True])
@pytest.mark.usefixtures("two_equal_ranks")
def test_sums_in_order_are_not_left_to_the_engine(sharded: bool) -> None:
    """Whose order is its own."""
    engine: Any = group().engine
    model = nn.Linear(4, 4)
    opt = nn.optim.SGD(nn.state.get_parameters(model))
    loss = lambda model, x: model(x).sum()
    step = distributed.DataParallel(
        loss, model, opt, Tensor.ones(2, 4), shard_optimizer=sharded, in_order=True
    )
    step.run()
    assert engine.addresses == []
