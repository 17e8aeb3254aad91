"""Movement, indexing, reductions and products that torch has under names of their own.

Each is a line or two of what the other modules have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from polygrad.dtype import dtypes
from polygrad.errors import ArgumentError, AxisError, ShapeError
from polygrad.tensor.base import TensorLike
from polygrad.tensor.decompositions import DecompositionsMixin
from polygrad.tensor.random import RandomMixin
from polygrad.tensor.reduce import Axes


class TorchNamesMixin(RandomMixin, DecompositionsMixin):
    """Movement, indexing, reductions and products by torch's names."""

    __slots__ = ()

    swapaxes = swapdims = DecompositionsMixin.transpose
    broadcast_to = DecompositionsMixin.expand
    nelement, argwhere, inverse = (
        DecompositionsMixin.numel,
        DecompositionsMixin.nonzero,
        DecompositionsMixin.inv,
    )
    type_as, ger = DecompositionsMixin.cast_like, DecompositionsMixin.outer
    amax, amin = DecompositionsMixin.max, DecompositionsMixin.min
    mm = bmm = mv = DecompositionsMixin.matmul

    # --- movement

    def dim(self) -> int:
        """How many axes there are: `ndim`.

        >>> Tensor.zeros(2, 3).dim()
        2
        """
        return self.ndim

    def ravel(self) -> Self:
        """One axis of all elements.

        >>> Tensor([[1, 2], [3, 4]]).ravel().tolist()
        [1, 2, 3, 4]
        """
        return self.flatten()

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
        given = [source] if isinstance(source, int) else list(source)
        wanted = [destination] if isinstance(destination, int) else list(destination)
        froms, tos = [self._axis(i) for i in given], [self._axis(i) for i in wanted]
        if not len(froms) == len(tos) == len(set(froms)) == len(set(tos)):
            raise ArgumentError(
                f"movedim: expected as many sources as destinations, got {source} and {destination}"
            )
        rest = iter([i for i in range(self.ndim) if i not in froms])
        placed = dict(zip(tos, froms, strict=True))
        return self.permute([placed[i] if i in placed else next(rest) for i in range(self.ndim)])

    moveaxis = movedim

    def tile(self, *dims: int) -> Self:
        """Repeated along each axis; axes that `dims` does not name are the first ones.

        >>> Tensor([1, 2]).tile(2).tolist()
        [1, 2, 1, 2]
        """
        return self.repeat([1] * (self.ndim - len(dims)) + list(dims))

    def unbind(self, dim: int = 0) -> tuple[Self, ...]:
        """The parts along `dim`, without that axis. Raises AxisError.

        >>> [row.tolist() for row in Tensor([[1, 2], [3, 4]]).unbind()]
        [[1, 2], [3, 4]]
        """
        return tuple(self.select(dim, i) for i in range(_fixed(self.shape[self._axis(dim)], "unbind")))

    def narrow(self, dim: int, start: int, length: int) -> Self:
        """`length` elements along `dim`, from `start` on: a view. Raises AxisError, ShapeError.

        >>> Tensor([1, 2, 3, 4]).narrow(0, 1, 2).tolist()
        [2, 3]
        """
        axis = self._axis(dim)
        size = _fixed(self.shape[axis], "narrow")
        first = start + size if start < 0 else start
        if not 0 <= first <= first + length <= size:
            raise ShapeError(f"narrow: expected a part of {size} elements, got {length} from {start}")
        return self.shrink([(first, first + length) if i == axis else None for i in range(self.ndim)])

    def select(self, dim: int, index: int) -> Self:
        """What is at `index` along `dim`, without that axis: a view. Raises AxisError.

        >>> Tensor([[1, 2], [3, 4]]).select(1, 0).tolist()
        [1, 3]
        """
        axis = self._axis(dim)
        return self[(slice(None),) * axis + (index,)]

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
        """Turned by k quarters, from the first of `dims` towards the second. Raises ArgumentError, AxisError.

        >>> Tensor([[1, 2], [3, 4]]).rot90().tolist()
        [[2, 4], [1, 3]]
        """
        axes = [self._axis(d) for d in dims]
        if len(axes) != 2 or axes[0] == axes[1]:
            raise ArgumentError(f"rot90: expected two different axes, got {tuple(dims)}")
        a, b = axes
        if k % 4 == 2:
            return self.flip((a, b))
        turned = {1: self.flip(b).transpose(a, b), 3: self.flip(a).transpose(a, b)}
        return turned.get(k % 4, self)

    def diff(self, n: int = 1, dim: int = -1) -> Self:
        """The differences between neighbours along `dim`, n times over. Raises ArgumentError, AxisError.

        >>> Tensor([1, 4, 9]).diff().tolist()
        [3, 5]
        """
        if n < 0:
            raise ArgumentError(f"diff: expected n of at least 0, got {n}")
        axis, out = self._axis(dim), self
        for _ in range(n):
            size = _fixed(out.shape[axis], "diff")
            length = max(size - 1, 0)
            late, early = out.narrow(axis, min(1, size), length), out.narrow(axis, 0, length)
            out = late.ne(early) if out.dtype.is_bool else late - early
        return out

    def diag_embed(self) -> Self:
        """Matrices with the last axis on their diagonals.

        >>> Tensor([1, 2]).diag_embed().tolist()
        [[1, 0], [0, 2]]
        """
        n = _fixed(self.shape[self._axis(-1)], "diag_embed")
        at = type(self).arange(n, device=self.device)
        return at.unsqueeze(1).eq(at).where(self.unsqueeze(-1), self.const_like(0).unsqueeze(-1))

    def pixel_shuffle(self, upscale_factor: int) -> Self:
        """(..., c * r², h, w) as (..., c, h * r, w * r) (Shi et al., 2016). Raises ShapeError.

        >>> Tensor([[[1]], [[2]], [[3]], [[4]]]).pixel_shuffle(2).tolist()
        [[[1, 2], [3, 4]]]
        """
        r = upscale_factor
        if self.ndim < 3 or r < 1 or _fixed(self.shape[-3], "pixel_shuffle") % (r * r):
            raise ShapeError(f"pixel_shuffle: expected (..., n * {r * r}, height, width), got {self.shape}")
        return self.rearrange("... (c r s) h w -> ... c (h r) (w s)", r=r, s=r)

    def pixel_unshuffle(self, downscale_factor: int) -> Self:
        """(..., c, h * r, w * r) as (..., c * r², h, w): pixel_shuffle's inverse. Raises ShapeError.

        >>> Tensor([[[1, 2], [3, 4]]]).pixel_unshuffle(2).tolist()
        [[[1]], [[2]], [[3]], [[4]]]
        """
        r = downscale_factor
        if self.ndim < 3 or r < 1 or any(_fixed(n, "pixel_unshuffle") % r for n in self.shape[-2:]):
            raise ShapeError(f"pixel_unshuffle: expected sizes that {r} divides, got {self.shape}")
        return self.rearrange("... c (h r) (w s) -> ... (c r s) h w", r=r, s=r)

    # --- indexing

    def index_select(self, dim: int, index: Self) -> Self:
        """What is at the positions `index` (one axis of integers) along `dim`. Raises AxisError, ShapeError.

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
        rows, places = [list(t.shape) for t in (self, indices)]
        for i in range(self.ndim):
            if i != axis:
                rows[i] = places[i] = rows[i] if places[i] == 1 else places[i]
        return self.expand(rows).gather(axis, indices.expand(places))

    def scatter_add(self, dim: int, index: Self, src: Self) -> Self:
        """self, with the elements of `src` added at the places `index` along `dim`.

        Raises AxisError, ShapeError.

        >>> Tensor([1.0, 1.0]).scatter_add(0, Tensor([1, 1]), Tensor([2.0, 3.0])).tolist()
        [1.0, 6.0]
        """
        return self.scatter_reduce(dim, index, src, "sum")

    def index_add(self, dim: int, index: Self, source: Self, alpha: float = 1.0) -> Self:
        """self, with alpha * source's slices along `dim` added to those that `index` says.

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
        column = [-1 if i == axis else 1 for i in range(self.ndim)]
        return self.scatter_reduce(
            axis, index.reshape(column).expand(source.shape), source if alpha == 1 else source * alpha, "sum"
        )

    def index_fill(self, dim: int, index: Self, value: float) -> Self:
        """self, with `value` in the slices along `dim` that `index` says. Raises AxisError.

        >>> Tensor([[1, 2], [3, 4]]).index_fill(1, Tensor([0]), 9).tolist()
        [[9, 2], [9, 4]]
        """
        axis = self._axis(dim)
        n = _fixed(self.shape[axis], "index_fill")
        places = (index.reshape(-1) < 0).where(index.reshape(-1) + n, index.reshape(-1))
        chosen = places.unsqueeze(1).eq(type(self).arange(n, device=self.device)).any(0)
        column = [-1 if i == axis else 1 for i in range(self.ndim)]
        return chosen.reshape(column).where(self.const_like(value), self)

    def isin(self, elements: TensorLike) -> Self:
        """Whether each element is one of `elements`.

        >>> Tensor([1, 2, 3]).isin([3, 1]).tolist()
        [True, False, True]
        """
        among = self._tensor(elements)
        return self.unsqueeze(-1).eq(among.flatten()).any(-1)

    # --- reductions

    def aminmax(self, axis: Axes = None, keepdim: bool = False) -> tuple[Self, Self]:
        """The least and the greatest element. Raises ShapeError, AxisError.

        >>> [t.item() for t in Tensor([3, 1, 2]).aminmax()]
        [1, 3]
        """
        return self.min(axis, keepdim), self.max(axis, keepdim)

    def count_nonzero(self, axis: Axes = None) -> Self:
        """How many elements are other than 0. Raises AxisError.

        >>> Tensor([[0, 2], [3, 4]]).count_nonzero(0).tolist()
        [1, 2]
        """
        return self.ne(0).sum(axis)

    def nansum(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """The sum of what is no NaN. Raises AxisError.

        >>> Tensor([1.0, float("nan"), 2.0]).nansum().item()
        3.0
        """
        return self.isnan().where(self.const_like(0), self).sum(axis, keepdim)

    def nanmean(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """The mean of what is no NaN. Raises AxisError.

        >>> Tensor([1.0, float("nan"), 2.0]).nanmean().item()
        1.5
        """
        return self.nansum(axis, keepdim) / self.isnan().logical_not().sum(axis, keepdim)

    def norm(self, p: float = 2.0, axis: Axes = None, keepdim: bool = False) -> Self:
        """(sum |x|^p)^(1/p); the greatest or least |x| for inf and -inf, how many are not 0 for 0.

        Raises AxisError.

        >>> Tensor([3.0, 4.0]).norm().item()
        5.0
        """
        size = self.abs()
        if p in (float("inf"), float("-inf")):
            return size.max(axis, keepdim) if p > 0 else size.min(axis, keepdim)
        if p == 0:
            return self.ne(0).sum(axis, keepdim).cast_like(self)
        if p == 1:
            return size.sum(axis, keepdim)
        return (
            self.square().sum(axis, keepdim).sqrt() if p == 2 else size.pow(p).sum(axis, keepdim).pow(1 / p)
        )

    def dist(self, other: Self, p: float = 2.0) -> Self:
        """The p-norm of the difference.

        >>> Tensor([1.0, 2.0]).dist(Tensor([4.0, 6.0])).item()
        5.0
        """
        return (self - other).norm(p)

    # --- products

    def addmm(self, mat1: Self, mat2: Self, beta: float = 1.0, alpha: float = 1.0) -> Self:
        """beta * self + alpha * mat1 @ mat2. Raises ShapeError.

        >>> Tensor([[1.0]]).addmm(Tensor([[2.0]]), Tensor([[3.0]]), beta=0.5).tolist()
        [[6.5]]
        """
        product = mat1.matmul(mat2)
        return (self if beta == 1 else self * beta) + (product if alpha == 1 else product * alpha)

    baddbmm = addmv = addmm

    def inner(self, other: Self) -> Self:
        """The sums over the last axes of both. Raises ShapeError.

        >>> Tensor([1, 2]).inner(Tensor([3, 4])).item()
        11
        """
        if not self.ndim or not other.ndim:
            return self * other
        if self.shape[-1] != other.shape[-1]:
            raise ShapeError(f"inner: expected equal last sizes, got {self.shape} and {other.shape}")
        left = self.reshape(*self.shape[:-1], *[1] * (other.ndim - 1), self.shape[-1])
        return (left * other).sum(-1)

    vdot = inner

    def matrix_power(self, n: int) -> Self:
        """The product of n such matrices; of their inverse if n is less than 0. Raises ShapeError.

        >>> Tensor([[1, 1], [0, 1]]).matrix_power(5).tolist()
        [[1, 5], [0, 1]]
        """
        if self.ndim < 2 or self.shape[-1] != self.shape[-2]:
            raise ShapeError(f"matrix_power: expected square matrices, got shape {self.shape}")
        square = self.inv() if n < 0 else self
        eye = type(self).eye(_fixed(self.shape[-1], "matrix_power"), dtype=self.dtype, device=self.device)
        out: Self | None = None
        left = abs(n)
        while left:
            if left & 1:
                out = square if out is None else out.matmul(square)
            left >>= 1
            square = square.matmul(square) if left else square
        return eye.expand(self.shape) if out is None else out

    # --- made like this one

    def new_zeros(self, *shape: Any) -> Self:
        """Zeros of `shape`, with this dtype and on this device.

        >>> Tensor([1, 2]).new_zeros(2).tolist()
        [0, 0]
        """
        return self.new_full(_shape_of(shape), 0)

    def new_ones(self, *shape: Any) -> Self:
        """Ones of `shape`, with this dtype and on this device.

        >>> Tensor([1, 2]).new_ones(2).tolist()
        [1, 1]
        """
        return self.new_full(_shape_of(shape), 1)

    def new_full(self, shape: tuple[int, ...], fill_value: Any) -> Self:
        """`fill_value` in `shape`, with this dtype and on this device.

        >>> Tensor([1, 2]).new_full((2,), 7).tolist()
        [7, 7]
        """
        return type(self).full(shape, fill_value, dtype=self.dtype, device=self.device)

    def bernoulli(self) -> Self:
        """1 with these probabilities, else 0, in this dtype.

        >>> Tensor([0.0, 1.0]).bernoulli().tolist()
        [0.0, 1.0]
        """
        drawn = type(self).rand(*self.shape, device=self.device, dtype=dtypes.float32)
        return (drawn < self._detached()).cast_like(self)


def _shape_of(shape: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape


def _fixed(size: Any, what: str) -> int:
    if not isinstance(size, int):
        raise AxisError(f"{what}: expected an axis of a fixed size, got {size}")
    return size
