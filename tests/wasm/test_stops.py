"""Checks that end functions of modules from outside."""

from __future__ import annotations

import ctypes
import threading
from dataclasses import replace

import pytest

wasmtime = pytest.importorskip("wasmtime", reason="wasmtime is the WebAssembly engine of CPython")

from polygrad.errors import CompileError  # noqa: E402
from polygrad.wasm.reader import Reader, read_module  # noqa: E402
from polygrad.wasm.stops import stoppable  # noqa: E402


def assembled(text: str) -> bytes:
    return bytes(wasmtime.wat2wasm(text))


def names(code: bytes) -> list[str]:
    """The instructions of the first function of a module."""
    reader = Reader(code)
    reader.locals()
    return [x.opcode.name for x in reader.expression()]


TEXT = """(module (import "env" "memory" (memory 1))
 (func (export "f") (param i32) (result i32) (local i64 v128)
  (loop $a (loop $b (br_if $b (local.get 0)) (br_if $a (local.get 0))))
  (memory.fill (i32.const 0) (i32.const 1) (i32.const 2))
  (block (if (local.get 0) (then (nop)) (else (nop))))
  (local.get 0)))"""


def test_checks_are_at_the_start_of_functions_and_loops_and_after_what_goes_through_memory() -> None:
    code = stoppable(assembled(TEXT))
    wasmtime.Module.validate(wasmtime.Engine(), code)
    body = wasmtime.Module(wasmtime.Engine(), code)
    assert [(i.module, i.name) for i in body.imports] == [("env", "memory"), ("polygrad", "stop")]
    before = read_module(assembled(TEXT)).functions[0].code
    # a check is 11 bytes, for the function, two loops and a fill
    (function,) = _functions(code)
    assert len(function) == len(before) + 4 * 11
    assert names(before)[:2] == ["loop", "loop"]


def _functions(code: bytes) -> tuple[bytes, ...]:
    return tuple(f.code for f in read_module(code).functions)


def test_a_module_without_memory_has_the_checks_too() -> None:
    code = stoppable(assembled('(module (func (export "f") (loop (br 0))))'))
    wasmtime.Module.validate(wasmtime.Engine(), code)


def test_a_check_traps_when_the_word_is_set_and_not_before() -> None:
    engine = wasmtime.Engine()
    store = wasmtime.Store(engine)
    kind = wasmtime.MemoryType(wasmtime.Limits(1, 1))
    memory, stop = wasmtime.Memory(store, kind), wasmtime.Memory(store, kind)
    module = wasmtime.Module(engine, stoppable(assembled(TEXT)))
    function = wasmtime.Instance(store, module, [memory, stop]).exports(store)["f"]
    assert function(store, 0) == 0 and bytes(memory.read(store, 0, 3)) == b"\1\1\0"
    address = ctypes.addressof(stop.data_ptr(store).contents)
    word = ctypes.c_ubyte.from_address(address)
    timer = threading.Timer(0.1, setattr, (word, "value", 1))
    timer.start()
    with pytest.raises(wasmtime.Trap, match="unreachable"):
        function(store, 1)  # it has no end
    with pytest.raises(wasmtime.Trap):
        function(store, 0)
    word.value = 0
    assert function(store, 0) == 0


@pytest.mark.parametrize(
    "text",
    [
        "(module (memory 1))",
        "(module (table 1 funcref))",
        "(module (func $s) (start $s))",
        '(module (import "env" "memory" (memory 1)) (import "env" "other" (memory 1)))',
        '(module (import "env" "g" (global i32)))',
        '(module (import "env" "memory" (memory 1)) (import "env" "f" (func)))',
    ],
)
def test_modules_that_do_more_than_ours_are_refused(text: str) -> None:
    with pytest.raises(CompileError):
        stoppable(assembled(text))


@pytest.mark.parametrize(
    "code",
    [
        "(drop (i32.load 1 (i32.const 0)))",
        "(i32.store 1 (i32.const 0) (i32.const 0))",
        "(drop (memory.size 1))",
        "(drop (memory.grow 1 (i32.const 0)))",
        "(memory.fill 1 (i32.const 0) (i32.const 0) (i32.const 0))",
        "(memory.copy 1 0 (i32.const 0) (i32.const 0) (i32.const 0))",
        "(drop (v128.load 1 (i32.const 0)))",
        "(v128.store8_lane 1 0 (i32.const 0) (v128.const i64x2 0 0))",
    ],
)
def test_code_cannot_name_the_memory_of_the_checks(code: str) -> None:
    """The text has two memories, the module that is read imports one."""
    text = f'(module (import "env" "memory" (memory 1)) (import "a" "b" (memory 1)) (func {code}))'
    module = read_module(assembled(text))
    with pytest.raises(CompileError, match=r"alignment|only memory"):
        stoppable(replace(module, imports=module.imports[:1]).to_bytes())


def test_a_segment_cannot_name_the_memory_of_the_checks() -> None:
    module = assembled('(module (memory 1) (memory 1) (data (memory 1) (i32.const 0) "a"))')
    with pytest.raises(CompileError):
        stoppable(module)
