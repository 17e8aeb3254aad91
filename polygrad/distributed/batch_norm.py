"""Batch normalisation with the statistics of all ranks' batches."""

from __future__ import annotations

from typing import Any

from polygrad.distributed.collectives import all_gather
from polygrad.distributed.group import group
from polygrad.nn.norm import BatchNorm
from polygrad.tensor.tensor import Tensor


class SyncBatchNorm(BatchNorm):
    """`nn.BatchNorm` whose mean and variance are those of all ranks' batches, which have one size. It
    normalises as one process does with the whole batch, and so do gradients.

    >>> SyncBatchNorm(3)(Tensor.rand(2, 3, 8, 8)).shape
    (2, 3, 8, 8)
    """

    def _moments(self, x: Tensor) -> tuple[Tensor, Tensor, int]:
        mean, var, n = super()._moments(x)
        size = group().engine.size
        if size == 1:
            return mean, var, n
        parts = all_gather(mean.stack(var).unsqueeze(0))  # (ranks, 2, channels)
        means, variances = parts[:, 0], parts[:, 1]
        joint = means.mean(0)
        return joint, (variances + (means - joint).square()).mean(0), n * size

    def _normalize(self, x: Tensor, mean: Tensor, inverse_std: Tensor) -> Tensor:
        return x.batchnorm(self.weight, self.bias, mean, inverse_std)


def sync_batch_norm(model: Any) -> Any:
    """Make each `nn.BatchNorm` in `model` a SyncBatchNorm, in place, with its parameters; returns `model`."""
    seen: set[int] = set()
    todo = [model]
    while todo:
        x = todo.pop()
        if id(x) in seen or isinstance(x, Tensor):
            continue
        seen.add(id(x))
        if type(x) is BatchNorm:
            x.__class__ = SyncBatchNorm
        if isinstance(x, dict):
            todo += x.values()
        elif isinstance(x, list | tuple):
            todo += x
        elif hasattr(x, "__dict__"):
            todo += vars(x).values()
    return model
