"""Arithmetic, bits and comparisons: what operators do.

Every method broadcasts and promotes as NumPy's shapes and tinygrad's dtypes do; integers given to a float
function become the default float. Subtraction is addition of a negative, and division multiplication by a
reciprocal: so the graph has few ops, and code generation selects the better instruction.
"""

from __future__ import annotations

import math
from typing import Any, Literal, Self

from polygrad.dtype import dtypes, promote_float
from polygrad.errors import ArgumentError, DTypeError
from polygrad.gradient import quotient
from polygrad.tensor.casting import CastingMixin
from polygrad.tensor.core.base import TensorBase, TensorLike, broadcast_constant, is_operand
from polygrad.tensor.core.expressions import (
    complement,
    floor_of,
    floor_quotient,
    logical_not,
    negate,
    remainder_of,
    shift,
    trunc_quotient,
)
from polygrad.tensor.core.operators import operators
from polygrad.tensor.creation import CreationMixin
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


class ElementwiseMixin(CreationMixin, CastingMixin):
    """Arithmetic, bits, comparisons, and their operators."""

    __slots__ = ()

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
            return self._with(UOp(Ops.ADD, self.dtype, (UOp.const(self.dtype, x), negate(self.uop))))
        a, b = self._pair(x if is_operand(x) else (x := self._lift(x)), reverse)
        if a.dtype.is_bool:
            raise DTypeError("sub: expected numbers, got two bool tensors: use ^ or logical_not()")
        return self._of_pair(UOp(Ops.ADD, a.dtype, (a, negate(b))), x)

    subtract = sub

    def mul(self, x: TensorLike, reverse: bool = False) -> Self:
        """self * x.

        >>> Tensor([1, 2]).mul(3).tolist()
        [3, 6]
        """
        return self._binary(Ops.MUL, x, reverse)

    multiply = mul

    def usum(self, *xs: Any) -> Self:
        """self + x for each of `xs`, Tensors or numbers, or one sequence of them; `|` of bools.

        >>> Tensor([1, 2]).usum(3, Tensor([4, 5])).tolist()
        [8, 10]
        """
        out = self._with(self.uop)
        for x in xs[0] if len(xs) == 1 and isinstance(xs[0], (tuple, list)) else xs:
            out = out | x if self.dtype.is_bool else out + x
        return out

    def uprod(self, *xs: Any) -> Self:
        """self * x for each of `xs`, Tensors or numbers, or one sequence of them; `&` of bools.

        >>> Tensor([1, 2]).uprod(3, Tensor([4, 5])).tolist()
        [12, 30]
        """
        out = self._with(self.uop)
        for x in xs[0] if len(xs) == 1 and isinstance(xs[0], (tuple, list)) else xs:
            out = out & x if self.dtype.is_bool else out * x
        return out

    def neg(self) -> Self:
        """-self; of bools, logical_not.

        >>> Tensor([1, -2]).neg().tolist()
        [-1, 2]
        """
        return self.logical_not() if self.uop.dtype.is_bool else self._with(negate(self.uop))

    negative = neg

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
            return self._of_pair(
                floor_quotient(a, b) if rounding_mode == "floor" else trunc_quotient(a, b), x
            )
        dtype = promote_float(a.dtype)
        a, b = a.cast(dtype), b.cast(dtype)
        out = self._of_pair(quotient(a, b), x)
        if rounding_mode is None:
            return out
        rounded_quotient = (
            floor_of(out.uop) if rounding_mode == "floor" else UOp(Ops.TRUNC, dtype, (out.uop,))
        )
        return out._with(rounded_quotient)

    divide = true_divide = div

    def _floordiv(self, x: TensorLike, reverse: bool = False) -> Self:
        return self.div(x, reverse, "floor")

    def floor_divide(self, x: TensorLike) -> Self:
        """The quotient, rounded down.

        >>> Tensor([7, -7]).floor_divide(2).tolist()
        [3, -4]
        """
        return self.div(x, rounding_mode="floor")

    def mod(self, x: TensorLike, reverse: bool = False) -> Self:
        """The remainder with the sign of the divisor, as Python's %; of integers by 0, 0.

        >>> Tensor([7, -7]).mod(3).tolist()
        [1, 2]
        """
        x = x if is_operand(x) else self._lift(x)
        a, b = self._pair(x, reverse)
        if not a.dtype.is_float:
            return self._of_pair(UOp(Ops.MOD, a.dtype, (a, b)), x)
        remainder, zero = remainder_of(a, b), broadcast_constant(a.dtype, 0.0, a.shape)
        # the remainder of truncation has the sign of the dividend
        differs = UOp(Ops.CMPLT, dtypes.bool, (remainder * b, zero))
        return self._of_pair(UOp(Ops.WHERE, a.dtype, (differs, remainder + b, remainder)), x)

    remainder = mod

    def fmod(self, x: TensorLike) -> Self:
        """The remainder with the sign of the dividend, as C's fmod.

        >>> Tensor([7, -7]).fmod(3).tolist()
        [1, -1]
        """
        x = x if is_operand(x) else self._lift(x)
        a, b = self._pair(x)
        if not a.dtype.is_float:
            return self._of_pair(a + negate(trunc_quotient(a, b) * b), x)
        return self._of_pair(remainder_of(a, b), x)

    def gcd(self, x: TensorLike) -> Self:
        """The greatest common divisor of integers, at least 0; gcd(0, 0) is 0. Raises DTypeError.

        By Euclid's algorithm, of as many steps as the dtype can need.

        >>> Tensor([12, -7, 0]).gcd(Tensor([18, 14, 5])).tolist()
        [6, 7, 5]
        """
        x = x if is_operand(x) else self._lift(x)
        a, b = self._pair(x)
        if not a.dtype.is_int:
            raise DTypeError(f"gcd: expected integers, got {a.dtype}")
        return self._of_pair(_greatest_divisor(a, b), x)

    def lcm(self, x: TensorLike) -> Self:
        """The least common multiple of integers, at least 0; 0 if one is 0. Raises DTypeError.

        >>> Tensor([4, -6, 0]).lcm(Tensor([6, 8, 5])).tolist()
        [12, 24, 0]
        """
        x = x if is_operand(x) else self._lift(x)
        a, b = self._pair(x)
        if not a.dtype.is_int:
            raise DTypeError(f"lcm: expected integers, got {a.dtype}")
        multiple = floor_quotient(_magnitude(a), _greatest_divisor(a, b)) * _magnitude(b)
        return self._of_pair(multiple, x)

    def lerp(self, end: TensorLike, weight: TensorLike) -> Self:
        """self + (end - self) * weight.

        >>> Tensor([0.0, 10.0]).lerp(Tensor([1.0, 20.0]), 0.5).tolist()
        [0.5, 15.0]
        """
        return self + (end - self) * weight

    def addcmul(self, tensor1: Self, tensor2: Self, value: float = 1.0) -> Self:
        """self + value * tensor1 * tensor2.

        >>> Tensor([1.0]).addcmul(Tensor([2.0]), Tensor([3.0]), value=0.5).tolist()
        [4.0]
        """
        return self + tensor1 * tensor2 * value

    def addcdiv(self, tensor1: Self, tensor2: Self, value: float = 1.0) -> Self:
        """self + value * tensor1 / tensor2.

        >>> Tensor([1.0]).addcdiv(Tensor([6.0]), Tensor([3.0]), value=0.5).tolist()
        [2.0]
        """
        return self + tensor1 / tensor2 * value

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
        return self._with(complement(self.uop))

    def lshift(self, x: TensorLike, reverse: bool = False) -> Self:
        """self << x of integers. 0 where x is negative, or no less than the number of bits, as in torch.

        >>> Tensor([1, 2]).lshift(3).tolist(), Tensor([1, 2]).lshift(Tensor([31, 32])).tolist()
        ([8, 16], [-2147483648, 0])
        """
        return self._shift(Ops.SHL, x, reverse, "lshift")

    def rshift(self, x: TensorLike, reverse: bool = False) -> Self:
        """self >> x of integers; arithmetic for signed ones. Where x is negative, or no less than the number
        of bits, only the sign is left, as in torch: 0 or -1.

        >>> Tensor([8, -8]).rshift(1).tolist(), Tensor([8, -8]).rshift(40).tolist()
        ([4, -4], [0, -1])
        """
        return self._shift(Ops.SHR, x, reverse, "rshift")

    def _shift(self, op: Ops, x: TensorLike, reverse: bool, name: str) -> Self:
        if isinstance(x, int) and not isinstance(x, bool) and not reverse and self.dtype.is_int:
            x = x if 0 <= x < self.dtype.bits else self.dtype.bits  # x may not fit the dtype
        x = x if is_operand(x) else self._lift(x)
        a, b = self._pair(x, reverse)
        if not a.dtype.is_int:
            raise DTypeError(f"{name}: expected integers, got {a.dtype}")
        return self._of_pair(shift(op, a, b), x)

    # --- comparisons (bool results)

    def lt(self, x: TensorLike) -> Self:
        """self < x.

        >>> Tensor([1, 2]).lt(2).tolist()
        [True, False]
        """
        return self._binary(Ops.CMPLT, x)

    less = lt

    def gt(self, x: TensorLike) -> Self:
        """self > x.

        >>> Tensor([1, 2]).gt(1).tolist()
        [False, True]
        """
        return self._binary(Ops.CMPLT, x, True)

    greater = gt

    def ge(self, x: TensorLike) -> Self:
        """self >= x; False where either is NaN.

        >>> Tensor([1, 2]).ge(2).tolist()
        [False, True]
        """
        return self._compare_or_equal(x, True)

    greater_equal = ge

    def le(self, x: TensorLike) -> Self:
        """self <= x; False where either is NaN.

        >>> Tensor([1, 2]).le(1).tolist()
        [True, False]
        """
        return self._compare_or_equal(x, False)

    less_equal = le

    def _compare_or_equal(self, x: TensorLike, reverse: bool) -> Self:
        """self <= x; x <= self when `reverse`."""
        x = x if is_operand(x) else self._lift(x)
        a, b = self._pair(x, reverse)
        if a.dtype.is_float:  # !(b < a) would be True for NaN
            less = UOp(Ops.CMPLT, dtypes.bool, (a, b)), UOp(Ops.CMPEQ, dtypes.bool, (a, b))
            return self._of_pair(UOp(Ops.OR, dtypes.bool, less), x)
        return self._of_pair(logical_not(UOp(Ops.CMPLT, dtypes.bool, (b, a))), x)

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

    not_equal = ne

    def logical_not(self) -> Self:
        """Whether each element is 0 (False).

        >>> Tensor([0, 3]).logical_not().tolist()
        [True, False]
        """
        return self._with(logical_not(self.uop.cast(dtypes.bool)))

    def logical_and(self, x: TensorLike) -> Self:
        """Whether both are other than 0.

        >>> Tensor([0, 2]).logical_and(Tensor([1, 1])).tolist()
        [False, True]
        """
        return self.ne(0) & self._tensor(x).ne(0)

    def logical_or(self, x: TensorLike) -> Self:
        """Whether at least one of both is other than 0.

        >>> Tensor([0, 2]).logical_or(Tensor([0, 0])).tolist()
        [False, True]
        """
        return self.ne(0) | self._tensor(x).ne(0)

    def logical_xor(self, x: TensorLike) -> Self:
        """Whether exactly one of both is other than 0.

        >>> Tensor([0, 2]).logical_xor(Tensor([1, 1])).tolist()
        [True, False]
        """
        return self.ne(0) ^ self._tensor(x).ne(0)

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
    __neg__, __invert__ = neg, bitwise_not

    def __eq__(self, x: Any) -> Self:  # type: ignore[override]
        return NotImplemented if x is None else self._binary(Ops.CMPEQ, x)

    def __ne__(self, x: Any) -> Self:  # type: ignore[override]
        return NotImplemented if x is None else self._binary(Ops.CMPNE, x)

    __hash__ = TensorBase.__hash__


def _inverse(x: float) -> float:
    """1 / x; an infinity of a zero's sign."""
    return 1.0 / x if x else math.copysign(math.inf, x)


def _magnitude(a: UOp) -> UOp:
    return a if a.dtype.is_unsigned else UOp(Ops.MAX, a.dtype, (a, negate(a)))


def _greatest_divisor(a: UOp, b: UOp) -> UOp:
    """Euclid's algorithm: (a, b) becomes (b, a mod b) until b is 0.

    The worst case is two consecutive Fibonacci numbers, whose ratio is 1.618; log2 of that is 0.694.
    """
    a, b = _magnitude(a), _magnitude(b)
    zero = broadcast_constant(a.dtype, 0, a.shape)
    for _ in range(int(a.dtype.bits / 0.694) + 1):
        is_zero = UOp(Ops.CMPEQ, dtypes.bool, (b, zero))
        a, b = UOp(Ops.WHERE, a.dtype, (is_zero, a, b)), UOp(Ops.MOD, a.dtype, (a, b))
    return a
