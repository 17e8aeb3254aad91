"""Reductions, and what is made of them: means, extremes' positions, cumulative forms.

`axis`: an int, a sequence of ints, or None for all axes; `keepdim` keeps reduced axes as size 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

from polygrad.dtype import DType, dtypes, promote_float, sum_dtype, to_dtype
from polygrad.errors import ShapeError
from polygrad.helpers import prod
from polygrad.tensor.activations import ActivationsMixin
from polygrad.tensor.base import broadcast_to, filled
from polygrad.tensor.movement import MovementMixin
from polygrad.uop.linear import canonical
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

Axes = int | Sequence[int] | None

_CHUNK = 256  # cumulative ops over longer axes go in two levels of about this many


def sum_dtypes(dtype: DType, wanted: Any) -> tuple[DType, DType]:
    """What a sum of `dtype` accumulates in, and its result's dtype: `wanted`, unless that is None."""
    if wanted is None:
        accumulate = sum_dtype(dtype)
        return accumulate, dtype if dtype.is_float else accumulate
    result = to_dtype(wanted)
    return sum_dtype(result) if result.is_float else result, result


class ReduceMixin(ActivationsMixin, MovementMixin):
    """Reductions. All raise AxisError for an axis that is not there."""

    __slots__ = ()

    def _reduce(self, op: Ops, axis: Axes, keepdim: bool, accumulate: DType, result: DType) -> Self:
        axes = self._axes(axis)
        shape = self.uop.shape
        out = self.uop.cast(accumulate).reduce_axis(op, axes).cast(result)
        if not keepdim:
            out = out.reshape(tuple([s for i, s in enumerate(shape) if i not in axes]))
        return self._with(out)

    def sum(self, axis: Axes = None, keepdim: bool = False, dtype: Any = None) -> Self:
        """The sum.

        Small integers add up in int32 or uint32, 16-bit floats in float32 (the result is 16-bit again).
        `dtype`: of the result.
        """
        return self._reduce(Ops.ADD, axis, keepdim, *sum_dtypes(self.dtype, dtype))

    def prod(self, axis: Axes = None, keepdim: bool = False, dtype: Any = None) -> Self:
        """The product, in the dtype of a sum."""
        return self._reduce(Ops.MUL, axis, keepdim, *sum_dtypes(self.dtype, dtype))

    def max(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """The greatest element; NaN if there is one. The gradient is shared evenly between equals.

        Raises ShapeError.
        """
        self._need_elements(axis, "max")
        return self._reduce(Ops.MAX, axis, keepdim, self.dtype, self.dtype)

    def min(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """The least element; NaN if there is one. Raises ShapeError."""
        self._need_elements(axis, "min")
        return self._mirrored()._reduce(Ops.MAX, axis, keepdim, self.dtype, self.dtype)._mirrored()

    def _mirrored(self) -> Self:
        return self.neg() if self.dtype.is_float else self.bitwise_not()

    def _need_elements(self, axis: Axes, what: str) -> None:
        if any(isinstance(self.shape[a], int) and self.shape[a] == 0 for a in self._axes(axis)):
            raise ShapeError(
                f"{what}: expected at least one element along axis {axis}, got shape {self.shape}"
            )

    def any(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """Whether any element is not 0 (bool)."""
        return self._reduce(Ops.MAX, axis, keepdim, dtypes.bool, dtypes.bool)

    def all(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """Whether every element is not 0 (bool)."""
        return self.logical_not().any(axis, keepdim).logical_not()

    # --- statistics

    def _count(self, axis: Axes) -> Any:
        return canonical(prod([self.shape[a] for a in self._axes(axis)]))

    def _divided_by(self, n: Any) -> Self:
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
        """The mean, in floats."""
        return self._in_result_dtype(self._in_accumulation_dtype()._mean(axis, keepdim))

    def _mean(self, axis: Axes, keepdim: bool) -> Self:
        return self._reduce(Ops.ADD, axis, keepdim, self.dtype, self.dtype)._divided_by(self._count(axis))

    def var(self, axis: Axes = None, keepdim: bool = False, correction: int = 1) -> Self:
        """The variance, divided by count - `correction`."""
        return self._in_result_dtype(self._in_accumulation_dtype()._var(axis, keepdim, correction))

    def _var(self, axis: Axes, keepdim: bool, correction: int) -> Self:
        squares = (self - self._mean(axis, keepdim=True)).square().sum(axis, keepdim)
        n = self._count(axis)
        if isinstance(n, int):
            return squares * (1.0 / (n - correction) if n > correction else math.inf)
        return squares._divided_by((n - correction).maximum(0))

    def var_mean(self, axis: Axes = None, keepdim: bool = False, correction: int = 1) -> tuple[Self, Self]:
        """The variance and the mean."""
        return self.var(axis, keepdim, correction), self.mean(axis, keepdim)

    def std(self, axis: Axes = None, keepdim: bool = False, correction: int = 1) -> Self:
        """The standard deviation."""
        return self._in_result_dtype(self._in_accumulation_dtype()._var(axis, keepdim, correction).sqrt())

    def std_mean(self, axis: Axes = None, keepdim: bool = False, correction: int = 1) -> tuple[Self, Self]:
        """The standard deviation and the mean."""
        return self.std(axis, keepdim, correction), self.mean(axis, keepdim)

    # --- positions

    def argmax(self, axis: int | None = None, keepdim: bool = False) -> Self:
        """The position (int32) of the greatest element, the first of equals.

        Of the flattened Tensor when None.
        """
        if axis is None:
            return self.flatten().argmax(0).reshape((1,) * self.ndim if keepdim else ())
        axis = self._axis(axis)
        self._need_elements(axis, "argmax")
        if not self.shape:
            return self._with(filled(dtypes.int32, 0, ()))
        n = self.shape[axis]
        is_top = (self < self.max(axis, keepdim=True)).logical_not()
        column = tuple([n if i == axis else 1 for i in range(self.ndim)])
        from_end = (n - UOp(Ops.ARANGE, dtypes.int32, (), n)) if isinstance(n, int) else _countdown(n)
        counts = is_top.where(self._of(from_end.reshape(column)), 0)
        return n - counts._reduce(Ops.MAX, axis, keepdim, dtypes.int32, dtypes.int32)

    def argmin(self, axis: int | None = None, keepdim: bool = False) -> Self:
        """The position (int32) of the least element, the first of equals.

        Of the flattened Tensor when None.
        """
        return self._mirrored().argmax(axis, keepdim)

    # --- cumulative

    def cumsum(self, axis: int = 0) -> Self:
        """Running sums along `axis`."""
        accumulate = sum_dtype(self.dtype)
        out = self._with(self.uop.cast(accumulate))._cumulative(self._axis(axis), Ops.ADD)
        return out.cast_like(self) if self.dtype.is_float else out

    def cumprod(self, axis: int) -> Self:
        """Running products along `axis`."""
        accumulate = sum_dtype(self.dtype)
        out = self._with(self.uop.cast(accumulate))._cumulative(self._axis(axis), Ops.MUL)
        return out.cast_like(self) if self.dtype.is_float else out

    def cummax(self, axis: int = 0) -> Self:
        """Running maxima along `axis`."""
        return self._cumulative(self._axis(axis), Ops.MAX)

    def cummin(self, axis: int = 0) -> Self:
        """Running minima along `axis`."""
        return self._mirrored()._cumulative(self._axis(axis), Ops.MAX)._mirrored()

    def cast_like(self, other: Self) -> Self:
        """self in the dtype of `other`."""
        return self._with(self.uop.cast(other.dtype))

    def _cumulative(self, axis: int, op: Ops) -> Self:
        """Each element combined with those before it."""
        if not self.shape or self.shape[axis] == 0:
            return self._with(self.uop)
        return self._with(self.uop.scan_axis(op, axis))

    # --- exponentials of rows

    def _shifted(self, axis: Axes) -> Self:
        """self less its greatest element, which carries no gradient."""
        top = self.max(axis, keepdim=True)
        return self - top._detached()

    def softmax(self, axis: Axes = -1, dtype: Any = None) -> Self:
        """exp(self) / sum(exp(self)) along `axis`, without overflow. `dtype`: of the result."""
        x = self._softmax_input(dtype)
        e = x._in_accumulation_dtype()._shifted(axis).exp()
        return x._in_result_dtype(e * e.sum(axis, keepdim=True).reciprocal())

    def log_softmax(self, axis: Axes = -1, dtype: Any = None) -> Self:
        """The logarithm of softmax, without overflow."""
        x = self._softmax_input(dtype)
        shifted = x._in_accumulation_dtype()._shifted(axis)
        return x._in_result_dtype(shifted - shifted.exp().sum(axis, keepdim=True).log())

    def softmin(self, axis: Axes = -1, dtype: Any = None) -> Self:
        """softmax of -self."""
        return self.neg().softmax(axis, dtype)

    def _softmax_input(self, dtype: Any) -> Self:
        return self if dtype is None else self._with(self.uop.cast(to_dtype(dtype)))

    def logsumexp(self, axis: Axes = None, keepdim: bool = False) -> Self:
        """log(sum(exp(self))) along `axis`, without overflow."""
        x = self._in_accumulation_dtype()
        top = x.max(axis, keepdim=True)._detached()
        out = self._in_result_dtype((x - top).exp().sum(axis, keepdim=True).log() + top)
        axes = self._axes(axis)
        return out if keepdim else out.reshape(tuple([s for i, s in enumerate(self.shape) if i not in axes]))

    def logcumsumexp(self, axis: int = 0) -> Self:
        """Running logsumexp along `axis`."""
        axis = self._axis(axis)
        if not self.shape:
            return self._with(self.uop)
        x = self._in_accumulation_dtype().transpose(axis, -1)
        n = x.shape[-1]
        index = UOp(Ops.ARANGE, dtypes.int32, (), n)
        is_lower = (self._of(index.reshape((n, 1))) < self._of(index.reshape((1, n)))).logical_not()
        spread = x.unsqueeze(-2).expand(*x.shape[:-1], n, n)
        return self._in_result_dtype(is_lower.where(spread, -math.inf).logsumexp(-1).transpose(axis, -1))

    def normalize(self, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Self:
        """self / max(its p-norm along `dim`, eps)."""
        x = self._in_accumulation_dtype()
        norm = x.abs().pow(p).sum(dim, keepdim=True).pow(1 / p) if p != 0 else x.ne(0).sum(dim, keepdim=True)
        return self._in_result_dtype(x / norm.maximum(eps))

    def layernorm(self, axis: int | tuple[int, ...] = -1, eps: float = 1e-05) -> Self:
        """self with mean 0 and variance 1 (biased) along `axis`."""
        x = self._in_accumulation_dtype()
        centred = x - x._mean(axis, keepdim=True)
        return self._in_result_dtype(centred * (centred.square()._mean(axis, keepdim=True) + eps).rsqrt())


def _countdown(n: UOp) -> UOp:
    """n, n - 1, ..., 1 for a symbolic n."""
    index = UOp(Ops.ARANGE, dtypes.int32, (), n)
    size = broadcast_to(UOp(Ops.CAST, dtypes.int32, (n,)), (n,))
    return size + index * -1
