"""Neural networks: layers, optimizers (`nn.optim`) and state (`nn.state`)."""

from polygrad.nn import optim, state
from polygrad.nn.layers import (
    BatchNorm,
    BatchNorm2d,
    BatchNorm3d,
    Conv2d,
    Embedding,
    GroupNorm,
    InstanceNorm,
    LayerNorm,
    Linear,
    RMSNorm,
)

__all__ = [
    "BatchNorm",
    "BatchNorm2d",
    "BatchNorm3d",
    "Conv2d",
    "Embedding",
    "GroupNorm",
    "InstanceNorm",
    "LayerNorm",
    "Linear",
    "RMSNorm",
    "optim",
    "state",
]
