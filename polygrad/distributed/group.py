"""The ranks of a program, and the thread that communicates.

Each rank makes its collectives in one thread, in the order in which they were asked for, so all ranks make
the same ones in the same order. Who waits for one waits with a guard: a rank that has ended or does not
arrive becomes an error here. What one sees of a rank is its *state*: the number of collectives that it has
asked for, their last names, and the line of its program.
"""

from __future__ import annotations

import atexit
import collections
import importlib
import importlib.util
import itertools
import json
import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from polygrad.distributed.engine import Engine, Single
from polygrad.distributed.launch import Launch, find_launch
from polygrad.engine.recording import watch
from polygrad.errors import ArgumentError, DistributedError, RankError

_LOOK = 0.05  # seconds between two looks at notices
_REMEMBERED = 64  # names of collectives
_LAST_WORDS = 1.5  # seconds for the other ranks to read why this one ends
# Folders whose lines say little of where a program is: this package, and the standard library.
_BETWEEN = (str(Path(__file__).resolve().parent.parent), str(Path(os.__file__).parent), "<frozen")
_ENGINES = ("mpi", "torch", "single")
_ENDED = "it has ended"


class Work:
    """A collective that was asked for: number `number`, from 1 on."""

    def __init__(self, number: int, label: str, call: Callable[[], None]) -> None:
        self.number, self.label, self.call = number, label, call
        self.error: BaseException | None = None
        self.ended = threading.Event()

    def run(self) -> None:
        started = time.perf_counter()
        try:
            self.call()
        except BaseException as e:
            self.error = e
        exchanges = watch.exchanges
        if exchanges is not None:
            exchanges.append((self.label, started, time.perf_counter()))
        self.ended.set()


class Group:
    """The ranks. `timeout`: seconds that a rank waits for another one in a collective. `check`: before each
    collective on Tensors, all ranks compare what they call."""

    def __init__(self, engine: Engine, launcher: str, timeout: float, check: bool) -> None:
        self.engine, self.launcher, self.timeout, self.check = engine, launcher, timeout, check
        self._numbers = itertools.count(1)
        self._log: collections.deque[tuple[int, str]] = collections.deque(maxlen=_REMEMBERED)
        self._queue: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._failed = False
        if engine.size > 1:
            engine.serve(self._state)
            threading.Thread(target=self._serve, name="polygrad-collectives", daemon=True).start()

    # --- collectives

    def start(self, label: str, call: Callable[[], None]) -> Work:
        """Ask for a collective, `call`, which the thread makes after those before it."""
        work = Work(next(self._numbers), label, call)
        if self.engine.size == 1:
            work.run()
        else:
            self._log.append((work.number, label))
            self._queue.put(work)
        return work

    def wait(self, work: Work, timeout: float | None = None) -> None:
        """Wait for a collective. Raises RankError where another rank has failed, has ended, or does not
        arrive within `timeout` seconds, by default the group's; DistributedError for errors of the engine."""
        timeout = self.timeout if timeout is None else timeout
        started = asked = time.monotonic()
        while not work.ended.wait(_LOOK):
            self._raise_for_notices(work, _LAST_WORDS < time.monotonic() - started)
            now = time.monotonic()
            if now - asked > min(self.timeout, timeout):
                self._raise_for_absent(work, self.engine.ask(), now - started, timeout)
                asked = time.monotonic()
        if work.error is not None:
            self._raise_for_error(work)

    def run(self, label: str, call: Callable[[], None], timeout: float | None = None) -> None:
        """Make a collective."""
        self.wait(self.start(label, call), timeout)

    def _serve(self) -> None:
        while (work := self._queue.get()) is not None:
            work.run()

    # --- guards

    def _state(self) -> str:
        return json.dumps({"made": list(self._log), "line": _line_of_main_thread()})

    def _raise_for_notices(self, work: Work, with_ended: bool) -> None:
        for other, notice in self.engine.notices().items():
            ranks, text = json.loads(notice)
            if text != _ENDED or with_ended:
                self._failed = True
                where = (
                    "" if other not in ranks else f"{work.label} (collective {work.number}): rank {other}: "
                )
                raise RankError(f"{where}{text}", tuple(ranks))

    def _raise_for_absent(self, work: Work, states: list[str | None], waited: float, timeout: float) -> None:
        where = f"{work.label} (collective {work.number})"
        silent = tuple(i for i, state in enumerate(states) if state is None)
        if silent:
            self._failed = True
            raise RankError(
                f"{where}: {_ranks(silent)} {'do' if len(silent) > 1 else 'does'} not answer: "
                "it has died, is stopped, or cannot be reached",
                silent,
            )
        absent, reasons = [], []
        for i, text in enumerate(states):
            state = json.loads(text or "{}")
            made = dict(map(tuple, state.get("made", [])))
            label = made.get(work.number)
            if label is not None and label != work.label:
                self._failed = True
                raise RankError(f"{where}: rank {i} makes {label} instead, at {state['line']}", (i,))
            if max(made, default=0) < work.number:
                absent.append(i)
                reasons.append(f"rank {i} is at {state.get('line')}")
        if absent and waited > timeout:
            self._failed = True
            raise RankError(
                f"{where}: {_ranks(tuple(absent))} {'have' if len(absent) > 1 else 'has'} not called it for "
                f"{waited:.0f} seconds: {'; '.join(reasons[:8])}: init(timeout=...) sets how long ranks wait",
                tuple(absent),
            )

    def _raise_for_error(self, work: Work) -> None:
        """An error of the engine, usually as another rank has ended: find out which."""
        self._failed = True
        time.sleep(_LOOK)
        self._raise_for_notices(work, True)
        self._raise_for_absent(work, self.engine.ask(), 0.0, self.timeout)
        self._raise_for_notices(work, True)
        raise DistributedError(
            f"{work.label} (collective {work.number}): {self.engine.name}: {work.error}"
        ) from work.error

    # --- the end

    def fail(self, error: BaseException) -> None:
        """Tell the other ranks that this one ends because of `error`."""
        self._failed = True
        if isinstance(error, RankError):  # of another rank, which did not tell
            self._tell(str(error), error.ranks)
        else:
            self._tell(
                "".join(traceback.format_exception_only(type(error), error)).strip(), (self.engine.rank,)
            )

    def _tell(self, text: str, ranks: tuple[int, ...]) -> None:
        """Leave a notice about `ranks`."""
        self.engine.notify(json.dumps([ranks, text]))

    def close(self) -> None:
        """At the end of the program."""
        if self.engine.size == 1:
            return
        if self._failed:
            sys.stdout.flush()
            sys.stderr.flush()
            time.sleep(_LAST_WORDS)
            self.engine.abort()
            return
        self._tell(_ENDED, (self.engine.rank,))
        self._queue.put(None)
        self.engine.close()


def _ranks(ranks: tuple[int, ...]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))}"


def _line_of_main_thread() -> str:
    """The innermost line of the program itself that the main thread is at."""
    frame: FrameType | None = sys._current_frames().get(threading.main_thread().ident or 0)
    innermost = frame
    while frame is not None and _is_between(frame.f_code.co_filename):
        frame = frame.f_back
    frame = frame or innermost
    if frame is None:
        return "its end"
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} in {frame.f_code.co_name}"


def _is_between(path: str) -> bool:
    return path.startswith(_BETWEEN) and "site-packages" not in path.removeprefix(_BETWEEN[0])


# --- the group of this process

_group: Group | None = None


def init(engine: str | None = None, *, timeout: float = 6.0, check: bool = False) -> None:
    """Join the other ranks of this program, if there are any. All ranks call it once, before anything else of
    this module.

    It finds out how the program was started: by mpirun or srun with MPI (needs `polygrad[mpi]`), by torchrun,
    srun or Ray (needs torch), or by itself; then there is one rank, and collectives do nothing. A second call
    has no effect.

    engine: "mpi", "torch" or "single", instead of what was found.
    timeout: how many seconds a rank waits for another one in a collective before that is an error.
    check: compare shapes, dtypes and names of all collectives on Tensors between ranks before they are made.

    Raises DeviceError if the engine's package is not installed, ArgumentError, DistributedError.
    """
    global _group
    if engine is not None and engine not in _ENGINES:
        raise ArgumentError(f"init: engine: expected one of {', '.join(_ENGINES)}, got {engine!r}")
    if not timeout > 0:
        raise ArgumentError(f"init: timeout: expected a number of seconds above 0, got {timeout!r}")
    if _group is not None:
        return
    launch = find_launch(os.environ)
    made = _open(engine or launch.engine, launch)
    if made.size > 1:
        _install_hooks()
    _group = Group(made, launch.launcher, timeout, check)


def is_initialized() -> bool:
    """Whether `init` was called."""
    return _group is not None


def rank() -> int:
    """The number of this process, from 0."""
    return group().engine.rank


def size() -> int:
    """The number of processes."""
    return group().engine.size


def local_rank() -> int:
    """The number of this process on its machine, from 0: the number of its GPU, say."""
    return group().engine.local_rank


def group() -> Group:
    """The ranks of this program. A program that was started alone needs no `init`. Raises
    DistributedError."""
    if _group is None:
        launch = find_launch(os.environ)
        if launch.engine != "single":
            raise DistributedError(
                f"distributed: this process was started by {launch.launcher}: expected "
                "polygrad.distributed.init() before any other call"
            )
        init("single")
    assert _group is not None
    return _group


def _open(name: str, launch: Launch) -> Engine:
    if name == "single":
        return Single()
    package = {"mpi": "mpi4py", "torch": "torch"}[name]
    if importlib.util.find_spec(package) is None:
        extra = "polygrad[mpi]" if name == "mpi" else "torch"
        raise DistributedError(
            f"init: the program was started by {launch.launcher}, which needs {package}: "
            f"pip install '{extra}'"
        )
    module: Any = importlib.import_module(f"polygrad.distributed.{name}")
    made: Engine = (module.MPIEngine if name == "mpi" else module.TorchEngine)(launch)
    return made


def _install_hooks() -> None:
    """Let an exception that ends this process end the others, too."""
    print_exception = sys.excepthook

    def tell_and_print(kind: Any, error: BaseException, trace: Any) -> None:
        if _group is not None:
            _group.fail(error)
        print_exception(kind, error, trace)

    sys.excepthook = tell_and_print
    atexit.register(lambda: _group.close() if _group is not None else None)
