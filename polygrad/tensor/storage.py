"""Tensors and memory: realize, reading back, writing, devices."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Self, cast

from polygrad.codegen.opts.opt import parse_opts
from polygrad.dtype import DType, dtypes
from polygrad.engine.devices import Device, placement_of
from polygrad.engine.listing import listing
from polygrad.engine.realize import data_of, data_of_async, preserve
from polygrad.engine.recording import watch
from polygrad.engine.sharding import axis_of
from polygrad.errors import ArgumentError, DeviceError, DTypeError, ShapeError
from polygrad.helpers import prod
from polygrad.monitor import HAS_THREADS, computing
from polygrad.runtime.buffer import Buffer
from polygrad.tensor.core.aliasing import (
    is_constant,
    is_contiguous,
    is_whole,
    memory_under,
    realize_tensors,
    rename,
    storage_of,
    write,
)
from polygrad.tensor.core.base import TensorBase, TensorLike
from polygrad.tensor.core.convert import nest, unpack
from polygrad.tensor.core.registry import changes
from polygrad.uop.args import Sharding
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


class StorageMixin(TensorBase):
    """Computing, reading and writing elements."""

    __slots__ = ()

    def realize(self, *others: Self) -> Self:
        """Compute this Tensor and `others` now, in one Program, and carry out writes to them; returns self.

        A view of stored memory stays a view of it. Raises DeviceError, OutOfMemoryError, CompileError.

        >>> Tensor([1, 2]).add(1).realize().tolist()
        [2, 3]
        """
        realize_tensors((self, *others))
        return self

    def code(self, machine: bool = False) -> str:
        """The code that computes this Tensor, as text: Programs with their buffers and launches, and for each
        kernel its Opts, its work and its source (LLVM IR, C, WebAssembly, WGSL, CUDA, Metal, Python).

        `machine`: include the assembly of the processor (CPU, CC) or PTX (CUDA). Nothing is computed or
        changed. Raises DeviceError, CompileError.

        >>> text = (Tensor([1.0, 2.0], device="INTERP") + 1).code()
        >>> print(text.splitlines()[2])
        Program 1 of 1 on INTERP: 1 kernel, 1 launch
        """
        return listing([self.uop], self._device, machine)

    # --- reading

    def _concrete_shape(self, what: str) -> tuple[int, ...]:
        for s in self.shape:
            if not isinstance(s, int):
                raise ShapeError(
                    f"{what}: expected a shape of ints, got {self.shape}: cut symbolic axes to ints, as in "
                    "t[:, :3] for a size bound to 3"
                )
        return self.shape

    @computing  # as a whole: no other thread may write between the computation and the read
    def _bytes(self, what: str) -> memoryview:
        self._concrete_shape(what)
        if 0 in self.shape:
            return memoryview(bytearray())
        self.realize()
        return data_of(*self._readable())

    def _readable(self) -> tuple[UOp, str | None]:
        """A node that is on one device, and the name of that device."""
        if isinstance(self._device, tuple):
            return self.uop.copy_to(self._device[0]), self._device[0]
        return self.uop, self._device

    def data(self) -> memoryview:
        """The elements as a memoryview of this shape and dtype, a copy. Works without numpy.

        float16 and bfloat16 come as their bits, format 'H', and 8-bit floats as their bits, format 'B':
        memoryviews have no formats for them.


        >>> Tensor([1, 2, 3]).data().tolist()
        [1, 2, 3]
        """
        return self._with_shape(self._bytes("data"))

    async def data_async(self) -> memoryview:
        """`data()`, to be awaited. With asyncio under CPython, other tasks run while a thread computes and
        reads the elements; in a page, code that JavaScript calls synchronously cannot wait for a GPU
        otherwise.

        The elements are those at the call. Raises DeviceError, OutOfMemoryError, CompileError; CaptureError
        inside a captured function.

        >>> import asyncio
        >>> asyncio.run(Tensor([1, 2]).data_async()).tolist()
        [1, 2]
        """
        if 0 in self._concrete_shape("data_async"):
            return self.data()
        asyncio = sys.modules.get("asyncio")  # where it is not loaded, it runs no loop
        if HAS_THREADS and watch.recording is None and asyncio and asyncio._get_running_loop():
            elements = self.detach().clone()  # lazy: writes from now on leave it as it is
            return cast(memoryview, await asyncio.to_thread(elements.data))
        return self._with_shape(await self._bytes_async())

    @computing
    def _bytes_async(self) -> Awaitable[memoryview]:
        self.realize()
        return data_of_async(*self._readable())

    def _with_shape(self, raw: memoryview) -> memoryview:
        """The bytes of the elements as a memoryview of this shape and dtype."""
        fmt: Any = _format(self.dtype)
        return raw.cast(fmt) if 0 in self.shape else raw.cast(fmt, [int(n) for n in self.shape])

    @property
    @computing
    def _data(self) -> Any:
        """The memory of the elements, writable, in this shape: a numpy array if numpy is installed, else a
        memoryview.

        Meant for inputs of captured steps: the next run sees `x._data[:] = ...`. Only for devices that use
        this process's memory (CPU, INTERP; else DeviceError). float16 and bfloat16 are their bits, uint16.
        """
        shape = self._concrete_shape("_data")
        memory = memory_under(self.realize().uop)
        if memory is None or memory.op is not Ops.BUFFER or not is_whole(self):
            actual = "a view: clone() it" if memory is not None else "a lazy one: detach() it"
            raise ArgumentError(f"_data: expected a Tensor with memory of its own, got {actual}")
        buffer: Buffer = memory.arg
        preserve({buffer.allocation})
        rename(storage_of(self), contents_change=True)
        fmt: Any = _format(self.dtype)
        view = buffer.view().cast(fmt)
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            return numpy.frombuffer(view, dtype=fmt).reshape(shape)
        return view if 0 in shape else view.cast("B").cast(fmt, list(shape))

    def item(self) -> Any:
        """The only element, as a Python number. Works without numpy.

        Raises ShapeError when there is not exactly one.

        >>> Tensor([3]).item()
        3
        """
        if prod(self._concrete_shape("item")) != 1:
            raise ShapeError(f"item: expected one element, got shape {self.shape}: use tolist()")
        return unpack(self._bytes("item"), self.dtype)[0]

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers; one number for shape (). Works without numpy.

        >>> Tensor([[1, 2], [3, 4]]).tolist()
        [[1, 2], [3, 4]]
        """
        shape = self._concrete_shape("tolist")
        return nest(unpack(self._bytes("tolist"), self.dtype), shape)

    def numpy(self) -> Any:
        """The elements as a numpy array, a copy; bfloat16 and floats of 8 bits as float32. Needs numpy.

        >>> Tensor([1, 2]).numpy().sum().item()
        3
        """
        import numpy as np

        shape, x = self._concrete_shape("numpy"), self
        if x.dtype.fmt is None:
            x = x._with(x.uop.cast(dtypes.float32))
        return np.frombuffer(x._bytes("numpy"), dtype=str(x.dtype)).reshape(shape)

    # --- copies

    def contiguous(self, opts: str | None = None) -> Self:
        """These elements, stored in order and without gaps when they are computed: a view if they are
        contiguous already, else a copy.

        `opts` always makes a copy, and determines how its kernel is optimised, instead of the compiler's
        choice: `"SIMD r1 16 4, UPCAST r0 6"`. The kinds are in `polygrad/codegen/opts/opt.py`; DEBUG=3 prints
        the chosen Opts. Devices that do not optimise ignore them. Raises ArgumentError if the text is not a
        list of Opts; OptError, when the kernel is made, for an Opt that does not apply to it.

        >>> Tensor([[1, 2], [3, 4]]).T.contiguous().tolist()
        [[1, 3], [2, 4]]
        """
        if opts is not None and not isinstance(opts, str):
            raise ArgumentError(f"contiguous: expected opts as text or None, got {opts!r}")
        parsed_opts = None if opts is None else parse_opts(opts)
        if parsed_opts is not None or not is_contiguous(self):
            return self._with(UOp(Ops.CONTIGUOUS, self.dtype, (self.uop,), parsed_opts))
        is_stored = memory_under(self.uop) is not None
        return self._view_of(self.uop if is_stored else self.uop.contiguous())

    def contiguous_backward(self) -> Self:
        """self. It exists for compatibility: gradients need no hint where they are stored.

        >>> Tensor([1, 2]).contiguous_backward().tolist()
        [1, 2]
        """
        return self

    def clone(self, device: str | None = None) -> Self:
        """A copy in memory of its own; the gradient flows through it.

        >>> Tensor([1, 2]).clone().tolist()
        [1, 2]
        """
        out = self._with(self.uop.clone())
        return out if device is None else out.to(device)

    def detach(self) -> Self:
        """This value, cut from gradients: a view.

        >>> Tensor([1.0, 2.0]).detach().tolist()
        [1.0, 2.0]
        """
        return self._detached()  # type: ignore[attr-defined,no-any-return]

    def to(self, device: str | tuple[str, ...] | None) -> Self:
        """This value on `device`, or a copy on each of several; self if it is there already.

        Raises DeviceError for one this host does not have.

        >>> Tensor([1, 2]).to("INTERP").device
        'INTERP'
        """
        if device is None:
            return self
        name = placement_of(device)
        if isinstance(name, tuple):
            return self.shard(name)
        if name == self._device or (self._device is None and name == Device.DEFAULT):
            return self
        Device.backend(name)
        out = self._with(self.uop if is_constant(self.uop) else self.uop.copy_to(name))
        out._device = name
        if self.grad is not None:
            out.grad = self.grad.to(device)
        return out

    def shard(self, devices: Sequence[str], axis: int | None = None) -> Self:
        """This value on several devices of one kind. Each has an equal part of `axis`, in order; None: each
        has a full copy.

        It stays one value, and operations have the same results as on one device. Elementwise operations,
        movements and reductions along other axes work on the parts; a sum along `axis` adds the parts' sums
        in the order of the devices. Operations that would move elements between devices raise DeviceError
        when they are computed: gather with `to`, or `shard` along another axis. Raises DeviceError for an
        axis that the number of devices does not divide.

        >>> t = Tensor([[1, 2], [3, 4]], device="INTERP").shard(("INTERP", "INTERP:1"), axis=0)
        >>> t.device, (t * 10).sum(0).tolist()
        (('INTERP', 'INTERP:1'), [40, 60])
        """
        name = placement_of(devices)
        if not isinstance(name, tuple):
            return self.to(name)
        for device in name:
            Device[device]
        sharding = Sharding(name, None if axis is None else self._axis(axis))
        if sharding.axis is not None:
            size = self.shape[sharding.axis]
            if not isinstance(size, int) or size % len(name):
                raise DeviceError(
                    f"shard: expected an axis whose size {len(name)} devices divide, got axis {axis} of "
                    f"shape {self.shape}: pad it, or shard along another axis"
                )
        out = self._with(self.uop.copy_to(sharding))
        out._device = name
        if self.grad is not None:
            out.grad = self.grad.shard(devices, axis)
        return out

    def shard_like(self, other: Self) -> Self:
        """This value on the devices of `other`, which has the same number of axes, and sharded like it.

        >>> t = Tensor([1, 2], device="INTERP").shard(("INTERP", "INTERP:1"), axis=0)
        >>> Tensor([3, 4]).shard_like(t).device
        ('INTERP', 'INTERP:1')
        """
        if isinstance(other._device, tuple):
            return self.shard(other._device, axis_of(other.uop))
        return self.to(other.device)

    def shard_(self, devices: Sequence[str], axis: int | None = None) -> Self:
        """Become `shard(devices, axis)` of this Tensor; returns self. Views of it stay where they are.

        >>> Tensor([1, 2], device="INTERP").shard_(("INTERP", "INTERP:1"), axis=0).tolist()
        [1, 2]
        """
        return self._move_in_place(self.shard(devices, axis), lambda grad: grad.shard_(devices, axis))

    def _move_in_place(self, destination: Self, move_gradient: Callable[[Self], Self]) -> Self:
        """Become `destination`, and move the gradient; returns self."""
        if destination is not self:
            self._become(destination)
        if self.grad is not None:
            move_gradient(self.grad)
        return self

    def to_(self, device: str | tuple[str, ...] | None) -> Self:
        """Move this Tensor to `device`; returns self. Views of it stay where they are.

        >>> Tensor([1, 2]).to_("INTERP").device
        'INTERP'
        """
        return self._move_in_place(self.to(device), lambda grad: grad.to_(device))

    # --- writing

    def replace(self, x: Self) -> Self:
        """Become `x`, of the same shape and dtype, and share its memory; nothing is written. Returns self.

        >>> t = Tensor([0, 0])
        >>> t.replace(Tensor([1, 2])).tolist()
        [1, 2]
        """
        self._check_source(x, "replace")
        self._become(x)
        return self

    def _become(self, x: Self) -> None:
        storage = storage_of(x)
        self._device = x._device
        self._set_uop(x.uop)
        storage.add(self)
        changes.count += 1

    @computing
    def assign(self, x: TensorLike) -> Self:
        """Write the value of `x`, of this shape, dtype and device, to these elements; returns self.

        All views of the same memory see the write. Stored memory is written in place, when it is next
        computed; values computed from it earlier do not change. Raises ShapeError, DTypeError, DeviceError,
        and ArgumentError for a view that shows an element twice (an expanded one).

        >>> t = Tensor.zeros(3)
        >>> t.assign(Tensor([1.0, 2.0, 3.0])).tolist()
        [1.0, 2.0, 3.0]
        """
        if isinstance(x, TensorBase):
            x = cast(Self, x)
        else:
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
        write(self, x.uop, x)
        return self

    def _check_source(self, x: Self, what: str) -> None:
        if x.shape != self.shape:
            raise ShapeError(f"{what}: expected shape {self.shape}, got {x.shape}: use expand() or reshape()")
        if x.dtype is not self.dtype:
            raise DTypeError(f"{what}: expected dtype {self.dtype}, got {x.dtype}: use .cast()")


def _format(dtype: DType) -> str | None:
    """The format of `data`; for 8-bit and 16-bit floats, that of their bits."""
    return dtype.fmt if not dtype.is_float or dtype.itemsize > 2 else "BH"[dtype.itemsize - 1]
