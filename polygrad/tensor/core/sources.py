"""Bytes from other sources: files mapped into memory, downloads, memory of other libraries.

Knows memory and paths, no Tensors.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import pathlib
import shutil
import tempfile
from typing import Any

from polygrad.dtype import DType
from polygrad.engine.devices import Device
from polygrad.errors import ArgumentError, DeviceError, FetchError
from polygrad.runtime.buffer import Buffer, Foreign
from polygrad.uop.node import UOp

_SECONDS = 30  # to wait for a server


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


def fetch(
    url: str,
    name: str | os.PathLike[str] | None = None,
    subdir: str | None = None,
    gunzip: bool = False,
    allow_caching: bool = True,
    headers: dict[str, str] | None = None,
    sha256: str | None = None,
) -> pathlib.Path:
    """Download `url` once, and return the path of the file: `fetch("https://...")`.

    Files are stored in the user's cache folder (`XDG_CACHE_HOME`), in `subdir`, under `name` or a digest of
    the address; a `name` with a slash is a path outside of it. `gunzip`: unpack the file. `sha256`: the
    expected digest of the file. A path, or an address that begins with `file:`, is returned unchanged. Raises
    FetchError: no network, an answer other than 200, another digest.
    """
    local = path_of(url)
    if local is not None or url.startswith(("/", ".")):
        return local or pathlib.Path(url)
    target = _cache_path(url, name, subdir, gunzip, headers)
    if allow_caching and target.is_file() and (sha256 is None or _digest(target) == sha256):
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, partial = tempfile.mkstemp(dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as out:
            _download(url, headers or {}, gunzip, out)
        if sha256 is not None and _digest(pathlib.Path(partial)) != sha256:
            raise FetchError(
                f"fetch {url}: expected a file of SHA-256 {sha256}, got {_digest(pathlib.Path(partial))}"
            )
        os.replace(partial, target)
    finally:
        pathlib.Path(partial).unlink(missing_ok=True)
    return target


def _cache_path(
    url: str, name: Any, subdir: str | None, gunzip: bool, headers: dict[str, str] | None
) -> pathlib.Path:
    if name is not None and (isinstance(name, pathlib.PurePath) or "/" in os.fspath(name)):
        return pathlib.Path(name)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    key = "\n".join([url, str(gunzip), *sorted(f"{k}: {v}" for k, v in (headers or {}).items())])
    file_name = os.fspath(name) if name is not None else hashlib.sha256(key.encode()).hexdigest()[:32]
    return pathlib.Path(base) / "polygrad" / "downloads" / (subdir or "") / file_name


def _digest(path: pathlib.Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _download(url: str, headers: dict[str, str], gunzip: bool, out: Any) -> None:
    import urllib.error
    import urllib.request

    try:
        request = urllib.request.Request(url, headers={"User-Agent": "polygrad", **headers})
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
            shutil.copyfileobj(gzip.GzipFile(fileobj=answer) if gunzip else answer, out)
    except (urllib.error.URLError, OSError, ValueError) as e:
        raise FetchError(
            f"fetch {url}: expected an answer, got {e}: download the file and pass its path"
        ) from e
