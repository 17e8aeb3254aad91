"""Random tensor graphs for hypothesis: every op of the tensor graph, shapes up to four axes, shared nodes.

Floats are kept such that right answers are known. A node of floats has `bound`, the largest possible
magnitude of its elements; `step`, a power of two that divides all of them while arithmetic is exact; and
`error`, how far two right implementations may be apart, which is 0 as long as it is exact. What depends on a
float in jumps (comparisons, casts to integers) is only made of exact ones.
"""

from __future__ import annotations

import array
import math
from dataclasses import dataclass

from hypothesis import strategies as st

from polygrad.dtype import dtypes
from polygrad.engine.realize import buffer_from
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9)
MOST_ELEMENTS = 2000
DIGITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
DTYPES = (
    dtypes.float32, dtypes.float32, dtypes.float32, dtypes.int32, dtypes.int32, dtypes.bool, dtypes.float64,
    dtypes.int64, dtypes.uint8, dtypes.float16, dtypes.int8, dtypes.uint32, dtypes.int16, dtypes.bfloat16,
    dtypes.uint64, dtypes.uint16,
)  # fmt: skip


@dataclass(frozen=True)
class Node:
    """A node of the graph, and for floats what is known of its elements."""

    uop: UOp
    bound: float = 0.0
    step: float = 1.0
    error: float = 0.0

    @property
    def dtype(self):
        return self.uop.dtype

    @property
    def shape(self):
        return self.uop.shape

    @property
    def exact(self):
        return not self.dtype.is_float or self.error == 0.0

    def with_uop(self, uop):
        return Node(uop, self.bound, self.step, self.error)


@dataclass(frozen=True)
class Graph:
    """Outputs over leaves on the device "INTERP", and how far apart two right answers may be."""

    outputs: tuple[Node, ...]

    def on(self, device):
        """The outputs' nodes with their leaves on `device`."""
        sink = UOp.sink(*(n.uop for n in self.outputs))
        leaves = {n: n for n in sink.toposort() if n.op is Ops.BUFFER}
        if device != "INTERP":
            leaves = {n: buffer_from(device, n.dtype, n.arg.read()) for n in leaves}
        return sink.substitute(leaves).src


def _eps(dtype):
    return 2.0 ** (1 - DIGITS[dtype])


def _fits(node):
    """Whether the node's floats are exact, or accurate and tame."""
    if not node.dtype.is_float:
        return True
    if node.exact:
        return node.bound / node.step <= 2 ** DIGITS[node.dtype] and node.bound < 6e4 and node.step > 2.0**-14
    return (
        node.dtype in ("float32", "float64") and node.bound < 1e6 and node.error < 1e-2 * max(node.bound, 1.0)
    )


def _round_result(uop, bound, error):
    """A float result that is rounded: accurate, no longer exact."""
    return Node(uop, bound, 1.0, error + 4 * _eps(uop.dtype) * bound)


# --- leaves


def _values(dtype, size, seed):
    integers = [(i * i * (2 * seed + 3) + i * 7 + seed) % 11 - 5 for i in range(size)]
    if dtype.is_bool:
        return bytes(x % 2 for x in integers)
    if dtype.is_unsigned:
        return array.array(dtype.fmt, [x % 17 if x >= 0 else dtype.max + 1 + x for x in integers]).tobytes()
    if dtype.is_int:
        return array.array(
            dtype.fmt, [x if i % 7 else x * (dtype.max // 6) for i, x in enumerate(integers)]
        ).tobytes()
    if dtype == "float16":
        import struct

        return struct.pack(f"={size}e", *(x / 2 for x in integers))
    if dtype == "bfloat16":
        floats = array.array("f", [x / 2 for x in integers])
        return array.array("H", [b >> 16 for b in memoryview(floats).cast("B").cast("I")]).tobytes()
    return array.array(dtype.fmt, [x / 2 for x in integers]).tobytes()


def _leaf(draw):
    kind = draw(st.sampled_from(["buffer", "buffer", "buffer", "arange", "constant"]))
    dtype = draw(st.sampled_from(DTYPES))
    if kind == "arange":
        n = draw(st.integers(1, 40))
        dtype = dtype if dtype.is_int else dtypes.int32
        return Node(UOp(Ops.ARANGE, dtype, (), n))
    shape = tuple(draw(st.lists(st.sampled_from(SIZES), min_size=0 if kind == "constant" else 1, max_size=4)))
    while math.prod(shape) > MOST_ELEMENTS:
        shape = shape[1:]
    if kind == "constant":
        value = draw(st.integers(-3, 3))
        return Node(
            UOp.const(dtype, value).const_like(value) if not shape else _fill(dtype, value, shape), 3.0
        )
    size = math.prod(shape)
    data = _values(dtype, size, draw(st.integers(0, 3)))
    return Node(buffer_from("INTERP", dtype, memoryview(data)).reshape(shape), 2.5, 0.5)


def _fill(dtype, value, shape):
    return UOp.const(dtype, value).reshape((1,) * len(shape)).expand(shape)


# --- movement


def _divisors(n):
    return [d for d in range(1, n + 1) if n % d == 0]


def _reshape(draw, x):
    left, shape = math.prod(x.shape), []
    while left > 1 and len(shape) < 3:
        d = draw(st.sampled_from(_divisors(left)))
        shape.append(d)
        left //= d
    return x.with_uop(x.uop.reshape((*shape, left)))


def _permute(draw, x):
    return x.with_uop(x.uop.permute(tuple(draw(st.permutations(range(len(x.shape)))))))


def _expand(draw, x):
    shape = x.shape
    unit_axes = [i for i, n in enumerate(shape) if n == 1]
    k = draw(st.sampled_from(SIZES))
    if k * math.prod(shape) > MOST_ELEMENTS:
        return x
    if unit_axes:
        axis = draw(st.sampled_from(unit_axes))
        return x.with_uop(x.uop.expand((*shape[:axis], k, *shape[axis + 1 :])))
    if len(shape) == 4:
        return x
    axis = draw(st.integers(0, len(shape)))
    widened = x.uop.reshape((*shape[:axis], 1, *shape[axis:]))
    return x.with_uop(widened.expand((*shape[:axis], k, *shape[axis:])))


def _pad(draw, x):
    pairs = tuple((draw(st.integers(0, 2)), draw(st.integers(0, 2))) for _ in x.shape)
    if math.prod(n + lo + hi for n, (lo, hi) in zip(x.shape, pairs, strict=True)) > MOST_ELEMENTS:
        return x
    return x.with_uop(x.uop.pad(pairs))


def _shrink(draw, x):
    pairs = []
    for n in x.shape:
        lo = draw(st.integers(0, n - 1))
        pairs.append((lo, draw(st.integers(lo + 1, n))))
    return x.with_uop(x.uop.shrink(tuple(pairs)))


def _flip(draw, x):
    axes = draw(st.sets(st.integers(0, len(x.shape) - 1), min_size=1)) if x.shape else ()
    return x.with_uop(x.uop.flip(tuple(axes)))


def _fit(x, shape):
    """`x` as `shape`, by whatever movement it takes."""
    if x.shape == shape:
        return x
    ndim = len(shape)
    if len(x.shape) <= ndim:
        padded = (1,) * (ndim - len(x.shape)) + x.shape
        if all(a in (b, 1) for a, b in zip(padded, shape, strict=True)):
            return x.with_uop(x.uop.reshape(padded).expand(shape))
    have, want = math.prod(x.shape), math.prod(shape)
    flat = x.uop.reshape((have,))
    flat = flat.shrink(((0, want),)) if have > want else flat.pad(((0, want - have),))
    return x.with_uop(flat.reshape(shape))


MOVES = (_reshape, _permute, _expand, _shrink, _pad, _flip)


# --- casts


def _cast(x, dtype):
    """`x` in another dtype; as it is where the result would not be known."""
    if x.dtype is dtype:
        return x
    out = x.uop.cast(dtype)
    if x.dtype.is_float:
        if dtype.is_float:
            new = Node(out, x.bound, x.step, x.error + (0.0 if x.exact else _eps(dtype) * x.bound))
            return new if _fits(new) else x
        return Node(out) if x.exact else x
    if not dtype.is_float:
        return Node(out)
    if x.dtype.bits > 8:  # integers may be large: their low bits, small whole numbers
        out = (x.uop & x.uop.const_like(7)).cast(dtype)
    bound = 1.0 if x.dtype.is_bool else 7.0 if x.dtype.bits > 8 else 255.0
    return Node(out, bound, 1.0)


def _draw_cast(draw, x):
    return _cast(x, draw(st.sampled_from(DTYPES)))


# --- arithmetic


def _add(a, b):
    new = Node(a.uop + b.uop, a.bound + b.bound, min(a.step, b.step), a.error + b.error)
    return _round_result(new.uop, new.bound, new.error) if not new.exact else new


def _mul(a, b):
    uop, bound = a.uop * b.uop, a.bound * b.bound
    error = a.error * b.bound + b.error * a.bound + a.error * b.error
    if a.exact and b.exact:
        new = Node(uop, bound, a.step * b.step)
        return new if _fits(new) else _round_result(uop, bound, 0.0)
    return _round_result(uop, bound, error)


def _max(a, b):
    return Node(a.uop.maximum(b.uop), max(a.bound, b.bound), min(a.step, b.step), max(a.error, b.error))


def _binary(draw, a, b):
    """An arithmetic op of two nodes of one dtype and shape."""
    dtype = a.dtype
    if dtype.is_float:
        new = draw(st.sampled_from([_add, _mul, _max]))(a, b)
        return new if _fits(new) else _max(a, b)
    if dtype.is_bool:
        op = draw(st.sampled_from([Ops.AND, Ops.OR, Ops.XOR, Ops.ADD, Ops.MUL, Ops.MAX]))
        return Node(UOp(op, dtype, (a.uop, b.uop)))
    op = draw(
        st.sampled_from(
            [Ops.ADD, Ops.MUL, Ops.MAX, Ops.AND, Ops.OR, Ops.XOR, Ops.IDIV, Ops.MOD, Ops.SHL, Ops.SHR]
        )
    )
    if op in (Ops.SHL, Ops.SHR):
        b = Node(b.uop & b.uop.const_like(dtype.bits - 1))
    return Node(UOp(op, dtype, (a.uop, b.uop)))


def _with_constant(draw, x):
    """An op with a constant, which is where most of the algebra lies."""
    if x.dtype.is_bool:
        return Node(x.uop.logical_not())
    c = draw(st.integers(-8, 8))
    value = x.uop.const_like(c)
    if x.dtype.is_float:
        return _keep_if_fits(draw(st.sampled_from([_add, _mul, _max]))(x, Node(value, 8.0)), x)
    op = draw(st.sampled_from([Ops.ADD, Ops.MUL, Ops.IDIV, Ops.MOD, Ops.MAX, Ops.AND, Ops.XOR]))
    return Node(UOp(op, x.dtype, (x.uop, value)))


def _keep_if_fits(new, old):
    return new if _fits(new) else old


def _compare(draw, a, b):
    op = draw(st.sampled_from([Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ]))
    return Node(UOp(op, dtypes.bool, (a.uop, b.uop))) if a.exact and b.exact else a


def _function(draw, x):
    """A function of real numbers, where it is smooth and tame."""
    if x.dtype not in ("float32", "float64"):
        return x
    op = draw(st.sampled_from([Ops.SQRT, Ops.RECIPROCAL, Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.TRUNC]))
    if op is Ops.TRUNC:
        return Node(UOp(op, x.dtype, (x.uop,)), x.bound, 1.0) if x.exact else x
    if op is Ops.SIN:
        new = _round_result(UOp(op, x.dtype, (x.uop,)), 1.0, x.error)
    elif op is Ops.EXP2:
        new = (
            _round_result(UOp(op, x.dtype, (x.uop,)), 2.0**x.bound, x.error * 2.0**x.bound)
            if x.bound < 9
            else x
        )
    else:  # of |x| + 1
        inner = _add(_max(x, _mul(x, Node(x.uop.const_like(-1), 1.0))), Node(x.uop.const_like(1), 1.0))
        bound = {Ops.SQRT: inner.bound, Ops.RECIPROCAL: 1.0, Ops.LOG2: math.log2(inner.bound)}[op]
        new = _round_result(UOp(op, x.dtype, (inner.uop,)), bound, 1.5 * inner.error)
    return _keep_if_fits(new, x)


def _where(condition, a, b):
    return Node(
        condition.uop.where(a.uop, b.uop), max(a.bound, b.bound), min(a.step, b.step), max(a.error, b.error)
    )


def _reduce(draw, x):
    axes = tuple(i for i in range(len(x.shape)) if draw(st.booleans()))
    op = draw(st.sampled_from([Ops.ADD, Ops.MAX, Ops.MUL]))
    n = math.prod(x.shape[a] for a in axes)
    uop = x.uop.reduce_axis(op, axes)
    if op is Ops.MAX or not x.dtype.is_float or uop is x.uop:
        return x.with_uop(uop)
    if op is Ops.ADD:
        new = Node(uop, x.bound * n, x.step, x.error * n)
        new = new if new.exact else Node(uop, new.bound, 1.0, new.error + 2 * n * _eps(x.dtype) * new.bound)
        return new if _fits(new) else x.with_uop(x.uop.reduce_axis(Ops.MAX, axes))
    new = Node(uop, max(x.bound, 1.0) ** n, x.step**n) if x.exact and n < 20 else x
    return new if _fits(new) else x.with_uop(x.uop.reduce_axis(Ops.MAX, axes))


def _matmul(a, b):
    """Rows of `a` with the columns of `b` made to fit."""
    k = a.shape[-1]
    a2 = a.with_uop(a.uop.reshape((math.prod(a.shape[:-1]), k)))
    n = max(math.prod(b.shape) // k, 1)
    if a2.shape[0] * k * n > 4 * MOST_ELEMENTS:
        return a
    b2 = _fit(b, (k, n))
    rows = a2.with_uop(a2.uop.reshape((a2.shape[0], 1, k)).expand((a2.shape[0], n, k)))
    columns = b2.with_uop(b2.uop.permute((1, 0)).reshape((1, n, k)).expand((a2.shape[0], n, k)))
    product = _mul(rows, columns)
    return _sum(product, (2,), (a2.shape[0], n), a)


def _take(draw, x, at):
    """Rows of `x` at the positions `at`: a sum over all rows of those that are wanted."""
    rows = x.shape[0]
    width = math.prod(x.shape[1:])
    count = math.prod(at.shape)
    if rows * width * count > 4 * MOST_ELEMENTS or not at.dtype.is_int:
        return x
    table = x.uop.reshape((1, rows, width)).expand((count, rows, width))
    ramp = UOp(Ops.ARANGE, at.dtype, (), rows).reshape((1, rows, 1)).expand((count, rows, width))
    target = at.uop.reshape((count, 1, 1)).expand((count, rows, width))
    hit = UOp(draw(st.sampled_from([Ops.CMPEQ, Ops.CMPLT])), dtypes.bool, (ramp, target))
    zero = table.const_like(0)
    return _sum(x.with_uop(hit.where(table, zero)), (1,), (count, width), x)


def _scatter(draw, x, at):
    """Rows of `x`, each added to the row of the result that `at` names, or none."""
    rows = x.shape[0]
    width = math.prod(x.shape[1:])
    count = draw(st.sampled_from(SIZES))
    if rows * width * count > 4 * MOST_ELEMENTS or not at.dtype.is_int:
        return x
    shape = (count, rows, width)
    at = _fit(at, (rows,)).uop.reshape((1, rows, 1)).expand(shape)
    if draw(st.booleans()):  # some are beyond the ends
        at = at & at.const_like(7)
    ramp = UOp(Ops.ARANGE, at.dtype, (), count).reshape((count, 1, 1)).expand(shape)
    values = x.uop.reshape((1, rows, width)).expand(shape)
    selected = UOp(Ops.CMPEQ, dtypes.bool, (at, ramp)).where(values, values.const_like(0))
    return _sum(x.with_uop(selected), (1,), (count, width), x)


def _columns(draw, x):
    """The sums of the columns of a matrix that has the elements of `x`."""
    count = math.prod(x.shape)
    rows = draw(st.sampled_from(_divisors(count)))
    return _sum(x.with_uop(x.uop.reshape((rows, count // rows))), (0,), (count // rows,), x)


def _sum(x, axes, shape, otherwise):
    """A sum over `axes`, as `shape`; `otherwise` where its error is not known."""
    n = math.prod(x.shape[a] for a in axes)
    new = Node(x.uop.reduce_axis(Ops.ADD, axes).reshape(shape), x.bound * n, x.step, x.error * n)
    if not new.exact:
        new = Node(new.uop, new.bound, 1.0, new.error + 2 * n * _eps(x.dtype) * new.bound)
    return _keep_if_fits(new, otherwise)


# --- graphs

KINDS = (
    "move", "binary", "reduce",
    "move", "binary", "reduce", "constant", "where", "function", "cast", "compare",
    "matmul", "take", "scatter", "columns", "contiguous", "join",
)  # fmt: skip


@st.composite
def graphs(draw, most_steps=16):
    """A Graph of some steps, each of which uses what was made before."""
    nodes = [_leaf(draw) for _ in range(draw(st.integers(1, 3)))]
    for _ in range(draw(st.integers(1, most_steps))):
        nodes.append(_step(draw, nodes))
    outputs = [nodes[-1]]
    for _ in range(draw(st.integers(0, 2))):
        outputs.append(draw(st.sampled_from(nodes)))
    distinct = {n.uop: n for n in outputs}
    return Graph(tuple(distinct.values()))


def _pick(draw, nodes):
    """One of the nodes, rather a late one."""
    return nodes[-1 - min(draw(st.sampled_from((0, 0, 0, 1, 1, 2, 3, 5, 8))), len(nodes) - 1)]


def _step(draw, nodes):
    kind, x = draw(st.sampled_from(KINDS)), _pick(draw, nodes)
    match kind:
        case "move":
            return draw(st.sampled_from(MOVES))(draw, x)
        case "binary":
            other = _cast(_fit(_pick(draw, nodes), x.shape), x.dtype)
            return _binary(draw, x, other) if other.dtype is x.dtype else x
        case "reduce":
            return _reduce(draw, x)
        case "constant":
            return _with_constant(draw, x)
        case "where":
            condition = _cast(_fit(_pick(draw, nodes), x.shape), dtypes.bool)
            other = _cast(_fit(_pick(draw, nodes), x.shape), x.dtype)
            fits = condition.dtype.is_bool and other.dtype is x.dtype
            return _keep_if_fits(_where(condition, x, other), x) if fits else x
        case "cast":
            return _draw_cast(draw, x)
        case "compare":
            other = _cast(_fit(_pick(draw, nodes), x.shape), x.dtype)
            return _compare(draw, x, other) if other.dtype is x.dtype else x
        case "function":
            return _function(draw, x)
        case "matmul":
            other = _cast(_pick(draw, nodes), x.dtype)
            return _matmul(x, other) if x.shape and other.dtype is x.dtype else x
        case "take":
            return _take(draw, x, _pick(draw, nodes)) if x.shape else x
        case "scatter":
            return _scatter(draw, x, _pick(draw, nodes)) if x.shape else x
        case "columns":
            return _columns(draw, x)
        case "contiguous":
            return x.with_uop(x.uop.contiguous())
        case _:
            return _concatenate(x, _cast(_pick(draw, nodes), x.dtype))


def _concatenate(x, y):
    """Both, flat, one after the other."""
    if x.dtype is not y.dtype:
        return x
    n, m = math.prod(x.shape), math.prod(y.shape)
    if n + m > MOST_ELEMENTS:
        return x
    a = x.with_uop(x.uop.reshape((n,)).pad(((0, m),)))
    b = y.with_uop(y.uop.reshape((m,)).pad(((n, 0),)))
    if x.dtype.is_bool:
        return Node(a.uop | b.uop)
    return Node(a.uop + b.uop, max(x.bound, y.bound), min(x.step, y.step), max(x.error, y.error))
