"""`torch.from_dlpack(t)`, `np.from_dlpack(t)` and back: the same memory in two libraries."""

from __future__ import annotations

import importlib
from typing import Any, Self

from polygrad.engine.realize import preserve
from polygrad.errors import ArgumentError
from polygrad.tensor.core.aliasing import is_whole, memory_under, rename, storage_of
from polygrad.tensor.core.sources import buffer_at
from polygrad.tensor.protocols import ProtocolsMixin
from polygrad.uop.ops import Ops

_SHARED = ("CPU", "CC")  # devices that use this process's memory and do not move it
_HOST = (1, 0)  # DLPack's type and id of the CPU


def _capsules() -> Any:
    """The module that makes and consumes capsules. It is imported late, because it loads ctypes."""
    return importlib.import_module("polygrad.tensor.core.dlpack_capsule")


class DLPackMixin(ProtocolsMixin):
    """The array API's exchange of memory."""

    __slots__ = ()

    def __dlpack_device__(self) -> tuple[int, int]:
        return _HOST

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A capsule of the elements, for another library's `from_dlpack`. On CPU and CC, a Tensor that has
        memory of its own shares it, so each library sees the other's writes; else it is a copy on CPU.

        Raises BufferError where a gradient is required, and where a copy would be needed and `copy` is False.
        """
        if self.requires_grad:
            raise BufferError("__dlpack__: expected a Tensor without gradients: use detach()")
        if dl_device is not None and tuple(dl_device) != _HOST:
            raise BufferError(f"__dlpack__: expected memory of the host, got a wish for device {dl_device}")
        shape = self._concrete_shape("__dlpack__")
        is_versioned = max_version is not None and max_version[0] >= 1
        if 0 in shape:
            return _capsules().export(memoryview(bytearray()), shape, self.dtype, is_versioned)
        source: Any = self
        memory = memory_under(self.realize().uop) if self._device in _SHARED else None
        is_own = memory is not None and memory.op is Ops.BUFFER and is_whole(self)
        if copy or not is_own:
            if copy is False:
                raise BufferError("__dlpack__: the Tensor has no memory of its own on CPU")
            source = self._detached().to("CPU").contiguous().clone().realize()
            memory = memory_under(source.uop)
        assert memory is not None
        buffer = memory.arg
        preserve({buffer.allocation})
        rename(storage_of(source), contents_change=True)
        return _capsules().export(buffer.view(), shape, self.dtype, is_versioned)

    @classmethod
    def from_dlpack(cls, x: Any, copy: bool | None = None) -> Self:
        """The array or tensor `x` of another library, on CPU. Its memory is shared where kernels may use it
        in place (in order, writable, and 64 bytes around it on the same pages, as most of torch's), else
        copied. `copy`: True, always copy; False, raise BufferError where a copy would be needed.

        Raises ArgumentError for what has no `__dlpack__` or lies on another device, DTypeError.

        >>> Tensor.from_dlpack(Tensor([1.0, 2.0])).tolist()
        [1.0, 2.0]
        """
        ask = getattr(x, "__dlpack__", None)
        if ask is None:
            raise ArgumentError(f"from_dlpack: expected an object with __dlpack__, got a {type(x).__name__}")
        try:
            capsule = ask(max_version=(1, 1))
        except TypeError:  # a producer from before DLPack had versions
            capsule = ask()
        imported = _capsules().take(capsule)
        if not copy and imported.nbytes and imported.may_be_shared():
            memory = buffer_at(
                imported.address,
                imported.nbytes // imported.dtype.itemsize,
                "CPU",
                imported.dtype,
                imported.owner,
            )
            out = cls._of(memory.reshape(imported.shape), "CPU")
            storage_of(out)
            return out
        if copy is False:
            raise BufferError(
                "from_dlpack: the memory has to be copied: expected it writable, in order, and with 64 bytes "
                "around it on the same pages"
            )
        return cls._copy(imported)

    @classmethod
    def _copy(cls, imported: Any) -> Self:
        """A Tensor with the elements of what was imported."""
        steps = list(zip(imported.shape, imported.strides, strict=True))
        if not imported.nbytes:
            return cls(b"", dtype=imported.dtype).reshape(imported.shape)  # type: ignore[call-arg]
        low = sum(min(0, (n - 1) * step) for n, step in steps)
        count = sum(max(0, (n - 1) * step) for n, step in steps) - low + 1
        flat: Any = cls(imported.read(low, count), dtype=imported.dtype)  # type: ignore[call-arg]
        if imported.is_dense:
            return flat.reshape(imported.shape)  # type: ignore[no-any-return]
        place: Any = -low
        for axis, (n, step) in enumerate(steps):
            shape = [n if i == axis else 1 for i in range(len(steps))]
            place = place + type(flat).arange(n).reshape(shape) * step
        return flat[place]  # type: ignore[no-any-return]
