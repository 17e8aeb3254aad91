"""Gradients: one table of vector-Jacobian products over the tensor graph.

`gradient` walks a graph from its root to the targets once, without recursion, and gives new lazy nodes: they
can be differentiated again. Gradients flow through floats only; DETACH and integers stop them. Knows
nodes, not Tensors.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from polygrad.dtype import dtypes, sum_dtype
from polygrad.errors import GradientError, InternalError
from polygrad.helpers import argsort
from polygrad.uop.args import Hooks, Leaf, Sharding, Shear, Spent
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops
from polygrad.uop.power import constant_power

Grads = tuple[UOp | None, ...]  # one per source of the node


class _Watch:
    """`observer`: who is told of every gradient that a node's rule gives for one of its sources, as
    `observer(node, source, gradient)`."""

    observer: Callable[[UOp, UOp, UOp], None] | None = None


watch = _Watch()


def gradient(root: UOp, root_grad: UOp, targets: list[UOp], order: list[UOp] | None = None) -> dict[UOp, UOp]:
    """The gradient of `root` with respect to each of `targets` that it depends on differentiably.

    `root_grad` is what flows into the root: a node of its shape and dtype. `order`: what
    `differentiable(root)` gives, where it is known. Raises GradientError for an op without a
    derivative.
    """
    wanted = set(targets)
    if order is None:
        order = differentiable(root)
    needed: set[UOp] = set()  # nodes that lead to a target
    for node in order:
        if node in wanted or (not needed.isdisjoint(node.src) and carries_gradient(node)) or is_freed(node):
            needed.add(node)
    grads: dict[UOp, UOp] = {root: root_grad}
    for node in reversed(order):
        g = grads.get(node)
        if g is not None and is_freed(node):
            raise GradientError(
                f"gradient: the graph of a value of shape {node.shape} was freed, as backward() went through "
                "it and memory that it was computed from was written to: pass retain_graph=True to it"
            )
        if g is None or node not in needed or needed.isdisjoint(node.src) or not carries_gradient(node):
            continue
        rule = VJP.get(node.op)
        if rule is None:
            raise GradientError(f"gradient of {node.op}: expected an op with a derivative: use .detach()")
        src = node.src
        if len(src) == 1 and src[0].op is not Ops.CONST:
            (ds,) = rule(g, node)
            if ds is not None:
                if watch.observer is not None:
                    watch.observer(node, src[0], ds)
                grads[src[0]] = _plus(grads.get(src[0]), ds)
            if node not in wanted:
                del grads[node]
            continue
        contributions: dict[UOp, UOp] = {}  # by source: x*x adds up its two before those of other uses
        for s, ds in zip(src, rule(g, node), strict=True):
            if ds is not None and s in needed:
                if s.op is Ops.CONST and ds.shape:  # it went with any shape
                    ds = _sum(ds, tuple(range(ds.ndim))).reshape(())
                if watch.observer is not None:
                    watch.observer(node, s, ds)
                contributions[s] = _plus(contributions.get(s), ds)
        for s, ds in contributions.items():
            grads[s] = _plus(grads.get(s), ds)
        if node not in wanted:
            del grads[node]
    return {t: grads[t] for t in targets if t in grads}


def _plus(a: UOp | None, b: UOp) -> UOp:
    return b if a is None else UOp(Ops.ADD, b.dtype, (a, b))


def differentiable(root: UOp) -> list[UOp]:
    """The nodes that a gradient reaches from `root`, sources before consumers."""
    return root.toposort(carries_gradient)


def carries_gradient(node: UOp) -> bool:
    """Whether a gradient goes on from this node to its sources."""
    if node.op is Ops.DETACH:
        return node.dtype.is_float and isinstance(node.arg, (Spent, Hooks))
    return node.dtype.is_float


def is_freed(node: UOp) -> bool:
    """Whether a node is a value whose graph is gone."""
    return node.op is Ops.DETACH and node.arg is Spent.FREED


def is_leaf(node: UOp) -> bool:
    """Whether a node says that it is a leaf that requires a gradient."""
    return node.op is Ops.DETACH and isinstance(node.arg, Leaf)


def hooked(g: UOp, mark: Leaf | Hooks) -> UOp:
    """What the hooks of a mark make of a gradient."""
    for hook in list(mark.hooks):
        g = hook(g)
    return g


# --- helpers; products fold ones, which gradients are full of


def uniform_value(x: UOp) -> float | None:
    """The value of all elements of a constant under RESHAPE and EXPAND; None for any other node."""
    while x.op is Ops.RESHAPE or x.op is Ops.EXPAND:
        x = x.src[0]
    return x.arg if x.op is Ops.CONST else None


def _mul(a: UOp, b: UOp) -> UOp:
    if uniform_value(a) == 1.0:
        return b if b.shape else a.const_like(b.arg) if b.op is Ops.CONST else b
    return a if uniform_value(b) == 1.0 and a.shape else UOp(Ops.MUL, a.dtype, (a, b))


def _where(condition: UOp, a: UOp, b: UOp) -> UOp:
    return UOp(Ops.WHERE, a.dtype, (condition, a, b))


def _compare(op: Ops, a: UOp, b: UOp) -> UOp:
    return UOp(op, dtypes.bool, (a, b))


def _reciprocal(x: UOp) -> UOp:
    return UOp(Ops.RECIPROCAL, x.dtype, (x,))


def quotient(a: UOp, b: UOp) -> UOp:
    """a / b of floats. It is one op, for a * (1 / b) is rounded twice."""
    return _reciprocal(b) if uniform_value(a) == 1.0 else UOp(Ops.FDIV, b.dtype, (a, b))


def _sum(x: UOp, axes: tuple[int, ...]) -> UOp:
    return x.cast(sum_dtype(x.dtype)).reduce_axis(Ops.ADD, axes).cast(x.dtype)


# --- the rules


def _maximum(g: UOp, node: UOp) -> Grads:
    a, b = node.src
    zero, shared = UOp.const(g.dtype, 0.0), _where(_compare(Ops.CMPEQ, a, b), g * 0.5, g)
    return (
        _where(_compare(Ops.CMPLT, a, b), zero, shared),
        _where(_compare(Ops.CMPLT, b, a), zero, shared),
    )


def _exp2(g: UOp, y: UOp) -> Grads:
    """2^x: g y ln 2.

    In a sigmoid's gradient g has a factor 1 / (1 + y), and y / (1 + y) is 1 - 1 / (1 + y): so written, a y
    that overflows makes no inf * 0.
    """
    factors: list[UOp] = []
    rest = g
    while rest.op is Ops.MUL:
        for factor, cofactor in (rest.src, rest.src[::-1]):
            if factor.op is Ops.RECIPROCAL and _is_one_plus(factor.src[0], y):
                out = _mul(cofactor, factor * -1.0 + 1.0)
                for x in reversed(factors):
                    out = _mul(out, x)
                return (out * math.log(2),)
        rest, cofactor = rest.src
        factors.append(cofactor)
    return (_mul(g, y * math.log(2)),)


def _is_one_plus(x: UOp, y: UOp) -> bool:
    if x.op is not Ops.ADD:
        return False
    a, b = x.src
    return (a is y and uniform_value(b) == 1.0) or (b is y and uniform_value(a) == 1.0)


def _power(g: UOp, y: UOp) -> Grads:
    """a^e: g e a^(e - 1), which is 0 for e = 0, and g a^e ln a, which is 0 for a = 0 and e >= 0."""
    a, e = y.src
    zero, exponent = y.const_like(0.0), uniform_value(e)
    if exponent is None:
        slope = g * (e * UOp(Ops.POW, e.dtype, (a, e + -1.0)))
        of_base = _where(_compare(Ops.CMPEQ, e, zero), zero, slope)
    else:
        lower = exponent - 1
        slope = quotient(y.const_like(exponent), a) if lower == -1 else constant_power(a, lower) * exponent
        of_base = _mul(g, slope)
    negative = _compare(Ops.CMPLT, e, zero)
    flat = _compare(Ops.CMPEQ, a, zero) & _compare(Ops.CMPEQ, e, e) & negative.ne(negative.const_like(True))
    log = UOp(Ops.LOG2, a.dtype, (a,)) * math.log(2)
    return (of_base, _mul(g, _where(flat, zero, y * log)))


def _sin(g: UOp, node: UOp) -> Grads:
    half = UOp(Ops.SIN, g.dtype, (node.src[0] * 0.5,))
    return (_mul(g, half * half * -2.0 + 1.0),)


_ROUND_NOTHING = GroupOp.Movement | GroupOp.Comparison | {
    Ops.MAX, Ops.WHERE, Ops.TRUNC, Ops.BITCAST, Ops.DETACH, Ops.NOOP
}  # fmt: skip
_STORED = GroupOp.Memory | {Ops.CONST, Ops.ARANGE, Ops.CONTIGUOUS, Ops.COPY}


def computed_once(x: UOp) -> UOp:
    """`x` with memory for what is rounded in it: whoever reads the result finds the same bits."""

    def is_exact(n: UOp) -> bool:
        if n.value is not None or n.op in _STORED:
            return False
        negated = n.op is Ops.MUL and uniform_value(n.src[1]) == -1.0
        is_max = n.op is Ops.REDUCE_AXIS and n.arg.op is Ops.MAX
        return n.op in _ROUND_NOTHING or negated or is_max or not n.dtype.is_float

    rounded = [n for n in x.toposort(is_exact) if n.value is None and n.op not in _STORED and not is_exact(n)]
    return x.substitute({n: n.contiguous() for n in rounded}) if rounded else x


def _reduce(g: UOp, node: UOp) -> Grads:
    x = node.src[0]
    shape, op, axes = x.shape, node.arg.op, node.arg.axes
    if op is Ops.ADD:
        return (g.expand(shape),)
    if op is Ops.MAX:
        # computed again, x may be rounded otherwise, and no element be the greatest
        if (once := computed_once(x)) is not x:
            x, node = once, once.reduce_axis(op, axes)
        top = _compare(Ops.CMPEQ, x, node.expand(shape))
        share = quotient(g, _sum(top.cast(g.dtype), axes))
        return (_where(top, share.expand(shape), x.const_like(0.0)),)
    # the product of the other elements: 0 where one of those is 0
    is_zero = _compare(Ops.CMPEQ, x, x.const_like(0.0))
    nonzero = _where(is_zero, x.const_like(1.0), x)
    product = nonzero.reduce_axis(Ops.MUL, axes).expand(shape)
    zeros = _sum(is_zero.cast(g.dtype), axes).expand(shape)
    own_zeros = _where(is_zero, zeros.const_like(1.0), zeros.const_like(0.0))
    no_other = _compare(Ops.CMPEQ, zeros, own_zeros)
    return (_where(no_other, _mul(g.expand(shape), quotient(product, nonzero)), x.const_like(0.0)),)


def _scan(g: UOp, node: UOp) -> Grads:
    """Of y[i] = y[i-1] op x[i]. What reaches y[i], then through y[i+1] all after it, is itself a scan, from
    the end. Only `initial` that carries no gradient comes with ADD, MUL and MAX."""
    (x, initial, *factor), (op, (axis,)) = node.src, node.arg
    if op is Ops.ADD:
        return (_from_the_end(g, axis, None), None)
    before = _shifted(node, axis, 1, initial)
    if op is Ops.MUL:
        return (_mul(_from_the_end(g, axis, x), before), None)
    if op is Ops.MAX:  # to the last of equals
        greater = _compare(Ops.CMPLT, x, before).logical_not()
        passed = _from_the_end(g, axis, greater.logical_not().cast(g.dtype))
        return (_where(greater, passed, g.const_like(0.0)), None)
    passed = _from_the_end(g, axis, factor[0])  # y[i] = y[i-1] * factor[i] + x[i]
    return (passed, None, _mul(passed, before))


def _from_the_end(g: UOp, axis: int, factor: UOp | None) -> UOp:
    """s[i] = g[i] + factor[i+1] * s[i+1]; without a factor, sums."""
    if factor is None:
        return g.flip((axis,)).scan_axis(Ops.ADD, axis).flip((axis,))
    following = _shifted(factor, axis, -1, factor.const_like(0.0))
    return g.flip((axis,)).scan_axis(Ops.MULACC, axis, factor=following.flip((axis,))).flip((axis,))


def _shifted(x: UOp, axis: int, by: int, fill: UOp) -> UOp:
    """x[i - by] along an axis, for `by` 1 or -1; `fill` where there is none."""
    n = x.shape[axis]
    first = max(-by, 0)
    padded = x.pad(tuple([(max(by, 0), first) if i == axis else (0, 0) for i in range(x.ndim)]))
    moved = padded.shrink(tuple([(first, n + first) if i == axis else (0, m) for i, m in enumerate(x.shape)]))
    index = UOp(Ops.ARANGE, dtypes.int32, (), n)
    edge = _compare(Ops.CMPEQ, index, index.const_like(0) if by > 0 else index.const_like(n - 1))
    shape = tuple([n if i == axis else 1 for i in range(x.ndim)])
    return _where(edge.reshape(shape).expand(x.shape), fill, moved)


def _expand(g: UOp, node: UOp) -> Grads:
    x = node.src[0]
    axes = tuple([i for i, (a, b) in enumerate(zip(x.shape, node.shape, strict=True)) if a != b])
    return (_sum(g, axes).reshape(x.shape),)


def _shrink(g: UOp, node: UOp) -> Grads:
    sizes = node.src[0].shape
    return (
        g.pad(
            tuple([(lo, n if _is_zero(hi) else n - hi) for (lo, hi), n in zip(node.arg, sizes, strict=True)])
        ),
    )


def _pad(g: UOp, node: UOp) -> Grads:
    sizes = node.src[0].shape
    return (
        g.shrink(
            tuple([(lo, n if _is_zero(lo) else n + lo) for (lo, _), n in zip(node.arg, sizes, strict=True)])
        ),
    )


def _shear(g: UOp, node: UOp) -> Grads:
    # x[j] went to position j - start - step*k: with zeros before and after, that is a shear the other way
    axis, along, start, step, size = node.arg
    n, reach = node.src[0].shape[axis], step * (node.src[0].shape[along] - 1)
    lo, hi = start + max(reach, 0), n - start - min(reach, 0) - size
    padded = g.pad(tuple([(lo, hi) if i == axis else (0, 0) for i in range(g.ndim)]))
    return (padded.shear(Shear(axis, along, lo - start, -step, n)),)


def _is_zero(n: object) -> bool:
    return isinstance(n, int) and n == 0


def _cast(g: UOp, node: UOp) -> Grads:
    x = node.src[0]
    return (g.cast(x.dtype) if x.dtype.is_float else None,)


def _after(g: UOp, node: UOp) -> Grads:
    memory, target = node.src[0], node.src[1].src[0]
    written = moved_back(target, memory, target.const_like(True, dtypes.bool))
    return _where(written, g.const_like(0.0), g), _shown(target, memory, g)


def _copy(g: UOp, node: UOp) -> Grads:
    home = device_of(node.src[0])
    if home is None:
        return (g,)
    return (g.copy_to(Sharding(home, None) if isinstance(home, tuple) else home),)


def device_of(node: UOp) -> str | tuple[str, ...] | None:
    """The device that holds a node's first buffer, or several that hold parts of it; None for constants."""
    for n in node.toposort(lambda n: n.op is not Ops.COPY and n.value is None):
        if n.op is Ops.COPY and n.value is None:
            return n.arg.devices if isinstance(n.arg, Sharding) else str(n.arg)
        memory = n if n.op is Ops.BUFFER else n.value
        if memory is not None:
            device: str | tuple[str, ...] = memory.arg.device
            return device
    return None


# d/dx of each op, times the incoming g; y is the node itself.
VJP: dict[Ops, Callable[[UOp, UOp], Grads]] = {
    # x + y: g, g
    Ops.ADD: lambda g, n: (g, g),
    # a * b: g b, g a
    Ops.MUL: lambda g, n: (_mul(g, n.src[1]), _mul(g, n.src[0])),
    # a / b: g / b, -g y / b
    Ops.FDIV: lambda g, n: (quotient(g, n.src[1]), quotient(_mul(g, n), n.src[1]) * -1.0),
    # a * b + c: g b, g a, g
    Ops.MULACC: lambda g, n: (_mul(g, n.src[1]), _mul(g, n.src[0]), g),
    # 1 / x: -g y^2
    Ops.RECIPROCAL: lambda g, n: (_mul(_mul(g, n), n) * -1.0,),
    # 2^x: g y ln 2
    Ops.EXP2: _exp2,
    # log2 x: g / (x ln 2)
    Ops.LOG2: lambda g, n: (quotient(g * (1 / math.log(2)), n.src[0]),),
    # sqrt x: g / (2 y)
    Ops.SQRT: lambda g, n: (quotient(g * 0.5, n),),
    Ops.POW: _power,
    # sin x: g cos x, as 1 - 2 sin^2(x/2)
    Ops.SIN: _sin,
    # trunc x: 0
    Ops.TRUNC: lambda g, n: (None,),
    # max(a, b): g to the greater, halves to equals
    Ops.MAX: _maximum,
    # where(c, a, b)
    Ops.WHERE: lambda g, n: (
        None,
        _where(n.src[0], g, UOp.const(g.dtype, 0.0)),
        _where(n.src[0], UOp.const(g.dtype, 0.0), g),
    ),
    Ops.CAST: _cast,
    Ops.BITCAST: lambda g, n: (None,),
    Ops.REDUCE_AXIS: _reduce,
    Ops.SCAN_AXIS: _scan,
    # movement: the movement back
    Ops.RESHAPE: lambda g, n: (g.reshape(n.src[0].shape),),
    Ops.EXPAND: _expand,
    Ops.PERMUTE: lambda g, n: (g.permute(argsort(n.arg)),),
    Ops.PAD: _pad,
    Ops.SHRINK: _shrink,
    Ops.FLIP: lambda g, n: (g.flip(n.arg),),
    Ops.SHEAR: _shear,
    # identities; a DETACH that a gradient comes to is a spent value, or has hooks
    Ops.DETACH: lambda g, n: (hooked(g, n.arg) if isinstance(n.arg, Hooks) else g,),
    Ops.CONTIGUOUS: lambda g, n: (g,),
    Ops.NOOP: lambda g, n: (g,) if n.arg is None else (None, *n.arg(g, n)),
    Ops.COPY: _copy,
    # memory after target <- value: the overwritten elements get no gradient
    Ops.AFTER: _after,
    Ops.ASSIGN: lambda g, n: (None, g),
}


def moved_back(view: UOp, base: UOp, value: UOp) -> UOp:
    """`value`, of the shape of `view`, at the elements of `base` that `view` shows, zeros elsewhere.

    `view` is `base` under movement ops, and shows no element twice.
    """
    for moved in _movement(view, base):
        (back,) = VJP[moved.op](value, moved)
        assert back is not None
        value = back
    return value


def _shown(view: UOp, base: UOp, value: UOp) -> UOp:
    """What `view` shows if `value` is in the place of `base`."""
    for moved in reversed(_movement(view, base)):
        value = UOp(moved.op, value.dtype, (value,), moved.arg)
    return value


def _movement(view: UOp, base: UOp) -> list[UOp]:
    """The movement ops from a view down to `base`, whatever marks leaves there."""
    base, found = _unmarked(base), []
    while (view := _unmarked(view)) is not base:
        if view.op not in GroupOp.Movement:
            raise InternalError(f"{view.op} cannot be moved back")
        found.append(view)
        view = view.src[0]
    return found


def _unmarked(node: UOp) -> UOp:
    while node.op is Ops.DETACH:
        node = node.src[0]
    return node
