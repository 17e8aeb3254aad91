"""WASM: WebAssembly with SIMD, run by wasmtime under CPython and by the host's own engine under Pyodide."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from polygrad.codegen.target import Target
from polygrad.engine.devices import Backend
from polygrad.engine.link import driver_of
from polygrad.helpers import env_int
from polygrad.renderer.builder import Builder
from polygrad.renderer.emit import emit
from polygrad.renderer.wasm.builder import RELAXED_DOTS, WASM_DOTS, WasmBuilder, wasm_module
from polygrad.renderer.wasm.driver import wasm_driver
from polygrad.runtime.limits import MAX_THREADS
from polygrad.runtime.program import Program
from polygrad.runtime.wasm.device import WasmRuntime
from polygrad.runtime.wasm.host import MAX_PAGES
from polygrad.uop.node import UOp
from polygrad.wasm.sharing import with_shared_memory
from polygrad.wasm.wat import print_module

_runtime = WasmRuntime()  # for the target; `open` gives it first
_unopened = [_runtime]
_relaxed = "relaxed-simd" in _runtime.features
_dots = RELAXED_DOTS if "relaxed-dot" in _runtime.features else WASM_DOTS
_shared = "threads" in _runtime.features


def _assemble(write: Callable[[Builder], Any]) -> bytes:
    function = write(WasmBuilder(_relaxed))
    return wasm_module([function], maximum=MAX_PAGES if _shared else None, shared=_shared)


def _compile(name: str, linear: list[UOp]) -> Callable[[], bytes]:
    code = _assemble(lambda builder: emit(name, linear, builder))
    return lambda: code


def _source(name: str, linear: list[UOp]) -> str:
    return print_module(_compile(name, linear)())


def _link(program: Program) -> Program:
    """`program` with a driver. The driver contains the kernels, so these keep no code of their own."""
    driver = wasm_driver(driver_of(program), [kernel.code for kernel in program.kernels])
    kernels = tuple(replace(kernel, code=b"") for kernel in program.kernels)
    return replace(program, kernels=kernels, driver=driver)


def _exported(program: Program) -> Program:
    """The Program as files have it. Where kernels are made for threads, all Programs import a shared memory,
    which they may share in a page, also if this host has none."""
    if BACKEND.target.threads == 1 or program.shared_memory:
        return program
    shared = program.with_code(lambda code: with_shared_memory(code, MAX_PAGES))
    return replace(shared, shared_memory=True)


BACKEND = Backend(
    target=Target(
        "WASM",
        simd_bytes=16,
        registers=15,
        fma=_relaxed,
        scalar_fma=_relaxed,
        threads=max(_runtime.host.threads, min(env_int("WASM_THREADS", 1), MAX_THREADS)),
        index_bits=32,
        dots=_dots,
        adding_dots=False,
    ),
    compile=_compile,
    open=lambda: _unopened.pop() if _unopened else WasmRuntime(),
    language="wasm",
    caches_on_disk=True,
    link=_link,
    exported=_exported,
    shared_memory=_shared,
    assemble=_assemble,
    indexed=not _shared,  # the threads belong to one engine
    packages=("wasmtime",),
    source=_source,
    source_name="WebAssembly text",
)
