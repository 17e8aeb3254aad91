"""Elementwise functions, activations and losses that torch has under names of their own.

Each is a line or two of what the other modules have; values and gradients are torch's.
"""

from __future__ import annotations

import math
from typing import Self

from polygrad.errors import ArgumentError, AxisError, ShapeError
from polygrad.tensor.base import TensorLike
from polygrad.tensor.losses import LossesMixin


class TorchFunctionsMixin(LossesMixin):
    """Elementwise functions, activations and losses by torch's names."""

    __slots__ = ()

    absolute, negative = LossesMixin.abs, LossesMixin.neg
    arccos, arcsin, arctan, arctan2 = (
        LossesMixin.acos,
        LossesMixin.asin,
        LossesMixin.atan,
        LossesMixin.atan2,
    )
    arccosh, arcsinh, arctanh = LossesMixin.acosh, LossesMixin.asinh, LossesMixin.atanh
    subtract, multiply, remainder, fix = (
        LossesMixin.sub,
        LossesMixin.mul,
        LossesMixin.mod,
        LossesMixin.trunc,
    )
    divide = true_divide = LossesMixin.div
    greater, greater_equal, less, less_equal, not_equal = (
        LossesMixin.gt,
        LossesMixin.ge,
        LossesMixin.lt,
        LossesMixin.le,
        LossesMixin.ne,
    )
    binary_cross_entropy = LossesMixin.binary_crossentropy
    binary_cross_entropy_with_logits = LossesMixin.binary_crossentropy_logits

    # --- elementwise

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

    def floor_divide(self, x: TensorLike) -> Self:
        """The quotient, rounded down.

        >>> Tensor([7, -7]).floor_divide(2).tolist()
        [3, -4]
        """
        return self.div(x, rounding_mode="floor")

    def logical_and(self, x: TensorLike) -> Self:
        """Whether both are other than 0.

        >>> Tensor([0, 2]).logical_and(Tensor([1, 1])).tolist()
        [False, True]
        """
        return self.ne(0) & self._tensor(x).ne(0)

    def logical_or(self, x: TensorLike) -> Self:
        """Whether one of both is other than 0.

        >>> Tensor([0, 2]).logical_or(Tensor([0, 0])).tolist()
        [False, True]
        """
        return self.ne(0) | self._tensor(x).ne(0)

    def logical_xor(self, x: TensorLike) -> Self:
        """Whether just one of both is other than 0.

        >>> Tensor([0, 2]).logical_xor(Tensor([1, 1])).tolist()
        [True, False]
        """
        return self.ne(0) ^ self._tensor(x).ne(0)

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

    def frac(self) -> Self:
        """What is behind the point, with the sign of self.

        >>> Tensor([2.5, -2.25]).frac().tolist()
        [0.5, -0.25]
        """
        return self - self.trunc()

    def fmax(self, x: TensorLike) -> Self:
        """The greater of both; of a NaN and a number, the number.

        >>> Tensor([1.0, float("nan")]).fmax(Tensor([2.0, 3.0])).tolist()
        [2.0, 3.0]
        """
        a, b = self + 0, self._tensor(x)
        return a.isnan().where(b, b.isnan().where(a, a.maximum(b)))

    def fmin(self, x: TensorLike) -> Self:
        """The lesser of both; of a NaN and a number, the number.

        >>> Tensor([1.0, float("nan")]).fmin(Tensor([2.0, 3.0])).tolist()
        [1.0, 3.0]
        """
        a, b = self + 0, self._tensor(x)
        return a.isnan().where(b, b.isnan().where(a, a.minimum(b)))

    def hypot(self, x: TensorLike) -> Self:
        """sqrt(self² + x²), without overflow on the way.

        >>> Tensor([3.0]).hypot(Tensor([4.0])).tolist()
        [5.0]
        """
        a, b = self.abs(), self._tensor(x).abs()
        most, least = a.maximum(b), a.minimum(b)
        ratio = least / most.eq(0).where(1.0, most)
        size = most * (ratio * ratio + 1.0).sqrt()
        return (a.isinf() | b.isinf()).where(math.inf, size)

    def heaviside(self, values: TensorLike) -> Self:
        """0 below 0 and of NaN, 1 above 0, and `values` at 0.

        >>> Tensor([-1.0, 0.0, 2.0]).heaviside(0.5).tolist()
        [0.0, 0.5, 1.0]
        """
        step = (self > 0).where(self.const_like(1), self.const_like(0))
        return self.eq(0).where(values, step)

    def isposinf(self) -> Self:
        """Whether it is positive infinity.

        >>> Tensor([float("inf"), float("-inf"), 1.0]).isposinf().tolist()
        [True, False, False]
        """
        return self.isinf(detect_negative=False)

    def isneginf(self) -> Self:
        """Whether it is negative infinity.

        >>> Tensor([float("inf"), float("-inf"), 1.0]).isneginf().tolist()
        [False, True, False]
        """
        return self.isinf(detect_positive=False)

    def signbit(self) -> Self:
        """Whether the sign is negative, that of -0.0 too.

        >>> Tensor([-0.0, 0.0, -2.0]).signbit().tolist()
        [True, False, True]
        """
        if not self.dtype.is_float:
            return self < 0
        return self.const_like(1).copysign(self) < 0

    def sinc(self) -> Self:
        """sin(pi x) / (pi x), and 1 at 0.

        >>> Tensor([0.0, 0.5]).sinc().tolist()
        [1.0, 0.6366...]
        """
        x = self._in_floats()
        angle = x.eq(0).where(1.0, x) * math.pi
        return x.eq(0).where(x * 0.0 + 1.0, angle.sin() / angle)

    def logaddexp2(self, x: TensorLike) -> Self:
        """log2(2**self + 2**x), without overflow.

        >>> Tensor([3.0]).logaddexp2(Tensor([3.0])).tolist()
        [4.0]
        """
        a, b = self._in_floats(), self._tensor(x)
        most = a.maximum(b)
        return a.eq(b).where(a * 0.5 + b * 0.5 + 1.0, most + (1.0 + (a.minimum(b) - most).exp2()).log2())

    # --- activations

    def glu(self, dim: int = -1) -> Self:
        """The first half along `dim` times the sigmoid of the second (Dauphin et al., 2017).

        Raises AxisError, ShapeError for an odd size.

        >>> Tensor([3.0, 0.0]).glu().tolist()
        [1.5]
        """
        size = self.shape[self._axis(dim)]
        if not isinstance(size, int) or size % 2:
            raise ShapeError(f"glu: expected an even size along axis {dim}, got {size}")
        first, second = self.chunk(2, dim)
        return first * second.sigmoid()

    def hardshrink(self, lambd: float = 0.5) -> Self:
        """0 where the magnitude is at most `lambd`.

        >>> Tensor([-1.0, 0.25]).hardshrink().tolist()
        [-1.0, 0.0]
        """
        return (self.abs() <= lambd).where(self.const_like(0), self)

    def softshrink(self, lambd: float = 0.5) -> Self:
        """`lambd` nearer to 0, and 0 where the magnitude is at most that.

        >>> Tensor([-1.0, 0.25]).softshrink().tolist()
        [-0.5, 0.0]
        """
        moved = self - self.sign() * lambd
        return (self.abs() <= lambd).where(self * 0.0, moved)

    def tanhshrink(self) -> Self:
        """self - tanh(self).

        >>> Tensor([0.0, 2.0]).tanhshrink().tolist()
        [0.0, 1.0359...]
        """
        return self - self.tanh()

    def threshold(self, threshold: float, value: float) -> Self:
        """`value` where self is not greater than `threshold`.

        >>> Tensor([0.5, 2.0]).threshold(1.0, 9.0).tolist()
        [9.0, 2.0]
        """
        return (self <= threshold).where(self.const_like(value), self)

    def prelu(self, weight: Self) -> Self:
        """self where it is at least 0, else self * weight: one, or one for each channel (axis 1).

        Raises ShapeError.

        >>> Tensor([-2.0, 3.0]).prelu(Tensor([0.25])).tolist()
        [-0.5, 3.0]
        """
        channels = self.shape[1] if self.ndim > 1 else 1
        if weight.numel() not in (1, channels):
            raise ShapeError(f"prelu: expected a weight of 1 or {channels} elements, got {weight.shape}")
        column = [-1 if i == 1 else 1 for i in range(self.ndim)] if weight.numel() != 1 else [1] * self.ndim
        return (self < 0).where(self * weight.reshape(column), self)

    # --- losses and distances

    def mse_loss(self, Y: Self, reduction: str = "mean") -> Self:
        """The squared difference from Y. Raises ShapeError, ArgumentError.

        >>> Tensor([1.0, 4.0]).mse_loss(Tensor([1.0, 2.0])).item()
        2.0
        """
        self._need_match(Y, "mse_loss")
        return (self - Y).square()._reduced(reduction)

    def l1_loss(self, Y: Self, reduction: str = "mean") -> Self:
        """The magnitude of the difference from Y. Raises ShapeError, ArgumentError.

        >>> Tensor([1.0, 4.0]).l1_loss(Tensor([1.0, 2.0])).item()
        1.0
        """
        self._need_match(Y, "l1_loss")
        return (self - Y).abs()._reduced(reduction)

    def smooth_l1_loss(self, Y: Self, reduction: str = "mean", beta: float = 1.0) -> Self:
        """d² / (2 beta) where |d| is less than `beta`, and |d| - beta / 2 beyond, for d = self - Y.

        Raises ShapeError, ArgumentError.

        >>> Tensor([0.5, 3.0]).smooth_l1_loss(Tensor([0.0, 0.0])).item()
        1.3125
        """
        if beta < 0:
            raise ArgumentError(f"smooth_l1_loss: expected a beta of at least 0, got {beta}")
        if beta == 0:
            return self.l1_loss(Y, reduction)
        return self.huber_loss(Y, "none", beta).div(beta)._reduced(reduction)

    def gaussian_nll_loss(
        self, Y: Self, variance: Self, full: bool = False, eps: float = 1e-06, reduction: str = "mean"
    ) -> Self:
        """Y's negative log-likelihood under normal distributions with these means and variances.

        (log variance + (self - Y)² / variance) / 2, with variances of at least `eps`, which gradients do not
        see (Nix and Weigend, 1994). `full`: with the constant log(2 pi) / 2. `variance` has this shape, or
        one that broadcasts to it. Raises ShapeError, ArgumentError.

        >>> Tensor([1.0, 4.0]).gaussian_nll_loss(Tensor([1.0, 2.0]), Tensor([1.0, 4.0])).item()
        0.59657...
        """
        self._need_match(Y, "gaussian_nll_loss")
        if eps <= 0:
            raise ArgumentError(f"gaussian_nll_loss: expected an eps above 0, got {eps}")
        bounded = variance + (variance.maximum(eps) - variance)._detached()
        loss = (bounded.log() + (self - Y).square() / bounded) * 0.5
        return (loss + 0.5 * math.log(2 * math.pi) if full else loss)._reduced(reduction)

    def cosine_similarity(self, other: Self, dim: int = 1, eps: float = 1e-08) -> Self:
        """The cosine of the angle between vectors along `dim`; lengths count as at least `eps`.

        Raises AxisError, ShapeError.

        >>> Tensor([[3.0, 4.0]]).cosine_similarity(Tensor([[4.0, 3.0]])).tolist()
        [0.9599...]
        """
        if dim not in range(-self.ndim, self.ndim):
            raise AxisError(f"cosine_similarity: expected an axis of {self.ndim}, got {dim}")
        lengths = [(x * x).sum(dim).sqrt().maximum(eps) for x in (self, other)]
        return (self * other).sum(dim) / (lengths[0] * lengths[1])
