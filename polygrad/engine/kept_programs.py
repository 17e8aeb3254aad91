"""Programs on disk, by the graphs that they compute: a process that meets a graph again schedules nothing.

An entry has the Program without the code of its kernels, and the keys of their own entries
(`compiled_kernels.py`). Where one of these is gone, so is the Program.
"""

from __future__ import annotations

import json
import marshal
import struct
from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from typing import Any

from polygrad.codegen.target import Target
from polygrad.engine.assembler import Compiled
from polygrad.engine.cache import DiskCache
from polygrad.engine.compiled_kernels import KernelArtefact
from polygrad.errors import ProgramError
from polygrad.runtime.program import Program
from polygrad.uop.node import UOp

_LENGTH = struct.Struct("<I")
_MARSHAL_VERSION = 2  # the last in which equal values have equal bytes
_PLAIN = (type(None), bool, int, float, str)


def program_key(sink: UOp, n_slots: int, *how: object) -> str | None:
    """The key of a normalised graph's Program; None for a graph that cannot be written as bytes. `how`:
    everything else that the Program depends on, apart from polygrad's own code."""
    data = graph_bytes(sink)
    return None if data is None else DiskCache.key(f"program {n_slots} {how!r}", data)


def graph_bytes(sink: UOp) -> bytes | None:
    """Bytes that two graphs share exactly when they are the same, in every process; None for a graph with an
    argument that is neither data nor a UOp."""
    rows = _Rows()
    try:
        rows.add(sink)
    except TypeError:
        return None
    return b"".join(rows.rows)


class _Rows:
    """A row of bytes for each node of a graph, sources first."""

    def __init__(self) -> None:
        self.position: dict[UOp, int] = {}
        self.rows: list[bytes] = []

    def add(self, root: UOp) -> None:
        position = self.position
        for node in root.toposort():
            if node not in position:
                op, dtype, sources = int(node.op), str(node.dtype), tuple([position[s] for s in node.src])
                try:
                    row = marshal.dumps((op, dtype, sources, node.arg), _MARSHAL_VERSION)
                except ValueError:
                    row = marshal.dumps((op, dtype, sources, self._data_of(node.arg)), _MARSHAL_VERSION)
                position[node] = len(position)
                self.rows.append(row)

    def _data_of(self, arg: Any) -> Any:
        """An argument as what marshal writes; an Ellipsis marks what stands for something else."""
        if isinstance(arg, UOp):  # a symbolic size, or the body of a loop
            self.add(arg)
            return (..., self.position[arg])
        if arg.__class__ is tuple:
            return tuple([self._data_of(part) for part in arg])
        if isinstance(arg, tuple):
            return (..., type(arg).__name__, *[self._data_of(part) for part in arg])
        if isinstance(arg, Enum):
            return (..., type(arg).__name__, arg.name)
        if arg.__class__ in _PLAIN:
            return arg
        if isinstance(arg, (int, float, str)):  # a dtype, a negative zero
            return (..., type(arg).__name__, repr(arg))
        raise TypeError(arg)


def read_program(key: str, target: Target, optimized: bool) -> Compiled | None:
    """What `keep_program` wrote under `key`; None unless all of it is there."""
    disk = DiskCache.default()
    data = disk.get(key)
    if data is None:
        return None
    (length,) = _LENGTH.unpack_from(data)
    start = _LENGTH.size + length
    outputs, keys, lower_bound = json.loads(data[_LENGTH.size : start])
    entries = [disk.get(k) for k in keys]
    if any(entry is None for entry in entries):
        return None
    try:
        program = Program.from_bytes(data[start:])
    except ProgramError:  # of another version
        return None
    kernels = tuple(KernelArtefact.from_bytes(entry, target, optimized).kernel for entry in entries if entry)
    return Compiled(replace(program, kernels=kernels), tuple(outputs), lower_bound)


def keep_program(key: str, compiled: Compiled, kernels: Sequence[KernelArtefact]) -> None:
    """Write a Program, of which these are the kernels, under `key`."""
    program = compiled.program
    keys = {artefact.kernel: artefact.key for artefact in kernels}
    bare = replace(program, kernels=tuple(replace(kernel, code=b"") for kernel in program.kernels))
    head = [compiled.outputs, [keys[kernel] for kernel in program.kernels], compiled.arena_lower_bound]
    text = json.dumps(head).encode()
    DiskCache.default().put(key, _LENGTH.pack(len(text)) + text + bare.to_bytes())
