"""Device CC: native code in this process, shared objects that the system's dynamic linker loads."""

from __future__ import annotations

import _ctypes
import ctypes
import os
import tempfile
import weakref
from collections.abc import Callable
from typing import Any

from polygrad.errors import CompileError
from polygrad.helpers import LRU
from polygrad.runtime.cpu import stop as native_stop
from polygrad.runtime.cpu.base import KernelFunction, Linker, NativeRuntime
from polygrad.runtime.cpu.cc_native import team_text
from polygrad.runtime.program import Program
from polygrad.shared_words import STOP_SYMBOL

_LINKED_BYTES = 32 << 20  # of libraries kept


class SharedObject:
    """A loaded shared object. It is unloaded when this object is destroyed."""

    def __init__(self, code: bytes, what: str) -> None:
        # Each has a separate file, which is deleted once it is mapped. A path is loaded only once per
        # process, and drivers must not share variables.
        number, path = tempfile.mkstemp(prefix="polygrad-", suffix=".so")
        try:
            with open(number, "wb") as file:
                file.write(code)
            self._library = ctypes.CDLL(path)
        except OSError as e:
            reason = str(e).removeprefix(path).lstrip(": ")
            raise CompileError(f"{what}: the shared object does not load on this machine: {reason}") from e
        finally:
            os.remove(path)
        weakref.finalize(self, _ctypes.dlclose, self._library._handle).atexit = False

        self._set_stop_word()

    def _set_stop_word(self) -> None:
        """Set the address of the stop word, if the library has kernels with safepoints."""
        try:
            pointer = ctypes.c_void_p.in_dll(self._library, STOP_SYMBOL)
        except ValueError:
            return
        pointer.value = native_stop.ADDRESS

    def address(self, name: str) -> int:
        """The address of a function or variable. Raises CompileError."""
        try:
            return ctypes.addressof(ctypes.c_char.in_dll(self._library, name))
        except ValueError as e:
            raise CompileError(f"shared object: it has no symbol {name}") from e


class _SharedObjectLinker(Linker):
    """Kernels that were compiled together are one library."""

    def __init__(self) -> None:
        self.linked: LRU[bytes, SharedObject] = LRU(_LINKED_BYTES)
        self.kept: list[SharedObject] = []

    def _library(self, code: bytes, what: str) -> SharedObject:
        library = self.linked.get(code)
        if library is None:
            library = SharedObject(code, what)
            self.linked.put(code, library, 2 * len(code))
        return library

    def link(self, name: str, code: bytes) -> tuple[Any, Any]:
        library = self._library(code, f"kernel {name}")
        return KernelFunction(library.address(name)), library

    def link_forever(self, code: bytes, names: list[str]) -> list[int]:
        library = SharedObject(code, "threads")
        self.kept.append(library)
        return [library.address(name) for name in names]

    def link_driver(self, program: Program) -> tuple[int, list[Any]]:
        """Link a driver; its array `kernels` gets the addresses of the kernels."""
        driver = SharedObject(program.driver, "driver")
        libraries = [self._library(k.code, f"kernel {k.name}") for k in program.kernels]
        addresses = [library.address(k.name) for library, k in zip(libraries, program.kernels, strict=True)]
        if addresses:
            array = (ctypes.c_uint64 * len(addresses)).from_address(driver.address("kernels"))
            for i, address in enumerate(addresses):
                array[i] = address
        return driver.address("run"), [driver, *libraries]


class CCRuntime(NativeRuntime):
    """This process's processor and memory (see NativeRuntime). `compile`: C source to a shared object."""

    name, language = "CC", "library"
    team_text = staticmethod(team_text)

    def __init__(self, target: str | None = None, compile: Callable[[str], bytes] | None = None) -> None:
        super().__init__(_SharedObjectLinker(), target, compile)
