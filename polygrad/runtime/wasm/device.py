"""`WasmRuntime`: the WASM device. Kernels are WebAssembly modules, run by the engine of the host.

Handles are addresses in the host's one memory, in which `Heap` allocates. When a Program is loaded, every
launch becomes a call whose arguments are words of one table (the bound buffers, the arena, the variables)
plus constants. So a run writes the table and passes it once, for any number of launches.
"""

from __future__ import annotations

import importlib
import sys
from array import array
from collections.abc import Callable, Mapping, Sequence, Sized
from typing import Any
from weakref import WeakValueDictionary

from polygrad.errors import DeviceError, ProgramError
from polygrad.helpers import PART, PARTS, THREAD, THREADS, env_int
from polygrad.runtime.heap import ALIGN, Heap
from polygrad.runtime.interface import Control, Executable, Runtime
from polygrad.runtime.program import Launch, Program
from polygrad.runtime.wasm.host import MAX_PAGES, PAGE, WORD, WasmCall, WasmCalls, WasmFunction, WasmHost
from polygrad.shared_words import COMMITTED, FIRST_BUFFER, STOP

_WORD_MASK = 0xFFFFFFFF

MAX_BYTES = MAX_PAGES * PAGE - PAGE  # without the last page: an allocation must not end at 2**32, which is 0


def default_host(confined: bool = False) -> WasmHost:
    """The page's or Node's engine under Pyodide, wasmtime elsewhere. `confined`: for code of somebody else.
    Raises DeviceError."""
    if sys.platform == "emscripten":
        module, advice = "js", "load polygrad with its own loader (polygrad.load, loadPolygrad)"
    else:
        module, advice = "wasmtime", "pip install wasmtime"
    try:
        host: WasmHost = importlib.import_module(f"polygrad.runtime.wasm.{module}").open_host(confined)
    except ImportError as e:
        raise DeviceError(f"device WASM: there is no WebAssembly engine: {e}: {advice}") from e
    return host


class WasmRuntime(Runtime):
    """A WebAssembly engine as a device.

    `limit` is the most bytes its memory may grow to; the environment's `WASM_MEMORY_LIMIT` by default.
    """

    name = "WASM"

    def __init__(self, host: WasmHost | None = None, limit: int | None = None) -> None:
        self.host = default_host() if host is None else host
        self.features, self.killable = self.host.features, self.host.killable
        limit = env_int("WASM_MEMORY_LIMIT", MAX_BYTES) if limit is None else limit
        self.heap = Heap(self.host.grow, min(limit, MAX_BYTES), start=FIRST_BUFFER)
        self._functions: WeakValueDictionary[tuple[str, bytes], WasmFunction] = WeakValueDictionary()

    def confined(self) -> WasmRuntime:
        return WasmRuntime(default_host(confined=True))

    def allocate(self, nbytes: int) -> int:
        return self.heap.allocate(nbytes)

    def reserve(self, sizes: Sequence[int]) -> None:
        self.heap.reserve(sum(-(-nbytes // ALIGN) * ALIGN for nbytes in sizes))

    def free(self, handle: int) -> None:
        self.heap.free(handle)

    def write(self, handle: int, offset: int, data: memoryview) -> None:
        self.host.write(handle + offset, data)

    def read(self, handle: int, offset: int, nbytes: int) -> memoryview:
        return self.host.read(handle + offset, nbytes)

    def load(self, program: Program) -> Executable:
        """Raises ProgramError for another device's Program, CompileError when the engine rejects a kernel."""
        program.require(self.name, "wasm")
        return WasmStep(self, program) if program.driver else WasmExecutable(self, program)

    def function(self, name: str, code: bytes) -> WasmFunction:
        """The kernel `name` of `code`. Equal bytes share one instance as long as it is used."""
        kernel = self._functions.get((name, code))
        if kernel is None:
            kernel = self._functions[name, code] = self.host.load(name, code)
        return kernel


class _WasmProgram(Executable):
    """Common base of Programs in an engine: words in its memory ask their kernels to stop."""

    stoppable = True
    _calls: WasmCalls
    _runtime: WasmRuntime

    @property
    def calls_made(self) -> Sized:  # type: ignore[override]
        return self._calls.calls_made

    @calls_made.setter
    def calls_made(self, value: Sized) -> None:
        self._calls.calls_made = value

    def halt(self) -> None:
        self._runtime.host.set_word(STOP, 1)

    def kill(self) -> None:
        self._runtime.host.kill()

    def go_on(self) -> None:
        self._runtime.host.set_word(STOP, 0)
        if self.killable:
            self._runtime.host.revive()


class WasmExecutable(_WasmProgram):
    """A Program's launches as calls."""

    def __init__(self, runtime: WasmRuntime, program: Program) -> None:
        self._runtime, self._program, self.calls = runtime, program, len(program.launches)
        self.killable = runtime.killable
        self._bound = [i for i, spec in enumerate(program.buffers) if spec.role != "scratch"]
        functions = [runtime.function(k.name, k.code) for k in program.kernels]
        sources = _Sources(program, self._bound)
        calls = [sources.call(functions[x.kernel], x) for x in program.launches]
        self._calls = runtime.host.prepare(calls, sources.count)

    def run(self, buffers: Sequence[int | None], arena: int | None, variables: Mapping[str, int]) -> None:
        self._calls.run(self._table(buffers, arena, variables))

    def run_stoppable(
        self,
        buffers: Sequence[int | None],
        arena: int | None,
        variables: Mapping[str, int],
        control: Control,
    ) -> bool:
        return self._calls.run_stoppable(self._table(buffers, arena, variables), control)

    def _table(
        self, buffers: Sequence[int | None], arena: int | None, variables: Mapping[str, int]
    ) -> array[int]:
        words: list[Any] = [buffers[i] for i in self._bound]
        words.append(arena or 0)
        words += [value & _WORD_MASK for value in self._program.check_variables(variables)]
        try:
            return array(WORD, words)
        except TypeError as e:
            raise ProgramError(f"run: expected allocations for buffers {self._bound}, got {words}") from e


class WasmStep(_WasmProgram):
    """A captured Program: one call of its driver on a table in memory, which is written again when it
    changes."""

    commits_itself = True

    def __init__(self, runtime: WasmRuntime, program: Program) -> None:
        self._runtime, self._program = runtime, program
        self.killable = runtime.killable
        self._words: list[int | None] = []
        function = runtime.function("run", program.driver)
        parallel = any(kernel.parallel for kernel in program.kernels)
        sources = (0, 1, 2) if parallel else (0,)
        self._calls = runtime.host.prepare([WasmCall(function, sources, (0,) * len(sources), parallel)], 1)
        self._table = runtime.heap.allocate(4 * (len(program.buffers) + 1 + len(program.variables)))
        self._bases = array(WORD, [self._table])

    def __del__(self, exiting: Callable[[], bool] = sys.is_finalizing) -> None:
        table = getattr(self, "_table", None)
        if table is not None and not exiting():
            self._runtime.heap.free(table)

    def run(self, buffers: Sequence[int | None], arena: int | None, variables: Mapping[str, int]) -> None:
        words = [*buffers, arena]
        if self._program.variables:
            words += [value & _WORD_MASK for value in self._program.check_variables(variables)]
        if words != self._words:
            self._write(words)
        self._calls.run(self._bases)

    def run_stoppable(
        self,
        buffers: Sequence[int | None],
        arena: int | None,
        variables: Mapping[str, int],
        control: Control,
    ) -> bool:
        self._runtime.host.set_word(COMMITTED, 0)
        self.run(buffers, arena, variables)
        return not control.stopped

    def is_committed(self) -> bool:
        return self._runtime.host.word(COMMITTED) != 0

    def _write(self, words: list[int | None]) -> None:
        n_buffers = len(words) - 1 - len(self._program.variables)
        self._program.check_memory(words[:n_buffers], words[n_buffers])
        self._words = []  # so that an exception invalidates the table
        table = array(WORD, [word or 0 for word in words])
        self._runtime.host.write(self._table, memoryview(table).cast("B"))
        self._words = words


class _Sources:
    """The sources of the arguments of a Program's launches. The table has bound buffers, the arena,
    variables."""

    def __init__(self, program: Program, bound: list[int]) -> None:
        self._kernels = program.kernels
        self._places = {b: (i, 0) for i, b in enumerate(bound)}
        for i, spec in enumerate(program.buffers):
            if spec.role == "scratch":
                self._places[i] = (len(bound), spec.offset)
        self._variables = {v.name: len(bound) + 1 + i for i, v in enumerate(program.variables)}
        self.count = len(bound) + 1 + len(program.variables)
        self._variables |= {name: self.count + i for i, name in enumerate((THREAD, THREADS, PART, PARTS))}

    def call(self, function: WasmFunction, launch: Launch) -> WasmCall:
        """The call of a launch, whose kernel is `function`."""
        kernel = self._kernels[launch.kernel]
        if len(launch.bindings) != kernel.n_buffers:
            raise ProgramError(
                f"kernel {kernel.name}: expected {kernel.n_buffers} bindings, got {len(launch.bindings)}"
            )
        sources, offsets = [], []
        for b in launch.bindings:
            source, offset = self._places[b.buffer]
            sources.append(source)
            offsets.append(offset + b.offset)
        for name in kernel.variables:
            sources.append(self._variables[name])
            offsets.append(0)
        return WasmCall(function, tuple(sources), tuple(offsets), kernel.parallel, launch.barrier)
