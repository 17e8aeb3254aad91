"""backward and gradient: from Tensors to the table of gradient.py and back."""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Self, TypeVar

from polygrad.dtype import dtypes
from polygrad.engine.normalize import uncomputed
from polygrad.engine.realize import buffer_from
from polygrad.errors import GradientError, ShapeError
from polygrad.gradient import carries_gradient, differentiable, gradient, uniform_value
from polygrad.runtime.buffer import Allocation
from polygrad.tensor.core.aliasing import as_value, is_constant
from polygrad.tensor.core.base import TensorBase, filled
from polygrad.tensor.core.modes import modes
from polygrad.tensor.core.registry import live_tensors
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

T = TypeVar("T")


class AutogradMixin(TensorBase):
    """Gradients."""

    __slots__ = ()

    def gradient(self, *targets: Self, gradient: Self | None = None) -> list[Self]:
        """The gradient of this Tensor with respect to each target, lazy and differentiable again.

        `gradient` flows into this Tensor (its shape); needed unless this Tensor is a scalar. A target that
        this Tensor does not depend on, or only through integers or `detach`, has gradient 0. Raises
        GradientError, ShapeError.

        >>> x = Tensor([1.0, 2.0])
        >>> [g.tolist() for g in (x * x).sum().gradient(x)]
        [[2.0, 4.0]]
        """
        for t in targets:
            if not t.dtype.is_float:
                raise GradientError(f"gradient: expected float targets, got {t.dtype}")
        grads = self._gradients(list(targets), gradient)
        return [
            t._of(filled(t.dtype, 0.0, t.shape) if g is None else as_value(g), t._device or self._device)
            for t, g in zip(targets, grads, strict=True)
        ]

    def backward(self, gradient: Self | None = None) -> Self:
        """Add the gradient of this Tensor to `.grad` of every leaf that took part in it; self.

        `gradient` flows into this Tensor (its shape); needed unless this Tensor is a scalar. Raises
        GradientError, ShapeError.

        As in tinygrad, and unlike torch, `requires_grad` need not be set: leaves are all live float Tensors
        that were not computed from other leaves and do not have `requires_grad=False`; constants
        (`Tensor(2.0)`, `Tensor.ones(3)`) are only with `requires_grad=True`. With that, a result also keeps
        the graph that it was computed by when it is realized; an optimizer sets it for its parameters. A
        result of Tensors with `requires_grad=None` is data once it is realized, and a leaf from then on. The
        gradient of such a leaf is lazy, and dropped at an optimizer's step unless it was read before.

        >>> x = Tensor([1.0, 2.0], requires_grad=True)
        >>> (x * x).sum().backward().item()
        5.0
        >>> x.grad.tolist()
        [2.0, 4.0]
        """
        order = differentiable(self.uop)
        leaves, present = _leaves(order)
        modes.unread_gradients[:] = [r for r in modes.unread_gradients if r() is not None]
        for t, g in zip(leaves, self._gradients(leaves, gradient, order, present), strict=True):
            if g is None:
                continue
            new = t._of(as_value(g), t._device or self._device, False)
            if t.grad is None and t.requires_grad is None:
                modes.unread_gradients.append(weakref.ref(t))
            t.grad = (
                new
                if t.grad is None
                else t._of(UOp(Ops.ADD, new.dtype, (t.grad.uop, new.uop)), new._device, False)
            )
        return self

    def _gradients(
        self,
        targets: list[Any],
        into: Self | None,
        order: list[UOp] | None = None,
        present: dict[UOp, list[int]] | None = None,
    ) -> list[UOp | None]:
        """The gradient for each target; None for one that is not in the graph.

        `order`, `present`: the nodes that carry a gradient, and where targets are among them, once known.
        """
        root = self.uop
        if not root.dtype.is_float:
            raise GradientError(f"gradient: expected a float tensor to differentiate, got {root.dtype}")
        if into is None:
            if self.shape != ():
                raise GradientError(
                    f"gradient: expected a scalar, got shape {self.shape}: sum it, or pass gradient="
                )
            root_grad = filled(root.dtype, 1.0, ())
        else:
            if into.shape != self.shape:
                raise ShapeError(f"gradient: expected gradient= of shape {self.shape}, got {into.shape}")
            root_grad = into.uop.cast(root.dtype)
        if present is None:
            present = _positions(root.toposort(), targets)
        found = gradient(root, root_grad, list(present), order)
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
        return out

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Say whether gradients are wanted; self.

        >>> Tensor([1.0]).requires_grad_().requires_grad
        True
        """
        self.requires_grad = requires_grad
        return self._own_leaf()

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
    @contextlib.contextmanager
    def no_grad(cls) -> Iterator[None]:
        """`with Tensor.no_grad():` this thread's results require no gradient, so `realize` keeps no
        graph for them.

        >>> x = Tensor([1.0], requires_grad=True)
        >>> with Tensor.no_grad():
        ...     print((x * 2).requires_grad)
        False
        """
        old, modes.grad_enabled = modes.grad_enabled, False
        try:
            yield
        finally:
            modes.grad_enabled = old


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
    """The stored float values that a node depends on, not through `cuts`, as a Tensor holds them."""

    def is_stored(n: UOp) -> bool:
        return n.value is not None or not n.src or (n.op is Ops.RESHAPE and is_stored(n.src[0]))

    found = root.toposort(lambda n: n not in cuts and carries_gradient(n) and not is_stored(n))
    return [
        n for n in found if n not in cuts and carries_gradient(n) and is_stored(n) and n.op is not Ops.CONST
    ]


def _positions(order: list[UOp], targets: list[Any]) -> dict[UOp, list[int]]:
    """Where the targets are in a graph: a target is its node, or an older node of the same value, from before
    it was realized or a capture gave its memory another."""
    nodes: dict[UOp, list[int]] = {}
    by_memory: dict[Allocation, tuple[UOp, int]] = {}
    for i, t in enumerate(targets):
        nodes.setdefault(t.uop, []).append(i)
        stored = t.uop
        while stored.op is Ops.RESHAPE:
            stored = stored.src[0]
        if stored.op is Ops.BUFFER:
            by_memory[stored.arg.allocation] = stored, i
    present: dict[UOp, list[int]] = {}
    for n in order:
        if n in nodes:
            present[n] = nodes[n]
            continue
        value = n if n.op is Ops.BUFFER else n.value
        if value is not None and not value.arg.overwritten and value.arg.allocation in by_memory:
            stored, i = by_memory[value.arg.allocation]
            if n is not stored:
                present[n] = [i]
    return present


def _leaves(order: list[UOp]) -> tuple[list[Any], dict[UOp, list[int]]]:
    """The live Tensors whose `.grad` a backward fills (see there), and where their nodes are.

    `order`: the nodes under its root that carry a gradient.
    """
    tensors = [
        t
        for t in live_tensors()
        if t.uop.dtype.is_float
        and t.requires_grad is not False
        and not t._derived
        and (t.requires_grad or not is_constant(t.uop))
    ]
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
    wanted = [i for i, t in enumerate(tensors) if t.requires_grad or i in leaves - computed]
    place = {i: n for n, i in enumerate(wanted)}
    found = {n: [place[i] for i in positions if i in place] for n, positions in present.items()}
    return [tensors[i] for i in wanted], {n: positions for n, positions in found.items() if positions}


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
