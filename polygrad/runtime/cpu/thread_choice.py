"""How many threads run a Program: all that may, or fewer as long as those are faster.

Threads of a team wait for each other. If another process takes a processor away from one of them, the others
wait until the system gives it back, which is some milliseconds: then fewer threads are faster. Nothing says
so beforehand, so the runs are timed. A *block* is a number of runs with one count of threads. After a block
that took longer than blocks before, and now and then in any case, a few runs have half as many threads. If
they are faster than the block, the Program has that many threads for a *pause*, and then a block with more
again, which ends as soon as it is the slower one. Each pause is twice as long as the one before, and half as
long after a block in which more threads were faster.

Results do not depend on the number of threads. Knows neither threads nor Programs.
"""

from __future__ import annotations

BLOCK, SAMPLE = 16, 2  # runs of a block; runs with fewer threads that are compared with it
MAX_BLOCKS = 256  # between two samples
SLOWER = 1.25  # factor by which a block takes longer than the fastest one, so that fewer threads are tried
LONG_RUN = 0.25  # seconds from which on no run has fewer threads: in a long one, waiting is a small part
FIRST_PAUSE, LONGEST_PAUSE, PAUSE_RUNS = 20e-3, 2.0, 8 * BLOCK  # seconds; the least runs of a pause


class ThreadChoice:
    """The choice for one Program. Each run asks `count`, and reports what it took to `record`."""

    __slots__ = (
        "_blocks",
        "_count",
        "_fastest",
        "_fewer_seconds",
        "_limit",
        "_mean",
        "_pause",
        "_pause_left",
        "_pause_runs",
        "_runs",
        "_seconds",
        "_wait",
    )

    _fewer_seconds: float | None  # of a run with half as many threads, after a pause with those
    _mean: float | None  # of the block that runs with half as many threads are compared with

    def __init__(self) -> None:
        self._start(1)

    def count(self, limit: int) -> int:
        """The number of threads of the next run; `limit`: as many may run."""
        if limit != self._limit:
            self._start(limit)
        return self._count if self._mean is None else self._count // 2

    def record(self, seconds: float) -> None:
        """The time that a run took with the number of threads that `count` gave."""
        self._runs += 1
        self._seconds += seconds
        if self._mean is not None:
            if self._runs == SAMPLE:
                self._compare(self._mean)
            return
        self._pause_left -= seconds
        self._pause_runs += 1
        is_over = self._pause_left <= 0 and self._pause_runs >= PAUSE_RUNS
        if self._fewer_seconds is not None and self._seconds > BLOCK * self._fewer_seconds:
            self._use_fewer()
        elif self._count < self._limit and is_over and self._fewer_seconds is None:
            fewer_seconds = self._seconds / self._runs
            self._use(min(2 * self._count, self._limit))
            self._fewer_seconds = fewer_seconds
        elif self._runs == BLOCK and self._count > 1:
            self._end_block(self._seconds / BLOCK)

    def _start(self, limit: int) -> None:
        self._limit, self._pause = limit, FIRST_PAUSE
        self._use(limit)

    def _use(self, count: int) -> None:
        """Use so many threads from now on, until the end of a pause if that is not all."""
        self._count = count
        self._pause_left, self._pause_runs = self._pause, 0
        self._fewer_seconds = None
        self._fastest = float("inf")  # mean of the fastest block
        self._blocks, self._wait = 0, 1  # since fewer threads were tried; until they are tried
        self._begin_block()

    def _use_fewer(self) -> None:
        self._use(self._count // 2)
        self._pause = min(2 * self._pause, LONGEST_PAUSE)

    def _begin_block(self) -> None:
        self._mean = None
        self._runs, self._seconds = 0, 0.0

    def _end_block(self, mean: float) -> None:
        self._fewer_seconds = None
        self._pause = max(self._pause / 2, FIRST_PAUSE)
        self._blocks += 1
        is_slow = mean > SLOWER * self._fastest
        self._fastest = min(self._fastest, mean)
        self._begin_block()
        if (is_slow or self._blocks >= self._wait) and mean < LONG_RUN:
            self._mean = mean

    def _compare(self, mean: float) -> None:
        """Use fewer threads if runs with them were faster than the block before."""
        if self._seconds < SAMPLE * mean:
            self._use_fewer()
            return
        self._blocks, self._wait, self._fastest = 0, min(2 * self._wait, MAX_BLOCKS), mean
        self._begin_block()
