"""Copies of Tensors by `copy` and `pickle`, which are used to copy, send and store models and optimizers.

A pickle holds values and no graph: an unpickled Tensor is a leaf.
"""

from __future__ import annotations

from typing import Any, Self

from polygrad.dtype import to_dtype
from polygrad.engine.devices import Device
from polygrad.engine.sharding import axis_of
from polygrad.tensor.core.base import BufferRole, TensorBase
from polygrad.uop.args import Sharding


class CopyingMixin(TensorBase):
    """The protocols of `copy.copy`, `copy.deepcopy` and `pickle`."""

    __slots__ = ()

    def __copy__(self) -> Self:
        """Another Tensor over the same elements: a view, which sees writes to this one."""
        out = self._view_of(self.uop)
        out.grad = self.grad
        if self.requires_grad and not self._derived:
            out._derived = False
            out.requires_grad = True
        out._take_buffer_role(self._buffer_role())
        return out

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """These elements in memory of their own, computed, with a copy of the gradient; a leaf."""
        out = self._detached().clone()  # type: ignore[attr-defined]
        out.realize()
        memo[id(self)] = out
        out.requires_grad = self.requires_grad
        out.grad = None if self.grad is None else self.grad.__deepcopy__(memo)
        out._take_buffer_role(self._buffer_role())
        return out  # type: ignore[no-any-return]

    def __reduce__(self) -> Any:
        """The elements as bytes. The device is stored unless it is the default one, so that a pickle of one
        host can be read on another."""
        raw = bytes(self.data())  # type: ignore[attr-defined]
        device = None if self.device == Device.DEFAULT else self.device
        if isinstance(device, tuple):
            device = Sharding(device, axis_of(self.uop))
        state = (raw, str(self.dtype), self.shape, device, self.requires_grad, self.grad, self._buffer_role())
        return _restore, (type(self), *state)

    def _buffer_role(self) -> BufferRole | None:
        return self._role if isinstance(self._role, BufferRole) else None

    def _take_buffer_role(self, role: BufferRole | None) -> None:
        if role is not None:
            self._role = role


def _restore(
    cls: Any,
    raw: bytes,
    dtype: str,
    shape: tuple[int, ...],
    device: str | Sharding | None,
    requires_grad: bool | None,
    grad: Any,
    role: BufferRole | None = None,
) -> Any:
    if isinstance(device, Sharding):
        out = cls(raw, device.devices[0], to_dtype(dtype)).reshape(shape).shard(*device)
    else:
        out = cls(raw, device, to_dtype(dtype)).reshape(shape)
    out.requires_grad, out.grad = requires_grad, grad
    out._take_buffer_role(role)
    return out
