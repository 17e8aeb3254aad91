"""Reads the binary format: a `Module` from bytes, and the instructions of an expression.

It is used by the printer and by tests. It checks structure (sections, indices, nesting), but not types. Every
error is a CompileError that names the position of the byte.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from polygrad.errors import CompileError
from polygrad.wasm.instructions import EMPTY_BLOCK
from polygrad.wasm.module import (
    KINDS,
    MAGIC,
    VERSION,
    Data,
    DefinedFunction,
    ElementSegment,
    Export,
    ExternType,
    Global,
    Import,
    Module,
)  # fmt: skip
from polygrad.wasm.opcodes import OPCODES, Opcode
from polygrad.wasm.types import MAX_LOCALS, VALTYPE_NAMES, FuncType, GlobalType, MemoryType, TableType

T = TypeVar("T")
_KIND_NAMES = {number: kind for kind, number in KINDS.items()}


class Instruction(NamedTuple):
    """An instruction, its immediates as `instruction` takes them, and the byte where it starts."""

    opcode: Opcode
    immediates: tuple[Any, ...]
    offset: int


@functools.cache
def _by_code() -> dict[bytes, Opcode]:
    return {row.code: row for row in OPCODES.values()}


class Reader:
    """A cursor in bytes."""

    def __init__(self, data: bytes, offset: int = 0, end: int | None = None) -> None:
        self.data, self.offset, self.end = data, offset, len(data) if end is None else end

    def error(self, expected: str, got: object, offset: int | None = None) -> CompileError:
        """The error to raise at `offset`, or at the current one."""
        byte = self.offset if offset is None else offset
        return CompileError(f"WebAssembly binary, byte {byte}: expected {expected}, got {got}")

    def take(self, count: int) -> bytes:
        """The next `count` bytes."""
        if self.offset + count > self.end:
            raise self.error(f"{count} more bytes", f"{self.end - self.offset}")
        self.offset += count
        return self.data[self.offset - count : self.offset]

    def byte(self) -> int:
        return self.take(1)[0]

    def uleb(self, bits: int = 32) -> int:
        """An unsigned LEB128 integer below 2**bits."""
        start, value, shift = self.offset, 0, 0
        while True:
            byte = self.byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
            if shift >= bits:
                raise self.error(f"an integer of {bits} bits", "more bytes", start)
        if value >> bits:
            raise self.error(f"an integer of {bits} bits", value, start)
        return value

    def sleb(self, bits: int) -> int:
        """A signed LEB128 integer of `bits`."""
        start, value, shift = self.offset, 0, 0
        while True:
            byte = self.byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
            if shift >= bits:
                raise self.error(f"a signed integer of {bits} bits", "more bytes", start)
        value -= (byte >> 6 & 1) << shift
        if not -(1 << bits - 1) <= value < 1 << bits - 1:
            raise self.error(f"a signed integer of {bits} bits", value, start)
        return value

    def name(self) -> str:
        start = self.offset
        try:
            return self.take(self.uleb()).decode()
        except UnicodeDecodeError as e:
            raise self.error("a name in UTF-8", e, start) from e

    def vector(self, item: Callable[[], T]) -> tuple[T, ...]:
        """A counted sequence."""
        return tuple(item() for _ in range(self.uleb()))

    def valtype(self) -> int:
        byte = self.byte()
        if byte not in VALTYPE_NAMES:
            raise self.error("a value type", f"0x{byte:02x}", self.offset - 1)
        return byte

    # --- types

    def functype(self) -> FuncType:
        tag = self.byte()
        if tag != 0x60:
            raise self.error("a function type (0x60)", f"0x{tag:02x}", self.offset - 1)
        return FuncType(self.vector(self.valtype), self.vector(self.valtype))

    def limits(self) -> tuple[int, int | None, bool]:
        flags = self.byte()
        if flags > 3:
            raise self.error("limits of a 32-bit memory or table (flags 0 to 3)", flags, self.offset - 1)
        start, minimum = self.offset, self.uleb()
        maximum = self.uleb() if flags & 1 else None
        if maximum is not None and maximum < minimum:
            raise self.error(f"a maximum of at least {minimum}", maximum, start)
        if flags == 2:
            raise self.error("a maximum of a shared memory", "none", start)
        return minimum, maximum, flags & 2 != 0

    def memorytype(self) -> MemoryType:
        return MemoryType(*self.limits())

    def tabletype(self) -> TableType:
        return TableType(self.valtype(), *self.limits()[:2])

    def globaltype(self) -> GlobalType:
        return GlobalType(self.valtype(), self.byte() == 1)

    # --- instructions

    def instruction(self) -> Instruction:
        """The next instruction. Raises CompileError for one that the opcode table does not have."""
        start = self.offset
        first = self.take(1)
        if first in (b"\xfc", b"\xfd", b"\xfe"):
            self.uleb()
            first = self.data[start : self.offset]
        row = _by_code().get(first)
        if row is None:
            raise self.error("an opcode of the table", f"0x{first.hex()}", start)
        return Instruction(row, self._immediates(row), start)

    def _immediates(self, row: Opcode) -> tuple[Any, ...]:
        read_immediates = _READ.get(row.immediate)
        return read_immediates(self, row) if read_immediates else ()

    def _memarg(self, row: Opcode) -> tuple[int, int]:
        align, offset = self.uleb(), self.uleb()
        if align > row.bound:
            raise self.error(f"an alignment exponent of 0 to {row.bound}", align)
        return offset, align

    def _memarg_lane(self, row: Opcode) -> tuple[int, int, int]:
        offset, align = self._memarg(row)
        return self._lane(16 >> row.bound), offset, align

    def _lane(self, bound: int) -> int:
        lane = self.byte()
        if lane >= bound:
            raise self.error(f"a lane below {bound}", lane, self.offset - 1)
        return lane

    def _block(self, row: Opcode) -> tuple[int, ...]:
        byte = self.byte()
        if byte == EMPTY_BLOCK:
            return ()
        if byte not in VALTYPE_NAMES:
            raise self.error("a block type of no or one result", f"0x{byte:02x}", self.offset - 1)
        return (byte,)

    def _zeros(self, count: int) -> tuple[()]:
        start, data = self.offset, self.take(count)
        if any(data):
            raise self.error("zero, the only memory", data.hex(), start)
        return ()

    def expression(self) -> Iterator[Instruction]:
        """Instructions up to the `end` that closes the expression, which comes last."""
        depth = 1
        while depth:
            instruction = self.instruction()
            name = instruction.opcode.name
            if instruction.opcode.immediate == "block":
                depth += 1
            elif name == "end":
                depth -= 1
            elif instruction.opcode.immediate == "label" and instruction.immediates[0] >= depth:
                raise self.error(f"a label below {depth}", instruction.immediates[0], instruction.offset)
            yield instruction

    def expression_bytes(self) -> bytes:
        """The next expression, not decoded."""
        start = self.offset
        for _ in self.expression():
            pass
        return self.data[start : self.offset]

    def locals(self) -> tuple[int, ...]:
        """The types of a code entry's locals."""
        out: list[int] = []
        for _ in range(self.uleb()):
            count = self.uleb()
            if len(out) + count > MAX_LOCALS:
                raise self.error(f"at most {MAX_LOCALS} locals", len(out) + count)
            out += [self.valtype()] * count
        return tuple(out)


# kind of immediate -> its reader; indices that are always 0 are read and dropped
_READ: dict[str, Callable[[Reader, Opcode], tuple[Any, ...]]] = {
    "block": Reader._block,
    "labels": lambda r, row: (r.vector(r.uleb), r.uleb()),
    "type_table": lambda r, row: (r.uleb(), r.uleb()),
    "mem": Reader._memarg,
    "memlane": Reader._memarg_lane,
    "lane": lambda r, row: (r._lane(row.bound),),
    "shuffle": lambda r, row: tuple(r._lane(32) for _ in range(16)),
    "i32": lambda r, row: (r.sleb(32),),
    "i64": lambda r, row: (r.sleb(64),),
    "f32": lambda r, row: (r.take(4),),  # bits: a float would lose a NaN's payload
    "f64": lambda r, row: (r.take(8),),
    "v128": lambda r, row: (r.take(16),),
    "memory": lambda r, row: r._zeros(1),
    "memory_memory": lambda r, row: r._zeros(2),
    "fence": lambda r, row: r._zeros(1),
    "data_memory": lambda r, row: (r.uleb(), *r._zeros(1)),
    "elem_table": lambda r, row: (r.uleb(), r.uleb()),
    "table_table": lambda r, row: (r.uleb(), r.uleb()),
    **dict.fromkeys(("label", "func", "local", "global", "data", "elem"), lambda r, row: (r.uleb(),)),
}


def read_module(data: bytes) -> Module:
    """The Module of binary `data`; custom sections are not kept. Functions are named by their exports.

    Raises CompileError, which names the position of the error.
    """
    r = Reader(bytes(data))
    if data[:8] != MAGIC + VERSION:
        raise r.error(f"a module starting {(MAGIC + VERSION).hex()}", data[:8].hex() or "nothing")
    r.offset = 8
    types: tuple[FuncType, ...] = ()
    declared: tuple[int, ...] = ()
    codes: tuple[bytes, ...] = ()
    module = Module()
    order = 0
    while r.offset < r.end:
        start, number = r.offset, r.byte()
        size = r.uleb()
        s = Reader(r.data, r.offset, r.offset + size)
        r.take(size)
        if number == 0:
            continue
        rank = _ORDER.find(bytes((number,))) + 1
        if rank <= order:
            raise r.error("the next section in order", f"section {number}", start)
        order = rank
        if number == 1:
            types = s.vector(s.functype)
        elif number == 3:
            declared = s.vector(s.uleb)
        elif number == 10:
            codes = s.vector(lambda s=s: s.take(s.uleb()))  # type: ignore[misc]
        elif number == 12:
            s.uleb()
        else:
            field, item = _SECTIONS[number]
            module = replace(module, **{field: s.vector(functools.partial(item, s, types))})
        if s.offset != s.end:
            raise s.error(f"the end of section {number}", f"{s.end - s.offset} more bytes")
    if len(codes) != len(declared):
        raise r.error(f"{len(declared)} function bodies", len(codes))
    exported = [e.name for e in module.exports]
    if len(set(exported)) != len(exported):
        raise r.error("distinct names of exports", f"{len(exported) - len(set(exported))} repeated")
    imported = sum(isinstance(i.type, FuncType) for i in module.imports)
    names = {e.index - imported: e.name for e in reversed(module.exports) if e.kind == "func"}
    functions = [
        DefinedFunction(names.get(i, ""), _type(r, types, t), code)
        for i, (t, code) in enumerate(zip(declared, codes, strict=True))
    ]
    return replace(module, functions=tuple(functions))


_ORDER = bytes((1, 2, 3, 4, 5, 6, 7, 9, 12, 10, 11))  # the order of the sections


def _type(r: Reader, types: tuple[FuncType, ...], index: int) -> FuncType:
    if index >= len(types):
        raise r.error(f"a type index below {len(types)}", index)
    return types[index]


def _import(r: Reader, types: tuple[FuncType, ...]) -> Import:
    module, name, kind = r.name(), r.name(), r.byte()
    extern_type: ExternType
    if kind == 0:
        extern_type = _type(r, types, r.uleb())
    elif kind == 1:
        extern_type = r.tabletype()
    elif kind == 2:
        extern_type = r.memorytype()
    elif kind == 3:
        extern_type = r.globaltype()
    else:
        raise r.error("an import kind of 0 to 3", kind, r.offset - 1)
    return Import(module, name, extern_type)


def _export(r: Reader, types: tuple[FuncType, ...]) -> Export:
    name, kind = r.name(), r.byte()
    if kind not in _KIND_NAMES:
        raise r.error("an export kind of 0 to 3", kind, r.offset - 1)
    return Export(name, _KIND_NAMES[kind], r.uleb())


def _element(r: Reader, types: tuple[FuncType, ...]) -> ElementSegment:
    tag = r.take(2)
    if tag != b"\1\0":
        raise r.error("a passive segment of functions (0100)", tag.hex(), r.offset - 2)
    return ElementSegment(r.vector(r.uleb))


def _data(r: Reader, types: tuple[FuncType, ...]) -> Data:
    kind = r.uleb()
    if kind > 1:
        raise r.error("a data segment of kind 0 or 1", kind)
    offset = r.expression_bytes() if kind == 0 else None
    return Data(r.take(r.uleb()), offset)


_SECTIONS: dict[int, tuple[str, Callable[[Reader, tuple[FuncType, ...]], Any]]] = {
    2: ("imports", _import),
    4: ("tables", lambda r, types: r.tabletype()),
    5: ("memories", lambda r, types: r.memorytype()),
    6: ("globals", lambda r, types: Global(r.globaltype(), r.expression_bytes())),
    7: ("exports", _export),
    9: ("elements", _element),
    11: ("datas", _data),
}


def float_value(data: bytes) -> float:
    """The float of 4 or 8 bytes."""
    return float(struct.unpack("<f" if len(data) == 4 else "<d", data)[0])
