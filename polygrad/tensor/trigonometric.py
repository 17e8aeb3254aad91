"""Trigonometric and hyperbolic functions, and their inverses.

Each is elementwise, of radians; integers become the default float.
"""

from __future__ import annotations

import math
from typing import Self

from polygrad.dtype import dtypes, promote_float
from polygrad.tensor.core.base import TensorLike
from polygrad.tensor.core.expressions import SINH, polynomial, with_sign
from polygrad.tensor.exponential import ExponentialMixin
from polygrad.uop.ops import Ops

_LN2 = math.log(2)
# (asin(s)/s - 1) / s² and (atan(s)/s - 1) / s² as polynomials in s²: interpolations at Chebyshev nodes, for
# float32 and float64
_ASIN = (
    (0.03369084720283012, 0.017149238357677253, 0.03110066273549457, 0.04459940152851218, 0.07500094543497424,
     0.16666666337430908),
    (0.028169218060881414, -0.010749050339697808, 0.01603551434914882, 0.0078029494773533175,
     0.011875494382636922, 0.013929652902326633, 0.017355259955786323, 0.02237204763174451,
     0.03038194736709848, 0.044642857103423646, 0.07500000000020764, 0.1666666666666665),
)  # fmt: skip
_ATAN = (
    (-0.06451928208121749, 0.10743731490791084, -0.1426395559798464, 0.19999540483648964,
     -0.3333333176116852),
    (-0.01917688711906226, 0.03923165829558719, -0.0508544973794026, 0.0585814891280221, -0.06664511447381948,
     0.07692183190826087, -0.09090904578123903, 0.11111111015256361, -0.14285714284666542, 0.1999999999999552,
     -0.3333333333333333),
)  # fmt: skip


class TrigonometricMixin(ExponentialMixin):
    """Trigonometric and hyperbolic functions."""

    __slots__ = ()

    # --- trigonometric

    def sin(self) -> Self:
        """The sine of radians.

        >>> Tensor([0.0, 1.0]).sin().tolist()
        [0.0, 0.84147...]
        """
        return self._unary(Ops.SIN)

    def cos(self) -> Self:
        """The cosine of radians, as 1 - 2 sin²(x/2): in float32 within 2.5e-7, for every x.

        The bound is absolute: near pi/2 and the other zeros fewer digits are correct.

        >>> Tensor([0.0, 1.0]).cos().tolist()
        [1.0, 0.54030...]
        """
        s = (self._in_floats() * 0.5).sin()
        return s * s * -2.0 + 1.0

    def tan(self) -> Self:
        """The tangent of radians, as sin / cos: near its poles it has as few right digits as `cos`.

        >>> Tensor([1.0]).tan().tolist()
        [1.55740...]
        """
        return self.sin() / self.cos()

    def asin(self) -> Self:
        """The arc sine; NaN outside -1 to 1. Within 3 ulp.

        >>> Tensor([0.5]).asin().tolist()
        [0.52359...]
        """
        x = self._in_accumulation_floats()
        a = x.abs()
        # above 1/2, asin(a) is pi/2 - 2 asin(sqrt((1 - a) / 2))
        far = a > 0.5
        z = far.where((1.0 - a) * 0.5, x * x)
        s = far.where(z.sqrt(), a)
        near = s + s * z * polynomial(z, _ASIN[x.dtype is dtypes.float64])
        out = with_sign(far.where(math.pi / 2 - near * 2.0, near), x)
        out = out._with_backward([x], lambda g, _, x: g * (1.0 - x * x).rsqrt())
        return out._with(out.uop.cast(promote_float(self.dtype)))

    arcsin = asin

    def acos(self) -> Self:
        """The arc cosine; NaN outside -1 to 1. Within 3 ulp.

        >>> Tensor([1.0, 0.0]).acos().tolist()
        [0.0, 1.57079...]
        """
        x = self._in_accumulation_floats()
        a = x.abs()
        # acos(a) is 2 asin(sqrt((1 - a) / 2)), which keeps the digits of 1 - a, and acos(-a) is pi - acos(a)
        far = a > 0.5
        z = far.where((1.0 - a) * 0.5, x * x)
        s = far.where(z.sqrt(), x)
        near = s + s * z * polynomial(z, _ASIN[x.dtype is dtypes.float64])
        out = far.where((x < 0).where(math.pi - near * 2.0, near * 2.0), math.pi / 2 - near)
        out = out._with_backward([x], lambda g, _, x: -g * (1.0 - x * x).rsqrt())
        return out._with(out.uop.cast(promote_float(self.dtype)))

    arccos = acos

    def atan(self) -> Self:
        """The arc tangent, within 3 ulp.

        >>> Tensor([2.0]).atan().tolist()
        [1.10714...]
        """
        x = self._in_accumulation_floats()
        a = x.abs()
        # atan(a) is pi/4 + atan((a - 1) / (a + 1)), and pi/2 - atan(1 / a)
        large, middle = a > 1.0 + math.sqrt(2.0), a > math.sqrt(2.0) - 1.0
        top = large.where(-1.0, middle.where(a - 1.0, a))
        s = top / large.where(a, middle.where(a + 1.0, 1.0))
        z = s * s
        turn = large.where(math.pi / 2, middle.where(x.const_like(math.pi / 4), 0.0))
        out = turn + (s + s * z * polynomial(z, _ATAN[x.dtype is dtypes.float64]))
        out = with_sign(out, x)._with_backward([x], lambda g, _, x: g / (x * x + 1.0))
        return out._with(out.uop.cast(promote_float(self.dtype)))

    arctan = atan

    def atan2(self, other: TensorLike) -> Self:
        """The angle of the point (other, self), -pi to pi, as C's atan2.

        >>> Tensor([1.0, -1.0]).atan2(Tensor([-2.0, -2.0])).tolist()
        [2.67794..., -2.67794...]
        """
        a, b = self._pair(other)
        y, x = self._with(a)._in_floats(), self._tensor(other)._with(b)._in_floats()
        both_zero = y.eq(0.0) & x.eq(0.0)
        both_infinite = y.isinf() & x.isinf()
        plain = (both_zero | both_infinite).logical_not()
        opposite, adjacent = y.abs(), x.abs()
        steep = opposite > adjacent
        slope = plain.where(steep.where(adjacent, opposite), both_infinite.where(x.const_like(1.0), 0.0)) / (
            plain.where(steep.where(opposite, adjacent), 1.0)
        )
        angle = slope.atan()
        angle = steep.where(math.pi / 2 - angle, angle)
        is_left = with_sign(x.const_like(1.0), x) < 0  # of a zero too
        out = with_sign(is_left.where(math.pi - angle, angle), y)

        def backward(g: Self, _: Self, y: Self, x: Self) -> tuple[Self, Self]:
            g = g / (x * x + y * y)
            return g * x, -g * y

        return out._with_backward([y, x], backward)

    arctan2 = atan2

    def sinc(self) -> Self:
        """sin(pi x) / (pi x), and 1 at 0.

        >>> Tensor([0.0, 0.5]).sinc().tolist()
        [1.0, 0.6366...]
        """
        x = self._in_floats()
        is_small = x.abs() < 1e-9  # 1 - (pi x)² / 6 is 1 there, and pi x might be a denormal number
        bounded = is_small.where(1.0, x)
        nearest_integer = bounded.round()._detached()
        is_odd = (nearest_integer * 0.5).trunc().ne(nearest_integer * 0.5)
        sine = ((bounded - nearest_integer) * math.pi).sin()  # of a multiple of pi taken off without rounding
        return is_small.where(x * 0.0 + 1.0, is_odd.where(-sine, sine) / (bounded * math.pi))

    def deg2rad(self) -> Self:
        """Degrees as radians.

        >>> Tensor([180.0]).deg2rad().tolist()
        [3.14159...]
        """
        return self * (math.pi / 180)

    def rad2deg(self) -> Self:
        """Radians as degrees.

        >>> Tensor([0.5]).rad2deg().tolist()
        [28.647...]
        """
        return self * (180 / math.pi)

    # --- hyperbolic

    def sinh(self) -> Self:
        """The hyperbolic sine, within 5 ulp.

        >>> Tensor([1.0]).sinh().tolist()
        [1.17520...]
        """
        x = self._in_floats()
        small = x.abs() < 1.0
        h = small.where(x, 0.0)
        growing, decaying = x._half_exponentials()
        out = small.where(h * polynomial(h * h, SINH), (x < 0).where(decaying - growing, growing - decaying))
        return out._with_backward([x], lambda g, _, x: g * x.cosh())

    def cosh(self) -> Self:
        """The hyperbolic cosine, within 5 ulp.

        >>> Tensor([1.0]).cosh().tolist()
        [1.54308...]
        """
        x = self._in_floats()
        growing, decaying = x._half_exponentials()
        return (growing + decaying)._with_backward([x], lambda g, _, x: g * x.sinh())

    def _half_exponentials(self) -> tuple[Self, Self]:
        """exp(|self|) / 2 and exp(-|self|) / 2. exp(|self|) itself is infinite before its half is."""
        root = self.abs()._exp_of_multiple(0.5)
        return root * 0.5 * root, 0.5 / root / root

    def asinh(self) -> Self:
        """The inverse hyperbolic sine, within 4 ulp.

        >>> Tensor([2.0]).asinh().tolist()
        [1.44363...]
        """
        x = self._in_accumulation_floats()
        a = x.abs()
        large = a > 1e9
        b = large.where(1.0, a)
        square = b * b
        out = large.where(a.log() + _LN2, (b + square / ((square + 1.0).sqrt() + 1.0)).log1p())
        out = with_sign(out, x)._with_backward([x], lambda g, _, x: g * (x * x + 1.0).rsqrt())
        return out._with(out.uop.cast(promote_float(self.dtype)))

    arcsinh = asinh

    def acosh(self) -> Self:
        """The inverse hyperbolic cosine; NaN below 1. Within 4 ulp.

        >>> Tensor([2.0]).acosh().tolist()
        [1.31695...]
        """
        x = self._in_accumulation_floats()
        large = x > 1e9  # log(2 x) there, where x + sqrt(x² - 1) may be infinite
        t = large.where(1.0, x) - 1.0
        out = large.where(x.log() + _LN2, (t + t.sqrt() * (t + 2.0).sqrt()).log1p())
        out = out._with_backward([x], lambda g, _, x: g * (x - 1.0).rsqrt() * (x + 1.0).rsqrt())
        return out._with(out.uop.cast(promote_float(self.dtype)))

    arccosh = acosh

    def atanh(self) -> Self:
        """The inverse hyperbolic tangent; NaN outside -1 to 1. Within 4 ulp.

        >>> Tensor([0.5]).atanh().tolist()
        [0.54930...]
        """
        x = self._in_accumulation_floats()
        a = x.abs()
        out = with_sign((a * 2.0 / (1.0 - a)).log1p() * 0.5, x)
        out = out._with_backward([x], lambda g, _, x: g / (1.0 - x * x))
        return out._with(out.uop.cast(promote_float(self.dtype)))

    arctanh = atanh
