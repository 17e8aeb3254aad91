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

_LINKED_BYTES = 16 << 20  # the most bytes of linked kernels in the cache
_LIBRARY_BYTES = 40 << 10  # the approximate overhead of a linked library, besides its code
_LIBRARIES = 256  # the number of libraries that one JIT compiler links


class _OrcLinker(Linker):
    """Object files -> callable functions, one ORC library per kernel.

    When a library is dropped, ORC frees its code, but not the library's own memory (9 KB), which lives as
    long as the JIT compiler. So the JIT compiler is replaced from time to time; an old one is freed with the
    last of its libraries.
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
        linked_kernel = self.linked.get(key)
        if linked_kernel is None:
            library = llvm.JITLibraryBuilder().add_object_img(code).export_symbol(name)
            library.import_symbol(STOP_SYMBOL, native_stop.ADDRESS)
            try:
                tracker = self._link_library(library)
            except RuntimeError as e:
                raise CompileError(
                    f"kernel {name}: the object file does not link on this machine: {e}"
                ) from e
            linked_kernel = KernelFunction(tracker[name]), tracker
            self.linked.put(key, linked_kernel, 2 * len(code) + _LIBRARY_BYTES)
        return linked_kernel

    def _link_library(self, library: Any) -> Any:
        """Link a library; its tracker keeps the code and the JIT compiler alive. Raises RuntimeError."""
        self.count += 1
        if self.count % _LIBRARIES == 0:
            self.jit = llvm.create_lljit_compiler()
        return library.link(self.jit, f"polygrad{self.count}")

    def link_forever(self, code: bytes, names: list[str]) -> list[int]:
        library = llvm.JITLibraryBuilder().add_object_img(code)
        for name in names:
            library.export_symbol(name)
        tracker = self._link_library(library)
        self.kept.append(tracker)
        return [tracker[name] for name in names]

    def link_driver(self, program: Program) -> tuple[int, list[Any]]:
        kernels = [self.link(kernel.name, kernel.code) for kernel in program.kernels]
        library = llvm.JITLibraryBuilder().add_object_img(program.driver).export_symbol("run")
        for kernel, (function, _) in zip(program.kernels, kernels, strict=True):
            address = ctypes.cast(function, ctypes.c_void_p).value
            library.import_symbol(kernel.name, address)
        try:
            tracker = self._link_library(library)
        except RuntimeError as e:
            raise CompileError(f"driver: the object file does not link on this machine: {e}") from e
        return tracker["run"], [tracker, *(t for _, t in kernels)]


class CPURuntime(NativeRuntime):
    """This process's processor and memory (see NativeRuntime). `compile`: LLVM IR text to an object file."""

    name, language = "CPU", "object"
    team_text = staticmethod(team_text)

    def __init__(self, target: str | None = None, compile: Callable[[str], bytes] | None = None) -> None:
        super().__init__(_OrcLinker(), target, compile)
