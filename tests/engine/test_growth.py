"""Twice as large a program is twice the work: building its graph, scheduling it, computing it.

Counted in lines of Python that are run, as time says little on a busy machine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from polygrad import Tensor, TinyJit, nn
from polygrad.engine.programs import clear_caches


def lines_run(work: Callable[[], object]) -> int:
    """How many lines of polygrad this thread runs for `work`."""
    count = 0

    def on_line(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal count
        count += event == "line"
        return on_line

    def on_call(frame: FrameType, event: str, arg: Any) -> Any:
        return on_line if "polygrad" in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def ones(*shape: int) -> Tensor:
    return Tensor.ones(*shape, device="CPU").contiguous().realize()


def lazy_writes(n: int) -> Callable[[], object]:
    x = ones(16)

    def run() -> object:
        for _ in range(n):
            x.assign(x + 1)
        return x.realize()

    return run


def writes_to_rows(n: int) -> Callable[[], object]:
    x = ones(n, 4)

    def run() -> object:
        for i in range(n):
            x[i] = i
        return x.realize()

    return run


def stack(n: int) -> Callable[[], object]:
    rows = [ones(4) for _ in range(n)]
    return lambda: Tensor.stack(*rows).realize()


def kernels_in_a_row(n: int) -> Callable[[], object]:
    def run() -> object:
        x = ones(4, 6)
        for i in range(n):
            x = x * 1.01 + 0.1 if i % 4 else x - x.sum(1, keepdim=True) * 0.1
        return x.realize()

    return run


def layers(n: int) -> Callable[[], object]:
    weights = [ones(4, 4) for _ in range(n)]
    optimizer = nn.optim.Adam(weights)
    x = ones(2, 4)

    @TinyJit
    def step(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        for w in weights:
            x = (x @ w).relu()
        loss = (x * x).mean()
        loss.backward()
        optimizer.step()
        return loss

    def run() -> None:  # eager, captured and replayed
        with Tensor.train():
            for _ in range(3):
                step(x)

    return run


PROGRAMS = {
    # name: (program, its smaller size)
    "lazy writes": (lazy_writes, 200),
    "writes to rows": (writes_to_rows, 50),
    "stack": (stack, 50),
    "kernels in a row": (kernels_in_a_row, 100),
    "layers, captured": (layers, 8),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_work_is_linear(name: str) -> None:
    program, n = PROGRAMS[name]
    lines = []
    for size in (n, 2 * n):
        program(size)()  # compiles the kernels
        run = program(size)
        clear_caches()
        lines.append(lines_run(run))
    assert lines[1] < 2.3 * lines[0]
