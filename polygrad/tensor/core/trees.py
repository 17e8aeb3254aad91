"""Tensors in lists, tuples and dicts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polygrad.errors import ArgumentError
from polygrad.tensor.core.base import TensorBase


def map_tensors(value: Any, change: Callable[[Any], Any], what: str) -> Any:
    """Apply a function to a Tensor, or to each Tensor in lists, tuples and dicts. Raises ArgumentError, which
    names `what`."""
    if isinstance(value, TensorBase):
        return change(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*[map_tensors(v, change, what) for v in value])
    if isinstance(value, (list, tuple)):
        return type(value)(map_tensors(v, change, what) for v in value)
    if isinstance(value, dict):
        return {k: map_tensors(v, change, what) for k, v in value.items()}
    raise ArgumentError(f"{what}: expected Tensors, got {type(value).__name__}")


def flatten_tensors(value: Any, what: str) -> list[Any]:
    """The Tensors, in order. Raises ArgumentError."""
    tensors: list[Any] = []
    map_tensors(value, tensors.append, what)
    return tensors
