"""Running a loaded Program: the one place where a thread waits for a device."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from polygrad.monitor import released
from polygrad.runtime.interface import Executable, Handle

# Where a Program took less than this the last time, letting other threads in costs more than they gain.
_SHORT_SECONDS = 1e-3


def run_program(
    executable: Executable,
    buffers: Sequence[Handle | None],
    arena: Handle | None,
    variables: Mapping[str, int],
) -> None:
    """`executable.run`. Unless it is known to be short, other threads build graphs meanwhile."""
    started = time.perf_counter()
    if executable.seconds < _SHORT_SECONDS:
        executable.run(buffers, arena, variables)
    else:
        with released():
            executable.run(buffers, arena, variables)
    executable.seconds = time.perf_counter() - started
