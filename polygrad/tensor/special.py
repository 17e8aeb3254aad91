"""Special functions: the error function and its inverse, the logarithm of the gamma function and its
derivatives, a Bessel function.

Each is elementwise; integers become the default float.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Self

from polygrad.dtype import dtypes, promote_float
from polygrad.errors import ArgumentError
from polygrad.tensor.core.expressions import polynomial
from polygrad.tensor.core.sizes import python_number
from polygrad.tensor.trigonometric import TrigonometricMixin

_TWO_PER_ROOT_PI = 2 / math.sqrt(math.pi)
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
    """Riemann's zeta function of an integer above 1: a partial sum, and the Euler-Maclaurin formula for the
    remainder, of which the next term is less than 1e-16."""
    N = 32
    head = math.fsum(k**-n for k in range(1, N))
    slope, third = n / 12 * N ** (-n - 1), n * (n + 1) * (n + 2) / 720 * N ** (-n - 3)
    fifth = n * (n + 1) * (n + 2) * (n + 3) * (n + 4) / 30240 * N ** (-n - 5)
    return head + N ** (1 - n) / (n - 1) + 0.5 * N**-n + slope - third + fifth


# log gamma(1 + d) and log gamma(2 + d) over d: zeta functions (Abramowitz and Stegun 6.1.33)
_LGAMMA_1 = (*[(-1) ** n * _zeta(n) / n for n in range(26, 1, -1)], -_EULER)
_LGAMMA_2 = (*[(-1) ** n * (_zeta(n) - 1) / n for n in range(26, 1, -1)], 1 - _EULER)

# The modified Bessel functions: up to 20 the power series in (x / 20)², whose terms are all positive;
# beyond, the asymptotic series in 20 / x. By order, lowest power first.
_BESSEL_SPLIT = 20.0
_BESSEL_POWERS = tuple(
    tuple(100.0**k / (math.factorial(k) * math.factorial(k + order)) for k in range(38)) for order in (0, 1)
)


def _asymptotic(order: int) -> tuple[float, ...]:
    """The asymptotic series in 20 / x (Abramowitz and Stegun 9.7.1)."""
    coefficients = [1.0]
    for k in range(1, 25):
        coefficients.append(coefficients[-1] * ((2 * k - 1) ** 2 - 4 * order) / (8 * k * _BESSEL_SPLIT))
    return tuple(coefficients)


_BESSEL_ASYMPTOTIC = (_asymptotic(0), _asymptotic(1))
# Bernoulli numbers over factorials, B(2k) / (2k)!: the Euler-Maclaurin formula's
_MACLAURIN = tuple(
    b / math.factorial(2 * k + 2)
    for k, b in enumerate((1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6))
)


class SpecialFunctionsMixin(TrigonometricMixin):
    """Special functions."""

    __slots__ = ()

    # --- the error function

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
        bounded = (a > 4.0).where(4.0, a)  # the range of the polynomial; NaN stays NaN
        tail = (bounded * polynomial(bounded, (
            3.12002833e-04, -4.66498680e-03, 3.31080281e-02, -0.151991119, -0.917050229, -1.62813040,
        ))).exp2()  # fmt: skip
        out = (a < 0.85).where(near, (x < 0.0).where(tail - 1.0, 1.0 - tail))
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
        # exp(-a²), with a² split into two parts, one of which is exact
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
        in_domain = y.abs() < 1.0
        v = in_domain.where(y, 0.0)
        w = ((1.0 - v) * (1.0 + v)).log() * -1.0
        central = polynomial(w - 2.5, _GILES_CENTRAL)
        outer = polynomial(w.maximum(5.0).sqrt() - 3.0, _GILES_TAIL)
        x = (w < 5.0).where(central, outer) * v
        for _ in range(2 if y.dtype is dtypes.float64 else 1):
            a = x.abs()
            off = (a < 0.5).where(x.erf() - v, (v < 0).where(-1.0, 1.0) * ((1.0 - v.abs()) - a.erfc()))
            x = x - off * (x * x).exp() * (1.0 / _TWO_PER_ROOT_PI)
        ends = y.eq(1.0).where(math.inf, y.eq(-1.0).where(-math.inf, math.nan))
        out = in_domain.where(x, ends)
        out = out._with_backward([y], lambda g, x, y: g * (x * x).exp() * (1.0 / _TWO_PER_ROOT_PI))
        return out._with(out.uop.cast(promote_float(self.dtype)))

    # --- the gamma function

    def lgamma(self) -> Self:
        """log |gamma(self)|; infinite at 0 and the negative integers.

        Stirling's series of a number of at least 8, which recurrence leads to; the reflection formula below
        1/2. In float32 within 8 ulp, or 1e-5 near zeros at negative numbers; in float64 within 2e-14 of the
        value or 1. The gradient is `digamma`.

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
        # near its zeros at 1 and 2: a series, without cancellation
        for root, coefficients in ((1.0, _LGAMMA_1), (2.0, _LGAMMA_2)):
            d = z - root
            is_near = d.abs() < 0.25
            value = is_near.where(d * polynomial(is_near.where(d, 0.0), coefficients), value)
        sine = ((x - x.round()) * math.pi).sin().abs()
        value = reflected.where(math.log(math.pi) - sine.log() - value, value)
        value = (x.abs() < 1e-10).where(-x.abs().log(), value)  # pi x might be a denormal number
        value = (x.isinf() | (x.eq(x.round()) & (x <= 0.0))).where(math.inf, value)
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

    def mvlgamma(self, p: int) -> Self:
        """The logarithm of the multivariate gamma function of dimension p: defined above (p - 1) / 2.

        Raises ArgumentError for p less than 1.

        >>> Tensor([2.0]).mvlgamma(2).tolist()
        [0.4515...]
        """
        p = python_number(p)
        if not isinstance(p, int) or p < 1:
            raise ArgumentError(f"mvlgamma: expected an int p of at least 1, got {p!r}")
        out = functools.reduce(lambda a, b: a + b, [(self - 0.5 * j).lgamma() for j in range(p)])
        return out + 0.25 * p * (p - 1) * math.log(math.pi)

    def polygamma(self, n: int) -> Self:
        """The n-th derivative of digamma; inf or NaN at the integers up to 0. Raises ArgumentError for n < 0.

        >>> Tensor([1.0]).polygamma(1).tolist()
        [1.64493...]
        """
        n = python_number(n)
        if not isinstance(n, int) or n < 0:
            raise ArgumentError(f"polygamma: expected an int n of at least 0, got {n!r}")
        if n == 0:
            return self.digamma()
        x = self._in_accumulation_floats()
        reflected = x < 0.5
        z = reflected.where(1.0 - x, x)
        out = _hurwitz(z, n + 1) * float((-1) ** (n + 1) * math.factorial(n))
        # polygamma(n, 1 - x) is (-1)^n (polygamma(n, x) + the n-th derivative of pi cot(pi x))
        part = reflected.where(x - x.round(), 0.25)
        derivative = _cotangent_derivative(part, n)
        out = reflected.where((out if n % 2 == 0 else -out) - derivative, out)
        at_pole = x.eq(x.round()) & (x <= 0.0)
        out = at_pole.where(math.inf if n % 2 else math.nan, out)
        out = out._with_backward([x], lambda g, _, x: g * x.polygamma(n + 1))
        return out._with(out.uop.cast(promote_float(self.dtype)))

    # --- Bessel functions

    def i0(self) -> Self:
        """The modified Bessel function of the first kind, of order 0.

        >>> Tensor([0.0, 1.0]).i0().tolist()
        [1.0, 1.26606...]
        """
        x = self._in_accumulation_floats()
        out = x._detached()._bessel(0)._with_backward([x], lambda g, _, x: g * x._i1())
        return out._with(out.uop.cast(promote_float(self.dtype)))

    def _i1(self) -> Self:
        """Of order 1: the derivative of `i0`."""

        def backward(g: Self, y: Self, x: Self) -> Self:
            at_0 = x.eq(0.0)
            return g * at_0.where(0.5, x.i0() - y / at_0.where(1.0, x))

        return self._detached()._bessel(1)._with_backward([self], backward)

    def _bessel(self, order: int) -> Self:
        a = self.abs()
        near, far = a.minimum(_BESSEL_SPLIT), a.clamp(_BESSEL_SPLIT, 800.0)  # infinite there, in float64 too
        z = near * (1.0 / _BESSEL_SPLIT)
        small = polynomial(z * z, _BESSEL_POWERS[order][::-1])
        small = near * small * 0.5 if order else small
        root = far._exp_of_multiple(0.5)  # exp(far) would overflow before the function does
        large = polynomial(_BESSEL_SPLIT / far, _BESSEL_ASYMPTOTIC[order][::-1])
        large = large * root / (far * (2.0 * math.pi)).sqrt() * root
        out = (a < _BESSEL_SPLIT).where(small, large)
        out = a.eq(math.inf).where(math.inf, out)
        return (self < 0).where(-out, out) if order else out


def _hurwitz(x: Any, s: int) -> Any:
    """Hurwitz's zeta function, the sum of (x + k)^-s, for x of at least 1/2: ten terms, and the
    Euler-Maclaurin formula for the rest."""
    total = functools.reduce(
        lambda a, k: a + (x + float(k)).reciprocal().pow(s), range(1, 10), x.reciprocal().pow(s)
    )
    far = x + 10.0
    r = far.reciprocal()
    power = r.pow(s)
    total = total + power * far * (1.0 / (s - 1)) + power * 0.5
    factor = power * r * float(s)
    for k, b in enumerate(_MACLAURIN):
        total = total + factor * b
        factor = factor * r * r * float((s + 2 * k + 1) * (s + 2 * k + 2))
    return x.eq(math.inf).where(0.0, total)


def _cotangent_derivative(x: Any, n: int) -> Any:
    """The n-th derivative of pi cot(pi x): a polynomial in the cotangent c, whose own is -pi (1 + c²)."""
    coefficients = [0.0, 1.0]  # of c
    for _ in range(n):
        slope = [k * a for k, a in enumerate(coefficients)][1:]
        coefficients = [-(a + b) for a, b in zip([*slope, 0.0, 0.0], [0.0, 0.0, *slope], strict=True)]
    cotangent = (x * math.pi).cos() / (x * math.pi).sin()
    return polynomial(cotangent, tuple(coefficients[::-1])) * math.pi ** (n + 1)
