"""Modules to bytes and back: known bytes, section by section; damaged ones; the text of one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import wasmtime

from polygrad.errors import CompileError, InternalError
from polygrad.wasm.body import FunctionBody
from polygrad.wasm.instructions import END, f32_const, i32_const
from polygrad.wasm.module import Data, DefinedFunction, Export, Global, Import, Module
from polygrad.wasm.reader import read_module
from polygrad.wasm.types import F32, F64, FUNCREF, I32, V128, FuncType, GlobalType, MemoryType, TableType
from polygrad.wasm.wat import format_float, print_module


def add() -> DefinedFunction:
    return (
        FunctionBody("add", (I32, I32), (I32,)).op("local.get", 0).op("local.get", 1).op("i32.add").finish()
    )


def example() -> Module:
    b = FunctionBody("clamp", (F32, I32))
    b.local(V128), b.local(V128), b.local(F64)
    b.op("block").op("local.get", 1).op("i32.const", 3).op("i32.ge_u").op("br_if", 0).op("loop")
    b.op("local.get", 1).op("local.get", 0).op("f32.const", float("nan")).op("f32.max").op("f32.store", 16, 0)
    b.op("local.get", 1).op("if", I32).op("i32.const", -1).op("else").op("i32.const", 1).op("end").op(
        "br_if", 0
    )
    b.op("end").op("end")
    return Module(
        imports=(Import("env", "memory", MemoryType(1)), Import("env", "log", FuncType((I32,)))),
        functions=(b.finish(), add()),
        exports=(Export("clamp", "func", 1), Export("add", "func", 2), Export("memory", "memory", 0)),
    )


def test_the_smallest_modules() -> None:
    assert Module().to_bytes().hex() == "0061736d01000000"
    assert print_module(Module()) == "(module)\n"
    module = Module(functions=(add(),), exports=(Export("add", "func", 0),))
    assert module.to_bytes().hex() == (
        "0061736d01000000" "0107" "0160027f7f017f" "0302" "0100" "0707" "01036164640000"
        "0a09" "0107" "00200020016a0b"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("module", "section"),
    [
        (Module(imports=(Import("env", "memory", MemoryType(1)),)), "020f01 03656e76 066d656d6f7279 020001"),
        (Module(imports=(Import("", "", MemoryType(1, 256, True)),)), "020801 00 00 0203018002"),
        (Module(tables=(TableType(FUNCREF, 1, 2),)), "040501 70010102"),
        (Module(memories=(MemoryType(0),)), "050301 0000"),
        (Module(globals=(Global(GlobalType(F32, True), f32_const(1) + END),)), "060901 7d01 430000803f0b"),
        (Module(memories=(MemoryType(1),), datas=(Data(b"ab"),)), "0c0101 0b0501 01 026162"),
        (Module(memories=(MemoryType(1),), datas=(Data(b"a", i32_const(0) + END),)), "0b0701 00 41000b 0161"),
    ],
)  # fmt: skip
def test_sections_have_the_bytes_of_the_specification(module: Module, section: str) -> None:
    binary = module.to_bytes()
    assert binary.endswith(bytes.fromhex(section))
    wasmtime.Module.validate(wasmtime.Engine(_threads()), binary)
    assert read_module(binary) == module
    assert read_module(wasmtime.wat2wasm(print_module(module))) == module


def _threads() -> wasmtime.Config:
    config = wasmtime.Config()
    config.wasm_threads = True
    return config


def test_a_module_goes_there_and_back() -> None:
    module = example()
    assert read_module(module.to_bytes()) == module
    assert module.types == (FuncType((I32,)), FuncType((F32, I32)), FuncType((I32, I32), (I32,)))
    wasmtime.Module.validate(wasmtime.Engine(), module.to_bytes())
    assert bytes(wasmtime.wat2wasm(print_module(module))) == module.to_bytes()


def test_a_module_as_text(golden: Callable[[str, str], None]) -> None:
    golden("wasm_module.wat", print_module(example()))


def test_a_custom_section_is_skipped() -> None:
    binary = example().to_bytes()
    assert read_module(binary[:8] + b"\0\5\4name" + binary[8:]) == example()


@pytest.mark.parametrize("at", range(1, len(example().to_bytes())))
def test_a_module_cut_short_is_refused_or_a_smaller_module(at: int) -> None:
    try:
        read_module(example().to_bytes()[:at])
    except CompileError as e:
        assert "WebAssembly binary, byte " in str(e)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("", "byte 0: expected a module starting 0061736d01000000, got nothing"),
        ("0061736d02000000", "byte 0: expected a module starting"),
        ("0061736d01000000" "0b0100" "0501", "expected the next section in order|more bytes"),
        ("0061736d01000000" "0104" "01500000", "byte 11: expected a function type .0x60., got 0x50"),
        ("0061736d01000000" "0105" "0160017700", "byte 13: expected a value type, got 0x77"),
        ("0061736d01000000" "0102" "0000", "byte 11: expected the end of section 1, got 1 more bytes"),
        ("0061736d01000000" "0302" "0100", "expected 1 function bodies, got 0"),
        ("0061736d01000000" "0302" "0100" "0a04" "0102000b", "expected a type index below 0, got 0"),
        ("0061736d01000000" "0705" "0101610900", "expected an export kind of 0 to 3, got 9"),
        ("0061736d01000000" "0503" "010501", "expected limits of a 32-bit memory"),
    ],
)  # fmt: skip
def test_errors_say_where(data: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        read_module(bytes.fromhex(data))


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("00ff0b", "byte 1: expected an opcode of the table, got 0xff"),
        ("00fd9a010b", "byte 1: expected an opcode of the table, got 0xfd9a01"),
        ("0002400c020b0b", "byte 3: expected a label below 2, got 2"),
        ("000b0b", "byte 2: expected the end of the function 'f', got 1 more bytes"),
        ("0041", "expected 1 more bytes, got 0"),
        ("0028030000", "expected an alignment exponent of 0 to 2, got 3"),
    ],
)
def test_errors_in_code_say_where(code: str, message: str) -> None:
    function = DefinedFunction("f", FuncType(), bytes.fromhex(code))
    with pytest.raises(CompileError, match=message):
        print_module(Module(functions=(function,)))


def test_parts_that_do_not_fit_are_our_bug() -> None:
    twice = (Export("f", "func", 0), Export("f", "func", 0))
    with pytest.raises(InternalError, match="'f' twice"):
        Module(functions=(add(),), exports=twice).to_bytes()
    with pytest.raises(InternalError, match="maximum of at least 3, got 2"):
        Module(memories=(MemoryType(3, 2),)).to_bytes()
    with pytest.raises(InternalError, match="a shared memory has no maximum"):
        Module(memories=(MemoryType(3, shared=True),)).to_bytes()
    with pytest.raises(InternalError, match="value types"):
        Module(functions=(DefinedFunction("f", FuncType((1,)), b"\0\x0b"),)).to_bytes()


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("0000803f", "1"), ("cdcccc3d", "0.1"), ("ffff7f7f", "3.4028235e+38"), ("01000000", "1.4013e-45"),
        ("00000080", "-0"), ("0000807f", "inf"), ("000080ff", "-inf"), ("0000c07f", "nan"),
        ("0100c0ff", "-nan:0x400001"),
        ("9a9999999999b93f", "0.1"), ("000000000000f87f", "nan"), ("010000000000f07f", "nan:0x1"),
    ],
)  # fmt: skip
def test_floats_print_as_the_shortest_decimal(data: str, text: str) -> None:
    assert format_float(bytes.fromhex(data)) == text
