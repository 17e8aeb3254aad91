"""The threads of the CPU device: Python threads that do their share of jobs natively, without the
interpreter.

They start when they are first needed. A job costs a microsecond or two while they are awake, which they are
for a tenth of a millisecond after each; then they wait in Python, and waking them takes some fifty. Who finds
the team busy (another Python thread's job, an exiting interpreter) does its work alone.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from polygrad.runtime import cpu_native as native
from polygrad.runtime.threads import MOST_THREADS

_PATIENCE = 150e-6  # seconds for which a worker looks for work
_LINE = 64

_Start = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 4, ctypes.c_int64)
_Finish = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_Serve = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)


class Team:
    """`link(names)`: the addresses of functions of `cpu_native.team_text()`, which stay as long as `link`."""

    def __init__(self, link: Callable[[list[str]], list[int]]) -> None:
        self._link = link
        names = ["meet", "start", "finish", "serve", "run_list"]
        self._meet, start, finish, serve, self.run_list = link(names)
        self._start, self._finish, self._serve = _Start(start), _Finish(finish), _Serve(serve)
        self._begin()
        _teams.add(self)

    def _begin(self) -> None:
        """Nobody is there: memory of its own, and no threads."""
        words = native.WORKERS + native.WORDS_PER_WORKER * MOST_THREADS
        self._memory = (ctypes.c_int64 * (words + _LINE // 8))()
        base = ctypes.addressof(self._memory)
        self._base = -(-base // _LINE) * _LINE
        self._words = (ctypes.c_int64 * words).from_address(self._base)
        self._words[native.MEET] = self._meet
        self._words[native.YIELD] = _yield_address()
        self._words[native.PATIENCE] = self._patience()
        self._busy = threading.Lock()
        self._crew = _Crew()
        self._stop = weakref.finalize(self, _dismiss, self._crew, self._busy, self._memory, self._link)

    def _patience(self) -> int:
        """How many spins a worker has patience for: processors differ tenfold in how long one takes. Measured
        as worker 0, who is nobody.
        """
        spins = self._words[native.PATIENCE] = 1000
        seconds = []
        for _ in range(3):
            start = time.perf_counter()
            self._serve(self._base, 0)
            seconds.append(time.perf_counter() - start)
        return max(spins, int(spins * _PATIENCE / min(seconds)))

    def run(self, job: int, a: int, b: int, threads: int) -> bool:
        """Have `threads` threads do a job (the address of its function); False: they cannot, do it alone."""
        if not self._busy.acquire(blocking=False):
            return False
        try:
            if len(self._crew.threads) < threads - 1 and not self._grow(threads):
                return False
            try:
                self._start(self._base, job, a, b, threads)
            finally:  # whatever happens (an interrupt): who has begun must find the others
                if self._words[native.OPEN]:
                    self._wake(threads)
                    self._finish(self._base)
            return True
        finally:
            self._busy.release()

    def _wake(self, threads: int) -> None:
        self._crew.make_way(threads - 1)
        for t in range(1, threads):
            if self._words[native.WORKERS + native.WORDS_PER_WORKER * t + native.STATE] == native.WOKEN:
                self._crew.bells[t - 1].release()

    def _grow(self, threads: int) -> bool:
        crew = self._crew
        if crew.closed:
            return False
        for t in range(len(crew.threads) + 1, threads):
            bell = threading.Lock()
            bell.acquire()
            state = native.WORKERS + native.WORDS_PER_WORKER * t + native.STATE
            self._words[state] = native.ASLEEP
            arguments = (crew, bell, self._serve, self._base, t)
            thread = threading.Thread(target=_work, args=arguments, name=f"polygrad-{t}", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the system has no more, or the interpreter is exiting
                return False
            crew.threads.append(thread)
            crew.bells.append(bell)
        return True


class _Crew:
    """The workers; the bell of one that sleeps is a lock that it waits for."""

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []
        self.bells: list[threading.Lock] = []
        self.closed = False
        self._avoided = (-1, 0)

    def make_way(self, workers: int) -> None:
        """Keep the workers off the caller's processor, if there are others enough: systems like to wake a
        thread where its waker runs, and on a busy machine the two would take turns there.
        """
        if _processor is None:
            return
        here = (_processor(), workers)
        if here == self._avoided:
            return
        self._avoided = here
        try:
            allowed = os.sched_getaffinity(0)
            others = allowed - {here[0]}
            for thread in self.threads[:workers]:
                os.sched_setaffinity(thread.native_id or 0, others if len(others) >= workers else allowed)
        except OSError:  # not for us to say
            pass


def _work(crew: _Crew, bell: Any, serve: Any, base: int, thread: int) -> None:
    while True:
        bell.acquire()
        if crew.closed:
            return
        serve(base, thread)


def _dismiss(crew: _Crew, busy: Any, *used: object) -> None:
    """Send the workers home, at the latest when the interpreter exits: none may be in native code after
    that. What they use lives until then.
    """
    with busy:
        crew.closed = True
        for bell in crew.bells:
            bell.release()
        for thread in crew.threads:
            if thread is not threading.current_thread():
                thread.join()
        crew.threads.clear()
        crew.bells.clear()


def _yield_address() -> int:
    if os.name == "nt":
        function = ctypes.WinDLL("kernel32").SwitchToThread  # type: ignore[attr-defined,unused-ignore]
    else:
        function = ctypes.CDLL(None).sched_yield
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _processor_function() -> Callable[[], int] | None:
    """What tells the processor that the caller runs on, where threads can be kept from one."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    function = getattr(ctypes.CDLL(None), "sched_getcpu", None)
    if function is not None:
        function.restype, function.argtypes = ctypes.c_int, []
    return function


_processor = _processor_function()
_teams: weakref.WeakSet[Team] = weakref.WeakSet()


def _in_child() -> None:
    """Threads do not live through a fork: the child starts anew."""
    for team in list(_teams):
        team._stop.detach()
        team._begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
