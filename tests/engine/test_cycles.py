"""Graphs are freed when nothing refers to them: what computes, writes and looks at them leaves no reference
cycles, whose memory would wait for Python's collector."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import pytest

from polygrad import Tensor, TinyJit, Variable, checkpoint, nn
from polygrad.uop.node import UOp


def train() -> None:
    layer = nn.Linear(4, 3)
    optimizer = nn.optim.SGD(nn.state.get_parameters(layer), 0.1)
    with Tensor.train():
        layer(Tensor.rand(2, 4)).square().mean().backward()
        optimizer.step()


def replay() -> None:
    captured = TinyJit(lambda x: (x * 2).realize())
    for _ in range(3):
        captured(Tensor.rand(5).realize())


def write() -> None:
    x = Tensor.zeros(5).contiguous().realize()
    x[1:3] += 1
    x.realize()


def bind() -> None:
    (Tensor.rand(6).realize()[: Variable("n", 1, 6).bind(4)] * 2).sum().item()


def differentiate() -> None:
    x = Tensor.rand(3, requires_grad=True)
    checkpoint(lambda y: y.exp().sin(), x).sum().backward()
    assert x.grad is not None
    x.grad.tolist()


WORK: dict[str, Callable[[], object]] = {
    "elementwise": lambda: (Tensor.rand(3, 4) + 1).sum().item(),
    "select": lambda: (Tensor.rand(50) > 0.5).nonzero().tolist(),
    "index": lambda: Tensor.rand(5, 5)[Tensor([1, 2])].tolist(),
    "sort": lambda: Tensor.rand(50).sort()[0].tolist(),
    "convolve": lambda: Tensor.rand(1, 2, 5, 5).conv2d(Tensor.rand(2, 2, 3, 3)).tolist(),
    **{f.__name__: f for f in (train, replay, write, bind, differentiate)},
}


@pytest.fixture
def garbage() -> Iterator[Callable[[], list[Any]]]:
    """A function that gives what a collection finds, from now on."""
    gc.collect()
    gc.disable()

    def collect() -> list[Any]:
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        return gc.garbage

    yield collect
    gc.set_debug(0)
    gc.garbage.clear()
    gc.enable()


@pytest.mark.usefixtures("cold_cache")
@pytest.mark.parametrize("name", WORK)
def test_no_graph_is_in_a_cycle(name: str, device: str, garbage: Callable[[], list[Any]]) -> None:
    WORK[name]()
    found = garbage()
    functions = [
        x for x in found if isinstance(x, FunctionType) and str(x.__module__).startswith("polygrad.")
    ]
    assert [f.__qualname__ for f in functions] == []  # of a closure that refers to itself
    assert [x for x in found if isinstance(x, (UOp, Tensor))] == []
