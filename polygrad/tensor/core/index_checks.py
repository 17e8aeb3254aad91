"""Whether indices and class labels are in range.

Values that the host knows, constants and data from it, are always checked. Values that a device computed are
not, because reading them would wait for the device: there an index out of range reads 0 and writes nothing;
memory outside of a buffer is never touched. With CHECK=1 (in the environment, or `Context(CHECK=1)`) every
index is checked where it is used, and in every run of a captured step.
"""

from __future__ import annotations

from typing import Any

from polygrad.dtype import dtypes
from polygrad.engine.recording import watch
from polygrad.errors import AxisError
from polygrad.tensor.core.checks import at_line, checking, has_value, require
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops


def check_index(
    op: str, index: Any, size: Any, what: str, negative: bool = False, ignored: int | None = None
) -> None:
    """Check that the integers of the Tensor `index` are below `size`, and at least 0, or equal to `ignored`.
    `negative`: those of a signed dtype at least -size. Raises AxisError; with CHECK=1 also for indices that
    a device computed.
    """
    if not index.dtype.is_int:
        return
    unsigned = index.dtype.is_unsigned
    low, high = size * -1 if negative and not unsigned else 0, size - 1
    if not checking():
        bounds = host_bounds(index.uop) if isinstance(size, int) and watch.recording is None else None
        if bounds is None or (low <= bounds[0] and bounds[1] <= high):
            return
    if not has_value(index.uop) or not all(isinstance(n, int) and n for n in index.shape):
        return
    line = at_line()

    def explain(element: int, value: int) -> AxisError:
        value = value % (1 << 64) if unsigned else value
        return AxisError(
            f"{op}: index {value} (element {element} of the indices) is out of range: expected {low} to "
            f"{high} for {what}{line}"
        )

    # a uint64 beyond int64 becomes negative, and offends as well
    x = index.detach().cast(dtypes.int64 if index.dtype.max > dtypes.int32.max else dtypes.int32)
    offends = (x < _limit(low, x)) | (x > _limit(high, x))
    if ignored is not None:
        offends = offends & x.ne(ignored)
    require(offends, x, explain)


def _limit(size: Any, x: Any) -> Any:
    """A size, which may depend on Variables, as an operand of comparisons with the Tensor `x`."""
    if isinstance(size, int):
        return size
    return x._with(size.cast(x.dtype).reshape((1,) * x.ndim).expand(x.shape))


def host_bounds(uop: UOp) -> tuple[int, int] | None:
    """The least and greatest integer of a constant, or of memory as it came from the host; None: unknown."""
    while uop.op in GroupOp.Movement or uop.op in (Ops.DETACH, Ops.NOOP, Ops.CONTIGUOUS):
        if uop.op is Ops.PAD:
            return None
        uop = uop.src[0]
    if uop.op is Ops.CONST:
        return uop.arg, uop.arg
    if uop.op is not Ops.BUFFER or uop.arg.is_overwritten:
        return None
    bounds: tuple[int, int] | None = getattr(uop.arg, "data_bounds", None)
    return bounds
