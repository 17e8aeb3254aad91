"""Margin losses: distances or scores should differ by at least a margin."""

from __future__ import annotations

from typing import Any, Self

from polygrad.dtype import dtypes
from polygrad.errors import ArgumentError, ShapeError
from polygrad.tensor.linalg import LinalgMixin
from polygrad.tensor.losses import LossesMixin


class MarginLossesMixin(LinalgMixin, LossesMixin):
    """Margin losses. `reduction` is 'mean', 'sum' or 'none'."""

    __slots__ = ()

    # --- of pairs and triplets

    def margin_ranking_loss(self, other: Self, Y: Self, margin: float = 0.0, reduction: str = "mean") -> Self:
        """max(0, margin - Y (self - other)): self is to be greater where Y is 1, less where it is -1.

        Raises ArgumentError.

        >>> Tensor([1.0, 3.0]).margin_ranking_loss(Tensor([2.0, 1.0]), Tensor([1.0, 1.0])).item()
        0.5
        """
        return (margin - Y * (self - other)).clamp(0)._apply_reduction(reduction)

    def hinge_embedding_loss(self, Y: Self, margin: float = 1.0, reduction: str = "mean") -> Self:
        """These distances where Y is 1, and max(0, margin - self) where it is -1. Raises ShapeError.

        >>> Tensor([0.5, 0.25]).hinge_embedding_loss(Tensor([1.0, -1.0])).item()
        0.625
        """
        self._need_match(Y, "hinge_embedding_loss")
        far = Y.eq(1).where(0.0, (margin - self).clamp(0))
        return (far + Y.eq(-1).where(0.0, self))._apply_reduction(reduction)

    def cosine_embedding_loss(
        self, other: Self, Y: Self, margin: float = 0.0, reduction: str = "mean"
    ) -> Self:
        """1 - c where Y is 1, and max(0, c - margin) where it is -1, for c the cosine along the last axis.

        Raises ShapeError.

        >>> Tensor([[1.0, 0.0]]).cosine_embedding_loss(Tensor([[0.0, 2.0]]), Tensor([1.0])).item()
        1.0
        """
        dots = [(a * b).sum(-1) for a, b in ((self, other), (self, self), (other, other))]
        if Y.shape != dots[0].shape:
            raise ShapeError(f"cosine_embedding_loss: expected Y of shape {dots[0].shape}, got {Y.shape}")
        cosine = dots[0] * ((dots[1] + 1e-12) * (dots[2] + 1e-12)).rsqrt()
        near = Y.eq(1).where(1.0 - cosine, 0.0)
        return (near + Y.eq(-1).where((cosine - margin).clamp(0), 0.0))._apply_reduction(reduction)

    def triplet_margin_loss(
        self,
        positive: Self,
        negative: Self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-06,
        swap: bool = False,
        reduction: str = "mean",
    ) -> Self:
        """max(0, d(self, positive) - d(self, negative) + margin), d being `pairwise_distance`.

        `swap`: the distance of `positive` from `negative` counts, where it is less (Balntas et al., 2016).

        >>> a = Tensor([[0.0, 0.0]])
        >>> a.triplet_margin_loss(Tensor([[3.0, 4.0]]), Tensor([[0.0, 5.5]]), eps=0.0).item()
        0.5
        """
        near = self.pairwise_distance(positive, p, eps)
        far = self.pairwise_distance(negative, p, eps)
        if swap:
            far = far.minimum(positive.pairwise_distance(negative, p, eps))
        return (near - far + margin).clamp(0)._apply_reduction(reduction)

    # --- of classes

    def soft_margin_loss(self, Y: Self, reduction: str = "mean") -> Self:
        """log(1 + exp(-Y self)), for Y of 1 and -1. Raises ShapeError.

        >>> Tensor([0.0]).soft_margin_loss(Tensor([1.0])).item()
        0.69314...
        """
        self._need_match(Y, "soft_margin_loss")
        return (-(Y * self)).softplus()._apply_reduction(reduction)

    def multi_margin_loss(
        self,
        Y: Self,
        p: int = 1,
        margin: float = 1.0,
        weight: Self | None = None,
        reduction: str = "mean",
    ) -> Self:
        """The sum of max(0, margin - self[Y] + self[i])^p over the classes i but Y, divided by their number.

        The number is torch's, which counts Y.

        Shapes: self (n, classes) or (classes,), Y (n,) or () integers, weight (classes,). `p`: 1 or 2.
        Raises ShapeError, ArgumentError.

        >>> Tensor([[0.5, 1.0, 2.0]]).multi_margin_loss(Tensor([2])).item()
        0.0
        """
        if p not in (1, 2):
            raise ArgumentError(f"multi_margin_loss: expected p of 1 or 2, got {p}")
        self._need_classes(Y, self.shape[:-1], "multi_margin_loss")
        count = self.shape[-1]
        label_mask = Y.is_class(count, -1)
        loss = (margin - label_mask.where(self, 0.0).sum(-1, keepdim=True) + self).clamp(0)
        loss = loss if p == 1 else loss.square()
        if weight is not None:
            if weight.shape != (count,):
                raise ShapeError(f"multi_margin_loss: expected a weight of {(count,)}, got {weight.shape}")
            loss = loss * label_mask.where(weight, 0.0).sum(-1, keepdim=True)
        return (label_mask.where(0.0, loss).sum(-1) / count)._apply_reduction(reduction)

    def multilabel_margin_loss(self, Y: Self, reduction: str = "mean") -> Self:
        """The sum of max(0, 1 - self[y] + self[i]) over classes y of Y and others i, divided by their number.

        Shapes: self and Y (n, classes) or (classes,). The classes of a row are those before the first -1.
        Raises ShapeError, DTypeError.

        >>> Tensor([0.1, 0.2, 0.4, 0.8]).multilabel_margin_loss(Tensor([3, 0, -1, 1])).item()
        0.85000...
        """
        self._need_classes(Y, self.shape, "multilabel_margin_loss")
        count = self.shape[-1]
        names = (Y < 0)._cumulative_any()
        label_mask = names.where(-1, Y).is_class(count, -1)  # (..., names, classes)
        of_name = label_mask.where(self.unsqueeze(-2), 0.0).sum(-1, keepdim=True)
        margins = (1.0 - of_name + self.unsqueeze(-2)).clamp(0)
        counts = names.logical_not().unsqueeze(-1) & label_mask.any(-2, keepdim=True).logical_not()
        return (counts.where(margins, 0.0).sum((-2, -1)) / count)._apply_reduction(reduction)

    def multilabel_soft_margin_loss(
        self, Y: Self, weight: Self | None = None, reduction: str = "mean"
    ) -> Self:
        """The mean over the last axis of the cross-entropy of sigmoid(self) with Y (0 and 1).

        `weight`: of each class. Raises ShapeError.

        >>> Tensor([[0.0, 0.0]]).multilabel_soft_margin_loss(Tensor([[1.0, 0.0]])).item()
        0.69314...
        """
        loss = self.binary_crossentropy_logits(Y, "none")
        return (loss if weight is None else loss * weight).mean(-1)._apply_reduction(reduction)

    def _need_classes(self, Y: Self, shape: Any, what: str) -> None:
        if not 1 <= self.ndim <= 2 or Y.shape != tuple(shape):
            raise ShapeError(
                f"{what}: expected (n, classes) or (classes,) and Y of {tuple(shape)}, got {self.shape} and "
                f"{Y.shape}"
            )
        Y._need_int(what)

    def _cumulative_any(self) -> Self:
        """Whether this bool or one before it along the last axis holds."""
        return self._with(self.uop.cast(dtypes.int32)).cumsum(self.ndim - 1) > 0
