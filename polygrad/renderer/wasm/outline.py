"""Outlining: parts of a large kernel become functions, so that engines replace baseline code while it runs.

An engine starts a function in baseline code, which is quick to make and slow to run (V8's is 15 times as slow
on a matrix product). Once it has run for some time, the engine compiles it well in the background, and uses
that code from the next call on. So the body of a long loop becomes a function, which each round calls:

    (loop ... (call $outlined (local.get live-ins ...)) ...)

The part is chosen so that a call is short even in baseline code, so that there are many calls, and so that
the call itself costs next to nothing beside the code in it. LLVM's name for this is outlining.

Knows the chunks of `FunctionWriter` (each at most one access to a local), no dtypes and no ops of the IR.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from polygrad.wasm.body import encode_locals
from polygrad.wasm.instructions import END
from polygrad.wasm.leb128 import uleb128
from polygrad.wasm.module import DefinedFunction
from polygrad.wasm.opcodes import opcode
from polygrad.wasm.reader import Reader
from polygrad.wasm.types import FuncType

# Work is counted in chunks, about an instruction each. Baseline code runs about one in a nanosecond.
MIN_WORK = 5_000_000  # of a loop nest that has parts: baseline code takes some milliseconds for less
MAX_CALL = 500_000  # work of one call: the call that is running ends in baseline code
MIN_CALL = 2_000  # work of one call: the call itself takes a few nanoseconds
MIN_CALLS = 50  # calls of a part
UNKNOWN_ROUNDS = 16  # assumed for a loop whose size is not a constant

_GET, _SET, _TEE = (opcode("local." + op).code for op in ("get", "set", "tee"))
_CALL = opcode("call").code


@dataclass(frozen=True)
class OutlinedKernel(DefinedFunction):
    """A function and its outlined parts, which it calls as functions 1, 2, ... of its module."""

    outlined: tuple[DefinedFunction, ...] = ()


class Tee(bytes):
    """A chunk of several instructions, with one `local.tee` among them."""

    local: int
    before: bytes
    after: bytes

    @staticmethod
    def of(before: bytes, local: int, after: bytes) -> Tee:
        """`before`, `local.tee`, `after`."""
        out = Tee(before + _TEE + uleb128(local) + after)
        out.before, out.local, out.after = before, local, after
        return out


class Mark(bytes):
    """An empty chunk at the start or the end of a loop or of its body."""

    kind: str
    rounds: int

    @staticmethod
    def of(kind: str, rounds: int = 0) -> Mark:
        """`kind`: loop, body, close-body or close-loop."""
        out = Mark()
        out.kind, out.rounds = kind, rounds
        return out


Part = tuple[int, int, list[int]]  # start and end of its range of chunks, and the locals live on entry


@dataclass
class _LoopSpan:
    """A loop in a list of chunks, from `start` to `end`, with its body, from `body` to `body_end`."""

    rounds: int
    start: int
    body: int = 0
    body_end: int = 0
    end: int = 0
    work: int = 0  # of all rounds
    inner: list[_LoopSpan] = field(default_factory=list)


def outline(
    name: str, params: Sequence[int], types: Sequence[int], constants: dict[int, bytes], code: list[bytes]
) -> OutlinedKernel:
    """The function of this code, with parts outlined where that pays. `types`: of all locals. `constants`: by
    local, the instruction for a constant; `code` does not set these locals."""
    parts = _Outliner(types, constants, code)
    functions: list[DefinedFunction] = []
    caller: list[bytes] = []
    at = 0
    for start, end, live in parts.choose():
        functions.append(_function(f"{name}_{len(functions) + 1}", live, types, constants, code[start:end]))
        caller += code[at:start]
        caller += [_GET + uleb128(local) for local in live]
        caller.append(_CALL + uleb128(len(functions)))
        at = end
    caller += code[at:]
    body = b"".join((encode_locals(types[len(params) :]), *_prologue(constants, caller), *caller, END))
    return OutlinedKernel(name, FuncType(tuple(params)), body, tuple(functions))


def _prologue(constants: dict[int, bytes], code: Sequence[bytes]) -> list[bytes]:
    """The instructions that set the constants which `code` reads."""
    chunks = set(code)
    used = [local for local in constants if _GET + uleb128(local) in chunks]
    return [piece for local in used for piece in (constants[local], _SET + uleb128(local))]


def _function(
    name: str, live: Sequence[int], types: Sequence[int], constants: dict[int, bytes], code: Sequence[bytes]
) -> DefinedFunction:
    """A part of the code as a function. The locals that are live on entry are its parameters."""
    numbers = {local: i for i, local in enumerate(live)}
    out: list[bytes] = []
    for chunk in code:
        local_access = access(chunk)
        if local_access is None:
            out.append(chunk)
            continue
        op, local = local_access
        number = uleb128(numbers.setdefault(local, len(numbers)))
        if type(chunk) is Tee:
            out.append(chunk.before + _TEE + number + chunk.after)
        else:
            out.append(op + number)
    prologue = [
        piece
        for local, number in numbers.items()
        if local in constants
        for piece in (constants[local], _SET + uleb128(number))
    ]
    declared = encode_locals([types[local] for local in numbers][len(live) :])
    return DefinedFunction(
        name, FuncType(tuple(types[local] for local in live)), b"".join((declared, *prologue, *out, END))
    )


_OPS = {op[0]: op for op in (_GET, _SET, _TEE)}


def access(chunk: bytes) -> tuple[bytes, int] | None:
    """The access to a local in a chunk, if any: its opcode and the local."""
    op = _OPS.get(chunk[0]) if chunk else None
    if op is not None:
        if len(chunk) == 3:  # most numbers of more than a byte have two
            return op, chunk[1] & 127 | chunk[2] << 7
        return op, chunk[1] if len(chunk) == 2 else Reader(chunk, 1).uleb()
    return (_TEE, chunk.local) if type(chunk) is Tee else None


class _Outliner:
    """Chooses the parts of a list of chunks that become functions."""

    def __init__(self, types: Sequence[int], constants: dict[int, bytes], code: list[bytes]) -> None:
        self.types, self.constants, self.code = types, constants, code
        self.top: list[_LoopSpan] = []
        self._find_loops()

    def _find_loops(self) -> None:
        open_: list[_LoopSpan] = []
        for i, chunk in enumerate(self.code):
            if type(chunk) is not Mark:
                continue
            if chunk.kind == "loop":
                open_.append(_LoopSpan(chunk.rounds, i))
            elif chunk.kind == "body":
                open_[-1].body = i
            elif chunk.kind == "close-body":
                open_[-1].body_end = i
            else:
                loop = open_.pop()
                loop.end = i
                body_length = loop.body_end - loop.body - sum(n.end - n.start for n in loop.inner)
                loop.work = loop.rounds * (body_length + sum(n.work for n in loop.inner))
                (open_[-1].inner if open_ else self.top).append(loop)

    @functools.cached_property
    def accesses(self) -> list[tuple[bytes, int] | None]:
        """The access to a local in each chunk."""
        return [access(chunk) for chunk in self.code]

    @functools.cached_property
    def paths(self) -> list[tuple[int, ...]]:
        """For each chunk, the bodies around it, by the position where they start."""
        out: list[tuple[int, ...]] = []
        path: tuple[int, ...] = ()
        for i, chunk in enumerate(self.code):
            if type(chunk) is Mark:
                if chunk.kind == "body":
                    path = (*path, i)
                elif chunk.kind == "close-body":
                    path = path[:-1]
            out.append(path)
        return out

    def choose(self) -> list[Part]:
        """The parts in order. None contains another."""
        out: list[Part] = []
        for loop in self.top:
            if loop.work >= MIN_WORK:
                self._choose(loop, 1, out)
        return out

    def _choose(self, loop: _LoopSpan, runs: int, out: list[Part]) -> None:
        """Choose the body of a loop that runs `runs` times, or the whole loop, or parts of its body."""
        call = loop.work // max(loop.rounds, 1)
        part: tuple[int, int] | None = None
        if MIN_CALL <= call <= MAX_CALL and runs * loop.rounds >= MIN_CALLS:
            part = loop.body, loop.body_end
        elif MIN_CALL <= loop.work <= MAX_CALL and runs >= MIN_CALLS:
            part = loop.start, loop.end
        if part is not None and (live := self.live_in(*part)) is not None:
            out.append((*part, live))
            return
        for inner in loop.inner:
            self._choose(inner, runs * loop.rounds, out)

    def live_in(self, start: int, end: int) -> list[int] | None:
        """The locals, other than constants, that a part reads and does not set. None if the part cannot be a
        function: it sets a local that is read outside before it is set again, or reads one in a round of a
        loop in which it may not be set."""
        live: dict[int, None] = {}
        changed: dict[int, set[tuple[int, ...]]] = {}  # by local, the paths of the chunks that set it
        for i in range(start, end):
            if (local_access := self.accesses[i]) is None:
                continue
            op, local = local_access
            path = self.paths[i]
            if op != _GET:
                changed.setdefault(local, set()).add(path)
            elif local not in changed:
                if local not in self.constants:
                    live[local] = None
            elif not any(path[: len(p)] == p for p in changed[local]):
                return None
        if not live.keys().isdisjoint(changed) or self._live_out(start, end, changed):
            return None
        return list(live)

    def _live_out(self, start: int, end: int, changed: Collection[int]) -> bool:
        """Whether one of these locals is read after the part, or in the next round of a loop around it,
        before it is set."""
        outer_bodies = self.paths[start - 1] if start else ()
        for chunks in (range(end, len(self.code)), *(range(body, start) for body in outer_bodies)):
            seen: set[int] = set()
            for i in chunks:
                op, local = self.accesses[i] or (b"", -1)
                if local not in changed or local in seen:
                    continue
                if op == _GET:
                    return True
                seen.add(local)
        return False


def flatten(kernels: Sequence[DefinedFunction]) -> tuple[list[DefinedFunction], list[int]]:
    """The functions of a module of these kernels, each followed by its outlined parts, with the calls
    renumbered; and the number of each kernel."""
    functions: list[DefinedFunction] = []
    starts: list[int] = []
    for kernel in kernels:
        starts.append(len(functions))
        functions += relocate([kernel, *getattr(kernel, "outlined", ())], len(functions))
    return functions, starts


def relocate(functions: Sequence[DefinedFunction], start: int) -> list[DefinedFunction]:
    """The functions of one module as functions `start` and following of another."""
    if len(functions) == 1 or start == 0:
        return list(functions)
    return [DefinedFunction(f.name, f.type, _relocate_code(f.code, start)) for f in functions]


def _relocate_code(code: bytes, start: int) -> bytes:
    reader, out, at = Reader(code), [], 0
    reader.locals()
    for instruction in reader.expression():
        if instruction.opcode.name == "call":
            out += [code[at : instruction.offset], _CALL + uleb128(instruction.immediates[0] + start)]
            at = reader.offset
    return b"".join((*out, code[at:]))
