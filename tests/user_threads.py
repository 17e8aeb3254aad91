"""Threads of the user's program, for tests."""

from __future__ import annotations

import contextlib
import faulthandler
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def switching_often() -> Iterator[None]:
    """`with switching_often():` the interpreter switches threads as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def in_threads(work: Callable[[int], None], count: int, seconds: float = 240) -> None:
    """Call `work(i)` in `count` threads that start together; the first failure is raised, with all shown.

    Threads that have not ended after `seconds` fail, and all stacks are shown: they wait for each other.
    """
    start, failures = threading.Barrier(count), list[BaseException]()

    def main(i: int) -> None:
        try:
            start.wait()
            work(i)
        except BaseException as e:
            traceback.print_exc()
            failures.append(e)

    threads = [threading.Thread(target=main, args=(i,), daemon=True) for i in range(count)]
    for t in threads:
        t.start()
    end = time.monotonic() + seconds
    for t in threads:
        t.join(max(0.0, end - time.monotonic()))
    if failures:
        raise failures[0]
    if stuck := [t.name for t in threads if t.is_alive()]:
        faulthandler.dump_traceback(sys.__stderr__)
        raise AssertionError(f"after {seconds} s these threads have not ended: {', '.join(stuck)}")
