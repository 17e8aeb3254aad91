"""Tensors from files that other programs write, and Tensors of bytes as files."""

from __future__ import annotations

import hashlib
import io
import mmap
import os
import sys
from typing import Any

from polygrad.dtype import DType, dtypes
from polygrad.engine.devices import Device
from polygrad.engine.realize import buffer_from
from polygrad.errors import ArgumentError
from polygrad.helpers import argsort, prod, write_file
from polygrad.nn.archives import read_tar, read_zip
from polygrad.nn.gguf import Blocks, read_gguf
from polygrad.nn.quantization import dequantize
from polygrad.nn.torch_file import Strided, TorchStorage, read_torch
from polygrad.runtime.buffer import Buffer
from polygrad.tensor.tensor import Tensor
from polygrad.uop.node import UOp


def file_bytes(data: Any, what: str, mapped: bool = False) -> memoryview:
    """The bytes of a path, bytes, a buffer, or a Tensor of bytes. Raises ArgumentError.

    `mapped`: those of a path stay in the file until they are read, where the host maps files. The file must
    not become shorter while they are used.
    """
    if isinstance(data, Tensor):
        return data.data().cast("B")
    if isinstance(data, (str, os.PathLike)):
        try:
            with open(data, "rb") as f:
                # Emscripten's mmap copies the file; and no host maps an empty one.
                if mapped and sys.platform != "emscripten" and os.fstat(f.fileno()).st_size:
                    return memoryview(mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ))
                return memoryview(f.read())
        except OSError as e:
            raise ArgumentError(f"{what}: expected a file that can be read, got {e}") from e
    try:
        return memoryview(data).cast("B")
    except TypeError as e:
        raise ArgumentError(f"{what}: expected a path, bytes or a buffer, got {type(data).__name__}") from e


def tensor_of_bytes(
    raw: bytes | memoryview | Tensor, dtype: DType, shape: tuple[int, ...], device: str | None = None
) -> Tensor:
    """A Tensor whose elements are `raw`, in row-major order; they are copied once, to the device. `raw` may
    be a Tensor of these elements, which is there already, see `TensorInPieces`."""
    if isinstance(raw, Tensor):
        return raw.reshape(shape)
    if not len(raw):
        return Tensor.zeros(*shape, dtype=dtype, device=device)
    memory = buffer_from(device or Device.DEFAULT, dtype, memoryview(raw).cast("B"))
    return Tensor(memory).reshape(shape)


class TensorInPieces:
    """A Tensor (elements,) whose bytes come one after the other: they are written to its device as they
    come, so no more than a piece of them is anywhere else.

    >>> arriving = TensorInPieces(dtypes.int16, 3)
    >>> for piece in (b"\\1", b"\\0\\2\\0", b"\\3\\0"):
    ...     arriving.write(memoryview(piece))
    >>> arriving.tensor().tolist()
    [1, 2, 3]
    """

    def __init__(self, dtype: DType, count: int, device: str | None = None) -> None:
        self._dtype, self._at = dtype, 0
        self._memory = Buffer(Device[device or Device.DEFAULT], count, dtype)

    @property
    def missing(self) -> int:
        """The number of bytes that have not come yet."""
        return self._memory.nbytes - self._at

    def write(self, piece: memoryview) -> None:
        """Take the next bytes, no more than are missing. Raises OutOfMemoryError."""
        self._memory.write_at(self._at, piece)
        self._at += len(piece)

    def tensor(self) -> Tensor:
        """The Tensor, of which no bytes are missing."""
        if not self._memory.nbytes:
            return Tensor.zeros(0, dtype=self._dtype)
        return Tensor(UOp.buffer_of(self._memory, self._dtype))


# --- archives


def tar_extract(data: Any) -> dict[str, Tensor]:
    """The files in a tar file by name, as uint8 Tensors. `data`: a path, bytes, a buffer, a Tensor of bytes.

    Links and directories are left out. Raises ArgumentError when it is damaged, or a name leads out of the
    archive.
    """
    return {
        name: Tensor(bytes(x)) for name, x in read_tar(file_bytes(data, "tar_extract"), "tar_extract").items()
    }


def zip_extract(data: Any) -> dict[str, Tensor]:
    """The files in a zip file by name, as uint8 Tensors; arguments and errors as of `tar_extract`."""
    return {
        name: Tensor(bytes(x)) for name, x in read_zip(file_bytes(data, "zip_extract"), "zip_extract").items()
    }


# --- torch.save


def torch_load(data: Any, device: str | None = None) -> Any:
    """Load a file of `torch.save`, usually a state dict, with Tensors in the place of torch's.

    `data`: a path, bytes, a buffer, a Tensor of bytes. torch is not needed. A pickle is a program: only the
    operations that make tensors, text, numbers and containers of them are executed; objects of other classes
    are refused. Tensors that shared memory share it, as views. Raises ArgumentError for damaged or hostile
    files.
    """
    file = read_torch(file_bytes(data, "torch_load"))
    memory: dict[tuple[str, str], Tensor] = {}

    def tensor(x: Strided) -> Tensor:
        key = (x.storage.key, str(x.dtype))
        if key not in memory:
            raw = bytes(file.storages[x.storage.key])
            raw = raw[: len(raw) // x.dtype.itemsize * x.dtype.itemsize]
            memory[key] = Tensor(raw, device, x.dtype)
        return _select_strided(memory[key], x)

    return _replace_tensors(file.data, tensor, {})


def _replace_tensors(x: Any, tensor: Any, replacements: dict[int, Any]) -> Any:
    """`x` with Tensors in the place of `Strided`. A container that occurs several times is converted once."""
    if isinstance(x, Strided):
        if id(x) not in replacements:
            replacements[id(x)] = tensor(x)
        return replacements[id(x)]
    if isinstance(x, TorchStorage):
        raise ArgumentError(f"torch_load: expected tensors, got storage {x.key} by itself")
    if id(x) in replacements or not isinstance(x, (dict, list, tuple)):
        return replacements.get(id(x), x)
    if isinstance(x, tuple):
        replacements[id(x)] = tuple([_replace_tensors(v, tensor, replacements) for v in x])
        return replacements[id(x)]
    replacements[id(x)] = x
    for key, value in list(x.items() if isinstance(x, dict) else enumerate(x)):
        x[key] = _replace_tensors(value, tensor, replacements)
    return x


def _select_strided(memory: Tensor, x: Strided) -> Tensor:
    """The elements of `x` in the 1-D `memory`: a view if they are dense, in any order of axes, else a
    gather."""
    if 0 in x.shape:
        return Tensor.zeros(*x.shape, dtype=x.dtype, device=memory.device)
    axes = [i for i, (n, s) in enumerate(zip(x.shape, x.strides, strict=True)) if n > 1 and s > 0]
    order = sorted(axes, key=lambda i: -x.strides[i])
    sizes = [x.shape[i] for i in order]
    if all(x.strides[a] == prod(sizes[n + 1 :]) for n, a in enumerate(order)):
        dense = memory[x.offset : x.offset + prod(sizes)].reshape(sizes)
        dense = dense.permute(argsort(order)) if len(order) > 1 else dense
        return dense.reshape([n if i in axes else 1 for i, n in enumerate(x.shape)]).expand(x.shape)
    positions = Tensor.full(x.shape, x.offset, dtype=dtypes.int64, device=memory.device)
    for i, (n, s) in enumerate(zip(x.shape, x.strides, strict=True)):
        column = [n if j == i else 1 for j in range(len(x.shape))]
        steps = Tensor.arange(n, dtype=dtypes.int64, device=memory.device) * s
        positions = positions + steps.reshape(column)
    return memory[positions]


# --- GGUF


def gguf_load(data: Any, device: str | None = None) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """(metadata, Tensors by name) of a GGUF file: a path, bytes, a buffer, or a Tensor of bytes.

    Quantized tensors (Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K to Q6_K, IQ4_NL) become float32, lazily, on the
    device; others keep their dtype. `polygrad.hf.load_hf` keeps them packed. Raises ArgumentError when the
    file is damaged, or has an unknown quantization.
    """
    metadata, tensors = read_gguf(file_bytes(data, "gguf_load"))
    return metadata, {name: _tensor_of(x, device) for name, x in tensors.items()}


def _tensor_of(x: Blocks, device: str | None) -> Tensor:
    if 0 in x.shape:
        return Tensor.zeros(*x.shape, dtype=x.encoding.dtype or dtypes.float32, device=device)
    if x.encoding.dtype is not None:
        return Tensor(bytes(x.data), device, x.encoding.dtype).reshape(x.shape)
    blocks = Tensor(bytes(x.data), device).reshape(-1, x.encoding.nbytes)
    return dequantize(x.encoding.name, blocks).reshape(x.shape)


# --- bytes


class TensorIO(io.RawIOBase):
    """The bytes of a 1-D Tensor as a file that is open for reading: `zipfile.ZipFile(TensorIO(t))`.

    A copy, made at once. Raises ArgumentError for other Tensors.
    """

    def __init__(self, tensor: Tensor) -> None:
        if tensor.ndim != 1 or tensor.dtype is not dtypes.uint8:
            raise ArgumentError(
                f"TensorIO: expected a uint8 tensor of one axis, got {tensor.dtype} of shape {tensor.shape}"
            )
        super().__init__()
        self._bytes, self._at = bytes(tensor.data()), 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = self._bytes[self._at : self._at + len(buffer)]
        buffer[: len(part)] = part
        self._at += len(part)
        return len(part)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: len(self._bytes)}[whence]
        self._at = max(0, start + offset)
        return self._at

    def tell(self) -> int:
        return self._at


def fs_store(tensor: Tensor, folder: str | os.PathLike[str]) -> str:
    """Store the bytes of a Tensor in `folder`, under their SHA-256, which is returned. An existing file is
    not replaced."""
    raw = bytes(tensor.contiguous().data())
    name = hashlib.sha256(raw).hexdigest()
    path = os.path.join(folder, name[:2], name)
    if not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write_file(path, [raw])  # concurrent readers see the whole file or none
    return name


def fs_load(
    digest: str, folder: str | os.PathLike[str], dtype: Any = dtypes.uint8, device: str | None = None
) -> Tensor:
    """The bytes that `fs_store` stored under `digest`, as a 1-D Tensor of `dtype`.

    Raises ArgumentError when there is no such file, or its bytes do not match the digest.
    """
    if len(digest) != 64 or not all(c in "0123456789abcdef" for c in digest):
        raise ArgumentError(f"fs_load: expected a SHA-256 as 64 hexadecimal digits, got {digest[:80]!r}")
    raw = bytes(file_bytes(os.path.join(folder, digest[:2], digest), "fs_load"))
    if (own := hashlib.sha256(raw).hexdigest()) != digest:
        raise ArgumentError(f"fs_load: the file is damaged: expected SHA-256 {digest}, got {own}")
    return Tensor(raw, device, dtype)
