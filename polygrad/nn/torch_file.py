"""Files of `torch.save` as plain data, in the zip format (torch 1.6 and later) and the older one. No code in
them is executed.

A tensor is a `Strided`: a storage, and the positions of its elements in it. Knows no Tensors, and does not
need torch: `pickles` reads the objects, with a table of the few functions that pickled tensors call.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from polygrad.dtype import DType, dtypes
from polygrad.errors import ArgumentError
from polygrad.helpers import prod
from polygrad.nn.archives import read_zip
from polygrad.nn.pickles import Pickle

_WHAT = "torch_load"
_MAGIC, _PROTOCOL = 0x1950A86A20F9469CFC6C, 1001
_MAX_ELEMENTS = 1 << 40  # of a tensor; an expanded one has more elements than its memory


@dataclass(frozen=True, slots=True)
class _Kind:
    """A class of storages. `dtype`: None for untyped storages, which hold bytes."""

    dtype: DType | None


@dataclass(frozen=True, slots=True)
class TorchStorage:
    """Memory that tensors share: its name in the file, and its elements (bytes, if it is untyped)."""

    key: str
    dtype: DType | None
    count: int
    offset: int = 0  # in elements, if it is a view of another


@dataclass(frozen=True, slots=True)
class Strided:
    """A tensor: elements of `dtype` of a storage, from `offset` on, with `strides` in elements."""

    storage: TorchStorage
    dtype: DType
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TorchFile:
    """The contents of a file: an object with `Strided` in the place of tensors, and the bytes of each
    storage."""

    data: Any
    storages: Mapping[str, bytes | memoryview]


_STORAGES = {
    "Float": dtypes.float32, "Double": dtypes.float64, "Half": dtypes.float16, "BFloat16": dtypes.bfloat16,
    "Bool": dtypes.bool, "Char": dtypes.int8, "Byte": dtypes.uint8, "Short": dtypes.int16,
    "Int": dtypes.int32, "Long": dtypes.int64,
}  # fmt: skip


def read_torch(raw: bytes | memoryview) -> TorchFile:
    """Read a file of `torch.save`. Raises ArgumentError for damaged files, and for objects that are not
    data."""
    data = memoryview(raw).cast("B")
    if bytes(data[:4]) == b"PK\3\4":
        return _read_zip_format(data)
    if bytes(data[:1]) == b"\x80":
        return _read_legacy_format(data)
    raise ArgumentError(f"{_WHAT}: torch.save writes no file that begins with {bytes(data[:4])!r}")


def _read_zip_format(data: memoryview) -> TorchFile:
    files = read_zip(data, _WHAT)
    folders = [name[: -len("data.pkl")] for name in files if name.rpartition("/")[2] == "data.pkl"]
    if len(folders) != 1:
        raise ArgumentError(f"{_WHAT}: the zip file has {len(folders)} data.pkl instead of one")
    folder = folders[0]
    order = bytes(files.get(folder + "byteorder", b"little")).strip()
    if order not in (b"little", b"big"):
        raise ArgumentError(f"{_WHAT}: the byte order is {order[:20]!r} instead of little or big")
    storage_by_key: dict[str, TorchStorage] = {}
    loaded = Pickle(
        files[folder + "data.pkl"], _globals(), lambda pid: _storage(pid, storage_by_key), _WHAT
    ).load()
    storages: dict[str, bytes | memoryview] = {}
    for key, storage in storage_by_key.items():
        contents = files.get(f"{folder}data/{key}")
        size = storage.count * _itemsize(storage)
        if contents is None or len(contents) != size:
            problem = "is missing" if contents is None else f"has {len(contents)} bytes instead of {size}"
            raise ArgumentError(f"{_WHAT}: data/{key} {problem}")
        if order == b"big" and storage.dtype is None:
            raise ArgumentError(f"{_WHAT}: data/{key} of byte order big has no dtype")
        storages[key] = contents if order == b"little" else _swap_bytes(contents, _itemsize(storage))
    return TorchFile(loaded, storages)


def _read_legacy_format(data: memoryview) -> TorchFile:
    """Five pickles (a magic number, protocol, machine, the object, the storages' keys), then their bytes."""
    storage_by_key: dict[str, TorchStorage] = {}
    parts, at = [], 0
    for _ in range(5):
        pickle = Pickle(data, _globals(), lambda pid: _storage(pid, storage_by_key), _WHAT, at)
        parts.append(pickle.load())
        at = pickle.end
        if parts[0] != _MAGIC:
            raise ArgumentError(f"{_WHAT}: the pickle was not written by torch.save")
    _, protocol, machine, loaded, keys = parts
    if protocol != _PROTOCOL or not isinstance(machine, dict) or not isinstance(keys, list):
        raise ArgumentError(f"{_WHAT}: the protocol is {protocol!r:.40} instead of {_PROTOCOL}")
    storages: dict[str, bytes | memoryview] = {}
    for key in keys:
        storage = storage_by_key.get(key) if isinstance(key, str) else None
        if storage is None or key in storages:
            raise ArgumentError(f"{_WHAT}: storage {key!r:.40} belongs to no tensor, or occurs twice")
        if at + 8 > len(data):
            raise ArgumentError(
                f"{_WHAT}: storage {key} at byte {at} does not fit into a file of {len(data)}"
            )
        (count,) = struct.unpack_from("<Q", data, at)
        size = count * _itemsize(storage)
        if count != storage.count:
            raise ArgumentError(
                f"{_WHAT}: storage {key} at byte {at + 8} has {count} elements instead of {storage.count}"
            )
        if at + 8 + size > len(data):
            raise ArgumentError(
                f"{_WHAT}: storage {key}, {size} bytes at byte {at + 8}, does not fit into a file of "
                f"{len(data)}"
            )
        part = data[at + 8 : at + 8 + size]
        storages[key] = part if machine.get("little_endian", True) else _swap_bytes(part, _itemsize(storage))
        at += 8 + size
    missing = [key for key in storage_by_key if key not in storages]
    if missing:
        raise ArgumentError(f"{_WHAT}: the bytes of storages {missing[:5]} are missing")
    return TorchFile(loaded, storages)


def _itemsize(storage: TorchStorage) -> int:
    return 1 if storage.dtype is None else storage.dtype.itemsize


def _swap_bytes(raw: bytes | memoryview, size: int) -> bytes:
    out = bytearray(len(raw))
    for i in range(size):
        out[i::size] = raw[size - 1 - i :: size]
    return bytes(out)


# --- the functions that a pickle may call


def _storage(pid: Any, storages: dict[str, TorchStorage]) -> TorchStorage:
    """The storage of a persistent id ('storage', class, key, location, count, view of another or None)."""
    if not isinstance(pid, tuple) or len(pid) not in (5, 6) or pid[0] != "storage":
        raise ArgumentError(f"{_WHAT}: {pid!r:.80} is not the id of a storage")
    _, kind, key, _, count = pid[:5]
    view = pid[5] if len(pid) == 6 else None
    if not isinstance(kind, _Kind) or not isinstance(key, str) or not _is_count(count):
        raise ArgumentError(f"{_WHAT}: {pid!r:.80} does not name the class, key and size of a storage")
    storage = storages.setdefault(key, TorchStorage(key, kind.dtype, count))
    if (storage.dtype, storage.count) != (kind.dtype, count):
        raise ArgumentError(f"{_WHAT}: storage {key} has two dtypes or sizes")
    if view is None:
        return storage
    if not isinstance(view, tuple) or len(view) != 3 or not all(map(_is_count, view[1:])):
        raise ArgumentError(f"{_WHAT}: {view!r:.80} is not a view (key, offset, size) of a storage")
    if view[1] + view[2] > count:
        raise ArgumentError(f"{_WHAT}: the view {view[1:]} leads out of {count} elements")
    return TorchStorage(key, kind.dtype, view[2], view[1])


def _is_count(n: Any) -> bool:
    return isinstance(n, int) and not isinstance(n, bool) and 0 <= n < 1 << 60


def _tensor(
    storage: Any, offset: Any, shape: Any, strides: Any, *ignored: Any, dtype: DType | None = None
) -> Strided:
    """`torch._utils._rebuild_tensor_v2`; the arguments after the strides do not affect the elements."""
    if (
        not isinstance(storage, TorchStorage)
        or not isinstance(shape, tuple)
        or not isinstance(strides, tuple)
    ):
        raise ArgumentError(f"{_WHAT}: a tensor has no storage, shape and strides: {shape!r:.80}")
    if len(shape) != len(strides) or len(shape) > 64 or not all(map(_is_count, (offset, *shape, *strides))):
        raise ArgumentError(
            f"{_WHAT}: shape {shape!r:.80}, strides {strides!r:.80} and offset {offset!r:.40} are not "
            "integers of at least 0, one for each axis"
        )
    kind = dtype or storage.dtype or dtypes.uint8
    count = storage.count * _itemsize(storage) // kind.itemsize
    last = offset + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    if prod(shape) > _MAX_ELEMENTS or (0 not in shape and last >= count):
        raise ArgumentError(
            f"{_WHAT}: shape {shape!r:.80} with strides {strides!r:.80} from {offset} leads out of {count} "
            "elements"
        )
    start = storage.offset * _itemsize(storage) // kind.itemsize
    return Strided(storage, kind, start + offset, shape, strides)


def _tensor_v3(
    storage: Any, offset: Any, shape: Any, strides: Any, grad: Any, hooks: Any, dtype: Any, *ignored: Any
) -> Strided:
    if not isinstance(dtype, DType):
        raise ArgumentError(f"{_WHAT}: {dtype!r:.40} is not a dtype")
    return _tensor(storage, offset, shape, strides, dtype=dtype)


def _parameter(data: Any, *ignored: Any) -> Any:
    return data


def _encode(text: Any, encoding: Any) -> bytes:
    if encoding not in ("latin1", "latin-1") or not isinstance(text, str):
        raise ArgumentError(f"{_WHAT}: bytes are encoded as {encoding!r:.40} instead of latin1")
    try:
        return text.encode("latin1")
    except UnicodeEncodeError as e:
        raise ArgumentError(f"{_WHAT}: {text[:40]!r} is not text in latin1") from e


def _to_dict(items: Any = ()) -> dict[Any, Any]:
    return dict(items)


def _device(name: Any, index: Any = None) -> str:
    return f"{name}" if index is None else f"{name}:{index}"


def _globals() -> dict[str, Any]:
    table: dict[str, Any] = {
        "collections.OrderedDict": _to_dict,
        "builtins.set": set,
        "__builtin__.set": set,
        "torch._utils._rebuild_tensor": _tensor,
        "torch._utils._rebuild_tensor_v2": _tensor,
        "torch._utils._rebuild_tensor_v3": _tensor_v3,
        "torch._utils._rebuild_parameter": _parameter,
        "torch._utils._rebuild_parameter_with_state": _parameter,
        "torch.Size": tuple,
        "torch.device": _device,
        "_codecs.encode": _encode,
        "torch.UntypedStorage": _Kind(None),
        "torch.storage.UntypedStorage": _Kind(None),
    }
    for name, dtype in _STORAGES.items():
        table[f"torch.{name}Storage"] = _Kind(dtype)
    table |= {"torch.float8_e4m3fn": dtypes.fp8e4m3, "torch.float8_e5m2": dtypes.fp8e5m2}
    return table | {f"torch.{d}": d for d in dtypes.all}
