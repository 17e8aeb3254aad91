"""Rounding, signs, magnitudes, and the parts of floats."""

from __future__ import annotations

import math
from typing import Self

from polygrad.dtype import dtypes
from polygrad.tensor.core.base import TensorLike
from polygrad.tensor.core.expressions import ceil_of, floor_of, negate, with_sign
from polygrad.tensor.selection import SelectionMixin
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


class RoundingMixin(SelectionMixin):
    """Rounding, signs, magnitudes, and the parts of floats."""

    __slots__ = ()

    # --- rounding

    def trunc(self) -> Self:
        """Rounded towards 0; integers as they are.

        >>> Tensor([1.7, -1.7]).trunc().tolist()
        [1.0, -1.0]
        """
        return self._with(UOp(Ops.TRUNC, self.dtype, (self.uop,)) if self.dtype.is_float else self.uop)

    fix = trunc

    def floor(self) -> Self:
        """Rounded towards minus infinity; integers as they are.

        >>> Tensor([1.7, -1.2]).floor().tolist()
        [1.0, -2.0]
        """
        return self._with(floor_of(self.uop) if self.dtype.is_float else self.uop)

    def ceil(self) -> Self:
        """Rounded towards infinity; integers as they are.

        >>> Tensor([1.2, -1.2]).ceil().tolist()
        [2.0, -1.0]
        """
        return self._with(ceil_of(self.uop) if self.dtype.is_float else self.uop)

    def round(self) -> Self:
        """Rounded to the nearest integer, halves to the even one; integers as they are.

        >>> Tensor([0.5, 1.5, 2.6]).round().tolist()
        [0.0, 2.0, 3.0]
        """
        if not self.dtype.is_float:
            return self._with(self.uop)
        truncated = self.trunc()
        part = (self - truncated).abs()
        half = truncated * 0.5
        is_away_from_zero = (part > 0.5) | (part.eq(0.5) & half.trunc().ne(half))
        return is_away_from_zero.where(truncated + self.const_like(1).copysign(self), truncated)

    def frac(self) -> Self:
        """The fractional part, with the sign of self.

        >>> Tensor([2.5, -2.25]).frac().tolist()
        [0.5, -0.25]
        """
        return self - self.trunc()

    # --- signs and magnitudes

    def sign(self) -> Self:
        """-1, 0 or 1; NaN of NaN.

        torch's is 0 of NaN.

        >>> Tensor([-2.0, 0.0, 3.0]).sign().tolist()
        [-1.0, 0.0, 1.0]
        """
        if self.dtype.is_bool:
            return self._with(self.uop)
        ones = self.const_like(1)
        nonzero = ones if self.dtype.is_unsigned else (self < 0).where(-ones, ones)
        out = self.eq(0).where(self.const_like(0), nonzero)
        return self.isnan().where(self, out) if self.dtype.is_float else out

    def signbit(self) -> Self:
        """Whether the sign is negative, that of -0.0 too.

        >>> Tensor([-0.0, 0.0, -2.0]).signbit().tolist()
        [True, False, True]
        """
        if not self.dtype.is_float:
            return self < 0
        return self.const_like(1).copysign(self) < 0

    def copysign(self, other: TensorLike) -> Self:
        """The magnitude of self with the sign of `other` (of -0.0 too).

        >>> Tensor([1.0, -2.0]).copysign(Tensor([-0.0, 3.0])).tolist()
        [-1.0, 2.0]
        """
        a, b = self._pair(other)
        x, y = self._with(a)._in_floats(), self._tensor(other)._with(b)._in_floats()

        def backward(g: Self, out: Self, x: Self, _: Self) -> tuple[Self, None]:
            return x.eq(0.0).where(0.0, g * out / x), None

        return with_sign(x.abs(), y)._with_backward([x, y], backward)

    def abs(self) -> Self:
        """The magnitude; its gradient at 0 is 0.

        >>> Tensor([-1.5, 2.0]).abs().tolist()
        [1.5, 2.0]
        """
        if self.dtype.is_unsigned or self.dtype.is_bool:
            return self._with(self.uop)
        a = self.uop
        return self._with(UOp(Ops.MAX, a.dtype, (a, negate(a))))

    absolute = abs

    __abs__ = abs

    # --- the parts of floats

    def frexp(self) -> tuple[Self, Self]:
        """The mantissa, of a magnitude in [1/2, 1), and the exponent (int32): self = mantissa * 2**exponent.

        0, infinities and NaN are their own mantissas, with exponent 0.

        >>> [t.tolist() for t in Tensor([8.0, -0.375]).frexp()]
        [[0.5, -0.75], [4, -1]]
        """
        x = self._in_floats()
        wide = x.cast(dtypes.float64 if x.dtype is dtypes.float64 else dtypes.float32)._detached()
        digits = wide.dtype.significand - 1
        unsigned = dtypes.uint64 if wide.dtype is dtypes.float64 else dtypes.uint32
        greatest = (1 << (unsigned.bits - 1 - digits)) - 1  # the biased exponent of infinities and NaN
        half = greatest // 2 - 1  # the biased exponent of 1/2
        subnormal = wide.abs() < wide.dtype.smallest_normal
        bits = subnormal.where(wide * 2.0 ** (digits + 1), wide).bitcast(unsigned)
        exponent = ((bits >> digits) & greatest).cast(dtypes.int32) - half
        exponent = exponent - subnormal.where(digits + 1, 0)
        other_bits = ((1 << unsigned.bits) - 1) ^ (greatest << digits)
        mantissa = ((bits & other_bits) | (half << digits)).bitcast(wide.dtype)
        is_special = wide.isfinite().logical_not() | wide.eq(0.0)
        mantissa = is_special.where(wide, mantissa).cast(x.dtype)
        mantissa = mantissa._with_backward([x], lambda g, y, x: x.eq(0.0).where(g, g * y / x))
        return mantissa, is_special.where(0, exponent)

    def nextafter(self, other: TensorLike) -> Self:
        """The next float of the dtype from self towards `other`; `other` where both are equal. No gradient.

        >>> Tensor([1.0]).nextafter(Tensor([2.0])).tolist()
        [1.0000001...]
        """
        a, b = self._pair(other)
        x, y = self._with(a)._in_floats()._detached(), self._tensor(other)._with(b)._in_floats()._detached()
        unsigned = {d.itemsize: d for d in dtypes.uints}[x.dtype.itemsize]
        bits = x.bitcast(unsigned)
        # the bits of magnitudes, as integers, have the order of the magnitudes
        grows = (x < y).eq(x > 0.0)
        neighbour = grows.where(bits + 1, bits - 1).bitcast(x.dtype)
        least = with_sign(bits.const_like(1).bitcast(x.dtype), y)
        out = x.eq(y).where(y, x.eq(0.0).where(least, neighbour))
        return (x.isnan() | y.isnan()).where(math.nan, out)
