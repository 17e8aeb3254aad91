"""A driver as one WebAssembly module: its kernels as functions, and an exported `run` that calls them.

    (func (export "run") (param $table i32)
      (call $kernel0 (i32.load offset=4*i $table) (i32.add (i32.load offset=4*j $table) (i32.const OFFSET))
      ...) ...)

The table's words are its entries, then the variables. At the commit point (`runtime/undo.py`) `run` returns
if it was asked to stop; else it notes that it has passed that point. Where threads share the memory, one
exchange of the word COMMITTED decides that for all of them, and for the thread that asks. The kernels are
taken out of the modules that they were compiled to, with their outlined parts. They refer to nothing else of
their module by index.

When a call is parallel, `run` takes the thread's number and the number of threads, too, and every thread
calls it. Threads share the words of `shared_words.py`. `wasm_runtime/src/barrier.ts` and `kernel_calls.ts`
implement the same barrier and the same counters of parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from polygrad.errors import InternalError
from polygrad.helpers import PART, PARTS, PARTS_PER_THREAD, THREAD, THREADS
from polygrad.renderer.driver import Driver, DriverCall
from polygrad.renderer.wasm.outline import relocate
from polygrad.shared_words import (
    ARRIVED,
    CLOSED,
    COMMITTED,
    COUNTER_LINES,
    COUNTERS,
    FAILED,
    FIRST_BUFFER,
    GENERATION,
    LINE_BYTES,
    MAY_SLEEP,
    OPEN,
    SLEEPERS,
    STOP,
    STOPPED,
)
from polygrad.wasm.body import FunctionBody
from polygrad.wasm.module import DefinedFunction, Export, Import, Module
from polygrad.wasm.reader import read_module
from polygrad.wasm.types import I32, MemoryType

_WORD = 4
_SPINS = 10_000  # before a thread sleeps
_NO_TIMEOUT, _ALL = -1, -1
_TABLE, _THREAD, _THREADS = range(3)  # the parameters of `run`


def wasm_driver(driver: Driver, kernels: Sequence[bytes]) -> bytes:
    """The module of a driver; `kernels` are the modules of its kernels, in their order."""
    modules = [read_module(code) for code in kernels]
    functions: list[DefinedFunction] = []
    starts: list[int] = []
    for m in modules:
        starts.append(len(functions))
        functions += relocate(_functions(m), len(functions))
    imports = modules[0].imports if modules else ()
    run = len(functions)
    if driver.parallel:
        functions += [_parallel_run(driver, starts, run + 1), _barrier()]
    else:
        functions += [_serial_run(driver, starts, _is_shared(imports))]
    return Module(imports, tuple(functions), exports=(Export("run", "func", run),)).to_bytes()


def _functions(module: Module) -> tuple[DefinedFunction, ...]:
    parts = (module.tables, module.memories, module.globals, module.elements, module.datas)
    if any(parts) or not module.functions or len(module.imports) != 1:
        raise InternalError("driver: a kernel's module has more than functions and one imported memory")
    return module.functions


def _is_shared(imports: Sequence[Import]) -> bool:
    return any(isinstance(i.type, MemoryType) and i.type.shared for i in imports)


def _serial_run(driver: Driver, starts: Sequence[int], is_shared: bool) -> DefinedFunction:
    body = FunctionBody("run", (I32,))
    for i, call in enumerate(driver.calls):
        if i == driver.commit and is_shared:
            _commit(body)
        elif i == driver.commit:
            body.op("i32.const", 0).op("i32.load", STOP).op("if").op("return").op("end")
            body.op("i32.const", 0).op("i32.const", 1).op("i32.store", COMMITTED)
        _call(body, driver, call, starts)
    return body.finish()


def _commit(body: FunctionBody) -> None:
    """Return if the run was stopped, and else let nobody stop it any more."""
    body.op("i32.const", 0).op("i32.const", OPEN).op("i32.const", CLOSED)
    body.op("i32.atomic.rmw.cmpxchg", COMMITTED).op("i32.const", STOPPED).op("i32.eq")
    body.op("if").op("return").op("end")


def _parallel_run(driver: Driver, starts: Sequence[int], barrier: int) -> DefinedFunction:
    """A thread's share of the calls. `starts`: the function numbers of the kernels; `barrier`: of the
    barrier."""
    body = FunctionBody("run", (I32, I32, I32))
    parts = _Parts(body) if any(call.has_parts for call in driver.calls) else None
    in_serial_block, line = False, 0
    for i, call in enumerate(driver.calls):
        if i == driver.commit:
            if in_serial_block:
                body.op("end")
                in_serial_block = False
            _commit(body)
        waits = call.barrier or (call.has_parts and line == COUNTER_LINES)
        if in_serial_block and (waits or call.parallel):
            body.op("end")
            in_serial_block = False
        if waits:
            body.op("local.get", _THREAD).op("local.get", _THREADS).op("call", barrier)
            body.op("i32.eqz").op("if").op("return").op("end")
            line = 0
        if not call.parallel and not in_serial_block:
            body.op("local.get", _THREAD).op("i32.eqz").op("if")
            in_serial_block = True
        if parts is not None and call.has_parts:
            parts.begin(COUNTERS + line * LINE_BYTES)
            _call(body, driver, call, starts, {PART: parts.part, PARTS: parts.count})
            parts.end()
            line += 1
        else:
            _call(body, driver, call, starts)
    if in_serial_block:
        body.op("end")
    return body.finish()


class _Parts:
    """The loops around a call, which repeat it for each part that this thread takes.

    owner = thread
    repeat threads times:
        while (taken = counters[owner]++) < per_thread: call(part = owner * per_thread + taken)
        owner = owner + 1 == threads ? 0 : owner + 1

    A single thread's launch is one part.
    """

    def __init__(self, body: FunctionBody) -> None:
        self._body = body
        self._per_thread, self._owner, self._turns = (body.local(I32) for _ in range(3))
        self.part, self.count = body.local(I32), body.local(I32)
        body.op("local.get", _THREADS).op("i32.const", 1).op("i32.eq").op("if", I32)
        _clear_counters(body)  # for several threads the barrier clears them
        body.op("i32.const", 1).op("else").op("i32.const", PARTS_PER_THREAD).op("end")
        body.op("local.tee", self._per_thread)
        body.op("local.get", _THREADS).op("i32.mul").op("local.set", self.count)

    def begin(self, counters: int) -> None:
        """`counters` is the address of the launch's line."""
        body = self._body
        body.op("local.get", _THREAD).op("local.set", self._owner)
        body.op("local.get", _THREADS).op("local.set", self._turns)
        body.op("loop").op("block").op("loop")
        body.op("local.get", self._owner).op("i32.const", 2).op("i32.shl")
        body.op("i32.const", 1).op("i32.atomic.rmw.add", counters)
        body.op("local.tee", self.part)
        body.op("local.get", self._per_thread).op("i32.ge_u").op("br_if", 1)
        body.op("local.get", self._owner).op("local.get", self._per_thread).op("i32.mul")
        body.op("local.get", self.part).op("i32.add").op("local.set", self.part)

    def end(self) -> None:
        body = self._body
        body.op("br", 0).op("end").op("end")
        body.op("i32.const", 0).op("local.get", self._owner).op("i32.const", 1).op("i32.add")
        body.op("local.tee", self._owner)
        body.op("local.get", self._owner).op("local.get", _THREADS).op("i32.eq").op("select")
        body.op("local.set", self._owner)
        body.op("local.get", self._turns).op("i32.const", 1).op("i32.sub").op("local.tee", self._turns)
        body.op("br_if", 0).op("end")


def _call(
    body: FunctionBody,
    driver: Driver,
    call: DriverCall,
    starts: Sequence[int],
    parts: Mapping[str, int] | None = None,
) -> None:
    """Write a call. `parts`: the locals that hold the part's number and the number of parts."""
    local_of = {THREAD: _THREAD, THREADS: _THREADS, **(parts or {})}
    for pointer in call.pointers:
        body.op("local.get", _TABLE).op("i32.load", _WORD * pointer.entry)
        if pointer.offset:
            body.op("i32.const", pointer.offset).op("i32.add")
    for source in call.values:
        if isinstance(source, int):
            body.op("local.get", _TABLE).op("i32.load", _WORD * (driver.entries + source))
        else:
            body.op("local.get", local_of[source])
    body.op("call", starts[call.kernel])


def _clear_counters(body: FunctionBody) -> None:
    body.op("i32.const", COUNTERS).op("i32.const", 0).op("i32.const", FIRST_BUFFER - COUNTERS)
    body.op("memory.fill")


def _barrier() -> DefinedFunction:
    """A function that waits for all threads: (thread, threads) -> 0 when one of them trapped, else 1.

    generation = GENERATION
    if ARRIVED++ == threads - 1: ARRIVED = 0; clear the counters; GENERATION++; wake the sleepers
    else: while GENERATION == generation and not FAILED: spin SPINS times, then sleep if this thread may
    """
    body = FunctionBody("barrier", (I32, I32), (I32,))
    generation, spins = body.local(I32), body.local(I32)

    def word(address: int) -> FunctionBody:
        return body.op("i32.const", 0).op("i32.atomic.load", address)

    def add(address: int, value: int) -> FunctionBody:
        return body.op("i32.const", 0).op("i32.const", value).op("i32.atomic.rmw.add", address)

    word(GENERATION).op("local.set", generation)
    add(ARRIVED, 1).op("local.get", 1).op("i32.const", 1).op("i32.sub").op("i32.eq").op("if")
    body.op("i32.const", 0).op("i32.const", 0).op("i32.atomic.store", ARRIVED)
    _clear_counters(body)
    add(GENERATION, 1).op("drop")
    word(SLEEPERS).op("if")
    body.op("i32.const", 0).op("i32.const", _ALL).op("memory.atomic.notify", GENERATION).op("drop")
    body.op("end")
    body.op("else")
    body.op("block").op("loop")
    word(GENERATION).op("local.get", generation).op("i32.ne").op("br_if", 1)
    word(FAILED).op("br_if", 1)
    body.op("local.get", spins).op("i32.const", 1).op("i32.add").op("local.tee", spins)
    body.op("i32.const", _SPINS).op("i32.lt_s").op("br_if", 0)
    body.op("local.get", 0).op("i32.eqz")
    word(MAY_SLEEP).op("i32.eqz").op("i32.and").op("br_if", 0)
    add(SLEEPERS, 1).op("drop")
    body.op("i32.const", 0).op("local.get", generation).op("i64.const", _NO_TIMEOUT)
    body.op("memory.atomic.wait32", GENERATION).op("drop")
    add(SLEEPERS, -1).op("drop")
    body.op("br", 0).op("end").op("end")
    body.op("end")
    word(FAILED).op("i32.eqz")
    return body.finish()
