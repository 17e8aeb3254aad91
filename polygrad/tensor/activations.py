"""Activation functions: of each element, or of rows (softmax)."""

from __future__ import annotations

import math
from typing import Any, Self

from polygrad.dtype import dtypes, to_dtype
from polygrad.errors import ArgumentError, ShapeError
from polygrad.tensor.core.base import DTypeLike
from polygrad.tensor.core.expressions import negate, with_sign
from polygrad.tensor.core.tanh import TANH_DTYPES, tanh_of_magnitude
from polygrad.tensor.reduce import Axes, ReduceMixin
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


class ActivationsMixin(ReduceMixin):
    """Activations. Each takes and gives a float tensor of any shape."""

    __slots__ = ()

    # --- of each element

    def relu(self) -> Self:
        """max(self, 0), and NaN of NaN; its gradient at 0 is 0.

        >>> Tensor([-1.0, 2.0]).relu().tolist()
        [0.0, 2.0]
        """
        # Code generation makes this one instruction, a maximum that returns its second operand for NaN.
        # `maximum` would have the gradient 1 at 0.
        if not self.dtype.is_float:
            return (self < 0).where(0, self)
        x, zero = self.uop, UOp.const(self.dtype, 0.0)
        out = UOp(Ops.WHERE, x.dtype, (UOp(Ops.CMPLT, dtypes.bool, (x, zero)), zero, x))
        return self._with(UOp(Ops.NOOP, x.dtype, (out, x), _gradient_of_relu))

    def relu6(self) -> Self:
        """self clipped to 0..6.

        >>> Tensor([-1.0, 8.0]).relu6().tolist()
        [0.0, 6.0]
        """
        return self.hardtanh(0, 6)

    def leaky_relu(self, neg_slope: float = 0.01) -> Self:
        """self where positive, else `neg_slope` * self.

        >>> Tensor([1.0, -1.0]).leaky_relu(0.5).tolist()
        [1.0, -0.5]
        """
        return (self > 0).where(self, self * neg_slope)

    def hardtanh(self, min_val: float = -1, max_val: float = 1) -> Self:
        """self clipped to `min_val`..`max_val`; the gradient is 0 at both.

        >>> Tensor([-2.0, 0.5]).hardtanh().tolist()
        [-1.0, 0.5]
        """
        out = self.clamp(min_val, max_val)
        if not self.dtype.is_float:
            return out
        return out._with_backward([self], lambda g, y, _: (y.eq(min_val) | y.eq(max_val)).where(0.0, g))

    def hardsigmoid(self, alpha: float = 1 / 6, beta: float = 0.5) -> Self:
        """alpha * self + beta clipped to 0..1.

        >>> Tensor([-6.0, 0.0, 6.0]).hardsigmoid().tolist()
        [0.0, 0.5, 1.0]
        """
        return (self * alpha + beta).clamp(0.0, 1.0)

    def hardswish(self) -> Self:
        """self * relu6(self + 3) / 6.

        >>> Tensor([-6.0, 6.0]).hardswish().tolist()
        [-0.0, 6.0]
        """
        return self * ((self + 3).relu6() * (1 / 6))

    def sigmoid(self) -> Self:
        """1 / (1 + exp(-self)).

        >>> Tensor([0.0, 1.0]).sigmoid().tolist()
        [0.5, 0.73105...]
        """
        return (self._exp_of_multiple(-1.0) + 1.0).reciprocal()

    def logsigmoid(self) -> Self:
        """log(sigmoid(self)), without overflow.

        >>> Tensor([0.0]).logsigmoid().tolist()
        [-0.69314...]
        """
        return -(-self).softplus()

    def tanh(self) -> Self:
        """The hyperbolic tangent, within 4 ulp.

        >>> Tensor([1.0]).tanh().tolist()
        [0.76159...]
        """
        x = self._in_floats()
        wide = x if x.dtype in TANH_DTYPES else x.float()
        magnitude = wide.abs()
        out = with_sign(magnitude._with(tanh_of_magnitude(magnitude.uop)), wide).cast(x.dtype)
        return out._with_backward([x], lambda g, y, _: g * (1.0 - y * y))

    def gelu(self, approximate: str = "tanh") -> Self:
        """self * Phi(self); `approximate` is 'tanh' or 'none' (the error function). Raises ArgumentError.

        'tanh' is tinygrad's default; torch's is 'none'.

        >>> Tensor([1.0]).gelu().tolist()
        [0.84119...]
        """
        if approximate == "tanh":  # (1 + tanh u) / 2 is sigmoid(2u)
            return self * ((self * self * 0.044715 + 1.0) * self * (2 * math.sqrt(2 / math.pi))).sigmoid()
        if approximate == "none":
            return self * 0.5 * ((self * math.sqrt(0.5)).erf() + 1.0)
        raise ArgumentError(f"gelu: expected approximate 'tanh' or 'none', got {approximate!r}")

    def quick_gelu(self) -> Self:
        """self * sigmoid(1.702 self).

        >>> Tensor([1.0]).quick_gelu().tolist()
        [0.84579...]
        """
        return self * (self * 1.702).sigmoid()

    def swish(self) -> Self:
        """self * sigmoid(self).

        >>> Tensor([1.0]).swish().tolist()
        [0.73105...]
        """
        return self * self.sigmoid()

    def silu(self) -> Self:
        """self * sigmoid(self).

        >>> Tensor([1.0]).silu().tolist()
        [0.73105...]
        """
        return self.swish()

    def elu(self, alpha: float = 1.0) -> Self:
        """self where positive, else alpha * (exp(self) - 1), by `expm1`.

        >>> Tensor([1.0, -1.0]).elu().tolist()
        [1.0, -0.63212...]
        """
        positive = self > 0
        return positive.where(self, positive.where(0.0, self).expm1() * alpha)

    def celu(self, alpha: float = 1.0) -> Self:
        """max(self, 0) + min(0, alpha * (exp(self / alpha) - 1)).

        >>> Tensor([1.0, -1.0]).celu().tolist()
        [1.0, -0.63212...]
        """
        positive = self > 0
        return positive.where(self, (positive.where(0.0, self) * (1 / alpha)).expm1() * alpha)

    def selu(self, alpha: float = 1.6732632423543772, gamma: float = 1.0507009873554805) -> Self:
        """gamma * (self where positive, else alpha * (exp(self) - 1)).

        >>> Tensor([1.0, -1.0]).selu().tolist()
        [1.05070..., -1.11133...]
        """
        return self.elu(alpha) * gamma

    def softplus(self, beta: float = 1.0) -> Self:
        """log(1 + exp(beta * self)) / beta, without overflow.

        >>> Tensor([0.0]).softplus().tolist()
        [0.69314...]
        """
        x = self * beta
        # at 0 the maximum has the gradient 1/2 and the magnitude 0, so the sum is right there
        return (x.maximum(0.0) + x.abs()._exp_of_multiple(-1.0, nonpositive=True).log1p()) * (1 / beta)

    def mish(self) -> Self:
        """self * tanh(softplus(self)).

        >>> Tensor([1.0]).mish().tolist()
        [0.86509...]
        """
        return self * self.softplus().tanh()

    def softsign(self) -> Self:
        """self / (1 + |self|).

        >>> Tensor([1.0, -3.0]).softsign().tolist()
        [0.5, -0.75]
        """
        return self / (self.abs() + 1.0)

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
        shrunk_value = self - self.sign() * lambd
        return (self.abs() <= lambd).where(self * 0.0, shrunk_value)

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
        column = [-1 if i == 1 else 1 for i in range(self.ndim)]
        return (self < 0).where(self * weight.reshape(column), self)

    # --- of rows

    def _subtract_max(self, axis: Axes) -> Self:
        """self minus its maximum along `axis`, through which no gradient flows."""
        self._need_elements(axis, "max")
        x = self.uop
        top = x.detach().reduce_axis(Ops.MAX, self._axes(axis)).expand(x.shape)
        return self._with(UOp(Ops.ADD, x.dtype, (x, negate(top))))

    def softmax(self, axis: Axes = -1, dtype: DTypeLike | None = None) -> Self:
        """exp(self) / sum(exp(self)) along `axis`, without overflow. `dtype`: of the result.

        >>> Tensor([0.0, 0.0]).softmax().tolist()
        [0.5, 0.5]
        """
        x = self._softmax_input(dtype)
        e = x._in_accumulation_dtype()._subtract_max(axis)._exp_of_multiple(1.0, nonpositive=True)
        return x._in_result_dtype(e * e.sum(axis, keepdim=True).reciprocal())

    def log_softmax(self, axis: Axes = -1, dtype: DTypeLike | None = None) -> Self:
        """The logarithm of softmax, without overflow.

        >>> Tensor([0.0, 1.0]).log_softmax().tolist()
        [-1.31326..., -0.31326...]
        """
        x = self._softmax_input(dtype)
        logits = x._in_accumulation_dtype()._subtract_max(axis)
        total = logits._exp_of_multiple(1.0, nonpositive=True).sum(axis, keepdim=True)
        return x._in_result_dtype(logits - total.log())

    def softmin(self, axis: Axes = -1, dtype: DTypeLike | None = None) -> Self:
        """softmax of -self.

        >>> Tensor([0.0, 0.0]).softmin().tolist()
        [0.5, 0.5]
        """
        return self.neg().softmax(axis, dtype)

    def _softmax_input(self, dtype: DTypeLike | None) -> Self:
        return self if dtype is None else self._with(self.uop.cast(to_dtype(dtype)))

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

    def sequential(self, ll: list[Any]) -> Self:
        """Apply the callables of `ll` in order.

        >>> Tensor([-1.0, 4.0]).sequential([Tensor.relu, Tensor.sqrt]).tolist()
        [0.0, 2.0]
        """
        out = self
        for f in ll:
            out = f(out)
        return out


def _gradient_of_relu(g: UOp, y: UOp) -> list[UOp]:
    zero = UOp.const(g.dtype, 0.0)
    return [UOp(Ops.WHERE, g.dtype, (UOp(Ops.CMPEQ, dtypes.bool, (y, zero)), zero, g))]
