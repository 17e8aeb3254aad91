"""The interface of a device to the layers above: memory, and a way to run Programs. Each package beside this
implements it for one device.

A runtime sees Programs and bytes, never UOps. Calls on one runtime come one at a time and in order. `run` may
return before the device has finished; `read` waits for the device.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence, Sized
from typing import Any

from polygrad.errors import DeviceError, InternalError
from polygrad.runtime.program import Program

Handle = Any  # a device's own name for an allocation: an address, an object


class Control:
    """Control of a run that another thread may stop. Before launch number `commit`, stopping it has no effect
    on memory that outlives the run; from there on it writes such memory."""

    def __init__(self, commit: int, halt: Callable[[], None], is_committed: Callable[[], bool]) -> None:
        self.commit, self._halt, self._is_committed = commit, halt, is_committed
        self.stopped = False
        self._committed = False
        self._lock = threading.Lock()

    def begin_commit(self) -> bool:
        """Whether the run may pass the commit point. The running thread calls it on arrival there."""
        with self._lock:
            self._committed = not self.stopped
            return self._committed

    def stop(self, force: bool = False) -> bool:
        """Ask the run to end as soon as it can. False: it is beyond the commit point, so it continues, unless
        `force` is given."""
        with self._lock:
            if self.committed and not force:
                return False
            self.stopped = True
            self._halt()
            return True

    @property
    def committed(self) -> bool:
        """Whether the run has passed the commit point."""
        return self._committed or self._is_committed()


class Executable(ABC):
    """A Program prepared for a device. Dropping it releases its resources.

    `seconds`: of its last run. `calls`: the number of native calls of a run, each of which makes one or more
    launches. `calls_made`: its length is the number of calls made in a run that an exception has just ended;
    no exception can come between a call and its element. `stoppable`: `run_stoppable` can stop early.
    `killable`: `kill` ends a run, whatever its kernels do: it is code of somebody else. `in_python`: an
    exception may end a run anywhere. `commits_itself`: the commit point is always that of
    `undo_plan(program)`, and `Control.commit` is ignored.
    """

    seconds = float("inf")
    calls_made: Sized = ()
    calls = 1
    stoppable = False
    killable = False
    in_python = False
    commits_itself = False

    @abstractmethod
    def run(
        self, buffers: Sequence[Handle | None], arena: Handle | None, variables: Mapping[str, int]
    ) -> None:
        """Run every launch. `buffers[i]` is the Program's buffer i (None for scratch, which lies in `arena`,
        an allocation of at least `program.arena` bytes, or None when that is 0)."""

    def run_stoppable(
        self,
        buffers: Sequence[Handle | None],
        arena: Handle | None,
        variables: Mapping[str, int],
        control: Control,
    ) -> bool:
        """`run`, which ends early when `control` requests it; returns whether the run is complete."""
        self.run(buffers, arena, variables)
        return True

    def halt(self) -> None:
        """Let kernels that run in another thread return at their next safepoint, until `go_on`."""
        raise InternalError(f"{type(self).__name__}.halt: its runs cannot be stopped")

    def kill(self) -> None:
        """Let a run in another thread end at once with an error, wherever it is, until `go_on`."""
        raise InternalError(f"{type(self).__name__}.kill: its runs cannot be killed")

    def go_on(self) -> None:
        """Undo `halt` and `kill`."""
        raise InternalError(f"{type(self).__name__}.go_on: its runs cannot be stopped")

    def is_committed(self) -> bool:
        """Whether the driver of a stoppable run has recorded that it passed the commit point."""
        return False

    def measure(
        self, buffers: Sequence[Handle | None], arena: Handle | None, variables: Mapping[str, int]
    ) -> float:
        """`run`, and its time in seconds: the device's own time, if it measures it."""
        started = time.perf_counter()
        self.run(buffers, arena, variables)
        return time.perf_counter() - started


class Runtime(ABC):
    """One device. `concurrent`: memory may be allocated, written and read while a Program runs. `killable`:
    runs can be killed; for that their WebAssembly modules need checks (`polygrad/wasm/stops.py`)."""

    name: str
    features: frozenset[str] = frozenset()  # of a WebAssembly engine
    concurrent = False
    killable = False

    def confined(self) -> Runtime:
        """A device for Programs of somebody else: with memory of its own, and runs that can be killed, as far
        as that is possible. This one, where nothing better is."""
        return self

    @property
    def lost(self) -> bool:
        """Whether the device is permanently lost, with all its memory. The registry then opens another."""
        return False

    @property
    def description(self) -> str:
        """The device's name and kind, for people."""
        return self.name

    @property
    def accelerates(self) -> bool:
        """Whether this is a hardware accelerator, which device="auto" prefers to the host's default
        device."""
        return False

    @abstractmethod
    def allocate(self, nbytes: int) -> Handle:
        """`nbytes` (at least 1) of uninitialised memory, 64-byte aligned. Raises OutOfMemoryError, and then
        nothing has changed."""

    def reserve(self, sizes: Sequence[int]) -> None:  # noqa: B027  devices that know no limit promise nothing
        """Make room for allocations of these numbers of bytes, as far as the device knows its limits. Raises
        OutOfMemoryError, and then nothing has changed."""

    @abstractmethod
    def free(self, handle: Handle) -> None:
        """Release an allocation; its handle becomes invalid."""

    @abstractmethod
    def write(self, handle: Handle, offset: int, data: memoryview) -> None:
        """Copy the bytes `data` (contiguous, format 'B') into the allocation at byte `offset`."""

    @abstractmethod
    def read(self, handle: Handle, offset: int, nbytes: int) -> memoryview:
        """A copy of `nbytes` of the allocation from byte `offset`, writable, format 'B'."""

    async def read_async(self, handle: Handle, offset: int, nbytes: int) -> memoryview:
        """`read`, awaitable: for devices whose answers come through the host's event loop."""
        return self.read(handle, offset, nbytes)

    def view(self, handle: Handle, offset: int, nbytes: int, owner: object) -> memoryview:
        """`nbytes` of the allocation from byte `offset`, without a copy: writable, format 'B'. It keeps
        `owner` alive.

        Raises DeviceError where the device's memory is not this process's.
        """
        raise DeviceError(
            f"device {self.name}: Python cannot access its memory: copy with Tensor.data() and assign()"
        )

    def map_file(self, descriptor: int, nbytes: int) -> tuple[Handle, object]:
        """Map a file's first `nbytes` (at least 1) as an allocation; returns its handle and owner. Writes do
        not change the file.

        Raises DeviceError where the device's memory is not this process's.
        """
        raise DeviceError(f"device {self.name}: files cannot be mapped into its memory")

    def at_address(self, address: int, nbytes: int) -> Handle:
        """Memory of this process as an allocation; 64 bytes before and after it must be readable.

        Raises DeviceError where the device's memory is not this process's.
        """
        raise DeviceError(f"device {self.name}: its memory is not that of this process: copy the data")

    @abstractmethod
    def load(self, program: Program) -> Executable:
        """Prepare a Program. Raises ProgramError when it is not for this device."""
