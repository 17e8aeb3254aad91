"""`Variable`: a bounded symbolic integer for sizes and positions, bound to a value for each run."""

from __future__ import annotations

from polygrad.dtype import dtypes, to_dtype
from polygrad.errors import ArgumentError, DTypeError
from polygrad.helpers import THREAD_VARIABLES
from polygrad.tensor.core.base import DTypeLike, check_fits
from polygrad.uop.node import UOp


def Variable(name: str, min_val: int, max_val: int, dtype: DTypeLike | None = None) -> UOp:
    """A symbolic integer from `min_val` to `max_val`, both included.

    `.bind(value)` gives it a value for one run. It may stand wherever an int may: in shapes, as an index or
    the bound of a slice, as an operand. What it is compiled into serves all values.

        rows, n = Tensor.arange(40).reshape(10, 4), Variable("n", 1, 10)
        for count in (3, 7):
            print(rows[: n.bind(count)].sum(0).tolist())

    Slices are clamped and indices checked by the bound values, and ints cut an axis to a fixed size, so
    `t[:7]` can be read where `t` has n = 7 rows.
    `dtype`: the integer dtype that it has where it is a number among Tensors (`x + n`, `Tensor(n)`); None:
    that of a Python int. Raises DTypeError for a dtype that is no integer, OverflowError_ for bounds outside.
    Raises ArgumentError when the bounds are not integers in order, and for `thread`, `threads`, `part` and
    `parts`, which are taken.
    """
    if name in THREAD_VARIABLES:
        raise ArgumentError(
            f"Variable {name}: expected a name that kernels do not use themselves: choose another"
        )
    if not isinstance(min_val, int) or not isinstance(max_val, int) or min_val > max_val:
        raise ArgumentError(
            f"Variable {name}: expected integer bounds in order, got {min_val!r} and {max_val!r}"
        )
    if dtype is None:
        return UOp.variable(name, min_val, max_val)
    kind = to_dtype(dtype)
    if not kind.is_int or kind is dtypes.index:
        raise DTypeError(f"Variable {name}: expected an integer dtype, got {kind}")
    for bound in (min_val, max_val):
        check_fits(bound, kind, f"Variable {name}")
    return UOp.variable(name, min_val, max_val, kind.name)
