"""How a kernel is written by hand: what a UOp that stands for memory, a loop or a number offers for it.

    i, k = UOp.range(4, 0), UOp.range(8, 1)
    c[i].store((a[i, k] * b[k]).reduce(k)).end(i).sink()

The words are tinygrad's. `schedule/custom_kernel.py` says what becomes of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from polygrad.dtype import dtypes
from polygrad.errors import ArgumentError
from polygrad.helpers import prod
from polygrad.uop.ops import Ops

if TYPE_CHECKING:
    from polygrad.uop.node import UOp


class KernelNotation:
    """A part of UOp; see there."""

    __slots__ = ()

    def _made(self, op: Ops, dtype: Any, src: tuple[Any, ...], arg: Any = None) -> UOp:
        return cast("UOp", type(self)(op, dtype, src, arg))  # type: ignore[call-arg]

    def __getitem__(self, indices: Any) -> UOp:
        """An element of memory: as many indices, ints or UOps, as axes. It is loaded where it is used.

        Raises ArgumentError for another number of them.
        """
        node = cast("UOp", self)
        given = indices if isinstance(indices, tuple) else (indices,)
        shape = node.shape
        if len(given) != len(shape):
            raise ArgumentError(f"kernel: expected {len(shape)} indices into {shape}, got {len(given)}")
        places = []
        for i in given:
            if isinstance(i, bool) or not isinstance(i, (int, type(self))):
                raise ArgumentError(f"kernel: expected an index that is an int or a UOp, got {i!r}")
            places.append(type(self).index(i) if isinstance(i, int) else i.cast(dtypes.index))  # type: ignore[attr-defined]
        return self._made(Ops.INDEX, node.dtype, (node, *places))

    def load(self) -> UOp:
        """The value of an element now; only for those who like to say so."""
        return self._made(Ops.LOAD, cast("UOp", self).dtype, (self,))

    def store(self, value: Any) -> UOp:
        """Write a number or a UOp to an element."""
        node = cast("UOp", self)
        if not isinstance(value, type(self)):
            value = type(node).const(node.dtype, value)
        return self._made(Ops.STORE, dtypes.void, (self, value))

    def end(self, *ranges: UOp) -> UOp:
        """Do this for all values of `ranges`, loops, outermost first."""
        return self._made(Ops.END, dtypes.void, (self, *ranges)) if ranges else cast("UOp", self)

    def reduce(self, *ranges: UOp, arg: Ops = Ops.ADD) -> UOp:
        """All values of this over `ranges` combined with ADD, MUL or MAX."""
        return self._made(Ops.REDUCE, cast("UOp", self).dtype, (self, *ranges), arg)

    def clip(self, low: Any, high: Any) -> UOp:
        """This number, or the nearest in `low` to `high`."""
        return -(-cast("UOp", self).maximum(low)).maximum(-high)

    def numel(self) -> Any:
        """The number of elements."""
        return prod(cast("UOp", self).shape)

    def flatten(self) -> UOp:
        """All elements along one axis."""
        return cast("UOp", self).reshape((self.numel(),))
