"""Joining, splitting and repeating: several Tensors as one, and one as several."""

from __future__ import annotations

from typing import Any, Self

from polygrad.dtype import promote
from polygrad.errors import ArgumentError, ShapeError
from polygrad.helpers import ceildiv
from polygrad.tensor.core.base import TensorBase
from polygrad.tensor.core.sizes import (
    args_of,
    equal,
    fits,
    is_negative,
    is_size,
    python_number,
    same_size,
    smaller,
)
from polygrad.tensor.movement import MovementMixin
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.shapes import Sint
from polygrad.uop.sizes import canonical


def _tensors(first: Any, others: tuple[Any, ...], what: str) -> tuple[Any, ...]:
    """The Tensors of `a.f(b, c)` and of `Tensor.f((a, b, c))`. Raises ArgumentError."""
    out = args_of(first, others)
    non_tensor = next((x for x in out if not isinstance(x, TensorBase)), None)
    if non_tensor is not None or not out:
        actual = "none" if not out else f"a {type(non_tensor).__name__}"
        raise ArgumentError(f"{what}: expected Tensors, or one tuple of them and dim=, got {actual}")
    return out


def _with_axis(first: Any, others: tuple[Any, ...], dim: int) -> tuple[tuple[Any, ...], int]:
    """The arguments after the first, and the axis, which follows the tuple in `Tensor.f((a, b), 1)`."""
    if isinstance(first, (tuple, list)) and len(others) == 1 and not isinstance(others[0], TensorBase):
        return (), others[0]
    return others, dim


# The most nodes that one kernel joins. It has a condition for each node at every element, so compile time
# grows with the square of their number. More nodes are joined in groups, which share a kernel.
_MAX_JOINED = 32


def _concatenate(nodes: list[UOp], axis: int) -> UOp:
    """Concatenate nodes of one dtype: each is padded to the full size, and the results are added."""
    total: Sint = 0
    for node in nodes:
        total = total + node.shape[axis]
    out: UOp | None = None
    start: Sint = 0
    for node in nodes:
        n = node.shape[axis]
        pairs = [(start, total - start - n) if i == axis else (0, 0) for i in range(len(node.shape))]
        padded_node = node.pad(tuple(pairs))
        start = start + n
        op = Ops.OR if node.dtype.is_bool else Ops.ADD
        out = padded_node if out is None else UOp(op, node.dtype, (out, padded_node))
    assert out is not None
    return out


class JoiningMixin(MovementMixin):
    """`cat`, `split` and their like."""

    __slots__ = ()

    def cat(self, *args: Self, dim: int = 0) -> Self:
        """This Tensor and `args` one after the other along `dim`; `Tensor.cat((a, b), 1)` does too.

        Raises ShapeError, DeviceError, ArgumentError.

        >>> Tensor([[1, 2]]).cat(Tensor([[3, 4]]), dim=1).tolist()
        [[1, 2, 3, 4]]
        """
        args, dim = _with_axis(self, args, dim)
        first, *args = _tensors(self, args, "cat")  # type: ignore[assignment]
        if first is not self:
            return first.cat(*args, dim=dim)
        axis = self._axis(dim)
        parts = (self, *args)
        for x in args:
            if x.ndim != self.ndim or any(
                i != axis and not same_size(a, b)
                for i, (a, b) in enumerate(zip(self.shape, x.shape, strict=True))
            ):
                raise ShapeError(
                    f"cat: expected shapes equal but for axis {axis}, got {[t.shape for t in parts]}"
                )
        if not args:
            return self._with(self.uop)
        dtype = promote(*[t.dtype for t in parts])
        nodes = [t.uop.cast(dtype) for t in parts]
        while len(nodes) > _MAX_JOINED:
            groups = [nodes[i : i + _MAX_JOINED] for i in range(0, len(nodes), _MAX_JOINED)]
            nodes = [_concatenate(group, axis).contiguous() for group in groups]
        return self._join(_concatenate(nodes, axis), *args)

    def stack(self, *args: Self, dim: int = 0) -> Self:
        """This Tensor and `args`, of one shape, along a new axis `dim`; `Tensor.stack((a, b), 1)` does too.

        Raises ShapeError, DeviceError, ArgumentError.

        >>> Tensor([1, 2]).stack(Tensor([3, 4])).tolist()
        [[1, 2], [3, 4]]
        """
        args, dim = _with_axis(self, args, dim)
        first, *args = _tensors(self, args, "stack")  # type: ignore[assignment]
        if first is not self:
            return first.stack(*args, dim=dim)
        for x in args:
            if x.shape != self.shape:
                raise ShapeError(f"stack: expected one shape, got {[t.shape for t in (self, *args)]}")
        axis = self._axis(dim, 1)
        return self.unsqueeze(axis).cat(*[x.unsqueeze(axis) for x in args], dim=axis)

    def split(self, sizes: Any, dim: int = 0) -> tuple[Self, ...]:
        """Pieces along `dim`: of `sizes` elements each (the last may be smaller), or of the sizes listed.

        Raises ShapeError.

        >>> [part.tolist() for part in Tensor.arange(5).split(2)]
        [[0, 1], [2, 3], [4]]
        """
        axis = self._axis(dim)
        n, sizes = self.shape[axis], python_number(sizes)
        if is_size(sizes):
            if not fits(1, sizes):
                raise ArgumentError(f"split: expected a size above 0, got {sizes}")
            every, remaining, sizes = sizes, n, []
            while not sizes or fits(1, remaining):
                sizes.append(smaller(every, remaining))
                remaining = canonical(remaining - sizes[-1])
        if not equal(sum(sizes), n):
            raise ShapeError(f"split: expected sizes that add up to {n}, got {tuple(sizes)}")
        start: Sint
        out, start = [], 0
        for size in sizes:
            out.append(self.shrink([(start, start + size) if i == axis else None for i in range(self.ndim)]))
            start += size
        return tuple(out)

    def chunk(self, chunks: int, dim: int = 0) -> list[Self]:
        """At most `chunks` pieces of equal size (the last may be smaller) along `dim`.

        Raises ArgumentError.

        >>> [part.tolist() for part in Tensor.arange(5).chunk(2)]
        [[0, 1, 2], [3, 4]]
        """
        chunks = python_number(chunks)
        if not isinstance(chunks, int) or chunks <= 0:
            raise ArgumentError(f"chunk: expected a number above 0, got {chunks!r}")
        axis = self._axis(dim)
        n = self.shape[axis]
        return list(self.split(ceildiv(n, chunks) if fits(1, n) else [0] * chunks, axis))

    def repeat(self, repeats: Any, *args: Any) -> Self:
        """The whole repeated `repeats[i]` times along axis i; further counts add axes in front.

        >>> Tensor([1, 2]).repeat(2).tolist()
        [1, 2, 1, 2]
        """
        counts = args_of(repeats, args)
        if len(counts) < self.ndim:
            raise ShapeError(
                f"repeat: expected at least {self.ndim} counts for shape {self.shape}, got {counts}"
            )
        if any(is_negative(r) for r in counts):
            raise ShapeError(f"repeat: expected counts of at least 0, got {counts}")
        base = (1,) * (len(counts) - self.ndim) + self.shape
        inner = [x for s in base for x in (1, s)]
        spread_shape = [x for r, s in zip(counts, base, strict=True) for x in (r, s)]
        repeated_shape = (
            self.reshape(inner)
            .expand(spread_shape)
            .uop.reshape(tuple([r * s for r, s in zip(counts, base, strict=True)]))
        )
        return self._with(repeated_shape)

    def tile(self, dims: Any, *args: int) -> Self:
        """Repeated along each axis; axes that `dims` (numbers, or a tuple) does not name are the first ones.

        >>> Tensor([1, 2]).tile(2).tolist()
        [1, 2, 1, 2]
        """
        dims = args_of(dims, args)
        return self.repeat([1] * (self.ndim - len(dims)) + list(dims))

    def repeat_interleave(self, repeats: int, dim: int | None = None) -> Self:
        """Each element repeated along `dim`; of the flattened Tensor when None.

        >>> Tensor([1, 2]).repeat_interleave(2).tolist()
        [1, 1, 2, 2]
        """
        if is_negative(repeats):
            raise ShapeError(f"repeat_interleave: expected repeats of at least 0, got {repeats}")
        x, axis = (self.flatten(), 0) if dim is None else (self, self._axis(dim))
        shape = x.shape
        repeated_x = x.reshape((*shape[: axis + 1], 1, *shape[axis + 1 :])).expand(
            (*shape[: axis + 1], repeats, *shape[axis + 1 :])
        )
        return x._with(repeated_x.uop.reshape((*shape[:axis], shape[axis] * repeats, *shape[axis + 1 :])))

    def roll(self, shifts: Any, dims: int | tuple[int, ...] | None = None) -> Self:
        """Elements shifted cyclically by `shifts` along `dims`.

        Of the flattened Tensor when None.

        >>> Tensor([1, 2, 3]).roll(1).tolist()
        [3, 1, 2]
        """
        shifts, dims = python_number(shifts), python_number(dims)
        if dims is None:
            if isinstance(shifts, (tuple, list)) and len(shifts) == 1:
                (shifts,) = shifts
            if not is_size(shifts):
                raise ArgumentError(f"roll: expected one shift without dims, got {shifts}")
            return self.flatten().roll(shifts, 0).reshape(self.shape)
        shifts = (shifts,) if is_size(shifts) else tuple(shifts)
        dims = (dims,) if isinstance(dims, int) else tuple(dims)
        if len(shifts) != len(dims):
            raise ArgumentError(f"roll: expected as many shifts as dims, got {shifts} and {dims}")
        out = self._with(self.uop)
        for shift, dim in zip(shifts, dims, strict=True):
            axis, n = self._axis(dim), self.shape[self._axis(dim)]
            k = 0 if same_size(n, 0) else canonical(shift % n)
            if not same_size(k, 0):
                bounds = [(0, s) for s in out.shape]
                front, back = [*bounds], [*bounds]
                front[axis], back[axis] = (n - k, n), (0, n - k)  # 0 <= k <= n holds by construction
                out = out._with(out.uop.shrink(tuple(front))).cat(
                    out._with(out.uop.shrink(tuple(back))), dim=axis
                )
        return out

    def meshgrid(self, *args: Self, indexing: str = "ij") -> tuple[Self, ...]:
        """Coordinate grids of 1-D Tensors; `indexing` 'ij' or 'xy'. Raises ArgumentError.

        >>> [t.tolist() for t in Tensor([1, 2]).meshgrid(Tensor([3, 4]))]
        [[[1, 1], [2, 2]], [[3, 4], [3, 4]]]
        """
        if indexing not in ("ij", "xy"):
            raise ArgumentError(f"meshgrid: expected indexing 'ij' or 'xy', got {indexing!r}")
        axes = (self, *args)
        if len(axes) == 1:
            return axes
        order = list(range(len(axes)))
        if indexing == "xy":
            order[0], order[1] = 1, 0
        shape = [axes[order.index(i)].numel() for i in range(len(axes))]
        return tuple(
            [
                t.reshape([-1 if i == order[k] else 1 for i in range(len(axes))]).expand(shape)
                for k, t in enumerate(axes)
            ]
        )
