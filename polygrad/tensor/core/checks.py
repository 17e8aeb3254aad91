"""Checks of values on a device: a fault that a device detects becomes an error at the line that used the
values.

`require(offends, numbers, explain)` computes the index of the first offending element, and the numbers that
belong to it. Outside of captures the result is read at once. In a captured call it is an additional result of
the Program, read after every run. In `vmap` there is one for each example, read once the batch is computed.

Checks are off by default: `index_checks` and `check_matrix` check with `CHECK=1`, `anomalies` with
`ANOMALY=1`.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from polygrad.dtype import dtypes
from polygrad.engine.recording import watch
from polygrad.errors import LinAlgError, PolygradError
from polygrad.helpers import caller, env_int
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.shapes import Shape

# Makes the error, given the index of the first offending element and the numbers that belong to it.
Explain = Callable[..., PolygradError]


@dataclass(frozen=True, slots=True)
class Check:
    """`result`: a Tensor of the index of the first offending element (-1: there is none) and its numbers."""

    result: Any
    explain: Explain

    def raise_if_violated(self) -> None:
        """Raises the error that `explain` makes for the first offending element; waits for the device."""
        first, *numbers = self.result.tolist()
        if first >= 0:
            raise self.explain(first, *numbers)


class _Collected(threading.local):
    """State of a thread. `checks`: collects checks instead of reading them at once, unless None."""

    checks: list[Check] | None = None


_collected = _Collected()


def checking() -> bool:
    """Whether indices and matrices are checked on devices (`CHECK=1`)."""
    return env_int("CHECK", 0) > 0


def is_immediate() -> bool:
    """Whether a check is read where it is made, while the checked values still exist."""
    return watch.recording is None and _collected.checks is None


def has_value(uop: UOp) -> bool:
    """Whether a node has one value; a node in the body of a FOR has one for each iteration."""
    return not any(n.op is Ops.PARAM for n in uop.toposort())


def require(offends: Any, numbers: Any, explain: Explain) -> None:
    """Raise `explain(i, number)`, now or once it is computed, if i is the first True element of the bool
    Tensor `offends`. `numbers`: one for each element; None: `explain(i)` is called."""
    if has_value(offends.uop):
        column = None if numbers is None else numbers.detach().flatten().unsqueeze(1)
        _ask(Check(_first(offends.detach().flatten(), column), explain))


def _ask(check: Check) -> None:
    if _collected.checks is not None:
        _collected.checks.append(check)
    elif watch.recording is not None:
        watch.recording.checks.append(check)
    else:
        check.raise_if_violated()


def _first(offends: Any, numbers: Any) -> Any:
    """The index of the first True element of `offends` (n,), or -1, and its row of `numbers` (n, k)."""
    n = offends.shape[0]
    dtype = dtypes.int32 if numbers is None or numbers.dtype.itemsize < 4 else numbers.dtype
    places = type(offends).arange(n, dtype=dtypes.int32, device=offends._device)
    first = offends.where(places, n).min()
    first_offender = (first < n).where(first, -1).cast(dtype).reshape(1)
    if numbers is None:
        return first_offender
    row = places.eq(first).unsqueeze(1).where(numbers.cast(dtype), 0).sum(0).cast(dtype)
    return first_offender.cat(row)


@contextlib.contextmanager
def collect_checks() -> Iterator[list[Check]]:
    """`with collect_checks() as checks:` checks are added to the list instead of being read at once."""
    outer, _collected.checks = _collected.checks, []
    try:
        yield _collected.checks
    finally:
        _collected.checks = outer


def require_of_batch(results: Any, check: Check) -> None:
    """Require of every example what `check` requires of one: `results` has one row for each example."""

    def explain(example: int, *of_one: int) -> PolygradError:
        error = check.explain(*of_one)
        return type(error)(f"{error}, in example {example} of vmap")

    _ask(Check(_first(results[:, 0] >= 0, results), explain))


def check_matrix(info: Any, what: str, means: str) -> None:
    """Check that `info`, an integer for each matrix, is 0. `means` explains another number, k, as `{k}`.
    Raises LinAlgError.
    """
    shape, line = info.shape, at_line()
    if 0 in shape:
        return

    def explain(matrix: int, k: int) -> PolygradError:
        location = f"matrix {position_text(matrix, shape)}: " if shape else ""
        return LinAlgError(f"{what}: {location}{means.format(k=k)}{line}")

    require(info.ne(0), info, explain)


def at_line() -> str:
    """` (file:line)` of the innermost call outside of polygrad, or ""."""
    location = caller()
    return "" if location is None else f" ({location[0]}:{location[1]})"


def position_text(element: int, shape: Shape) -> str:
    """The position of an element as text: one index for each axis."""
    if len(shape) < 2 or not all(isinstance(n, int) for n in shape):
        return str(element)
    out: list[int] = []
    for n in reversed(shape):
        element, coordinate = divmod(element, int(n))
        out.append(coordinate)
    return str(tuple(reversed(out)))
