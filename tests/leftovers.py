"""What a process still has after some work: open files, threads, processes, temporary files. For tests."""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import re
import shutil
import stat
import tempfile
import threading
import time
from pathlib import Path

from polygrad.uop.intern import collect

ENABLED = os.environ.get("POLYGRAD_TEST_LEFTOVERS") == "1"
_PATIENCE = 3.0  # seconds in which what is about to end may do so
# Threads that stay: polygrad's own, one pool each, and those of libraries. (wgpu has one for each device.)
_POOLS = re.compile(r"polygrad-(compiler|runner|collectives|\d+)|pydevd|asyncio_|execnet|tqdm_")
Snapshot = set[tuple[str, str]]


def use_own_temporary_folder() -> None:
    """From now on this process and its children have a folder of their own for temporary files, so that what
    others leave does not count. What tests keep between runs is in `POLYGRAD_TEST_CACHE`."""
    os.environ.setdefault("POLYGRAD_TEST_CACHE", tempfile.gettempdir())
    folder = tempfile.mkdtemp(prefix="polygrad-tests-", dir=os.environ["POLYGRAD_TEST_CACHE"])
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["TMPDIR"], tempfile.tempdir = folder, None


def snapshot() -> Snapshot:
    """What this process has now, by kind."""
    return {*_files(), *_threads(), *_processes(), *_temporary_files()}


def since(before: Snapshot) -> list[str]:
    """What there is that was not there before."""
    end = time.monotonic() + _PATIENCE
    while True:
        left = sorted(snapshot() - before)
        if not left or time.monotonic() > end:
            return [f"{kind} {what}" for kind, what in left]
        gc.collect()
        collect()  # nodes hold mapped files
        time.sleep(0.05)


def _files() -> Snapshot:
    """Regular files, folders, pipes and sockets that are open. (Memory, devices and epolls are drivers'.)"""
    found: Snapshot = set()
    for name in os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else ():
        try:
            mode, target = os.stat(f"/proc/self/fd/{name}").st_mode, os.readlink(f"/proc/self/fd/{name}")
        except OSError:  # that of the listing itself
            continue
        if target.startswith("/memfd:"):
            continue
        if stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
            found.add(("file", f"{name} -> {target}"))
    return found


def _threads() -> Snapshot:
    return {
        ("thread", f"{t.name} ({t.ident})")
        for t in threading.enumerate()
        if not _POOLS.match(t.name) and not type(t).__module__.startswith("wgpu.")
    }


def _processes() -> Snapshot:
    found: Snapshot = set()
    children: list[str] = []
    for task in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):  # the thread has ended
            children += task.read_text().split()
    for pid in children:
        with contextlib.suppress(OSError):  # the process has ended
            command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
            found.add(("process", f"{pid} {command.decode(errors='replace')[:200]}"))
    return found


def _temporary_files() -> Snapshot:
    """Those that polygrad makes, and those of compilers, in the folder for temporary files. pytest's own are
    deleted with the folder."""
    names = os.listdir(tempfile.gettempdir())
    return {("temporary file", name) for name in names if name.startswith(("polygrad-", "cc"))}
