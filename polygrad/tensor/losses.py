"""Losses.

`reduction`: 'mean', 'sum' or 'none'.
"""

from __future__ import annotations

import math
from typing import Self

from polygrad.errors import ArgumentError, DTypeError, ShapeError
from polygrad.helpers import prod
from polygrad.tensor.activations import ActivationsMixin
from polygrad.tensor.core.base import filled
from polygrad.tensor.core.sizes import same_size
from polygrad.tensor.indexing import IndexingMixin


class LossesMixin(IndexingMixin, ActivationsMixin):
    """Losses."""

    __slots__ = ()

    def _reduced(self, reduction: str) -> Self:
        if reduction not in ("mean", "sum", "none"):
            raise ArgumentError(f"reduction: expected 'mean', 'sum' or 'none', got {reduction!r}")
        return self.mean() if reduction == "mean" else self.sum() if reduction == "sum" else self

    def cross_entropy(
        self,
        Y: Self,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
        weight: Self | None = None,
        ignore_index: int | None = None,
    ) -> Self:
        """The cross-entropy of these logits, classes along axis 1 (0 when 1-D).

        `Y`: class indices (integers, this shape without the class axis) or probabilities (this shape).
        `weight`: one per class; the mean over class indices is weighted. Class indices `ignore_index`
        (torch's is -100) count for nothing. Raises ShapeError, ArgumentError.

        >>> Tensor([[2.0, 0.0], [0.0, 1.0]]).cross_entropy(Tensor([0, 1])).item()
        0.22009...
        """
        if not 0.0 <= label_smoothing <= 1.0:
            raise ArgumentError(f"cross_entropy: expected label_smoothing in 0..1, got {label_smoothing}")
        axis = 0 if self.ndim == 1 else 1
        rest = self.shape[:axis] + self.shape[axis + 1 :]
        n = self.shape[axis]
        logs = self.log_softmax(axis)
        if weight is not None:
            if weight.shape != (n,):
                raise ShapeError(f"cross_entropy: expected a weight of shape {(n,)}, got {weight.shape}")
            weight = weight.reshape([-1 if i == axis else 1 for i in range(self.ndim)])
        if Y.shape == rest and not Y.dtype.is_float and (weight is not None or ignore_index is not None):
            return logs._weighted_nll(Y, axis, reduction, label_smoothing, weight, ignore_index)
        if weight is not None:
            logs = logs * weight
        if Y.shape == rest and not Y.dtype.is_float:
            wanted = Y.is_class(n, axis)
            if label_smoothing:
                soft = (
                    wanted._with(wanted.uop.cast(logs.dtype)) * (1.0 - label_smoothing) + label_smoothing / n
                )
                picked = (logs * soft).sum(axis)
            else:
                picked = wanted.where(logs, 0).sum(axis)
        elif Y.shape == self.shape:
            soft = Y * (1.0 - label_smoothing) + label_smoothing / n if label_smoothing else Y
            picked = (logs * soft).sum(axis)
        else:
            raise ShapeError(
                f"cross_entropy: expected Y of {rest} (integers) or {self.shape}, got {Y.shape} {Y.dtype}"
            )
        if reduction == "mean":
            count = prod(rest)
            picked = picked._in_accumulation_dtype()
            out = picked.sum() * (-1.0 / count) if isinstance(count, int) and count else -picked.mean()
            return logs._in_result_dtype(out)
        return (-picked)._reduced(reduction)

    def _weighted_nll(
        self,
        Y: Self,
        axis: int,
        reduction: str,
        label_smoothing: float,
        weight: Self | None,
        ignore_index: int | None,
    ) -> Self:
        """cross_entropy of these log-probabilities with class indices that count differently."""
        n = self.shape[axis]
        wanted = Y.is_class(n, axis)
        share = wanted.where(1.0 if weight is None else weight, 0.0).sum(axis)
        whole = self if weight is None else self * weight
        if ignore_index is not None:
            counts = Y.ne(ignore_index)
            share = counts.where(share, 0.0)
        loss = wanted.where(self, 0.0).sum(axis) * share
        if label_smoothing:
            smooth = whole.sum(axis)
            smooth = smooth if ignore_index is None else counts.where(smooth, 0.0)
            loss = loss * (1.0 - label_smoothing) + smooth * (label_smoothing / n)
        if reduction != "mean":
            return (-loss)._reduced(reduction)
        return -loss.sum() / share.sum()

    def kl_div(self, Y: Self, reduction: str = "mean", log_target: bool = False) -> Self:
        """The Kullback-Leibler divergence of these log-probabilities from the probabilities Y, by element.

        `log_target`: Y are log-probabilities too. `reduction` may be 'batchmean': the sum over axis 0's size.
        Raises ShapeError, ArgumentError.

        >>> Tensor([0.5, 0.5]).log().kl_div(Tensor([0.25, 0.75]), reduction="sum").item()
        0.13081...
        """
        self._need_match(Y, "kl_div")
        loss = Y.exp() * (Y - self) if log_target else Y.xlogy(Y) - Y * self
        if reduction == "batchmean":
            return loss.sum() / self.shape[0] if self.shape else loss
        return loss._reduced(reduction)

    def huber_loss(self, Y: Self, reduction: str = "mean", delta: float = 1.0) -> Self:
        """d² / 2 where |d| is up to `delta`, and delta (|d| - delta / 2) beyond, for d = self - Y.

        Raises ShapeError, ArgumentError.

        >>> Tensor([0.5, 3.0]).huber_loss(Tensor([0.0, 0.0])).item()
        1.3125
        """
        self._need_match(Y, "huber_loss")
        if delta <= 0:
            raise ArgumentError(f"huber_loss: expected a delta above 0, got {delta}")
        d = self - Y
        size = d.abs()
        return (size <= delta).where(d * d * 0.5, (size - 0.5 * delta) * delta)._reduced(reduction)

    def sparse_categorical_crossentropy(
        self,
        Y: Self,
        ignore_index: int = -1,
        label_smoothing: float = 0.0,
        reduction: str = "mean",
    ) -> Self:
        """The cross-entropy of these logits, classes along the last axis, with the integers Y.

        Rows whose class is `ignore_index` count for nothing (-1, the default, names no class: such rows give
        0 but count, as in tinygrad). Raises ShapeError, DTypeError, ArgumentError.

        >>> Tensor([[2.0, 0.0]]).sparse_categorical_crossentropy(Tensor([0])).item()
        0.12692...
        """
        if not 0.0 <= label_smoothing <= 1.0:
            raise ArgumentError(
                f"sparse_categorical_crossentropy: expected label_smoothing in 0..1, got {label_smoothing}"
            )
        if Y.shape != self.shape[:-1]:
            raise ShapeError(
                f"sparse_categorical_crossentropy: expected Y of shape {self.shape[:-1]}, got {Y.shape}"
            )
        logs = self.log_softmax(-1)
        picked = Y.is_class(self.shape[-1], -1).where(logs, 0).sum(-1)
        if label_smoothing:
            picked = picked * (1.0 - label_smoothing) + logs.mean(-1) * label_smoothing
        if ignore_index == -1:
            return -picked.mean() if reduction == "mean" else (-picked)._reduced(reduction)
        counts = Y.ne(ignore_index)
        picked = counts.where(picked, 0)
        if reduction != "mean":
            return (-picked)._reduced(reduction)
        return -picked.sum() / counts.sum()

    def nll_loss(
        self,
        Y: Self,
        weight: Self | None = None,
        ignore_index: int | None = None,
        reduction: str = "mean",
    ) -> Self:
        """The negative log-likelihood of these log-probabilities with integers Y; classes on axis 1 (or 0).

        `weight`: one per class; the mean is weighted. Raises ShapeError, DTypeError.

        >>> Tensor([[0.25, 0.75]]).log().nll_loss(Tensor([1])).item()
        0.28768...
        """
        axis = 0 if self.ndim == 1 else 1
        rest = self.shape[:axis] + self.shape[axis + 1 :]
        if Y.shape != rest:
            raise ShapeError(f"nll_loss: expected Y of shape {rest}, got {Y.shape}")
        wanted = Y.is_class(self.shape[axis], axis)
        loss = -wanted.where(self, 0).sum(axis)
        if weight is None and ignore_index is None:
            return loss._reduced(reduction)
        column = [-1 if i == axis else 1 for i in range(self.ndim)]
        share = (
            wanted.where(weight.reshape(column), 0).sum(axis)
            if weight is not None
            else loss._with(filled(loss.dtype, 1, loss.shape))
        )
        if ignore_index is not None:
            share = Y.ne(ignore_index).where(share, 0)
        loss = loss * share
        return loss.sum() / share.sum() if reduction == "mean" else loss._reduced(reduction)

    def binary_crossentropy(self, Y: Self, reduction: str = "mean") -> Self:
        """The cross-entropy of these probabilities (between 0 and 1) with the labels Y, of the same shape.

        >>> Tensor([0.9, 0.2]).binary_crossentropy(Tensor([1.0, 0.0])).item()
        0.16425...
        """
        self._need_match(Y, "binary_crossentropy")
        return (-(Y * self.log()) - (1 - Y) * (1 - self).log())._reduced(reduction)

    binary_cross_entropy = binary_crossentropy

    def binary_crossentropy_logits(
        self,
        Y: Self,
        reduction: str = "mean",
        pos_weight: Self | None = None,
    ) -> Self:
        """The cross-entropy of sigmoid(self) with the labels Y, without overflow.

        `pos_weight` scales the positive part.

        >>> Tensor([2.0, -1.0]).binary_crossentropy_logits(Tensor([1.0, 0.0])).item()
        0.22009...
        """
        self._need_match(Y, "binary_crossentropy_logits")
        log_p, log_1_p = self.logsigmoid(), (-self).logsigmoid()
        positive = Y * log_p if pos_weight is None else Y * log_p * pos_weight
        return (-(positive + (1 - Y) * log_1_p))._reduced(reduction)

    binary_cross_entropy_with_logits = binary_crossentropy_logits

    def _need_match(self, Y: Self, what: str) -> None:
        if len(Y.shape) != len(self.shape) or not all(map(same_size, Y.shape, self.shape)):
            raise ShapeError(f"{what}: expected Y of shape {self.shape}, got {Y.shape}")
        if Y.dtype.is_bool:
            raise DTypeError(f"{what}: expected numeric labels, got bool: use .float()")

    # --- of values

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
