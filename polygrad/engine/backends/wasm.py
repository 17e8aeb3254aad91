"""WASM: WebAssembly with SIMD, run by wasmtime under CPython and by the host's own engine under Pyodide."""

from __future__ import annotations

from collections.abc import Callable

from polygrad.codegen.target import Target
from polygrad.engine.backends.wasm_link import link_wasm
from polygrad.engine.devices import Backend
from polygrad.renderer.emit import emit
from polygrad.renderer.wasm import WasmBuilder, wasm_module
from polygrad.runtime.wasm import WasmRuntime
from polygrad.runtime.wasm_host import MAX_PAGES
from polygrad.uop.node import UOp

_runtime = WasmRuntime()
_relaxed = "relaxed-simd" in _runtime.features
_shared = "threads" in _runtime.features


def _compile(name: str, linear: list[UOp]) -> Callable[[], bytes]:
    function = emit(name, linear, WasmBuilder(_relaxed))
    code = wasm_module([function], maximum=MAX_PAGES if _shared else None, shared=_shared)
    return lambda: code


BACKEND = Backend(
    target=Target(
        "WASM", simd_bytes=16, registers=15, fma=_relaxed, threads=_runtime.host.threads, index_bits=32
    ),
    compile=_compile,
    open=lambda: _runtime,
    language="wasm",
    caches_on_disk=True,
    link=link_wasm,
    shared_memory=_shared,
)
