"""Writes checkpoints while training goes on: each rank its share, in a thread of its own."""

from __future__ import annotations

import functools
import os
import secrets
import threading
from collections.abc import Callable
from pathlib import Path

from polygrad.monitor import HAS_THREADS
from polygrad.training.checkpoint import Contents
from polygrad.training.checkpoint_files import CheckpointFolder
from polygrad.training.ranks import gathered, of_rank_0, rank, size


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


class CheckpointWriter:
    """The checkpoints of a run in a folder. All ranks call its methods, in the same steps.

    `background`: `save` returns when the state is copied, and what was begun before is written.
    """

    def __init__(self, path: str | os.PathLike[str], keep: int, background: bool) -> None:
        self.path, self._keep, self._background = Path(path), keep, background
        self._thread = BackgroundWriter()
        self._attempt = ""

    def newest(self) -> Path | None:
        """A file of the newest checkpoint; None where there is none."""
        complete = CheckpointFolder(self.path).complete()
        newest = of_rank_0(str(complete[max(complete)][0]) if complete else None, "newest checkpoint")
        return None if newest is None else Path(newest)

    def begin(self, step: int) -> None:
        """Before the first step after `step`: see `CheckpointFolder.begin`."""
        self._folder().begin(step)
        self._attempt = of_rank_0(secrets.token_hex(8), "checkpoints")

    def save(self, step: int, contents: Contents) -> None:
        """Write a checkpoint, of which each rank has a share. Raises OSError, of the file before as well."""
        self._thread.wait()
        gathered(step, "checkpoint")  # here ranks wait for those whose disks are slower
        snapshot = contents.share(rank(), size(), self._attempt)
        self._thread.start(functools.partial(self._folder().write, step, snapshot))
        if not self._background:
            self._thread.wait()

    def wait(self) -> None:
        """Wait for this rank's file. Raises OSError."""
        self._thread.wait()

    def _folder(self) -> CheckpointFolder:
        return CheckpointFolder(self.path, self._keep, rank(), size())
