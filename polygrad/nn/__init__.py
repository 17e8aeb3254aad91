"""Neural networks: layers, and what training needs.

Layers are callable objects with Tensors as attributes. A model needs no base class: `nn.state` finds its
Tensors. `nn.Parameter` makes trained Tensors, `nn.Buffer` others. `nn.optim` has optimizers, learning-rate
schedules and gradient clipping, `nn.state` files of weights, `nn.init` initialisation, `nn.data` batches and
splits, `nn.datasets` well-known data sets.
"""

import sys
from typing import Any

from polygrad.missing import missing
from polygrad.nn import data, datasets, init, optim, state
from polygrad.nn.conv import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from polygrad.nn.dense import Bilinear, Embedding, Linear
from polygrad.nn.norm import (
    BatchNorm,
    BatchNorm2d,
    BatchNorm3d,
    GroupNorm,
    InstanceNorm,
    LayerNorm,
    LayerNorm2d,
    RMSNorm,
)
from polygrad.nn.packed import PackedWeight
from polygrad.nn.parameter import Buffer, Parameter
from polygrad.nn.recurrent import GRU, LSTM, LSTMCell
from polygrad.nn.transformer import MultiheadAttention, TransformerBlock

__all__ = [
    "GRU",
    "LSTM",
    "BatchNorm",
    "BatchNorm2d",
    "BatchNorm3d",
    "Bilinear",
    "Buffer",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "Embedding",
    "GroupNorm",
    "InstanceNorm",
    "LSTMCell",
    "LayerNorm",
    "LayerNorm2d",
    "Linear",
    "MultiheadAttention",
    "PackedWeight",
    "Parameter",
    "RMSNorm",
    "TransformerBlock",
    "data",
    "datasets",
    "init",
    "optim",
    "state",
]


def __getattr__(name: str) -> Any:
    raise AttributeError(
        missing("polygrad.nn", "module 'polygrad.nn'", name), name=name, obj=sys.modules[__name__]
    )
