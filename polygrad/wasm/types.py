"""The types of WebAssembly: of values, functions, memories, tables and globals.

Value types are their bytes in the binary format (WebAssembly Core Specification, section 5.3), so the encoder
writes them unchanged. Knows nothing of instructions, modules or polygrad's IR.
"""

from __future__ import annotations

from dataclasses import dataclass

I32, I64, F32, F64, V128, FUNCREF, EXTERNREF = 0x7F, 0x7E, 0x7D, 0x7C, 0x7B, 0x70, 0x6F

VALTYPE_NAMES: dict[int, str] = {
    I32: "i32", I64: "i64", F32: "f32", F64: "f64", V128: "v128", FUNCREF: "funcref", EXTERNREF: "externref",
}  # fmt: skip

PAGE = 65536
MAX_LOCALS = 50_000  # the implementation limit of the JS API


@dataclass(frozen=True)
class FuncType:
    """The types of a function's parameters and results."""

    params: tuple[int, ...] = ()
    results: tuple[int, ...] = ()


@dataclass(frozen=True)
class MemoryType:
    """A memory's size in pages of 64 KiB. A shared memory must have a maximum."""

    minimum: int
    maximum: int | None = None
    shared: bool = False


@dataclass(frozen=True)
class TableType:
    """A table of references (`FUNCREF` or `EXTERNREF`) and its size in elements."""

    reftype: int
    minimum: int
    maximum: int | None = None


@dataclass(frozen=True)
class GlobalType:
    """A global's value type, and whether it may be set."""

    valtype: int
    mutable: bool = False
