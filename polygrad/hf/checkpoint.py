"""Checkpoints: files of weights as one table of names, read tensor by tensor.

`open_checkpoint` reads only headers. `read` copies one tensor from the mapped file to its device, so loading
a model takes no memory beyond the model's.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from polygrad.dtype import DType, dtypes
from polygrad.errors import ArgumentError, ModelError
from polygrad.nn.archives import check_name
from polygrad.nn.files import tensor_of_bytes, torch_load
from polygrad.nn.safetensors import TensorEntry, read_entries, read_index
from polygrad.tensor.tensor import Tensor

Shape = tuple[int, ...]
# The suffix of the scales of 8-bit floats, after the name of the weight.
_SCALES = ("_scale_inv", "_scale")


class Checkpoint(Protocol):
    """`where`: the file, for messages. `shapes`: of all tensors by name."""

    where: str
    shapes: dict[str, Shape]

    def read(self, name: str, device: str | None) -> Any:
        """The tensor, in separate memory; a PackedWeight if the file stores it quantized; a StoredTensor of a
        GGUF file."""
        ...

    def dtype(self, name: str) -> DType:
        """The dtype in the file."""
        ...

    def parts(self, name: str) -> list[str]:
        """The tensors of the file that `read` reads."""
        ...


class SafetensorsCheckpoint:
    """The tensors of one or several safetensors files. FP8 weights are read with their scales."""

    def __init__(self, files: Mapping[str, memoryview]) -> None:
        entries = {}
        for file, data in files.items():
            try:
                entries[file] = read_entries(data)
            except ArgumentError as e:
                raise ModelError(f"{file}: {e}") from e
        self._start(entries)

    @classmethod
    def of_entries(cls, files: Mapping[str, Mapping[str, TensorEntry]]) -> SafetensorsCheckpoint:
        """The tensors of files that are read already, or whose elements come later: see `put`."""
        out = cls.__new__(cls)
        out._start(files)
        return out

    def _start(self, files: Mapping[str, Mapping[str, TensorEntry]]) -> None:
        self.where = next(iter(files)) if len(files) == 1 else f"{len(files)} files"
        self._entries: dict[str, TensorEntry] = {}
        for file, entries in files.items():
            twice = next((name for name in entries if name in self._entries), None)
            if twice is not None:
                raise ModelError(f"{file}: {twice}: another file has it, too")
            self._entries |= entries
        self.shapes = {name: e.shape for name, e in self._entries.items()}

    def put(self, name: str, data: Any) -> None:
        """Set the elements of a tensor: see `TensorEntry`."""
        self._entries[name] = replace(self._entries[name], data=data)

    def parts(self, name: str) -> list[str]:
        """See `Checkpoint`."""
        scale = self._scale_of(name)
        return [name] if scale is None else [name, scale]

    def read(self, name: str, device: str | None) -> Tensor:
        """See `Checkpoint`."""
        entry = self._entries[name]
        tensor = tensor_of_bytes(entry.data, entry.dtype, entry.shape, device)
        if _is_fp8(entry.dtype):
            return self._apply_scale(name, tensor, device)
        return tensor

    def dtype(self, name: str) -> DType:
        """The dtype in the file."""
        return self._entries[name].dtype

    def stored(self, name: str) -> tuple[str, int]:
        """How the file has the tensor: the name of its encoding, and its bytes."""
        entry = self._entries[name]
        return entry.dtype.name, len(entry.data)

    def _scale_of(self, name: str) -> str | None:
        """The tensor of the scales of 8-bit floats, where there is one."""
        if not _is_fp8(self._entries[name].dtype):
            return None
        return next((name + s for s in _SCALES if name + s in self._entries), None)

    def _apply_scale(self, name: str, weight: Tensor, device: str | None) -> Tensor:
        """8-bit floats times their scales: one for all, or one for each row or block of rows and columns."""
        scale_name = self._scale_of(name)
        if scale_name is None:
            return weight.float()
        entry = self._entries[scale_name]
        scale = tensor_of_bytes(entry.data, entry.dtype, entry.shape, device).float()
        if scale.numel() == 1:
            return weight.float() * scale.reshape(())
        if scale.ndim != 2 or weight.ndim != 2:
            raise ModelError(f"{self.where}: {scale_name}: shape {scale.shape}, for {name} of {weight.shape}")
        blocks = [-(-n // s) for n, s in zip(weight.shape, scale.shape)]
        for axis, (block, n) in enumerate(zip(blocks, weight.shape)):
            scale = scale.repeat_interleave(block, axis).shrink(
                [(0, n) if i == axis else None for i in range(2)]
            )
        return weight.float() * scale


def _is_fp8(dtype: DType) -> bool:
    return dtype.itemsize == 1 and dtype.is_float


class TorchCheckpoint:
    """The tensors of one or several files that `torch.save` wrote."""

    def __init__(self, files: Mapping[str, memoryview]) -> None:
        self.where = next(iter(files)) if len(files) == 1 else f"{len(files)} files"
        self._tensors: dict[str, Tensor] = {}
        for file, data in files.items():
            try:
                contents = torch_load(data)
            except ArgumentError as e:
                raise ModelError(f"{file}: {e}") from e
            if not isinstance(contents, dict) or not all(isinstance(t, Tensor) for t in contents.values()):
                raise ModelError(f"{file}: not a dict of tensors")
            self._tensors |= contents
        self.shapes = {name: tuple(t.shape) for name, t in self._tensors.items()}

    def read(self, name: str, device: str | None) -> Tensor:
        """See `Checkpoint`."""
        return self._tensors[name].to(device).clone()

    def dtype(self, name: str) -> DType:
        """The dtype in the file."""
        return self._tensors[name].dtype

    def parts(self, name: str) -> list[str]:
        """See `Checkpoint`."""
        return [name]

    def stored(self, name: str) -> tuple[str, int]:
        """How the file has the tensor: the name of its encoding, and its bytes."""
        tensor = self._tensors[name]
        return tensor.dtype.name, tensor.numel() * tensor.dtype.itemsize


def open_checkpoint(folder: Path) -> SafetensorsCheckpoint | TorchCheckpoint:
    """The weights in a folder: model.safetensors or pytorch_model.bin, whole or in the parts that an index
    names. Raises ModelError."""
    for stem, suffix, kind in (
        ("model", "safetensors", SafetensorsCheckpoint),
        ("pytorch_model", "bin", TorchCheckpoint),
    ):
        single_file, index = folder / f"{stem}.{suffix}", folder / f"{stem}.{suffix}.index.json"
        if single_file.is_file():
            return kind({single_file.name: map_file(single_file)})
        if index.is_file():
            return kind({name: map_file(folder / name) for name in _files_of(index)})
    raise ModelError(
        f"{folder}: no weights: expected model.safetensors, pytorch_model.bin, or an index of their parts"
    )


def _files_of(index: Path) -> Sequence[str]:
    try:
        file_by_tensor = read_index(memoryview(index.read_bytes()))
        for name in file_by_tensor.values():
            check_name(name, index.name)
    except ArgumentError as e:
        raise ModelError(f"{index.name}: {e}") from e
    names = list(dict.fromkeys(file_by_tensor.values()))
    missing = [name for name in names if not (index.parent / name).is_file()]
    if missing:
        raise ModelError(f"{index.name}: {len(missing)} files are missing: {', '.join(missing[:3])}")
    return names


def map_file(path: Path) -> memoryview:
    """The bytes of a file, mapped if the host supports it."""
    try:
        with open(path, "rb") as file:
            if not os.fstat(file.fileno()).st_size:
                return memoryview(b"")
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as e:
        try:
            return memoryview(path.read_bytes())
        except OSError:
            raise ModelError(f"{path}: {e}") from e


def common_dtype(checkpoint: Any) -> DType:
    """The dtype that most floats of a checkpoint have; float32 for 8-bit floats."""
    sizes: dict[DType, int] = {}
    for name, shape in checkpoint.shapes.items():
        dtype = checkpoint.dtype(name)
        if dtype.is_float:
            count = 1
            for n in shape:
                count *= n
            sizes[dtype] = sizes.get(dtype, 0) + count
    most_common = max(sizes, key=lambda d: sizes[d], default=dtypes.float32)
    return dtypes.float32 if most_common.itemsize != 2 else most_common
