"""The threads of the CPU device: Python threads that run their share of jobs natively, without the
interpreter.

They start with the first job. After each job they stay awake for a tenth of a millisecond, and a job costs a
microsecond or two while they are awake. Then they wait in Python, and waking them takes some fifty
microseconds. A caller that finds the team busy (with another Python thread's job, or because the interpreter
exits) runs its job on one thread.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from polygrad.runtime.cpu import native
from polygrad.runtime.threads import MAX_THREADS

_SPIN_SECONDS = 150e-6  # for which a worker spins before it sleeps
_LINE = 64
_POSTED = (
    native.WORKERS + native.WORDS_PER_WORKER + native.POSTED
)  # of worker 1, which takes part in all jobs

_StartJob = ctypes.CFUNCTYPE(
    ctypes.c_int64, *[ctypes.c_void_p] * 4, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64
)
_FinishJob = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_ServeJobs = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)


class PartCounters:
    """Memory for a job's part counters: one for each of the `launches` with parts and each of up to `threads`
    threads."""

    def __init__(self, launches: int, threads: int) -> None:
        self._memory = (ctypes.c_char * (_LINE * (launches * threads + 1)))()
        self.address = -(-ctypes.addressof(self._memory) // _LINE) * _LINE
        self.launches = launches


class Jobs:
    """An object whose `len` is `count` if the team has posted jobs since it was made, else 0."""

    __slots__ = ("_before", "_count", "_words")

    def __init__(self, words: Any, count: int) -> None:
        self._words, self._count, self._before = words, count, words[_POSTED]

    def __len__(self) -> int:
        return self._count if self._words[_POSTED] != self._before else 0


class Team:
    """`link(names)`: the addresses of functions of `native.team_text()`, which stay as long as `link`."""

    def __init__(self, link: Callable[[list[str]], list[int]]) -> None:
        self._link = link
        names = ["barrier", "run_parts", "start_job", "finish_job", "serve_jobs", "run_list"]
        self._barrier, self._run_parts, start, finish, serve, self.run_list = link(names)
        self._start_job, self._finish_job = _StartJob(start), _FinishJob(finish)
        self._serve_jobs = _ServeJobs(serve)
        self._initialise()
        _teams.add(self)

    def _initialise(self) -> None:
        """Allocate the team's memory, without workers."""
        words = native.WORKERS + native.WORDS_PER_WORKER * MAX_THREADS
        self._memory = (ctypes.c_int64 * (words + _LINE // 8))()
        base = ctypes.addressof(self._memory)
        self._base = -(-base // _LINE) * _LINE
        self._words = (ctypes.c_int64 * words).from_address(self._base)
        self._words[native.BARRIER], self._words[native.RUN_PARTS] = self._barrier, self._run_parts
        self._words[native.YIELD] = _yield_address()
        self._words[native.SPIN_LIMIT] = self._spin_limit()
        self._busy = threading.Lock()
        self._workers = _Workers()
        self._stop = weakref.finalize(
            self, _join_workers, self._workers, self._busy, self._memory, self._link
        )

    def _spin_limit(self) -> int:
        """The number of spins in `_SPIN_SECONDS`, which differs tenfold between processors. It is measured as
        worker 0, which does not exist otherwise.
        """
        spins = self._words[native.SPIN_LIMIT] = 1000
        seconds = []
        for _ in range(3):
            start = time.perf_counter()
            self._serve_jobs(self._base, 0)
            seconds.append(time.perf_counter() - start)
        return max(spins, int(spins * _SPIN_SECONDS / min(seconds)))

    def jobs_since_now(self, count: int) -> Jobs:
        """An object whose length is `count` as soon as another job is posted; a job that starts always
        ends."""
        return Jobs(self._words, count)

    def run(self, job: int, a: int, b: int, threads: int, counters: PartCounters | None = None) -> bool:
        """Run a job (the address of its function) on `threads` threads. False: the team is busy, and the job
        was not run.

        `counters`: of the launches that have parts.
        """
        address, lines = (counters.address, counters.launches * threads) if counters else (None, 0)
        if not self._busy.acquire(blocking=False):
            return False
        try:
            if len(self._workers.threads) < threads - 1 and not self._grow(threads):
                return False
            try:
                self._start_job(self._base, job, a, b, threads, address, lines)
            finally:  # even after an interrupt, because workers that have begun wait for all threads
                if self._words[native.OPEN]:
                    self._wake(threads)
                    self._finish_job(self._base)
            return True
        finally:
            self._busy.release()

    def _wake(self, threads: int) -> None:
        self._workers.leave_caller_processor(threads - 1)
        for t in range(1, threads):
            if self._words[native.WORKERS + native.WORDS_PER_WORKER * t + native.STATE] == native.WOKEN:
                self._workers.wakeups[t - 1].release()

    def _grow(self, threads: int) -> bool:
        workers = self._workers
        if workers.closed:
            return False
        for t in range(len(workers.threads) + 1, threads):
            wakeup = threading.Lock()
            wakeup.acquire()
            state = native.WORKERS + native.WORDS_PER_WORKER * t + native.STATE
            self._words[state] = native.ASLEEP
            arguments = (workers, wakeup, self._serve_jobs, self._base, t)
            thread = threading.Thread(target=_worker_main, args=arguments, name=f"polygrad-{t}", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the system has no more threads, or the interpreter is exiting
                return False
            workers.threads.append(thread)
            workers.wakeups.append(wakeup)
        return True


class _Workers:
    """The workers' threads; a worker that sleeps waits for its lock in `wakeups`."""

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []
        self.wakeups: list[threading.Lock] = []
        self.closed = False
        self._placed_for = (-1, 0)

    def leave_caller_processor(self, count: int) -> None:
        """Exclude the caller's processor from the affinity of the first `count` workers, if there are enough
        other processors. Systems tend to wake a thread on the processor of its waker, and on a busy machine
        the two would take turns there.
        """
        if _processor is None:
            return
        placement = (_processor(), count)
        if placement == self._placed_for:
            return
        self._placed_for = placement
        try:
            processors = os.sched_getaffinity(0)
            other_processors = processors - {placement[0]}
            for thread in self.threads[:count]:
                os.sched_setaffinity(
                    thread.native_id or 0, other_processors if len(other_processors) >= count else processors
                )
        except OSError:  # not permitted
            pass


def _worker_main(workers: _Workers, wakeup: Any, serve_jobs: Any, base: int, thread: int) -> None:
    while True:
        wakeup.acquire()
        if workers.closed:
            return
        serve_jobs(base, thread)


def _join_workers(workers: _Workers, busy: Any, *kept_alive: object) -> None:
    """End the workers, at the latest when the interpreter exits: none may be in native code after that.
    `used`: the objects that the finalizer keeps alive for them until then.
    """
    with busy:
        workers.closed = True
        for wakeup in workers.wakeups:
            wakeup.release()
        for thread in workers.threads:
            if thread is not threading.current_thread():
                thread.join()
        workers.threads.clear()
        workers.wakeups.clear()


def _yield_address() -> int:
    if os.name == "nt":
        function = ctypes.WinDLL("kernel32").SwitchToThread  # type: ignore[attr-defined,unused-ignore]
    else:
        function = ctypes.CDLL(None).sched_yield
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _processor_function() -> Callable[[], int] | None:
    """A function that gives the caller's processor; None where threads have no affinity."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    function = getattr(ctypes.CDLL(None), "sched_getcpu", None)
    if function is not None:
        function.restype, function.argtypes = ctypes.c_int, []
    return function


_processor = _processor_function()
_teams: weakref.WeakSet[Team] = weakref.WeakSet()


def _in_child() -> None:
    """Make new teams in a forked process, which has no threads."""
    for team in list(_teams):
        team._stop.detach()
        team._initialise()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
