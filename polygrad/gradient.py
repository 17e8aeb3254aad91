"""Gradients: one table of vector-Jacobian products over the tensor graph.

`gradient` walks a graph once from its root to the targets, without recursion. The gradients are new lazy
nodes, which can be differentiated again. Gradients flow through floats only; DETACH and integers stop them.
This module knows nodes, not Tensors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from polygrad.dtype import dtypes, sum_dtype
from polygrad.errors import GradientError, InternalError
from polygrad.helpers import argsort
from polygrad.uop.args import Hooks, Leaf, Sharding, Shear, Spent
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops
from polygrad.uop.power import constant_power

Grads = tuple[UOp | None, ...]  # one per source of the node


class _Watch:
    """Each of `observers` is called, as `observer(node, source, gradient)`, for every gradient that a node's
    rule computes for one of its sources."""

    observers: tuple[Callable[[UOp, UOp, UOp], None], ...] = ()


watch = _Watch()


def gradient(root: UOp, root_grad: UOp, targets: list[UOp], order: list[UOp] | None = None) -> dict[UOp, UOp]:
    """The gradient of `root` with respect to each of `targets` to which a differentiable path leads.

    `root_grad` is the incoming gradient: a node of the root's shape and dtype. `order`: the result of
    `differentiable(root)`, if the caller has it. Raises GradientError for an op without a derivative.
    """
    target_set = set(targets)
    if order is None:
        order = differentiable(root)
    ancestors: set[UOp] = set()  # nodes that lead to a target
    path: list[UOp] = []  # those that a gradient reaches on the way to a target, and freed ones
    for node in order:
        if (not ancestors.isdisjoint(node.src) and carries_gradient(node)) or is_freed(node):
            path.append(node)
        elif node not in target_set:
            continue
        ancestors.add(node)
    grads: dict[UOp, UOp] = {root: root_grad}
    for node in reversed(path):
        g = grads.get(node)
        if g is None:
            continue
        if is_freed(node):
            raise GradientError(
                f"gradient: the graph of a value of shape {node.shape} was freed, as backward() went through "
                "it and memory that it was computed from was written to: pass retain_graph=True to it"
            )
        if node not in target_set:
            del grads[node]
        contributions = _contributions(g, node, ancestors)
        if len(contributions) > 1:  # the two of x*x are added before those of other uses
            by_source: dict[UOp, UOp] = {}
            for s, ds in contributions:
                by_source[s] = _add(by_source.get(s), ds)
            contributions = list(by_source.items())
        for s, ds in contributions:
            grads[s] = _add(grads.get(s), ds)
    return {t: grads[t] for t in targets if t in grads}


def _contributions(g: UOp, node: UOp, wanted: set[UOp]) -> list[tuple[UOp, UOp]]:
    """The wanted sources of a node whose gradient is `g`, each with what it gets. Raises GradientError."""
    op, src = node.op, node.src
    if (rules := VJP_BY_SOURCE.get(op)) is not None:  # no node is made for a gradient that nobody wants
        pairs = zip(src, rules, strict=True)
        grads: Grads = tuple([rule(g, node) if rule and s in wanted else None for s, rule in pairs])
    elif (all_rules := VJP.get(op)) is not None:
        grads = all_rules(g, node)
    else:
        raise GradientError(f"gradient of {op}: expected an op with a derivative: use .detach()")
    out = []
    for s, ds in zip(src, grads, strict=True):
        if ds is None or s not in wanted:
            continue
        if s.op is Ops.CONST and ds.shape:  # the constant was broadcast
            ds = _sum(ds, tuple(range(ds.ndim))).reshape(())
        for observer in watch.observers:
            observer(node, s, ds)
        out.append((s, ds))
    return out


def _add(a: UOp | None, b: UOp) -> UOp:
    return b if a is None else UOp(Ops.ADD, b.dtype, (a, b))


def differentiable(root: UOp) -> list[UOp]:
    """The nodes that a gradient reaches from `root`, sources before consumers."""
    return root.toposort(carries_gradient)


def carries_gradient(node: UOp) -> bool:
    """Whether a gradient flows from this node to its sources."""
    if node.op is Ops.DETACH:
        return node.dtype.is_float and isinstance(node.arg, (Spent, Hooks))
    return node.dtype.is_float


def is_freed(node: UOp) -> bool:
    """Whether a node is a value whose graph was freed."""
    return node.op is Ops.DETACH and node.arg is Spent.FREED


def is_leaf(node: UOp) -> bool:
    """Whether a node is marked as a leaf that requires a gradient."""
    return node.op is Ops.DETACH and isinstance(node.arg, Leaf)


def apply_hooks(g: UOp, hooks: Sequence[Callable[[UOp], UOp]]) -> UOp:
    """The gradient after `hooks` were applied to it."""
    for hook in list(hooks):
        g = hook(g)
    return g


# --- helpers; products fold ones, which are frequent in gradients


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
    """a / b of floats, as one op, because a * (1 / b) is rounded twice."""
    return _reciprocal(b) if uniform_value(a) == 1.0 else UOp(Ops.FDIV, b.dtype, (a, b))


def _sum(x: UOp, axes: tuple[int, ...]) -> UOp:
    return x.cast(sum_dtype(x.dtype)).reduce_axis(Ops.ADD, axes).cast(x.dtype)


# --- the rules


def _maximum(g: UOp, node: UOp) -> Grads:
    a, b = node.src
    zero, greater_share = UOp.const(g.dtype, 0.0), _where(_compare(Ops.CMPEQ, a, b), g * 0.5, g)
    return (
        _where(_compare(Ops.CMPLT, a, b), zero, greater_share),
        _where(_compare(Ops.CMPLT, b, a), zero, greater_share),
    )


def _exp2(g: UOp, y: UOp) -> Grads:
    """2^x: g y ln 2.

    In a sigmoid's gradient g has a factor 1 / (1 + y). There y / (1 + y) is computed as 1 - 1 / (1 + y), so
    that a y that overflows does not become inf * 0.
    """
    factors: list[UOp] = []
    remaining = g
    while remaining.op is Ops.MUL:
        for factor, cofactor in (remaining.src, remaining.src[::-1]):
            if factor.op is Ops.RECIPROCAL and _is_one_plus(factor.src[0], y):
                out = _mul(cofactor, factor * -1.0 + 1.0)
                for x in reversed(factors):
                    out = _mul(out, x)
                return (out * math.log(2),)
        remaining, cofactor = remaining.src
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


def store_rounded(x: UOp) -> UOp:
    """`x` with its rounded values stored in memory, so that all readers get the same bits."""

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
        # if x were recomputed, it might be rounded differently, and no element would equal the maximum
        if (once := store_rounded(x)) is not x:
            x, node = once, once.reduce_axis(op, axes)
        top = _compare(Ops.CMPEQ, x, node.expand(shape))
        share = quotient(g, _sum(top.cast(g.dtype), axes))
        return (_where(top, share.expand(shape), x.const_like(0.0)),)
    # the product of the other elements: 0 where one of them is 0
    is_zero = _compare(Ops.CMPEQ, x, x.const_like(0.0))
    nonzero = _where(is_zero, x.const_like(1.0), x)
    product = nonzero.reduce_axis(Ops.MUL, axes).expand(shape)
    zeros = _sum(is_zero.cast(g.dtype), axes).expand(shape)
    own_zeros = _where(is_zero, zeros.const_like(1.0), zeros.const_like(0.0))
    no_other = _compare(Ops.CMPEQ, zeros, own_zeros)
    return (_where(no_other, _mul(g.expand(shape), quotient(product, nonzero)), x.const_like(0.0)),)


def _scan(g: UOp, node: UOp) -> Grads:
    """The gradient of y[i] = y[i-1] op x[i]. The gradient of y[i], also through y[i+1] and all later ones, is
    a scan from the end. `initial` never carries a gradient with ADD, MUL and MAX."""
    (x, initial, *factor), (op, (axis,)) = node.src, node.arg
    if op is Ops.ADD:
        return (_scan_backwards(g, axis, None), None)
    before = _shift(node, axis, 1, initial)
    if op is Ops.MUL:
        return (_mul(_scan_backwards(g, axis, x), before), None)
    if op is Ops.MAX:  # of equal elements, the last gets the gradient
        greater = _compare(Ops.CMPLT, x, before).logical_not()
        contribution = _scan_backwards(g, axis, greater.logical_not().cast(g.dtype))
        return (_where(greater, contribution, g.const_like(0.0)), None)
    contribution = _scan_backwards(g, axis, factor[0])  # y[i] = y[i-1] * factor[i] + x[i]
    return (contribution, None, _mul(contribution, before))


def _scan_backwards(g: UOp, axis: int, factor: UOp | None) -> UOp:
    """s[i] = g[i] + factor[i+1] * s[i+1]; without a factor, sums."""
    if factor is None:
        return g.flip((axis,)).scan_axis(Ops.ADD, axis).flip((axis,))
    following = _shift(factor, axis, -1, factor.const_like(0.0))
    return g.flip((axis,)).scan_axis(Ops.MULACC, axis, factor=following.flip((axis,))).flip((axis,))


def _shift(x: UOp, axis: int, by: int, fill: UOp) -> UOp:
    """x[i - by] along an axis, for `by` 1 or -1; `fill` beyond the ends."""
    n = x.shape[axis]
    first = max(-by, 0)
    padded_x = x.pad(tuple([(max(by, 0), first) if i == axis else (0, 0) for i in range(x.ndim)]))
    shifted = padded_x.shrink(
        tuple([(first, n + first) if i == axis else (0, m) for i, m in enumerate(x.shape)])
    )
    index = UOp(Ops.ARANGE, dtypes.int32, (), n)
    edge = _compare(Ops.CMPEQ, index, index.const_like(0) if by > 0 else index.const_like(n - 1))
    shape = tuple([n if i == axis else 1 for i in range(x.ndim)])
    return _where(edge.reshape(shape).expand(x.shape), fill, shifted)


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
    # x[j] moved to position j - start - step*k: with zeros before and after, the inverse is a shear, too
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
    written_mask = scatter_into_base(target, memory, target.const_like(True, dtypes.bool))
    return _where(written_mask, g.const_like(0.0), g), _apply_view(target, memory, g)


def _copy(g: UOp, node: UOp) -> Grads:
    home = device_of(node.src[0])
    if home is None:
        return (g,)
    return (g.copy_to(Sharding(home, None) if isinstance(home, tuple) else home),)


def device_of(node: UOp) -> str | tuple[str, ...] | None:
    """The device of a node's first buffer, or the devices that hold its parts; None for constants."""
    for n in node.toposort(lambda n: n.op is not Ops.COPY and n.value is None):
        if n.op is Ops.COPY and n.value is None:
            return n.arg.devices if isinstance(n.arg, Sharding) else str(n.arg)
        memory = n if n.op is Ops.BUFFER else n.value
        if memory is not None:
            device: str | tuple[str, ...] = memory.arg.device
            return device
    return None


# d/dx of each op, times the incoming g; y is the node itself. First the ops of which each source has a rule.
VJP_BY_SOURCE: dict[Ops, tuple[Callable[[UOp, UOp], UOp] | None, ...]] = {
    # a * b: g b, g a
    Ops.MUL: (lambda g, n: _mul(g, n.src[1]), lambda g, n: _mul(g, n.src[0])),
    # a / b: g / b, -g y / b
    Ops.FDIV: (
        lambda g, n: quotient(g, n.src[1]),
        lambda g, n: quotient(_mul(g, n), n.src[1]) * -1.0,
    ),
    # a * b + c: g b, g a, g
    Ops.MULACC: (lambda g, n: _mul(g, n.src[1]), lambda g, n: _mul(g, n.src[0]), lambda g, n: g),
    # where(c, a, b)
    Ops.WHERE: (
        None,
        lambda g, n: _where(n.src[0], g, UOp.const(g.dtype, 0.0)),
        lambda g, n: _where(n.src[0], UOp.const(g.dtype, 0.0), g),
    ),
}

VJP: dict[Ops, Callable[[UOp, UOp], Grads]] = {
    # x + y: g, g
    Ops.ADD: lambda g, n: (g, g),
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
    # identities; a DETACH that a gradient reaches is a spent value, or has hooks
    Ops.DETACH: lambda g, n: (apply_hooks(g, n.arg.hooks) if isinstance(n.arg, Hooks) else g,),
    Ops.CONTIGUOUS: lambda g, n: (g,),
    Ops.NOOP: lambda g, n: (g,) if n.arg is None else (None, *n.arg(g, n)),
    Ops.COPY: _copy,
    # memory after target <- value: the overwritten elements get no gradient
    Ops.AFTER: _after,
    Ops.ASSIGN: lambda g, n: (None, g),
}


def scatter_into_base(view: UOp, base: UOp, value: UOp) -> UOp:
    """`value`, of the shape of `view`, scattered to the elements of `base` that `view` shows; zeros
    elsewhere.

    `view` is `base` under movement ops, and shows no element twice. Aᵀ v, if A is the linear map `view`.
    """
    for node in _movement_ops(view, base):
        (back,) = VJP[node.op](value, node)
        assert back is not None
        value = back
    return value


def _apply_view(view: UOp, base: UOp, value: UOp) -> UOp:
    """The movement ops of `view` applied to `value` instead of `base`."""
    for node in reversed(_movement_ops(view, base)):
        value = UOp(node.op, value.dtype, (value,), node.arg)
    return value


def _movement_ops(view: UOp, base: UOp) -> list[UOp]:
    """The movement ops from a view down to `base`, without marks of leaves."""
    base, ops = _strip_marks(base), []
    while (view := _strip_marks(view)) is not base:
        if view.op not in GroupOp.Movement:
            raise InternalError(f"{view.op} cannot be moved back")
        ops.append(view)
        view = view.src[0]
    return ops


def _strip_marks(node: UOp) -> UOp:
    while node.op is Ops.DETACH:
        node = node.src[0]
    return node
