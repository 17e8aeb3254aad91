"""CPU: this machine's own processor, through LLVM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from polygrad.engine.cache import DiskCache
from polygrad.engine.devices import Backend
from polygrad.engine.link import driver_of
from polygrad.renderer.builder import Builder
from polygrad.renderer.emit import emit
from polygrad.renderer.llvm import LLVMBuilder
from polygrad.renderer.llvm_compile import compile_ir, host_has_half, host_target, submit, warm_up
from polygrad.renderer.llvm_driver import llvm_driver
from polygrad.runtime.cpu import CPURuntime
from polygrad.runtime.program import Program
from polygrad.uop.node import UOp

_target = host_target()


def _compile(name: str, linear: list[UOp]) -> Callable[[], bytes]:
    return submit(emit(name, linear, LLVMBuilder(_target, host_has_half()))).result


def _assemble(write: Callable[[Builder], Any]) -> bytes:
    return submit(write(LLVMBuilder(_target, host_has_half()))).result()


def _compile_cached(target: str, text: str) -> bytes:
    """The object file of LLVM IR text, from the disk cache if it has it."""
    cache, key = DiskCache.default(), DiskCache.key(target, text)
    code = cache.get(key)
    if code is None:
        code = compile_ir(text)
        cache.put(key, code)
    return code


def _link(program: Program) -> Program:
    """`program` with a driver."""
    return replace(program, driver=_compile_cached(program.target, llvm_driver(driver_of(program))))


BACKEND = Backend(
    target=_target,
    compile=_compile,
    open=lambda: CPURuntime(compile=lambda text: _compile_cached(_target.key, text)),
    language="object",
    caches_on_disk=True,
    link=_link,
    prepare=warm_up,
    assemble=_assemble,
)
