"""The legal IR of each stage, as tables of rules; `verify` checks nodes against them.

A rule is a sentence and a predicate of one node. An op without an entry in a stage's table is illegal there.
Stages: `tensor` (what the Tensor API builds), `kernel` (a kernel's graph, from scheduling until it is
linearised) and `linear` (the list a renderer gets: decomposed, sources before users, loops nested). Rules
hold between passes, so tests and SPEC=1 verify after every one. The idea is tinygrad's `spec`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from polygrad.dtype import dtypes
from polygrad.errors import InternalError
from polygrad.uop.args import (
    Axis,
    AxisKind,
    Dot,
    Exponent,
    Magnitude,
    Memory,
    Param,
    Reduction,
    Reg,
    Sharding,
    Shear,
    Special,
    Var,
)
from polygrad.uop.for_loop import STORED, For
from polygrad.uop.linear import Steps
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops
from polygrad.uop.tensor_cores import TensorCore

Rule = tuple[str, Callable[[UOp], bool]]
Table = dict[Ops, tuple[Rule, ...]]


def verify(nodes: Iterable[UOp], stage: str) -> None:
    """Check `nodes` (in any order; for `linear`, the list itself) against the rules of `stage`.

    Raises InternalError that names the node and the rule.
    """
    table = _STAGES[stage]
    nodes = list(nodes)
    for node in nodes:
        rules = table.get(node.op)
        if rules is None:
            raise _broken(stage, node, f"{node.op} does not belong here")
        for sentence, holds in rules:
            if not holds(node):
                raise _broken(stage, node, sentence)
    if stage == "linear":
        _verify_order(nodes)


def _broken(stage: str, node: UOp, rule: str) -> InternalError:
    sources = ", ".join(f"{s.op}:{s.dtype.name}" for s in node.src)
    return InternalError(f"{stage} IR: {node.op}:{node.dtype.name}({sources}) arg={node.arg!r}: {rule}")


def _table(*rows: tuple[Iterable[Ops], tuple[Rule, ...]]) -> Table:
    out: Table = {}
    for ops, rules in rows:
        for op in ops:
            out[op] = out.get(op, ()) + rules
    return out


# --- single rules ---------------------------------------------------------------------------------------


def _sources(n: int) -> Rule:
    return f"has {n} source{'s' * (n != 1)}", lambda u: len(u.src) == n


def _const_holds(u: UOp) -> bool:
    if u.dtype.is_float:
        return isinstance(u.arg, float)
    if u.dtype.is_bool:
        return isinstance(u.arg, bool)
    return isinstance(u.arg, int) and not isinstance(u.arg, bool) and u.dtype.min <= u.arg <= u.dtype.max


def _arg(kind: type) -> Rule:
    return f"its argument is a {kind.__name__}", lambda u: isinstance(u.arg, kind)


_ALIKE: Rule = ("its sources have its dtype", lambda u: all(s.dtype is u.dtype for s in u.src))
_FIRST_ALIKE: Rule = ("its first source has its dtype", lambda u: u.src[0].dtype is u.dtype)
_VOID: Rule = ("it has no dtype", lambda u: u.dtype is dtypes.void)
_NUMBER: Rule = ("it has a dtype", lambda u: u.dtype is not dtypes.void)
_INTEGER: Rule = ("its dtype is an integer", lambda u: u.dtype.is_int)
_WHOLE: Rule = ("its dtype is an integer or bool", lambda u: u.dtype.is_int or u.dtype.is_bool)
_FLOAT: Rule = ("its dtype is a float", lambda u: u.dtype.is_float)
_INDEX: Rule = ("its dtype is index", lambda u: u.dtype is dtypes.index)
_BOUNDED: Rule = (
    "its bounds are those of an integer or bool, in order",
    lambda u: u.bounds is None if u.dtype.is_float else u.bounds is not None and u.bounds[0] <= u.bounds[1],
)

_FLOAT_OPS = frozenset({
    Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.POW, Ops.SQRT, Ops.RECIPROCAL, Ops.TRUNC, Ops.FDIV,
})  # fmt: skip
_INTEGER_OPS = frozenset({Ops.IDIV, Ops.MOD})
_BIT_OPS = frozenset({Ops.AND, Ops.OR, Ops.XOR})
_SHIFTS = frozenset({Ops.SHL, Ops.SHR})
_BINARY_ALIKE = GroupOp.Binary - GroupOp.Comparison - _SHIFTS

_ELEMENTWISE = _table(
    (GroupOp.Unary, (_sources(1), _ALIKE, _BOUNDED)),
    (_BINARY_ALIKE, (_sources(2), _ALIKE, _BOUNDED)),
    (_SHIFTS, (
        _sources(2),
        _FIRST_ALIKE,
        _INTEGER,
        ("it shifts by an integer", lambda u: u.src[1].dtype.is_int),
    )),
    (GroupOp.Comparison, (
        _sources(2),
        ("it gives bool", lambda u: u.dtype.is_bool),
        ("its sources have one dtype", lambda u: u.src[0].dtype is u.src[1].dtype),
    )),
    ((Ops.WHERE,), (
        _sources(3),
        ("its condition is bool", lambda u: u.src[0].dtype.is_bool),
        ("both choices have its dtype", lambda u: u.src[1].dtype is u.dtype is u.src[2].dtype),
    )),
    ((Ops.MULACC,), (_sources(3), _ALIKE)),
    ((Ops.DOT,), (
        _sources(3),
        _arg(Dot),
        ("it adds products of what two uint32 hold to a value of its dtype",
         lambda u: [s.dtype for s in u.src] == [dtypes.uint32, dtypes.uint32, u.dtype] and u.dtype is u.arg.total),
    )),
    (_FLOAT_OPS, (_FLOAT,)),
    ((Ops.SIN,), (("its argument is None or a Magnitude", lambda u: isinstance(u.arg, Magnitude | None)),)),
    ((Ops.EXP2,), (("its argument is None or an Exponent", lambda u: isinstance(u.arg, Exponent | None)),)),
    (_INTEGER_OPS, (_INTEGER,)),
    (_BIT_OPS, (_WHOLE,)),
    ((Ops.THREEFRY,), (("its dtype is uint64", lambda u: u.dtype is dtypes.uint64),)),
    ((Ops.CAST,), (_sources(1), _NUMBER, ("it casts a number", lambda u: u.src[0].dtype is not dtypes.void))),
    ((Ops.BITCAST,), (
        _sources(1),
        ("both dtypes have one size", lambda u: u.dtype.itemsize == u.src[0].dtype.itemsize),
    )),
)  # fmt: skip

_LEAVES = _table(
    ((Ops.CONST,), (_sources(0), ("its argument is a value of its dtype", _const_holds))),
    ((Ops.DEFINE_VAR,), (_sources(0), _INDEX, _arg(Var), ("lo <= hi", lambda u: u.arg.lo <= u.arg.hi))),
)


# --- the tensor graph -----------------------------------------------------------------------------------


def _same_shapes(u: UOp) -> bool:
    shapes = [s.shape for s in u.src if s.shape != ()]
    return all(s == shapes[0] for s in shapes[1:])


def _same_size(u: UOp) -> bool:
    a, b = u.src[0].size, u.size
    return not (isinstance(a, int) and isinstance(b, int)) or a == b


def _expands(u: UOp) -> bool:
    shape = u.src[0].shape
    return len(shape) == len(u.arg) and all(a == b or a == 1 for a, b in zip(shape, u.arg, strict=True))


def _shrinks(u: UOp) -> bool:
    shape = u.src[0].shape
    pairs = zip(u.arg, shape, strict=False)
    constant_bounds = [(lo, hi, n) for (lo, hi), n in pairs if all(isinstance(x, int) for x in (lo, hi, n))]
    return len(shape) == len(u.arg) and all(0 <= lo <= hi <= n for lo, hi, n in constant_bounds)


def _pads(u: UOp) -> bool:
    sides = [p for pair in u.arg for p in pair if isinstance(p, int)]
    return len(u.src[0].shape) == len(u.arg) and all(p >= 0 for p in sides)


def _permutes(u: UOp) -> bool:
    return sorted(u.arg) == list(range(u.src[0].ndim))


def _binds(u: UOp) -> bool:
    return u.src[0].op is Ops.DEFINE_VAR and u.src[1].op is Ops.CONST


def _loops(u: UOp) -> bool:
    results = u.arg.body.src
    pairs = zip(results, u.src, strict=False)
    alike = all(r.dtype is s.dtype and r.shape == s.shape for r, s in pairs)
    return u.arg.trips > 0 and len(results) <= len(u.src) and alike and u.dtype is results[u.arg.result].dtype


def _shears(u: UOp) -> bool:
    axis, along, start, step, size = u.arg
    if axis == along or not _axes_in_range((axis, along), u):
        return False
    n, last = u.src[0].shape[axis], start + step * (u.src[0].shape[along] - 1)
    return 0 <= min(start, last) and max(start, last) + size <= n


def _memory_under(target: UOp) -> UOp | None:
    memory, _ = target.movements()
    return memory if memory.op in GroupOp.Memory else None


def _axes_in_range(axes: Sequence[int], u: UOp) -> bool:
    return len(set(axes)) == len(axes) and all(0 <= a < u.src[0].ndim for a in axes)


_LATE = frozenset({Ops.SUB, Ops.NEG, Ops.DOT})
_MOVEMENT_RULES = (_sources(1), _ALIKE)

_SAME_SHAPES: Rule = ("its sources have one shape (constants fit any)", _same_shapes)

_TENSOR = _LEAVES | {op: (*rules, _SAME_SHAPES) for op, rules in _ELEMENTWISE.items() if op not in _LATE}
_TENSOR |= _table(
    ((Ops.BUFFER,), (_sources(0), _NUMBER, ("its argument is a buffer", lambda u: hasattr(u.arg, "size")))),
    ((Ops.ARANGE,), (_sources(0), _INTEGER)),
    ((Ops.BIND,), (_sources(2), _INDEX, ("it binds a variable to a constant", _binds))),
    (GroupOp.Movement, _MOVEMENT_RULES),
    ((Ops.RESHAPE,), (("it keeps the number of elements", _same_size),)),
    ((Ops.EXPAND,), (("only sizes of 1 grow", _expands),)),
    ((Ops.PERMUTE,), (("its argument is a permutation", _permutes),)),
    ((Ops.PAD,), (("each axis has two sides, none negative", _pads),)),
    ((Ops.SHRINK,), (("0 <= lo <= hi <= size on each axis", _shrinks),)),
    ((Ops.FLIP,), (("its axes are distinct and in range", lambda u: _axes_in_range(u.arg, u)),)),
    ((Ops.SHEAR,), (_arg(Shear), ("its windows lie within the axis", _shears))),
    ((Ops.REDUCE_AXIS,), (
        *_MOVEMENT_RULES,
        _arg(Reduction),
        ("it combines with ADD, MUL or MAX", lambda u: u.arg.op in GroupOp.Reduce),
        ("its axes are distinct and in range", lambda u: _axes_in_range(u.arg.axes, u)),
    )),
    ((Ops.SCAN_AXIS,), (
        _ALIKE,
        _SAME_SHAPES,
        _arg(Reduction),
        ("it combines with ADD, MUL or MAX, or MULACC of a factor", lambda u: _scans(u.arg.op, len(u.src))),
        ("it goes along one axis", lambda u: len(u.arg.axes) == 1 and _axes_in_range(u.arg.axes, u)),
    )),
    ((Ops.FOR,), (
        _arg(For),
        ("it has a source for each result of its body, alike", _loops),
        ("its sources are stored", lambda u: all(s.base.op in STORED for s in u.src)),
    )),
    ((Ops.CONTIGUOUS, Ops.DETACH), _MOVEMENT_RULES),
    ((Ops.NOOP,), (
        _FIRST_ALIKE,
        ("it has sources of its gradient if it has a rule for them", lambda u: (len(u.src) > 1) == callable(u.arg)),
    )),
    ((Ops.COPY,), (*_MOVEMENT_RULES, ("its argument is a device or a Sharding", lambda u: isinstance(u.arg, str | Sharding)))),
    ((Ops.ASSIGN,), (
        ("has 2 sources, unless a kernel written by hand has more", lambda u: len(u.src) == 2 or u.arg is not None),
        ("target and value have one dtype and shape, unless a kernel written by hand says what is written",
         lambda u: u.arg is not None or (all(s.dtype is u.dtype for s in u.src) and _same_shapes(u))),
        ("its target is movement ops over memory", lambda u: _memory_under(u.src[0]) is not None),
    )),
    ((Ops.AFTER,), (
        _sources(2),
        _FIRST_ALIKE,
        ("it is a version of memory", lambda u: u.src[0].op in GroupOp.Memory),
        ("it comes after a write to that memory",
         lambda u: u.src[1].op is Ops.ASSIGN and _memory_under(u.src[1].src[0]) is u.src[0]),
    )),
    ((Ops.SINK,), (_VOID,)),
)  # fmt: skip


# --- kernels --------------------------------------------------------------------------------------------


def _has_pointer(u: UOp) -> bool:
    return u.memory.op in GroupOp.Defines


def _opens_loop(u: UOp) -> bool:
    return u.op is Ops.RANGE and u.arg.kind in (AxisKind.LOOP, AxisKind.REDUCE, AxisKind.SCAN)


def _has_elements(u: UOp) -> bool:
    sizes = [*u.arg.c.elements, *u.arg.a.elements, *u.arg.b.elements]
    return all(r.op is Ops.RANGE and not _opens_loop(r) for r in u.src[3:]) and sizes == [
        r.src[0].arg for r in u.src[3:]
    ]


def _scans(op: Ops, sources: int) -> bool:
    return sources == (3 if op is Ops.MULACC else 2) and (op in GroupOp.Reduce or op is Ops.MULACC)


def _is_scanned(u: UOp) -> bool:
    return u.op is Ops.RANGE and u.arg.kind is AxisKind.SCAN


def _steps_hold(u: UOp) -> bool:
    if not isinstance(u.arg, Steps):
        return u.arg is None
    return all(r.op is Ops.RANGE and not _opens_loop(r) for r, _ in u.arg.steps)


def _gate_has_other(u: UOp) -> bool:
    return (len(u.src[0].src) == 3) == (len(u.src) == 2)


_STRUCTURE = _table(
    ((Ops.PARAM,), (
        _sources(0),
        _NUMBER,
        _arg(Param),
        ("its slot is not negative", lambda u: u.arg.slot >= 0),
    )),
    ((Ops.DEFINE_REG,), (_sources(0), _NUMBER, _arg(Reg))),
    ((Ops.RANGE,), (
        _INDEX,
        _arg(Axis),
        ("its first source is its size, an index", lambda u: bool(u.src) and u.src[0].dtype is dtypes.index),
    )),
    ((Ops.SPECIAL,), (
        _sources(1),
        _INDEX,
        _arg(Special),
        ("it is of a workgroup or an invocation, along one of 3 dimensions",
         lambda u: u.arg.kind in (AxisKind.GLOBAL, AxisKind.LOCAL) and 0 <= u.arg.axis < 3),
        ("its source is its size, an index", lambda u: u.src[0].dtype is dtypes.index),
    )),
    ((Ops.BARRIER, Ops.COMMIT), (_VOID, ("it comes after something", lambda u: len(u.src) >= 1))),
    ((Ops.SHUFFLE_XOR,), (
        _sources(1),
        _ALIKE,
        _NUMBER,
        _arg(int),
        ("its argument is the distance to a lane: a power of 2", lambda u: u.arg > 0 and u.arg & (u.arg - 1) == 0),
    )),
    ((Ops.WMMA,), (
        _arg(TensorCore),
        ("its operands have the dtypes of its tensor core", lambda u: [s.dtype for s in u.src[:3]]
         == [u.arg.operands, u.arg.operands, u.arg.total] and u.dtype is u.arg.total),
        ("it has the tile ranges of c's, a's and b's elements", _has_elements),
    )),
    ((Ops.MATMUL,), (
        _sources(3),
        _arg(Dot),
        ("it adds products of what two places in memory hold, of words",
         lambda u: all(s.op is Ops.INDEX and s.dtype is dtypes.uint32 for s in u.src[:2])),
        ("its dtype is that of the sums", lambda u: u.dtype is u.arg.total),
        ("it goes along a range that opens no loop", lambda u: u.src[2].op is Ops.RANGE and not _opens_loop(u.src[2])),
    )),
    ((Ops.INDEX,), (
        ("has 2 or 3 sources", lambda u: 2 <= len(u.src) <= 3),
        _FIRST_ALIKE,
        ("it points into a PARAM, DEFINE_REG or STAGE, itself or AFTER something", _has_pointer),
        ("its position is an index", lambda u: u.src[1].dtype is dtypes.index),
        ("its gate is bool", lambda u: len(u.src) == 2 or u.src[2].dtype.is_bool),
        ("its argument is None or Steps over ranges that open no loop", _steps_hold),
    )),
    ((Ops.LOAD,), (
        ("has 1 or 2 sources", lambda u: 1 <= len(u.src) <= 2),
        ("it loads from an INDEX", lambda u: u.src[0].op is Ops.INDEX),
        _ALIKE,
        ("a gate and a value where it is false come together", _gate_has_other),
    )),
    ((Ops.STORE,), (
        _sources(2),
        _VOID,
        ("it stores to an INDEX", lambda u: u.src[0].op is Ops.INDEX),
        ("the value has the INDEX's dtype", lambda u: u.src[1].dtype is u.src[0].dtype),
    )),
    ((Ops.END,), (
        _VOID,
        ("it ends RANGEs", lambda u: len(u.src) >= 2 and all(s.op is Ops.RANGE for s in u.src[1:])),
    )),
    ((Ops.AFTER,), (("it comes after something", lambda u: len(u.src) >= 2), _FIRST_ALIKE)),
    ((Ops.SINK,), (_VOID, ("it holds effects", lambda u: all(s.dtype is dtypes.void for s in u.src)))),
)  # fmt: skip

_KERNEL = _LEAVES | _ELEMENTWISE | _STRUCTURE
_KERNEL |= _table(
    ((Ops.REDUCE,), (
        _FIRST_ALIKE,
        ("it reduces over RANGEs", lambda u: len(u.src) >= 2 and all(s.op is Ops.RANGE for s in u.src[1:])),
        ("it combines with ADD, MUL or MAX", lambda u: u.arg in GroupOp.Reduce),
    )),
    ((Ops.SCAN,), (
        ("it combines with ADD, MUL or MAX, of all rounds or of those with a key, or MULACC of a factor",
         lambda u: _scans(u.arg, len(u.src) - 1) or (u.arg in GroupOp.Reduce and len(u.src) == 4)),
        ("it goes along a RANGE of kind SCAN", lambda u: _is_scanned(u.src[0])),
        ("its values have its dtype",
         lambda u: all(s.dtype is u.dtype for s in (u.src[1:] if u.arg is Ops.MULACC else u.src[1:3]))),
        ("its key is an integer of at least 0",
         lambda u: u.arg is Ops.MULACC or all(s.dtype.is_int and s.vmin >= 0 for s in u.src[3:])),
        ("its initial value is the same all along", lambda u: u.src[0] not in u.src[2].ranges),
    )),
    ((Ops.STAGE,), (
        _FIRST_ALIKE,
        _arg(Memory),
        ("it has a value and its index", lambda u: len(u.src) >= 2 and u.src[1].dtype is dtypes.index),
        ("it is filled over RANGEs", lambda u: all(s.op is Ops.RANGE for s in u.src[2:])),
    )),
)  # fmt: skip

# the ops of `Builder.alu`, and casts
_RENDERED = frozenset({
    Ops.SQRT, Ops.RECIPROCAL, Ops.NEG, Ops.TRUNC, Ops.ADD, Ops.SUB, Ops.MUL, Ops.FDIV, Ops.IDIV, Ops.MOD,
    Ops.MAX, Ops.SHL, Ops.SHR, Ops.AND, Ops.OR, Ops.XOR, Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ, Ops.WHERE,
    Ops.MULACC, Ops.DOT, Ops.CAST, Ops.BITCAST,
})  # fmt: skip
_STORAGE = frozenset({dtypes.float16, dtypes.bfloat16})
_WIDE: Rule = ("16-bit floats are computed in float32", lambda u: u.src[-1].dtype not in _STORAGE)

_LINEAR = {op: _KERNEL[op] for op in _RENDERED} | _LEAVES | _STRUCTURE
_LINEAR |= {op: _LINEAR[op] + (_WIDE,) for op in _RENDERED & GroupOp.ALU - {Ops.WHERE}}
_LINEAR[Ops.END] += (_sources(2),)
_BOUND = (AxisKind.GLOBAL, AxisKind.LOCAL, AxisKind.SUBGROUP)
_LINEAR[Ops.RANGE] += (("it is bound to no grid", lambda u: u.arg.kind not in _BOUND),)
_LINEAR[Ops.REDUCE] = (
    *_KERNEL[Ops.REDUCE],
    ("loops are gone: it reduces within a tile", lambda u: not any(_opens_loop(r) for r in u.src[1:])),
)

_STAGES: dict[str, Table] = {"tensor": _TENSOR, "kernel": _KERNEL, "linear": _LINEAR}


def _verify_order(nodes: list[UOp]) -> None:
    """Check that sources come before users, loops nest, and values of a loop are not used outside of it."""
    loops_of: dict[UOp, tuple[UOp, ...]] = {}  # the loops around each node
    open_loops: tuple[UOp, ...] = ()
    for node in nodes:
        if node in loops_of:
            raise _broken("linear", node, "a node stands in the list once")
        for s in node.src:
            if s not in loops_of:
                raise _broken("linear", node, f"its source {s.op} comes before it")
            if s.op is not Ops.CONST and loops_of[s] != open_loops[: len(loops_of[s])]:
                raise _broken("linear", node, f"its source {s.op} was made in a loop that has ended")
        if node.op is Ops.END and _opens_loop(node.src[1]):
            if open_loops[-1:] != (node.src[1],):
                raise _broken("linear", node, "it ends the innermost open loop")
            open_loops = open_loops[:-1]
        loops_of[node] = open_loops
        if _opens_loop(node):
            open_loops = (*open_loops, node)
            loops_of[node] = open_loops
    if open_loops:
        raise _broken("linear", open_loops[-1], "every loop is ended")
