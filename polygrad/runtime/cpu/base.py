"""Devices that run in this process: native code, called by ctypes. CPU and CC differ only in their linkers.

A handle is the address of an allocation. A launch is one ctypes call. Its argument table is made when the
Program is loaded, and a run writes only the pointers that have changed. A captured Program is a single call,
and so is a Program with parallel kernels.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import operator
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from polygrad.errors import ProgramError
from polygrad.helpers import PART, PARTS, PARTS_PER_THREAD, THREAD_VARIABLES, THREADS
from polygrad.monitor import defer
from polygrad.runtime.cpu import stop as native_stop
from polygrad.runtime.cpu.memory import MAP_BYTES, NativeHeap, map_file
from polygrad.runtime.cpu.native import BARRIER_BEFORE, HAS_PARTS, PARALLEL
from polygrad.runtime.cpu.thread_choice import ThreadChoice
from polygrad.runtime.cpu.threads import PartCounters, Team
from polygrad.runtime.interface import Control, Executable, Handle, Runtime
from polygrad.runtime.program import Program
from polygrad.runtime.threads import get_num_threads

KernelFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
_DriverFunction = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
)


class Linker(ABC):
    """Compiled code -> callable functions. A kernel is linked once for all Programs that contain it."""

    @abstractmethod
    def link(self, name: str, code: bytes) -> tuple[Any, Any]:
        """A ctypes function, and the object that keeps its code alive. Raises CompileError."""

    @abstractmethod
    def link_forever(self, code: bytes, names: list[str]) -> list[int]:
        """The addresses of functions that stay as long as this linker."""

    @abstractmethod
    def link_driver(self, program: Program) -> tuple[int, list[Any]]:
        """The address of a Program's driver, and the objects that keep its code alive. Raises
        CompileError."""


class _NativeProgram(Executable):
    """Common base of native Programs: a word in memory asks their kernels to stop. `max_threads`: of a
    run."""

    stoppable = True

    def __init__(self, max_threads: int, team: Callable[[], Team | None]) -> None:
        self._max_threads, self._team = max_threads, team
        self._choice = ThreadChoice()

    @abstractmethod
    def _run_single(self) -> None:
        """Run every launch on the caller's thread."""

    @abstractmethod
    def _run_parallel(self, threads: int) -> bool:
        """Run every launch on so many threads. False: nothing was run, as the team is busy."""

    def _limit(self) -> int:
        """The most threads of the next run."""
        return min(get_num_threads(), self._max_threads) if self._max_threads > 1 else 1

    def _run_on_threads(self, limit: int) -> None:
        """Run every launch on up to `limit` threads."""
        if limit == 1:
            self._run_single()
            return
        threads, started = self._choice.count(limit), time.perf_counter()
        if threads == 1:
            self._run_single()
        elif not self._run_parallel(threads):
            self._run_single()
            return  # such a run does not show how fast `threads` are
        self._choice.record(time.perf_counter() - started)

    def halt(self) -> None:
        native_stop.WORD.value = 1

    def go_on(self) -> None:
        native_stop.WORD.value = 0


class NativeExecutable(_NativeProgram):
    """A Program's launches as (function, address of its pointer table, address of its variables).

    A Program with parallel kernels has them as a list for `run_list` as well, and variables for each thread.
    """

    def __init__(self, program: Program, linker: Linker, team: Callable[[], Team | None]) -> None:
        super().__init__(program.threads, team)
        functions = [linker.link(kernel.name, kernel.code) for kernel in program.kernels]
        self._trackers = [tracker for _, tracker in functions]
        n_pointers = sum(len(launch.bindings) for launch in program.launches)
        n_variables = sum(len(program.kernels[launch.kernel].variables) for launch in program.launches)
        self._pointers = (ctypes.c_uint64 * max(n_pointers, 1))()
        self._stride = -(-max(n_variables, 1) // 8) * 8  # between two threads' values
        self._values = (ctypes.c_int64 * (self._stride * program.threads))()
        self._launches: list[tuple[Any, int, int]] = []
        # For every buffer, and last for the arena: the table's slots that hold it, each with its byte offset.
        self._slots: list[list[tuple[int, int]]] = [[] for _ in range(len(program.buffers) + 1)]
        self._names: list[tuple[int, str]] = []  # positions of the values of Variables
        self._counts: list[
            tuple[int, int]
        ] = []  # positions of multiples of the thread count, with the factors
        self._parts: list[int] = []  # positions of the part's number
        n_pointers = n_variables = 0
        for launch in program.launches:
            kernel = program.kernels[launch.kernel]
            if len(launch.bindings) != kernel.n_buffers:
                raise ProgramError(
                    f"kernel {kernel.name}: expected {kernel.n_buffers} bindings, got {len(launch.bindings)}"
                )
            table = ctypes.addressof(self._pointers) + 8 * n_pointers
            values = ctypes.addressof(self._values) + 8 * n_variables
            self._launches.append((functions[launch.kernel][0], table, values))
            for position, name in enumerate(kernel.variables, n_variables):
                if name in (THREADS, PARTS):
                    self._counts.append((position, 1 if name == THREADS else PARTS_PER_THREAD))
                elif name not in THREAD_VARIABLES:
                    self._names.append((position, name))
                elif name == PART:
                    self._parts.append(position)
                else:
                    for thread in range(program.threads):
                        self._values[thread * self._stride + position] = thread
            n_variables += len(kernel.variables)
            for binding in launch.bindings:
                spec = program.buffers[binding.buffer]
                if spec.role == "scratch":
                    self._slots[-1].append((n_pointers, spec.offset + binding.offset))
                else:
                    self._slots[binding.buffer].append((n_pointers, binding.offset))
                n_pointers += 1
        self._bound: list[Handle | None] = []  # the handles in the table
        has_parts = [PART in program.kernels[launch.kernel].variables for launch in program.launches]
        self._counters = PartCounters(sum(has_parts), program.threads)
        self._program, self.calls = program, len(self._launches)
        self._list = self._launch_list(range(self.calls))
        self._lists: dict[range, Any] = {}  # of ranges of launches

    def _launch_list(self, numbers: range) -> Any:
        """A range of launches as the data of `run_list`."""
        program, start = self._program, ctypes.addressof(self._values)
        words, number = [len(numbers), 8 * self._stride], 0
        for i in numbers:
            launch, (function, table, values) = program.launches[i], self._launches[i]
            kernel = program.kernels[launch.kernel]
            flags = PARALLEL if kernel.parallel else 0
            flags |= BARRIER_BEFORE if launch.barrier else 0
            place = 0
            if PART in kernel.variables:
                flags, place = flags | HAS_PARTS, kernel.variables.index(PART)
            address = ctypes.cast(function, ctypes.c_void_p).value or 0
            words += [address, table, values - start, flags, place, number]
            number += PART in kernel.variables
        return (ctypes.c_int64 * len(words))(*words)

    def run(
        self, buffers: Sequence[Handle | None], arena: Handle | None, variables: Mapping[str, int]
    ) -> None:
        self._run_on_threads(self._prepare(buffers, arena, variables))

    def _run_single(self) -> None:
        self._set_single()
        calls_made: list[None] = []
        self.calls_made = calls_made
        calls_made.extend(itertools.starmap(operator.call, self._launches))

    def run_stoppable(
        self,
        buffers: Sequence[Handle | None],
        arena: Handle | None,
        variables: Mapping[str, int],
        control: Control,
    ) -> bool:
        threads = self._prepare(buffers, arena, variables)
        for numbers in (range(control.commit), range(control.commit, self.calls)):
            if not numbers or (numbers.start == control.commit and not control.begin_commit()):
                continue
            if numbers not in self._lists:
                self._lists[numbers] = self._launch_list(numbers)
            if threads > 1 and self._run_list(threads, self._lists[numbers]):
                continue
            self._set_single()
            for function, table, values in self._launches[numbers.start : numbers.stop]:
                if control.stopped:
                    return False
                function(table, values)
        return not control.stopped

    def _prepare(
        self, buffers: Sequence[Handle | None], arena: Handle | None, variables: Mapping[str, int]
    ) -> int:
        """Write the tables; return the most threads of the run."""
        handles = [*buffers, arena]
        if handles != self._bound:
            self._bind(handles)
        limit = self._limit()
        if self._names:
            self._set_variables(variables, limit)
        return limit

    def _set_single(self) -> None:
        """Write the tables for a single thread, which computes all parts."""
        for position, _ in self._counts:
            self._values[position] = 1
        for position in self._parts:
            self._values[position] = 0

    def _run_parallel(self, threads: int) -> bool:
        return self._run_list(threads, self._list)

    def _run_list(self, threads: int, launches: Any) -> bool:
        team = self._team()
        if team is None:
            return False
        for row in range(0, threads * self._stride, self._stride):
            for position, factor in self._counts:
                self._values[row + position] = threads * factor
        values = ctypes.addressof(self._values)
        self.calls_made = team.jobs_since_now(self.calls)
        return team.run(team.run_list, ctypes.addressof(launches), values, threads, self._counters)

    def _bind(self, handles: list[Handle | None]) -> None:
        """Write the pointers that differ from the last run's."""
        if len(handles) != len(self._slots):
            raise ProgramError(f"run: expected {len(self._slots) - 1} buffers, got {len(handles) - 1}")
        before = self._bound or [None] * len(handles)
        self._bound = []  # so that an exception invalidates the table
        pointers = self._pointers
        for i, handle in enumerate(handles):
            if handle is None:
                if self._slots[i]:
                    description = f"buffer {i}" if i < len(handles) - 1 else "the arena"
                    raise ProgramError(f"run: there is no memory for {description}")
            elif handle != before[i]:
                for slot, offset in self._slots[i]:
                    pointers[slot] = handle + offset
        self._bound = handles

    def _set_variables(self, variables: Mapping[str, int], threads: int) -> None:
        try:
            for position, name in self._names:
                for row in range(0, threads * self._stride, self._stride):
                    self._values[row + position] = variables[name]
        except KeyError as e:
            raise ProgramError(f"run: no value for the variable {e}, only for {sorted(variables)}") from e


class NativeStep(_NativeProgram):
    """A captured Program: one call of its driver on a table, which is written again when a pointer
    changes."""

    def __init__(self, program: Program, linker: Linker, team: Callable[[], Team | None]) -> None:
        super().__init__(program.threads, team)
        self._program, self._linker = program, linker
        self._without_driver: NativeExecutable | None = (
            None  # the same launches, for runs that may be stopped
        )
        self._job, self._trackers = linker.link_driver(program)
        self._function = _DriverFunction(self._job)
        has_parts = (PART in program.kernels[launch.kernel].variables for launch in program.launches)
        self._counters = PartCounters(sum(has_parts), program.threads)
        self._names = [v.name for v in program.variables]
        self._table = (ctypes.c_uint64 * (len(program.buffers) + 1))()
        self._values = (ctypes.c_int64 * max(len(self._names), 1))()
        self._addresses = (ctypes.addressof(self._table), ctypes.addressof(self._values))
        self._single = ((*self._addresses, 0, 1, None),)  # the arguments of a call on the caller's thread
        self._bound: list[Handle | None] = []
        self._arena: Handle | None = None

    def run(
        self, buffers: Sequence[Handle | None], arena: Handle | None, variables: Mapping[str, int]
    ) -> None:
        if buffers != self._bound or arena != self._arena:
            self._bind([*buffers, arena])
        for i, name in enumerate(self._names):
            try:
                self._values[i] = variables[name]
            except KeyError:
                raise ProgramError(
                    f"run: no value for the variable {name}, only for {sorted(variables)}"
                ) from None
        if self._max_threads > 1:
            self._run_on_threads(self._limit())
        else:
            self._run_single()

    def _run_single(self) -> None:
        calls_made: list[None] = []
        self.calls_made = calls_made
        calls_made.extend(itertools.starmap(self._function, self._single))

    def _run_parallel(self, threads: int) -> bool:
        team = self._team()
        if team is None:
            return False
        self.calls_made = team.jobs_since_now(1)
        return team.run(self._job, *self._addresses, threads, self._counters)

    def run_stoppable(
        self,
        buffers: Sequence[Handle | None],
        arena: Handle | None,
        variables: Mapping[str, int],
        control: Control,
    ) -> bool:
        if self._without_driver is None:
            program = replace(self._program, driver=b"")
            self._without_driver = NativeExecutable(program, self._linker, self._team)
        return self._without_driver.run_stoppable(buffers, arena, variables, control)

    def _bind(self, handles: list[Handle | None]) -> None:
        self._program.check_memory(handles[:-1], handles[-1])
        self._table[:] = [handle or 0 for handle in handles]
        *self._bound, self._arena = handles


class NativeRuntime(Runtime):
    """`target`: the only Program.target that runs here (None: any). `compile`: compiles the source of the
    team's native functions for the linker; without it there are no threads.
    """

    language: str  # of the kernels that it runs
    team_text: Callable[[], str]  # the source of `cpu_native`'s functions
    concurrent = True

    def __init__(
        self, linker: Linker, target: str | None = None, compile: Callable[[str], bytes] | None = None
    ) -> None:
        self._target, self._compile = target, compile
        self._linker = linker
        self._heap = NativeHeap(self.name)
        self._made: Team | None = None

    def _team(self) -> Team | None:
        if self._made is None and self._compile is not None:
            code = self._compile(type(self).team_text())
            self._made = Team(functools.partial(self._linker.link_forever, code))
        return self._made

    def allocate(self, nbytes: int) -> int:
        return int(self._heap.allocate(nbytes))

    def free(self, handle: Handle) -> None:
        self._heap.free(handle)

    def write(self, handle: Handle, offset: int, data: memoryview) -> None:
        if data.nbytes:
            view = memoryview((ctypes.c_char * data.nbytes).from_address(handle + offset))
            view.cast("B")[:] = data

    def read(self, handle: Handle, offset: int, nbytes: int) -> memoryview:
        source = (ctypes.c_char * nbytes).from_address(handle + offset)
        if nbytes < MAP_BYTES:
            return memoryview(bytearray(source))
        # A large copy is a block of the heap, which is freed with the last view of it.
        address = self._heap.allocate(nbytes)
        copy = (ctypes.c_char * nbytes).from_address(address)
        release = functools.partial(self._heap.free, address)
        weakref.finalize(copy, defer, release).atexit = False
        ctypes.memmove(copy, source, nbytes)
        return memoryview(copy).cast("B")

    def view(self, handle: Handle, offset: int, nbytes: int, owner: object) -> memoryview:
        memory = (ctypes.c_char * nbytes).from_address(handle + offset)
        memory.owner = owner  # type: ignore[attr-defined]
        return memoryview(memory).cast("B")

    def map_file(self, descriptor: int, nbytes: int) -> tuple[Handle, object]:
        return map_file(self.name, descriptor, nbytes)

    def at_address(self, address: int, nbytes: int) -> Handle:
        return address

    def load(self, program: Program) -> Executable:
        program.require(self.name, self.language)
        if self._target is not None and program.target != self._target:
            raise ProgramError(
                f"{self.name}.load: a Program for {program.target}: expected {self._target}: compile it on "
                "this machine"
            )
        return (NativeStep if program.driver else NativeExecutable)(program, self._linker, self._team)
