"""Mathematical functions: powers, exponentials, logarithms, trigonometric and hyperbolic functions, and the
special functions (error function, gamma function).

Each is elementwise; integers become the default float.
"""

from __future__ import annotations

import math
from typing import Any, Self

from polygrad.dtype import dtypes
from polygrad.errors import ArgumentError
from polygrad.tensor.base import TensorLike, filled
from polygrad.tensor.elementwise import ElementwiseMixin, is_operand
from polygrad.tensor.operators import operators
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.power import constant_power, whole_power

_LN2 = math.log(2)
_PER_LN2 = 1 / _LN2


class FunctionsMixin(ElementwiseMixin):
    """Mathematical functions."""

    __slots__ = ()

    # --- powers

    def square(self) -> Self:
        """self * self."""
        return self * self

    def sqrt(self) -> Self:
        """The square root; NaN below 0."""
        return self._unary(Ops.SQRT)

    def rsqrt(self) -> Self:
        """1 / sqrt(self)."""
        return self.sqrt().reciprocal()

    def pow(self, x: TensorLike, reverse: bool = False) -> Self:
        """self to the power of x: value and gradients at 0, infinity and NaN are torch's.

        x**0 is 1 for every x; a negative base needs a whole exponent, else NaN (-inf and -0.0 do not). A
        constant whole or half exponent becomes multiplications (and a square root); the rest is within 2 ulp
        in float32 and float64. Integers go through float64: exact up to 2**53. Raises ArgumentError for an
        integer base with a negative constant integer exponent.
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
            return base._with(filled(base.dtype, 1, base.shape))
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
        return self._of(filled(self._scalar(base), base, self.shape), self._device).pow(self)

    __pow__, __rpow__, __ipow__ = operators("**", pow)

    # --- exponentials and logarithms

    def exp2(self) -> Self:
        """2 to the power of self."""
        return self._unary(Ops.EXP2)

    def exp(self) -> Self:
        """e to the power of self, as 2 to the power of self / ln 2."""
        a = self._as_float()
        return self._with(UOp(Ops.EXP2, a.dtype, (a * _PER_LN2,)))

    def log2(self) -> Self:
        """The logarithm to base 2; -inf of 0, NaN below."""
        return self._unary(Ops.LOG2)

    def log(self) -> Self:
        """The natural logarithm; -inf of 0, NaN below."""
        a = self._as_float()
        return self._with(UOp(Ops.LOG2, a.dtype, (a,)) * _LN2)

    def log10(self) -> Self:
        """The logarithm to base 10; -inf of 0, NaN below."""
        a = self._as_float()
        return self._with(UOp(Ops.LOG2, a.dtype, (a,)) * math.log10(2))

    def logaddexp(self, other: TensorLike) -> Self:
        """log(exp(self) + exp(other)), without overflow."""
        other = self._tensor(other)
        top = self.maximum(other)._detached()
        return ((self - top).exp() + (other - top).exp()).log() + top

    # --- trigonometric and hyperbolic

    def sin(self) -> Self:
        """The sine of radians."""
        return self._unary(Ops.SIN)

    def cos(self) -> Self:
        """The cosine of radians, as 1 - 2 sin²(x/2), which keeps its precision for large x."""
        s = (self._in_floats() * 0.5).sin()
        return s * s * -2.0 + 1.0

    def tan(self) -> Self:
        """The tangent of radians."""
        return self.sin() / self.cos()

    def asin(self) -> Self:
        """The arc sine (Abramowitz and Stegun 4.4.46; within 3e-8)."""
        x = self.abs()._in_floats()
        coefficients = (-0.0012624911, 0.0066700901, -0.0170881256, 0.0308918810, -0.0501743046, 0.0889789874,
                        -0.2145988016, 1.5707963050)  # fmt: skip
        out = math.pi / 2 - (1.0 - x).sqrt() * polynomial(x, coefficients)
        return self.sign() * out

    def acos(self) -> Self:
        """The arc cosine."""
        return math.pi / 2 - self.asin()

    def atan(self) -> Self:
        """The arc tangent."""
        x = self._in_floats()
        return (x / (x * x + 1.0).sqrt()).asin()

    def sinh(self) -> Self:
        """The hyperbolic sine."""
        return (self.exp() - self.neg().exp()) * 0.5

    def cosh(self) -> Self:
        """The hyperbolic cosine."""
        return (self.exp() + self.neg().exp()) * 0.5

    def asinh(self) -> Self:
        """The inverse hyperbolic sine."""
        return (self + (self.square() + 1).sqrt()).log()

    def acosh(self) -> Self:
        """The inverse hyperbolic cosine; NaN below 1."""
        return (self + (self.square() - 1).sqrt()).log()

    def atanh(self) -> Self:
        """The inverse hyperbolic tangent; NaN outside -1 to 1."""
        return ((1 + self) / (1 - self)).log() * 0.5

    # --- special functions

    def erf(self) -> Self:
        """The error function, within 3 ulp in float32 and 2e-8 of its value in float64.

        x p(x²) where |x| < 0.85, else 1 - 2^(-|x| q(|x|)): polynomials fitted to the least relative error, no
        division. From 4 up it is 1 in float32.
        """
        x = self._in_floats()
        a = x.abs()
        near = x * polynomial(x * x, (
            -6.09035725e-04, 5.01196226e-03, -2.67789085e-02, 0.112821408, -0.376125233, 1.12837915,
        ))  # fmt: skip
        bounded = (a > 4.0).where(4.0, a)  # where the polynomial holds; a NaN stays
        rest = (bounded * polynomial(bounded, (
            3.12002833e-04, -4.66498680e-03, 3.31080281e-02, -0.151991119, -0.917050229, -1.62813040,
        ))).exp2()  # fmt: skip
        return (a < 0.85).where(near, (x < 0.0).where(rest - 1.0, 1.0 - rest))


def polynomial(x: Any, coefficients: tuple[float, ...]) -> Any:
    """Horner's scheme, highest power first, with multiply-adds that are rounded once where the device can."""
    dtype, value = x.dtype, x.uop
    out = UOp.const(dtype, coefficients[0])
    for c in coefficients[1:]:
        out = UOp(Ops.MULACC, dtype, (value, out, UOp.const(dtype, c)))
    return x._with(out)
