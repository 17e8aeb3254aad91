"""Device CPU: native code in this process, object files linked by LLVM's ORC."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm

from polygrad.errors import CompileError
from polygrad.helpers import LRU
from polygrad.runtime.cpu import stop as native_stop
from polygrad.runtime.cpu.base import KernelFunction, Linker, NativeRuntime
from polygrad.runtime.cpu.native import team_text
from polygrad.runtime.program import Program
from polygrad.shared_words import STOP_SYMBOL

_LINKED_BYTES = 16 << 20  # of linked kernels kept
_LIBRARY_BYTES = 40 << 10  # of a linked library beside its code, about
_LIBRARIES = 256  # linked by one JIT compiler


class _OrcLinker(Linker):
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
        key = (name, code)
        found = self.linked.get(key)
        if found is None:
            library = llvm.JITLibraryBuilder().add_object_img(code).export_symbol(name)
            library.import_symbol(STOP_SYMBOL, native_stop.ADDRESS)
            try:
                tracker = self._linked(library)
            except RuntimeError as e:
                raise CompileError(
                    f"kernel {name}: expected an object file for this machine, got: {e}"
                ) from e
            found = KernelFunction(tracker[name]), tracker
            self.linked.put(key, found, 2 * len(code) + _LIBRARY_BYTES)
        return found

    def _linked(self, library: Any) -> Any:
        """A library's tracker, which keeps its code and its JIT compiler. Raises RuntimeError."""
        self.count += 1
        if self.count % _LIBRARIES == 0:
            self.jit = llvm.create_lljit_compiler()
        return library.link(self.jit, f"polygrad{self.count}")

    def link_forever(self, code: bytes, names: list[str]) -> list[int]:
        library = llvm.JITLibraryBuilder().add_object_img(code)
        for name in names:
            library.export_symbol(name)
        tracker = self._linked(library)
        self.kept.append(tracker)
        return [tracker[name] for name in names]

    def link_driver(self, program: Program) -> tuple[int, list[Any]]:
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


class CPURuntime(NativeRuntime):
    """This process's processor and memory (see NativeRuntime). `compile`: LLVM IR text to an object file."""

    name, language = "CPU", "object"
    team_text = staticmethod(team_text)

    def __init__(self, target: str | None = None, compile: Callable[[str], bytes] | None = None) -> None:
        super().__init__(_OrcLinker(), target, compile)
