"""Elementwise arithmetic, comparisons and mathematics.

Every method broadcasts and promotes as NumPy's shapes and tinygrad's dtypes do; integers given to a float
function become the default float. Subtraction is addition of a negative and division multiplication by a
reciprocal: the graph has few ops, code generation finds the better instruction.
"""

from __future__ import annotations

import math
from typing import Any, Literal, Self

from polygrad.dtype import DType, dtypes, promote, promote_float
from polygrad.errors import ArgumentError, DTypeError
from polygrad.tensor.base import TensorBase, TensorLike, broadcast_to, filled
from polygrad.tensor.operators import operators
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.shapes import broadcast_shape


class ElementwiseMixin(TensorBase):
    """Arithmetic, comparisons, mathematics."""

    __slots__ = ()

    __array_ufunc__ = None  # numpy hands `array + tensor` to __radd__

    # --- arithmetic

    def add(self, x: TensorLike, reverse: bool = False) -> Self:
        """self + x.

        >>> Tensor([1, 2]).add(3).tolist()
        [4, 5]
        """
        return self._binary(Ops.ADD, x, reverse)

    def sub(self, x: TensorLike, reverse: bool = False) -> Self:
        """self - x. Raises DTypeError for two bools.

        >>> Tensor([5, 6]).sub(2).tolist()
        [3, 4]
        """
        if self.uop.dtype.is_float and isinstance(x, (int, float)):
            if not reverse:
                return self._binary(Ops.ADD, -x if x else -float(x))
            return self._with(UOp(Ops.ADD, self.dtype, (UOp.const(self.dtype, x), _negative(self.uop))))
        a, b = self._pair(x if is_operand(x) else (x := self._lift(x)), reverse)
        if a.dtype.is_bool:
            raise DTypeError("sub: expected numbers, got two bool tensors: use ^ or logical_not()")
        return self._of_pair(UOp(Ops.ADD, a.dtype, (a, _negative(b))), x)

    def mul(self, x: TensorLike, reverse: bool = False) -> Self:
        """self * x.

        >>> Tensor([1, 2]).mul(3).tolist()
        [3, 6]
        """
        return self._binary(Ops.MUL, x, reverse)

    def usum(self, *xs: Any) -> Self:
        """self + x for each of `xs`, Tensors or numbers, or one sequence of them; `|` of bools.

        >>> Tensor([1, 2]).usum(3, Tensor([4, 5])).tolist()
        [8, 10]
        """
        out = self
        for x in xs[0] if len(xs) == 1 and isinstance(xs[0], (tuple, list)) else xs:
            out = out | x if self.dtype.is_bool else out + x
        return out

    def uprod(self, *xs: Any) -> Self:
        """self * x for each of `xs`, Tensors or numbers, or one sequence of them; `&` of bools.

        >>> Tensor([1, 2]).uprod(3, Tensor([4, 5])).tolist()
        [12, 30]
        """
        out = self
        for x in xs[0] if len(xs) == 1 and isinstance(xs[0], (tuple, list)) else xs:
            out = out & x if self.dtype.is_bool else out * x
        return out

    def neg(self) -> Self:
        """-self; of bools, logical_not.

        >>> Tensor([1, -2]).neg().tolist()
        [-1, 2]
        """
        return self.logical_not() if self.uop.dtype.is_bool else self._with(_negative(self.uop))

    def reciprocal(self) -> Self:
        """1 / self.

        >>> Tensor([2.0, 4.0]).reciprocal().tolist()
        [0.5, 0.25]
        """
        return self._unary(Ops.RECIPROCAL)

    def div(
        self, x: TensorLike, reverse: bool = False, rounding_mode: Literal["trunc", "floor"] | None = None
    ) -> Self:
        """self / x in floats.

        With `rounding_mode` 'floor' or 'trunc' the rounded quotient, in the operands' dtype.

        >>> Tensor([7, 8]).div(2).tolist()
        [3.5, 4.0]
        >>> Tensor([7, -7]).div(2, rounding_mode="floor").tolist()
        [3, -4]
        """
        if rounding_mode not in (None, "trunc", "floor"):
            raise ArgumentError(
                f"div: expected rounding_mode None, 'trunc' or 'floor', got {rounding_mode!r}"
            )
        x = x if is_operand(x) else self._lift(x)
        if not reverse and rounding_mode is None and isinstance(x, (int, float)) and self.uop.dtype.is_float:
            return self._binary(Ops.MUL, _inverse(x))
        a, b = self._pair(x, reverse)
        if rounding_mode is not None and not a.dtype.is_float:
            return self._of_pair(_idiv(a, b) if rounding_mode == "floor" else _idiv_trunc(a, b), x)
        dtype = promote_float(a.dtype)
        a, b = a.cast(dtype), b.cast(dtype)
        out = self._of_pair(UOp(Ops.MUL, dtype, (a, UOp(Ops.RECIPROCAL, dtype, (b,)))), x)
        return out if rounding_mode is None else out.floor() if rounding_mode == "floor" else out.trunc()

    def _floordiv(self, x: TensorLike, reverse: bool = False) -> Self:
        return self.div(x, reverse, "floor")

    def mod(self, x: TensorLike, reverse: bool = False) -> Self:
        """The remainder with the sign of the divisor, as Python's %; of integers by 0, 0.

        >>> Tensor([7, -7]).mod(3).tolist()
        [1, 2]
        """
        x = x if is_operand(x) else self._lift(x)
        a, b = self._pair(x, reverse)
        if not a.dtype.is_float:
            return self._of_pair(UOp(Ops.MOD, a.dtype, (a, b)), x)
        rest, zero = _fmod(a, b), filled(a.dtype, 0.0, a.shape)
        # the remainder of truncation has the sign of the dividend
        differs = UOp(Ops.CMPLT, dtypes.bool, (rest * b, zero))
        return self._of_pair(UOp(Ops.WHERE, a.dtype, (differs, rest + b, rest)), x)

    def fmod(self, x: TensorLike) -> Self:
        """The remainder with the sign of the dividend, as C's fmod.

        >>> Tensor([7, -7]).fmod(3).tolist()
        [1, -1]
        """
        x = x if is_operand(x) else self._lift(x)
        a, b = self._pair(x)
        if not a.dtype.is_float:
            return self._of_pair(a + _negative(_idiv_trunc(a, b) * b), x)
        return self._of_pair(_fmod(a, b), x)

    def _of_pair(self, uop: UOp, x: Any) -> Self:
        return self._join(uop, x) if isinstance(x, TensorBase) else self._with(uop)

    # --- bits

    def _bits(self, op: Ops, x: TensorLike, reverse: bool, name: str) -> Self:
        x = x if is_operand(x) else self._lift(x)
        a, b = self._pair(x, reverse)
        if a.dtype.is_float:
            raise DTypeError(f"{name}: expected integers or bools, got {a.dtype}")
        return self._of_pair(UOp(op, a.dtype, (a, b)), x)

    def bitwise_and(self, x: TensorLike, reverse: bool = False) -> Self:
        """self & x of integers or bools.

        >>> Tensor([6, 5]).bitwise_and(3).tolist()
        [2, 1]
        """
        return self._bits(Ops.AND, x, reverse, "bitwise_and")

    def bitwise_or(self, x: TensorLike, reverse: bool = False) -> Self:
        """self | x of integers or bools.

        >>> Tensor([6, 5]).bitwise_or(3).tolist()
        [7, 7]
        """
        return self._bits(Ops.OR, x, reverse, "bitwise_or")

    def bitwise_xor(self, x: TensorLike, reverse: bool = False) -> Self:
        """self ^ x of integers or bools.

        >>> Tensor([6, 5]).bitwise_xor(3).tolist()
        [5, 6]
        """
        return self._bits(Ops.XOR, x, reverse, "bitwise_xor")

    def bitwise_not(self) -> Self:
        """~self of integers; of bools, logical_not.

        >>> Tensor([0, 5]).bitwise_not().tolist()
        [-1, -6]
        """
        if self.dtype.is_bool:
            return self.logical_not()
        self._need_int("bitwise_not")
        return self._with(_complement(self.uop))

    def lshift(self, x: TensorLike, reverse: bool = False) -> Self:
        """self << x of integers.

        >>> Tensor([1, 2]).lshift(3).tolist()
        [8, 16]
        """
        return self._bits(Ops.SHL, x, reverse, "lshift")

    def rshift(self, x: TensorLike, reverse: bool = False) -> Self:
        """self >> x of integers; arithmetic for signed ones.

        >>> Tensor([8, -8]).rshift(1).tolist()
        [4, -4]
        """
        return self._bits(Ops.SHR, x, reverse, "rshift")

    def logical_not(self) -> Self:
        """Whether each element is 0 (False).

        >>> Tensor([0, 3]).logical_not().tolist()
        [True, False]
        """
        return self._with(_not(self.uop.cast(dtypes.bool)))

    # --- comparisons (bool results)

    def lt(self, x: TensorLike) -> Self:
        """self < x.

        >>> Tensor([1, 2]).lt(2).tolist()
        [True, False]
        """
        return self._binary(Ops.CMPLT, x)

    def gt(self, x: TensorLike) -> Self:
        """self > x.

        >>> Tensor([1, 2]).gt(1).tolist()
        [False, True]
        """
        return self._binary(Ops.CMPLT, x, True)

    def ge(self, x: TensorLike) -> Self:
        """self >= x; False where either is NaN.

        >>> Tensor([1, 2]).ge(2).tolist()
        [False, True]
        """
        return self._compare_or_equal(x, True)

    def le(self, x: TensorLike) -> Self:
        """self <= x; False where either is NaN.

        >>> Tensor([1, 2]).le(1).tolist()
        [True, False]
        """
        return self._compare_or_equal(x, False)

    def _compare_or_equal(self, x: TensorLike, reverse: bool) -> Self:
        """self <= x; x <= self when `reverse`."""
        x = x if is_operand(x) else self._lift(x)
        a, b = self._pair(x, reverse)
        if a.dtype.is_float:  # !(b < a) would be True for NaN
            less = UOp(Ops.CMPLT, dtypes.bool, (a, b)), UOp(Ops.CMPEQ, dtypes.bool, (a, b))
            return self._of_pair(UOp(Ops.OR, dtypes.bool, less), x)
        return self._of_pair(_not(UOp(Ops.CMPLT, dtypes.bool, (b, a))), x)

    def eq(self, x: TensorLike) -> Self:
        """self == x.

        >>> Tensor([1, 2]).eq(2).tolist()
        [False, True]
        """
        return self._binary(Ops.CMPEQ, x)

    def ne(self, x: TensorLike) -> Self:
        """self != x.

        >>> Tensor([1, 2]).ne(2).tolist()
        [True, False]
        """
        return self._binary(Ops.CMPNE, x)

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

    def isfinite(self) -> Self:
        """Whether each element is neither infinite nor NaN.

        >>> Tensor([1.0, float("inf")]).isfinite().tolist()
        [True, False]
        """
        x = self._in_floats()
        return (x - x).eq(0.0)

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

    def nan_to_num(self, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Self:
        """NaN replaced by `nan`, infinities by `posinf` and `neginf`; integers as they are.

        By default the dtype's greatest and least numbers stand for infinities.

        >>> Tensor([1.0, float("nan")]).nan_to_num().tolist()
        [1.0, 0.0]
        """
        if not self.dtype.is_float:
            return self._with(self.uop)
        most = greatest_finite(self.dtype)
        out = self.isnan().where(nan, self)
        out = out.eq(math.inf).where(most if posinf is None else posinf, out)
        return out.eq(-math.inf).where(-most if neginf is None else neginf, out)

    def _in_floats(self) -> Self:
        return self if self.dtype.is_float else self._with(self._as_float())

    # --- choice

    def where(self, x: TensorLike, y: TensorLike) -> Self:
        """`x` where this (bool) Tensor holds, else `y`; all three broadcast. x and y: Tensors or scalars.

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
        if not c.shape == a.shape == b.shape:  # constants go with any shape
            shape = broadcast_shape((c.shape, a.shape, b.shape))
            c, a, b = [n if n.op is Ops.CONST and shape else broadcast_to(n, shape) for n in (c, a, b)]
        out = UOp(Ops.WHERE, a.dtype, (c, a, b))
        return self._join(out, *[v for v in (x, y) if isinstance(v, TensorBase)])

    def masked_fill(self, mask: Self, value: TensorLike) -> Self:
        """`value` where `mask` holds, self elsewhere.

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
        return self._of_pair(_mirror(UOp(Ops.MAX, a.dtype, (_mirror(a), _mirror(b)))), x)

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

    def lerp(self, end: TensorLike, weight: TensorLike) -> Self:
        """self + (end - self) * weight.

        >>> Tensor([0.0, 10.0]).lerp(Tensor([1.0, 20.0]), 0.5).tolist()
        [0.5, 15.0]
        """
        return self + (end - self) * weight

    # --- rounding

    def trunc(self) -> Self:
        """Rounded towards 0; integers as they are.

        >>> Tensor([1.7, -1.7]).trunc().tolist()
        [1.0, -1.0]
        """
        return self._with(UOp(Ops.TRUNC, self.dtype, (self.uop,)) if self.dtype.is_float else self.uop)

    def floor(self) -> Self:
        """Rounded towards minus infinity; integers as they are.

        >>> Tensor([1.7, -1.2]).floor().tolist()
        [1.0, -2.0]
        """
        return self._with(_floor(self.uop) if self.dtype.is_float else self.uop)

    def ceil(self) -> Self:
        """Rounded towards infinity; integers as they are.

        >>> Tensor([1.2, -1.2]).ceil().tolist()
        [2.0, -1.0]
        """
        return self._with(_ceil(self.uop) if self.dtype.is_float else self.uop)

    def round(self) -> Self:
        """Rounded to the nearest integer, halves to the even one; integers as they are.

        >>> Tensor([0.5, 1.5, 2.6]).round().tolist()
        [0.0, 2.0, 3.0]
        """
        if not self.dtype.is_float:
            return self._with(self.uop)
        whole = self.trunc()
        part = (self - whole).abs()
        half = whole * 0.5
        is_away_from_zero = (part > 0.5) | (part.eq(0.5) & half.trunc().ne(half))
        return is_away_from_zero.where(whole + (self < 0).where(-1.0, 1.0), whole)

    # --- signs

    def sign(self) -> Self:
        """-1, 0 or 1; NaN of NaN.

        >>> Tensor([-2.0, 0.0, 3.0]).sign().tolist()
        [-1.0, 0.0, 1.0]
        """
        if self.dtype.is_bool:
            return self._with(self.uop)
        ones = self.const_like(1)
        nonzero = ones if self.dtype.is_unsigned else (self < 0).where(-ones, ones)
        out = self.eq(0).where(self.const_like(0), nonzero)
        return self.isnan().where(self, out) if self.dtype.is_float else out

    def abs(self) -> Self:
        """The magnitude; its gradient at 0 is 0.

        >>> Tensor([-1.5, 2.0]).abs().tolist()
        [1.5, 2.0]
        """
        if self.dtype.is_unsigned or self.dtype.is_bool:
            return self._with(self.uop)
        a = self.uop
        return self._with(UOp(Ops.MAX, a.dtype, (a, _negative(a))))

    def const_like(self, value: Any) -> Self:
        """The constant `value` in this Tensor's dtype and shape.

        >>> Tensor([1, 2]).const_like(7).tolist()
        [7, 7]
        """
        return self._of(filled(self.uop.dtype, value, self.uop.shape), self._device)

    def _detached(self) -> Self:
        out = self._view_of(self.uop.detach())
        out.requires_grad, out._derived = False, False
        return out

    # --- operators: `x + y`, `y + x`, `x += y`

    __add__, __radd__, __iadd__ = operators("+", add)
    __sub__, __rsub__, __isub__ = operators("-", sub)
    __mul__, __rmul__, __imul__ = operators("*", mul)
    __truediv__, __rtruediv__, __itruediv__ = operators("/", div)
    __floordiv__, __rfloordiv__, __ifloordiv__ = operators("//", _floordiv)
    __mod__, __rmod__, __imod__ = operators("%", mod)
    __and__, __rand__, __iand__ = operators("&", bitwise_and)
    __or__, __ror__, __ior__ = operators("|", bitwise_or)
    __xor__, __rxor__, __ixor__ = operators("^", bitwise_xor)
    __lshift__, __rlshift__, __ilshift__ = operators("<<", lshift)
    __rshift__, __rrshift__, __irshift__ = operators(">>", rshift)
    __lt__, __gt__, __le__, __ge__ = lt, gt, le, ge
    __neg__, __abs__, __invert__ = neg, abs, bitwise_not

    def __eq__(self, x: Any) -> Self:  # type: ignore[override]
        return NotImplemented if x is None else self._binary(Ops.CMPEQ, x)

    def __ne__(self, x: Any) -> Self:  # type: ignore[override]
        return NotImplemented if x is None else self._binary(Ops.CMPNE, x)

    __hash__ = TensorBase.__hash__


def greatest_finite(dtype: DType) -> float:
    """The greatest number of a float dtype."""
    return (2.0 - 2.0 ** (1 - dtype.significand)) * (2.0 / dtype.smallest_normal)


def with_sign(magnitude: Any, x: Any) -> Any:
    """`magnitude`, whose sign bit is clear, with the sign bit of `x`: floats of one dtype. No gradient."""
    unsigned = {d.itemsize: d for d in dtypes.uints}[magnitude.dtype.itemsize]
    sign = x.uop.bitcast(unsigned) & (1 << (unsigned.bits - 1))
    return magnitude._join((magnitude.uop.bitcast(unsigned) | sign).bitcast(magnitude.dtype), x)


def is_operand(x: Any) -> bool:
    return isinstance(x, (TensorBase, int, float, UOp))


def _inverse(x: float) -> float:
    """1 / x; an infinity of a zero's sign."""
    return 1.0 / x if x else math.copysign(math.inf, x)


def _negative(a: UOp) -> UOp:
    return UOp(Ops.MUL, a.dtype, (a, UOp.const(a.dtype, -1)))


def _complement(a: UOp) -> UOp:
    return UOp(Ops.XOR, a.dtype, (a, UOp.const(a.dtype, True if a.dtype.is_bool else -1)))


def _mirror(a: UOp) -> UOp:
    """Reverses the order of elements, so that minimum is maximum: -x of floats, ~x of integers and bools."""
    return _negative(a) if a.dtype.is_float else _complement(a)


def _not(a: UOp) -> UOp:
    return UOp(Ops.CMPNE, dtypes.bool, (a, filled(dtypes.bool, True, a.shape)))


def _floor(a: UOp) -> UOp:
    t = UOp(Ops.TRUNC, a.dtype, (a,))
    return UOp(Ops.WHERE, a.dtype, (UOp(Ops.CMPLT, dtypes.bool, (a, t)), t + -1.0, t))


def _ceil(a: UOp) -> UOp:
    t = UOp(Ops.TRUNC, a.dtype, (a,))
    return UOp(Ops.WHERE, a.dtype, (UOp(Ops.CMPLT, dtypes.bool, (t, a)), t + 1.0, t))


def _fmod(a: UOp, b: UOp) -> UOp:
    """a - b trunc(a / b); a itself where that is 0, so for an infinite b too."""
    whole = UOp(Ops.TRUNC, a.dtype, (UOp(Ops.MUL, a.dtype, (a, UOp(Ops.RECIPROCAL, a.dtype, (b,)))),))
    is_zero = UOp(Ops.CMPEQ, dtypes.bool, (whole, filled(a.dtype, 0.0, a.shape)))
    return UOp(Ops.WHERE, a.dtype, (is_zero, a, a + _negative(whole * b)))


def _idiv(a: UOp, b: UOp) -> UOp:
    return UOp(Ops.IDIV, a.dtype, (a, b))


def _idiv_trunc(a: UOp, b: UOp) -> UOp:
    """The quotient rounded to 0: one more than the floor when that is inexact and negative."""
    q = _idiv(a, b)
    if a.dtype.is_unsigned or a.dtype.is_bool:
        return q
    zero = filled(a.dtype, 0, a.shape)
    inexact = UOp(Ops.CMPNE, dtypes.bool, (q * b, a))
    negative = UOp(Ops.CMPLT, dtypes.bool, (a ^ b, zero))
    nonzero = UOp(Ops.CMPNE, dtypes.bool, (b, zero))
    return q + (inexact & negative & nonzero).cast(a.dtype)


def _or_nan(condition: Any, bound: Any) -> Any:
    """Whether the condition holds or the bound, a Tensor or a number, is NaN."""
    if isinstance(bound, ElementwiseMixin):
        return condition | bound.ne(bound) if bound.dtype.is_float else condition
    return condition | True if isinstance(bound, float) and math.isnan(bound) else condition


def _scalar_pair(x: Any, y: Any) -> tuple[UOp, UOp]:
    """Two Python scalars as constants of the dtype that both promote to."""
    dtype = promote(dtypes.from_py(x), dtypes.from_py(y))
    return UOp.const(dtype, x), UOp.const(dtype, y)
