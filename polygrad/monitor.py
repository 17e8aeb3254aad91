"""The monitor: the one lock that lets every thread of a program build and compute graphs.

A thread holds the lock inside every method of a Tensor, so graphs, caches and what Tensors share change one
method at a time. While a Program runs that takes long, its thread lets go of the lock: others build
graphs, and wait (`wait_until_idle`) before they compute or write anything. So Programs run one at a time, in
the order in which they were asked for. What must be undisturbed as a whole, a capture, is `exclusive`.

Finalizers run in any thread and in the middle of anything, and must not wait: they `defer` what they do.

A fork waits until no other thread is inside, so the child finds everything whole. Where there are no threads
(inside Pyodide) there is no lock. Knows nothing of what it protects. The idea is Hoare's (1974).
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

HAS_THREADS = sys.platform != "emscripten"


class _State:
    running = False  # a Program runs, and its thread does not hold the lock
    exclusive = 0  # how many `exclusive` blocks the thread that holds the lock is inside of


lock: Any = threading.RLock()  # what `synchronized` holds, for where a call more would cost too much
_idle = threading.Condition(lock)
_deferred: deque[Callable[[], object]] = deque()


def synchronized(function: Callable[P, R]) -> Callable[P, R]:
    """A decorator: the function holds the lock."""
    if not HAS_THREADS:
        return function

    @functools.wraps(function)
    def locked(*args: P.args, **kwargs: P.kwargs) -> R:
        with lock:
            return function(*args, **kwargs)

    return locked


def computing(function: Callable[P, R]) -> Callable[P, R]:
    """A decorator: the function holds the lock, and begins when no other thread's Program runs."""
    if not HAS_THREADS:
        return function

    @functools.wraps(function)
    def locked(*args: P.args, **kwargs: P.kwargs) -> R:
        with lock:
            if _State.running:
                wait_until_idle()
            return function(*args, **kwargs)

    return locked


def synchronize_methods(cls: type) -> None:
    """Let the public methods and operators of a class hold the lock.

    Properties and `__hash__` do not, as they read one thing that never changes; nor do context managers,
    which would hold it for no longer than it takes to make them.
    """
    if not HAS_THREADS:
        return
    for name, member in list(vars(cls).items()):
        if (name.startswith("_") and not name.endswith("__")) or name == "__hash__":
            continue
        if isinstance(member, (classmethod, staticmethod)):
            if not inspect.isgeneratorfunction(inspect.unwrap(member.__func__)):
                setattr(cls, name, type(member)(synchronized(member.__func__)))
        elif inspect.isfunction(member):
            setattr(cls, name, synchronized(member))


def wait_until_idle() -> None:
    """Wait, without the lock, until no other thread's Program runs. The caller holds the lock."""
    while _State.running:
        _idle.wait()


@contextlib.contextmanager
def released() -> Iterator[None]:
    """`with released():` what runs inside needs no lock; other threads may hold it. The caller holds it, and
    no Program runs. Inside `exclusive` nothing is released."""
    if _State.exclusive or not HAS_THREADS:
        yield
        return
    _State.running = True
    levels = lock._release_save()  # all that this thread holds, as Condition.wait does
    try:
        yield
    finally:
        lock._acquire_restore(levels)
        _State.running = False
        _idle.notify_all()


@contextlib.contextmanager
def exclusive() -> Iterator[None]:
    """`with exclusive():` no other thread builds, computes or writes anything until the end."""
    with lock:
        wait_until_idle()
        _State.exclusive += 1
        try:
            yield
        finally:
            _State.exclusive -= 1


def defer(action: Callable[[], object]) -> None:
    """Do what a finalizer is to do: now if no other thread is inside, else before memory is next
    allocated."""
    _deferred.append(action)
    if lock.acquire(blocking=False):
        try:
            run_deferred()
        finally:
            lock.release()


def run_deferred() -> None:
    """Do what finalizers deferred. The caller holds the lock."""
    while _deferred:
        try:
            action = _deferred.popleft()
        except IndexError:  # a finalizer in between has done it
            return
        action()


def _before_fork() -> None:
    lock.acquire()
    wait_until_idle()


if HAS_THREADS and hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=lock.release, after_in_child=lock.release)
