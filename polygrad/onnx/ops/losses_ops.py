"""Losses of class probabilities."""

from __future__ import annotations

from polygrad.errors import OnnxError
from polygrad.onnx.op_table import op
from polygrad.tensor.tensor import Tensor


@op("NegativeLogLikelihoodLoss", 12, 13, 22)
def nll_loss(
    x: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Tensor:
    """x: (n, classes, ...) log-probabilities; the mean is by the weights of the targets."""
    is_ignored = None if ignore_index is None else target.eq(ignore_index)
    classes = target if is_ignored is None else is_ignored.where(0, target)
    loss = x.gather(1, classes.unsqueeze(1)).squeeze(1).neg()
    share = Tensor.ones(classes.shape, dtype=x.dtype) if weight is None else weight[classes]
    if is_ignored is not None:
        share = is_ignored.where(0.0, share).cast(x.dtype)
    loss = loss * share
    if reduction == "none":
        return loss
    if reduction == "sum":
        return loss.sum()
    if reduction != "mean":
        raise OnnxError(f"expected reduction none, sum or mean, got {reduction!r}")
    return loss.sum() / share.sum()


@op("SoftmaxCrossEntropyLoss", 12, 13)
def softmax_cross_entropy_loss(
    scores: Tensor,
    labels: Tensor,
    weights: Tensor | None = None,
    *,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> tuple[Tensor, Tensor]:
    log_probabilities = scores.log_softmax(1)
    loss = nll_loss(log_probabilities, labels, weights, ignore_index=ignore_index, reduction=reduction)
    return loss, log_probabilities
