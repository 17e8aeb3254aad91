"""backward and gradient: from Tensors to the table of gradient.py and back."""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Self, TypeVar

from polygrad.dtype import dtypes
from polygrad.engine.normalize import uncomputed, value_of
from polygrad.engine.realize import buffer_from
from polygrad.errors import GradientError, ShapeError
from polygrad.gradient import carries_gradient, differentiable, gradient, is_leaf, uniform_value
from polygrad.runtime.buffer import Allocation
from polygrad.tensor.core.aliasing import as_value, cut, is_constant, storage_of
from polygrad.tensor.core.base import TensorBase, filled
from polygrad.tensor.core.modes import GradMode, modes
from polygrad.tensor.core.registry import live_tensors
from polygrad.uop.args import SPENT
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops

T = TypeVar("T")


class AutogradMixin(TensorBase):
    """Gradients."""

    __slots__ = ()

    def gradient(self, *targets: Self, gradient: Self | None = None) -> list[Self]:
        """The gradient of this Tensor with respect to each target, lazy and differentiable again.

        `gradient` flows into this Tensor (its shape); needed unless this Tensor is a scalar. A target that
        this Tensor does not depend on, or only through integers or `detach`, has gradient 0. What was
        computed before a write has the gradient at the values that it was computed from.

        Raises ShapeError, and GradientError where there is no graph to differentiate: a result of Tensors
        none of which says `requires_grad=True` is data once it is computed.

        >>> x = Tensor([1.0, 2.0])
        >>> [g.tolist() for g in (x * x).sum().gradient(x)]
        [[2.0, 4.0]]
        """
        for t in targets:
            if not t.dtype.is_float:
                raise GradientError(f"gradient: expected float targets, got {t.dtype}")
        into = self._into(gradient)
        present = _positions(self.uop.toposort(), list(targets))
        if not present and targets and not self._derived and _is_stored(self.uop):
            raise GradientError(
                f"gradient: a Tensor of shape {self.shape} has no graph to differentiate: it was computed from "
                "Tensors none of which requires a gradient, and read: use requires_grad=True on the targets"
            )
        grads = self._gradients(list(targets), into, differentiable(self.uop), present)
        uops = [
            filled(t.dtype, 0.0, t.shape) if g is None else as_value(g)
            for t, g in zip(targets, grads, strict=True)
        ]
        derived = _above_leaves(uops) if modes.grad_enabled else set()
        out = []
        for t, uop in zip(targets, uops, strict=True):
            out.append(t._of(uop if modes.grad_enabled else cut(uop), t._device or self._device))
            if uop in derived:
                out[-1]._requires_grad = out[-1]._derived = True
        return out

    def backward(
        self, gradient: Self | None = None, retain_graph: bool = False, create_graph: bool = False
    ) -> Self:
        """Add the gradient of this Tensor to `.grad` of every leaf that took part in it; self.

        `gradient` flows into this Tensor (its shape); needed unless this Tensor is a scalar. Leaves are the
        Tensors with `requires_grad=True` that were not computed from others: parameters of layers have it.
        As in tinygrad, so are live float Tensors of which it was not said (`requires_grad=None`), constants
        apart. A result of leaves with `requires_grad=True` keeps the graph that it was computed by, whatever
        is read or written; a result of Tensors with None is data, and a leaf, once it is computed.

        The gradient is that of the values that this Tensor was computed from. Where memory is overwritten
        these are kept for results that may still be differentiated, and not for those that `backward` has
        gone through: another `backward` of such a result is an error then, unless `retain_graph=True`.
        `create_graph=True`: the gradients can be differentiated themselves (it implies `retain_graph`).
        Raises ShapeError, and GradientError where no leaf leads to this Tensor.

        >>> x = Tensor([1.0, 2.0], requires_grad=True)
        >>> (x * x).sum().backward().item()
        5.0
        >>> x.grad.tolist()
        [2.0, 4.0]
        """
        into = self._into(gradient)
        order = differentiable(self.uop)
        leaves, present = _leaves(order)
        if not any(map(is_leaf, order)) and all(t is self for t in leaves):
            raise GradientError(
                f"backward: no Tensor with requires_grad=True leads to this one of shape {self.shape}: it was "
                "computed from data or constants, under no_grad, or was read before backward; say "
                "requires_grad=True where the parameters are made"
            )
        modes.unread_gradients[:] = [r for r in modes.unread_gradients if r() is not None]
        for t, g in zip(leaves, self._gradients(leaves, into, order, present), strict=True):
            if g is None:
                continue
            new = as_value(g)
            if t.grad is not None:
                new = UOp(Ops.ADD, new.dtype, (t.grad.uop, new))
            elif t.requires_grad is None:
                modes.unread_gradients.append(weakref.ref(t))
            t.grad = t._of(new if create_graph else cut(new), t._device or self._device, None)
            t.grad._requires_grad = t.grad._derived = create_graph
        if not (retain_graph or create_graph):
            _spend(self, order)
        return self

    def _into(self, gradient: Self | None) -> UOp:
        """What flows into this Tensor, to be differentiated. Raises GradientError, ShapeError."""
        if not self.dtype.is_float:
            raise GradientError(f"gradient: expected a float tensor to differentiate, got {self.dtype}")
        if gradient is None:
            if self.shape != ():
                raise GradientError(
                    f"gradient: expected a scalar, got shape {self.shape}: sum it, or pass gradient="
                )
            return filled(self.dtype, 1.0, ())
        if gradient.shape != self.shape:
            raise ShapeError(f"gradient: expected gradient= of shape {self.shape}, got {gradient.shape}")
        return gradient.uop.cast(self.dtype)

    def _gradients(
        self, targets: list[Any], into: UOp, order: list[UOp], present: dict[UOp, list[int]]
    ) -> list[UOp | None]:
        """The gradient for each target; None for one that is not in the graph.

        `order`, `present`: the nodes that carry a gradient, and where targets are among them. Raises
        GradientError where one reads memory that was overwritten.
        """
        found = gradient(self.uop, into, list(present), order)
        out: list[UOp | None] = [None] * len(targets)
        for n, positions in present.items():
            for i in positions:
                shape = targets[i].shape
                g = found[n].reshape(shape) if n in found else None
                old = out[i]
                if g is None:
                    out[i] = old if old is not None else filled(targets[i].dtype, 0.0, shape)
                else:
                    out[i] = g if old is None or uniform_value(old) == 0 else UOp(Ops.ADD, g.dtype, (old, g))
        if any(_is_lost(n) for n in self.uop.toposort()):
            for n in UOp.sink(*[g for g in out if g is not None]).toposort(uncomputed):
                if _is_lost(n):
                    raise GradientError(_written_since(n))
        return out

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Say whether gradients are wanted; self.

        >>> Tensor([1.0]).requires_grad_().requires_grad
        True
        """
        self.requires_grad = requires_grad
        return self

    def is_param_(self, is_param: bool = True) -> Self:
        """`requires_grad_`, by tinygrad's newer name.

        >>> Tensor([1.0]).is_param_().requires_grad
        True
        """
        return self.requires_grad_(is_param)

    @property
    def is_param(self) -> bool:
        """Whether gradients are wanted: `requires_grad` is True.

        >>> Tensor([1.0], requires_grad=True).is_param
        True
        """
        return self.requires_grad is True

    def as_param(self) -> Self:
        """A leaf of this value that requires a gradient, in memory of its own. Raises GradientError.

        >>> weight = Tensor([1.0, 2.0]).as_param()
        >>> (weight * weight).sum().backward().item()
        5.0
        >>> weight.grad.tolist()
        [2.0, 4.0]
        """
        if not self.dtype.is_float:
            raise GradientError(f"as_param: expected a float tensor, got {self.dtype}")
        out = self._of(self.uop.detach().clone(), self._device, True)
        out.realize()  # type: ignore[attr-defined]
        return out

    @classmethod
    @contextlib.contextmanager
    def train(cls, mode: bool = True) -> Iterator[None]:
        """`with Tensor.train():` dropout drops, BatchNorm measures, optimizers step, in this thread.
        `Tensor.training = True` says so for all threads that are inside of no `train`.

        >>> with Tensor.train():
        ...     print(Tensor.training)
        True
        """
        old, modes.training = modes.training, mode
        try:
            yield
        finally:
            modes.training = old

    @classmethod
    def test(cls) -> Any:
        """`with Tensor.test():` the reverse of `train`.

        >>> with Tensor.test():
        ...     print(Tensor.training)
        False
        """
        return cls.train(False)

    @classmethod
    def no_grad(cls, function: Callable[..., Any] | None = None) -> Any:
        """`with Tensor.no_grad():` what this thread computes is cut from gradients, as by `detach`: it has
        `requires_grad=False`, and keeps no graph. `@Tensor.no_grad()` or `@Tensor.no_grad` does so for the
        calls of a function, a generator or a coroutine.

        >>> x = Tensor([1.0], requires_grad=True)
        >>> with Tensor.no_grad():
        ...     y = x * 2
        >>> (x * y).sum().backward().item(), x.grad.tolist()
        (2.0, [2.0])
        """
        return GradMode(False) if function is None else GradMode(False)(function)

    inference_mode = no_grad

    @classmethod
    def enable_grad(cls, function: Callable[..., Any] | None = None) -> Any:
        """The reverse of `no_grad`, inside of it.

        >>> with Tensor.no_grad(), Tensor.enable_grad():
        ...     print((Tensor([1.0], requires_grad=True) * 2).requires_grad)
        True
        """
        return GradMode(True) if function is None else GradMode(True)(function)

    @classmethod
    def set_grad_enabled(cls, mode: bool) -> GradMode:
        """`no_grad` or `enable_grad`, for a `with` statement.

        >>> with Tensor.set_grad_enabled(False):
        ...     print(Tensor.is_grad_enabled())
        False
        """
        return GradMode(bool(mode))

    @classmethod
    def is_grad_enabled(cls) -> bool:
        """Whether this thread is inside of no `no_grad`.

        >>> Tensor.is_grad_enabled()
        True
        """
        return modes.grad_enabled


def custom_gradient(forward: Callable[..., T], backward: Callable[..., Any]) -> Callable[..., T]:
    """`forward`, a function of Tensors that gives one Tensor, with a gradient of its own.

    `backward(gradient, value, *inputs)` gives the gradient of each input (a Tensor of its shape), or None for
    one that has none; it is built of Tensor methods, so that it is lazy and can be differentiated again.
    Arguments that are no Tensors are passed to `forward` alone.

        clipped = custom_gradient(lambda x: x, lambda g, y, x: g.clamp(-1, 1))

    Raises GradientError and ShapeError, when it is differentiated, for gradients that do not fit.
    """

    @functools.wraps(forward)
    def function(*args: Any, **kwargs: Any) -> Any:
        inputs: list[Any] = [x for x in args if isinstance(x, TensorBase)]
        # forward's own graph carries no gradient: it ends at values that are the inputs'
        cut = [x._detached() if isinstance(x, TensorBase) else x for x in args]  # type: ignore[attr-defined]
        out: Any = forward(*cut, **kwargs)
        if not isinstance(out, TensorBase) or not inputs:
            raise GradientError(
                "custom_gradient: expected a function of Tensors that gives one Tensor, got a "
                f"{type(out).__name__}"
            )
        return out._with_backward(inputs, backward)

    return function


def checkpoint(function: Callable[..., T], *inputs: Any) -> T:
    """function(*inputs), of which the gradient computes again what it needs, instead of keeping it.

    What depends on the inputs (float Tensors) inside of `function`, which gives one Tensor, is computed again
    once the gradient is there. Random numbers are the same, and so are gradients, of the inputs and of all
    Tensors that `function` uses. Raises GradientError for a result that is no float Tensor.
    """
    out: Any = function(*inputs)
    if not isinstance(out, TensorBase) or not out.dtype.is_float:
        raise GradientError(f"checkpoint: expected a float Tensor as the result, got {out!r}")
    sources = [x for x in inputs if isinstance(x, TensorBase) and x.dtype.is_float]
    leaves = _inputs_of(out.uop, [x.uop for x in sources])
    zero = out._of(buffer_from(out.device, dtypes.int32, memoryview(bytes(4))), out._device).uop

    def rule(g: UOp, node: UOp) -> list[UOp | None]:
        value, cuts, others = node.src[0], node.src[1 : 1 + len(sources)], node.src[1 + len(sources) : -1]
        # 1.0, of the memory of a 0 and of the gradient: so nothing is computed again before that is known
        first = g.reshape((g.size,)).shrink(((0, 1),)) if g.shape else g.reshape((1,))
        one = (UOp(Ops.CMPLT, dtypes.bool, (first, first)).cast(dtypes.int32) & node.src[-1]) + 1
        cut = {x: x.detach() for x in cuts}  # the walk ends there; afterwards they are the inputs again
        again = {x: _times_one(cut[x], one) for x in cuts}
        found = gradient(value.substitute(again), g, [*again.values(), *others])
        joined = {detached: x for x, detached in cut.items()}
        grads = [found.get(again.get(x, x)) for x in (*cuts, *others)]
        return [*[None if d is None else d.substitute(joined) for d in grads], None]

    node = UOp(Ops.NOOP, out.dtype, (out.uop, *[x.uop for x in sources], *leaves, zero), rule)
    result: Any = out._result(node)
    return result


def _times_one(x: UOp, one: UOp) -> UOp:
    factor = one.cast(x.dtype).reshape((1,) * x.ndim).expand(x.shape)
    return UOp(Ops.MUL, x.dtype, (x, factor))


def _inputs_of(root: UOp, cuts: list[UOp]) -> list[UOp]:
    """The leaves and the stored float values that a node depends on, not through `cuts`."""

    def is_stored(n: UOp) -> bool:
        return n.value is not None or not n.src

    def is_input(n: UOp) -> bool:
        return is_leaf(n) or (carries_gradient(n) and is_stored(n) and n.op is not Ops.CONST)

    found = root.toposort(lambda n: n not in cuts and carries_gradient(n) and not is_stored(n))
    return [n for n in found if n not in cuts and is_input(n)]


def _positions(order: list[UOp], targets: list[Any]) -> dict[UOp, list[int]]:
    """Where the targets are in a graph.

    A leaf that requires a gradient is the DETACHs that say so, one for each version of its value that was
    used. Any other target is its node or, where that is not in the graph, an older one over the same memory.
    """
    nodes: dict[UOp, list[int]] = {}
    leaves: dict[Any, list[int]] = {}
    by_memory: dict[Allocation, int] = {}
    for i, t in enumerate(targets):
        if t._is_marked():
            leaves.setdefault(t._leaf, []).append(i)
            continue
        nodes.setdefault(t.uop, []).append(i)
        stored = t.uop
        while stored.op is Ops.RESHAPE or stored.op is Ops.AFTER:
            stored = stored.src[0]
        if stored.op is Ops.BUFFER:
            by_memory[stored.arg.allocation] = i
    present: dict[UOp, list[int]] = {}
    older: list[tuple[UOp, int]] = []
    for n in order:
        found = nodes.get(n)
        if found is None and n.op is Ops.DETACH and n.arg in leaves:
            found = leaves[n.arg]
        if found is not None:
            present[n] = found
            continue
        value = n if n.op is Ops.BUFFER else value_of(n)
        if value is not None and value.arg.allocation in by_memory:
            older.append((n, by_memory[value.arg.allocation]))
    newest = {i for positions in present.values() for i in positions}
    present.update({n: [i] for n, i in older if i not in newest})
    return present


def _leaves(order: list[UOp]) -> tuple[list[Any], dict[UOp, list[int]]]:
    """The live Tensors whose `.grad` a backward fills (see there), and where their nodes are.

    `order`: the nodes under its root that carry a gradient.
    """
    marked = {n.arg: t for n in order if is_leaf(n) and (t := n.arg.tensor()) is not None}
    required = [t for t in marked.values() if t.requires_grad]
    unsaid = [
        t
        for t in live_tensors()
        if t.requires_grad is None and t.uop.dtype.is_float and not is_constant(t.uop)
    ]
    tensors = [*required, *unsaid]
    present = _positions(order, tensors)
    sources = set(present)  # and what is computed from one of them
    leaves: set[int] = set()
    computed: set[int] = set()
    for node in order:
        is_computed = not sources.isdisjoint(node.src) and carries_gradient(node)
        if is_computed:
            sources.add(node)
        if node in present:
            (computed if is_computed else leaves).update(present[node])
    wanted = [i for i in range(len(tensors)) if i < len(required) or i in leaves - computed]
    place = {i: n for n, i in enumerate(wanted)}
    found = {n: [place[i] for i in positions if i in place] for n, positions in present.items()}
    return [tensors[i] for i in wanted], {n: positions for n, positions in found.items() if positions}


def live_derived(since: int = 0) -> list[UOp]:
    """The values of live Tensors (with serial numbers above `since`) that `backward` may be called on."""
    return [t.uop for t in live_tensors(since) if t._derived]


def _spend(root: Any, order: list[UOp]) -> None:
    """Mark what a backward has gone through from `root`, along the nodes `order`, as spent: live results that
    it came by, and `root` in results that are computed from it."""
    node, passed = root.uop, set(order)
    others = []
    for t in live_tensors():
        if t._derived and t.uop.arg is not SPENT:
            if t.uop in passed:
                t.uop = t.uop.detach(SPENT)
            else:
                others.append(t)
    if not others:
        return
    above = {node: node.detach(SPENT)}
    for n in UOp.sink(*[t.uop for t in others]).toposort(lambda n: n not in passed):
        if n not in above and n.op is not Ops.SINK and not above.keys().isdisjoint(n.src):
            new = above[n] = n.replace(src=tuple([above.get(s, s) for s in n.src]))
            new.value = n.value
    for storage in {storage_of(t) for t in others}:
        if storage.node in above:
            storage.update(above[storage.node])


def _above_leaves(uops: list[UOp]) -> set[UOp]:
    """The nodes under `uops` that a gradient takes to a leaf which requires one."""
    found: set[UOp] = set()
    for n in UOp.sink(*uops).toposort(lambda n: n.op is Ops.SINK or carries_gradient(n)):
        if is_leaf(n) or (carries_gradient(n) and not found.isdisjoint(n.src)):
            found.add(n)
    return found


def _is_stored(uop: UOp) -> bool:
    """Whether a node is memory: what it was computed from is not known."""
    while uop.op in GroupOp.Movement or uop.op in (Ops.DETACH, Ops.NOOP):
        uop = uop.src[0]
    return uop.op is Ops.BUFFER


def _is_lost(node: UOp) -> bool:
    """Whether a node is a version of memory that was overwritten, and not kept."""
    return node.op is Ops.BUFFER and node.arg.overwritten and node.value is None


def _written_since(node: UOp) -> str:
    where = node.arg.allocation.written_at
    return (
        f"gradient: it needs a value of {node.arg.size} elements ({node.dtype}) as it was before "
        f"{'a write' if where is None else f'the write at {where[0]}:{where[1]}'}: differentiate before "
        "writing, let the result require a gradient (requires_grad=True on what it is computed from), or "
        "pass retain_graph=True to the backward() that came first"
    )


def drop_unread_gradients() -> None:
    """Forget the lazy gradients that this thread has made for Tensors with `requires_grad=None`.

    Called before what they would be computed from is overwritten: they would have to be computed first.
    """
    for reference in modes.unread_gradients:
        t = reference()
        if t is not None and t.grad is not None and t.requires_grad is None:
            value = t.grad.uop.base
            if value.op is not Ops.BUFFER and uncomputed(value):
                t.grad = None
    modes.unread_gradients.clear()
