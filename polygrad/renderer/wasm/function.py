"""`FunctionWriter`: a WebAssembly function under construction, as expressions whose results live in locals.

A value is an int, the index of the local that holds it, or bytes, a constant instruction that is repeated at
each use. `expr` writes the instructions of a result into the outermost open loop that has all its operands.
So loop invariants are hoisted as they are written (engines do not hoist them). That is possible at any time,
because a loop's header is written when the loop is closed: until then the code before it may grow. Vector
constants are set once, at the function's start. Code after a closed loop uses the loop's locals again.

Must not know: dtypes and the IR's ops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polygrad.errors import CompileError, InternalError
from polygrad.renderer.wasm.outline import UNKNOWN_ROUNDS, Mark, OutlinedKernel, outline
from polygrad.wasm.instructions import BR_IF, EMPTY_BLOCK, END, i32_const, v128_const
from polygrad.wasm.leb128 import uleb128
from polygrad.wasm.opcodes import opcode
from polygrad.wasm.types import I32, MAX_LOCALS, V128

Value = int | bytes  # a local, or a constant instruction
Code = list[bytes]

_LOCAL_GET, _LOCAL_SET, TEE = (opcode("local." + op).code for op in ("get", "set", "tee"))
GET: Code = []  # by index of the local
SET: Code = []
_BLOCK, _LOOP = (opcode(op).code + bytes((EMPTY_BLOCK,)) for op in ("block", "loop"))
_ADD, _LT_S = opcode("i32.add").code, opcode("i32.lt_s").code
_ZERO, _ONE = i32_const(0), i32_const(1)
_INLINE_VECTORS = {data: v128_const(data) for data in (bytes(16), b"\xff" * 16)}  # a single instruction


def _grow(count: int) -> None:
    for index in range(len(GET), count):
        encoded = uleb128(index)
        GET.append(_LOCAL_GET + encoded)
        SET.append(_LOCAL_SET + encoded)


_grow(128)


class _Frame:
    """The code of the function or of an open loop. `bases` and `safe` cache addresses computed in it."""

    __slots__ = ("bases", "code", "counter", "free", "owned", "safe", "size")

    def __init__(self, free: dict[int, list[int]], counter: int = 0, size: Value = 0) -> None:
        self.code: Code = []
        self.free, self.counter, self.size = free, counter, size
        self.owned: list[int] = []
        self.bases: dict[tuple[int, int, int], int] = {}
        self.safe: dict[tuple[int, tuple[Value, ...]], tuple[int, int]] = {}


class FunctionWriter:
    """One function with parameters `params` (value types) and no result. `relaxed`: it may use relaxed SIMD.

    `info[local]` is what is known of a local: True if it is a non-negative i32; ("const", 16 bytes),
    ("splat", scalar) and ("less", operands of the comparison) of vectors; ("load", code, position, memarg) of
    a scalar load that may become a splatting one, and ("vector", local) once it did; else None.
    """

    def __init__(self, name: str, params: Sequence[int], relaxed: bool = False) -> None:
        self.name, self.relaxed = name, relaxed
        self.params = tuple(params)
        self.types: list[int] = list(params)
        self.depths: list[int] = [0] * len(params)
        self.info: list[Any] = [None] * len(params)
        self.vectors: dict[bytes, int] = {}
        self.frames: list[_Frame] = [_Frame({})]
        _grow(len(params))

    def local(self, valtype: int, depth: int, fresh: bool = False) -> int:
        """A local for a value of the loop `depth` (0: outside of all). `fresh`: never used before, for a
        value that is set in code that was already written. Raises CompileError when there are too many."""
        frame = self.frames[depth]
        free = None if fresh else frame.free.get(valtype)
        if free:
            index = free.pop()
            self.depths[index] = depth
            self.info[index] = None
        else:
            index = len(self.types)
            if index >= MAX_LOCALS:
                raise CompileError(
                    f"kernel {self.name}: more values than the {MAX_LOCALS} locals of a function: "
                    "unroll it less or split it"
                )
            if index == len(GET):
                _grow(2 * index)
            self.types.append(valtype)
            self.depths.append(depth)
            self.info.append(None)
        frame.owned.append(index)
        return index

    def expr(self, valtype: int, *pieces: Value) -> int:
        """A new local with the result of `pieces`, postfix code over values without side effects."""
        depth, depths = 0, self.depths
        chunks: Code = []
        for piece in pieces:
            if type(piece) is int:
                if depths[piece] > depth:
                    depth = depths[piece]
                chunks.append(GET[piece])
            else:
                chunks.append(piece)  # type: ignore[arg-type]
        index = self.local(valtype, depth)
        chunks.append(SET[index])
        self.frames[depth].code += chunks
        return index

    def here(self, valtype: int, *pieces: Value) -> int:
        """`expr`, but evaluated exactly here: loads, divisions that may trap, reads of variables."""
        index = self.local(valtype, len(self.frames) - 1)
        self.do(*pieces, SET[index])
        return index

    def do(self, *pieces: Value) -> None:
        """Instructions that leave nothing on the stack."""
        self.frames[-1].code += [GET[p] if type(p) is int else p for p in pieces]  # type: ignore[misc]

    def vector(self, data: bytes) -> Value:
        """The v128 constant of 16 bytes."""
        inline = _INLINE_VECTORS.get(data)
        if inline is not None:
            return inline
        index = self.vectors.get(data)
        if index is None:
            index = self.vectors[data] = self.local(V128, 0, fresh=True)
            self.info[index] = ("const", data)
        return index

    def loop(self, size: Value) -> int:
        """Open a loop of `size` (an i32) rounds, or none if it is negative; its counter, from 0."""
        parent = self.frames[-1]
        frame = _Frame(parent.free)
        parent.free = {}  # the loop takes them: code hoisted out of it must share no local with it
        self.frames.append(frame)
        frame.counter, frame.size = self.local(I32, len(self.frames) - 1), size
        self.info[frame.counter] = True
        return frame.counter

    def end_loop(self) -> None:
        """Close the innermost loop. Raises InternalError when none is open."""
        if len(self.frames) == 1:
            raise InternalError(f"kernel {self.name}: end of a loop, and none is open")
        frame = self.frames.pop()
        parent = self.frames[-1]
        counter, size = frame.counter, frame.size
        push_size = GET[size] if isinstance(size, int) else size
        guarded = isinstance(size, int) or is_negative(size) or size == _ZERO
        code = parent.code
        code.append(
            Mark.of("loop", UNKNOWN_ROUNDS if isinstance(size, int) else max(constant_value(size), 0))
        )
        if guarded:
            code += (_BLOCK, push_size, _ONE, _LT_S, BR_IF + b"\0")
        code += (_ZERO, SET[counter], _LOOP, Mark.of("body"))
        code += frame.code
        code.append(Mark.of("close-body"))
        code += (GET[counter], _ONE, _ADD, TEE + uleb128(counter), push_size, _LT_S, BR_IF + b"\0", END)
        if guarded:
            code.append(END)
        code.append(Mark.of("close-loop"))
        for valtype, indices in frame.free.items():
            parent.free.setdefault(valtype, []).extend(indices)
        for index in frame.owned:
            parent.free.setdefault(self.types[index], []).append(index)

    def finish(self) -> OutlinedKernel:
        """The function, its long parts outlined. Raises InternalError while a loop is open."""
        if len(self.frames) != 1:
            raise InternalError(f"kernel {self.name}: {len(self.frames) - 1} loops are still open at its end")
        constants = {index: v128_const(data) for data, index in self.vectors.items()}
        return outline(self.name, self.params, self.types, constants, self.frames[0].code)


def is_negative(const: bytes) -> bool:
    """Whether an i32 or i64 constant is below zero: the sign bit of its last LEB128 byte."""
    return bool(const[-1] & 0x40)


def constant_value(const: bytes) -> int:
    """The signed integer of an i32 or i64 constant."""
    value = 0
    for position, byte in enumerate(const[1:]):
        value |= (byte & 127) << 7 * position
    return value - (1 << 7 * (len(const) - 1)) if is_negative(const) else value
