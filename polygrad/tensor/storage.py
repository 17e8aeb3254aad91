"""Where lazy meets memory: realize, reading back, assignment, devices."""

from __future__ import annotations

import sys
import weakref
from typing import Any, Self

from polygrad.dtype import dtypes
from polygrad.engine.devices import Device
from polygrad.engine.realize import data_of, realize
from polygrad.errors import ArgumentError, DeviceError, DTypeError, ShapeError
from polygrad.helpers import prod
from polygrad.runtime.buffer import Buffer
from polygrad.tensor.base import TensorBase, is_constant
from polygrad.tensor.convert import nest, unpack
from polygrad.tensor.indexing import is_stored
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


def _compute(tensors: list[Any]) -> list[UOp]:
    """The BUFFERs of some Tensors' values, reshaped.

    A constant is stored apart, so that its node stays one.
    """
    roots = [UOp(Ops.CONTIGUOUS, t.uop.dtype, (t.uop,)) if is_constant(t.uop) else t.uop for t in tensors]
    return realize(roots)


class StorageMixin(TensorBase):
    """Computing, reading and writing elements."""

    __slots__ = ()

    def realize(self, *others: Self) -> Self:
        """Compute this Tensor and `others` now, in one Program; self.

        Raises DeviceError, OutOfMemoryError, CompileError.
        """
        tensors = [t for t in (self, *others) if t.uop.base.op is not Ops.BUFFER and 0 not in t.shape]
        if not tensors:
            return self
        done = _compute(tensors)
        fresh: list[tuple[Any, UOp]] = []
        for t, out in zip(tensors, done, strict=True):
            buffer: Buffer = out.base.arg
            t._device = buffer.device
            if t.requires_grad and t._derived:
                continue  # the graph stays, for backward; its node remembers the value
            owner = buffer.owner() if buffer.owner is not None else None
            if owner is None or owner is t:
                buffer.owner = weakref.ref(t)
            else:  # equal graphs are one node: each Tensor gets memory of its own, to be assigned to
                twin = UOp(Ops.BUFFER, out.dtype, (), Buffer(buffer.runtime, buffer.size, buffer.dtype))
                fresh.append((t, twin.assign(out.base)))
            t.uop = out
        if fresh:
            for (t, _), out in zip(fresh, realize([a for _, a in fresh]), strict=True):
                out.base.arg.owner = weakref.ref(t)
                t.uop = out.reshape(t.uop.shape)
        return self

    # --- reading

    def _concrete_shape(self, what: str) -> tuple[int, ...]:
        for s in self.shape:
            if not isinstance(s, int):
                raise ShapeError(
                    f"{what}: expected a shape of ints, got {self.shape}: cut symbolic axes to ints, as in "
                    "t[:, :3] for a size bound to 3"
                )
        return self.shape

    def _bytes(self, what: str) -> memoryview:
        self._concrete_shape(what)
        if 0 in self.shape:
            return memoryview(bytearray())
        self.realize()
        return data_of(self.uop)

    def data(self) -> memoryview:
        """The elements as a memoryview of this shape and dtype, a copy. Works without numpy.

        float16 and bfloat16 come as their bits, format 'H': a memoryview cannot hold them.
        """
        raw, shape = self._bytes("data"), self._concrete_shape("data")
        fmt: Any = self.dtype.fmt if self.dtype.itemsize != 2 or self.dtype.is_int else "H"
        return raw.cast(fmt) if 0 in shape else raw.cast(fmt, list(shape))

    @property
    def _data(self) -> Any:
        """The elements themselves, writable, in this shape: a numpy array where numpy is, else a memoryview.

        For inputs of captured steps: `x._data[:] = ...` is seen by the next run. Only on devices whose memory
        is this process's (CPU, INTERP; DeviceError elsewhere). float16 and bfloat16 come as their bits,
        uint16.
        """
        shape = self._concrete_shape("_data")
        if is_constant(self.uop):
            self.uop = UOp(Ops.CONTIGUOUS, self.dtype, (self.uop,))
        base = self.realize().uop.base
        if base.op is not Ops.BUFFER:
            raise ArgumentError(
                "_data: expected a Tensor with memory of its own, got a lazy one: detach() it"
            )
        # what was computed from the old elements must not pass for something computed from the new ones
        buffer: Buffer = base.arg.alias()
        self.uop = UOp(Ops.BUFFER, self.dtype, (), buffer).reshape(shape)
        buffer.owner = weakref.ref(self)
        fmt: Any = self.dtype.fmt if self.dtype.itemsize != 2 or self.dtype.is_int else "H"
        view = buffer.view().cast(fmt)
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            return numpy.frombuffer(view, dtype=fmt).reshape(shape)
        return view if 0 in shape else view.cast("B").cast(fmt, list(shape))

    def item(self) -> Any:
        """The only element, as a Python number. Works without numpy.

        Raises ShapeError when there is not exactly one.
        """
        if prod(self._concrete_shape("item")) != 1:
            raise ShapeError(f"item: expected one element, got shape {self.shape}: use tolist()")
        return unpack(self._bytes("item"), self.dtype)[0]

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers; one number for shape (). Works without numpy."""
        shape = self._concrete_shape("tolist")
        return nest(unpack(self._bytes("tolist"), self.dtype), shape)

    def numpy(self) -> Any:
        """The elements as a numpy array, a copy; bfloat16 as float32. Needs numpy."""
        import numpy as np

        shape, x = self._concrete_shape("numpy"), self
        if x.dtype is dtypes.bfloat16:
            x = x._with(x.uop.cast(dtypes.float32))
        return np.frombuffer(x._bytes("numpy"), dtype=str(x.dtype)).reshape(shape)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        out = self.numpy()
        return out if dtype is None else out.astype(dtype)

    def __bool__(self) -> bool:
        if prod(self.shape) != 1:
            raise ShapeError(f"bool(): expected one element, got shape {self.shape}: use any() or all()")
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __index__(self) -> int:
        if not self.dtype.is_int:
            raise DTypeError(f"index: expected an integer tensor, got {self.dtype}")
        return int(self.item())

    def __repr__(self) -> str:
        grad = f", grad={self.grad.shape} {self.grad.dtype}" if self.grad is not None else ""
        return f"<Tensor {self.shape} {self.dtype} on {self.device}, {self.uop.op}{grad}>"

    # --- copies

    def contiguous(self) -> Self:
        """This value in a buffer of its own, without gaps, once computed."""
        return self._with(self.uop.contiguous())

    def contiguous_backward(self) -> Self:
        """self; kept for compatibility: gradients need no hint where to be stored."""
        return self

    def clone(self, device: str | None = None) -> Self:
        """A copy in memory of its own; the gradient flows through it."""
        out = self._with(UOp(Ops.CONTIGUOUS, self.dtype, (self.uop,)))
        return out if device is None else out.to(device)

    def detach(self) -> Self:
        """This value, cut from gradients; the memory is shared."""
        return self._detached()  # type: ignore[attr-defined,no-any-return]

    def to(self, device: str | None) -> Self:
        """This value on `device`; self when it is there.

        Raises DeviceError for one this host does not have.
        """
        if device is None:
            return self
        name = Device.canonical(device)
        if name == self._device or (self._device is None and name == Device.DEFAULT):
            return self
        Device.backend(name)
        out = self._with(self.uop.copy_to(name))
        out._device = name
        if self.grad is not None:
            out.grad = self.grad.to(device)
        return out

    def to_(self, device: str | None) -> Self:
        """Move this Tensor to `device`; self."""
        moved = self.to(device)
        if moved is not self:
            self.uop, self._device = moved.uop, moved._device
        if self.grad is not None:
            self.grad.to_(device)
        return self

    # --- writing

    def replace(self, x: Self) -> Self:
        """Become `x`, of the same shape and dtype; nothing is written. self."""
        self._check_source(x, "replace")
        self.uop, self._device = x.uop, x._device
        return self

    def assign(self, x: Any) -> Self:
        """Take the value of `x`, of this shape, dtype and device; in place when there is a buffer. self.

        The write happens when this Tensor is computed; lazy Tensors made before it still see the old value.
        Raises ShapeError, DTypeError, DeviceError.
        """
        if not isinstance(x, TensorBase):
            x = type(self)(x, device=self._device, dtype=self.dtype)  # type: ignore[call-arg]
            if x.shape == () and self.shape:
                x = x._with(x.uop.reshape((1,) * self.ndim).expand(self.shape))
        if x.uop is self.uop:
            return self
        self._check_source(x, "assign")
        if self._device is not None and x._device is not None and x._device != self._device:
            raise DeviceError(
                f"assign: expected a value on {self._device}, got one on {x._device}: use .to()"
            )
        self.uop = self.uop.assign(x.uop) if is_stored(self.uop) else x.uop
        self._device = self._device or x._device
        return self

    def _check_source(self, x: Self, what: str) -> None:
        if x.shape != self.shape:
            raise ShapeError(f"{what}: expected shape {self.shape}, got {x.shape}: use expand() or reshape()")
        if x.dtype is not self.dtype:
            raise DTypeError(f"{what}: expected dtype {self.dtype}, got {x.dtype}: use .cast()")
