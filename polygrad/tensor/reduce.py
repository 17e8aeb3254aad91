"""Reductions, and methods based on them: means, norms, extremes and their positions.

`axis`: an int, a sequence of ints, or None for all axes; `keepdim` keeps reduced axes as size 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

from polygrad.dtype import DType, dtypes, promote_float, sum_dtype, to_dtype
from polygrad.errors import ShapeError
from polygrad.gradient import store_rounded
from polygrad.helpers import prod
from polygrad.tensor.core.base import DTypeLike, TensorLike, broadcast_constant, broadcast_to
from polygrad.tensor.padding import PaddingMixin
from polygrad.tensor.special import SpecialFunctionsMixin
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.sizes import canonical

Axes = int | Sequence[int] | None


class ReduceMixin(PaddingMixin, SpecialFunctionsMixin):
    """Reductions. All raise AxisError for an axis that does not exist."""

    __slots__ = ()

    def _reduce(self, op: Ops, axis: Axes, keepdim: bool, accumulate: DType, result: DType) -> Self:
        axes = self._axes(axis)
        shape = self.uop.shape
        x = self.uop.cast(accumulate)
        if op is Ops.MAX and self.requires_grad:
            x = store_rounded(x)  # for the gradient, which compares the elements with the maximum
        out = x.reduce_axis(op, axes).cast(result)
        if not keepdim:
            out = out.reshape(tuple([s for i, s in enumerate(shape) if i not in axes]))
        return self._with(out)

    def sum(self, axis: Axes = None, keepdim: bool = False, dtype: DTypeLike | None = None) -> Self:
        """The sum.

        Small integers add up in int32 or uint32, 16-bit floats in float32 (the result is 16-bit again).
        `dtype`: of the result.

        >>> Tensor([[1, 2], [3, 4]]).sum(0).tolist()
        [4, 6]
        """
        return self._reduce(Ops.ADD, axis, keepdim, *sum_dtypes(self.dtype, dtype))

    def nansum(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """The sum of all elements except NaN. Raises AxisError.

        >>> Tensor([1.0, float("nan"), 2.0]).nansum().item()
        3.0
        """
        return self.isnan().where(self.const_like(0), self).sum(axis, keepdim)

    def prod(self, axis: Axes = None, keepdim: bool = False, dtype: DTypeLike | None = None) -> Self:
        """The product, in the dtype of a sum.

        >>> Tensor([2, 3, 4]).prod().item()
        24
        """
        return self._reduce(Ops.MUL, axis, keepdim, *sum_dtypes(self.dtype, dtype))

    def max(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """The greatest element; NaN if there is one. The gradient is shared evenly between equals.

        Raises ShapeError.

        Values alone, as tinygrad's; torch's `max(axis)` is `(x.max(axis), x.argmax(axis))`.

        >>> Tensor([[1, 5], [7, 2]]).max(1).tolist()
        [5, 7]
        """
        self._need_elements(axis, "max")
        return self._reduce(Ops.MAX, axis, keepdim, self.dtype, self.dtype)

    amax = max

    def min(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """The least element; NaN if there is one. Raises ShapeError.

        Values alone, as tinygrad's; torch's `min(axis)` is `(x.min(axis), x.argmin(axis))`.

        >>> Tensor([[1, 5], [7, 2]]).min(1).tolist()
        [1, 2]
        """
        self._need_elements(axis, "min")
        return self._mirror()._reduce(Ops.MAX, axis, keepdim, self.dtype, self.dtype)._mirror()

    amin = min

    def aminmax(self, axis: Axes = None, keepdim: bool = False) -> tuple[Self, Self]:
        """The least and the greatest element. Raises ShapeError, AxisError.

        >>> [t.item() for t in Tensor([3, 1, 2]).aminmax()]
        [1, 3]
        """
        return self.min(axis, keepdim), self.max(axis, keepdim)

    def _mirror(self) -> Self:
        return self.neg() if self.dtype.is_float else self.bitwise_not()

    def _need_elements(self, axis: Axes, what: str) -> None:
        if any(isinstance(self.shape[a], int) and self.shape[a] == 0 for a in self._axes(axis)):
            raise ShapeError(
                f"{what}: expected at least one element along axis {axis}, got shape {self.shape}"
            )

    def any(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """Whether any element is not 0 (bool).

        >>> Tensor([[0, 0], [1, 0]]).any(1).tolist()
        [False, True]
        """
        return self._reduce(Ops.MAX, axis, keepdim, dtypes.bool, dtypes.bool)

    def all(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """Whether every element is not 0 (bool).

        >>> Tensor([[1, 1], [1, 0]]).all(1).tolist()
        [True, False]
        """
        return self.logical_not().any(axis, keepdim).logical_not()

    def count_nonzero(self, axis: Axes = None) -> Self:
        """How many elements are other than 0. Raises AxisError.

        >>> Tensor([[0, 2], [3, 4]]).count_nonzero(0).tolist()
        [1, 2]
        """
        return self.ne(0).sum(axis)

    def logsumexp(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """log(sum(exp(self))) along `axis`, without overflow.

        >>> Tensor([0.0, 0.0]).logsumexp().item()
        0.69314...
        """
        x = self._in_accumulation_dtype()
        if 0 in [self.shape[a] for a in self._axes(axis)]:
            return self._in_result_dtype(x.exp().sum(axis, keepdim).log())
        top = x._detached().max(axis, keepdim=True)
        top = top.isfinite().where(top, 0.0)
        out = self._in_result_dtype((x - top).exp().sum(axis, keepdim=True).log() + top)
        axes = self._axes(axis)
        return out if keepdim else out.reshape(tuple([s for i, s in enumerate(self.shape) if i not in axes]))

    def isclose(
        self, other: TensorLike, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
    ) -> Self:
        """|self - other| <= atol + rtol * |other|; equal infinities are close, NaNs when `equal_nan`.

        >>> Tensor([1.0, 2.0]).isclose(Tensor([1.0, 2.1])).tolist()
        [True, False]
        """
        other = self._tensor(other)
        close = (
            self.isfinite() & other.isfinite() & ((self - other).abs() <= atol + rtol * other.abs())
        ) | self.eq(other)
        return close | (self.isnan() & other.isnan()) if equal_nan else close

    def allclose(
        self, other: TensorLike, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
    ) -> Self:
        """Whether all elements are close (bool, shape ()): see `isclose`.

        A Tensor, as tinygrad's; torch's is a bool.

        >>> Tensor([1.0, 2.0]).allclose(Tensor([1.0, 2.0000001])).item()
        True
        """
        return self.isclose(other, rtol, atol, equal_nan).all()

    def norm(self, p: float = 2.0, axis: Axes = None, keepdim: bool = False) -> Self:
        """(sum |x|^p)^(1/p); the greatest or least |x| for inf and -inf, how many are not 0 for 0.

        The gradient of a norm that is 0 is 0. Raises AxisError.

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
        total = self.square().sum(axis, keepdim) if p == 2 else size.pow(p).sum(axis, keepdim)
        if p < 0:
            return total.pow(1 / p)
        is_zero = total.eq(0)  # the root is not differentiable there: its gradient counts as 0
        nonzero = is_zero.where(1.0, total)
        return is_zero.where(0.0, nonzero.sqrt() if p == 2 else nonzero.pow(1 / p))

    # --- statistics

    def _count(self, axis: Axes) -> Any:
        return canonical(prod([self.shape[a] for a in self._axes(axis)]))

    def _divide_by_count(self, n: Any) -> Self:
        """self divided by the count `n`, an int or a symbolic integer."""
        if isinstance(n, int):
            return self * (1.0 / n if n else math.nan)
        count = UOp(Ops.CAST, self.dtype, (n,))
        return self / self._of(broadcast_to(count, self.shape))

    def _in_accumulation_dtype(self) -> Self:
        """self in the float dtype that statistics are computed in: 16-bit floats as float32."""
        dtype = sum_dtype(promote_float(self.dtype))
        return self if self.dtype is dtype else self._with(self._as_float().cast(dtype))

    def _in_result_dtype(self, out: Self) -> Self:
        """`out`, computed `_in_accumulation_dtype`, in this Tensor's float dtype."""
        dtype = promote_float(self.dtype)
        return out if out.dtype is dtype else out._with(out.uop.cast(dtype))

    def mean(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """The mean, in floats.

        >>> Tensor([1.0, 2.0, 6.0]).mean().item()
        3.0
        """
        return self._in_result_dtype(self._in_accumulation_dtype()._mean(axis, keepdim))

    def _mean(self, axis: Axes, keepdim: bool) -> Self:
        return self._reduce(Ops.ADD, axis, keepdim, self.dtype, self.dtype)._divide_by_count(
            self._count(axis)
        )

    def nanmean(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """The mean of all elements except NaN. Raises AxisError.

        >>> Tensor([1.0, float("nan"), 2.0]).nanmean().item()
        1.5
        """
        return self.nansum(axis, keepdim) / self.isnan().logical_not().sum(axis, keepdim)

    def var(self, axis: Axes = None, keepdim: bool = False, correction: int = 1) -> Self:
        """The variance, divided by count - `correction`.

        The second argument is `keepdim`, as tinygrad's; torch's is `unbiased`.

        >>> Tensor([1.0, 3.0]).var(correction=0).item()
        1.0
        """
        return self._in_result_dtype(self._in_accumulation_dtype()._var(axis, keepdim, correction))

    def _var(self, axis: Axes, keepdim: bool, correction: int) -> Self:
        squares = (self - self._mean(axis, keepdim=True)).square().sum(axis, keepdim)
        n = self._count(axis)
        if isinstance(n, int):
            return squares * (1.0 / (n - correction) if n > correction else math.inf)
        return squares._divide_by_count((n - correction).maximum(0))

    def var_mean(self, axis: Axes = None, keepdim: bool = False, correction: int = 1) -> tuple[Self, Self]:
        """The variance and the mean.

        >>> [t.item() for t in Tensor([1.0, 3.0]).var_mean(correction=0)]
        [1.0, 2.0]
        """
        return self.var(axis, keepdim, correction), self.mean(axis, keepdim)

    def std(self, axis: Axes = None, keepdim: bool = False, correction: int = 1) -> Self:
        """The standard deviation; its gradient is 0 where it is 0.

        The second argument is `keepdim`, as tinygrad's; torch's is `unbiased`.

        >>> Tensor([1.0, 3.0]).std(correction=0).item()
        1.0
        """
        out = self._in_accumulation_dtype()._var(axis, keepdim, correction)
        root = (
            out._detached()
            .sqrt()
            ._with_backward([out], lambda g, y, _: y.eq(0.0).where(0.0, g * 0.5 / y.eq(0.0).where(1.0, y)))
        )
        return self._in_result_dtype(root)

    def std_mean(self, axis: Axes = None, keepdim: bool = False, correction: int = 1) -> tuple[Self, Self]:
        """The standard deviation and the mean.

        >>> [t.item() for t in Tensor([1.0, 3.0]).std_mean(correction=0)]
        [1.0, 2.0]
        """
        return self.std(axis, keepdim, correction), self.mean(axis, keepdim)

    # --- positions

    def argmax(self, axis: int | None = None, keepdim: bool = False) -> Self:
        """The position (int32) of the greatest element, the first of equals; of the first NaN, if any.

        Of the flattened Tensor when None.

        >>> Tensor([1, 5, 3]).argmax().item()
        1
        """
        if axis is None:
            return self.flatten().argmax(0).reshape((1,) * self.ndim if keepdim else ())
        axis = self._axis(axis)
        self._need_elements(axis, "argmax")
        if not self.shape:
            return self._with(broadcast_constant(dtypes.int32, 0, ()))
        n = self.shape[axis]
        x = self._detached()
        is_top = x.eq(x.max(axis, keepdim=True))
        is_top = is_top | self.isnan() if self.dtype.is_float else is_top
        column = tuple([n if i == axis else 1 for i in range(self.ndim)])
        from_end = (n - UOp(Ops.ARANGE, dtypes.int32, (), n)) if isinstance(n, int) else _countdown(n)
        counts = is_top.where(self._of(from_end.reshape(column)), 0)
        return n - counts._reduce(Ops.MAX, axis, keepdim, dtypes.int32, dtypes.int32)

    def argmin(self, axis: int | None = None, keepdim: bool = False) -> Self:
        """The position (int32) of the least element, the first of equals; of the first NaN, if any.

        Of the flattened Tensor when None.

        >>> Tensor([4, 5, 3]).argmin().item()
        2
        """
        return self._mirror().argmax(axis, keepdim)


def sum_dtypes(dtype: DType, result_dtype: DTypeLike | None) -> tuple[DType, DType]:
    """The dtype that a sum of `dtype` accumulates in, and that of its result: `result_dtype`, unless None."""
    if result_dtype is None:
        accumulate = sum_dtype(dtype)
        return accumulate, dtype if dtype.is_float else accumulate
    result = to_dtype(result_dtype)
    return sum_dtype(result) if result.is_float else result, result


def _countdown(n: UOp) -> UOp:
    """n, n - 1, ..., 1 for a symbolic n."""
    index = UOp(Ops.ARANGE, dtypes.int32, (), n)
    size = broadcast_to(UOp(Ops.CAST, dtypes.int32, (n,)), (n,))
    return size + index * -1
