"""`stoppable`: a module of somebody else with checks, by which another thread ends its functions at any time.

A check traps when the first word of a memory of its own is not 0. There is one at the start of each function
and of each loop, and after each instruction that goes through memory: nothing runs long without one. Code of
the module cannot reach that memory, because the reader refuses an index of a memory other than 0. The load is
atomic so that no compiler takes it out of a loop.

Checks take 0 to 13 % of a kernel's time under wasmtime. Its own means, epochs, take 10 to 270 %: their slow
path is a call, for which compiled loops spill all vector registers.
"""

from __future__ import annotations

from dataclasses import replace

from polygrad.errors import CompileError
from polygrad.wasm.instructions import EMPTY_BLOCK, instruction
from polygrad.wasm.leb128 import uleb128
from polygrad.wasm.module import DefinedFunction, Import
from polygrad.wasm.opcodes import opcode
from polygrad.wasm.reader import Reader, read_module
from polygrad.wasm.types import MemoryType

_BULK = frozenset({"memory.copy", "memory.fill", "memory.init", "memory.grow"})
_HAS_INDEX = 0x40  # the bit of a memarg's alignment that says that the memory's index follows


def stoppable(code: bytes) -> bytes:
    """The module `code` with checks of a memory that it imports last.

    Raises CompileError for bytes that are no module, and for a module that imports anything but one memory,
    or has a memory, a table, or a function that starts by itself.
    """
    module = read_module(code)
    if module.memories or module.tables or module.elements or len(module.imports) > 1:
        raise CompileError(
            "module: expected functions and one imported memory, got other imports, a memory or a table"
        )
    if not all(isinstance(i.type, MemoryType) for i in module.imports):
        raise CompileError("module: expected an imported memory, got another import")
    check = _check(len(module.imports))
    functions = tuple(replace(f, code=_with_checks(f, check)) for f in module.functions)
    imports = (*module.imports, Import("polygrad", "stop", MemoryType(1)))
    return replace(module, imports=imports, functions=functions).to_bytes()


def _check(memory: int) -> bytes:
    """Trap if the first word of a memory is not 0."""
    memarg = bytes((_HAS_INDEX | 2,)) + uleb128(memory) + uleb128(0)
    load = instruction("i32.const", 0) + opcode("i32.atomic.load").code + memarg
    return load + instruction("if", EMPTY_BLOCK) + instruction("unreachable") + instruction("end")


def _with_checks(function: DefinedFunction, check: bytes) -> bytes:
    reader = Reader(function.code)
    reader.locals()
    out = bytearray(function.code[: reader.offset] + check)
    start = reader.offset
    for x in reader.expression():
        if x.opcode.name == "loop" or x.opcode.name in _BULK:
            out += function.code[start : reader.offset] + check
            start = reader.offset
    return bytes(out + function.code[start:])
