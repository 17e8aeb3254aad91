"""The text format: prints a module in a form that any WebAssembly assembler accepts.

One instruction a line, indented by nesting. Functions, locals and types are numbered, as in engines'
messages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from polygrad.wasm.instructions import f32_bytes
from polygrad.wasm.module import Module
from polygrad.wasm.reader import Instruction, Reader, float_value, read_module
from polygrad.wasm.types import VALTYPE_NAMES, FuncType, GlobalType, MemoryType, TableType


def print_module(module: Module | bytes) -> str:
    """The text of a module, or of the bytes of one. Raises CompileError when the bytes are not a module."""
    m = read_module(module) if isinstance(module, bytes) else module
    lines = ["(module"]
    lines += [f"  (type (;{i};) (func{_signature(t)}))" for i, t in enumerate(m.types)]
    lines += [f"  (import {_string(i.module)} {_string(i.name)} ({_externtype(i.type)}))" for i in m.imports]
    lines += [f"  ({_externtype(t)})" for t in (*m.tables, *m.memories)]
    lines += [f"  (global {_globaltype(g.type)} ({_expression(g.init)}))" for g in m.globals]
    lines += [f"  (export {_string(e.name)} ({e.kind} {e.index}))" for e in m.exports]
    lines += [f"  (elem func{_numbers(e.functions)})" for e in m.elements]
    imported = sum(isinstance(i.type, FuncType) for i in m.imports)
    for i, f in enumerate(m.functions):
        lines += _function(i + imported, f.name, f.type, f.code)
    for d in m.datas:
        offset = "" if d.offset is None else f" ({_expression(d.offset)})"
        lines.append(f"  (data{offset} {_string(d.data)})")
    return "\n".join((*lines[:-1], lines[-1] + ")")) + "\n"


def _function(index: int, name: str, functype: FuncType, code: bytes) -> list[str]:
    r = Reader(code)
    declared = r.locals()
    comment = f" {name}" if name else ""
    lines = [f"  (func (;{index}{comment};){_signature(functype)}"]
    if declared:
        lines.append(f"    (local{_types(declared)})")
    indent = 2
    body = list(r.expression())
    if r.offset != r.end:
        raise r.error(f"the end of the function {name!r}", f"{r.end - r.offset} more bytes")
    for instruction in body[:-1]:
        if instruction.opcode.name in ("end", "else"):
            indent -= 1
        lines.append("  " * indent + format_instruction(instruction))
        if instruction.opcode.immediate == "block" or instruction.opcode.name == "else":
            indent += 1
    lines[-1] += ")"
    return lines


def format_instruction(instruction: Instruction) -> str:
    """One instruction as text."""
    row = instruction.opcode
    text = _FORMAT[row.immediate](row.bound, *instruction.immediates) if instruction.immediates else ""
    return f"{row.name} {text}".rstrip()


def _memarg(bound: int, offset: int, align: int) -> str:
    parts = ([f"offset={offset}"] if offset else []) + ([f"align={1 << align}"] if align != bound else [])
    return " ".join(parts)


def format_float(data: bytes) -> str:
    """4 or 8 bytes as the shortest decimal that gives them back; a NaN with its payload."""
    value = float_value(data)
    if math.isnan(value):
        bits, width = int.from_bytes(data, "little"), 23 if len(data) == 4 else 52
        payload = bits & (1 << width) - 1
        return f"{'-' if data[-1] & 128 else ''}nan" + (
            "" if payload == 1 << width - 1 else f":0x{payload:x}"
        )
    if math.isinf(value) or len(data) == 8:
        return repr(value)
    texts = (f"{value:.{digits}g}" for digits in range(6, 10))
    return next(text for text in texts if f32_bytes(float(text)) == data)


# kind of immediate -> its text; a kind is not here when its instructions have no text for it
_FORMAT: dict[str, Callable[..., str]] = {
    "block": lambda bound, valtype: f"(result {VALTYPE_NAMES[valtype]})",
    "labels": lambda bound, labels, default: _numbers((*labels, default)).lstrip(),
    "type_table": lambda bound, typeidx, table: f"{table or ''} (type {typeidx})".lstrip(),
    "mem": _memarg,
    "memlane": lambda bound, lane, offset, align: f"{_memarg(bound, offset, align)} {lane}".lstrip(),
    "shuffle": lambda bound, *lanes: _numbers(lanes).lstrip(),
    "f32": lambda bound, data: format_float(data),
    "f64": lambda bound, data: format_float(data),
    "v128": lambda bound, data: (
        "i32x4 " + " ".join(f"0x{data[i : i + 4][::-1].hex()}" for i in range(0, 16, 4))
    ),
    "elem_table": lambda bound, elem, table: f"{table} {elem}" if table else str(elem),
    "table_table": lambda bound, to, source: f"{to} {source}" if to or source else "",
    **dict.fromkeys(
        ("label", "func", "local", "global", "lane", "i32", "i64", "data_memory", "data", "elem"),
        lambda bound, value: str(value),
    ),
}


def _expression(code: bytes) -> str:
    return " ".join(format_instruction(i) for i in list(Reader(code).expression())[:-1])


def _numbers(values: Sequence[int]) -> str:
    return "".join(f" {v}" for v in values)


def _types(valtypes: Sequence[int]) -> str:
    return "".join(f" {VALTYPE_NAMES[t]}" for t in valtypes)


def _signature(t: FuncType) -> str:
    params = f" (param{_types(t.params)})" if t.params else ""
    return params + (f" (result{_types(t.results)})" if t.results else "")


def _limits(minimum: int, maximum: int | None) -> str:
    return str(minimum) if maximum is None else f"{minimum} {maximum}"


def _globaltype(t: GlobalType) -> str:
    return f"(mut {VALTYPE_NAMES[t.valtype]})" if t.mutable else VALTYPE_NAMES[t.valtype]


def _externtype(t: Any) -> str:
    if isinstance(t, FuncType):
        return "func" + _signature(t)
    if isinstance(t, MemoryType):
        return f"memory {_limits(t.minimum, t.maximum)}" + (" shared" if t.shared else "")
    if isinstance(t, TableType):
        return f"table {_limits(t.minimum, t.maximum)} {VALTYPE_NAMES[t.reftype]}"
    return "global " + _globaltype(t)


def _string(value: str | bytes) -> str:
    data = value.encode() if isinstance(value, str) else value
    plain = (chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02x}" for b in data)
    return '"' + "".join(plain) + '"'
