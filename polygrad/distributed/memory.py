"""Collectives on memory.

Memory of the host is communicated where it lies, that of other devices through a copy on the host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from polygrad.distributed.group import group
from polygrad.engine.recording import watch
from polygrad.errors import DeviceError
from polygrad.runtime.buffer import Buffer

Call = Callable[..., None]  # of arrays of bytes, one for each buffer, which it may write to


def exchange(label: str, buffers: Sequence[Buffer], call: Call) -> None:
    """Make the collective `call` on `buffers`. Raises CaptureError inside a captured function."""
    watch.forbid("a collective", "make it between steps")
    _start(label, call, buffers)()


def _start(label: str, call: Call, buffers: Sequence[Buffer]) -> Callable[[], None]:
    """Begin a collective; what waits for its end. Memory is touched in this thread alone."""
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
