"""The opcode table against an assembler that is not ours, and in modules that an engine validates."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import wasmtime

from polygrad.errors import InternalError
from polygrad.wasm.body import FunctionBody
from polygrad.wasm.instructions import END, i32_const, instruction
from polygrad.wasm.module import Data, DefinedFunction, ElementSegment, Export, Global, Module
from polygrad.wasm.opcodes import OPCODES, Opcode
from polygrad.wasm.reader import Reader, read_module
from polygrad.wasm.types import (
    F32,
    F64,
    FUNCREF,
    I32,
    I64,
    V128,
    FuncType,
    GlobalType,
    MemoryType,
    TableType,
)  # fmt: skip
from polygrad.wasm.wat import print_module

CONSTANTS: dict[int, bytes] = {
    I32: instruction("i32.const", -7), I64: instruction("i64.const", 1 << 40),
    F32: instruction("f32.const", 1.5), F64: instruction("f64.const", -0.1),
    V128: instruction("v128.const", bytes(range(16))),
}  # fmt: skip
IMMEDIATES: dict[str, tuple[Any, ...]] = {
    "i32": (-(2**31),), "i64": (2**63 - 1,), "f32": (0.1,), "f64": (1e300,), "v128": (bytes(range(16)),),
    "shuffle": tuple(range(0, 32, 2)), "data_memory": (0,), "data": (0,), "elem_table": (0,), "elem": (0,),
    "lane": (1,), "memlane": (1, 300),
}  # fmt: skip
# what depends on the context: a whole body that has it
BODIES: dict[str, bytes] = {
    "unreachable": instruction("unreachable"),
    "block": instruction("block") + END,
    "loop": instruction("loop") + END,
    "if": i32_const(1) + instruction("if") + END,
    "else": i32_const(1) + instruction("if", I32) + i32_const(1) + instruction("else") + i32_const(2) + END
    + instruction("drop"),
    "end": instruction("block", F64) + CONSTANTS[F64] + END + instruction("drop"),
    "br": instruction("br", 0),
    "br_if": i32_const(1) + instruction("br_if", 0),
    "br_table": instruction("block") + i32_const(1) + instruction("br_table", [0, 1, 0], 1) + END,
    "return": instruction("return"),
    "call": instruction("call", 0),
    "call_indirect": i32_const(0) + instruction("call_indirect", 0),
    "drop": i32_const(1) + instruction("drop"),
    "select": CONSTANTS[V128] * 2 + i32_const(1) + instruction("select") + instruction("drop"),
    "local.get": instruction("local.get", 0) + instruction("drop"),
    "local.set": CONSTANTS[I64] + instruction("local.set", 0),
    "local.tee": CONSTANTS[I64] + instruction("local.tee", 0) + instruction("drop"),
    "global.get": instruction("global.get", 0) + instruction("drop"),
    "global.set": CONSTANTS[F32] + instruction("global.set", 0),
}  # fmt: skip


@functools.cache
def engine() -> wasmtime.Engine:
    config = wasmtime.Config()
    config.wasm_relaxed_simd = config.wasm_threads = config.wasm_bulk_memory = True
    return wasmtime.Engine(config)


def body_of(row: Opcode) -> bytes:
    if row.params is None or row.results is None:
        return BODIES[row.name]
    operands = b"".join(CONSTANTS[t] for t in row.params)
    encoded = instruction(row.name, *IMMEDIATES.get(row.immediate, (300,) if row.immediate == "mem" else ()))
    return operands + encoded + instruction("drop") * len(row.results)


def module_of(row: Opcode) -> Module:
    function = DefinedFunction("f", FuncType(), b"\1\1" + bytes((I64,)) + body_of(row) + END)
    return Module(
        functions=(function,),
        tables=(TableType(FUNCREF, 1),),
        memories=(MemoryType(1, 2, shared=True),),
        globals=(Global(GlobalType(F32, mutable=True), CONSTANTS[F32] + END),),
        exports=(Export("f", "func", 0),),
        elements=(ElementSegment((0,)),),
        datas=(Data(b'a\0"\\\xff'), Data(b"xyz", i32_const(8) + END)),
    )


@pytest.mark.parametrize("row", OPCODES.values(), ids=list(OPCODES))
def test_validates_prints_and_reads_back(row: Opcode) -> None:
    module = module_of(row)
    binary = module.to_bytes()
    wasmtime.Module.validate(engine(), binary)
    assert read_module(binary) == module
    text = print_module(binary)
    assert row.name in text
    assert read_module(wasmtime.wat2wasm(text)) == module, text  # its code is the other assembler's bytes


def test_the_table_has_every_instruction_once() -> None:
    assert len({row.code for row in OPCODES.values()}) == len(OPCODES) == 515


def test_no_operand_less_and_no_result_more() -> None:
    """The signatures are exact: without its last operand an instruction does not validate."""
    for name in (
        "i32.add",
        "f32x4.relaxed_madd",
        "i64.atomic.rmw16.cmpxchg_u",
        "v128.store8_lane",
        "memory.copy",
    ):
        row = OPCODES[name]
        assert row.params
        operands = b"".join(CONSTANTS[t] for t in row.params[:-1])
        body = operands + body_of(row)[sum(len(CONSTANTS[t]) for t in row.params) :]
        function = DefinedFunction("f", FuncType(), b"\0" + body + END)
        with pytest.raises(wasmtime.WasmtimeError, match="type mismatch"):
            wasmtime.Module.validate(
                engine(), Module(functions=(function,), memories=(MemoryType(1),)).to_bytes()
            )


@pytest.mark.parametrize(
    ("name", "immediates", "message"),
    [
        ("i32.sum", (), "got 'i32.sum'"),
        ("i32.add", (1,), "kind '-'"),
        ("local.get", (), "kind 'local'"),
        ("i32.load", (-1,), "offset of 0 to"),
        ("i32.load", (2**32,), "offset of 0 to"),
        ("i32.load8_u", (0, 1), "alignment exponent of 0 to 0"),
        ("f32x4.extract_lane", (4,), "lanes below 4"),
        ("v128.store64_lane", (2,), "lanes below 2"),
        ("i8x16.shuffle", (0,), "16 lanes"),
        ("i8x16.shuffle", (32,) * 16, "lanes below 32"),
        ("v128.const", (b"",), "16 bytes"),
    ],
)
def test_immediates_that_do_not_fit_are_our_bug(name: str, immediates: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InternalError, match=message):
        instruction(name, *immediates)


def test_every_instruction_decodes_to_what_encoded_it() -> None:
    for row in OPCODES.values():
        if row.params is not None:
            encoded = body_of(row)[sum(len(CONSTANTS[t]) for t in row.params) :]
            assert Reader(encoded).instruction().opcode is row


def test_body_counts_its_blocks_and_locals() -> None:
    b = FunctionBody("f", (I32,), ())
    assert b.local(F32) == 1
    b.op("block").op("local.get", 0).op("br_if", 0)
    with pytest.raises(InternalError, match="`block` is still open at the end"):
        b.finish()
    code = b.op("end").finish().code
    assert code.hex() == "01017d" + "0240" + "2000" + "0d00" + "0b" + "0b"
    with pytest.raises(InternalError, match="`end` without"):
        b.op("end")
