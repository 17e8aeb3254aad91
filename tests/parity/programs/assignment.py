"""Programs that write in place."""

from __future__ import annotations

from typing import Any

from tests.parity.inputs import Inputs
from tests.parity.programs.registry import program


@program
def assign_twice(lib: Any, make: Inputs) -> list[Any]:
    x, y = make.normal(8), make.normal(8)
    x.assign(x + y)
    x.assign(x * 2)
    return [x, y + x]


@program
def assign_each_other(lib: Any, make: Inputs) -> list[Any]:
    """The second takes the first's new value."""
    x, y = make.normal(8), make.normal(8)
    x.assign(x + y)
    y.assign(x * y)
    return [x, y]


@program
def assign_reversed(lib: Any, make: Inputs) -> list[Any]:
    x = make.normal(8, 4)
    return [x.assign(x.flip(0) + x)]


@program
def assign_slices(lib: Any, make: Inputs) -> list[Any]:
    x, rows = make.normal(8, 6), make.normal(2, 6)
    x[2:4] = rows
    x[:, 0:1] = rows[0:1, 0:1].expand(8, 1)
    return [x, x.sum(0)]


@program
def exponential_average(lib: Any, make: Inputs) -> list[Any]:
    """Averages of several parameters, and of a statistic of them."""
    parameters, averages = [make.normal(6, 4) for _ in range(3)], [make.normal(6, 4) for _ in range(3)]
    for p, a in zip(parameters, averages):
        a.assign(a * 0.99 + p * 0.01)
    return [*averages, (averages[0] - parameters[0]).abs().max()]
