"""Checks that travel with a computation: what a device finds wrong with values becomes an error of the line
that used them.

`require(offends, numbers, explain)` computes which element is the first that offends, and the numbers that go
with it. Outside of captures that is read at once. In a captured call it is one more result of the Program,
which is read after every run; in `vmap` it is one for each example, asked for when the batch is there.

Who asks, and only where told to: `index_checks` and `check_matrix` with `CHECK=1`, `anomalies` with
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

# What to raise, given the number of the first element that offends, and what goes with it.
Explain = Callable[..., PolygradError]


@dataclass(frozen=True, slots=True)
class Check:
    """`found`: a Tensor of the number of the first element that offends (-1: none does), and of what goes
    with it."""

    found: Any
    explain: Explain

    def raise_if_violated(self) -> None:
        """Raises what `explain` says of the first element that offends; waits for the device."""
        first, *numbers = self.found.tolist()
        if first >= 0:
            raise self.explain(first, *numbers)


class _Collected(threading.local):
    """Of a thread. `checks`: where checks go instead of being asked for."""

    checks: list[Check] | None = None


_collected = _Collected()


def checking() -> bool:
    """Whether indices and matrices are checked on devices: `CHECK=1`."""
    return env_int("CHECK", 0) > 0


def is_immediate() -> bool:
    """Whether a check is read where it is made, so that what it looks at still has its value."""
    return watch.recording is None and _collected.checks is None


def has_value(uop: UOp) -> bool:
    """Whether a node has a value of its own: what the body of a FOR computes has not."""
    return not any(n.op is Ops.PARAM for n in uop.toposort())


def require(offends: Any, numbers: Any, explain: Explain) -> None:
    """Raise `explain(i, number)` where element i of the Tensor `offends`, of bools, is the first that is
    True: now, or when it has been computed. `numbers`: of each element; None: `explain(i)`."""
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
    """The number of the first of `offends` (n,) that is True, or -1, and its row of `numbers` (n, k)."""
    n = offends.shape[0]
    dtype = dtypes.int32 if numbers is None or numbers.dtype.itemsize < 4 else numbers.dtype
    places = type(offends).arange(n, dtype=dtypes.int32, device=offends._device)
    first = offends.where(places, n).min()
    found = (first < n).where(first, -1).cast(dtype).reshape(1)
    if numbers is None:
        return found
    row = places.eq(first).unsqueeze(1).where(numbers.cast(dtype), 0).sum(0).cast(dtype)
    return found.cat(row)


@contextlib.contextmanager
def collected() -> Iterator[list[Check]]:
    """`with collected() as checks:` checks are put there instead of being asked for."""
    outer, _collected.checks = _collected.checks, []
    try:
        yield _collected.checks
    finally:
        _collected.checks = outer


def require_of_batch(found: Any, check: Check) -> None:
    """Require of all examples what `check` is for one: `found` has a row of its results for each."""

    def explain(example: int, *of_one: int) -> PolygradError:
        error = check.explain(*of_one)
        return type(error)(f"{error}, in example {example} of vmap")

    _ask(Check(_first(found[:, 0] >= 0, found), explain))


def check_matrix(info: Any, what: str, means: str) -> None:
    """Check that `info`, an integer for each matrix, is 0. `means` says what another number k stands for, as
    `{k}`. Raises LinAlgError.
    """
    shape, line = info.shape, at_line()
    if 0 in shape:
        return

    def explain(matrix: int, k: int) -> PolygradError:
        which = f"matrix {position_text(matrix, shape)}: " if shape else ""
        return LinAlgError(f"{what}: {which}{means.format(k=k)}{line}")

    require(info.ne(0), info, explain)


def at_line() -> str:
    """` (file:line)` of the innermost call that is not polygrad's own; "" where there is none."""
    where = caller()
    return "" if where is None else f" ({where[0]}:{where[1]})"


def position_text(element: int, shape: Shape) -> str:
    """The position of an element: its number, or in several axes one for each."""
    if len(shape) < 2 or not all(isinstance(n, int) for n in shape):
        return str(element)
    out: list[int] = []
    for n in reversed(shape):
        element, rest = divmod(element, int(n))
        out.append(rest)
    return str(tuple(reversed(out)))
