"""What a reader does wrong: another error than ours, more than a second, or memory beyond the file's size."""

from __future__ import annotations

import signal
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from polygrad.errors import PolygradError

SECONDS = 1.0  # of the process's own time, so that others do not count
BYTES_A_BYTE, BYTES_BESIDE = 200, 4 << 20  # of memory for a byte of a file, and for any file


class TooLongError(BaseException):
    """A reader has no end, or a late one."""


@contextmanager
def _limited_time() -> Iterator[None]:
    def late(number: int, frame: FrameType | None) -> None:
        raise TooLongError(f"no end after {10 * SECONDS} seconds")

    before = signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, 10 * SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def verdict(read: Callable[[bytes], object], data: bytes, measured: bool = False) -> tuple[bool, str]:
    """Whether a file is read, and what is wrong with how it is: empty if nothing. `measured`: memory too,
    which takes some times as long."""
    if measured:
        tracemalloc.start()
    start = time.thread_time()
    try:
        with _limited_time():
            read(data)
        is_read, wrong = True, ""
    except PolygradError as e:
        is_read, wrong = False, f"internal: {e}" if "internal:" in str(e) else ""
    except KeyboardInterrupt:
        raise
    except BaseException as e:  # also panics of libraries
        is_read, wrong = False, f"{type(e).__name__}: {e}"
    seconds = time.thread_time() - start
    if measured:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        if peak > BYTES_A_BYTE * len(data) + BYTES_BESIDE:
            wrong = wrong or f"{peak} bytes of memory for a file of {len(data)}"
    elif seconds > SECONDS:
        wrong = wrong or f"{seconds:.1f} seconds for {len(data)} bytes"
    return is_read, wrong
