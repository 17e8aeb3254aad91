"""The cache of compiled artefacts, by the source of each: in memory, and on disk between processes.

An entry is a file `<directory>/<2 hex digits>/<62 hex digits>` of

    b"PGC1" | u64 length (little-endian) | 16-byte BLAKE2b of user, key and payload | payload

A file is written under another name and then renamed, so that a reader sees a whole entry or none, whichever
processes write. A damaged entry is a miss, and is written again. An error of the file system is never an
error here: an entry that cannot be written is only kept in memory. The directory is `$POLYGRAD_CACHE`, else
`$XDG_CACHE_HOME/polygrad`, else `~/.cache/polygrad`; with `POLYGRAD_CACHE=off` (or 0, or empty) there is
none. In a page, which has no files, the host keeps the entries.

Entries are code that runs. So a directory that other users may write to is not used, nor one that is another
user's or a symbolic link: a RuntimeWarning says so.
"""

from __future__ import annotations

import functools
import hashlib
import os
import stat
import struct
import sys
import threading
import time
import warnings
import zipfile
from collections import OrderedDict
from typing import Any

_HAS_USERS = hasattr(os, "geteuid") and sys.platform != "emscripten"
_MAGIC = b"PGC1"
_HEADER = struct.Struct("<4sQ16s")
_MEMORY_BYTES = 16 << 20
_DISK_BYTES = 512 << 20
_SHARDS = 256
_DAY = 86400.0
# The code that makes Programs of graphs: packages, and the modules beside them.
_COMPILERS = ("uop", "schedule", "codegen", "renderer", "wasm", "engine", "")


@functools.cache
def code_digest() -> hashlib._Hash:
    """A digest of the code that makes artefacts, so that no version finds artefacts of another."""
    digest = hashlib.sha256(_MAGIC)
    # polygrad's own loader imports from a zip file
    archive = getattr(sys.modules[__name__].__loader__, "archive", None)
    if archive is not None:
        with zipfile.ZipFile(archive) as file:
            for member in file.infolist():
                digest.update(f"{member.filename} {member.CRC} {member.file_size}\n".encode())
        return digest
    package = os.path.dirname(os.path.dirname(__file__))
    for layer in _COMPILERS:
        for folder, folders, names in os.walk(os.path.join(package, layer)):
            folders[:] = sorted(folders) if layer else []
            for name in sorted(names):
                if name.endswith(".py"):
                    with open(os.path.join(folder, name), "rb") as source:
                        digest.update(f"{folder[len(package) :]}/{name}\n".encode() + source.read())
    return digest


def cache_directory() -> str | None:
    """The directory that the environment sets; None for no directory."""
    directory = os.environ.get("POLYGRAD_CACHE")
    if directory is not None:
        return None if directory in ("", "0", "off") else directory
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return None if base.startswith("~") else os.path.join(base, "polygrad")


def why_not_private(directory: str) -> str:
    """Why a directory must not be used as a cache; empty if it may, or is not there yet."""
    try:
        status = os.lstat(directory)
    except OSError:
        return ""
    if stat.S_ISLNK(status.st_mode):
        return "it is a symbolic link"
    if not _HAS_USERS or not stat.S_ISDIR(status.st_mode):
        return ""
    if status.st_uid != os.geteuid():
        return f"it belongs to user {status.st_uid}, not to user {os.geteuid()}"
    writers = stat.S_IMODE(status.st_mode) & (stat.S_IWGRP | stat.S_IWOTH)
    return f"other users may write to it (mode {stat.S_IMODE(status.st_mode):o})" if writers else ""


class DiskCache:
    """`get` and `put` bytes by key. Thread-safe. `directory` None: memory only."""

    def __init__(
        self, directory: str | None, memory_bytes: int = _MEMORY_BYTES, disk_bytes: int = _DISK_BYTES
    ) -> None:
        self.directory, self.memory_bytes, self.disk_bytes = directory, memory_bytes, disk_bytes
        self._memory: OrderedDict[str, bytes] = OrderedDict()  # least used first
        self._used = 0
        self._lock = threading.Lock()
        self._is_checked = False

    @staticmethod
    @functools.cache
    def default() -> DiskCache:
        """The cache of this process: the host's, if there is one (`use_host`), else the one in the directory
        that the environment set at the first use."""
        return DiskCache(cache_directory()) if _host is None else HostCache(_host)

    @staticmethod
    def key(target: str, source: str | bytes) -> str:
        """The key of an artefact: SHA-256 in hex of polygrad's code, the target's key and the source."""
        digest = code_digest().copy()
        for part in (target, source):
            data = part.encode() if isinstance(part, str) else part
            digest.update(len(data).to_bytes(8, "little"))
            digest.update(data)
        return digest.hexdigest()

    def get(self, key: str) -> bytes | None:
        """The bytes that `put` stored under `key`, or None."""
        with self._lock:
            data = self._memory.get(key)
            if data is not None:
                self._memory.move_to_end(key)
                return data
        data = self._read(key)
        if data is not None:
            self._remember(key, data)
        return data

    def put(self, key: str, data: bytes) -> None:
        """Store `data` under `key`, if there is room and the file system allows."""
        self._remember(key, data)
        self._write(key, data)

    def _remember(self, key: str, data: bytes) -> None:
        with self._lock:
            self._used += len(data) - len(self._memory.pop(key, b""))
            self._memory[key] = data
            while self._used > self.memory_bytes:
                _, dropped = self._memory.popitem(last=False)
                self._used -= len(dropped)

    def _path(self, key: str) -> str:
        return os.path.join(self.directory or "", key[:2], key[2:])

    def _is_usable(self) -> bool:
        """Whether there is a directory to which nobody else can write. One of which this is not true is
        given up, with a warning."""
        if self.directory is None or self._is_checked:
            return self.directory is not None
        reason = why_not_private(self.directory)
        if reason:
            advice = f"chmod 700 {self.directory}, or set POLYGRAD_CACHE to a folder of yours, or to off"
            warnings.warn(
                f"the cache {self.directory} is not used: {reason}: {advice}", RuntimeWarning, stacklevel=2
            )
            self.directory = None
        self._is_checked = os.path.isdir(self.directory or "")
        return self.directory is not None

    def _read(self, key: str) -> bytes | None:
        if not self._is_usable():
            return None
        path = self._path(key)
        try:
            with open(path, "rb") as file:
                entry = file.read()
                changed = os.fstat(file.fileno()).st_mtime
        except OSError:
            return None
        data = _unpack(key, entry)
        if data is not None and time.time() - changed > _DAY:
            try:
                os.utime(path)  # it is in use, and must not be the next entry that is dropped
            except OSError:
                pass
        return data

    def _write(self, key: str, data: bytes) -> None:
        if not self._is_usable():
            return
        path = self._path(key)
        folder = os.path.dirname(path)
        # A random name: inside of Pyodide all processes have the same process id.
        part = os.path.join(folder, f".{key[2:]}.{os.urandom(8).hex()}")
        try:
            try:
                file = open(part, "wb")
            except FileNotFoundError:
                self._make(folder)
                file = open(part, "wb")
            with file:
                file.write(_pack(key, data))
            os.replace(part, path)
        except OSError:
            _remove(part)
            return
        if key.endswith("0"):  # keys are hashes, so this is one write in 16
            self._prune(folder, path)

    def _make(self, folder: str) -> None:
        """Make a folder of entries, and the directory, for this user alone. Raises OSError."""
        assert self.directory is not None
        os.makedirs(self.directory, 0o700, exist_ok=True)
        if why_not_private(self.directory):
            raise PermissionError(f"{self.directory}: others have made it, or may write to it")
        os.makedirs(folder, 0o700, exist_ok=True)

    def _prune(self, folder: str, newest: str) -> None:
        """Drop the oldest entries of one folder until it keeps to its share of the room."""
        entries, now = [], time.time()
        try:
            with os.scandir(folder) as files:
                for entry in files:
                    status = entry.stat()
                    if not entry.name.startswith("."):
                        entries.append((status.st_mtime, status.st_size, entry.path))
                    elif now - status.st_mtime > _DAY:
                        _remove(entry.path)  # its writer has died
        except OSError:
            return
        room = self.disk_bytes // _SHARDS - sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if room >= 0:
                return
            if path != newest:
                _remove(path)
                room += size


class HostCache(DiskCache):
    """A cache whose entries the host keeps, for pages, which have no files.

    host: a JavaScript object. Its `find(key)` gives an entry or nothing, and `keep(key, entry)` stores one;
    both
        are synchronous.
    """

    def __init__(self, host: Any) -> None:
        super().__init__(None)
        self._host = host

    def _read(self, key: str) -> bytes | None:
        entry = self._host.find(key)
        return None if entry is None else _unpack(key, entry.to_bytes())

    def _write(self, key: str, data: bytes) -> None:
        self._host.keep(key, _pack(key, data))


_host: Any = None


def use_host(host: Any) -> None:
    """Let the host keep all later entries: see `HostCache`."""
    global _host
    _host = host
    DiskCache.default.cache_clear()


def _checksum(key: str, data: bytes) -> bytes:
    user = os.geteuid() if _HAS_USERS else 0
    return hashlib.blake2b(data, digest_size=16, key=key.encode(), person=struct.pack("<Q", user)).digest()


def _pack(key: str, data: bytes) -> bytes:
    return _HEADER.pack(_MAGIC, len(data), _checksum(key, data)) + data


def _unpack(key: str, entry: bytes) -> bytes | None:
    """The payload of an entry, or None when anything about it is wrong."""
    if len(entry) < _HEADER.size:
        return None
    magic, length, checksum = _HEADER.unpack_from(entry)
    data = entry[_HEADER.size :]
    return data if magic == _MAGIC and length == len(data) and checksum == _checksum(key, data) else None


def _remove(path: str) -> None:
    try:
        os.remove(path)
    except OSError:
        pass
