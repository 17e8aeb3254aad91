"""Runs the layers of a transformer, with or without recomputation in the gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polygrad.models.attention import ForwardContext
from polygrad.tensor.custom_gradient import checkpoint
from polygrad.tensor.tensor import Tensor


def run_layers(
    layers: Sequence[Any], x: Tensor, step: ForwardContext, recomputes: bool = False
) -> list[Tensor]:
    """`x`, and the output of each of the layers, which are called with a hidden state and the step.

    `recomputes`: in training mode the gradient of a layer recomputes the values within the layer
    (`polygrad.checkpoint`), so that only its input is kept.
    """
    states = [x]
    for layer in layers:
        x = states[-1]
        if recomputes and Tensor.training:
            states.append(checkpoint(lambda x, layer=layer: layer(x, step), x))
        else:
            states.append(layer(x, step))
    return states
