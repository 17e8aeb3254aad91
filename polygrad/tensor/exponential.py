"""Powers, roots, exponentials and logarithms.

Each is elementwise; integers become the default float, except in powers.
"""

from __future__ import annotations

import math
from typing import Self

from polygrad.dtype import dtypes, promote_float
from polygrad.errors import ArgumentError
from polygrad.tensor.core.base import TensorLike, broadcast_constant, is_operand
from polygrad.tensor.core.expressions import SINH, polynomial
from polygrad.tensor.core.operators import operators
from polygrad.tensor.rounding import RoundingMixin
from polygrad.uop.args import Exponent
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.power import constant_power, whole_power

_LN2 = math.log(2)
_PER_LN2 = 1 / _LN2
# Coefficients, highest power first.
_ARTANH = tuple(1 / (2 * k + 1) for k in range(10, -1, -1))


class ExponentialMixin(RoundingMixin):
    """Powers, roots, exponentials and logarithms."""

    __slots__ = ()

    # --- powers and roots

    def square(self) -> Self:
        """self * self.

        >>> Tensor([3, -4]).square().tolist()
        [9, 16]
        """
        return self * self

    def sqrt(self) -> Self:
        """The square root; NaN below 0.

        >>> Tensor([4.0, 9.0]).sqrt().tolist()
        [2.0, 3.0]
        """
        return self._unary(Ops.SQRT)

    def rsqrt(self) -> Self:
        """1 / sqrt(self).

        >>> Tensor([4.0]).rsqrt().tolist()
        [0.5]
        """
        return self.sqrt().reciprocal()

    def hypot(self, x: TensorLike) -> Self:
        """sqrt(self² + x²), without overflow on the way.

        >>> Tensor([3.0]).hypot(Tensor([4.0])).tolist()
        [5.0]
        """
        a, b = self.abs(), self._tensor(x).abs()
        greater, lesser = a.maximum(b), a.minimum(b)
        ratio = lesser / greater.eq(0).where(1.0, greater)
        size = greater * (ratio * ratio + 1.0).sqrt()
        return (a.isinf() | b.isinf()).where(math.inf, size)

    def pow(self, x: TensorLike, reverse: bool = False) -> Self:
        """self to the power of x: value and gradients at 0, infinity and NaN are torch's.

        x**0 is 1 for every x; a negative base needs a whole exponent, else NaN (-inf and -0.0 do not). A
        constant whole or half exponent becomes multiplications (and a square root); the rest is within 2 ulp
        in float32 and float64. Integers go through float64: exact up to 2**53. Raises ArgumentError for an
        integer base with a negative constant integer exponent.

        >>> Tensor([2.0, 3.0]).pow(2).tolist()
        [4.0, 9.0]
        """
        x = x if is_operand(x) and not isinstance(x, UOp) else self._lift(x)
        if isinstance(x, (int, float)):
            return self._of_constant_base(x) if reverse else self._to_constant(x)
        a, e = self._pair(x, reverse)
        if a.dtype.is_float:
            return self._of_pair(UOp(Ops.POW, a.dtype, (a, e)), x)
        wide = UOp(Ops.POW, dtypes.float64, (a.cast(dtypes.float64), e.cast(dtypes.float64)))
        return self._of_pair(self._with(wide).round().uop.cast(a.dtype), x)

    def _to_constant(self, e: int | float) -> Self:
        """self to a constant power."""
        base = self._in_floats() if isinstance(e, float) else self
        if base.dtype.is_bool:
            base = base._with(base.uop.cast(dtypes.default_int))
        if e == 0:
            return base._with(broadcast_constant(base.dtype, 1, base.shape))
        if base.dtype.is_float:
            return base._with(constant_power(base.uop, float(e)))
        if e < 0:
            raise ArgumentError(
                f"pow: expected an exponent of at least 0 for {self.dtype}, got {e}: use .float()"
            )
        return base._with(whole_power(base.uop, int(e)))

    def _of_constant_base(self, base: int | float) -> Self:
        """A constant to the power of self."""
        if self.dtype.is_float or isinstance(base, float):
            x = self._in_floats()
            return x.exp2() if base == 2 else x.const_like(base).pow(x)
        return self._of(broadcast_constant(self._scalar(base), base, self.shape), self._device).pow(self)

    __pow__, __rpow__, __ipow__ = operators("**", pow)

    # --- exponentials and logarithms

    def exp2(self) -> Self:
        """2 to the power of self.

        >>> Tensor([0.0, 3.0]).exp2().tolist()
        [1.0, 8.0]
        """
        return self._unary(Ops.EXP2)

    def exp(self) -> Self:
        """e to the power of self, as 2 to the power of self / ln 2; within 1 ulp in optimised kernels.

        >>> Tensor([0.0, 1.0]).exp().tolist()
        [1.0, 2.71828...]
        """
        return self._exp_of_multiple(1.0)

    def _exp_of_multiple(self, factor: float, nonpositive: bool = False) -> Self:
        """exp(factor * self), by one product, which optimised kernels compute with extra digits.
        `nonpositive`: the product is at most 0, or NaN."""
        a = self._in_accumulation_floats().uop
        fact = Exponent.NONPOSITIVE if nonpositive else Exponent.SCALED
        power = UOp(Ops.EXP2, a.dtype, (a * (factor * _PER_LN2),), fact)
        return self._with(power.cast(promote_float(self.dtype)))

    def log2(self) -> Self:
        """The logarithm to base 2; -inf of 0, NaN below.

        >>> Tensor([8.0]).log2().tolist()
        [3.0]
        """
        return self._unary(Ops.LOG2)

    def log(self) -> Self:
        """The natural logarithm; -inf of 0, NaN below.

        >>> Tensor([1.0, 2.0]).log().tolist()
        [0.0, 0.69314...]
        """
        a = self._as_float()
        return self._with(UOp(Ops.LOG2, a.dtype, (a,)) * _LN2)

    def log10(self) -> Self:
        """The logarithm to base 10; -inf of 0, NaN below.

        >>> Tensor([100.0]).log10().tolist()
        [2.0]
        """
        a = self._as_float()
        return self._with(UOp(Ops.LOG2, a.dtype, (a,)) * math.log10(2))

    def expm1(self) -> Self:
        """exp(self) - 1, exact to a few ulp near 0 too.

        >>> Tensor([0.0, 1.0]).expm1().tolist()
        [0.0, 1.71828...]
        """
        x = self._in_floats()
        small = x.abs() < 1.0
        # 2 sinh(x/2) exp(x/2), with the series of sinh where it is short
        h = small.where(x, 0.0) * 0.5
        near = h * polynomial(h * h, SINH) * h.exp() * 2.0
        out = small.where(near, x.exp() - 1.0)
        return out._with_backward([x], lambda g, y, x: g * (y + 1.0))

    def log1p(self) -> Self:
        """log(1 + self), exact to a few ulp near 0 too; NaN below -1.

        >>> Tensor([0.0, 1.0]).log1p().tolist()
        [0.0, 0.69314...]
        """
        x = self._in_floats()
        small = x.abs() < 0.25
        s = small.where(x, 0.0)
        s = s / (s + 2.0)  # log(1 + x) = 2 artanh(x / (2 + x))
        near = s * polynomial(s * s, _ARTANH) * 2.0
        out = small.where(near, (x + 1.0).log())
        out = x.eq(math.inf).where(math.inf, out)
        return out._with_backward([x], lambda g, y, x: g / (x + 1.0))

    def xlogy(self, other: TensorLike) -> Self:
        """self * log(other), and 0 where self is 0 and `other` no NaN.

        >>> Tensor([0.0, 2.0]).xlogy(Tensor([0.0, 1.0])).tolist()
        [0.0, 0.0]
        """
        x, y = self._in_floats(), self._tensor(other)._in_floats()
        is_zero = x.eq(0.0) & y.isnan().logical_not()
        return is_zero.where(0.0, x * is_zero.where(1.0, y).log())

    def logit(self, eps: float | None = None) -> Self:
        """log(self / (1 - self)), the inverse of sigmoid; self is first clipped to eps..1 - eps, if given.

        >>> Tensor([0.5, 0.75]).logit().tolist()
        [0.0, 1.09861...]
        """
        x = self._in_floats() if eps is None else self._in_floats().clamp(eps, 1.0 - eps)
        # near 1/2, where it is 0, by the artanh of 2x - 1, which is exact
        near = (x - 0.5).abs() < 0.125
        s = x * 2.0 - 1.0
        out = near.where(s * polynomial(s * s, _ARTANH) * 2.0, (x / (1.0 - x)).log())

        def backward(g: Self, y: Self, x: Self) -> Self:
            return y.isnan().where(math.nan, g / (x * (1.0 - x)))

        return out._with_backward([x], backward)

    def logaddexp(self, other: TensorLike) -> Self:
        """log(exp(self) + exp(other)), without overflow.

        >>> Tensor([1.0]).logaddexp(Tensor([2.0])).tolist()
        [2.31326...]
        """
        other = self._tensor(other)
        top = self.maximum(other)._detached()
        top = top.isfinite().where(top, 0.0)
        return ((self - top).exp() + (other - top).exp()).log() + top

    def logaddexp2(self, x: TensorLike) -> Self:
        """log2(2**self + 2**x), without overflow.

        >>> Tensor([3.0]).logaddexp2(Tensor([3.0])).tolist()
        [4.0]
        """
        a, b = self._in_floats(), self._tensor(x)
        greater = a.maximum(b)
        return a.eq(b).where(
            a * 0.5 + b * 0.5 + 1.0, greater + (1.0 + (a.minimum(b) - greater).exp2()).log2()
        )

    def _in_accumulation_floats(self) -> Self:
        """self as a float of at least 32 bits."""
        dtype = promote_float(self.dtype)
        return self._with(self.uop.cast(dtype if dtype.itemsize >= 4 else dtypes.float32))
