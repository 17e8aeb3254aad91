"""Functions built from exp2, log2, sin and sqrt: trigonometric, hyperbolic, the error function."""

from __future__ import annotations

import math
from typing import Any, Self

from polygrad.tensor.base import TensorBase
from polygrad.tensor.elementwise import ElementwiseMixin
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


class ElementaryMixin(ElementwiseMixin):
    """Elementwise functions of floats; integers become the default float."""

    __slots__ = ()

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

    def logaddexp(self, other: Any) -> Self:
        """log(exp(self) + exp(other)), without overflow."""
        other = other if isinstance(other, TensorBase) else self._with(self._constant(other))
        top = self.maximum(other)._detached()
        return ((self - top).exp() + (other - top).exp()).log() + top


def polynomial(x: Any, coefficients: tuple[float, ...]) -> Any:
    """Horner's scheme, highest power first, with multiply-adds that are rounded once where the device can."""
    dtype, value = x.dtype, x.uop
    out = UOp.const(dtype, coefficients[0])
    for c in coefficients[1:]:
        out = UOp(Ops.MULACC, dtype, (value, out, UOp.const(dtype, c)))
    return x._with(out)
