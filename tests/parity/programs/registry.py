"""The table of programs, and how one enters it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.parity.inputs import Inputs

Program = Callable[[Any, Inputs], list[Any]]
PROGRAMS: dict[str, Program] = {}


def program(function: Program) -> Program:
    PROGRAMS[function.__name__] = function
    return function


def with_gradients(make: Inputs, output: Any, *wanted: Any) -> list[Any]:
    """A scalar that weighs the squares of `output` unequally, and its gradients."""
    loss = (output * output * make.normal(*output.shape)).sum()
    return [loss, *loss.gradient(*wanted)]
