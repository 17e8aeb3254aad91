"""Indexing by ints, slices with any step, None, Ellipsis, integer tensors and masks; setting.

An integer tensor selects elements as `gather` does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

from polygrad.dtype import dtypes
from polygrad.engine.devices import Device
from polygrad.engine.realize import data_of, realize
from polygrad.errors import ArgumentError, AxisError, DTypeError, GradientError, ShapeError
from polygrad.helpers import argsort, ceildiv
from polygrad.monitor import computing
from polygrad.tensor.core import binary_search
from polygrad.tensor.core.aliasing import realize_tensors, write
from polygrad.tensor.core.base import TensorBase, TensorLike, broadcast_constant, broadcast_to
from polygrad.tensor.core.convert import unpack
from polygrad.tensor.core.index_checks import check_index
from polygrad.tensor.core.modes import modes
from polygrad.tensor.core.sizes import fits, fixed_size, is_negative, is_size, larger, same_size, smaller
from polygrad.tensor.gather_scatter import GatherScatterMixin, as_positions, goes_in_order, last_writer
from polygrad.uop.axes import arange_axis
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.shapes import broadcast_shape

_MIN_PADDED = 1 << 16  # smaller results are computed with this many elements: few sizes need few kernels


class IndexingMixin(GatherScatterMixin):
    """`t[...]`, `t[...] = v`, and methods that select by masks and positions."""

    __slots__ = ()

    def __getitem__(self, indices: Any) -> Self:
        """The elements at `indices`.

        Ints, slices with any step, None (a new axis), Ellipsis, integer Tensors or lists. Tensors broadcast
        with each other; their axes replace those that they index, or come first when these are not adjacent.
        A bool Tensor, list or array stands for the positions where it is True, which are counted now: it has
        the shape of the axes that it indexes.
        A list that holds a slice, None, Ellipsis or Tensor counts as a tuple of indices. An index in a Tensor
        that a device computed and that is out of range gives 0; see CHECK in the guide to debugging. Raises
        AxisError, DTypeError, ArgumentError.
        """
        mask = self._mask(indices)
        if mask is not None and 0 < mask.ndim <= self.ndim and mask.shape == self.shape[: mask.ndim]:
            flat = mask.flatten()
            places, count = flat._true_positions()
            rows = self.reshape(flat.shape[0], *self.shape[mask.ndim :])
            return rows[places]._first_of(count)  # the same kernels whatever the count is
        view, picks = self._view(indices)
        return view._pick(picks) if picks else view

    def __iter__(self) -> Iterator[Self]:
        if not self.shape:
            raise ShapeError("iteration: expected a tensor with axes, got shape ()")
        return (self[i] for i in range(len(self)))

    def select(self, dim: int, index: int) -> Self:
        """The slice at `index` along `dim`, without that axis: a view. Raises AxisError.

        >>> Tensor([[1, 2], [3, 4]]).select(1, 0).tolist()
        [1, 3]
        """
        axis = self._axis(dim)
        return self[(slice(None),) * axis + (index,)]

    def unbind(self, dim: int = 0) -> tuple[Self, ...]:
        """The slices along `dim`, each without that axis. Raises AxisError.

        >>> [row.tolist() for row in Tensor([[1, 2], [3, 4]]).unbind()]
        [[1, 2], [3, 4]]
        """
        return tuple(self.select(dim, i) for i in range(fixed_size(self.shape[self._axis(dim)], "unbind")))

    def index_select(self, dim: int, index: Self) -> Self:
        """The slices at the positions `index` (one axis of integers) along `dim`. Raises AxisError,
        ShapeError.

        >>> Tensor([[1, 2, 3], [4, 5, 6]]).index_select(1, Tensor([2, 0])).tolist()
        [[3, 1], [6, 4]]
        """
        if index.ndim > 1:
            raise ShapeError(f"index_select: expected an index with one axis, got {index.shape}")
        return self[(slice(None),) * self._axis(dim) + (index.reshape(-1),)]

    def take(self, index: Self) -> Self:
        """The elements at positions counted over the whole Tensor, in the shape of `index`.

        >>> Tensor([[1, 2], [3, 4]]).take(Tensor([3, 0])).tolist()
        [4, 1]
        """
        return self.flatten()[index]

    # --- basic indexing: a view by movement ops

    def _view(self, indices: Any) -> tuple[Self, list[tuple[int, Any]]]:
        """The view that ints, slices and None give, and (axis of the view, integer tensor) for other
        entries."""
        if isinstance(indices, list) and any(_is_index_of_its_own(i) for i in indices):
            indices = tuple(indices)
        if not isinstance(indices, tuple):
            indices = (indices,)
        entries: list[Any] = self._replace_masks(
            [i if i is Ellipsis or i is None else self._index(i) for i in indices]
        )
        ellipses = [k for k, i in enumerate(entries) if i is Ellipsis]
        if len(ellipses) > 1:
            raise ArgumentError(f"index: expected at most one Ellipsis, got {len(ellipses)}")
        index_count = sum(1 for i in entries if i is not None and i is not Ellipsis)
        if index_count > self.ndim:
            raise AxisError(
                f"index: expected at most {self.ndim} indices for shape {self.shape}, got {index_count}"
            )
        ellipsis = ellipses[0] if ellipses else len(entries)
        entries[ellipsis : ellipsis + 1] = [slice(None)] * (self.ndim - index_count)
        bounds: list[Any] = []
        steps: list[int] = []
        flips: list[int] = []
        shape: list[Any] = []  # of the view: 1 for a None, and where `kept`, first the axis, then its size
        kept_axes: list[int] = []
        picks: list[tuple[int, Any]] = []
        axis = 0
        for i in entries:
            if i is None:
                shape.append(1)
                continue
            n = self.shape[axis]
            if isinstance(i, slice):
                lo, hi, step = _slice_of(i, n, axis)
                bounds.append((lo, hi))
                steps.append(abs(step))
                if step < 0:
                    flips.append(axis)
                kept_axes.append(len(shape))
                shape.append(axis)
            elif isinstance(i, TensorBase):
                check_index("index", i, n, f"axis {axis} of shape {self.shape}", negative=True)
                bounds.append((0, n))
                steps.append(1)
                picks.append((len(shape), i))
                kept_axes.append(len(shape))
                shape.append(axis)
            else:
                position = n + i if is_negative(i) else i
                if is_negative(position) or not fits(position + 1, n):
                    raise AxisError(
                        f"index: expected {-n} to {n - 1} for axis {axis} of shape {self.shape}, got {i}"
                    )
                bounds.append((position, position + 1))
                steps.append(1)
            axis += 1
        out = self.uop.shrink(tuple(bounds)).flip(tuple(flips))
        if any(s != 1 for s in steps):
            out = _take_steps(out, steps)
        sizes = out.shape
        for k in kept_axes:
            shape[k] = sizes[shape[k]]
        return self._view_of(out.reshape(tuple(shape))), picks

    def _replace_masks(self, entries: list[Any]) -> list[Any]:
        """`entries` with each mask replaced by the positions of its True elements."""
        if not any(isinstance(i, TensorBase) and i.dtype.is_bool for i in entries):
            return entries
        spans = [i.ndim if isinstance(i, TensorBase) and i.dtype.is_bool else 1 for i in entries]
        index_count = sum(
            n for i, n in zip(entries, spans, strict=True) if i is not None and i is not Ellipsis
        )
        out: list[Any] = []
        axis = 0
        for i, span in zip(entries, spans, strict=True):
            if isinstance(i, TensorBase) and i.dtype.is_bool:
                shape = self.shape[axis : axis + span]
                if i.shape != shape:
                    raise AxisError(
                        f"index: expected a mask of shape {shape} for axis {axis} of shape {self.shape}, got "
                        f"{i.shape}"
                    )
                mask: Any = i
                positions = mask.nonzero()
                out += [positions[:, k] for k in range(span)]
            else:
                out.append(i)
            axis += self.ndim - index_count if i is Ellipsis else span if i is not None else 0
        return out

    def _index(self, i: Any) -> Any:
        if isinstance(i, (slice, TensorBase)):
            if isinstance(i, TensorBase) and not i.dtype.is_int and not (i.dtype.is_bool and i.shape):
                raise DTypeError(f"index: expected integers, or bools with axes, got {i.dtype} of {i.shape}")
            return i
        if isinstance(i, bool):
            raise DTypeError("index: expected ints, slices, None, Ellipsis or integer tensors, got a bool")
        if is_size(i):
            return i
        if isinstance(i, (list, tuple)):
            return self._index(self._lift(list(i)))
        if hasattr(i, "__index__") and not getattr(i, "shape", ()):
            return i.__index__()
        try:
            return self._index(self._lift(i))
        except DTypeError as e:
            raise DTypeError(
                f"index: expected an int, slice, None, Ellipsis or integer tensor, got {type(i).__name__}"
            ) from e

    # --- by tensors

    def _pick(self, picks: list[tuple[int, Any]]) -> Self:
        axes = [a for a, _ in picks]
        shape = broadcast_shape([t.shape for _, t in picks])
        k = len(shape)
        # the picked axes go last: (other..., index..., picked...)
        other_axes = [i for i in range(self.ndim) if i not in axes]
        x = self.uop.permute((*other_axes, *axes))
        rest_shape, picked_sizes = x.shape[: len(other_axes)], x.shape[len(other_axes) :]
        full_shape = (*rest_shape, *shape, *picked_sizes)
        x = broadcast_to(x.reshape((*rest_shape, *[1] * k, *picked_sizes)), full_shape)
        hit = _all_hits(picks, picked_sizes, shape, len(other_axes), full_shape)
        terms = self._join(
            UOp(Ops.WHERE, x.dtype, (hit, x, broadcast_constant(x.dtype, 0, full_shape))),
            *[t for _, t in picks],
        )
        summed = tuple(range(len(other_axes) + k, len(full_shape)))
        if x.dtype.is_bool:
            out = terms.any(summed)
        else:
            out = terms._reduce(Ops.ADD, summed, False, x.dtype, x.dtype)
        first = _first_index_axis(axes)
        order = [*range(first), *range(len(other_axes), len(other_axes) + k), *range(first, len(other_axes))]
        return out._with(out.uop.permute(tuple(order)))

    # --- by masks

    def masked_select(self, mask: Self, size: int | None = None, fill_value: Any = 0) -> Self:
        """The elements where `mask` (bool, broadcast with self) holds, in row-major order, 1-D.

        Without `size`, the count is read from the device. With it, the result has `size` elements: the first
        ones, padded with `fill_value`. Raises DTypeError, ShapeError.

        >>> Tensor([1, 2, 3]).masked_select(Tensor([True, False, True])).tolist()
        [1, 3]
        """
        if not mask.dtype.is_bool:
            raise DTypeError(f"masked_select: expected a bool mask, got {mask.dtype}: use .bool()")
        shape = broadcast_shape((self.shape, mask.shape))
        x, m = (t._result(broadcast_to(t.uop, shape)).flatten() for t in (self, mask))
        if size is None:
            places, count = m._true_positions()
            return x.gather(0, places)._first_of(count)
        places, is_there = m._first_positions(size)
        if same_size(x.shape[0], 0):
            return self._of(broadcast_constant(self.dtype, fill_value, (size,)), self._device)
        return is_there.where(
            x.gather(0, places), x._of(broadcast_constant(x.dtype, fill_value, (size,)), x._device)
        )

    def nonzero(self, size: int | None = None, fill_value: int = 0) -> Self:
        """The positions of elements that are not 0, in row-major order: (count, axes), int32.

        Without `size`, the count is read from the device. With it, the result has `size` rows: the first
        ones, padded with `fill_value`.

        >>> Tensor([[0, 1], [2, 0]]).nonzero().tolist()
        [[0, 1], [1, 0]]
        """
        flat = self.ne(0).flatten()
        is_there: Self | None = None
        if size is None:
            places, count = flat._true_positions()
        else:
            places, is_there = flat._first_positions(size)
            count = size
        columns: list[Self] = []
        for axis, n in reversed(list(enumerate(self.shape))):
            if axis == 0 or same_size(n, 0):
                columns.append(places)
            else:
                columns.append(places.mod(n))
                places = places.div(n, rounding_mode="floor")
        if not columns:
            return self._of(broadcast_constant(dtypes.int32, 0, (count, 0)), self._device)
        out = columns[-1].stack(*columns[-2::-1], dim=1)
        if is_there is None:
            return out._first_of(count)
        return is_there.unsqueeze(1).where(out, fill_value)

    argwhere = nonzero

    @computing
    def _read(self) -> list[Any]:
        """The elements of a 1-D Tensor, computed now."""
        return unpack(data_of(self.uop.contiguous(), self._device), self.dtype) if 0 not in self.shape else []

    @computing
    def _true_positions(self) -> tuple[Self, int]:
        """The positions (int32) of the True elements of a 1-D Tensor, and their count, which is read now.
        Valid but meaningless positions follow them: the size is one of few, which few kernels serve."""
        n = self.shape[0]
        if same_size(n, 0):
            return self._of(broadcast_constant(dtypes.int32, 0, (0,)), self._device), 0
        if isinstance(n, int) and goes_in_order(self._device):
            mask = self._with(self.uop.contiguous())
            total = mask._reduce(Ops.ADD, 0, True, dtypes.int32, dtypes.int32)
            total = total._with(total.uop.contiguous())
            realize([mask.uop, total.uop], self._device)
            (count,) = total._read()
            return mask._positions_in_order(_padded_count(count, n)), count
        ranks = self._ranks()
        realize([ranks.uop], ranks._device)
        (count,) = ranks.shrink([(n - 1, n)])._read()
        return self._positions_of_ranks(ranks, _padded_count(count, n) if isinstance(n, int) else n), count

    @computing
    def _first_of(self, count: int) -> Self:
        """The first `count` elements, as a view; all elements are computed now."""
        stored = self
        if self.dtype.is_float:  # the graph stays, as gradients go through it
            stored = self._with(self.uop.contiguous())
            realize([stored.uop], self._device)
        else:
            realize_tensors([self])
        return stored.shrink([(0, count), *[None] * (self.ndim - 1)])

    def _first_positions(self, size: int) -> tuple[Self, Self]:
        """The positions (int32) of the first `size` True elements of a 1-D Tensor, lazily, and for each
        whether it exists."""
        places = self._of(UOp(Ops.ARANGE, dtypes.int32, (), size), self._device)
        count = self._reduce(Ops.ADD, 0, False, dtypes.int32, dtypes.int32)
        return self._positions_of_ranks(self._ranks(), size), places < count

    def _ranks(self) -> Self:
        """The inclusive prefix counts (int32) of the True elements of a 1-D bool Tensor, stored."""
        ranks = self._with(self.uop.cast(dtypes.int32)).cumsum(0)
        return ranks._with(ranks.uop.contiguous())

    def _positions_of_ranks(self, ranks: Self, size: int) -> Self:
        """The positions (int32) of the first `size` True elements, then any positions. On a GPU a binary
        search finds each rank, in parallel. Elsewhere every position is written where the next True element
        belongs, sequentially: that of the element itself is the last there."""
        if Device.is_gpu(self._device):
            number = UOp(Ops.ARANGE, dtypes.int32, (), size) + 1
            at = self._of(binary_search.places(ranks.uop, number, right=False), self._device)
            return at._with((at < self.shape[0]).where(at, 0).uop.contiguous())
        return self._write_positions(ranks - self._with(self.uop.cast(dtypes.int32)), size)

    def _positions_in_order(self, size: int) -> Self:
        """As `_positions_of_ranks`, in one pass through the elements: the count of earlier True elements is a
        sum over comparisons, which becomes a running value of the loop that writes (`keyed-scan`)."""
        pairs = (self.shape[0], self.shape[0])
        is_earlier = arange_axis(pairs, 1) < arange_axis(pairs, 0)
        other = broadcast_to(self.uop.reshape((1, self.shape[0])), pairs)
        count = (is_earlier & other).cast(dtypes.int32).reduce_axis(Ops.ADD, (1,))
        return self._write_positions(self._with(count.reshape(self.shape)), size)

    def _write_positions(self, places: Self, size: int) -> Self:
        """For each of `size` places the last of the positions that have it."""
        hit = places.is_class(size, 0)
        positions = broadcast_to(UOp(Ops.ARANGE, dtypes.int32, (), self.shape[0]), hit.shape)
        is_written, last = last_writer(hit, hit._with(positions))
        return last._with(is_written.where(last, 0).uop.contiguous())

    # --- setting

    def __delitem__(self, indices: Any) -> None:
        """Raises ArgumentError: a Tensor has a fixed size."""
        raise ArgumentError(
            "del t[...]: expected no deletion, as a Tensor has a fixed size: use slices and cat"
        )

    @computing
    def __setitem__(self, indices: Any, v: TensorLike) -> None:
        """Write `v` (broadcast, converted to this dtype) to the elements at `indices`: those of `t[...]`, or
        a bool Tensor of the shape of the first axes, whose True elements all get `v`.

        All views of the same elements see the write, as with `assign`. Raises the errors of indexing;
        ShapeError, DeviceError, ArgumentError for a view that shows an element twice, and GradientError for a
        leaf that requires a gradient.
        """
        if self.requires_grad and not self._derived and modes.grad_enabled:
            raise GradientError(
                "setitem: the Tensor is a leaf that requires a gradient: write to it under Tensor.no_grad()"
            )
        value: Any = v if isinstance(v, TensorBase) else self._lift(v)
        if value._device is not None and value._device != self.device:
            value = value._with(value.uop.copy_to(self.device))
        mask = self._mask(indices)
        if mask is not None and (value.ndim <= self.ndim - mask.ndim or same_size(value.shape[0], 1)):
            write(self, self._set_by_mask(mask, value), value)
            return
        view, picks = self._view(indices)
        if picks:
            written_mask, new_value = view._set_by_tensors(picks, value)
            new_value = UOp(Ops.WHERE, self.dtype, (written_mask, new_value, view.uop))
        else:
            new_value = _fit(value.uop.cast(self.dtype), view.shape)
        if new_value is not view.uop:  # `t[i] += x` ends with t[i] = the view itself
            write(view, new_value, value)

    def _mask(self, indices: Any) -> Self | None:
        """`indices` as a bool Tensor, if they are one mask; else None."""
        if isinstance(indices, tuple) and len(indices) == 1:
            (indices,) = indices
        if _is_of_bools(indices) or (not isinstance(indices, TensorBase) and hasattr(indices, "__array__")):
            indices = self._lift(indices)
        return indices if isinstance(indices, TensorBase) and indices.dtype.is_bool else None  # type: ignore[return-value]

    def _set_by_mask(self, mask: Self, value: Self) -> UOp:
        """This Tensor's value with `value` where `mask` holds."""
        shape, k = self.shape, mask.ndim
        if mask.shape != shape[:k]:
            raise ShapeError(
                f"setitem: expected a mask of the shape of the first axes of {shape}, got {mask.shape}"
            )
        new = value.uop.cast(self.dtype)
        condition = broadcast_to(mask.uop.reshape((*mask.shape, *[1] * (len(shape) - k))), shape)
        new = _fit(new, (1,) * k + shape[k:]).expand(shape)
        return UOp(Ops.WHERE, self.dtype, (condition, new, self.uop))

    def _set_by_tensors(self, picks: list[tuple[int, Any]], value: Self) -> tuple[UOp, UOp]:
        """A mask of the elements of this view that are written, and their values: the last of several writers
        wins."""
        axes = [a for a, _ in picks]
        shape = broadcast_shape([t.shape for _, t in picks])
        k = len(shape)
        other_axes = [i for i in range(self.ndim) if i not in axes]
        first = _first_index_axis(axes)
        rest_shape = tuple([self.shape[i] for i in other_axes])
        picked_sizes = tuple([self.shape[i] for i in axes])
        value_shape = (*rest_shape[:first], *shape, *rest_shape[first:])
        v = _fit(value.uop.cast(self.dtype), value_shape)
        # (other..., index...)
        v = v.permute((*range(first), *range(first + k, len(value_shape)), *range(first, first + k)))
        full_shape = (*rest_shape, *shape, *picked_sizes)
        hit = _all_hits(picks, picked_sizes, shape, len(other_axes), full_shape)
        # writers last: (other..., picked..., writers)
        r = len(other_axes)
        order = (*range(r), *range(r + k, len(full_shape)), *range(r, r + k))
        writers = 1
        for n in shape:
            writers *= n
        hits = self._of(hit.permute(order).reshape((*rest_shape, *picked_sizes, writers)))
        values = v.reshape((*rest_shape, *[1] * len(picked_sizes), writers)).expand(hits.shape)
        written_mask, new = last_writer(hits, self._of(values))
        own_order = argsort((*other_axes, *axes))
        return written_mask.uop.permute(own_order), new.uop.permute(own_order)


def _padded_count(count: int, size: int) -> int:
    """How many elements are computed where `count` of `size` are the result: a power of two, or `size`."""
    return min(size, max(1 << (count - 1).bit_length(), _MIN_PADDED))


def _is_of_bools(x: Any) -> bool:
    """Whether `x` is a list of bools, possibly nested."""
    return isinstance(x, list) and len(x) > 0 and all(isinstance(i, bool) or _is_of_bools(i) for i in x)


def _fit(value: UOp, shape: tuple[Any, ...]) -> UOp:
    old_shape = value.shape
    while len(old_shape) > len(shape) and same_size(old_shape[0], 1):
        value = value.reshape(old_shape[1:])
        old_shape = value.shape
    if len(old_shape) > len(shape) or any(
        not same_size(a, b) and not same_size(a, 1)
        for a, b in zip(reversed(old_shape), reversed(shape), strict=False)
    ):
        raise ShapeError(f"setitem: expected a value that broadcasts to {shape}, got {value.shape}")
    return broadcast_to(value, shape)


def _first_index_axis(axes: list[int]) -> int:
    """The position of the index axes in the result: that of `axes` if these are adjacent, else in front."""
    return axes[0] if axes == list(range(axes[0], axes[0] + len(axes))) else 0


def _all_hits(picks: list[tuple[int, Any]], sizes: Any, shape: Any, lead: int, full_shape: Any) -> UOp:
    """A mask of the positions that all index tensors (broadcast to `shape`, behind `lead` axes) select."""
    hit: UOp | None = None
    for j, (_, t) in enumerate(picks):
        names = _hits(t, sizes[j], shape, j, len(picks), lead, full_shape)
        hit = names if hit is None else UOp(Ops.AND, dtypes.bool, (hit, names))
    assert hit is not None
    return hit


def _hits(t: Any, n: Any, shape: Any, j: int, count: int, lead: int, full_shape: Any) -> UOp:
    """A mask of the positions r < n that the j-th of `count` index tensors (of one `shape`, behind `lead`
    axes) selects."""
    t = t._with(as_positions(t.uop))
    index = t.uop if t.dtype.is_unsigned else (t < 0).where(t + n, t).uop
    index = broadcast_to(index, shape).reshape((*[1] * lead, *shape, *[1] * count))
    positions = UOp(Ops.ARANGE, dtypes.int32, (), n).cast(index.dtype)
    column = [1] * (lead + len(shape) + count)
    column[lead + len(shape) + j] = n
    return UOp(
        Ops.CMPEQ,
        dtypes.bool,
        (index.expand(full_shape), positions.reshape(tuple(column)).expand(full_shape)),
    )


def _is_index_of_its_own(i: Any) -> bool:
    """Whether an element of a list can only be an index along an axis, not a number of an array."""
    return i is None or i is Ellipsis or isinstance(i, (slice, TensorBase))


def _slice_of(s: slice, n: Any, axis: int) -> tuple[Any, Any, int]:
    """A slice's (lo, hi, step) as bounds in increasing order, as Python clamps them.

    Symbolic bounds are clamped by the values that their Variables are bound to.
    """
    step = 1 if s.step is None else s.step
    if not isinstance(step, int) or step == 0:
        raise ArgumentError(f"slice: expected a step other than 0 for axis {axis}, got {s.step!r}")
    parts = [p if p is None or isinstance(p, UOp) else p.__index__() for p in (s.start, s.stop)]
    if isinstance(n, int) and not any(isinstance(p, UOp) for p in parts):
        start, stop, step = slice(parts[0], parts[1], step).indices(n)
        count = len(range(start, stop, step))
        if count == 0:
            return 0, 0, 1
        last = start + (count - 1) * step
        return (start, last + 1, step) if step > 0 else (last, start + 1, step)
    for p in parts:
        if p is not None and not is_size(p):
            raise ArgumentError(f"slice: expected ints or Variables for axis {axis}, got {p!r}")
    first, last = (0, n) if step > 0 else (-1, n - 1)  # what bounds are clamped to
    begin, end = (
        default if p is None else smaller(larger(p + n, first) if is_negative(p) else p, last)
        for p, default in zip(parts, (first, last) if step > 0 else (last, first), strict=True)
    )
    lo, hi = (begin, end) if step > 0 else (end + 1, begin + 1)
    return (lo, hi, step) if fits(lo, hi) else (0, 0, 1)


def _take_steps(x: UOp, steps: list[int]) -> UOp:
    """Every steps[i]-th element of axis i, from the first."""
    shape = x.shape
    counts = [ceildiv(n, s) if s != 1 else n for n, s in zip(shape, steps, strict=True)]
    x = x.pad(
        tuple([(0, c * s - n) if s != 1 else (0, 0) for c, s, n in zip(counts, steps, shape, strict=True)])
    )
    x = x.reshape(
        tuple([v for c, s in zip(counts, steps, strict=True) for v in ((c, s) if s != 1 else (c,))])
    )
    bounds = [
        p for c, s in zip(counts, steps, strict=True) for p in (((0, c), (0, 1)) if s != 1 else ((0, c),))
    ]
    return x.shrink(tuple(bounds)).reshape(tuple(counts))
