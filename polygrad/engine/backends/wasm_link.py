"""A captured Program as one WebAssembly module: its kernels as functions, and an exported `run` that calls
them.

    (func (export "run") (param $table i32)
      (call $kernel0 (i32.load offset=4*i $table) (i32.add (i32.load offset=4*j $table) (i32.const OFFSET))
      ...) ...)

The kernels come out of the modules they were compiled to. They call nothing and refer to no index of their
module, so they are taken as they are.

When threads divide the work of a kernel, `run` takes the thread's number and the number of threads too, and
every thread calls it. Thread 0 alone runs the other kernels, and before and after a divided one the threads
meet. How they meet, and at which words, `wasm_runtime/src/barrier.ts` says; this is the same barrier.
"""

from __future__ import annotations

from dataclasses import replace

from polygrad.errors import InternalError
from polygrad.runtime.program import THREAD, THREADS, Program
from polygrad.wasm.body import Body
from polygrad.wasm.module import Export, Function, Module
from polygrad.wasm.reader import read_module
from polygrad.wasm.types import I32

_WORD = 4
_ARRIVED, _GENERATION, _SLEEPERS, _FAILED, _PATIENT = range(0, 5 * _WORD, _WORD)  # byte addresses
_SPINS = 10_000  # how often to look before sleeping
_FOREVER, _ALL = -1, -1


def link_wasm(program: Program) -> Program:
    """`program` with a driver that holds its kernels, which have no code of their own any more."""
    modules = [read_module(kernel.code) for kernel in program.kernels]
    kernels = tuple(_only_function(m) for m in modules)
    imports = modules[0].imports if modules else ()
    parallel = any(kernel.parallel for kernel in program.kernels)
    functions = (*kernels, _run_parallel(program), _meet()) if parallel else (*kernels, _run(program))
    driver = Module(imports, functions, exports=(Export("run", "func", len(kernels)),))
    bare = tuple(replace(kernel, code=b"") for kernel in program.kernels)
    return replace(program, kernels=bare, driver=driver.to_bytes())


def _only_function(module: Module) -> Function:
    parts = (module.tables, module.memories, module.globals, module.elements, module.datas)
    if any(parts) or len(module.functions) != 1 or len(module.imports) != 1:
        raise InternalError("linking: expected a kernel's module to be one function over one imported memory")
    return module.functions[0]


def _run(program: Program) -> Function:
    """Calls in order."""
    body = Body("run", (I32,))
    for number in range(len(program.launches)):
        _call(body, program, number)
    return body.finish()


def _run_parallel(program: Program) -> Function:
    """A thread's part of the calls in order; `_meet` is the function behind this one."""
    body = Body("run", (I32, I32, I32))
    divided = [program.kernels[launch.kernel].parallel for launch in program.launches]
    alone = False  # inside what thread 0 does
    for number, parallel in enumerate(divided):
        if parallel and alone:
            body.op("end")
        if number and (parallel or divided[number - 1]):
            body.op("local.get", 1).op("local.get", 2).op("call", len(program.kernels) + 1)
            body.op("i32.eqz").op("if").op("return").op("end")
        if not parallel and not alone:
            body.op("local.get", 1).op("i32.eqz").op("if")
        alone = not parallel
        _call(body, program, number)
    if alone:
        body.op("end")
    return body.finish()


def _call(body: Body, program: Program, number: int) -> None:
    """Launch number `number`: the table is the local 0, the thread's number 1, the number of threads 2."""
    launch = program.launches[number]
    words = {v.name: len(program.buffers) + 1 + i for i, v in enumerate(program.variables)}
    for binding in launch.bindings:
        word, offset = program.place(binding)
        body.op("local.get", 0).op("i32.load", _WORD * word)
        if offset:
            body.op("i32.const", offset).op("i32.add")
    for name in program.kernels[launch.kernel].variables:
        if name in (THREAD, THREADS):
            body.op("local.get", 1 if name == THREAD else 2)
        else:
            body.op("local.get", 0).op("i32.load", _WORD * words[name])
    body.op("call", launch.kernel)


def _meet() -> Function:
    """Wait until all threads are here: (thread, threads) -> 0 when one of them trapped.

    generation = GENERATION
    if ARRIVED++ == threads - 1: ARRIVED = 0; GENERATION++; wake the sleepers
    else: while GENERATION == generation and not FAILED: look SPINS times, then sleep if this thread may
    """
    body = Body("meet", (I32, I32), (I32,))
    generation, looks = body.local(I32), body.local(I32)

    def word(address: int) -> Body:
        return body.op("i32.const", 0).op("i32.atomic.load", address)

    def add(address: int, value: int) -> Body:
        return body.op("i32.const", 0).op("i32.const", value).op("i32.atomic.rmw.add", address)

    word(_GENERATION).op("local.set", generation)
    add(_ARRIVED, 1).op("local.get", 1).op("i32.const", 1).op("i32.sub").op("i32.eq").op("if")
    body.op("i32.const", 0).op("i32.const", 0).op("i32.atomic.store", _ARRIVED)
    add(_GENERATION, 1).op("drop")
    word(_SLEEPERS).op("if")
    body.op("i32.const", 0).op("i32.const", _ALL).op("memory.atomic.notify", _GENERATION).op("drop")
    body.op("end")
    body.op("else")
    body.op("block").op("loop")
    word(_GENERATION).op("local.get", generation).op("i32.ne").op("br_if", 1)
    word(_FAILED).op("br_if", 1)
    body.op("local.get", looks).op("i32.const", 1).op("i32.add").op("local.tee", looks)
    body.op("i32.const", _SPINS).op("i32.lt_s").op("br_if", 0)
    body.op("local.get", 0).op("i32.eqz")
    word(_PATIENT).op("i32.eqz").op("i32.and").op("br_if", 0)
    add(_SLEEPERS, 1).op("drop")
    body.op("i32.const", 0).op("local.get", generation).op("i64.const", _FOREVER)
    body.op("memory.atomic.wait32", _GENERATION).op("drop")
    add(_SLEEPERS, -1).op("drop")
    body.op("br", 0).op("end").op("end")
    body.op("end")
    word(_FAILED).op("i32.eqz")
    return body.finish()
