"""Selection between elements, and predicates."""

from __future__ import annotations

import math
from typing import Any, Self

from polygrad.dtype import dtypes, promote
from polygrad.errors import ArgumentError
from polygrad.tensor.core.base import TensorBase, TensorLike, broadcast_to, check_fits, is_operand
from polygrad.tensor.core.expressions import greatest_finite, mirror
from polygrad.tensor.elementwise import ElementwiseMixin
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.shapes import broadcast_shape


class SelectionMixin(ElementwiseMixin):
    """Selection between elements, and predicates."""

    __slots__ = ()

    # --- choices

    def where(self, x: TensorLike, y: TensorLike) -> Self:
        """`x` where this (bool) Tensor holds, else `y`; all three broadcast. x and y: Tensors or scalars.

        As tinygrad's: `condition.where(x, y)`. torch's `x.where(condition, y)` has the condition second.

        >>> Tensor([True, False]).where(1, 0).tolist()
        [1, 0]
        """
        x, y = (v if is_operand(v) else self._lift(v) for v in (x, y))
        if isinstance(x, UOp) and not isinstance(y, TensorBase):
            x = self._lift(x)
        if isinstance(y, UOp) and not isinstance(x, TensorBase):
            y = self._lift(y)
        if isinstance(x, TensorBase):
            a, b = x._with_constant(y)
        elif isinstance(y, TensorBase):
            b, a = y._with_constant(x)
        else:
            a, b = _scalar_pair(x, y)
        c = self.uop.cast(dtypes.bool)
        if not c.shape == a.shape == b.shape:  # constants broadcast to any shape
            shape = broadcast_shape((c.shape, a.shape, b.shape))
            c, a, b = [n if n.op is Ops.CONST and shape else broadcast_to(n, shape) for n in (c, a, b)]
        out = UOp(Ops.WHERE, a.dtype, (c, a, b))
        return self._join(out, *[v for v in (x, y) if isinstance(v, TensorBase)])

    def masked_fill(self, mask: Self, value: TensorLike) -> Self:
        """`value` where `mask` holds, self elsewhere.

        A float in integers makes floats; torch rounds it to an integer.

        >>> Tensor([1, 2]).masked_fill(Tensor([True, False]), 0).tolist()
        [0, 2]
        """
        return mask.where(value, self)

    def maximum(self, x: TensorLike) -> Self:
        """The greater of self and x; NaN where either is.

        >>> Tensor([1, 5]).maximum(3).tolist()
        [3, 5]
        """
        return self._binary(Ops.MAX, x)

    def minimum(self, x: TensorLike) -> Self:
        """The lesser of self and x; NaN where either is.

        >>> Tensor([1, 5]).minimum(3).tolist()
        [1, 3]
        """
        x = x if is_operand(x) else self._lift(x)
        a, b = self._pair(x)
        return self._of_pair(mirror(UOp(Ops.MAX, a.dtype, (mirror(a), mirror(b)))), x)

    def fmax(self, x: TensorLike) -> Self:
        """The greater of both; of a NaN and a number, the number. Of equal values, self gets the gradient.

        >>> Tensor([1.0, float("nan")]).fmax(Tensor([2.0, 3.0])).tolist()
        [2.0, 3.0]
        """
        other = self._tensor(x)
        return ((self >= other) | other.isnan()).where(self, other)

    def fmin(self, x: TensorLike) -> Self:
        """The lesser of both; of a NaN and a number, the number. Of equal values, self gets the gradient.

        >>> Tensor([1.0, float("nan")]).fmin(Tensor([2.0, 3.0])).tolist()
        [1.0, 3.0]
        """
        other = self._tensor(x)
        return ((self <= other) | other.isnan()).where(self, other)

    def clamp(self, min_: TensorLike | None = None, max_: TensorLike | None = None) -> Self:
        """self, at least `min_` and at most `max_`. The gradient flows where self is within.

        Raises ArgumentError.

        >>> Tensor([-2, 0, 7]).clamp(-1, 5).tolist()
        [-1, 0, 5]
        """
        if min_ is None and max_ is None:
            raise ArgumentError("clamp: expected min_ or max_, got neither")
        out = self
        if min_ is not None:
            out = _or_nan(out < min_, min_).where(min_, out)
        return _or_nan(out > max_, max_).where(max_, out) if max_ is not None else out

    clip = clamp

    def clamp_min(self, min_: TensorLike) -> Self:
        """Not less than `min_`.

        >>> Tensor([-1.0, 2.0]).clamp_min(0.0).tolist()
        [0.0, 2.0]
        """
        return self.clamp(min_=min_)

    def clamp_max(self, max_: TensorLike) -> Self:
        """Not more than `max_`.

        >>> Tensor([-1.0, 2.0]).clamp_max(0.0).tolist()
        [-1.0, 0.0]
        """
        return self.clamp(max_=max_)

    def nan_to_num(self, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Self:
        """NaN replaced by `nan`, infinities by `posinf` and `neginf`; integers as they are.

        By default the dtype's greatest and least numbers stand for infinities.

        >>> Tensor([1.0, float("nan")]).nan_to_num().tolist()
        [1.0, 0.0]
        """
        if not self.dtype.is_float:
            return self._with(self.uop)
        largest = greatest_finite(self.dtype)
        out = self.isnan().where(nan, self)
        out = out.eq(math.inf).where(largest if posinf is None else posinf, out)
        return out.eq(-math.inf).where(-largest if neginf is None else neginf, out)

    def heaviside(self, values: TensorLike) -> Self:
        """0 below 0 and of NaN, 1 above 0, and `values` at 0.

        >>> Tensor([-1.0, 0.0, 2.0]).heaviside(0.5).tolist()
        [0.0, 0.5, 1.0]
        """
        step = (self > 0).where(self.const_like(1), self.const_like(0))
        return self.eq(0).where(values, step)

    # --- tests (bool results)

    def isnan(self) -> Self:
        """Whether each element is NaN.

        >>> Tensor([1.0, float("nan")]).isnan().tolist()
        [False, True]
        """
        return self._with(UOp(Ops.CMPNE, dtypes.bool, (self.uop, self.uop)))

    def isinf(self, detect_positive: bool = True, detect_negative: bool = True) -> Self:
        """Whether each element is +inf (`detect_positive`) or -inf (`detect_negative`).

        >>> Tensor([1.0, float("-inf")]).isinf().tolist()
        [False, True]
        """
        positive, negative = self._in_floats().eq(math.inf), self._in_floats().eq(-math.inf)
        if detect_positive and detect_negative:
            return positive | negative
        return positive if detect_positive else negative if detect_negative else positive & False

    def isposinf(self) -> Self:
        """Whether each element is positive infinity.

        >>> Tensor([float("inf"), float("-inf"), 1.0]).isposinf().tolist()
        [True, False, False]
        """
        return self.isinf(detect_negative=False)

    def isneginf(self) -> Self:
        """Whether each element is negative infinity.

        >>> Tensor([float("inf"), float("-inf"), 1.0]).isneginf().tolist()
        [False, True, False]
        """
        return self.isinf(detect_positive=False)

    def isfinite(self) -> Self:
        """Whether each element is neither infinite nor NaN.

        >>> Tensor([1.0, float("inf")]).isfinite().tolist()
        [True, False]
        """
        x = self._in_floats()
        return (x - x).eq(0.0)


def _or_nan(condition: Any, bound: Any) -> Any:
    """Whether the condition holds or the bound, a Tensor or a number, is NaN."""
    if isinstance(bound, ElementwiseMixin):
        return condition | bound.ne(bound) if bound.dtype.is_float else condition
    return condition | True if isinstance(bound, float) and math.isnan(bound) else condition


def _scalar_pair(x: Any, y: Any) -> tuple[UOp, UOp]:
    """Two Python scalars as constants of the dtype that both promote to."""
    dtype = promote(dtypes.from_py(x), dtypes.from_py(y))
    if dtype.is_int:
        for value in (x, y):
            check_fits(value, dtype, f"operand of a {dtype} tensor")
    return UOp.const(dtype, x), UOp.const(dtype, y)
