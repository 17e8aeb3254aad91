"""Gather and scatter along an axis, by a Tensor of positions.

Positions are compared: sum over j of (index == j) * x[j]. Code generation turns that sum into one load, so
it costs what a gather costs, its gradient is a scatter, and nothing leaves the graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from polygrad.dtype import dtypes
from polygrad.engine.devices import Device
from polygrad.errors import ArgumentError, DTypeError, ShapeError
from polygrad.helpers import env_int
from polygrad.tensor.core.base import TensorBase, TensorLike, broadcast_constant, broadcast_to
from polygrad.tensor.core.index_checks import check_index
from polygrad.tensor.core.sizes import fits, fixed_size, python_number
from polygrad.tensor.cumulative import CumulativeMixin
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


class GatherScatterMixin(CumulativeMixin):
    """gather, scatter, and methods that select and write by positions."""

    __slots__ = ()

    # --- reading

    def gather(self, dim: int, index: Self) -> Self:
        """out[..., i, ...] = self[..., index[..., i, ...], ...] along `dim`.

        The result has the shape of `index`, which may be smaller than self on the other axes. Raises
        ShapeError, DTypeError.

        >>> Tensor([[1, 2], [3, 4]]).gather(1, Tensor([[1], [0]])).tolist()
        [[2], [3]]
        """
        if not self.shape and not index.shape and self._axis(dim) == 0:
            return self.reshape(1).gather(0, index.reshape(1)).reshape(())
        x, index, axis = self._along(dim, index, "gather")
        hit = index.is_class(x.shape[axis], -1)
        spread_values = x.unsqueeze(-1).transpose(axis, -1).expand(hit.shape)
        terms = hit.where(spread_values, 0) if not x.dtype.is_bool else hit & spread_values
        return terms._reduce(Ops.MAX if x.dtype.is_bool else Ops.ADD, -1, False, x.dtype, x.dtype)

    def take_along_dim(self, indices: Self, dim: int | None = None) -> Self:
        """The elements at `indices` along `dim`, of broadcast shapes; None: over the whole Tensor.

        Raises AxisError, ShapeError.

        >>> Tensor([[3, 1], [2, 4]]).take_along_dim(Tensor([[1], [0]]), 1).tolist()
        [[1], [2]]
        """
        if dim is None:
            return self.flatten().gather(0, indices.flatten())
        axis = self._axis(dim)
        if indices.ndim != self.ndim:
            raise ShapeError(f"take_along_dim: expected {self.ndim} axes, got indices of {indices.shape}")
        check_index("take_along_dim", indices, self.shape[axis], f"axis {axis} of shape {self.shape}")
        rows, places = [list(t.shape) for t in (self, indices)]
        for i in range(self.ndim):
            if i != axis:
                rows[i] = places[i] = rows[i] if places[i] == 1 else places[i]
        return self.expand(rows).gather(axis, indices.expand(places))

    def _check_index(self, dim: int, index: Self, what: str) -> int:
        """`dim` counted from 0, for an `index` no larger than self but along it."""
        axis = self._axis(dim)
        if index.ndim != self.ndim:
            raise ShapeError(
                f"{what}: expected an index with {self.ndim} axes for shape {self.shape}, got {index.shape}"
            )
        if not index.dtype.is_int:
            raise DTypeError(f"{what}: expected an integer index, got {index.dtype}")
        sizes = zip(index.shape, self.shape, strict=True)
        if not all(fits(i, s) for k, (i, s) in enumerate(sizes) if k != axis):
            raise ShapeError(
                f"{what}: expected an index no larger than {self.shape} but along {axis}, got {index.shape}"
            )
        check_index(what, index, self.shape[axis], f"axis {axis} of shape {self.shape}")
        return axis

    def _along(self, dim: int, index: Self, what: str) -> tuple[Self, Self, int]:
        """self shrunk to the sizes of `index` on all axes except `dim`."""
        axis = self._check_index(dim, index, what)
        cut = self.shrink([None if k == axis else (0, i) for k, i in enumerate(index.shape)])
        return cut, index, axis

    # --- writing

    def scatter(self, dim: int, index: Self, src: TensorLike, reduce: str | None = None) -> Self:
        """self with src[..., i, ...] written at index[..., i, ...] along `dim`; the last writer wins.

        `reduce`: 'add' or 'multiply' combine with the old elements. src: a Tensor or a scalar. Raises
        ShapeError, DTypeError, ArgumentError.

        >>> Tensor.zeros(3).scatter(0, Tensor([2, 0]), Tensor([5.0, 6.0])).tolist()
        [6.0, 0.0, 5.0]
        """
        if reduce not in (None, "add", "multiply"):
            raise ArgumentError(f"scatter: expected reduce None, 'add' or 'multiply', got {reduce!r}")
        if reduce is not None:
            return self.scatter_reduce(
                dim, index, _as_source(self, index, src), "sum" if reduce == "add" else "prod"
            )
        hit, values, _ = self._scatter_hits(dim, index, src, "scatter")
        written_mask, new = last_writer(hit, values)
        return written_mask.where(new, self)

    def scatter_reduce(
        self, dim: int, index: Self, src: Self, reduce: str, include_self: bool = True
    ) -> Self:
        """`scatter` with all writers combined: `reduce` is 'sum', 'prod', 'mean', 'amax' or 'amin'.

        `include_self`: combine with the old elements too. Raises ShapeError, DTypeError, ArgumentError.

        >>> Tensor.zeros(2).scatter_reduce(0, Tensor([0, 0]), Tensor([5.0, 6.0]), "sum").tolist()
        [11.0, 0.0]
        """
        if reduce not in ("sum", "prod", "mean", "amax", "amin"):
            raise ArgumentError(
                f"scatter_reduce: expected 'sum', 'prod', 'mean', 'amax' or 'amin', got {reduce!r}"
            )
        hit, values, _ = self._scatter_hits(dim, index, src, "scatter_reduce")
        touched = hit.any(-1)
        if reduce in ("sum", "mean"):
            total = hit.where(values, 0)._reduce(Ops.ADD, -1, False, self.dtype, self.dtype)
            out = self + total if include_self else touched.where(total, self)
            if reduce == "sum":
                return out
            writers = hit._reduce(Ops.ADD, -1, False, dtypes.int32, dtypes.int32)
            count = writers + 1 if include_self else touched.where(writers, 1)
            return (
                out.div(count.cast_like(self))
                if self.dtype.is_float
                else out.div(count, rounding_mode="floor").cast_like(self)
            )
        if reduce == "prod":
            product = hit.where(values, 1)._reduce(Ops.MUL, -1, False, self.dtype, self.dtype)
            return self * product if include_self else touched.where(product, self)
        if reduce == "amax":
            top = hit.where(values, values.const_like(self.dtype.min)).max(-1)
            return self.maximum(top) if include_self else touched.where(top, self)
        least = hit.where(values, values.const_like(self.dtype.max)).min(-1)
        return self.minimum(least) if include_self else touched.where(least, self)

    def scatter_add(self, dim: int, index: Self, src: Self) -> Self:
        """self, with the elements of `src` added at the positions `index` along `dim`.

        Raises AxisError, ShapeError.

        >>> Tensor([1.0, 1.0]).scatter_add(0, Tensor([1, 1]), Tensor([2.0, 3.0])).tolist()
        [1.0, 6.0]
        """
        return self.scatter_reduce(dim, index, src, "sum")

    def index_add(self, dim: int, index: Self, source: Self, alpha: float = 1.0) -> Self:
        """self, with alpha * source's slices along `dim` added to the slices at the positions `index`.

        Raises AxisError, ShapeError.

        >>> Tensor([[1.0], [1.0]]).index_add(0, Tensor([1, 1]), Tensor([[2.0], [3.0]])).tolist()
        [[1.0], [6.0]]
        """
        axis = self._axis(dim)
        if index.ndim != 1 or source.ndim != self.ndim or index.shape[0] != source.shape[axis]:
            raise ShapeError(
                f"index_add: expected an index for each of the source's slices, got {index.shape} and "
                f"{source.shape}"
            )
        check_index("index_add", index, self.shape[axis], f"axis {axis} of shape {self.shape}")
        column = [-1 if i == axis else 1 for i in range(self.ndim)]
        return self.scatter_reduce(
            axis, index.reshape(column).expand(source.shape), source if alpha == 1 else source * alpha, "sum"
        )

    def index_fill(self, dim: int, index: Self, value: float) -> Self:
        """self, with `value` in the slices along `dim` at the positions `index`. Raises AxisError.

        >>> Tensor([[1, 2], [3, 4]]).index_fill(1, Tensor([0]), 9).tolist()
        [[9, 2], [9, 4]]
        """
        axis = self._axis(dim)
        n = fixed_size(self.shape[axis], "index_fill")
        check_index("index_fill", index, n, f"axis {axis} of shape {self.shape}", negative=True)
        index = index._with(as_positions(index.flatten().uop))
        places = (index < 0).where(index + n, index)
        slice_mask = places.unsqueeze(1).eq(type(self).arange(n, device=self.device)).any(0)
        column = [-1 if i == axis else 1 for i in range(self.ndim)]
        return slice_mask.reshape(column).where(self.const_like(value), self)

    def _scatter_hits(self, dim: int, index: Self, src: TensorLike, what: str) -> tuple[Self, Self, int]:
        """A bool mask of the writers of each element, and the values that they write. Both have a new last
        axis of writers."""
        axis = self._check_index(dim, index, what)
        if isinstance(src, TensorBase):
            if not all(fits(i, s) for i, s in zip(index.shape, src.shape, strict=True)):
                raise ShapeError(
                    f"{what}: expected a source at least as large as {index.shape}, got {src.shape}"
                )
            source = self._tensor(src).shrink([(0, i) for i in index.shape])
        else:
            source = index._of(broadcast_constant(self.dtype, src, index.shape))
        if source.dtype is not self.dtype:
            raise DTypeError(f"{what}: expected a source of {self.dtype}, got {source.dtype}: use .cast()")
        n = self.shape[axis]
        grow: list[Any] = [
            (0, 0) if k == axis else (0, s - i)
            for k, (s, i) in enumerate(zip(self.shape, index.shape, strict=True))
        ]
        hit = index.is_class(n, -1)
        hit = hit._with(hit.uop.pad((*grow, (0, 0)))).transpose(axis, -1)  # (..., n at axis, ..., writers)
        values = source._with(source.uop.pad(tuple(grow))).unsqueeze(-1).transpose(axis, -1).expand(hit.shape)
        return hit, values, axis

    # --- classes

    def is_class(self, num_classes: Any, axis: int) -> Self:
        """Whether each integer equals class j: bool, with j along a new axis `axis` of the result.

        >>> Tensor([0, 2]).is_class(3, -1).tolist()
        [[True, False, False], [False, False, True]]
        """
        self._need_int("one_hot")
        axis = self._axis(axis, 1)
        shape = (*self.shape[:axis], num_classes, *self.shape[axis:])
        column = tuple([num_classes if i == axis else 1 for i in range(len(shape))])
        names = as_positions(self.uop).reshape((*self.shape[:axis], 1, *self.shape[axis:]))
        classes = UOp(Ops.ARANGE, dtypes.int32, (), num_classes).cast(names.dtype).reshape(column)
        return self._with(
            UOp(Ops.CMPEQ, dtypes.bool, (broadcast_to(names, shape), broadcast_to(classes, shape)))
        )

    def one_hot(self, num_classes: int) -> Self:
        """1 (int32) at the class of each integer, along a new last axis. An integer out of range gives zeros;
        torch refuses it.

        Raises DTypeError, ArgumentError.

        >>> Tensor([0, 2]).one_hot(3).tolist()
        [[1, 0, 0], [0, 0, 1]]
        """
        num_classes = python_number(num_classes)
        if not isinstance(num_classes, int) or num_classes < 0:
            raise ArgumentError(f"one_hot: expected num_classes of at least 0, got {num_classes!r}")
        return self._with(self.is_class(num_classes, -1).uop.cast(dtypes.int32))


def as_positions(index: UOp) -> UOp:
    """An index in a dtype that has every position along an axis: 256 would be position 0 in uint8."""
    return index if index.dtype.itemsize >= 4 else index.cast(dtypes.int32)


def last_writer(hit: Any, values: Any) -> tuple[Any, Any]:
    """Along the last axis, whether there is a hit, and the value of the last hit."""
    writers = hit.shape[-1]
    order = hit._of(UOp(Ops.ARANGE, dtypes.int32, (), writers)) + 1
    last = hit.where(order, 0)._reduce(Ops.MAX, -1, True, dtypes.int32, dtypes.int32)
    wins = hit & last.eq(order)
    if values.dtype.is_bool:
        out = (wins & values).any(-1)
    else:
        out = wins.where(values, 0)._reduce(Ops.ADD, -1, False, values.dtype, values.dtype)
    return last.squeeze(-1) > 0, out


def goes_in_order(device: str | Sequence[str] | None) -> bool:
    """Whether sums over comparisons with all positions become loops that go through these in order: on a
    processor, with optimised kernels, and for Tensors on one device."""
    if device is not None and not isinstance(device, str):
        return False
    backend = Device.backend(device or Device.DEFAULT)
    return backend.target.workgroups is None and backend.optimized and not env_int("NOOPT", 0)


def _as_source(x: Any, index: Any, src: TensorLike) -> Any:
    return (
        src
        if isinstance(src, TensorBase)
        else x._of(broadcast_constant(x.dtype, src, index.shape), x._device)
    )
