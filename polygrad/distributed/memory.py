"""Collectives on memory, in captured functions too.

Memory of the host is communicated where it lies, that of other devices through a copy on the host.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from polygrad.distributed.group import group
from polygrad.engine.devices import Device
from polygrad.engine.recording import Exchange, watch
from polygrad.errors import ArgumentError, DeviceError
from polygrad.helpers import prod
from polygrad.runtime.buffer import Buffer
from polygrad.tensor.core.aliasing import memory_under
from polygrad.tensor.tensor import Tensor
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

Call = Callable[..., None]  # of arrays of bytes, one for each buffer, which it may write to


def exchange(label: str, buffers: Sequence[Buffer], call: Call) -> None:
    """Make the collective `call` on `buffers`: now or, inside a captured function, in each replay."""
    step = Exchange(label, tuple(buffers), functools.partial(_start, label, call))
    if watch.recording is None:
        step.perform()
    else:
        watch.recording.runs.append(step)


def _start(label: str, call: Call, buffers: Sequence[Buffer]) -> Callable[[], None]:
    """Begin a collective; what waits for its end. Only this thread touches memory of devices."""
    import numpy as np

    ranks = group()
    arrays, staged = [], []
    for buffer in buffers:
        try:
            data = buffer.view()
        except DeviceError:
            data = buffer.read()
            staged.append((buffer, data))
        arrays.append(np.frombuffer(data, np.uint8))
    work = ranks.start(label, lambda: call(*arrays))

    def finish() -> None:
        ranks.wait(work)
        for buffer, data in staged:
            buffer.write(data)

    return finish


def memory_like(x: Tensor, length: int) -> Tensor:
    """A Tensor over new memory, as `x` with another length of axis 0."""
    shape = (length, *x.shape[1:])
    buffer = Buffer(Device[x.device], prod(shape), x.dtype)
    return Tensor(UOp.buffer_of(buffer, x.dtype), requires_grad=False).reshape(shape)


def buffer_of(x: Tensor) -> Buffer:
    """The memory of a computed Tensor. Raises ArgumentError."""
    memory = memory_under(x.uop)
    if memory is None or memory.op is not Ops.BUFFER:
        raise ArgumentError(
            "collective: expected a Tensor in memory, got a lazy value: use realize() or detach()"
        )
    buffer: Buffer = memory.arg
    return buffer


def label_of(name: str, x: Tensor) -> str:
    """The name of a collective on `x`, for people, and to compare ranks."""
    return f"{name} of {x.numel()} {x.dtype}"
