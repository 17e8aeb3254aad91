"""CC: this machine's own processor, through the system's C compiler.

A compiler takes longer to start than to compile most kernels, and a shared object is mostly padding. So
several kernels are compiled together, in the background, while others are written.
"""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Callable
from typing import Any

from polygrad.background import compilers
from polygrad.engine.backends.native import linker, with_disk_cache
from polygrad.engine.devices import Backend
from polygrad.renderer.builder import Builder
from polygrad.renderer.cstyle.base import FunctionText, module
from polygrad.renderer.cstyle.c import CBuilder
from polygrad.renderer.cstyle.c_compile import (
    assembly_of,
    compile_c,
    compiler_version,
    host_has_half,
    host_target,
)
from polygrad.renderer.cstyle.c_driver import c_driver
from polygrad.renderer.emit import emit
from polygrad.runtime.cpu.cc import CCRuntime
from polygrad.uop.node import UOp

_KERNELS_TOGETHER = 6

_target = host_target()
_native_half = host_has_half()


class _Batch:
    """Kernels that are compiled together, as soon as there are enough of them or the code of one is
    needed."""

    def __init__(self) -> None:
        self.functions: dict[str, FunctionText] = {}
        self._code: concurrent.futures.Future[bytes] | None = None

    def takes(self, name: str) -> bool:
        return self._code is None and name not in self.functions and len(self.functions) < _KERNELS_TOGETHER

    def add(self, name: str, function: FunctionText) -> None:
        self.functions[name] = function
        if len(self.functions) == _KERNELS_TOGETHER:
            self.submit()

    def submit(self) -> concurrent.futures.Future[bytes]:
        if self._code is None:
            self._code = compilers().submit(compile_c, module(list(self.functions.values())))
        return self._code

    def code(self) -> bytes:
        with _lock:
            future = self.submit()
        return future.result()


_lock = threading.Lock()
_open = _Batch()


def _compile(name: str, linear: list[UOp]) -> Callable[[], bytes]:
    global _open
    function = emit(name, linear, CBuilder(_target, _native_half))
    with _lock:
        if not _open.takes(name):
            _open.submit()
            _open = _Batch()
        _open.add(name, function)
        return _open.code


def _assemble(write: Callable[[Builder], Any]) -> bytes:
    return compile_c(str(write(CBuilder(_target, _native_half))))


BACKEND = Backend(
    target=_target,
    compile=_compile,
    open=lambda: CCRuntime(compile=with_disk_cache(compile_c, _target.key)),
    language="library",
    caches_on_disk=True,
    link=linker(compile_c, c_driver),
    assemble=_assemble,
    indexed=True,
    about=compiler_version,
    source=lambda name, linear: str(emit(name, linear, CBuilder(_target, _native_half))),
    source_name="C",
    assembly=assembly_of,
)
