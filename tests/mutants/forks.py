"""Work in a process that begins where this one is, with bounds."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_DATA_BYTES = 8 << 30
_LONGEST = 20.0  # seconds of a processor on top, for the test that runs when the time is over
_SLOW = 6  # times as long as on a machine of one's own


@dataclass(frozen=True)
class _Done:
    """How a fork ended: None for a status if it took too long, a negative one for a signal."""

    status: int | None
    answer: Any
    seconds: float  # of processors


def in_fork(work: Callable[[], Any], seconds: float, files: Path) -> _Done:
    """Do `work`, which gives JSON, in a process that begins where this one is. `files` begins its files."""
    answer = Path(f"{files}.answer")
    answer.unlink(missing_ok=True)
    pid = os.fork()
    if not pid:
        os.setsid()
        output = os.open(f"{files}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        status, limit = 1, int(seconds + _LONGEST)
        try:
            resource.setrlimit(resource.RLIMIT_DATA, (_DATA_BYTES, _DATA_BYTES))
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))  # it begins at 0 in a fork
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            answer.write_text(json.dumps(work()))
            status = 0
        finally:
            sys.stdout.flush()
            os._exit(status)
    end, done = time.monotonic() + _SLOW * (seconds + _LONGEST), 0
    while not done and time.monotonic() < end:
        time.sleep(0.01)
        done, code, usage = os.wait4(pid, os.WNOHANG)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)  # also what its tests started
    if not done:
        _, code, usage = os.wait4(pid, 0)
    status = os.waitstatus_to_exitcode(code) if done else None
    return _Done(
        None if status in (None, -signal.SIGXCPU, -signal.SIGKILL) else status,
        json.loads(answer.read_text()) if status == 0 else None,
        usage.ru_utime + usage.ru_stime,
    )
