"""The files of checkpoints in a folder: one for each, or one of each rank. Knows no runs."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from polygrad.errors import ArgumentError
from polygrad.nn.sealed_files import Snapshot, write_snapshot

_NAME = re.compile(r"step-(\d{9})(?:-(\d{5})-of-(\d{5}))?\.safetensors(\.[0-9a-f]{12})?")


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
        checkpoints: dict[tuple[int, int], dict[int, Path]] = {}
        for path, name in self._files():
            if not name.unfinished:
                checkpoints.setdefault((name.step, name.shards), {})[name.shard] = path
        return {
            step: [files[i] for i in range(shards)]
            for (step, shards), files in sorted(checkpoints.items())
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
        files = [(self.path / name, _parsed(name)) for name in sorted(os.listdir(self.path))]
        return [(path, name) for path, name in files if name is not None]


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
