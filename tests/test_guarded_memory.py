"""The guards of `guarded_memory` see what is written beside a buffer, and what is touched further away."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys

import guarded_memory
import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no mprotect")


@pytest.mark.parametrize("nbytes", [1, 63, 64, 4096, 5000])
@pytest.mark.parametrize("beside", [-64, -1, 0, 63])
def test_a_byte_beside_a_buffer_is_seen_when_it_is_freed(nbytes: int, beside: int) -> None:
    address, owner = guarded_memory._map(nbytes)
    assert address % 64 == 0
    ctypes.memset(address, 7, nbytes)
    del owner
    assert guarded_memory.violations() == []
    address, owner = guarded_memory._map(nbytes)
    ctypes.memset(address + beside if beside < 0 else address + nbytes + beside, 7, 1)
    del owner
    (seen,) = guarded_memory.violations()
    assert seen.startswith(f"buffer of {nbytes} bytes: bytes ")
    assert guarded_memory.violations() == []


def test_what_is_further_away_ends_the_process() -> None:
    program = (
        "import ctypes, guarded_memory\n"
        "address, owner = guarded_memory._map(100)\n"
        "print(len(ctypes.string_at(address, 100 + 64)), flush=True)\n"
        "ctypes.string_at(address + 100 + 128)\n"
    )
    path = os.pathsep.join([os.path.dirname(guarded_memory.__file__), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert (done.returncode, done.stdout) == (-signal.SIGSEGV, "164\n"), done.stderr
