"""The Tensors of a model: parameters, which are trained, and buffers, which are not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from polygrad.errors import ArgumentError
from polygrad.tensor.core.base import BufferRole, DTypeLike
from polygrad.tensor.tensor import Tensor


def parameter(value: Tensor, dtype: DTypeLike | None = None) -> Tensor:
    """Make `value`, which has no other owner, a leaf that requires a gradient, converted to `dtype`.

    Raises ArgumentError for a dtype that is not a float.
    """
    value = value if dtype is None else value.cast(dtype)
    if not value.dtype.is_float:
        raise ArgumentError(f"dtype: expected a float for parameters, got {value.dtype}")
    return value.requires_grad_()


def Parameter(data: Any, requires_grad: bool = True) -> Tensor:
    """A Tensor that belongs to a model and is trained: a leaf that requires a gradient, in memory of its own,
    with the elements of `data`. Raises ArgumentError for other than floats.

    >>> from polygrad import Tensor, nn
    >>> scale = nn.Parameter(Tensor.ones(2))
    >>> (scale * Tensor([1.0, 2.0])).sum().backward().item()
    3.0
    >>> scale.grad.tolist()
    [1.0, 2.0]
    """
    value = Tensor(data)
    if not value.dtype.is_float:
        raise ArgumentError(f"Parameter: expected floats, got {value.dtype}: use nn.Buffer")
    return value.detach().clone().realize().requires_grad_(requires_grad)


def Buffer(data: Any, persistent: bool = True) -> Tensor:
    """A Tensor in memory of its own, with the elements of `data`, that belongs to a model and is not
    trained: running statistics, a cache of keys and values, rotary tables.

    `nn.state.get_parameters` does not return it, and an optimizer refuses it. If it is `persistent`,
    `get_state_dict` includes it, so that it is saved; with `buffers=True` also if not.

    >>> from polygrad import Tensor, nn
    >>> class Model:
    ...     def __init__(self):
    ...         self.layer = nn.Linear(2, 2, bias=False)
    ...         self.cache = nn.Buffer(Tensor.zeros(4, 2), persistent=False)
    >>> list(nn.state.get_state_dict(Model()))
    ['layer.weight']
    """
    out = Tensor(data).detach().clone().realize()
    out.requires_grad = False
    out._role = BufferRole(persistent)
    return out


def keep_as_planes(planes: Iterable[Tensor]) -> None:
    """Make computed Tensors, which have no other owner, persistent buffers with a fixed dtype."""
    for plane in planes:
        plane.requires_grad = False
        plane._role = BufferRole(persistent=True, keeps_dtype=True)


def keeps_dtype(x: Tensor) -> bool:
    """Whether `x` keeps its dtype when its model is converted to another."""
    return isinstance(x._role, BufferRole) and x._role.keeps_dtype


def is_buffer(x: Tensor) -> bool:
    """Whether `x` was made by `Buffer`."""
    return isinstance(x._role, BufferRole)


def is_persistent(x: Tensor) -> bool:
    """Whether `x` is saved: it is a parameter or a persistent buffer."""
    return not isinstance(x._role, BufferRole) or x._role.persistent
