"""Mathematical functions: powers, exponentials, logarithms, trigonometric and hyperbolic functions, and the
special functions (error function, gamma function).

Each is elementwise; integers become the default float.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Self

from polygrad.dtype import dtypes, promote_float
from polygrad.errors import ArgumentError
from polygrad.tensor.base import TensorLike, filled
from polygrad.tensor.elementwise import ElementwiseMixin, is_operand, with_sign
from polygrad.tensor.operators import operators
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.power import constant_power, whole_power

_LN2 = math.log(2)
_PER_LN2 = 1 / _LN2
_TWO_PER_ROOT_PI = 2 / math.sqrt(math.pi)

# Coefficients, highest power first.
_SINH = tuple(1 / math.factorial(2 * k + 1) for k in range(7, -1, -1))
# asin(s)/s and atan(s)/s less 1, over s², of s²: interpolations at Chebyshev nodes, for float32 and float64
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
_ARTANH = tuple(1 / (2 * k + 1) for k in range(10, -1, -1))
_CODY_A = (1.85777706184603153e-1, 3.16112374387056560, 1.13864154151050156e2, 3.77485237685302021e2,
           3.20937758913846947e3)  # fmt: skip
_CODY_B = (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3)
_CODY_C = (2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594, 6.61191906371416295e1,
           2.98635138197400131e2, 8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3,
           1.23033935479799725e3)  # fmt: skip
_CODY_D = (1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2, 1.62138957456669019e3,
           3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3,
           1.23033935480374942e3)  # fmt: skip
_CODY_P = (1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1, 1.25781726111229246e-1,
           1.60837851487422766e-2, 6.58749161529837803e-4)  # fmt: skip
_CODY_Q = (1.0, 2.56852019228982242, 1.87295284992346725, 5.27905102951428412e-1, 6.05183413124413191e-2,
           2.33520497626869185e-3)  # fmt: skip
_GILES_CENTRAL = (2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
                  -0.00125372503, -0.00417768164, 0.246640727, 1.50140941)  # fmt: skip
_GILES_TAIL = (-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
               -0.0076224613, 0.00943887047, 1.00167406, 2.83297682)  # fmt: skip
_SHIFTED = 8
# Bernoulli numbers: B(2k) / (2k (2k - 1)), and B(2k) / 2k
_STIRLING = (-3617 / 122400, 1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)
_DIGAMMA = (-3617 / 8160, 1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12)
_EULER = 0.5772156649015329


def _zeta(n: int) -> float:
    """Riemann's zeta function of an integer above 1: a sum, and the Euler-Maclaurin formula for its rest."""
    N = 32
    head = math.fsum(k**-n for k in range(1, N))
    return head + N ** (1 - n) / (n - 1) + 0.5 * N**-n + n / 12 * N ** (-n - 1)


# log gamma(1 + d) and log gamma(2 + d) over d: zeta functions (Abramowitz and Stegun 6.1.33)
_LGAMMA_1 = (*[(-1) ** n * _zeta(n) / n for n in range(26, 1, -1)], -_EULER)
_LGAMMA_2 = (*[(-1) ** n * (_zeta(n) - 1) / n for n in range(26, 1, -1)], 1 - _EULER)


class FunctionsMixin(ElementwiseMixin):
    """Mathematical functions."""

    __slots__ = ()

    # --- powers

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
        a = self._in_accumulation_floats().uop
        return self._with(UOp(Ops.EXP2, a.dtype, (a * _PER_LN2,)).cast(promote_float(self.dtype)))

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
        near = h * polynomial(h * h, _SINH) * h.exp() * 2.0
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
        out = (x / (1.0 - x)).log()

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

    # --- trigonometric and hyperbolic

    def sin(self) -> Self:
        """The sine of radians.

        >>> Tensor([0.0, 1.0]).sin().tolist()
        [0.0, 0.84147...]
        """
        return self._unary(Ops.SIN)

    def cos(self) -> Self:
        """The cosine of radians, as 1 - 2 sin²(x/2), which keeps its precision for large x.

        >>> Tensor([0.0, 1.0]).cos().tolist()
        [1.0, 0.54030...]
        """
        s = (self._in_floats() * 0.5).sin()
        return s * s * -2.0 + 1.0

    def tan(self) -> Self:
        """The tangent of radians.

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

    def acos(self) -> Self:
        """The arc cosine; NaN outside -1 to 1.

        >>> Tensor([1.0, 0.0]).acos().tolist()
        [0.0, 1.57079...]
        """
        return math.pi / 2 - self.asin()

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
        turn = large.where(math.pi / 2, middle.where(math.pi / 4, 0.0))
        out = turn + (s + s * z * polynomial(z, _ATAN[x.dtype is dtypes.float64]))
        out = with_sign(out, x)._with_backward([x], lambda g, _, x: g / (x * x + 1.0))
        return out._with(out.uop.cast(promote_float(self.dtype)))

    def sinh(self) -> Self:
        """The hyperbolic sine.

        >>> Tensor([1.0]).sinh().tolist()
        [1.17520...]
        """
        x = self._in_floats()
        small = x.abs() < 1.0
        h = small.where(x, 0.0)
        out = small.where(h * polynomial(h * h, _SINH), (x.exp() - x.neg().exp()) * 0.5)
        return out._with_backward([x], lambda g, _, x: g * x.cosh())

    def cosh(self) -> Self:
        """The hyperbolic cosine.

        >>> Tensor([1.0]).cosh().tolist()
        [1.54308...]
        """
        return (self.exp() + self.neg().exp()) * 0.5

    def asinh(self) -> Self:
        """The inverse hyperbolic sine.

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

    def acosh(self) -> Self:
        """The inverse hyperbolic cosine; NaN below 1.

        >>> Tensor([2.0]).acosh().tolist()
        [1.31695...]
        """
        x = self._in_accumulation_floats()
        t = x - 1.0
        root = t.sqrt() * (x + 1.0).sqrt()
        out = (
            (t + root).log1p()._with_backward([x], lambda g, _, x: g * (x - 1.0).rsqrt() * (x + 1.0).rsqrt())
        )
        return out._with(out.uop.cast(promote_float(self.dtype)))

    def atanh(self) -> Self:
        """The inverse hyperbolic tangent; NaN outside -1 to 1.

        >>> Tensor([0.5]).atanh().tolist()
        [0.54930...]
        """
        x = self._in_accumulation_floats()
        out = (x * 2.0 / (1.0 - x)).log1p() * 0.5
        out = out._with_backward([x], lambda g, _, x: g / (1.0 - x * x))
        return out._with(out.uop.cast(promote_float(self.dtype)))

    # --- special functions

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
        over, under = y.abs(), x.abs()
        steep = over > under
        slope = plain.where(steep.where(under, over), both_infinite.where(x.const_like(1.0), 0.0)) / (
            plain.where(steep.where(over, under), 1.0)
        )
        angle = slope.atan()
        angle = steep.where(math.pi / 2 - angle, angle)
        is_left = with_sign(x.const_like(1.0), x) < 0  # of a zero too
        out = with_sign(is_left.where(math.pi - angle, angle), y)

        def backward(g: Self, _: Self, y: Self, x: Self) -> tuple[Self, Self]:
            g = g / (x * x + y * y)
            return g * x, -g * y

        return out._with_backward([y, x], backward)

    def erf(self) -> Self:
        """The error function, within 3 ulp in float32; in float64 within 1e-15.

        In float32: x p(x²) where |x| < 0.85, else 1 - 2^(-|x| q(|x|)): polynomials fitted to the least
        relative error, no division. From 4 up it is 1. In float64: Cody's rational functions, see `erfc`.

        >>> Tensor([0.5]).erf().tolist()
        [0.52049...]
        """
        x = self._in_floats()
        if x.dtype is dtypes.float64:
            near, far = x._erf_parts()
            out = (x.abs() <= 0.46875).where(near, (x < 0.0).where(far - 1.0, 1.0 - far))
            return out._with_backward([x], lambda g, y, x: g * (x * x * -1.0).exp() * _TWO_PER_ROOT_PI)
        a = x.abs()
        near = x * polynomial(x * x, (
            -6.09035725e-04, 5.01196226e-03, -2.67789085e-02, 0.112821408, -0.376125233, 1.12837915,
        ))  # fmt: skip
        bounded = (a > 4.0).where(4.0, a)  # where the polynomial holds; a NaN stays
        rest = (bounded * polynomial(bounded, (
            3.12002833e-04, -4.66498680e-03, 3.31080281e-02, -0.151991119, -0.917050229, -1.62813040,
        ))).exp2()  # fmt: skip
        out = (a < 0.85).where(near, (x < 0.0).where(rest - 1.0, 1.0 - rest))
        return out._with_backward([x], lambda g, _, x: g * (x * x * -1.0).exp() * _TWO_PER_ROOT_PI)

    def erfc(self) -> Self:
        """1 - erf(self), without cancellation: within 1e-5 of its value (1e-14 in float64) where it is tiny.

        Rational functions of W. J. Cody, "Rational Chebyshev approximations for the error function" (1969).

        >>> Tensor([0.5]).erfc().tolist()
        [0.47950...]
        """
        x = self._in_accumulation_floats()
        near, far = x._erf_parts()
        out = (x.abs() <= 0.46875).where(1.0 - near, (x < 0.0).where(2.0 - far, far))
        out = out._with_backward([x], lambda g, y, x: g * (x * x * -1.0).exp() * -_TWO_PER_ROOT_PI)
        return out._with(out.uop.cast(promote_float(self.dtype)))

    def _erf_parts(self) -> tuple[Self, Self]:
        """erf(self), where |self| <= 0.46875, and erfc(|self|), where it is greater."""
        a = self.abs()
        small = a <= 0.46875
        x = small.where(self, 0.0)
        near = x * polynomial(x * x, _CODY_A) / polynomial(x * x, _CODY_B)
        middle = a.minimum(4.0)
        ratio = polynomial(middle, _CODY_C) / polynomial(middle, _CODY_D)
        large = a.maximum(4.0)
        z = (large * large).reciprocal()
        tail = 1.0 / math.sqrt(math.pi) - z * polynomial(z, _CODY_P) / polynomial(z, _CODY_Q)
        factor = (a <= 4.0).where(ratio, tail / large)
        # exp(-a²) of a² in two parts, of which one is exact
        bounded = small.where(1.0, a.minimum(64.0))
        head = (bounded * 16.0).trunc() * (1 / 16)
        square = (head * head * -1.0).exp() * ((bounded - head) * (bounded + head) * -1.0).exp()
        return near, a.isnan().where(a, square * factor)

    def erfinv(self) -> Self:
        """The inverse of erf; infinite at -1 and 1, NaN beyond.

        Giles, "Approximating the erfinv function" (2010), and a step of Newton's method (two in float64).

        >>> Tensor([0.5]).erfinv().tolist()
        [0.47693...]
        """
        y = self._in_accumulation_floats()
        inside = y.abs() < 1.0
        v = inside.where(y, 0.0)
        w = ((1.0 - v) * (1.0 + v)).log() * -1.0
        central = polynomial(w - 2.5, _GILES_CENTRAL)
        outer = polynomial(w.maximum(5.0).sqrt() - 3.0, _GILES_TAIL)
        x = (w < 5.0).where(central, outer) * v
        for _ in range(2 if y.dtype is dtypes.float64 else 1):
            a = x.abs()
            off = (a < 0.5).where(x.erf() - v, (v < 0).where(-1.0, 1.0) * ((1.0 - v.abs()) - a.erfc()))
            x = x - off * (x * x).exp() * (1.0 / _TWO_PER_ROOT_PI)
        ends = y.eq(1.0).where(math.inf, y.eq(-1.0).where(-math.inf, math.nan))
        out = inside.where(x, ends)
        out = out._with_backward([y], lambda g, x, y: g * (x * x).exp() * (1.0 / _TWO_PER_ROOT_PI))
        return out._with(out.uop.cast(promote_float(self.dtype)))

    def lgamma(self) -> Self:
        """log |gamma(self)|; infinite at 0 and the negative integers.

        Stirling's series of a number of at least 8, which recurrence leads to; the reflection formula below
        1/2. The gradient is `digamma`.

        >>> Tensor([4.0]).lgamma().tolist()
        [1.79175...]
        """
        x = self._in_accumulation_floats()
        reflected = x < 0.5
        z = reflected.where(1.0 - x, x)
        # gamma(z + n) = z (z + 1) ... (z + n - 1) gamma(z), in one logarithm
        shift = (z < _SHIFTED).where(z, 1.0)
        product = functools.reduce(lambda p, i: p * (shift + float(i)), range(1, _SHIFTED), shift)
        far = (z < _SHIFTED).where(z + float(_SHIFTED), z)
        r = far.reciprocal()
        series = r * polynomial(r * r, _STIRLING)
        stirling = (far - 0.5) * far.log() - far + 0.5 * math.log(2 * math.pi) + series
        value = stirling - (z < _SHIFTED).where(product.log(), 0.0)
        # near 1 and 2, where it is 0: a series, without cancellation
        for root, coefficients in ((1.0, _LGAMMA_1), (2.0, _LGAMMA_2)):
            d = z - root
            is_near = d.abs() < 0.25
            value = is_near.where(d * polynomial(is_near.where(d, 0.0), coefficients), value)
        sine = ((x - x.round()) * math.pi).sin().abs()
        value = reflected.where(math.log(math.pi) - sine.log() - value, value)
        value = x.isinf().where(math.inf, value)
        out = value._with_backward([x], lambda g, y, x: g * x.digamma())
        return out._with(out.uop.cast(promote_float(self.dtype)))

    def digamma(self) -> Self:
        """The derivative of lgamma; NaN at the negative integers, -inf at 0 and inf at -0, as torch's.

        >>> Tensor([1.0, 2.0]).digamma().tolist()
        [-0.57721..., 0.42278...]
        """
        x = self._in_accumulation_floats()
        reflected = x < 0.5
        z = reflected.where(1.0 - x, x)
        small = z < 10.0
        shift = small.where(z, 1.0)
        steps = functools.reduce(lambda s, i: s + (shift + float(i)).reciprocal(), range(10), 0.0 * shift)
        far = small.where(z + 10.0, z)
        r = far.reciprocal()
        value = far.log() - r * 0.5 - r * r * polynomial(r * r, _DIGAMMA) - small.where(steps, 0.0)
        part = reflected.where(x - x.round(), 0.25)  # the cotangent's period is 1
        cotangent = (part * math.pi).cos() / (part * math.pi).sin()
        at_pole = x.eq(x.round()) & (x < 0)
        value = reflected.where(value - cotangent * math.pi, value)
        value = at_pole.where(math.nan, x.eq(0.0).where(-x.reciprocal(), value))
        value = x.eq(math.inf).where(math.inf, x.eq(-math.inf).where(math.nan, value))
        return value._with(value.uop.cast(promote_float(self.dtype)))

    def _in_accumulation_floats(self) -> Self:
        """self as a float of at least 32 bits."""
        dtype = promote_float(self.dtype)
        return self._with(self.uop.cast(dtype if dtype.itemsize >= 4 else dtypes.float32))


def polynomial(x: Any, coefficients: tuple[float, ...]) -> Any:
    """Horner's scheme, highest power first, with multiply-adds that are rounded once where the device can."""
    dtype, value = x.dtype, x.uop
    out = UOp.const(dtype, coefficients[0])
    for c in coefficients[1:]:
        out = UOp(Ops.MULACC, dtype, (value, out, UOp.const(dtype, c)))
    return x._with(out)
