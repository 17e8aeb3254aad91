"""Readable listings of graphs and linear kernels.

    0 PARAM      float32                  0, 12
    1 CONST      index                    4
    2 RANGE      index    1               0 LOOP          r0
    3   MUL      index    2 4                             r0*3

Numbered lines: op, dtype, sources by number, argument; index arithmetic also as written by hand. A linear
kernel's loops are indented. parser.py reads kernels back. Knows nodes only.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

from polygrad.dtype import dtypes
from polygrad.uop.args import AddrSpace, Axis, AxisKind, Memory, Param, Pending, Special
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops
from polygrad.uop.tensor_cores import TensorCore

_INFIX = {
    Ops.ADD: ("+", 5), Ops.SUB: ("-", 5),
    Ops.MUL: ("*", 6), Ops.IDIV: ("//", 6), Ops.MOD: ("%", 6), Ops.FDIV: ("/", 6),
    Ops.SHL: ("<<", 4), Ops.SHR: (">>", 4), Ops.AND: ("&", 3), Ops.XOR: ("^", 2), Ops.OR: ("|", 1),
    Ops.CMPLT: ("<", 0), Ops.CMPNE: ("!=", 0), Ops.CMPEQ: ("==", 0),
}  # fmt: skip
_SPECIALS = {AxisKind.GLOBAL: "g", AxisKind.LOCAL: "l"}  # names of workgroups and invocations
_ATOM = 9
_MAX_WIDTH = 100  # characters of infix text; longer sources are shown by number

Text = tuple[str, int]  # and how tightly its outermost operator binds


def infix(x: UOp, names: dict[UOp, str] | None = None) -> str:
    """The expression of `x` as infix text: `r0*4+r1`. `names`: of some nodes; others are %n."""
    texts: dict[UOp, Text] = {}
    for i, node in enumerate(x.toposort()):
        named = names.get(node) if names else None
        texts[node] = (named, _ATOM) if named else _text(node, texts, f"%{i}", limit=1 << 30)
    return texts[x][0]


def _text(node: UOp, texts: dict[UOp, Text], number: str, limit: int = _MAX_WIDTH) -> Text:
    op, src = node.op, node.src
    if op is Ops.CONST:
        text = _value(node.arg)
        return text, _ATOM if text[0] != "-" else 5
    if op is Ops.DEFINE_VAR:
        return node.arg.name, _ATOM
    if op is Ops.RANGE:
        return axis_name(node.arg.id), _ATOM
    if op is Ops.SPECIAL:
        return f"{_SPECIALS[node.arg.kind]}{node.arg.axis}", _ATOM
    if op is Ops.CAST:
        out: Text = (f"{node.dtype.name}({texts[src[0]][0]})", _ATOM)
    elif op is Ops.NEG:
        out = f"-{_wrap(texts[src[0]], 7)}", 5
    elif op is Ops.WHERE:
        out = f"({texts[src[0]][0]} ? {texts[src[1]][0]} : {texts[src[2]][0]})", _ATOM
    elif op is Ops.CMPNE and src[1].op is Ops.CONST and src[1].arg is True:
        out = f"!{_wrap(texts[src[0]], 8)}", 8
    elif op in _INFIX:
        sign, strength = _INFIX[op]
        # a comparison does not chain; + and * of the same strength read left to right
        left = _wrap(texts[src[0]], strength + (op in GroupOp.Comparison))
        right = _wrap(texts[src[1]], strength + 1)
        if op is Ops.ADD and src[1].op is Ops.CONST and texts[src[1]][0].startswith("-"):
            out = f"{left}{texts[src[1]][0]}", strength
        else:
            out = f"{left}{sign}{right}", strength
    elif op in GroupOp.ALU:
        out = f"{op.name.lower()}({', '.join(texts[s][0] for s in src)})", _ATOM
    else:
        return number, _ATOM
    return out if len(out[0]) <= limit else (number, _ATOM)


def _wrap(text: Text, strength: int) -> str:
    return text[0] if text[1] >= strength else f"({text[0]})"


def axis_name(id: tuple[int, ...]) -> str:
    """`r1.0` for the axis (1, 0)."""
    return "r" + ".".join(map(str, id))


def _buffers(memory: Param | Memory) -> list[str]:
    """How many buffers a STAGE has, and whether they are swizzled, where it is not a plain one."""
    depth = [f"x{memory.depth}"] if memory.depth > 1 else []
    return [*depth, "swizzled"] if memory.swizzled else depth


def _value(arg: Any) -> str:
    if arg is None:
        return ""
    if isinstance(arg, Axis):
        return f"{axis_name(arg.id)[1:]} {arg.kind.name}"
    if isinstance(arg, Param) and arg.space is AddrSpace.GLOBAL:
        return f"{arg.slot} {arg.size}"
    if isinstance(arg, Param | Memory):
        return " ".join([*map(_value, arg[:-2]), *_buffers(arg)])
    if isinstance(arg, Pending):
        return f"x{arg.groups}"
    if isinstance(arg, TensorCore):
        return arg.name
    if isinstance(arg, Special):
        return f"{arg.kind.name} {arg.axis}"
    if isinstance(arg, Enum):
        return arg.name
    if isinstance(arg, tuple):
        return " ".join(_value(a) if not isinstance(a, tuple) else f"({_value(a)})" for a in arg)
    if isinstance(arg, UOp):  # a range that occurs in an argument only has no line of its own
        axis = (
            f"{axis_name(arg.arg.id)}:{arg.arg.kind.name}:{_value(arg.src[0])}" if arg.op is Ops.RANGE else ""
        )
        return axis or infix(arg)
    return str(arg)


def render(what: UOp | Sequence[UOp]) -> str:
    """A listing of the graph under a node (sources first), or of a linear kernel (loops indented)."""
    linear = not isinstance(what, UOp)
    nodes: Sequence[UOp] = what.toposort() if isinstance(what, UOp) else what
    number = {node: i for i, node in enumerate(nodes)}
    texts: dict[UOp, Text] = {}
    lines, depth = [], 0
    closed = {r for node in nodes if linear and node.op is Ops.END for r in node.src[1:]}
    for i, node in enumerate(nodes):
        if node.op is Ops.END and linear:
            depth -= sum(s in closed for s in node.src[1:])
        for s in node.src:  # a list may leave sources out
            texts.setdefault(s, ("?", _ATOM))
        texts[node] = _text(node, texts, f"%{i}")
        sources = " ".join(str(number.get(s, "?")) for s in node.src)
        formula = texts[node][0] if _is_arithmetic(node) and not texts[node][0].startswith("%") else ""
        op = "  " * depth + node.op.name
        columns = f"{op:<14} {node.dtype.name:<8} {sources:<15} {_value(node.arg):<13} {formula}"
        lines.append(f"{i:4} {columns}".rstrip())
        depth += node in closed
    return "\n".join(lines)


def _is_arithmetic(node: UOp) -> bool:
    if node.op in (Ops.RANGE, Ops.SPECIAL):
        return True
    of_index = node.dtype is dtypes.index or (node.dtype is dtypes.bool and node.src[:1] != ())
    return of_index and node.op in GroupOp.ALU and node.op is not Ops.WHERE
