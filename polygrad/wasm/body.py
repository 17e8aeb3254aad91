"""`FunctionBody`: one function being written, as locals and chunks of encoded instructions.

Structured control is counted, so a function with an open block is an error. Knows neither modules nor types
other than value types.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polygrad.errors import CompileError, InternalError
from polygrad.wasm.instructions import END, instruction
from polygrad.wasm.leb128 import uleb128, vector
from polygrad.wasm.module import DefinedFunction
from polygrad.wasm.types import MAX_LOCALS, FuncType

_OPENERS = frozenset({"block", "loop", "if"})


def encode_locals(types: Sequence[int]) -> bytes:
    """The local declarations of a code entry: runs of equal value types."""
    groups: list[bytes] = []
    start, n = 0, len(types)
    while start < n:
        end = start + 1
        while end < n and types[end] == types[start]:
            end += 1
        groups.append(uleb128(end - start) + bytes((types[start],)))
        start = end
    return vector(groups)


class FunctionBody:
    """A function of `params` to `results`. `chunks` is the code so far; `types` the type of every local.

    >>> b = FunctionBody("add", (I32, I32), (I32,))
    >>> b.op("local.get", 0).op("local.get", 1).op("i32.add").finish().code.hex()
    '00200020016a0b'
    """

    def __init__(self, name: str, params: Sequence[int] = (), results: Sequence[int] = ()) -> None:
        self.name = name
        self.type = FuncType(tuple(params), tuple(results))
        self.types: list[int] = list(params)
        self.chunks: list[bytes] = []
        self._open: list[str] = []

    def local(self, valtype: int) -> int:
        """The index of a new local, zero until set. Raises CompileError when there are too many."""
        index = len(self.types)
        if index >= MAX_LOCALS:
            raise CompileError(
                f"WebAssembly function {self.name}: expected at most {MAX_LOCALS} locals: split the kernel"
            )
        self.types.append(valtype)
        return index

    def op(self, name: str, *immediates: Any) -> FunctionBody:
        """Append one instruction; returns self."""
        if name in _OPENERS:
            self._open.append(name)
        elif name == "end":
            if not self._open:
                raise InternalError(f"WebAssembly function {self.name}: `end` without a block, loop or if")
            self._open.pop()
        self.chunks.append(instruction(name, *immediates))
        return self

    def finish(self) -> DefinedFunction:
        """End the function. Raises InternalError if a block is open."""
        if self._open:
            raise InternalError(
                f"WebAssembly function {self.name}: `{self._open[-1]}` is still open at the end"
            )
        locals_ = encode_locals(self.types[len(self.type.params) :])
        return DefinedFunction(self.name, self.type, b"".join((locals_, *self.chunks, END)))
