"""The monitor: the one lock that lets every thread of a program build and compute graphs.

A thread holds the lock inside every method of a Tensor, so graphs, caches and what Tensors share change one
method at a time. While a Program runs that takes long, its thread lets go of the lock: others build
graphs, and wait (`wait_until_idle`) before they compute or write anything. So Programs run one at a time, in
the order in which they were asked for. What must be undisturbed as a whole, a capture, is `exclusive`.

Finalizers run in any thread and in the middle of anything, and must not wait: they `defer` what they do.

A signal's handler may raise anywhere: the interpreter calls it where a function begins, after a call, and at
the end of a loop's body. So what takes and gives back the lock is written such that no such place is between
a change and the `try` that undoes it: calls of C, and neither generators nor `__exit__` in Python.

A fork waits until no other thread is inside, so the child finds everything whole. Where there are no threads
(inside Pyodide) there is no lock. Knows nothing of what it protects. The idea is Hoare's (1974).
"""

from __future__ import annotations

import functools
import inspect
import os
import queue
import sys
import threading
from collections import deque
from collections.abc import Callable, Collection
from itertools import starmap
from typing import Any, ParamSpec, TypeAlias, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")
# Of a function, its arguments and its error: what the call was to give; or raises what explains it.
Recover: TypeAlias = Callable[[Callable[..., Any], Any, Any, Exception], Any]

# Calls a function with its arguments.
Observer: TypeAlias = Callable[[Callable[..., Any], Any, Any], Any]

HAS_THREADS = sys.platform != "emscripten"


class _LockState:
    running = False  # a Program runs, and its thread does not hold the lock
    computing = 0  # how many `computing` functions the one thread that is inside of any is inside of
    exclusive = 0  # how many `exclusive` blocks it is inside of
    overdue = False  # a thread has waited for the lock for long: who wants it now lets it pass
    observers: tuple[Observer, ...] = ()
    observer: Observer | None = None  # all of them; calls the methods of `synchronize_methods`


_PATIENCE = 5e-3  # seconds: as long as the interpreter lets a thread run by default

lock: Any = threading.RLock()  # what `synchronized` holds, for where a call more would cost too much
_acquire, _release = lock.acquire, lock.release
_release_save, _acquire_restore = lock._release_save, lock._acquire_restore
_ONCE = ((),)
_overdue = threading.Lock()  # held by the one overdue thread
# For each thread that waits for another's Program, or behind one that does, what it waits on; `put` wakes it.
_queue: deque[queue.SimpleQueue[None]] = deque()
_deferred: deque[Callable[[], object]] = deque()


def synchronized(function: Callable[P, R]) -> Callable[P, R]:
    """A decorator: the function holds the lock."""
    if not HAS_THREADS:
        return function

    @functools.wraps(function)
    def locked(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            is_acquired = not _LockState.overdue and _acquire(False)
        except BaseException:
            _release_what_came()
            raise
        if not is_acquired:
            _acquire_in_turn()
        try:
            return function(*args, **kwargs)
        finally:
            _release()

    return locked


def computing(function: Callable[P, R]) -> Callable[P, R]:
    """A decorator: the function holds the lock, and begins when no other thread's Program runs."""
    if not HAS_THREADS:
        return function

    @functools.wraps(function)
    def locked(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            is_acquired = not _LockState.overdue and _acquire(False)
        except BaseException:
            _release_what_came()
            raise
        if not is_acquired:
            _acquire_in_turn()
        try:
            if _LockState.running or _queue:
                wait_until_idle()
            _LockState.computing += 1
            try:
                return function(*args, **kwargs)
            finally:
                _LockState.computing -= 1
                if _queue and not _LockState.computing:
                    _queue[0].put(None)
        finally:
            _release()

    return locked


def exclusive(function: Callable[P, R]) -> Callable[P, R]:
    """A decorator: while the function runs, no other thread builds, computes or writes anything."""
    if not HAS_THREADS:
        return function

    def alone(*args: P.args, **kwargs: P.kwargs) -> R:
        _LockState.exclusive += 1
        try:
            return function(*args, **kwargs)
        finally:
            _LockState.exclusive -= 1

    return functools.wraps(function)(computing(alone))


def _release_what_came() -> None:
    """Release the lock after an exception that came when `_acquire(False)` had returned: what another thread
    owns was not acquired, and what this one owned before was acquired once more."""
    if lock._is_owned():
        _release()


def _acquire_in_turn() -> None:
    """Acquire the lock, which others want, or nothing if it raises. Locks are not fair: a thread that lets go
    of one and wants it again has it before those that have to wake up first. So all let one pass that has
    waited for long."""
    if lock._is_owned():
        try:
            _acquire()
        except BaseException:
            _release()
            raise
        return
    try:
        if _LockState.overdue or not _acquire(timeout=_PATIENCE):
            with _overdue:
                _LockState.overdue = True
                try:
                    _acquire()
                finally:
                    _LockState.overdue = False
    except BaseException:
        _release_what_came()
        raise


def synchronize_methods(
    cls: type, errors: tuple[type[Exception], ...], recover: Recover, also: Collection[str] = ()
) -> None:
    """Let the public methods and operators of a class, and private ones named in `also`, hold the lock, and
    do what `recover` does after one of `errors`.

    Properties, `__getattr__` and `__hash__` do not, as they read one thing that never changes; nor do context
    managers, which would hold it for no longer than it takes to make them.
    """
    for name, member in list(vars(cls).items()):
        is_private = name.startswith("_") and not name.endswith("__") and name not in also
        if is_private or name in ("__hash__", "__getattr__"):
            continue
        if isinstance(member, (classmethod, staticmethod)):
            if not inspect.isgeneratorfunction(inspect.unwrap(member.__func__)):
                setattr(cls, name, type(member)(_method(member.__func__, errors, recover)))
        elif inspect.isfunction(member):
            setattr(cls, name, _method(member, errors, recover))


def _method(
    function: Callable[P, R], errors: tuple[type[Exception], ...], recover: Recover
) -> Callable[P, R]:
    """The function with the lock, and what follows on errors: in one wrapper, as every call pays for it."""

    @functools.wraps(function)
    def locked(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            is_acquired = not _LockState.overdue and _acquire(False)
        except BaseException:
            _release_what_came()
            raise
        if not is_acquired:
            _acquire_in_turn()
        try:
            if _LockState.observer is not None:
                return cast(R, _LockState.observer(function, args, kwargs))
            return function(*args, **kwargs)
        except errors as e:
            return cast(R, recover(function, args, kwargs, e))
        finally:
            _release()

    return locked


def observe(observer: Observer) -> None:
    """From now on `observer(function, args, kwargs)` calls the methods of `synchronize_methods`. Where there
    is one already, that calls the new one."""
    _set_observers((*_LockState.observers, observer))


def stop_observing(observer: Observer) -> None:
    """Take an observer away, if it is there."""
    _set_observers(tuple(x for x in _LockState.observers if x is not observer))


def _set_observers(observers: tuple[Observer, ...]) -> None:
    _LockState.observers = observers
    _LockState.observer = functools.reduce(_within, observers) if observers else None


def _within(outer: Observer, inner: Observer) -> Observer:
    def observer(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        @functools.wraps(function)
        def observed(*args: Any, **kwargs: Any) -> Any:
            return inner(function, args, kwargs)

        return outer(observed, args, kwargs)

    return observer


def wait_until_idle() -> None:
    """Wait, without the lock, until no other thread's Program runs; who waits longest comes first. The caller
    holds the lock."""
    if not _LockState.running and (_LockState.computing or not _queue):
        return
    wakeup: queue.SimpleQueue[None] = queue.SimpleQueue()
    try:
        _queue.append(wakeup)
        while _LockState.running or _queue[0] is not wakeup:
            saved: list[Any] = []
            try:
                saved.extend(starmap(_release_save, _ONCE))
                wakeup.get()
            finally:
                if saved:
                    _acquire_restore(saved[0])
    finally:
        try:
            if wakeup in _queue:
                _queue.remove(wakeup)
        finally:
            if _queue and not _LockState.running:
                _queue[0].put(None)


def run_released(call: Callable[[], R]) -> R:
    """`call()`, which needs no lock: meanwhile other threads may hold it. The caller holds it, and no Program
    runs. Inside `exclusive` nothing is released."""
    if _LockState.exclusive or not HAS_THREADS:
        return call()
    saved: list[Any] = []
    try:
        _LockState.running = True
        saved.extend(starmap(_release_save, _ONCE))  # one call, so that what it gives is never lost
        return call()
    finally:
        try:
            if saved:
                _LockState.overdue = True
                _acquire_restore(saved[0])
        finally:
            _LockState.overdue = _LockState.running = False
            if _queue:
                _queue[0].put(None)


def defer(action: Callable[[], object]) -> None:
    """Do what a finalizer is to do: now if no other thread is inside, else before memory is next
    allocated."""
    _deferred.append(action)
    try:
        is_acquired = _acquire(False)
    except BaseException:
        _release_what_came()
        raise
    if is_acquired:
        try:
            run_deferred()
        finally:
            _release()


def run_deferred() -> None:
    """Do what finalizers deferred. The caller holds the lock."""
    while _deferred:
        try:
            action = _deferred.popleft()
        except IndexError:  # a finalizer in between has done it
            return
        action()


def _before_fork() -> None:
    _acquire_in_turn()
    wait_until_idle()


def _in_child() -> None:
    """The threads that waited are not in the child."""
    global _overdue
    _overdue, _LockState.overdue = threading.Lock(), False
    _queue.clear()
    lock.release()


if HAS_THREADS and hasattr(os, "register_at_fork"):
    # Thread pools hold a lock of theirs over a fork, which a thread that is inside may want: this one has to
    # be taken first. Hooks run in reverse order of registration, and this import registers the pools'.
    import concurrent.futures.thread  # noqa: F401

    os.register_at_fork(before=_before_fork, after_in_parent=lock.release, after_in_child=_in_child)
