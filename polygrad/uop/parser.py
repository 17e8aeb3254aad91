"""A parser of the listings of kernels that printer.py makes: `render(parse(text))` is `text`.

A line has a number, an op, a dtype, the sources by number and the argument. The infix text at the end is
skipped, as it follows from the sources. Indentation and blank lines are ignored. It reads kernels, as graphs
and as linear lists. Tensor graphs have no listing, as they contain buffers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from polygrad.dtype import DType, dtypes
from polygrad.errors import ArgumentError
from polygrad.uop.args import (
    AddrSpace,
    Axis,
    AxisKind,
    Dot,
    Exponent,
    Magnitude,
    Memory,
    Param,
    Pending,
    Reg,
    Special,
    Var,
)
from polygrad.uop.linear import Steps
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops
from polygrad.uop.tensor_cores import BY_NAME, TensorCore

_ARITY = {
    **dict.fromkeys(GroupOp.Unary | {Ops.CAST, Ops.BITCAST, Ops.SHUFFLE_XOR}, 1),
    **dict.fromkeys(GroupOp.Binary | {Ops.STORE}, 2),
    **dict.fromkeys(GroupOp.Ternary, 3),
    **dict.fromkeys((Ops.CONST, Ops.PARAM, Ops.DEFINE_REG, Ops.DEFINE_VAR), 0),
}
_AT_LEAST = {Ops.RANGE: 1, Ops.LOAD: 1, Ops.INDEX: 2, Ops.REDUCE: 2, Ops.END: 2, Ops.AFTER: 2, Ops.SINK: 0,
             Ops.STAGE: 2, Ops.SCAN: 3, Ops.SPECIAL: 1, Ops.BARRIER: 1, Ops.COMMIT: 1,
             Ops.WMMA: 3, Ops.MATMUL: 3}  # fmt: skip
_DTYPES = {d.name: d for d in (*dtypes.all, *dtypes.fp8s, dtypes.index, dtypes.void)}
_KINDS = {kind.name: kind for kind in AxisKind}
_SPACES = {space.name: space for space in AddrSpace}
_BOOLS = {"True": True, "False": False}


def parse(text: str) -> list[UOp]:
    """The nodes of a kernel's listing, in order; the last node of a graph is its root.

    Only the form of each line is checked; `uop/spec.py` checks whether the kernel is legal. Raises
    ArgumentError, which names the line and the token.
    """
    nodes: list[UOp] = []
    seen: dict[UOp, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        node = _Line(number, line).node(nodes)
        if node in seen:
            raise ArgumentError(f"line {number}: it is node {seen[node]} again")
        seen[node] = len(nodes)
        nodes.append(node)
    return nodes


class _Line:
    """One line, read token by token."""

    def __init__(self, number: int, text: str) -> None:
        self.number, self.tokens, self.position = number, text.split(), 0

    def fail(self, expected: str) -> NoReturn:
        """Raise ArgumentError for the last token."""
        at = self.position
        got = repr(self.tokens[at - 1]) if at <= len(self.tokens) else "the end of the line"
        raise ArgumentError(f"line {self.number}, token {at}: expected {expected}, got {got}")

    def take(self) -> str:
        self.position += 1
        return self.tokens[self.position - 1] if self.position <= len(self.tokens) else ""

    def peek(self) -> str:
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def integer(self, what: str) -> int:
        text = self.take()
        if not is_digits(text.removeprefix("-")):
            self.fail(what)
        return int(text)

    def choice(self, table: dict[str, Any], what: str) -> Any:
        text = self.take()
        if text not in table:
            self.fail(what)
        return table[text]

    def node(self, nodes: list[UOp]) -> UOp:
        """The node of this line; `nodes` are those of the lines before."""
        if self.integer("the number of the line's node") != len(nodes):
            self.fail(f"the next number, {len(nodes)}")
        op = self.choice(_OPS, "an op of a kernel")
        dtype = self.choice(_DTYPES, "a dtype")
        src = self.sources(op, nodes)
        read = _ARGUMENTS.get(op)
        arg = read(self, dtype) if read is not None else None
        if self.peek() and op not in GroupOp.ALU and op not in (Ops.RANGE, Ops.SPECIAL):
            self.take()
            self.fail("the end of the line")
        if op is Ops.CONST and dtype.is_float:
            return UOp.const(dtype, arg)  # one NaN, one -0.0
        return UOp(op, dtype, src, arg)

    def sources(self, op: Ops, nodes: list[UOp]) -> tuple[UOp, ...]:
        if op in _ARITY:
            return tuple(self.source(nodes) for _ in range(_ARITY[op]))
        stop = self.position
        while stop < len(self.tokens) and (self.tokens[stop].isdecimal() or self.tokens[stop] == "?"):
            stop += 1
        if op is Ops.RANGE and "." not in (self.tokens[stop] if stop < len(self.tokens) else ""):
            stop -= 1  # the axis id
        if op is Ops.STAGE:
            stop -= 1  # the memory's size
        src = [self.source(nodes) for _ in range(stop - self.position)]
        while len(src) < _AT_LEAST[op]:
            src.append(self.source(nodes))
        return tuple(src)

    def source(self, nodes: list[UOp]) -> UOp:
        n = self.integer("the number of a source")
        if not 0 <= n < len(nodes):
            self.fail(f"a source of a line before, 0 to {len(nodes) - 1}")
        return nodes[n]


# --- arguments, as printer.py writes them


def _constant(line: _Line, dtype: DType) -> Any:
    if dtype.is_bool:
        return line.choice(_BOOLS, "True or False")
    if not dtype.is_float:
        value = line.integer("an integer")
        return value if dtype.min <= value <= dtype.max else line.fail(f"a value of {dtype.name}")
    try:
        return float(line.take())
    except ValueError:
        line.fail("a float")


def _param(line: _Line, dtype: DType) -> Param:
    slot, size = line.integer("a slot"), line.integer("a size")
    return Param(slot, size, _space(line), *_buffers(line)) if line.peek() else Param(slot, size)


def _space(line: _Line) -> AddrSpace:
    return line.choice(_SPACES, "an address space")


def _memory(line: _Line, dtype: DType) -> Memory:
    return Memory(line.integer("a size"), _space(line), *_buffers(line))


def _buffers(line: _Line) -> tuple[int, bool]:
    """The `depth` and `swizzled` of memory: `x3 swizzled`, either or none."""
    depth, text = 1, line.peek()
    if text.startswith("x") and is_digits(text[1:]):
        depth, text = int(line.take()[1:]), line.peek()
    if text == "swizzled":
        line.take()
    return depth, text == "swizzled"


def _pending(line: _Line, dtype: DType) -> Pending | None:
    text = line.peek()
    return Pending(int(line.take()[1:])) if text.startswith("x") and is_digits(text[1:]) else None


def _register(line: _Line, dtype: DType) -> Reg:
    return Reg(line.integer("a register's number"))


def _variable(line: _Line, dtype: DType) -> Var:
    name = line.take() or line.fail("a Variable's name")
    return Var(name, line.integer("the least value"), line.integer("the greatest value"))


def _axis(line: _Line, dtype: DType) -> Axis:
    return Axis(axis_id(line.take()) or line.fail("an axis id"), line.choice(_KINDS, "an axis kind"))


def is_digits(text: str) -> bool:
    """Whether text has the digits of an integer of at most 20, as 2**64 has."""
    return text.isdecimal() and len(text) <= 20


def axis_id(text: str) -> tuple[int, ...]:
    """The axis id of the text `1.0`; () for text that is no axis id."""
    parts = text.split(".")
    return tuple(map(int, parts)) if all(map(is_digits, parts)) else ()


def _reduce_op(line: _Line, dtype: DType) -> Ops:
    return line.choice({op.name: op for op in GroupOp.Reduce}, "ADD, MUL or MAX")


def _steps(line: _Line, dtype: DType) -> Steps | None:
    """`((r4:LANE:4 1) (r5:UPCAST:2 4)) 7`, or nothing."""
    if not line.peek():
        return None
    steps: list[tuple[UOp, int]] = []
    if line.peek() == "()":
        line.take()
        return Steps((), line.integer("the constant part"))
    closed = False
    while not closed:
        opening = "(" if steps else "(("
        text = line.take()
        name, *fields = text.removeprefix(opening).split(":")
        valid = text.startswith(opening) and len(fields) == 2 and fields[0] in _KINDS and is_digits(fields[1])
        if not valid or not name.startswith("r") or not axis_id(name[1:]):
            line.fail(f"a range and its step, as {opening}r4:LANE:4 1)")
        step = line.take()
        digits = step.rstrip(")")
        closed = step == f"{digits}))"
        if not is_digits(digits.removeprefix("-")) or step not in (f"{digits})", f"{digits}))"):
            line.fail("a step and the closing parenthesis")
        axis = Axis(axis_id(name[1:]), _KINDS[fields[0]])
        steps.append((UOp.range(int(fields[1]), axis), int(digits)))
    return Steps(tuple(steps), line.integer("the constant part"))


def _special(line: _Line, dtype: DType) -> Special:
    return Special(line.choice(_KINDS, "GLOBAL or LOCAL"), line.integer("a dimension"))


def _magnitude(line: _Line, dtype: DType) -> Magnitude | None:
    return line.choice(dict(Magnitude.__members__), "what is known of the argument") if line.peek() else None


def _exponent(line: _Line, dtype: DType) -> Exponent | None:
    return line.choice(dict(Exponent.__members__), "what its operand is") if line.peek() else None


def _mask(line: _Line, dtype: DType) -> int:
    return line.integer("the bits that two lanes' numbers differ by")


def _dot(line: _Line, dtype: DType) -> Dot:
    a, b = (line.choice(_DTYPES, "the dtype of a word's numbers") for _ in range(2))
    return Dot(a, b, line.integer("their bits"))


def _tensor_core(line: _Line, dtype: DType) -> TensorCore:
    return line.choice(BY_NAME, "a tensor core")


_OPS = {op.name: op for op in (*_ARITY, *_AT_LEAST)}
_ARGUMENTS: dict[Ops, Callable[[_Line, DType], Any]] = {
    Ops.CONST: _constant,
    Ops.SHUFFLE_XOR: _mask,
    Ops.BARRIER: _pending,
    Ops.PARAM: _param,
    Ops.DEFINE_REG: _register,
    Ops.DEFINE_VAR: _variable,
    Ops.RANGE: _axis,
    Ops.REDUCE: _reduce_op,
    Ops.SCAN: _reduce_op,
    Ops.INDEX: _steps,
    Ops.STAGE: _memory,
    Ops.SIN: _magnitude,
    Ops.EXP2: _exponent,
    Ops.SPECIAL: _special,
    Ops.WMMA: _tensor_core,
    Ops.DOT: _dot,
    Ops.MATMUL: _dot,
}
