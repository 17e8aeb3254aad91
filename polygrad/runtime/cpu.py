"""Device CPU: native code in this process. Memory of its own, object files linked by LLVM's ORC, calls by
ctypes.

A handle is the address of an allocation. Freed blocks are kept by size class and used again: fresh pages
cost more to touch than most kernels take to run. A kernel is linked once, however many Programs hold it. A
launch is one ctypes call: its argument table is made when the Program is loaded, and only pointers that
have changed since the last run are written. A captured Program is one call altogether, and so is one with
parallel kernels.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import llvmlite.binding as llvm

from polygrad.errors import CompileError, DeviceError, OutOfMemoryError, ProgramError
from polygrad.helpers import LRU, PART, PARTS, PARTS_PER_THREAD, THREAD_VARIABLES, THREADS
from polygrad.monitor import defer
from polygrad.runtime.cpu_native import BARRIER_BEFORE, HAS_PARTS, PARALLEL, team_text
from polygrad.runtime.cpu_threads import Counters, Team
from polygrad.runtime.interface import Executable, Handle, Runtime
from polygrad.runtime.program import Program
from polygrad.runtime.threads import get_num_threads

_ALIGN = 64  # of every allocation; as many bytes before and after one are readable
_MAP_BYTES = 1 << 20  # from this size on, memory comes from mmap, in huge pages where the system has them
_HUGE_PAGE = 2 << 20
_FREE_BYTES = 1 << 30  # freed memory kept for reuse, at most (and at most a quarter of the machine's)
_LINKED_BYTES = 16 << 20  # of linked kernels kept
_LIBRARY_BYTES = 40 << 10  # of a linked library beside its code, about
_LIBRARIES = 256  # linked by one JIT compiler

_MAP_FIXED = 0x10  # of every Unix; Python does not name it

_KernelFunction = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
_DriverFunction = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
)


@functools.cache
def _physical_memory() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # no sysconf on this system
        return 1 << 62


def _size_class(nbytes: int) -> int:
    """`nbytes` rounded up to one of eight sizes per power of two: at most an eighth is lost. In 64s."""
    step = max(_ALIGN, 1 << max((nbytes - 1).bit_length() - 4, 0))
    return -(-nbytes // step) * step


class _Heap:
    """Aligned blocks of memory by address, freed ones kept by size class."""

    def __init__(self) -> None:
        self.live: dict[int, tuple[int, Any]] = {}  # address -> size class, what keeps the memory alive
        self.free: OrderedDict[int, list[tuple[int, Any]]] = OrderedDict()  # by size class, least used first
        self.free_bytes = 0
        self.free_limit = min(_FREE_BYTES, _physical_memory() // 4)

    def allocate(self, nbytes: int) -> int:
        size = _size_class(nbytes)
        blocks = self.free.get(size)
        if blocks:
            address, owner = blocks.pop()
            self.free_bytes -= size
            self.free.move_to_end(size)
        else:
            address, owner = self._fresh(nbytes, size)
        self.live[address] = (size, owner)
        return address

    def _fresh(self, nbytes: int, size: int) -> tuple[int, Any]:
        if nbytes <= _physical_memory():
            try:
                return _map(size)
            except (MemoryError, OSError, ValueError, OverflowError):
                self.trim(0)
                try:
                    return _map(size)
                except (MemoryError, OSError, ValueError, OverflowError):
                    pass
        raise OutOfMemoryError(
            f"device CPU: expected room for an allocation of {nbytes} bytes, got none "
            f"({len(self.live)} blocks are in use): free tensors, or use smaller ones"
        )

    def release(self, address: int) -> None:
        size, owner = self.live.pop(address)
        if size > self.free_limit:
            return
        self.free.setdefault(size, []).append((address, owner))
        self.free_bytes += size
        if self.free_bytes > self.free_limit:
            self.trim(self.free_limit // 2)

    def trim(self, limit: int) -> None:
        """Give kept memory back until no more than `limit` bytes are kept."""
        while self.free_bytes > limit:
            size, blocks = next(iter(self.free.items()))
            while blocks and self.free_bytes > limit:
                blocks.pop()
                self.free_bytes -= size
            if not blocks:
                del self.free[size]


def _map(size: int) -> tuple[int, Any]:
    """Fresh memory: an aligned address with `size` bytes and a guard on both sides, and its owner."""
    large = size >= _MAP_BYTES
    align = _HUGE_PAGE if size >= 2 * _HUGE_PAGE else _ALIGN
    total = size + 2 * _ALIGN + align
    memory = _pages(total) if large else bytearray(total)
    owner = (ctypes.c_char * total).from_buffer(memory)
    start = ctypes.addressof(owner) + _ALIGN
    return -(-start // align) * align, owner


def _pages(size: int) -> Any:
    """Anonymous pages, huge where the system has them (private: shared ones are seldom huge)."""
    if not hasattr(mmap, "MAP_PRIVATE"):  # Windows
        return mmap.mmap(-1, size)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        try:
            memory.madvise(mmap.MADV_HUGEPAGE)
        except OSError:  # a kernel built without them
            pass
    return memory


def _map_file(descriptor: int, nbytes: int) -> tuple[int, Any]:
    """A file mapped copy on write, between two readable pages. Raises DeviceError."""
    if not hasattr(mmap, "MAP_PRIVATE"):
        raise DeviceError("device CPU: expected a system that maps files at an address, got Windows")
    page = mmap.PAGESIZE
    region = mmap.mmap(-1, -(-nbytes // page) * page + 2 * page, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    owner = (ctypes.c_char * len(region)).from_buffer(region)
    start = ctypes.addressof(owner) + page
    place = ctypes.CDLL(None, use_errno=True).mmap
    place.restype = ctypes.c_void_p
    place.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_ssize_t)
    flags = mmap.MAP_PRIVATE | _MAP_FIXED
    if place(start, nbytes, mmap.PROT_READ | mmap.PROT_WRITE, flags, descriptor, 0) != start:
        raise DeviceError(
            f"device CPU: expected a file that can be mapped, got: {os.strerror(ctypes.get_errno())}"
        )
    return start, owner


class _Linker:
    """Object files -> callable functions, one ORC library per kernel.

    ORC frees the code of a library that is dropped, not the library's own memory (9 KB): that goes with its
    JIT compiler, so there is a new one now and then, and an old one goes with the last of its libraries.
    """

    def __init__(self) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self.jit = llvm.create_lljit_compiler()
        self.count = 0
        self.kept: list[Any] = []
        self.linked: LRU[tuple[str, bytes], tuple[Any, Any]] = LRU(_LINKED_BYTES)

    def link(self, name: str, code: bytes) -> tuple[Any, Any]:
        """A ctypes function, and what keeps its code alive. Raises CompileError."""
        key = (name, code)
        found = self.linked.get(key)
        if found is None:
            library = llvm.JITLibraryBuilder().add_object_img(code).export_symbol(name)
            try:
                tracker = self._linked(library)
            except RuntimeError as e:
                raise CompileError(
                    f"kernel {name}: expected an object file for this machine, got: {e}"
                ) from e
            found = _KernelFunction(tracker[name]), tracker
            self.linked.put(key, found, 2 * len(code) + _LIBRARY_BYTES)
        return found

    def _linked(self, library: Any) -> Any:
        """A library's tracker, which keeps its code and its JIT compiler. Raises RuntimeError."""
        self.count += 1
        if self.count % _LIBRARIES == 0:
            self.jit = llvm.create_lljit_compiler()
        return library.link(self.jit, f"polygrad{self.count}")

    def link_forever(self, code: bytes, names: list[str]) -> list[int]:
        """The addresses of functions that stay as long as this linker."""
        library = llvm.JITLibraryBuilder().add_object_img(code)
        for name in names:
            library.export_symbol(name)
        tracker = self._linked(library)
        self.kept.append(tracker)
        return [tracker[name] for name in names]

    def link_driver(self, program: Program) -> tuple[int, list[Any]]:
        """The address of a Program's driver, and what keeps its code alive. Raises CompileError."""
        kernels = [self.link(kernel.name, kernel.code) for kernel in program.kernels]
        library = llvm.JITLibraryBuilder().add_object_img(program.driver).export_symbol("run")
        for kernel, (function, _) in zip(program.kernels, kernels, strict=True):
            address = ctypes.cast(function, ctypes.c_void_p).value
            library.import_symbol(kernel.name, address)
        try:
            tracker = self._linked(library)
        except RuntimeError as e:
            raise CompileError(f"driver: expected an object file for this machine, got: {e}") from e
        return tracker["run"], [tracker, *(t for _, t in kernels)]


class CPUExecutable(Executable):
    """A Program's launches as (function, address of its pointer table, address of its variables).

    A Program with parallel kernels has them as a list for `run_list` as well, and variables for each thread.
    """

    def __init__(self, program: Program, linker: _Linker, team: Callable[[], Team | None]) -> None:
        functions = [linker.link(kernel.name, kernel.code) for kernel in program.kernels]
        self._trackers = [tracker for _, tracker in functions]
        n_pointers = sum(len(launch.bindings) for launch in program.launches)
        n_variables = sum(len(program.kernels[launch.kernel].variables) for launch in program.launches)
        self._pointers = (ctypes.c_uint64 * max(n_pointers, 1))()
        self._stride = -(-max(n_variables, 1) // 8) * 8  # between two threads' values
        self._values = (ctypes.c_int64 * (self._stride * program.threads))()
        self._launches: list[tuple[Any, int, int]] = []
        self._team, self._max_threads = team, program.threads
        # For every buffer, and last for the arena: the table's slots that hold it, each with its byte offset.
        self._slots: list[list[tuple[int, int]]] = [[] for _ in range(len(program.buffers) + 1)]
        self._names: list[tuple[int, str]] = []  # positions of the values of Variables
        # what positions hold beside: how many times as much as there are threads
        self._counts: list[tuple[int, int]] = []
        self._parts: list[int] = []  # positions of the number of the part
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
        self._bound: list[Handle | None] = []  # what the table holds
        has_parts = [PART in program.kernels[launch.kernel].variables for launch in program.launches]
        self._counters = Counters(sum(has_parts), program.threads)
        self._list = self._launch_list(program)
        self._list_address = ctypes.addressof(self._list)

    def _launch_list(self, program: Program) -> Any:
        """The launches for `run_list`."""
        words, start = [len(self._launches), 8 * self._stride], ctypes.addressof(self._values)
        number = 0
        for launch, (function, table, values) in zip(program.launches, self._launches, strict=True):
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
        handles = [*buffers, arena]
        if handles != self._bound:
            self._bind(handles)
        threads = min(get_num_threads(), self._max_threads) if self._max_threads > 1 else 1
        if self._names:
            self._set_variables(variables, threads)
        if threads > 1 and self._run_parallel(threads):
            return
        for position, _ in self._counts:
            self._values[position] = 1
        for position in self._parts:
            self._values[position] = 0
        for function, table, values in self._launches:
            function(table, values)

    def _run_parallel(self, threads: int) -> bool:
        team = self._team()
        if team is None:
            return False
        for row in range(0, threads * self._stride, self._stride):
            for position, factor in self._counts:
                self._values[row + position] = threads * factor
        values = ctypes.addressof(self._values)
        return team.run(team.run_list, self._list_address, values, threads, self._counters)

    def _bind(self, handles: list[Handle | None]) -> None:
        """Write the pointers that differ from the last run's."""
        if len(handles) != len(self._slots):
            raise ProgramError(f"run: expected {len(self._slots) - 1} buffers, got {len(handles) - 1}")
        before = self._bound or [None] * len(handles)
        self._bound = []  # until all is written
        pointers = self._pointers
        for i, handle in enumerate(handles):
            if handle is None:
                if self._slots[i]:
                    what = f"buffer {i}" if i < len(handles) - 1 else "the arena"
                    raise ProgramError(f"run: expected memory for {what}, got None")
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
            raise ProgramError(f"run: expected a value for the variable {e}, got {sorted(variables)}") from e


class CPUStep(Executable):
    """A captured Program: one call, of its driver, on a table that is written when something in it
    changes.
    """

    def __init__(self, program: Program, linker: _Linker, team: Callable[[], Team | None]) -> None:
        self._job, self._trackers = linker.link_driver(program)
        self._function = _DriverFunction(self._job)
        self._team, self._max_threads = team, program.threads
        has_parts = (PART in program.kernels[launch.kernel].variables for launch in program.launches)
        self._counters = Counters(sum(has_parts), program.threads)
        self._names = [v.name for v in program.variables]
        self._needed = [
            i for i, b in enumerate(program.buffers) if b.role != "scratch" and b.size
        ]  # the buffers without elements are in no launch
        n = len(program.buffers)
        if program.arena:
            self._needed.append(n)
        self._table = (ctypes.c_uint64 * (n + 1))()
        self._values = (ctypes.c_int64 * max(len(self._names), 1))()
        self._addresses = (ctypes.addressof(self._table), ctypes.addressof(self._values))
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
                    f"run: expected a value for the variable {name}, got {sorted(variables)}"
                ) from None
        if self._max_threads > 1 and (threads := min(get_num_threads(), self._max_threads)) > 1:
            team = self._team()
            if team is not None and team.run(self._job, *self._addresses, threads, self._counters):
                return
        self._function(*self._addresses, 0, 1, None)

    def _bind(self, handles: list[Handle | None]) -> None:
        if len(handles) != len(self._table):
            raise ProgramError(f"run: expected {len(self._table) - 1} buffers, got {len(handles) - 1}")
        for i in self._needed:
            if handles[i] is None:
                what = f"buffer {i}" if i < len(handles) - 1 else "the arena"
                raise ProgramError(f"run: expected memory for {what}, got None")
        self._table[:] = [handle or 0 for handle in handles]
        *self._bound, self._arena = handles


class CPURuntime(Runtime):
    """This process's processor and memory. `target`: the only Program.target to run here (None: any).
    `compile`: LLVM IR text to an object file; without it there are no threads.
    """

    name, concurrent = "CPU", True

    def __init__(self, target: str | None = None, compile: Callable[[str], bytes] | None = None) -> None:
        self._target, self._compile = target, compile
        self._linker = _Linker()
        self._heap = _Heap()
        self._made: Team | None = None

    def _team(self) -> Team | None:
        if self._made is None and self._compile is not None:
            code = self._compile(team_text())
            self._made = Team(functools.partial(self._linker.link_forever, code))
        return self._made

    def allocate(self, nbytes: int) -> int:
        return self._heap.allocate(nbytes)

    def free(self, handle: Handle) -> None:
        self._heap.release(handle)

    def write(self, handle: Handle, offset: int, data: memoryview) -> None:
        if data.nbytes:
            view = memoryview((ctypes.c_char * data.nbytes).from_address(handle + offset))
            view.cast("B")[:] = data

    def read(self, handle: Handle, offset: int, nbytes: int) -> memoryview:
        source = (ctypes.c_char * nbytes).from_address(handle + offset)
        if nbytes < _MAP_BYTES:
            return memoryview(bytearray(source))
        # A large copy goes to a block of the heap, which comes back when the last view of it is gone.
        address = self._heap.allocate(nbytes)
        copy = (ctypes.c_char * nbytes).from_address(address)
        release = functools.partial(self._heap.release, address)
        weakref.finalize(copy, defer, release).atexit = False
        ctypes.memmove(copy, source, nbytes)
        return memoryview(copy).cast("B")

    def view(self, handle: Handle, offset: int, nbytes: int, owner: object) -> memoryview:
        memory = (ctypes.c_char * nbytes).from_address(handle + offset)
        memory.owner = owner  # type: ignore[attr-defined]
        return memoryview(memory).cast("B")

    def map_file(self, descriptor: int, nbytes: int) -> tuple[Handle, object]:
        return _map_file(descriptor, nbytes)

    def at_address(self, address: int, nbytes: int) -> Handle:
        return address

    def load(self, program: Program) -> Executable:
        program.require(self.name, "object")
        if self._target is not None and program.target != self._target:
            raise ProgramError(
                f"CPU.load: expected code for {self._target}, got code for {program.target}: "
                "compile it on this machine"
            )
        return (CPUStep if program.driver else CPUExecutable)(program, self._linker, self._team)
