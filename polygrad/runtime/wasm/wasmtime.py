"""The wasmtime engine as a `WasmHost`, for CPython.

A call through `wasmtime.Func` takes some 30 µs, because each call reads the function's type and boxes its
arguments. The launches of a Program never change, so their argument vectors are laid out once, and wasmtime's
C function `wasmtime_func_call_unchecked` is called on them, which takes 0.5 µs. Types are checked when the
calls are prepared.

There is one thread, because wasmtime's Python package cannot import a shared memory. A Store frees all its
instances at once, so a loaded kernel stays in it, and `load` caches it.

A confined host runs code of somebody else. Its modules have checks, by which `kill` ends a run from another
thread: they import a second memory, `polygrad.stop` (`polygrad/wasm/stops.py`).
"""

from __future__ import annotations

import ctypes
import itertools
import struct
import weakref
from array import array
from collections.abc import Sequence
from typing import NoReturn

from wasmtime import (
    Config,
    Engine,
    Func,
    Instance,
    Limits,
    Memory,
    MemoryType,
    Module,
    Store,
    Trap,
    ValType,
    WasmtimeError,
)
from wasmtime import _bindings as c_api

from polygrad.errors import CompileError, InternalError
from polygrad.runtime.interface import Control
from polygrad.runtime.wasm.host import MAX_PAGES, PAGE, WasmCall, WasmCalls, WasmFunction, WasmHost

# There is one instance for each kernel. The default limit is 10,000; the system's limit of mappings is
# reached at some 30,000.
_MAX_INSTANCES = 1 << 30
_VALUE_BYTES = ctypes.sizeof(c_api.wasmtime_val_raw_t)
_I32 = ValType.i32()

# Without argument types ctypes converts nothing: every argument is prepared as a c_void_p or c_size_t.
_call_unchecked = ctypes.CFUNCTYPE(ctypes.c_void_p)(("wasmtime_func_call_unchecked", c_api.dll))


# (1 + 2^-12)^2 - (1 + 2^-11) is 2^-24, or 0 if the product is rounded first.
_MULTIPLY_ADD = """
(module (func (export "f") (result i32)
  (i32x4.extract_lane 0
    (f32x4.relaxed_madd
      (f32x4.splat (f32.const 0x1.001p0))
      (f32x4.splat (f32.const 0x1.001p0))
      (f32x4.splat (f32.const -0x1.002p0))))))
"""


def _fuses(engine: Engine) -> bool:
    """Whether the multiply-add of relaxed SIMD rounds once, as kernels of `pow`, `exp` and `sin` rely on. It
    rounds the product, too, on a processor that has no such instruction."""
    store = Store(engine)
    instance = Instance(store, Module(engine, _MULTIPLY_ADD), [])
    return bool(instance.exports(store)["f"](store))


def open_host(confined: bool = False) -> WasmtimeHost:
    return WasmtimeHost(confined)


class WasmtimeHost(WasmHost):
    """One wasmtime Store and Memory."""

    def __init__(self, confined: bool = False) -> None:
        config = Config()
        config.cranelift_opt_level = "speed"
        config.wasm_simd = True
        config.wasm_relaxed_simd = True
        config.parallel_compilation = False  # its threads do not survive a fork, and the child would deadlock
        self.engine = Engine(config)
        fused = ("relaxed-simd",) if _fuses(self.engine) else ()
        self.features = frozenset(("simd", "relaxed-dot", *fused))
        self.store = Store(self.engine)
        self.store.set_limits(instances=_MAX_INSTANCES)
        self.memory = Memory(self.store, MemoryType(Limits(1, None)))
        self._stop: Memory | None = None  # of the checks: another memory than that of the code
        if confined:
            self._stop = Memory(self.store, MemoryType(Limits(1, 1)))
            self._stop_word = self._stop.data_ptr(self.store)  # it stays there: the memory cannot grow
            self.killable = True
        # before the package's own finalizers, which fail at exit because their module is already cleared
        weakref.finalize(self, _close, self.store, self.engine)
        self._functions: dict[tuple[str, bytes], WasmFunction] = {}
        self._map()

    def _map(self) -> None:
        """Make a new view of the memory, which may move when it grows."""
        length = self.memory.data_len(self.store)
        address = ctypes.addressof(self.memory.data_ptr(self.store).contents)
        self._view = memoryview((ctypes.c_ubyte * length).from_address(address)).cast("B")

    def grow(self, nbytes: int) -> int:
        have = self.memory.size(self.store)
        pages = -(-nbytes // PAGE)
        if pages > MAX_PAGES:
            return 0
        if pages > have:
            try:
                self.memory.grow(self.store, pages - have)
            except WasmtimeError:
                return 0
            self._map()
        return len(self._view)

    def write(self, address: int, data: memoryview) -> None:
        self._view[address : address + len(data)] = data

    def read(self, address: int, nbytes: int) -> memoryview:
        return memoryview(bytearray(self._view[address : address + nbytes]))

    def load(self, name: str, code: bytes) -> WasmFunction:
        kernel = self._functions.get((name, code))
        if kernel is None:
            try:
                module = Module(self.engine, code)
                imports = self._imports(module)
                function = Instance(self.store, module, imports).exports(self.store)[name]
            except (WasmtimeError, KeyError) as e:
                raise CompileError(f"kernel {name}: expected a module wasmtime accepts, got {e}") from e
            if not isinstance(function, Func):
                raise CompileError(f"kernel {name}: expected a function, got {type(function).__name__}")
            kernel = self._functions[name, code] = WasmFunction(name, function)
        return kernel

    def _imports(self, module: Module) -> list[Memory]:
        if self._stop is None:
            return [self.memory] if module.imports else []
        if not module.imports or module.imports[-1].module != "polygrad":
            raise WasmtimeError("a module without checks")
        return [self.memory, self._stop][-len(module.imports) :]

    def prepare(self, calls: Sequence[WasmCall], n_bases: int) -> WasmtimeCalls:
        return WasmtimeCalls(self, calls)

    def kill(self) -> None:
        self._stop_word[0] = 1

    def revive(self) -> None:
        self._stop_word[0] = 0


class WasmtimeCalls(WasmCalls):
    """Argument vectors, back to back, and the C calls on them."""

    def __init__(self, host: WasmtimeHost, calls: Sequence[WasmCall]) -> None:
        self._host = host  # keeps the store and its functions alive
        self._names = [call.function.name for call in calls]
        self._sources = [s for call in calls for s in call.sources]
        self._offsets = [o for call in calls for o in call.offsets]
        self._bases: array[int] | None = None
        self._values = (c_api.wasmtime_val_raw_t * max(len(self._sources), 1))()
        self._pack = struct.Struct("<" + f"Q{_VALUE_BYTES - 8}x" * len(self._sources)).pack_into
        self._traps = (ctypes.c_void_p * max(len(calls), 1))()  # one for each call
        context = ctypes.cast(host.store._context(), ctypes.c_void_p)
        address = ctypes.addressof(self._values)
        self._calls = []
        for i, call in enumerate(calls):
            trap = ctypes.c_void_p(ctypes.addressof(self._traps) + i * ctypes.sizeof(ctypes.c_void_p))
            _check_type(host.store, call)
            n = len(call.sources)
            function = ctypes.c_void_p(ctypes.addressof(call.function.value._func))
            self._calls.append((context, function, ctypes.c_void_p(address), ctypes.c_size_t(n), trap))
            address += n * _VALUE_BYTES

    def run(self, bases: array[int]) -> None:
        self._set(bases)
        results: list[int | None] = []
        self.calls_made = results
        results.extend(itertools.starmap(_call_unchecked, self._calls))
        if any(results) or any(self._traps):
            self._raise(results)

    def run_stoppable(self, bases: array[int], control: Control) -> bool:
        self._set(bases)
        for i, arguments in enumerate(self._calls):
            if control.stopped or (i == control.commit and not control.begin_commit()):
                return False
            error = _call_unchecked(*arguments)
            if error or self._traps[i]:
                self._raise([*[None] * i, error])
        return not control.stopped

    def _set(self, bases: array[int]) -> None:
        """Write the arguments."""
        if bases != self._bases:
            words = [*bases, 0, 1, 0, 1]  # thread 0 of 1, part 0 of 1
            values = [words[s] + o & 0xFFFFFFFF for s, o in zip(self._sources, self._offsets, strict=True)]
            self._pack(self._values, 0, *values)
            self._bases = bases

    def _raise(self, errors: Sequence[int | None]) -> NoReturn:
        """Raises the first error or trap of the calls."""
        causes: list[tuple[str, Exception]] = []
        for i, (name, error) in enumerate(zip(self._names, errors)):
            if error:
                pointer = ctypes.cast(error, ctypes.POINTER(c_api.wasmtime_error_t))
                causes.append((name, WasmtimeError._from_ptr(pointer)))
            if self._traps[i]:
                pointer = ctypes.cast(self._traps[i] or 0, ctypes.POINTER(c_api.wasm_trap_t))
                causes.append((name, Trap._from_ptr(pointer)))
                self._traps[i] = None
        name, cause = causes[0]
        raise InternalError(f"kernel {name}: trapped: {cause}") from cause


def _close(store: Store, engine: Engine) -> None:
    store.close()
    engine.close()


def _check_type(store: Store, call: WasmCall) -> None:
    kind = call.function.value.type(store)
    if kind.params != [_I32] * len(call.sources) or kind.results:
        raise CompileError(
            f"kernel {call.function.name}: expected {len(call.sources)} parameters i32 and no result, "
            f"got {[str(p) for p in kind.params]} and {[str(r) for r in kind.results]}"
        )
