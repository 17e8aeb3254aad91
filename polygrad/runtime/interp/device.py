"""Device INTERP: pure Python, slow and simple. It is the reference for the other devices.

An allocation is a bytearray, filled with ones (NaN, as floats) so that reads of uninitialised memory are
noticed. A kernel is Python source (`interp/python.py`).
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Mapping, Sequence
from typing import Any

from polygrad.dtype import DType, dtypes
from polygrad.errors import OutOfMemoryError, ProgramError
from polygrad.runtime.interface import Executable, Handle, Runtime
from polygrad.runtime.interp.python import load_kernel
from polygrad.runtime.program import Program


def _format(dtype: DType) -> Any:
    """The memoryview format of a dtype; 8-bit and 16-bit floats are read and written as their bits."""
    if dtype.itemsize == 1 and dtype.is_float:
        return "B"
    return "H" if dtype.fmt is None or dtype is dtypes.float16 else dtype.fmt


class InterpRuntime(Runtime):
    """Runs kernels one element at a time."""

    name, concurrent = "INTERP", True

    def allocate(self, nbytes: int) -> Handle:
        try:
            return bytearray(b"\xff") * nbytes
        except (MemoryError, OverflowError) as e:
            raise OutOfMemoryError(
                f"device INTERP: no room for an allocation of {nbytes} bytes: "
                "free tensors, or use smaller ones"
            ) from e

    def free(self, handle: Handle) -> None:
        """Nothing: the last reference frees the bytearray."""

    def write(self, handle: Handle, offset: int, data: memoryview) -> None:
        memoryview(handle)[offset : offset + len(data)] = data

    def read(self, handle: Handle, offset: int, nbytes: int) -> memoryview:
        return memoryview(bytearray(memoryview(handle)[offset : offset + nbytes]))

    def view(self, handle: Handle, offset: int, nbytes: int, owner: object) -> memoryview:
        return memoryview(handle)[offset : offset + nbytes]

    def map_file(self, descriptor: int, nbytes: int) -> tuple[Handle, object]:
        return mmap.mmap(descriptor, nbytes, access=mmap.ACCESS_COPY), None

    def at_address(self, address: int, nbytes: int) -> Handle:
        return memoryview((ctypes.c_char * nbytes).from_address(address)).cast("B")

    def load(self, program: Program) -> Executable:
        program.require(self.name, "linear")
        return _InterpExecutable(program)


class _InterpExecutable(Executable):
    in_python = True

    def __init__(self, program: Program) -> None:
        self.program = program
        self.kernels = [load_kernel(k.code) for k in program.kernels]

    def run(
        self, buffers: Sequence[Handle | None], arena: Handle | None, variables: Mapping[str, int]
    ) -> None:
        program = self.program
        for launch in program.launches:
            function, kernel = self.kernels[launch.kernel]
            bindings = dict(zip(sorted(p.slot for p in kernel.pointers), launch.bindings, strict=True))
            views = []
            for p in kernel.pointers:
                binding = bindings[p.slot]
                memory, start = buffers[binding.buffer], binding.offset
                if memory is None:
                    memory, start = arena, start + program.buffers[binding.buffer].offset
                end = start + p.size * p.dtype.itemsize
                if memory is None or len(memory) < end:
                    raise ProgramError(
                        f"INTERP: {program.kernels[launch.kernel].name} expected pointer {p.slot} to "
                        f"end at byte {end}, got an allocation of {len(memory or b'')} bytes"
                    )
                views.append(memoryview(memory)[start:end].cast(_format(p.dtype)))
            function(*views, *(variables[name] for name in kernel.variables))
