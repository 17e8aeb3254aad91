"""DLPack capsules: exchange memory of this process with other libraries, without a copy.

The structures are those of DLPack 1.1 (dlpack.h); Python's array API protocol passes them as capsules.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

from polygrad.dtype import DType, dtypes
from polygrad.errors import ArgumentError, DTypeError

CPU = 1  # kDLCPU
_NAME, _USED = b"dltensor", b"used_dltensor"
_VERSIONED, _VERSIONED_USED = b"dltensor_versioned", b"used_dltensor_versioned"
_VERSION = (1, 1)
_READ_ONLY = 1
_PAGE = 4096
_AROUND = 64  # bytes before and behind memory that kernels may read

# (code, bits) of each dtype: signed and unsigned integers, floats, bfloat16, bool
_CODES: dict[DType, tuple[int, int]] = {
    **{d: (0, d.itemsize * 8) for d in (dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64)},
    **{d: (1, d.itemsize * 8) for d in (dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64)},
    **{d: (2, d.itemsize * 8) for d in (dtypes.float16, dtypes.float32, dtypes.float64)},
    dtypes.bfloat16: (4, 16),
    dtypes.bool: (6, 8),
}
_DTYPES = {code: dtype for dtype, code in _CODES.items()}


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class _ManagedVersioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", _Tensor),
    ]  # fmt: skip


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_Destructor = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def _api(name: str, result: Any, *arguments: Any) -> Any:
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


_new = _api("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_pointer = _api("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
_is_valid = _api("PyCapsule_IsValid", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
# for a capsule that is being destroyed: as a py_object its reference count would rise again
_pointer_of_dying = _api("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)
_is_valid_dying = _api("PyCapsule_IsValid", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)
_set_name = _api("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)

_exported: dict[
    int, tuple[Any, ...]
] = {}  # the objects that capsules keep alive, by their structure's address


def _release(address: int) -> None:
    _exported.pop(address, None)


def _drop(capsule: int) -> None:
    """Release the memory of a capsule that no library has consumed."""
    for name in (_NAME, _VERSIONED):
        if _is_valid_dying(capsule, name):
            _release(_pointer_of_dying(capsule, name))


_deleter, _destructor = _Deleter(_release), _Destructor(_drop)


def export(view: memoryview, shape: tuple[int, ...], dtype: DType, is_versioned: bool) -> Any:
    """A capsule of the memory of `view`, elements in order and without gaps. Raises DTypeError."""
    address = ctypes.addressof(ctypes.c_char.from_buffer(view)) if view.nbytes else 0
    code = _CODES.get(dtype)
    if code is None:
        raise DTypeError(
            f"__dlpack__: expected a dtype that DLPack has, got {dtype}: use .cast() or .bitcast()"
        )
    sizes = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    steps = (ctypes.c_int64 * max(len(shape), 1))()
    step = 1
    for i in reversed(range(len(shape))):
        steps[i], step = step, step * max(shape[i], 1)
    pointer = ctypes.POINTER(ctypes.c_int64)
    tensor = _Tensor(
        address, CPU, 0, len(shape), *code, 1, ctypes.cast(sizes, pointer), ctypes.cast(steps, pointer), 0
    )
    free = ctypes.cast(_deleter, ctypes.c_void_p)
    managed: Any = (
        _ManagedVersioned(*_VERSION, 0, free, 0, tensor) if is_versioned else _Managed(tensor, 0, free)
    )
    place = ctypes.addressof(managed)
    _exported[place] = (managed, sizes, steps, view)
    name = _VERSIONED if is_versioned else _NAME
    return _new(place, name, ctypes.cast(_destructor, ctypes.c_void_p))


@dataclass(frozen=True, slots=True)
class Imported:
    """Memory that another library owns. `owner` releases it when it is destroyed."""

    address: int
    shape: tuple[int, ...]
    dtype: DType
    strides: tuple[int, ...]  # in elements
    is_read_only: bool
    owner: Any

    @property
    def is_dense(self) -> bool:
        """Whether elements are in order and without gaps."""
        step = 1
        for n, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if n != 1 and stride != step:
                return False
            step *= n
        return True

    @property
    def nbytes(self) -> int:
        """How many bytes the elements take."""
        count = self.dtype.itemsize
        for n in self.shape:
            count *= n
        return count

    def read(self, start: int, count: int) -> bytes:
        """A copy of `count` elements of the memory, from element `start` on."""
        size = self.dtype.itemsize
        return bytes((ctypes.c_char * (count * size)).from_address(self.address + start * size))

    def may_be_shared(self) -> bool:
        """Whether kernels may use the memory in place: in order, aligned, and the bytes around it that they
        read lie on the same pages."""
        start, end = self.address, self.address + self.nbytes
        is_around = start % _PAGE >= _AROUND and (end - 1) // _PAGE == (end + _AROUND - 1) // _PAGE
        return self.is_dense and not self.is_read_only and not start % self.dtype.itemsize and is_around


class _Owner:
    """Owns a structure of another library, and calls its deleter on destruction."""

    def __init__(self, place: int, deleter: int | None) -> None:
        self._place, self._delete = place, _Deleter(deleter) if deleter else None

    def __del__(self) -> None:
        if self._delete is not None:
            self._delete(self._place)


def take(capsule: Any) -> Imported:
    """Consume a capsule: its memory now belongs to the result. Raises ArgumentError, DTypeError."""
    kind: Any
    if _is_valid(capsule, _VERSIONED):
        name, used_name, kind = _VERSIONED, _VERSIONED_USED, _ManagedVersioned
    elif _is_valid(capsule, _NAME):
        name, used_name, kind = _NAME, _USED, _Managed
    else:
        raise ArgumentError("from_dlpack: the DLPack capsule was taken before, or is not one")
    place = _pointer(capsule, name)
    managed = kind.from_address(place)
    tensor = managed.tensor
    dtype = _DTYPES.get((tensor.code, tensor.bits))
    if dtype is None or tensor.lanes != 1:
        raise DTypeError(
            f"from_dlpack: expected a known dtype, got code {tensor.code} of {tensor.bits} bits and "
            f"{tensor.lanes} lanes"
        )
    if tensor.device_type != CPU:
        raise ArgumentError(f"from_dlpack: expected memory of the host, got device type {tensor.device_type}")
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides, step = [0] * tensor.ndim, 1
    for i in reversed(range(tensor.ndim)):
        strides[i] = tensor.strides[i] if tensor.strides else step
        step *= shape[i]
    _set_name(capsule, used_name)
    is_read_only = kind is _ManagedVersioned and bool(managed.flags & _READ_ONLY)
    address = (tensor.data or 0) + tensor.byte_offset
    owner = _Owner(place, managed.deleter)
    return Imported(address, shape, dtype, tuple(strides), is_read_only, owner)
