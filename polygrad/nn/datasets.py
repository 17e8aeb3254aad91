"""Well-known data sets, read from local files. Nothing is downloaded: an error says which file goes where.

They are searched for in `folder`, else in the directory that the environment variable POLYGRAD_DATA names,
else in ~/.cache/polygrad/datasets.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

from polygrad.dtype import DType, dtypes
from polygrad.errors import ArgumentError
from polygrad.helpers import prod
from polygrad.nn.archives import gunzip, read_tar
from polygrad.tensor.tensor import Tensor

__all__ = ["cifar", "idx", "mnist"]

Path_ = str | os.PathLike[str]
Data = tuple[Tensor, Tensor, Tensor, Tensor]

# The third byte of an IDX file (LeCun, Cortes and Burges, "The MNIST database").
_IDX = {8: dtypes.uint8, 9: dtypes.int8, 11: dtypes.int16, 12: dtypes.int32, 13: dtypes.float32,
        14: dtypes.float64}  # fmt: skip
_MOST = 1 << 31


def mnist(folder: Path_ | None = None, fashion: bool = False, device: str | None = None) -> Data:
    """Handwritten digits, or clothes with `fashion`: (x_train, y_train, x_test, y_test).

    x: (60000 or 10000, 1, 28, 28) uint8, y: (60000 or 10000,) uint8. Reads train-images-idx3-ubyte,
    train-labels-idx1-ubyte, t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, each with or without .gz, of
    the folder `mnist` or `fashion-mnist`. Raises ArgumentError when one is missing or damaged.
    """
    home = _folder("mnist", folder, "fashion-mnist" if fashion else "mnist")
    names = (
        "train-images-idx3-ubyte",
        "train-labels-idx1-ubyte",
        "t10k-images-idx3-ubyte",
        "t10k-labels-idx1-ubyte",
    )
    arrays = [idx(_first("mnist", home, (name, f"{name}.gz")), device) for name in names]
    for images, labels in (arrays[:2], arrays[2:]):
        if images.ndim != 3 or labels.ndim != 1 or images.shape[0] != labels.shape[0]:
            raise ArgumentError(
                f"mnist: expected images (n, height, width) and n labels, got {images.shape} and "
                f"{labels.shape}"
            )
    x_train, y_train, x_test, y_test = arrays
    return x_train.unsqueeze(1), y_train, x_test.unsqueeze(1), y_test


def idx(path: Path_, device: str | None = None) -> Tensor:
    """The Tensor in an IDX file, which may be compressed with gzip. Raises ArgumentError if it is damaged."""
    raw = _read("idx", Path(path))
    if raw[:2] == b"\x1f\x8b":
        raw = gunzip(raw, "idx", _MOST)
    dtype = _IDX.get(raw[2]) if len(raw) >= 4 and raw[:2] == b"\0\0" else None
    if dtype is None:
        raise ArgumentError(f"idx: {path} begins with {raw[:4].hex()}: it is not an IDX file")
    start = 4 + 4 * raw[3]
    if len(raw) < start:
        raise ArgumentError(f"idx: expected {raw[3]} sizes in {path}, got {len(raw)} bytes")
    shape = struct.unpack_from(f">{raw[3]}I", raw, 4)
    if len(raw) - start != prod(shape) * dtype.itemsize:
        raise ArgumentError(
            f"idx: expected {prod(shape) * dtype.itemsize} bytes in {path} for shape {shape}, got "
            f"{len(raw) - start}"
        )
    return Tensor(_little_endian(raw[start:], dtype), device, dtype).reshape(shape)


def _little_endian(raw: bytes, dtype: DType) -> bytes:
    out = bytearray(len(raw))
    for i in range(dtype.itemsize):
        out[i :: dtype.itemsize] = raw[dtype.itemsize - 1 - i :: dtype.itemsize]
    return bytes(out)


def cifar(folder: Path_ | None = None, device: str | None = None) -> Data:
    """CIFAR-10, small photographs of ten kinds: (x_train, y_train, x_test, y_test).

    x: (50000 or 10000, 3, 32, 32) uint8, y: (50000 or 10000,) uint8. Reads cifar-10-binary.tar.gz, or
    data_batch_1.bin to data_batch_5.bin and test_batch.bin, of the folder `cifar-10`. Raises ArgumentError
    when one is missing or damaged.
    """
    home = _folder("cifar", folder, "cifar-10")
    train, test = [f"data_batch_{i}.bin" for i in range(1, 6)], ["test_batch.bin"]
    archive = home / "cifar-10-binary.tar.gz"
    if archive.exists():
        files: dict[str, bytes | memoryview] = {
            name.rpartition("/")[2]: data
            for name, data in read_tar(gunzip(_read("cifar", archive), "cifar", _MOST), "cifar").items()
        }
        missing = [n for n in train + test if n not in files]
        if missing:
            raise ArgumentError(f"cifar: expected {', '.join(missing)} in {archive}, got {sorted(files)}")
    else:
        files = {n: _read("cifar", _first("cifar", home, (n,))) for n in train + test}
    record = 1 + 3 * 32 * 32
    out = []
    for names in (train, test):
        raw = b"".join(files[n] for n in names)
        if not raw or len(raw) % record:
            raise ArgumentError(f"cifar: expected records of {record} bytes in {names[0]}, got {len(raw)}")
        rows = Tensor(raw, device).reshape(-1, record)
        out += [rows[:, 1:].reshape(-1, 3, 32, 32).contiguous(), rows[:, 0].contiguous()]
    out[0].realize(*out[1:])
    return out[0], out[1], out[2], out[3]


def _folder(what: str, folder: Path_ | None, name: str) -> Path:
    if folder is not None:
        return Path(folder)
    root = os.environ.get("POLYGRAD_DATA") or os.path.expanduser("~/.cache/polygrad/datasets")
    return Path(root) / name


def _first(what: str, folder: Path, names: tuple[str, ...]) -> Path:
    for name in names:
        if (folder / name).exists():
            return folder / name
    raise ArgumentError(
        f"{what}: expected {' or '.join(names)} in {folder}, got no such file: put it there (polygrad "
        "downloads nothing), or say where it is with `folder` or POLYGRAD_DATA"
    )


def _read(what: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as e:
        raise ArgumentError(f"{what}: expected a file that can be read at {path}, got {e}") from e
