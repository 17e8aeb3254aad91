"""Whether indices and class labels are in range.

What is known on the host, constants and data that came from it, is checked when it is given. What a device
computed is not, for that would wait for it: there an index that is out of range reads 0, and what it would
write is not written; nothing outside of a buffer is ever touched. With CHECK=1 (in the environment, or
`Context(CHECK=1)`) every index is checked where it is used, and in every run of a captured step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from polygrad.dtype import dtypes
from polygrad.engine.recording import watch
from polygrad.errors import AxisError
from polygrad.helpers import caller, env_int
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops


@dataclass(frozen=True, slots=True)
class Range:
    """The integers that an index may be: `low` to `high`, and `ignored`. `op` is what is called, `what` is
    indexed."""

    op: str
    what: str
    low: int
    high: int
    ignored: int | None = None

    def error(self, value: int, position: int, where: tuple[str, int] | None) -> AxisError:
        """What to raise for `value`, which is element number `position` of the index."""
        place = "" if where is None else f", at {where[0]}:{where[1]}"
        return AxisError(
            f"{self.op}: index {value} (element {position} of the indices) is out of range: expected "
            f"{self.low} to {self.high} for {self.what}{place}"
        )


def check_index(
    op: str, index: Any, size: Any, what: str, negative: bool = False, ignored: int | None = None
) -> None:
    """Check the integers of the Tensor `index`, which are to be below `size` and, unless `negative`, at
    least 0. Raises AxisError, with CHECK=1 for any index.
    """
    if not isinstance(size, int) or not index.dtype.is_int:
        return
    wanted = Range(op, what, -size if negative else 0, size - 1, ignored)
    checks_all = env_int("CHECK", 0) > 0
    if not checks_all:
        known = host_bounds(index.uop)
        if known is None or (wanted.low <= known[0] and known[1] <= wanted.high):
            return
        if watch.recording is not None:
            return
    if all(isinstance(n, int) and n for n in index.shape):
        check = Check(wanted, _offender(index, wanted), caller())
        if watch.recording is None:
            check.raise_if_violated()
        else:
            watch.recording.checks.append(check)


@dataclass(slots=True)
class Check:
    """A check that a device makes. `found`: the position of the first integer that is out of range, or -1,
    and that integer."""

    wanted: Range
    found: Any
    where: tuple[str, int] | None

    def raise_if_violated(self) -> None:
        """Raises AxisError for the first integer that is out of range; waits for the device."""
        position, value = self.found.tolist()
        if position >= 0:
            raise self.wanted.error(value, position, self.where)


def _offender(index: Any, wanted: Range) -> Any:
    """The position of the first integer out of range (-1: none), and that integer."""
    x = index.detach().flatten().cast(dtypes.int64 if index.dtype.itemsize > 4 else dtypes.int32)
    bad = (x < wanted.low) | (x > wanted.high)
    if wanted.ignored is not None:
        bad = bad & x.ne(wanted.ignored)
    n = x.shape[0]
    places = type(index).arange(n, dtype=x.dtype, device=index._device)
    first = bad.where(places, n).min()
    value = places.eq(first).where(x, 0).sum().cast(x.dtype)
    return (first < n).where(first, -1).cast(x.dtype).stack(value)


def host_bounds(uop: UOp) -> tuple[int, int] | None:
    """The least and greatest integer of a constant, or of memory as it came from the host; None: unknown."""
    while uop.op in GroupOp.Movement or uop.op in (Ops.DETACH, Ops.NOOP, Ops.CONTIGUOUS):
        if uop.op is Ops.PAD:
            return None
        uop = uop.src[0]
    if uop.op is Ops.CONST:
        return uop.arg, uop.arg
    if uop.op is not Ops.BUFFER or uop.arg.overwritten:
        return None
    bounds: tuple[int, int] | None = getattr(uop.arg, "data_bounds", None)
    return bounds
