"""A driver as one WebAssembly module: its kernels as functions, and an exported `run` that calls them.

    (func (export "run") (param $table i32)
      (call $kernel0 (i32.load offset=4*i $table) (i32.add (i32.load offset=4*j $table) (i32.const OFFSET))
      ...) ...)

The table's words are its entries, then the variables. The kernels come out of the modules they were compiled
to, with what was outlined of them; they refer to no index of their module but in calls of that.

When a call is parallel, `run` takes the thread's number and the number of threads too, and every thread calls
it. The barrier is that of `wasm_runtime/src/barrier.ts`, at the same words of memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from polygrad.errors import InternalError
from polygrad.helpers import PART, PARTS, THREAD, THREADS
from polygrad.renderer.driver import Call, Driver
from polygrad.renderer.wasm_outline import relocated
from polygrad.wasm.body import Body
from polygrad.wasm.module import Export, Function, Module
from polygrad.wasm.reader import read_module
from polygrad.wasm.types import I32

_WORD = 4
_ARRIVED, _GENERATION, _SLEEPERS, _FAILED, _MAY_SLEEP = range(0, 5 * _WORD, _WORD)  # byte addresses
_SPINS = 10_000  # before a thread sleeps
_NO_TIMEOUT, _ALL = -1, -1
_GIVEN = {THREAD: 1, PART: 1, THREADS: 2, PARTS: 2}  # each thread does one part


def wasm_driver(driver: Driver, kernels: Sequence[bytes]) -> bytes:
    """The module of a driver; `kernels` are the modules of its kernels, in their order."""
    modules = [read_module(code) for code in kernels]
    functions: list[Function] = []
    starts: list[int] = []
    for m in modules:
        starts.append(len(functions))
        functions += relocated(_functions(m), len(functions))
    imports = modules[0].imports if modules else ()
    run = len(functions)
    if driver.parallel:
        functions += [_parallel_run(driver, starts, run + 1), _barrier()]
    else:
        functions += [_serial_run(driver, starts)]
    return Module(imports, tuple(functions), exports=(Export("run", "func", run),)).to_bytes()


def _functions(module: Module) -> tuple[Function, ...]:
    parts = (module.tables, module.memories, module.globals, module.elements, module.datas)
    if any(parts) or not module.functions or len(module.imports) != 1:
        raise InternalError("driver: expected a kernel's module to be functions over one imported memory")
    return module.functions


def _serial_run(driver: Driver, starts: Sequence[int]) -> Function:
    body = Body("run", (I32,))
    for call in driver.calls:
        _call(body, driver, call, starts)
    return body.finish()


def _parallel_run(driver: Driver, starts: Sequence[int], barrier: int) -> Function:
    """A thread's part of the calls; `starts` are the numbers of the kernels, `barrier` that of its
    function."""
    body = Body("run", (I32, I32, I32))
    in_serial_block = False
    for call in driver.calls:
        if in_serial_block and (call.barrier or call.parallel):
            body.op("end")
            in_serial_block = False
        if call.barrier:
            body.op("local.get", 1).op("local.get", 2).op("call", barrier)
            body.op("i32.eqz").op("if").op("return").op("end")
        if not call.parallel and not in_serial_block:
            body.op("local.get", 1).op("i32.eqz").op("if")
            in_serial_block = True
        _call(body, driver, call, starts)
    if in_serial_block:
        body.op("end")
    return body.finish()


def _call(body: Body, driver: Driver, call: Call, starts: Sequence[int]) -> None:
    """The table is local 0, the thread's number 1, the number of threads 2."""
    for pointer in call.pointers:
        body.op("local.get", 0).op("i32.load", _WORD * pointer.entry)
        if pointer.offset:
            body.op("i32.const", pointer.offset).op("i32.add")
    for source in call.values:
        if isinstance(source, int):
            body.op("local.get", 0).op("i32.load", _WORD * (driver.entries + source))
        else:
            body.op("local.get", _GIVEN[source])
    body.op("call", starts[call.kernel])


def _barrier() -> Function:
    """Wait until all threads are here: (thread, threads) -> 0 when one of them trapped.

    generation = GENERATION
    if ARRIVED++ == threads - 1: ARRIVED = 0; GENERATION++; wake the sleepers
    else: while GENERATION == generation and not FAILED: spin SPINS times, then sleep if this thread may
    """
    body = Body("barrier", (I32, I32), (I32,))
    generation, spins = body.local(I32), body.local(I32)

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
    body.op("local.get", spins).op("i32.const", 1).op("i32.add").op("local.tee", spins)
    body.op("i32.const", _SPINS).op("i32.lt_s").op("br_if", 0)
    body.op("local.get", 0).op("i32.eqz")
    word(_MAY_SLEEP).op("i32.eqz").op("i32.and").op("br_if", 0)
    add(_SLEEPERS, 1).op("drop")
    body.op("i32.const", 0).op("local.get", generation).op("i64.const", _NO_TIMEOUT)
    body.op("memory.atomic.wait32", _GENERATION).op("drop")
    add(_SLEEPERS, -1).op("drop")
    body.op("br", 0).op("end").op("end")
    body.op("end")
    word(_FAILED).op("i32.eqz")
    return body.finish()
