"""Stops that another thread asks for where Python has no threads: in a worker, when a page aborts what it
waits for.

A call that may be stopped is `watched` by a Stopper, the host's. Only what is `stoppable` stops: at the
beginning of a Program, or in the middle of a long one. Then it raises RunStopped, and has written nothing
that outlives it. So it is no longer stoppable when a Program has written such memory.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol


class RunStopped(KeyboardInterrupt):
    """A run that another thread has stopped, before it wrote anything that outlives it."""


class Stopper(Protocol):
    """The host's end of the thread that may ask for a stop (`loader/src/stops.ts`)."""

    def asked(self) -> bool:
        """Whether a stop was asked for."""
        ...

    def begin(self) -> bool:
        """A run of WebAssembly begins, which may be stopped until its commit point. False: a stop was asked
        for before, so it must not begin."""
        ...

    def end(self) -> bool:
        """The run has ended; whether it was stopped."""
        ...


@dataclass(slots=True)
class _State:
    stopper: Stopper | None = None  # of the call that is watched
    open: bool = False  # whether what runs now may be stopped
    each_program: bool = False  # whether it still may when a Program has written memory


_state = _State()


@contextlib.contextmanager
def watched(stopper: Stopper) -> Iterator[None]:
    """`with watched(stopper):` what is `stoppable` in the block stops when `stopper` is asked to."""
    _state.stopper = stopper
    try:
        yield
    finally:
        _state.stopper = None


@contextlib.contextmanager
def _set(open: bool, each_program: bool) -> Iterator[None]:
    before = _state.open, _state.each_program
    _state.open, _state.each_program = open, each_program
    try:
        yield
    finally:
        _state.open, _state.each_program = before


_NOTHING = contextlib.nullcontext()


def stoppable(each_program: bool = False) -> contextlib.AbstractContextManager[None]:
    """`with stoppable():` the block is done as a whole, or raises RunStopped and has written nothing.

    `each_program`: each Program of it by itself is; what Programs before have written stays.
    """
    return _NOTHING if _state.stopper is None else _set(True, each_program)


def unstoppable() -> contextlib.AbstractContextManager[None]:
    """`with unstoppable():` the block is done as a whole."""
    return _NOTHING if _state.stopper is None else _set(False, False)


def stopper() -> Stopper | None:
    """What may stop a run now."""
    return _state.stopper if _state.open else None


def note_write() -> None:
    """A Program has written memory that outlives it."""
    if not _state.each_program:
        _state.open = False


def close() -> None:
    """The rest of the block must not be stopped."""
    _state.open = False
