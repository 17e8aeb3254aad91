"""CPU: this machine's own processor, through LLVM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from polygrad.codegen.target import Target
from polygrad.engine.backends.native import linker, with_disk_cache
from polygrad.engine.devices import Backend
from polygrad.renderer.builder import Builder
from polygrad.renderer.emit import emit
from polygrad.renderer.llvm.builder import LLVMBuilder
from polygrad.renderer.llvm.compile import (
    assembly_of,
    compile_ir,
    host_has_half,
    host_target,
    llvm_version,
    processor_name,
    submit,
    warm_up,
)
from polygrad.renderer.llvm.driver import llvm_driver
from polygrad.runtime.cpu.device import CPURuntime
from polygrad.uop.node import UOp

_target = host_target()


def _compile(name: str, linear: list[UOp]) -> Callable[[], bytes]:
    return submit(_source(name, linear)).result


def _source(name: str, linear: list[UOp]) -> str:
    return str(emit(name, linear, LLVMBuilder(_target, host_has_half())))


def _for_target(target: Target) -> Backend:
    def compile_kernel(name: str, linear: list[UOp]) -> Callable[[], bytes]:
        return submit(str(emit(name, linear, LLVMBuilder(target, host_has_half())))).result

    return replace(BACKEND, target=target, compile=compile_kernel)


def _assemble(write: Callable[[Builder], Any]) -> bytes:
    return submit(write(LLVMBuilder(_target, host_has_half()))).result()


BACKEND = Backend(
    target=_target,
    compile=_compile,
    open=lambda: CPURuntime(compile=with_disk_cache(compile_ir, _target.key)),
    language="object",
    caches_on_disk=True,
    link=linker(compile_ir, llvm_driver),
    prepare=warm_up,
    assemble=_assemble,
    indexed=True,
    packages=("llvmlite",),
    about=lambda: f"LLVM {llvm_version()} for {processor_name()}",
    source=_source,
    source_name="LLVM IR",
    assembly=assembly_of,
    for_target=_for_target,
)
