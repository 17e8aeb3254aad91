"""Bytes from other sources: files mapped into memory, and memory of other libraries.

Knows memory and paths, no Tensors.
"""

from __future__ import annotations

import os
import pathlib
from typing import Any

from polygrad.dtype import DType
from polygrad.engine.devices import Device
from polygrad.errors import ArgumentError, DeviceError
from polygrad.runtime.buffer import Buffer, Foreign
from polygrad.uop.node import UOp


def path_of(data: Any) -> pathlib.Path | None:
    """The path that `data` names: a pathlib.Path, or text that begins with `file:`; else None."""
    if isinstance(data, pathlib.PurePath):
        return pathlib.Path(data)
    if isinstance(data, str) and data.startswith("file:"):
        return pathlib.Path(data.removeprefix("file:").removeprefix("//"))
    return None


def map_to_memory(path: pathlib.Path, device: str) -> memoryview:
    """The bytes of a file, mapped into the memory that `device` uses: pages are read when they are first
    used, and writes to them stay in this process. 64 bytes before and after them are readable.

    Raises DeviceError where the device's memory is not this process's, and OSError.
    """
    runtime = Device[device]
    with open(path, "rb") as file:
        nbytes = os.fstat(file.fileno()).st_size
        if not nbytes:
            return memoryview(bytearray())
        handle, owner = runtime.map_file(file.fileno(), nbytes)
    return runtime.view(handle, 0, nbytes, owner)


def buffer_of_file(path: pathlib.Path, device: str, dtype: DType) -> UOp | None:
    """A 1-D BUFFER with a file's bytes as elements of `dtype`; None for a file without any.

    On devices that use this process's memory the file is mapped: pages are read when they are first used, and
    writes to them stay in this process. Raises ArgumentError if the size is not a multiple of an element's,
    and OSError.
    """
    with open(path, "rb") as file:
        nbytes = os.fstat(file.fileno()).st_size
        if nbytes % dtype.itemsize:
            raise ArgumentError(
                f"{path}: expected a multiple of {dtype.itemsize} bytes for {dtype}, got {nbytes}"
            )
        if not nbytes:
            return None
        runtime = Device[device]
        try:
            handle, owner = runtime.map_file(file.fileno(), nbytes)
        except DeviceError:  # the device has separate memory, which gets a copy
            buffer = Buffer(runtime, nbytes // dtype.itemsize, dtype)
            buffer.write(memoryview(file.read()))
        else:
            buffer = Buffer(runtime, nbytes // dtype.itemsize, dtype, Foreign(runtime, nbytes, handle, owner))
    return UOp.buffer_of(buffer, dtype)


def buffer_at(address: int, count: int, device: str, dtype: DType, owner: Any) -> UOp:
    """A 1-D BUFFER over existing memory. Raises DeviceError, ArgumentError."""
    if not isinstance(address, int) or address <= 0 or address % dtype.itemsize:
        raise ArgumentError(
            f"from_blob: expected an address that is a multiple of {dtype.itemsize} for {dtype}, "
            f"got {address!r}"
        )
    runtime = Device[device]
    nbytes = count * dtype.itemsize
    allocation = Foreign(runtime, nbytes, runtime.at_address(address, nbytes), owner)
    return UOp.buffer_of(Buffer(runtime, count, dtype, allocation), dtype)
