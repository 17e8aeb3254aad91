"""Movement ops: views of the same elements. Nothing here computes or copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from polygrad.errors import ArgumentError, ShapeError
from polygrad.helpers import argsort, ceildiv, prod
from polygrad.tensor.core.base import TensorBase
from polygrad.tensor.core.rearrange import plan as rearrangement
from polygrad.tensor.core.sizes import (
    args_of,
    as_sizes,
    check_shape,
    each_of,
    equal,
    fits,
    fixed_size,
    is_negative,
    larger,
    python_number,
    same_size,
    smaller,
)
from polygrad.uop.args import Shear
from polygrad.uop.shapes import Sint
from polygrad.uop.sizes import canonical


class MovementMixin(TensorBase):
    """Movement ops, and what is made of them alone."""

    __slots__ = ()

    # --- the six primitives

    def reshape(self, shape: Any, *args: Any) -> Self:
        """The elements in row-major order as `shape`; one size may be -1, which is inferred.

        None keeps the size of the axis at its place; behind the last axis it is inferred, as -1. Raises
        ShapeError when the sizes do not multiply to the number of elements.

        The result is always a view: a write through it changes the original. torch copies a Tensor that
        is not contiguous.

        >>> Tensor([1, 2, 3, 4]).reshape(2, -1).tolist()
        [[1, 2], [3, 4]]
        """
        old_shape = self.uop.shape
        new_shape = as_sizes(args_of(shape, args))
        if None in new_shape:
            default_sizes = (*old_shape, *[-1] * (len(new_shape) - len(old_shape)))
            new_shape = tuple([default_sizes[i] if s is None else s for i, s in enumerate(new_shape)])
        holes = [i for i, s in enumerate(new_shape) if isinstance(s, int) and s == -1]
        if len(holes) > 1:
            raise ShapeError(f"reshape: expected at most one -1, got {new_shape}")
        if holes:
            known_product = canonical(prod([s for i, s in enumerate(new_shape) if i != holes[0]]))
            total = canonical(prod(old_shape))
            hole = canonical(total // known_product) if not same_size(known_product, 0) else -1
            if not same_size(hole * known_product, total) and (
                isinstance(hole, int) or equal(known_product, 0) or not equal(hole * known_product, total)
            ):
                raise ShapeError(
                    f"reshape: expected sizes that divide {total} elements (shape {old_shape}), got "
                    f"{new_shape}"
                )
            new_shape = tuple([hole if i == holes[0] else s for i, s in enumerate(new_shape)])
        new_shape = check_shape(new_shape, "reshape")
        if new_shape == old_shape:
            return self
        total, new_total = canonical(prod(old_shape)), canonical(prod(new_shape))
        if not same_size(total, new_total) and not equal(total, new_total):
            raise ShapeError(
                f"reshape: expected {total} elements (shape {old_shape}), got {new_shape} with {new_total}"
            )
        return self._view_of(self.uop.reshape(new_shape))

    def view(self, shape: Any, *args: Any) -> Self:
        """`reshape`.

        >>> Tensor([1, 2, 3, 4]).view(2, 2).tolist()
        [[1, 2], [3, 4]]
        """
        return self.reshape(shape, *args)

    def expand(self, shape: Any, *args: Any) -> Self:
        """Axes of size 1 repeated to `shape`, new ones in front; -1 or None keeps a size.

        Raises ShapeError.

        >>> Tensor([[1], [2]]).expand(2, 3).tolist()
        [[1, 1, 1], [2, 2, 2]]
        """
        old_shape, new_shape = self.uop.shape, as_sizes(args_of(shape, args))
        if len(new_shape) < len(old_shape):
            raise ShapeError(
                f"expand: expected at least {len(old_shape)} axes for shape {old_shape}, got {new_shape}"
            )
        old_shape = (1,) * (len(new_shape) - len(old_shape)) + old_shape
        new_shape = tuple(
            [
                o if s is None or (isinstance(s, int) and s == -1) else s
                for s, o in zip(new_shape, old_shape, strict=True)
            ]
        )
        new_shape = check_shape(new_shape, "expand")
        for o, s in zip(old_shape, new_shape, strict=True):
            if not same_size(o, s) and not (isinstance(o, int) and o == 1):
                raise ShapeError(
                    f"expand: expected sizes of {self.uop.shape}, or any for a 1, got {new_shape}: {s} for "
                    f"{o}"
                )
        return self._view_of(self.uop.reshape(old_shape).expand(new_shape))

    broadcast_to = expand

    def permute(self, order: Any, *args: Any) -> Self:
        """Axis i of the result is axis `order[i]`. Raises ArgumentError unless every axis is named once.

        >>> Tensor.zeros(2, 3, 4).permute(2, 0, 1).shape
        (4, 2, 3)
        """
        axes = tuple([self._axis(a) for a in args_of(order, args)])
        if sorted(axes) != list(range(self.ndim)):
            raise ArgumentError(
                f"permute: expected every axis of shape {self.shape} once, got {args_of(order, args)}"
            )
        return self._view_of(self.uop.permute(axes))

    def flip(self, axis: Any, *args: Any) -> Self:
        """The named axes reversed. Raises AxisError.

        >>> Tensor([[1, 2], [3, 4]]).flip(0).tolist()
        [[3, 4], [1, 2]]
        """
        return self._view_of(self.uop.flip(self._axes(args_of(axis, args))))

    def shrink(self, arg: Sequence[tuple[Sint, Sint] | None]) -> Self:
        """Elements lo (included) to hi (not) of each axis; None keeps an axis. Raises ShapeError.

        >>> Tensor([1, 2, 3, 4]).shrink([(1, 3)]).tolist()
        [2, 3]
        """
        old_shape = self.uop.shape
        if len(arg) != len(old_shape):
            raise ShapeError(f"shrink: expected {len(old_shape)} pairs for shape {old_shape}, got {len(arg)}")
        pairs = tuple([(0, s) if p is None else (p[0], p[1]) for p, s in zip(arg, old_shape, strict=True)])
        for (lo, hi), s in zip(pairs, old_shape, strict=True):
            if is_negative(lo) or not fits(lo, hi) or not fits(hi, s):
                raise ShapeError(
                    f"shrink: expected 0 <= lo <= hi <= {s}, got {(lo, hi)} for shape {old_shape}"
                )
        return self._view_of(self.uop.shrink(pairs))

    def _pad_view(self, padding: tuple[tuple[Sint, Sint], ...]) -> Self:
        """A view with padding around it, which the caller removes again after a reshape."""
        return self._view_of(self.uop.pad(padding))

    # --- axes

    def transpose(self, dim0: int = 1, dim1: int = 0) -> Self:
        """Two axes swapped.

        >>> Tensor([[1, 2], [3, 4]]).transpose(0, 1).tolist()
        [[1, 3], [2, 4]]
        """
        a, b = self._axis(dim0), self._axis(dim1)
        order = list(range(self.ndim))
        order[a], order[b] = b, a
        return self._view_of(self.uop.permute(tuple(order)))

    swapaxes = swapdims = transpose

    @property
    def T(self) -> Self:
        """The matrix transposed.

        The last two axes, as tinygrad's; torch's `T` reverses all axes: `permute(2, 1, 0)`.

        >>> Tensor([[1, 2], [3, 4]]).T.tolist()
        [[1, 3], [2, 4]]
        """
        return self.transpose()

    def t(self) -> Self:
        """The transpose of a matrix; fewer axes stay as they are. Raises ShapeError for more than 2.

        >>> Tensor([[1, 2], [3, 4]]).t().tolist()
        [[1, 3], [2, 4]]
        """
        if self.ndim > 2:
            raise ShapeError(f"t: expected at most 2 axes, got shape {self.shape}: use mT or transpose")
        return self.transpose(0, 1) if self.ndim == 2 else self.reshape(self.shape)

    def movedim(self, source: int | Sequence[int], destination: int | Sequence[int]) -> Self:
        """Axes `source` at the places `destination`, the others in their order.

        Raises ArgumentError for axes that are not as many or occur twice, AxisError.

        >>> Tensor.zeros(2, 3, 4).movedim(0, -1).shape
        (3, 4, 2)
        """
        source, destination = python_number(source), python_number(destination)
        sources = [source] if isinstance(source, int) else list(source)
        destinations = [destination] if isinstance(destination, int) else list(destination)
        froms, tos = [self._axis(i) for i in sources], [self._axis(i) for i in destinations]
        if not len(froms) == len(tos) == len(set(froms)) == len(set(tos)):
            raise ArgumentError(
                f"movedim: expected as many sources as destinations, got {source} and {destination}"
            )
        other_axes = iter([i for i in range(self.ndim) if i not in froms])
        source_of = dict(zip(tos, froms, strict=True))
        return self.permute([source_of[i] if i in source_of else next(other_axes) for i in range(self.ndim)])

    moveaxis = movedim

    def flipud(self) -> Self:
        """The first axis in reverse.

        >>> Tensor([[1, 2], [3, 4]]).flipud().tolist()
        [[3, 4], [1, 2]]
        """
        return self.flip(0)

    def fliplr(self) -> Self:
        """The second axis in reverse. Raises AxisError.

        >>> Tensor([[1, 2], [3, 4]]).fliplr().tolist()
        [[2, 1], [4, 3]]
        """
        return self.flip(1)

    def rot90(self, k: int = 1, dims: Sequence[int] = (0, 1)) -> Self:
        """Rotated by k quarter turns, from the first of `dims` towards the second. Raises ArgumentError,
        AxisError.

        >>> Tensor([[1, 2], [3, 4]]).rot90().tolist()
        [[2, 4], [1, 3]]
        """
        axes = [self._axis(d) for d in dims]
        if len(axes) != 2 or axes[0] == axes[1]:
            raise ArgumentError(f"rot90: expected two different axes, got {tuple(dims)}")
        a, b = axes
        if k % 4 == 2:
            return self.flip((a, b))
        rotations = {1: self.flip(b).transpose(a, b), 3: self.flip(a).transpose(a, b)}
        return rotations.get(k % 4, self._view_of(self.uop))

    def squeeze(self, dim: int | None = None) -> Self:
        """Axes of size 1 dropped; only `dim`, if given.

        >>> Tensor.zeros(1, 2, 1).squeeze().shape
        (2,)
        """
        if dim is None:
            return self.reshape(tuple([s for s in self.shape if not same_size(s, 1)]))
        axis = self._axis(dim)
        if not self.shape or not same_size(self.shape[axis], 1):
            return self
        return self._view_of(self.uop.reshape(self.shape[:axis] + self.shape[axis + 1 :]))

    def unsqueeze(self, dim: int) -> Self:
        """A new axis of size 1 at `dim`.

        >>> Tensor([1, 2]).unsqueeze(0).shape
        (1, 2)
        """
        axis = self._axis(dim, 1)
        return self._view_of(self.uop.reshape((*self.shape[:axis], 1, *self.shape[axis:])))

    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Self:
        """Axes `start_dim` to `end_dim` made one. Raises ArgumentError.

        >>> Tensor([[1, 2], [3, 4]]).flatten().tolist()
        [1, 2, 3, 4]
        """
        a, b = self._axis(start_dim), self._axis(end_dim)
        if a > b and self.shape:
            raise ArgumentError(f"flatten: expected start_dim up to end_dim, got {start_dim} and {end_dim}")
        return self.reshape((*self.shape[:a], prod(self.shape[a : b + 1]), *self.shape[b + 1 :]))

    def ravel(self) -> Self:
        """One axis of all elements.

        >>> Tensor([[1, 2], [3, 4]]).ravel().tolist()
        [1, 2, 3, 4]
        """
        return self.flatten()

    def unflatten(self, dim: int, sizes: tuple[int, ...]) -> Self:
        """Axis `dim` split into `sizes`, one of which may be -1. Raises ShapeError.

        >>> Tensor.zeros(6).unflatten(0, (2, 3)).shape
        (2, 3)
        """
        axis = self._axis(dim)
        sizes = tuple([python_number(s) for s in sizes])
        known_product = prod([s for s in sizes if not (isinstance(s, int) and s == -1)])
        n = self.shape[axis]
        sizes = tuple(
            [n // known_product if isinstance(s, int) and s == -1 and known_product else s for s in sizes]
        )
        if not same_size(prod(sizes), n):
            raise ShapeError(f"unflatten: expected sizes that multiply to {n}, got {sizes}")
        return self.reshape(self.shape[:axis] + tuple(sizes) + self.shape[axis + 1 :])

    def expand_as(self, other: Self) -> Self:
        """Expanded to the shape of `other`. Raises ShapeError.

        >>> Tensor([1, 2]).expand_as(Tensor.zeros(2, 2)).tolist()
        [[1, 2], [1, 2]]
        """
        return self.expand(other.shape)

    def reshape_as(self, other: Self) -> Self:
        """In the shape of `other`. Raises ShapeError.

        >>> Tensor([1, 2]).reshape_as(Tensor.zeros(2, 1)).tolist()
        [[1], [2]]
        """
        return self.reshape(other.shape)

    view_as = reshape_as

    def shrink_to(self, shape: Any, *args: Any) -> Self:
        """The first elements of each axis, as many as `shape` says; None keeps an axis.

        >>> Tensor([1, 2, 3]).shrink_to(2).tolist()
        [1, 2]
        """
        return self.shrink([None if s is None else (0, s) for s in args_of(shape, args)])

    def narrow(self, dim: int, start: int, length: int) -> Self:
        """`length` elements along `dim`, from `start` on: a view. Raises AxisError, ShapeError.

        >>> Tensor([1, 2, 3, 4]).narrow(0, 1, 2).tolist()
        [2, 3]
        """
        axis = self._axis(dim)
        size = fixed_size(self.shape[axis], "narrow")
        first = start + size if start < 0 else start
        if not 0 <= first <= first + length <= size:
            raise ShapeError(f"narrow: expected a part of {size} elements, got {length} from {start}")
        return self.shrink([(first, first + length) if i == axis else None for i in range(self.ndim)])

    def rearrange(self, formula: str, **sizes: int) -> Self:
        """Axes split, permuted and merged by an einops formula: `x.rearrange("b (h w) c -> b c h w", h=8)`.

        Names stand for axes, parentheses for axes that are split or merged, `...` for any number of axes, `1`
        and `()` for one of size 1. `sizes`: of axes that are split, but for one in each parentheses. Raises
        ArgumentError, ShapeError.

        >>> Tensor([[1, 2], [3, 4]]).rearrange("rows columns -> (columns rows)").tolist()
        [1, 3, 2, 4]
        """
        plan = rearrangement(formula, self.shape, sizes)
        return self.reshape(plan.split).permute(plan.order).reshape(plan.merged)

    # --- diagonals and windows

    def diagonal(self, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Self:
        """The diagonal of axes `dim1` and `dim2`, as the last axis, `offset` above the main one.

        Raises ArgumentError.

        >>> Tensor([[1, 2], [3, 4]]).diagonal().tolist()
        [1, 4]
        """
        a, b = self._axis(dim1), self._axis(dim2)
        if a == b:
            raise ArgumentError(f"diagonal: expected two axes, got {dim1} and {dim2}")
        x = self.permute([i for i in range(self.ndim) if i not in (a, b)] + [a, b])
        lead, (m, n) = x.shape[:-2], x.shape[-2:]
        down, right = max(-offset, 0), max(offset, 0)
        length = larger(smaller(m - down, n - right), 0)
        if same_size(length, 0):
            return x.reshape(*lead, -1).shrink([*([None] * len(lead)), (0, 0)])
        keep: list[Any] = [None] * len(lead)
        x = x.shrink([*keep, (down, down + length), (right, right + length)])
        # element (i, i) lies at i * (length + 1)
        x = x.reshape(*lead, length * length)._pad_view((*[(0, 0)] * len(lead), (0, length)))
        x = x.reshape(*lead, length, length + 1)
        return x.shrink([*keep, None, (0, 1)]).reshape(*lead, length)

    def unfold(self, dim: int, size: int, step: int) -> Self:
        """Windows of `size` elements, `step` apart, along `dim`; the windows' own axis comes last.

        Raises ArgumentError.

        As torch.Tensor's; torch.nn.functional's takes blocks of images, which are `pool` here.

        >>> Tensor([1, 2, 3, 4]).unfold(0, 2, 1).tolist()
        [[1, 2], [2, 3], [3, 4]]
        """
        axis = self._axis(dim)
        if is_negative(size) or step <= 0 or not fits(size, self.shape[axis]):
            raise ArgumentError(
                f"unfold: expected 0 <= size <= {self.shape[axis]} and step > 0, got {size} and {step}"
            )
        order = [i for i in range(self.ndim) if i != axis] + [axis]
        return self.permute(order).pool((size,), step).permute(*argsort(order), self.ndim)

    def pool(self, k: tuple[Sint, ...], stride: Any = 1, dilation: Any = 1) -> Self:
        """Windows over the last len(k) axes: (..., *outputs, *k).

        It is made of movement ops alone: each axis is repeated and sheared, so that every repetition starts
        `dilation` elements later. Raises ArgumentError when a window is larger than its axis, and for strides
        and dilations under 1.

        >>> Tensor([1, 2, 3]).pool((2,)).tolist()
        [[1, 2], [2, 3]]
        """
        n = len(k)
        strides, dilations = each_of(stride, n), each_of(dilation, n)
        if len(strides) != n or len(dilations) != n or self.ndim < n:
            raise ArgumentError(f"pool: expected {n} strides and dilations, got {stride} and {dilation}")
        if any(x < 1 for x in (*strides, *dilations)):
            raise ArgumentError(
                f"pool: expected strides and dilations from 1 up, got {stride} and {dilation}"
            )
        lead = self.shape[: self.ndim - n]
        sizes = self.shape[self.ndim - n :]
        for size, window, d in zip(sizes, k, dilations, strict=True):
            if not fits(d * (window - 1) + 1, size):
                raise ArgumentError(
                    f"pool: expected windows that fit {sizes}, got {k} with dilation {dilations}"
                )
        outs = [ceildiv(i - d * (w - 1), s) for i, d, w, s in zip(sizes, dilations, k, strides, strict=True)]
        keep: list[Any] = [None] * len(lead)
        if all(w <= s and d == 1 for w, s, d in zip(k, strides, dilations, strict=True)):
            # windows do not overlap: every window takes s elements, also the last, which uses w of them;
            # o * s <= i + s - w holds for a symbolic i
            spans = [o * s for o, s in zip(outs, strides, strict=True)]
            fixed = [isinstance(i, int) for i in sizes]
            x = self.shrink(
                [*keep, *[(0, min(n, i)) if f else None for n, i, f in zip(spans, sizes, fixed, strict=True)]]
            )
            missing = [
                max(n - i, 0) if f else s - w
                for n, i, f, s, w in zip(spans, sizes, fixed, strides, k, strict=True)
            ]
            x = x._pad_view((*[(0, 0)] * len(lead), *[(0, m) for m in missing]))
            x = x._view_of(x.uop.shrink((*[(0, s) for s in lead], *[(0, n) for n in spans])))
            x = x.reshape(*lead, *[v for o, s in zip(outs, strides, strict=True) for v in (o, s)])
            x = x.shrink([*keep, *[v for o, w in zip(outs, k, strict=True) for v in ((0, o), (0, w))]])
        else:
            x = self.reshape(*lead, *[v for i in sizes for v in (i, 1)])
            x = x.expand(*lead, *[v for i, w in zip(sizes, k, strict=True) for v in (i, w)])
            axes = range(len(lead), x.ndim, 2)
            for axis, o, s, d in zip(axes, outs, strides, dilations, strict=True):
                x = x._view_of(x.uop.shear(Shear(axis, axis + 1, 0, d, (o - 1) * s + 1)))
            x = x._pad_view((*[(0, 0)] * len(lead), *[v for s in strides for v in ((0, s - 1), (0, 0))]))
            x = x.reshape(*lead, *[v for o, s, w in zip(outs, strides, k, strict=True) for v in (o, s, w)])
            x = x.shrink([*keep, *[v for o, w in zip(outs, k) for v in ((0, o), (0, 1), (0, w))]])
            x = x.reshape(*lead, *[v for o, w in zip(outs, k, strict=True) for v in (o, w)])
        m = len(lead)
        return x.permute(*range(m), *[m + 2 * i for i in range(n)], *[m + 2 * i + 1 for i in range(n)])
