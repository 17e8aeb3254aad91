"""SIGTERM as a question that a loop asks between two steps, instead of the end of the process."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def termination(is_asked: bool = True) -> Iterator[Callable[[], bool]]:
    """Within the block, SIGTERM has no other effect than that the function it gives returns True. Afterwards
    the signal's handler is the one of before.

    Nothing is changed unless `is_asked`, in threads other than the main one, and where there are no signals.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not is_asked or not in_main_thread or sys.platform == "emscripten":
        yield lambda: False
        return
    came: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: came.append(number))
    try:
        yield lambda: bool(came)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)
