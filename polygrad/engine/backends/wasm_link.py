"""A captured Program as one WebAssembly module: its kernels as functions, and an exported `run` that calls
them.

    (func (export "run") (param $table i32)
      (call $kernel0 (i32.load offset=4*i $table) (i32.add (i32.load offset=4*j $table) (i32.const OFFSET))
      ...) ...)

The kernels come out of the modules they were compiled to. They call nothing and refer to no index of their
module, so they are taken as they are.
"""

from __future__ import annotations

from dataclasses import replace

from polygrad.errors import InternalError
from polygrad.runtime.program import Program
from polygrad.wasm.body import Body
from polygrad.wasm.module import Export, Function, Module
from polygrad.wasm.reader import read_module
from polygrad.wasm.types import I32

_WORD = 4


def link_wasm(program: Program) -> Program:
    """`program` with a driver that holds its kernels, which have no code of their own any more."""
    modules = [read_module(kernel.code) for kernel in program.kernels]
    kernels = tuple(_only_function(m) for m in modules)
    imports = modules[0].imports if modules else ()
    functions = (*kernels, _run(program))
    driver = Module(imports, functions, exports=(Export("run", "func", len(kernels)),))
    bare = tuple(replace(kernel, code=b"") for kernel in program.kernels)
    return replace(program, kernels=bare, driver=driver.to_bytes())


def _only_function(module: Module) -> Function:
    parts = (module.tables, module.memories, module.globals, module.elements, module.datas)
    if any(parts) or len(module.functions) != 1 or len(module.imports) != 1:
        raise InternalError("linking: expected a kernel's module to be one function over one imported memory")
    return module.functions[0]


def _run(program: Program) -> Function:
    """Calls in order. Between kernels that depend on each other is where threads will have to meet."""
    words = {v.name: len(program.buffers) + 1 + i for i, v in enumerate(program.variables)}
    body = Body("run", (I32,))
    for launch in program.launches:
        for binding in launch.bindings:
            word, offset = program.place(binding)
            body.op("local.get", 0).op("i32.load", _WORD * word)
            if offset:
                body.op("i32.const", offset).op("i32.add")
        for name in program.kernels[launch.kernel].variables:
            body.op("local.get", 0).op("i32.load", _WORD * words[name])
        body.op("call", launch.kernel)
    return body.finish()
