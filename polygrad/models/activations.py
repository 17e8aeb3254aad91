"""The activations that configurations name."""

from __future__ import annotations

from collections.abc import Callable

from polygrad.models.fields import Fields
from polygrad.tensor.tensor import Tensor

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": lambda x: x.gelu(approximate="none"),
    "gelu_new": lambda x: x.gelu(approximate="tanh"),
    "gelu_fast": lambda x: x.gelu(approximate="tanh"),
    "gelu_pytorch_tanh": lambda x: x.gelu(approximate="tanh"),
    "quick_gelu": lambda x: x * (x * 1.702).sigmoid(),
    "relu": Tensor.relu,
    "silu": Tensor.silu,
    "swish": Tensor.silu,
    "tanh": Tensor.tanh,
}


def activation(config: Fields, name: str, default: str) -> Callable[[Tensor], Tensor]:
    """The function that entry `name` of a configuration names. Raises ModelError."""
    return ACTIVATIONS[config.choice(name, ACTIVATIONS, default)]
