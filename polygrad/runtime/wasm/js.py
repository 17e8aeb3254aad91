"""The JavaScript engine as a `WasmHost`, for Pyodide: a thin wrapper of the TypeScript class `WasmHost`.

`page_host.py` says where it comes from. A run crosses into JavaScript twice: the table of words, and the
call.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from pyodide.ffi import JsException, to_js

from polygrad.errors import CompileError, InternalError
from polygrad.runtime.page_host import page_host
from polygrad.runtime.threads import get_num_threads
from polygrad.runtime.wasm.host import WORD, WasmCall, WasmCalls, WasmFunction, WasmHost

_PARALLEL, _BARRIER = 1, 2  # flags of a call, as `wasm_runtime/src/launches.ts` has them


def open_host(confined: bool = False) -> JsHost:
    """A host with a memory of its own. It cannot kill a run, confined or not: there is one thread."""
    return JsHost(page_host().openHost())


class JsHost(WasmHost):
    """The engine that runs Pyodide itself; the tensors' memory is not Pyodide's."""

    def __init__(self, host: Any) -> None:
        self.features = frozenset(host.features)
        self.threads = int(host.bound)
        self._host, self._threads = host, int(host.threads)
        self._grow, self._view, self._kernel = host.grow, host.view, host.kernel
        self._launches = host.launches

    def grow(self, nbytes: int) -> int:
        return int(self._grow(nbytes))

    def write(self, address: int, data: memoryview) -> None:
        self._view(address, len(data)).assign(data)

    def read(self, address: int, nbytes: int) -> memoryview:
        out = bytearray(nbytes)
        self._view(address, nbytes).assign_to(out)
        return memoryview(out)

    def load(self, name: str, code: bytes) -> WasmFunction:
        try:
            return WasmFunction(name, self._kernel(name, to_js(code)))
        except JsException as e:
            raise CompileError(e.message) from e

    def use_threads(self, count: int) -> None:
        """Let runs have up to `count` threads, or as many as the host has."""
        if count != self._threads:
            self._host.threads = self._threads = count

    def ready_threads(self) -> int:
        """The number of threads that a run would have now; it does not wait for threads that are starting."""
        self.use_threads(get_num_threads())
        return int(self._host.ready)

    def prepare(self, calls: Sequence[WasmCall], n_bases: int) -> JsCalls:
        self.use_threads(get_num_threads())  # starts no threads if one is enough
        functions = list({id(call.function): call.function for call in calls}.values())
        numbers = {id(f): i for i, f in enumerate(functions)}
        plan = array(WORD)
        for call in calls:
            plan.append(numbers[id(call.function)])
            plan.append((_PARALLEL if call.parallel else 0) | (_BARRIER if call.barrier else 0))
            plan.append(len(call.sources))
            for source, offset in zip(call.sources, call.offsets, strict=True):
                plan.append(source)
                plan.append(offset)
        kernels = to_js([f.value for f in functions])
        try:
            return JsCalls(self, self._launches(kernels, to_js(plan), n_bases), functions)
        except JsException as e:
            raise CompileError(e.message) from e


class JsCalls(WasmCalls):
    """A JavaScript `LaunchList`."""

    def __init__(self, host: JsHost, launches: Any, functions: list[WasmFunction]) -> None:
        self._use_threads = host.use_threads
        self._functions = functions  # keeps them in the host's cache as long as this list of calls lives
        self._assign, self._run = launches.bases.assign, launches.run
        self._bases: array[int] | None = None

    def run(self, bases: array[int]) -> None:
        if bases != self._bases:
            self._assign(bases)
            self._bases = bases
        self._use_threads(get_num_threads())
        try:
            self._run()
        except JsException as e:
            raise InternalError(e.message) from e
