"""The ops of a tensor graph as nodes of ONNX: one table, op -> function.

Sums and maxima over windows are Conv, ConvTranspose, MaxPool and AveragePool (export_windows.py). A sum over
another product of broadcast operands becomes MatMul, so that the broadcast operands are not materialised.
Operands of elementwise ops use ONNX's broadcasting. Integers of 8 and 16 bits are computed in int32, because
runtimes lack these ops for them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from polygrad.dtype import DType, dtypes
from polygrad.errors import OnnxError
from polygrad.helpers import prod
from polygrad.onnx.elements import element_of_dtype
from polygrad.onnx.export_windows import PASSED, Windows, find_windows
from polygrad.onnx.graph_writer import GraphWriter
from polygrad.onnx.proto_writer import GraphText, node, value_info
from polygrad.onnx.rounding import MAGIC, MAGIC_BITS
from polygrad.tensor.core.sizes import same_size
from polygrad.uop.args import Reduction, Shear
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops
from polygrad.uop.shapes import Shape, Sint

_NARROW = (dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.uint16)
_LOG2_E, _LN_2 = math.log2(math.e), math.log(2)
# Elementwise ops of numbers, by their names in ONNX.
_SAME = {
    Ops.SQRT: "Sqrt", Ops.RECIPROCAL: "Reciprocal", Ops.NEG: "Neg", Ops.SIN: "Sin", Ops.ADD: "Add",
    Ops.SUB: "Sub", Ops.MUL: "Mul", Ops.FDIV: "Div", Ops.POW: "Pow", Ops.MAX: "Max", Ops.CMPLT: "Less",
    Ops.CMPEQ: "Equal", Ops.WHERE: "Where", Ops.MOD: "Mod",
}  # fmt: skip
_LOGIC = {Ops.AND: "And", Ops.OR: "Or", Ops.XOR: "Xor", Ops.MAX: "Or", Ops.MUL: "And", Ops.CMPNE: "Xor"}
_BITS = {Ops.AND: "BitwiseAnd", Ops.OR: "BitwiseOr", Ops.XOR: "BitwiseXor"}
_REDUCTIONS = {Ops.ADD: "ReduceSum", Ops.MAX: "ReduceMax", Ops.MUL: "ReduceProd"}
_PRODUCTS = (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64)


class Exporter:
    """Writes nodes. `names`: of the nodes that are written or got a name from the caller."""

    def __init__(self, graph: GraphWriter, names: dict[UOp, str]) -> None:
        self.graph, self.names = graph, names
        self._windows: dict[UOp, Windows | None] = {}

    def write(self, root: UOp) -> str:
        """The name of the value of `root`, whose sources are written first. Raises OnnxError."""
        stack = [root]
        while stack:
            u = stack[-1]
            if u in self.names:
                stack.pop()
                continue
            missing = [s for s in self._sources(u) if s not in self.names]
            if missing:
                stack += missing
                continue
            stack.pop()
            self.names[u] = self._emit(u)
        return self.names[root]

    def _sources(self, u: UOp) -> Sequence[UOp]:
        """The nodes that must be written before `u`."""
        if u.op in GroupOp.ALU:
            operand = exponential(u) or logarithm(u)
            return self.operands(u) if operand is None else [operand]
        if (windows := self.windows(u)) is not None:
            return [windows.image] if windows.weight is None else [windows.image, windows.weight]
        if u.op is Ops.REDUCE_AXIS and is_product(u):
            return [without_expansions(s) for s in strip(u.src[0]).src]
        if u.op is Ops.SHEAR:
            return [without_expansions(u.src[0]) if u.arg.along in repeated_axes(u.src[0]) else u.src[0]]
        return u.src

    def _emit(self, u: UOp) -> str:
        function = _TABLE.get(u.op)
        if function is None:
            raise OnnxError(
                f"save: {u.op} of {u.dtype.name} {u.shape} has no counterpart in ONNX{_hint(u.op)}"
            )
        return function(self, u)

    def windows(self, u: UOp) -> Windows | None:
        """The op over windows that a node is, if it is one."""
        if u not in self._windows:
            self._windows[u] = find_windows(u)
        return self._windows[u]

    def operands(self, u: UOp) -> list[UOp]:
        """The operands of an elementwise op, without expansions that ONNX's broadcasting makes implicitly."""
        small = [without_expansions(s) for s in u.src]
        if broadcast([s.shape for s in small]) == u.shape:
            return small
        for i, s in enumerate(u.src):  # one source has the whole shape
            if s.shape == u.shape:
                return [*small[:i], s, *small[i + 1 :]]
        return list(u.src)

    def value(self, u: UOp) -> str:
        return self.names[u]


def _hint(op: Ops) -> str:
    if op is Ops.THREEFRY:
        return ": random numbers are not exported: call .eval(), or realize() the weights first"
    if op in (Ops.AFTER, Ops.ASSIGN):
        return ": the function writes to memory"
    return ""


# --- broadcasting


def is_one(n: Sint) -> bool:
    return isinstance(n, int) and n == 1


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """The common shape of shapes that fit each other."""
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(s)) + tuple(s) for s in shapes]
    return tuple([next((n for n in sizes if not is_one(n)), 1) for sizes in zip(*padded)])


def strip(u: UOp) -> UOp:
    """A value without the nodes that only mark it."""
    while u.op in PASSED:
        u = u.src[0]
    return u


def repeated_axes(u: UOp) -> set[int]:
    """The axes along which a value is known to be constant."""
    u = strip(u)
    if u.op is Ops.EXPAND:
        inner = u.src[0].shape
        expanded_axes = {i for i, (n, m) in enumerate(zip(inner, u.shape)) if is_one(n) and not is_one(m)}
        return expanded_axes | repeated_axes(u.src[0])
    if u.op is Ops.PERMUTE:
        inner_axes = repeated_axes(u.src[0])
        return {i for i, a in enumerate(u.arg) if a in inner_axes}
    if u.op is Ops.SHEAR:
        return repeated_axes(u.src[0]) - {u.arg.axis, u.arg.along}
    return set()


def without_expansions(u: UOp) -> UOp:
    """A value with size 1 along the axes along which it is constant; a constant as a scalar."""
    u = strip(u)
    below = u
    while below.op in PASSED or below.op in (Ops.EXPAND, Ops.RESHAPE, Ops.PERMUTE):
        below = below.src[0]
    if below.op is Ops.CONST:
        return below
    if not repeated_axes(u):
        return u
    if u.op is Ops.EXPAND:
        return without_expansions(u.src[0])
    if u.op is Ops.PERMUTE:
        return without_expansions(u.src[0]).permute(u.arg)
    inner, arg = without_expansions(u.src[0]), u.arg  # SHEAR: the two axes that it is about are there
    sizes = [u.src[0].shape[i] if i in (arg.axis, arg.along) else n for i, n in enumerate(inner.shape)]
    return UOp(Ops.SHEAR, u.dtype, (inner.expand(tuple(sizes)),), arg)


# --- elementwise


def exponential(u: UOp) -> UOp | None:
    """x, where `u` is written as 2 to the power of x log2(e)."""
    return _factor_of(strip(u.src[0]), _LOG2_E) if u.op is Ops.EXP2 else None


def logarithm(u: UOp) -> UOp | None:
    """x, where `u` is written as log2(x) ln(2)."""
    inner = _factor_of(u, _LN_2)
    return without_expansions(inner.src[0]) if inner is not None and inner.op is Ops.LOG2 else None


def _factor_of(u: UOp, number: float) -> UOp | None:
    """The other factor of a product with a constant."""
    if u.op is not Ops.MUL:
        return None
    a, b = without_expansions(u.src[0]), without_expansions(u.src[1])
    is_it = b.op is Ops.CONST and math.isclose(b.arg, number, rel_tol=1e-3) and a.shape == u.shape
    return a if is_it else None


def _elementwise(x: Exporter, u: UOp) -> str:
    g, dtype = x.graph, _element_dtype(u.src[-1].dtype)
    for operand, op in ((exponential(u), "Exp"), (logarithm(u), "Log")):
        if operand is not None:
            return g.node(op, x.value(operand))
    names = [x.value(s) for s in x.operands(u)]
    if dtype.is_bool and u.op in _LOGIC:
        return g.node(_LOGIC[u.op], *names)
    if dtype.is_bool and u.op is Ops.CMPLT:
        return g.node("And", g.node("Not", names[0]), names[1])
    if dtype.is_bool and u.op is Ops.WHERE:  # runtimes lack it
        kept, other = g.node("And", *names[:2]), g.node("And", g.node("Not", names[0]), names[2])
        return g.node("Or", kept, other)
    if dtype in _NARROW and u.op is not Ops.WHERE and u.op not in _BITS:
        wide = [g.cast(n, dtypes.int32) for n in names]
        out = _number(x, u, wide, dtypes.int32)
        return out if u.dtype.is_bool else g.cast(out, u.dtype)
    return _number(x, u, names, dtype)


def _number(x: Exporter, u: UOp, names: list[str], dtype: DType) -> str:
    """An elementwise op of operands of `dtype`."""
    g = x.graph
    match u.op:
        case Ops.EXP2:
            return g.node("Exp", g.node("Mul", names[0], g.scalar(dtype, _LN_2)))
        case Ops.LOG2:
            return g.node("Mul", g.node("Log", names[0]), g.scalar(dtype, _LOG2_E))
        case Ops.TRUNC:
            return g.node("Mul", g.node("Sign", names[0]), g.node("Floor", g.node("Abs", names[0])))
        case Ops.CMPNE:
            return g.node("Not", g.node("Equal", *names))
        case Ops.IDIV:
            return g.node("Div", g.node("Sub", names[0], g.node("Mod", *names)), names[1])
        case Ops.MULACC:
            return g.node("Add", g.node("Mul", names[0], names[1]), names[2])
        case Ops.SHL | Ops.SHR:
            return _shift(x, u, names, dtype)
        case Ops.AND | Ops.OR | Ops.XOR:
            return g.node(_BITS[u.op], *names)
    if u.op not in _SAME:
        raise OnnxError(f"save: {u.op} of {u.dtype.name} {u.shape} has no counterpart in ONNX{_hint(u.op)}")
    return g.node(_SAME[u.op], *names)


def _shift(x: Exporter, u: UOp, names: list[str], dtype: DType) -> str:
    g = x.graph
    if dtype.is_unsigned and dtype not in _NARROW:
        direction = "LEFT" if u.op is Ops.SHL else "RIGHT"
        return g.node("BitShift", names[0], g.cast(names[1], dtype), direction=direction)
    count = without_expansions(u.src[1])
    if count.op is not Ops.CONST:
        raise OnnxError(f"save: {u.op} of {u.dtype.name} by a tensor has no counterpart in ONNX")
    factor = g.scalar(dtype, 1 << count.arg)
    if u.op is Ops.SHL:
        return g.node("Mul", names[0], factor)
    return g.node("Div", g.node("Sub", names[0], g.node("Mod", names[0], factor)), factor)


def _cast(x: Exporter, u: UOp) -> str:
    return x.graph.cast(x.value(u.src[0]), _element_dtype(u.dtype))


def _bitcast(x: Exporter, u: UOp) -> str:
    g, rounded = x.graph, _rounding(u)
    if rounded is not None:
        whole = g.cast(g.node("Round", x.value(rounded)), dtypes.int32)
        return g.node("Add", whole, g.scalar(dtypes.int32, MAGIC_BITS))
    return x.graph.node("BitCast", x.value(u.src[0]), to=element_of_dtype(u.dtype).number)


def _rounding(u: UOp) -> UOp | None:
    """x, where `u` is the bits of x + MAGIC (rounding.py), which is an op of ONNX."""
    total = strip(u.src[0])
    if u.dtype is not dtypes.int32 or total.op is not Ops.ADD or total.dtype is not dtypes.float32:
        return None
    b = without_expansions(total.src[1])
    return total.src[0] if b.op is Ops.CONST and b.arg == MAGIC else None


def _pass_through(x: Exporter, u: UOp) -> str:
    return x.value(u.src[0])


def _const(x: Exporter, u: UOp) -> str:
    return x.graph.scalar(_element_dtype(u.dtype), u.arg)


def _element_dtype(dtype: DType) -> DType:
    return dtypes.int64 if dtype is dtypes.index else dtype


def _variable(x: Exporter, u: UOp) -> str:
    return x.graph.size(u)


def _arange(x: Exporter, u: UOp) -> str:
    g = x.graph
    wide = u.dtype if u.dtype in _PRODUCTS else dtypes.int64
    size = g.size(u.arg)
    ends = [g.scalar(wide, 0), size if wide is dtypes.int64 else g.cast(size, wide), g.scalar(wide, 1)]
    out = g.node("Range", *ends)
    return out if wide is u.dtype else g.cast(out, u.dtype)


# --- movement


def _reshape(x: Exporter, u: UOp) -> str:
    return x.graph.reshape(x.value(u.src[0]), u.src[0].shape, u.shape)


def _permute(x: Exporter, u: UOp) -> str:
    return x.graph.transpose(x.value(u.src[0]), u.arg)


def _expand(x: Exporter, u: UOp) -> str:
    return x.graph.node("Expand", x.value(u.src[0]), x.graph.sizes(u.shape))


def _pad(x: Exporter, u: UOp) -> str:
    g = x.graph
    name, dtype = x.value(u.src[0]), u.dtype
    pads = g.sizes([lo for lo, _ in u.arg] + [hi for _, hi in u.arg])
    if dtype.is_float or dtype in (dtypes.int32, dtypes.int64):
        return g.node("Pad", name, pads)
    return g.cast(g.node("Pad", g.cast(name, dtypes.int64), pads), dtype)


def _shrink(x: Exporter, u: UOp) -> str:
    pairs = zip(u.arg, u.src[0].shape)
    cut = [
        (i, lo, hi) for i, ((lo, hi), n) in enumerate(pairs) if not (same_size(lo, 0) and same_size(hi, n))
    ]
    g = x.graph
    if not cut:
        return x.value(u.src[0])
    bounds = [g.sizes([c[1] for c in cut]), g.sizes([c[2] for c in cut]), g.ints([c[0] for c in cut])]
    return g.node("Slice", x.value(u.src[0]), *bounds)


def _flip(x: Exporter, u: UOp) -> str:
    g, axes = x.graph, list(u.arg)
    ends = [g.ints([v] * len(axes)) for v in (-1, -(1 << 63))]
    return g.node("Slice", x.value(u.src[0]), *ends, g.ints(axes), g.ints([-1] * len(axes)))


def _shear(x: Exporter, u: UOp) -> str:
    """Windows: at position k of `along`, elements of `axis` from start + step * k on."""
    g, arg, source = x.graph, u.arg, u.src[0]
    axis, along = arg.axis, arg.along
    axes = list(range(len(u.shape)))
    if along not in repeated_axes(source):
        size, count = source.shape[axis], source.shape[along]
        others = [i for i in axes if i not in (axis, along)]
        order, lead = [*others, axis, along], tuple([source.shape[i] for i in others])
        transposed = g.transpose(x.value(source), order)
        line = g.reshape(transposed, (*lead, size, count), (*lead, size * count))
        place = g.node("Mul", _window_places(x, arg, count), g.size(count))
        place = g.node("Add", place, g.node("Range", g.size(0), g.size(count), g.size(1)))
        gathered = g.node("Gather", line, place, axis=len(others))
        return g.transpose(gathered, [order.index(i) for i in axes])
    small = without_expansions(source)  # of size 1 along `along`: the same elements for each k
    name = x.value(small)
    if not same_size(small.shape[axis], source.shape[axis]):
        name = g.node("Expand", name, g.sizes([source.shape[i] if i == axis else 1 for i in axes]))
    windows = g.node("Gather", name, _window_places(x, arg, u.shape[along]), axis=axis)
    # The positions k are an axis behind `axis` now; `along`, of size 1, goes.
    order = [axis + 1 if i == along else i + (i > axis) for i in axes]
    windows = g.transpose(windows, [*order, along + (along > axis)])
    shape = tuple([u.shape[i] if i in (axis, along) else n for i, n in enumerate(small.shape)])
    out = g.reshape(windows, (*shape, 1), shape)
    return out if shape == u.shape else g.node("Expand", out, g.sizes(u.shape))


def _window_places(x: Exporter, arg: Shear, count: Sint) -> str:
    """The matrix start + step * k + i, of elements i and positions k."""
    g = x.graph
    if all(isinstance(n, int) for n in (*arg[2:], count)):
        places = [arg.start + arg.step * k + i for i in range(arg.size) for k in range(count)]
        return g.constant(dtypes.int64, (arg.size, count), places)
    i = g.node("Reshape", g.node("Range", g.size(0), g.size(arg.size), g.size(1)), g.ints([-1, 1]))
    k = g.node("Range", g.size(0), g.size(count), g.size(1))
    return g.node("Add", g.node("Add", i, g.node("Mul", k, g.size(arg.step))), g.size(arg.start))


# --- reductions


def is_product(u: UOp) -> bool:
    """Whether a sum is a product of matrices: its terms are products of broadcast operands."""
    product = strip(u.src[0])
    if u.arg.op is not Ops.ADD or product.op is not Ops.MUL or product.dtype not in _PRODUCTS:
        return False
    a, b = product.src
    if a.shape != b.shape or without_expansions(a).op is Ops.CONST or without_expansions(b).op is Ops.CONST:
        return False
    same = repeated_axes(a) | repeated_axes(b)
    return bool(same) and not same & set(u.arg.axes)


def _reduce(x: Exporter, u: UOp) -> str:
    if (windows := x.windows(u)) is not None:
        return _over_windows(x, u, windows)
    if is_product(u):
        return _product(x, u)
    g, arg = x.graph, u.arg
    name, dtype = x.value(u.src[0]), u.dtype
    wide = dtypes.int32 if dtype in _NARROW or dtype.is_bool else dtype
    name = name if wide is dtype else g.cast(name, wide)
    out = g.node(_REDUCTIONS[arg.op], name, g.ints(list(arg.axes)), keepdims=1)
    return out if wide is dtype else g.cast(out, dtype)


def _over_windows(x: Exporter, u: UOp, windows: Windows) -> str:
    """A convolution or pooling; the axes of u that are groups of channels, or summed, are left out."""
    g, image = x.graph, x.value(windows.image)
    settings: dict[str, Any] = {
        name: list(numbers)
        for name, numbers in (
            ("kernel_shape", windows.kernel),
            ("strides", windows.strides),
            ("dilations", windows.dilations),
            ("pads", windows.pads),
        )
    }
    out = u.shape[2 : 2 + len(windows.kernel)]
    if windows.weight is None:
        if windows.op == "AveragePool":
            settings["count_include_pad"] = 1
        result = g.node(windows.op, image, **settings)
        if windows.op == "AveragePool":
            result = g.node("Mul", result, g.scalar(u.dtype, prod(windows.kernel)))
        return g.reshape(result, (*u.shape[:2], *out), u.shape)
    if windows.op == "ConvTranspose":
        settings["output_padding"] = list(windows.output_padding)
    result = g.node(windows.op, image, x.value(windows.weight), group=windows.groups, **settings)
    out = u.shape[3 : 3 + len(windows.kernel)]
    return g.reshape(result, (u.shape[0], u.shape[1] * u.shape[2], *out), u.shape)


def _product(x: Exporter, u: UOp) -> str:
    """A sum of products as MatMul of (batch, rows, terms) and (batch, terms, columns)."""
    g, (a, b) = x.graph, strip(u.src[0]).src
    shape, terms = a.shape, list(u.arg.axes)
    kept = [i for i in range(len(shape)) if i not in terms]
    same_a, same_b = repeated_axes(a), repeated_axes(b)
    batch = [i for i in kept if i not in same_a and i not in same_b]
    rows = [i for i in kept if i in same_b and i not in same_a]
    columns = [i for i in kept if i in same_a and i not in same_b]
    both = [i for i in kept if i in same_a and i in same_b]
    sizes = [prod([shape[i] for i in axes]) for axes in (batch, rows, columns, terms)]
    left = _matrix(x, without_expansions(a), (batch, rows, terms), (sizes[0], sizes[1], sizes[3]))
    right = _matrix(x, without_expansions(b), (batch, terms, columns), (sizes[0], sizes[3], sizes[2]))
    product = g.node("MatMul", left, right)
    order = [*batch, *rows, *columns, *both, *terms]
    full = tuple([1 if i in both or i in terms else shape[i] for i in order])
    out = g.reshape(product, (*_lead(sizes[0]), sizes[1], sizes[2]), full)
    out = g.transpose(out, [order.index(i) for i in range(len(order))])
    return out if not both else g.node("Expand", out, g.sizes(u.shape))


def _lead(batch: Sint) -> Shape:
    return () if is_one(batch) else (batch,)


def _matrix(x: Exporter, u: UOp, groups: Sequence[list[int]], sizes: Sequence[Sint]) -> str:
    """An operand with its axes in groups, each as one axis; the batch is left out where it is 1."""
    g, order = x.graph, [i for axes in groups for i in axes]
    dropped = [i for i in range(len(u.shape)) if i not in order]  # of size 1
    transposed = g.transpose(x.value(u), [*order, *dropped])
    old = tuple([u.shape[i] for i in [*order, *dropped]])
    return g.reshape(transposed, old, (*_lead(sizes[0]), *sizes[1:]))


# --- running values


def _scan(x: Exporter, u: UOp) -> str:
    g, arg = x.graph, u.arg
    axis, values, initial = arg.axes[0], u.src[0], u.src[1]
    start = without_expansions(initial)
    if arg.op is Ops.ADD and start.op is Ops.CONST and start.arg == 0 and u.dtype in _PRODUCTS:
        return g.node("CumSum", x.value(values), g.scalar(dtypes.int64, axis))
    first = tuple([n for i, n in enumerate(u.shape) if i != axis])
    if initial.shape:
        cut = g.node("Gather", x.value(initial), g.scalar(dtypes.int64, 0), axis=axis)
    else:
        cut = g.node("Expand", x.value(initial), g.sizes(first))
    scanned = [x.value(values), *([x.value(u.src[2])] if len(u.src) > 2 else [])]
    body = _scan_body(arg, u.dtype, len(first), len(scanned))
    axes, count = [axis] * len(scanned), len(scanned)
    return g.second_output(
        "Scan",
        [cut, *scanned],
        {"body": body, "num_scan_inputs": count, "scan_input_axes": axes, "scan_output_axes": [axis]},
    )


def _scan_body(arg: Reduction, dtype: DType, rank: int, count: int) -> bytes:
    """The graph of a step: the running value and the next elements to the next running value, twice."""
    text = GraphText()
    element, shape = element_of_dtype(dtype).number, [""] * rank
    names = ["running", "element", "factor"][: count + 1]
    text.inputs = [value_info(n, element, shape) for n in names]
    state = "running"
    if count == 2:
        text.nodes.append(node("Mul", ["running", "factor"], ["scaled"], "scaled", {}))
        state = "scaled"
    op = {Ops.ADD: "Add", Ops.MULACC: "Add", Ops.MUL: "Mul", Ops.MAX: "Max"}[arg.op]
    text.nodes.append(node(op, [state, "element"], ["next"], "next", {}))
    text.nodes.append(node("Identity", ["next"], ["row"], "row", {}))
    text.outputs = [value_info(n, element, shape) for n in ("next", "row")]
    return text.message("step")


_TABLE: dict[Ops, Callable[[Exporter, UOp], Any]] = {
    **dict.fromkeys(GroupOp.ALU - {Ops.THREEFRY, Ops.DOT}, _elementwise),
    **dict.fromkeys(PASSED, _pass_through),
    Ops.CAST: _cast,
    Ops.BITCAST: _bitcast,
    Ops.CONST: _const,
    Ops.ARANGE: _arange,
    Ops.BIND: _variable,
    Ops.DEFINE_VAR: _variable,
    Ops.RESHAPE: _reshape,
    Ops.PERMUTE: _permute,
    Ops.EXPAND: _expand,
    Ops.PAD: _pad,
    Ops.SHRINK: _shrink,
    Ops.FLIP: _flip,
    Ops.SHEAR: _shear,
    Ops.REDUCE_AXIS: _reduce,
    Ops.SCAN_AXIS: _scan,
}
