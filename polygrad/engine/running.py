"""Running a loaded Program: the one place where a thread waits for a device.

Python handles a signal (Ctrl-C) between two of its own instructions, in the main thread. So a long Program of
native code runs in another thread, while the main thread waits for it in Python. Then the handler's exception
comes at once, and the Program is stopped (`Executable.run_stoppable`). Afterwards it has written everything,
or nothing that outlives it (`runtime/undo.py`). Only a second exception, while the Program runs to its end,
leaves memory half-written, and that memory is marked.

A Program of somebody else always runs so, with a time limit if one is given. It is killed where it does not
stop by itself, or does not come to its end soon.

Inside Pyodide there is one thread. There a Program is stopped from outside, if it is at all (`stopping.py`).
"""

from __future__ import annotations

import contextlib
import enum
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from polygrad.engine import stopping
from polygrad.engine.devices import Device
from polygrad.engine.stopping import RunStopped, Stopper
from polygrad.errors import ArgumentError, RunTimeoutError
from polygrad.monitor import HAS_THREADS, run_released
from polygrad.runtime.interface import Control, Executable, Handle, Runtime
from polygrad.runtime.program import Program
from polygrad.runtime.undo import SAVED_BYTES, UndoPlan, undo_plan

# Programs whose last run was shorter keep the lock: releasing it costs more than other threads gain.
_SHORT_SECONDS = 1e-3
# Programs whose last run was shorter run in the calling thread: Ctrl-C is handled soon enough.
_BRIEF_SECONDS = 40e-3
# A run that shall end, and can be killed, has this time to do so by itself.
_GRACE_SECONDS = 40e-3
_ALL_BYTES = 1 << 62
# Bytes that may be saved before a run, for each second of it. Copying them takes a hundredth of that time.
_SAVED_BYTES_PER_SECOND = 40e6
_FIRST_RUN = float("inf")

Buffers = Sequence[Handle | None]


class Outcome(enum.Enum):
    """The outcome of a run that an exception has ended."""

    NONE = "it has not begun"
    STOPPED = "it has written nothing that outlives it; its outputs are undefined"
    WHOLE = "it has written everything"
    HALF = "it has written a part"


@dataclass(slots=True)
class _State:
    """`ended`: the outcome of the last run, if it is known; None during a run."""

    ended: Outcome | None = Outcome.NONE
    executable: Executable | None = None


_state = _State()


def run_program(
    executable: Executable,
    program: Program,
    buffers: Buffers,
    arena: Handle | None,
    variables: Mapping[str, int],
    repeatable: Callable[[], bool] = lambda: False,
    *,
    runtime: Runtime | None = None,
    timeout: float | None = None,
) -> None:
    """`executable.run` of `program`. Unless its last run was short, other threads can build graphs meanwhile.

    `repeatable`: whether the Program will run again after an exception, and reads no memory that it writes.
    `runtime`: of the buffers, unless it is the registry's. `timeout`: seconds after which the run is ended.

    Raises RunTimeoutError; ArgumentError for a timeout where nothing can end a run; RunStopped.
    """
    if timeout is not None:
        _check_timeout(timeout, executable, program)
    stopper = stopping.stopper()
    if stopper is not None and stopper.asked():
        raise RunStopped
    executable.calls_made = ()
    _state.ended, _state.executable = None, executable
    started = time.perf_counter()
    if executable.in_python:
        _run_in_python(executable, program, buffers, arena, variables, runtime)
    elif stopper is not None:
        _run_watched(stopper, executable, program, buffers, arena, variables, runtime)
    elif timeout is not None or (executable.killable and _may_be_interrupted()):
        run_released(
            lambda: _run_apart(executable, program, buffers, arena, variables, repeatable, runtime, timeout)
        )
    elif executable.seconds < _SHORT_SECONDS:
        executable.run(buffers, arena, variables)
    elif executable.seconds < _BRIEF_SECONDS or not executable.stoppable or not _may_be_interrupted():
        run_released(lambda: executable.run(buffers, arena, variables))
    else:
        run_released(lambda: _run_apart(executable, program, buffers, arena, variables, repeatable))
    _state.ended = Outcome.WHOLE
    executable.seconds = time.perf_counter() - started
    if stopper is not None and undo_plan(program, 0).commit < len(program.launches):
        stopping.note_write()


def _check_timeout(timeout: float, executable: Executable, program: Program) -> None:
    if not HAS_THREADS or not executable.stoppable:
        raise ArgumentError(f"timeout: expected none, as nothing can end a run on {program.device} here")
    is_number = isinstance(timeout, (int, float)) and not isinstance(timeout, bool)
    if not is_number or not 0 < timeout <= threading.TIMEOUT_MAX:
        raise ArgumentError(f"timeout: expected a positive number of seconds, got {timeout!r}")


def await_run() -> None:
    """Forget the outcome of the last run: the next one has not begun."""
    _state.ended, _state.executable = Outcome.NONE, None


def outcome(expected: Executable | None = None) -> Outcome:
    """The outcome of the last run, when an exception came in it or after it. `expected`: a run of another
    Executable does not count."""
    if expected is not None and _state.executable is not expected:
        return Outcome.NONE
    if _state.ended is not None:
        return _state.ended
    executable = _state.executable
    made = len(executable.calls_made) if executable is not None else 0
    if executable is None or not made:
        return Outcome.NONE
    # WHOLE: the exception came after the last launch. HALF: the device refused a later one.
    return Outcome.WHOLE if made == executable.calls else Outcome.HALF


def _may_be_interrupted() -> bool:
    return HAS_THREADS and threading.current_thread() is threading.main_thread()


# --- memory that a stopped run restores


@dataclass(frozen=True, slots=True)
class _Saved:
    """The contents of buffers."""

    runtime: Runtime
    contents: tuple[tuple[Handle, memoryview], ...]

    @staticmethod
    def of(runtime: Runtime, plan: UndoPlan, buffers: Buffers) -> _Saved:
        handles = [(buffers[number], nbytes) for number, nbytes in plan.saved if nbytes]
        return _Saved(runtime, tuple([(h, runtime.read(h, 0, nbytes)) for h, nbytes in handles]))

    def restore(self) -> None:
        for handle, data in self.contents:
            self.runtime.write(handle, 0, data)


def _run_in_python(
    executable: Executable,
    program: Program,
    buffers: Buffers,
    arena: Handle | None,
    variables: Mapping[str, int],
    runtime: Runtime | None,
) -> None:
    """Run a Program whose launches are Python: an exception may end it anywhere."""
    saved = _Saved.of(runtime or Device[program.device], undo_plan(program, _ALL_BYTES), buffers)
    try:
        if executable.seconds < _SHORT_SECONDS:
            executable.run(buffers, arena, variables)
        else:
            run_released(lambda: executable.run(buffers, arena, variables))
    except BaseException:
        saved.restore()
        _state.ended = Outcome.STOPPED
        raise


def _run_watched(
    stopper: Stopper,
    executable: Executable,
    program: Program,
    buffers: Buffers,
    arena: Handle | None,
    variables: Mapping[str, int],
    runtime: Runtime | None,
) -> None:
    """Run in this thread, while another may stop the Program, if it is a long one that can be stopped."""
    plan = _plan_of(executable, program)
    is_long = executable.seconds >= _BRIEF_SECONDS
    goes_back = plan.commit == len(program.launches)
    if not (is_long and executable.stoppable and (goes_back or executable.commits_itself)):
        executable.run(buffers, arena, variables)
        return
    if not goes_back:
        plan = undo_plan(program)
    saved = _Saved.of(runtime or Device[program.device], plan, buffers)
    has_begun = stopper.begin()
    try:
        if has_begun:
            executable.run(buffers, arena, variables)
    finally:
        was_stopped = stopper.end()
    if was_stopped or not has_begun:
        saved.restore()
        _state.ended = Outcome.STOPPED
        raise RunStopped


# --- the thread


@dataclass(slots=True)
class _Job:
    """A call that another thread makes, once. `kill`: ends it, if that is possible. `over`: it has ended,
    with a `result` or an `error`."""

    call: Callable[[], bool]
    kill: Callable[[], object] | None = None
    begun: bool = False
    wakeup: threading.Lock = field(default_factory=threading.Lock)  # released at the end
    over: bool = False
    result: bool = False
    error: BaseException | None = None

    def __post_init__(self) -> None:
        self.wakeup.acquire()

    def run(self) -> None:
        if self.begun:
            return
        self.begun = True
        try:
            self.result = self.call()
        except BaseException as e:
            self.error = e
        self.over = True
        self.wakeup.release()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end; a signal's handler may raise its exception here. False: the time is over."""
        return self.wakeup.acquire(timeout=-1 if timeout is None else timeout)

    def wait_for_the_end(self, impatient: Callable[[], object]) -> None:
        """Wait for the end despite exceptions; `impatient` is called for each of them. A call that can be
        killed is, unless it ends soon."""
        while not self.over:
            try:
                if not self.wakeup.acquire(timeout=_GRACE_SECONDS) and self.kill is not None:
                    impatient()
                    self.kill()
            except BaseException:
                impatient()


class _Runner:
    """A thread that runs jobs one after the other. It starts with the first job."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def start(self, job: _Job) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="polygrad-runner", daemon=True)
            self._thread.start()
        self._jobs.put(job)

    def _serve(self) -> None:
        while True:
            self._jobs.get().run()


_runner = _Runner()


def _forget_runner() -> None:
    """Make a new runner in a forked process, which has no threads."""
    global _runner
    _runner = _Runner()


if HAS_THREADS and hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_runner)


_plans: WeakKeyDictionary[Executable, UndoPlan] = WeakKeyDictionary()


def _plan_of(executable: Executable, program: Program) -> UndoPlan:
    """`undo_plan` for what may be saved before a run of the time of the last one."""
    seconds = executable.seconds if executable.seconds < _FIRST_RUN else 0.0
    limit = int(_SAVED_BYTES_PER_SECOND * seconds)
    if limit > SAVED_BYTES:
        return undo_plan(program, limit)
    plan = _plans.get(executable)
    if plan is None:
        plan = _plans[executable] = undo_plan(program)
    return plan


def _run_apart(
    executable: Executable,
    program: Program,
    buffers: Buffers,
    arena: Handle | None,
    variables: Mapping[str, int],
    repeatable: Callable[[], bool],
    runtime: Runtime | None = None,
    timeout: float | None = None,
) -> None:
    """Run in another thread, while this one waits for the end or for an exception."""
    plan = _plan_of(executable, program)
    goes_back = plan.commit == len(program.launches)
    if not goes_back and executable.commits_itself:
        plan = undo_plan(program)
    saved = _Saved.of(runtime or Device[program.device], plan, buffers)
    is_committed = (lambda: False) if goes_back else executable.is_committed
    control = Control(plan.commit, executable.halt, is_committed)
    job = _Job(
        lambda: executable.run_stoppable(buffers, arena, variables, control),
        executable.kill if executable.killable else None,
    )
    start = _runner.start if _may_be_interrupted() else _start_alone
    try:
        start(job)
        if not job.wait(timeout):
            raise RunTimeoutError(f"run: expected an end within {timeout} seconds, got none: it was ended")
    except BaseException:
        leaves_half = not control.stop() and not (repeatable() and control.stop(force=True))
        start(job)  # again, as the exception may have come before the first call
        job.wait_for_the_end(lambda: control.stop(force=True))
        with _resuming(executable):
            if job.result:
                _state.ended = Outcome.WHOLE
            elif leaves_half:
                _state.ended = Outcome.HALF
            else:
                saved.restore()
                _state.ended = Outcome.STOPPED
        raise
    if job.error is not None:
        raise job.error


def _start_alone(job: _Job) -> None:
    """Run a job in a thread of its own."""
    threading.Thread(target=job.run, name="polygrad-run", daemon=True).start()


@contextlib.contextmanager
def _resuming(executable: Executable) -> Iterator[None]:
    """`with _resuming(executable):` takes back the request to stop at the end of the block."""
    try:
        yield
    finally:
        executable.go_on()
