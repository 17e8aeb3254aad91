"""Files of checkpoints: whole or not there, with a hash of all their bytes, in one part or one of each rank.

A file is safetensors, so other programs read it. Its metadata begin with `sha256`, the hash of the file with
64 zeros in the place of the hash. Knows no runs.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polygrad.errors import ArgumentError, PolygradError
from polygrad.monitor import HAS_THREADS
from polygrad.nn.files import file_bytes, tensor_of_bytes
from polygrad.nn.safetensors import TensorEntry, entries_header, read_entries, read_header
from polygrad.tensor.tensor import Tensor

_SEAL = b'{"__metadata__":{"sha256":"'  # after 8 bytes with the header's length
_NO_DIGEST = "0" * 64
_NAME = re.compile(r"step-(\d{9})(?:-(\d{5})-of-(\d{5}))?\.safetensors(\.\d+)?")

Bytes = bytes | memoryview


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Copies of Tensors, and text, of which a file is made later."""

    entries: Mapping[str, TensorEntry]
    metadata: Mapping[str, str]

    def parts(self) -> list[Bytes]:
        """The bytes of the file, one piece after the other."""
        header = entries_header(self.entries, {"sha256": _NO_DIGEST, **self.metadata})
        hasher = hashlib.sha256(header)
        for entry in self.entries.values():
            hasher.update(entry.data)
        start = 8 + len(_SEAL)
        sealed = header[:start] + hasher.hexdigest().encode() + header[start + len(_NO_DIGEST) :]
        return [sealed, *(entry.data for entry in self.entries.values())]


def take_snapshot(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> Snapshot:
    """Compute Tensors and copy their elements."""
    if tensors:
        Tensor.realize(*tensors.values())
    entries = {}
    for name, t in tensors.items():
        data = t.data()
        entries[name] = TensorEntry(t.dtype, t.shape, data.cast("B") if data.nbytes else b"")
    return Snapshot(entries, dict(metadata))


def read_checkpoint_file(source: Any, where: str) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The Tensors and the metadata of a file: a path, or its bytes, called `where` in errors. Raises
    ArgumentError where a bit has changed since it was written."""
    try:
        raw = file_bytes(source, "resume")
        _, header = read_header(raw)
        metadata = header.get("__metadata__")
        start = 8 + len(_SEAL)
        end = start + len(_NO_DIGEST)
        if raw[8:start] != _SEAL or not isinstance(metadata, dict):
            raise ArgumentError("the file is no checkpoint of a training, or of an older version: no hash")
        hasher = hashlib.sha256(raw[:start])
        hasher.update(_NO_DIGEST.encode())
        hasher.update(raw[end:])
        if hasher.hexdigest().encode() != raw[start:end]:
            raise ArgumentError(
                "the file is damaged: its bytes do not have the hash that they had when written"
            )
        tensors = {name: tensor_of_bytes(x.data, x.dtype, x.shape) for name, x in read_entries(raw).items()}
    except (PolygradError, OSError) as e:
        raise ArgumentError(f"resume: {where}: {e}") from e
    return tensors, metadata


def write_whole(path: Path, parts: Iterable[Bytes]) -> None:
    """Write a file so that there is the old one or the new one at any time, also after a power failure.
    Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        with open(temporary, "wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    if os.name == "posix" and sys.platform != "emscripten":  # elsewhere a folder is no file
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def write_snapshot(path: Path, snapshot: Snapshot) -> None:
    """Write a file of a snapshot, as `write_whole` does. Raises OSError."""
    write_whole(path, snapshot.parts())


@dataclass(frozen=True, slots=True)
class _Name:
    """What a file's name says: its step, that it is number `shard` of `shards`, whether it is unfinished."""

    step: int
    shard: int
    shards: int
    unfinished: bool


def checkpoint_name(step: int, shard: int = 0, shards: int = 1) -> str:
    """The name of a file of a step; names sort as steps do."""
    part = f"-{shard + 1:05d}-of-{shards:05d}" if shards > 1 else ""
    return f"step-{step:09d}{part}.safetensors"


def _parsed(name: str) -> _Name | None:
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    step, shard, shards, process = match.groups()
    return _Name(int(step), int(shard or 1) - 1, int(shards or 1), process is not None)


class CheckpointFolder:
    """The checkpoints of a run. Each has a file of each rank: rank `shard` of `shards` writes here. It is
    complete when all of them are there, and until then the one before is the newest."""

    def __init__(self, path: str | os.PathLike[str], keep: int = 1, shard: int = 0, shards: int = 1) -> None:
        self.path, self.keep, self.shard, self.shards = Path(path), keep, shard, shards

    def complete(self) -> dict[int, list[Path]]:
        """The files of each complete checkpoint, by steps, in order."""
        found: dict[tuple[int, int], dict[int, Path]] = {}
        for path, name in self._files():
            if not name.unfinished:
                found.setdefault((name.step, name.shards), {})[name.shard] = path
        return {
            step: [files[i] for i in range(shards)]
            for (step, shards), files in sorted(found.items())
            if len(files) == shards
        }

    def begin(self, step: int) -> None:
        """Remove what runs left that were killed while they wrote. Raises ArgumentError where there are
        checkpoints of steps after `step`: a run that begins there would count them as its newest."""
        complete = self.complete()
        later = next((files[0].name for at, files in reversed(complete.items()) if at > step), None)
        if later is not None:
            raise ArgumentError(
                f"Checkpoints: expected a folder without checkpoints of steps after {step}, got {self.path} "
                f"with {later}: go on from there by resume={str(self.path)!r}, or choose another folder"
            )
        whole = {path for files in complete.values() for path in files}
        if self.shard == 0:
            for path, _ in self._files():
                if path not in whole:
                    path.unlink(missing_ok=True)

    def write(self, step: int, snapshot: Snapshot) -> Path:
        """Write this rank's file. Of older checkpoints, the last keep - 1 stay. Raises OSError."""
        path = self.path / checkpoint_name(step, self.shard, self.shards)
        write_snapshot(path, snapshot)
        kept = list(self.complete())[-self.keep :]
        if len(kept) == self.keep:
            for old, name in self._files():
                if name.step < kept[0]:
                    old.unlink(missing_ok=True)
        return path

    def _files(self) -> list[tuple[Path, _Name]]:
        if not self.path.is_dir():
            return []
        found = [(self.path / name, _parsed(name)) for name in sorted(os.listdir(self.path))]
        return [(path, name) for path, name in found if name is not None]


def checkpoint_files(source: str | os.PathLike[str]) -> list[Path]:
    """The files of a checkpoint: of the newest one in a folder, or of the one that a file is of. Raises
    ArgumentError where a folder has none, or files are missing."""
    path = Path(source)
    if path.is_dir():
        complete = CheckpointFolder(path).complete()
        if not complete:
            raise ArgumentError(f"resume: expected a folder with checkpoints, got {path}, which has none")
        return list(complete.values())[-1]
    name = _parsed(path.name)
    if name is None or name.shards == 1:
        return [path]
    files = [path.with_name(checkpoint_name(name.step, i, name.shards)) for i in range(name.shards)]
    missing = [file.name for file in files if not file.exists()]
    if missing:
        raise ArgumentError(
            f"resume: {path}: expected the other ranks' files beside it, found no {missing[0]}"
        )
    return files


def shares(sizes: Mapping[str, int], count: int) -> list[list[str]]:
    """Names in `count` parts of about the same size: each, the largest first, goes to the smallest part."""
    out: list[list[str]] = [[] for _ in range(count)]
    totals = [0] * count
    for name in sorted(sizes, key=lambda name: (-sizes[name], name)):
        smallest = totals.index(min(totals))
        out[smallest].append(name)
        totals[smallest] += sizes[name]
    return out


class BackgroundWriter:
    """Writes in a thread while the caller goes on, one thing at a time. Used in a `with` block, at whose end
    it waits."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._errors: list[BaseException] = []

    def start(self, write: Callable[[], object]) -> None:
        """Begin with `write` when what was begun before has ended. Raises what that raised."""
        self.wait()
        if not HAS_THREADS:
            write()
            return

        def work() -> None:
            try:
                write()
            except BaseException as e:  # the thread that waits raises it
                self._errors.append(e)

        self._thread = threading.Thread(target=work, name="polygrad-checkpoint")
        self._thread.start()

    def wait(self) -> None:
        """Wait for the end of what was begun. Raises what it raised, once."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._errors:
            raise self._errors.pop()

    def __enter__(self) -> BackgroundWriter:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Wait. What a write raises is a note of `error`, if the block raised one."""
        try:
            self.wait()
        except Exception as e:
            if error is None:
                raise
            error.add_note(f"{type(e).__name__}: {e}")


def joined(parts: Sequence[tuple[dict[str, Tensor], dict[str, str]]], where: str) -> dict[str, Tensor]:
    """The Tensors of all files of a checkpoint. Raises ArgumentError where they are of several runs."""
    attempts = {metadata.get("attempt") for _, metadata in parts}
    if len(attempts) > 1:
        raise ArgumentError(f"resume: {where}: its files were written by different runs: choose an older one")
    return {name: t for tensors, _ in parts for name, t in tensors.items()}
