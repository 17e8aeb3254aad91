"""`Module` and its binary form: one function per section, in the order of the specification (section 5.5).

A `DefinedFunction` holds its code entry already encoded; this file knows no instructions except `end`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from polygrad.errors import InternalError
from polygrad.wasm.leb128 import name, prefix_length, uleb128, vector
from polygrad.wasm.types import VALTYPE_NAMES, FuncType, GlobalType, MemoryType, TableType

MAGIC, VERSION = b"\0asm", b"\1\0\0\0"

ExternType = FuncType | TableType | MemoryType | GlobalType
KINDS: dict[str, int] = {"func": 0, "table": 1, "memory": 2, "global": 3}


@dataclass(frozen=True)
class DefinedFunction:
    """A defined function. `code` is its local declarations and its expression, the last `end` included."""

    name: str
    type: FuncType
    code: bytes


@dataclass(frozen=True)
class Import:
    """`module` . `name`, of a type."""

    module: str
    name: str
    type: ExternType


@dataclass(frozen=True)
class Export:
    """The item exported as `name`: its kind ("func", "table", "memory", "global") and its index."""

    name: str
    kind: str
    index: int


@dataclass(frozen=True)
class Global:
    """A global and its initial value, a constant expression (with its `end`)."""

    type: GlobalType
    init: bytes


@dataclass(frozen=True)
class ElementSegment:
    """A passive segment of function indices."""

    functions: tuple[int, ...]


@dataclass(frozen=True)
class Data:
    """A segment of bytes: active at the constant expression `offset` (with its `end`), passive if that is
    None."""

    data: bytes
    offset: bytes | None = None


@dataclass(frozen=True)
class Module:
    """A whole module. Imported functions, memories, ... come first in their index spaces."""

    imports: tuple[Import, ...] = ()
    functions: tuple[DefinedFunction, ...] = ()
    tables: tuple[TableType, ...] = ()
    memories: tuple[MemoryType, ...] = ()
    globals: tuple[Global, ...] = ()
    exports: tuple[Export, ...] = ()
    elements: tuple[ElementSegment, ...] = ()
    datas: tuple[Data, ...] = ()

    @property
    def types(self) -> tuple[FuncType, ...]:
        """Every function type once, in the order of first use: the type section."""
        function_types = [i.type for i in self.imports if isinstance(i.type, FuncType)]
        return tuple(dict.fromkeys(function_types + [f.type for f in self.functions]))

    def to_bytes(self) -> bytes:
        """The module in the binary format. Raises InternalError when its parts do not fit each other."""
        index = {t: i for i, t in enumerate(self.types)}
        sections: tuple[tuple[int, list[bytes]], ...] = (
            (1, [_functype(t) for t in index]),
            (2, [name(i.module) + name(i.name) + _externtype(i.type, index) for i in self.imports]),
            (3, [uleb128(index[f.type]) for f in self.functions]),
            (4, [_tabletype(t) for t in self.tables]),
            (5, [_memorytype(t) for t in self.memories]),
            (6, [_globaltype(g.type) + g.init for g in self.globals]),
            (
                7,
                [name(e.name) + bytes((KINDS[e.kind],)) + uleb128(e.index) for e in self._distinct_exports()],
            ),
            (9, [b"\1\0" + vector(map(uleb128, e.functions)) for e in self.elements]),
            (10, [prefix_length(f.code) for f in self.functions]),
            (11, [_data(d) for d in self.datas]),
        )
        out = bytearray(MAGIC + VERSION)
        for number, items in sections:
            if number == 10 and any(d.offset is None for d in self.datas):
                # the data count, because code may refer to passive segments before their section
                out += b"\x0c" + prefix_length(uleb128(len(self.datas)))
            if items:
                out.append(number)
                out += prefix_length(vector(items))
        return bytes(out)

    def _distinct_exports(self) -> tuple[Export, ...]:
        names = [e.name for e in self.exports]
        if len(set(names)) != len(names):
            repeated = next(n for n in names if names.count(n) > 1)
            raise InternalError(f"WebAssembly module: expected distinct export names, got {repeated!r} twice")
        return self.exports


def _valtypes(types: tuple[int, ...]) -> bytes:
    unknown_types = [t for t in types if t not in VALTYPE_NAMES]
    if unknown_types:
        raise InternalError(f"WebAssembly function type: expected value types, got {unknown_types[0]!r}")
    return uleb128(len(types)) + bytes(types)


def _functype(t: FuncType) -> bytes:
    return b"\x60" + _valtypes(t.params) + _valtypes(t.results)


def _limits(minimum: int, maximum: int | None, shared: bool = False) -> bytes:
    if maximum is not None and maximum < minimum:
        raise InternalError(f"WebAssembly limits: expected a maximum of at least {minimum}, got {maximum}")
    flags = (maximum is not None) | shared << 1
    return bytes((flags,)) + uleb128(minimum) + (b"" if maximum is None else uleb128(maximum))


def _tabletype(t: TableType) -> bytes:
    return bytes((t.reftype,)) + _limits(t.minimum, t.maximum)


def _memorytype(t: MemoryType) -> bytes:
    if t.shared and t.maximum is None:
        raise InternalError("WebAssembly memory: a shared memory has no maximum: give one")
    return _limits(t.minimum, t.maximum, t.shared)


def _globaltype(t: GlobalType) -> bytes:
    return bytes((t.valtype, t.mutable))


def _externtype(t: ExternType, index: dict[FuncType, int]) -> bytes:
    if isinstance(t, FuncType):
        return b"\0" + uleb128(index[t])
    write: dict[type, tuple[bytes, Callable[..., bytes]]] = {
        TableType: (b"\1", _tabletype),
        MemoryType: (b"\2", _memorytype),
        GlobalType: (b"\3", _globaltype),
    }
    kind, encode = write[type(t)]
    return kind + encode(t)


def _data(d: Data) -> bytes:
    return (b"\1" if d.offset is None else b"\0" + d.offset) + prefix_length(d.data)
