"""`backward` and `gradient` of Tensors, on top of the table in gradient.py."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Self

from polygrad.engine.normalize import is_uncomputed
from polygrad.engine.recording import watch
from polygrad.errors import GradientError, ShapeError
from polygrad.gradient import apply_hooks, differentiable, gradient, is_freed, is_leaf, uniform_value
from polygrad.helpers import Context
from polygrad.tensor.core.aliasing import announce_write, as_value, cut_gradient
from polygrad.tensor.core.base import TensorBase, broadcast_constant
from polygrad.tensor.core.leaves import above_leaves, check_versions, is_stored, leaves_of, positions, spend
from polygrad.tensor.core.modes import GradMode, modes
from polygrad.tensor.core.registry import changes, live_tensors
from polygrad.uop.args import Hooks
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


class AutogradMixin(TensorBase):
    """Gradients."""

    __slots__ = ()

    @staticmethod
    def detect_anomaly() -> Context:
        """`with Tensor.detect_anomaly():` the first NaN in a result, or in a gradient, is an AnomalyError
        that names the operation and the line: `Context(ANOMALY=1)`, by torch's name for it.

        It is slow, because every operation is computed and checked at once. A function that is captured
        within the block is checked after each of its runs.

        >>> with Tensor.detect_anomaly():
        ...     Tensor([1.0, -1.0]).log()
        Traceback (most recent call last):
        polygrad.errors.AnomalyError: log...: the result has a NaN at position 1
        """
        return Context(ANOMALY=1)

    def gradient(self, *targets: Self, gradient: Self | None = None) -> list[Self]:
        """The gradient of this Tensor with respect to each target, lazy and differentiable again.

        `gradient` is the incoming gradient, of this Tensor's shape; it is needed unless this Tensor is a
        scalar. The gradient is 0 for a target that this Tensor does not depend on, or only through integers
        or `detach`. A value that was computed before a write has the gradient at the old values. A gradient
        that is constant, or piecewise constant (of `abs`, `relu`, `where`), is data: it has
        `requires_grad=False`.

        Raises ShapeError, and GradientError where there is no graph to differentiate: a result is data once
        it is computed, unless one of its inputs has `requires_grad=True`.

        >>> x = Tensor([1.0, 2.0])
        >>> [g.tolist() for g in (x * x).sum().gradient(x)]
        [[2.0, 4.0]]
        """
        for t in targets:
            if not t.dtype.is_float:
                raise GradientError(f"gradient: expected float targets, got {t.dtype}")
        into = self._into(gradient)
        present = positions(self.uop.toposort(), list(targets))
        # If all targets require a gradient, `requires_grad` of this Tensor tells that it does not depend on
        # them.
        has_undeclared = any(t.requires_grad is None for t in targets)
        if has_undeclared and not present and is_stored(self.uop):
            raise GradientError(
                f"gradient: a Tensor of shape {self.shape} has no graph to differentiate: it was computed "
                "from Tensors none of which requires a gradient, and read: use requires_grad=True there"
            )
        grads = self._gradients(list(targets), into, differentiable(self.uop), present)
        uops = [
            broadcast_constant(t.dtype, 0.0, t.shape) if g is None else as_value(g)
            for t, g in zip(targets, grads, strict=True)
        ]
        derived = above_leaves(uops) if modes.grad_enabled else set()
        out = []
        for t, uop in zip(targets, uops, strict=True):
            g = t._of(uop if modes.grad_enabled else cut_gradient(uop), t._device or self._device)
            if self.requires_grad:  # else the graph does not show which Tensors lead to this one
                g._requires_grad = g._derived = uop in derived
            out.append(g)
        return out

    def backward(
        self, gradient: Self | None = None, retain_graph: bool = False, create_graph: bool = False
    ) -> Self:
        """Add the gradient of this Tensor to `.grad` of every leaf that it depends on; returns self.

        `gradient` is the incoming gradient, of this Tensor's shape; it is needed unless this Tensor is a
        scalar. Leaves are the Tensors with `requires_grad=True` that were not computed from others, as the
        parameters of layers. As in tinygrad, live float Tensors with `requires_grad=None`, except constants,
        are leaves too. A result of leaves with `requires_grad=True` keeps its graph, whatever is read or
        written later. A result of Tensors with None is data, and a leaf, once it is computed.

        The gradient is taken at the values that this Tensor was computed from. When memory is overwritten,
        these values are kept for results that may still be differentiated. They are not kept for results
        that `backward` has visited: a second `backward` is then an error, unless the first had
        `retain_graph=True`. `create_graph=True`: the gradients themselves can be differentiated (it implies
        `retain_graph`). Raises ShapeError, and GradientError where this Tensor depends on no leaf.

        >>> x = Tensor([1.0, 2.0], requires_grad=True)
        >>> (x * x).sum().backward().item()
        5.0
        >>> x.grad.tolist()
        [2.0, 4.0]
        """
        into = self._into(gradient)
        order = differentiable(self.uop)
        live = live_tensors()
        leaves, present = leaves_of(order, live)
        if not any(is_leaf(n) or is_freed(n) for n in order) and all(t is self for t in leaves):
            raise GradientError(
                f"backward: no Tensor with requires_grad=True leads to this one of shape {self.shape}: it "
                "was computed from data or constants, under no_grad, or was read before backward; say "
                "requires_grad=True where the parameters are made"
            )
        modes.unread_gradients[:] = [r for r in modes.unread_gradients if r() is not None]
        grads = self._gradients(leaves, into, order, present)
        derived = above_leaves([g for g in grads if g is not None]) if create_graph else set()
        for t, g in zip(leaves, grads, strict=True):
            if g is not None:
                announce_write(None, [t], g)
        for t, g in zip(leaves, grads, strict=True):
            if g is None:
                continue
            new, is_derived = as_value(g), g in derived
            if t.grad is not None:
                is_derived = is_derived or (create_graph and t.grad._derived)
                new = UOp(Ops.ADD, new.dtype, (t.grad.uop, new))
            elif t.requires_grad is None:
                modes.unread_gradients.append(weakref.ref(t))
            total = t._of(new if create_graph else cut_gradient(new), t._device or self._device, None)
            total._requires_grad = total._derived = is_derived
            if t.grad is not None and _is_kept(t) and not create_graph:
                t.grad.assign(total)  # type: ignore[attr-defined]
            else:
                t.grad = total
        if not (retain_graph or create_graph):
            spend(self, order, live)
        return self

    def _into(self, gradient: Self | None) -> UOp:
        """The incoming gradient as a node. Raises GradientError, ShapeError."""
        if not self.dtype.is_float:
            raise GradientError(f"gradient: expected a float tensor to differentiate, got {self.dtype}")
        if gradient is None:
            if self.shape != ():
                raise GradientError(
                    f"gradient: expected a scalar, got shape {self.shape}: sum it, or pass gradient="
                )
            return broadcast_constant(self.dtype, 1.0, ())
        if gradient.shape != self.shape:
            raise ShapeError(f"gradient: expected gradient= of shape {self.shape}, got {gradient.shape}")
        return gradient.uop.cast(self.dtype)

    def _gradients(
        self, targets: list[Any], into: UOp, order: list[UOp], present: dict[UOp, list[int]]
    ) -> list[UOp | None]:
        """The gradient for each target; None for one that is not in the graph.

        `order`: the nodes that carry a gradient. `present`: by node, the indices of the targets that it
        represents. Raises GradientError where a gradient reads memory that was overwritten.
        """
        gradients = gradient(self.uop, into, list(present), order)
        out: list[UOp | None] = [None] * len(targets)
        for n, target_indices in present.items():
            for i in target_indices:
                shape = targets[i].shape
                g = gradients[n].reshape(shape) if n in gradients else None
                old = out[i]
                if g is None:
                    out[i] = old if old is not None else broadcast_constant(targets[i].dtype, 0.0, shape)
                else:
                    out[i] = g if old is None or uniform_value(old) == 0 else UOp(Ops.ADD, g.dtype, (old, g))
        for i, t in enumerate(targets):
            if t._is_marked() and (g := out[i]) is not None:
                out[i] = apply_hooks(g, t._hooks or ())
        check_versions(order, [g for g in out if g is not None])
        return out

    def register_hook(self, hook: Callable[[Self], Self | None]) -> HookHandle:
        """Call `hook` with the gradient of this Tensor whenever `backward` has accumulated all of it. What
        the hook returns, unless None, replaces the gradient. Returns a handle with a method `remove()`.

        For a Tensor that was computed from others, only uses after this call count. Raises GradientError
        when this Tensor does not require a gradient.

        >>> w = Tensor([1.0, 2.0], requires_grad=True)
        >>> handle = w.register_hook(lambda g: g * 10)
        >>> _ = (w * w).sum().backward()
        >>> w.grad.tolist()
        [20.0, 40.0]
        """
        if not self.requires_grad:
            raise GradientError(
                f"register_hook: expected a Tensor that requires a gradient, got requires_grad="
                f"{self.requires_grad}"
            )
        make, device, shape = self._of, self._device, self.shape

        def change(g: UOp) -> UOp:
            replacement = hook(make(g, device))
            if replacement is None:
                return g
            if not isinstance(replacement, TensorBase) or replacement.shape != shape:
                actual = (
                    replacement.shape if isinstance(replacement, TensorBase) else type(replacement).__name__
                )
                raise GradientError(f"hook: expected a Tensor of shape {shape} or None, got {actual}")
            return replacement.uop.cast(g.dtype)

        if self._is_marked():
            hooks = self._hooks = self._hooks or []
        else:
            mark = self.uop.arg
            if not isinstance(mark, Hooks):
                mark = Hooks()
                self.uop = self.uop.detach(mark)
                changes.count += 1
            hooks = mark.hooks
        hooks.append(change)
        return HookHandle(hooks, change)

    def retain_grad(self) -> Self:
        """Let `backward` fill `.grad` of this Tensor although it is not a leaf; returns self.

        >>> w = Tensor([1.0, 2.0], requires_grad=True)
        >>> y = (w * 2).retain_grad()
        >>> _ = (y * y).sum().backward()
        >>> y.grad.tolist()
        [4.0, 8.0]
        """
        if self._derived:
            reference = weakref.ref(self)

            def keep(g: Self) -> None:
                t = reference()
                if t is not None:
                    t.grad = (g if t.grad is None else t.grad._binary(Ops.ADD, g))._detached()

            self.register_hook(keep)
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether this Tensor was not computed from others that require a gradient.

        >>> w = Tensor([1.0], requires_grad=True)
        >>> w.is_leaf, (w * 2).is_leaf
        (True, False)
        """
        return not self._derived

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set `requires_grad`; returns self.

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
        """Whether `requires_grad` is True.

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
        """`with Tensor.train():` this thread is in training mode: dropout is active, BatchNorm updates its
        statistics, optimizers may step. `Tensor.training = True` sets the mode of all threads outside of such
        a block.

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
        """`with Tensor.no_grad():` results of this thread have `requires_grad=False` and keep no graph, as by
        `detach`. `@Tensor.no_grad()` or `@Tensor.no_grad` has this effect during the calls of a function, a
        generator or a coroutine.

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
        """The reverse of `no_grad`, for use within it.

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
        """Whether this thread records gradients, that is, executes no `no_grad` block.

        >>> Tensor.is_grad_enabled()
        True
        """
        return modes.grad_enabled


class HookHandle:
    """What `register_hook` returns."""

    def __init__(self, hooks: list[Callable[[UOp], UOp]], hook: Callable[[UOp], UOp]) -> None:
        self._hooks, self._hook = hooks, hook

    def remove(self) -> None:
        """Stop calling the hook."""
        if self._hook in self._hooks:
            self._hooks.remove(self._hook)


def _is_kept(leaf: Any) -> bool:
    """Whether a function is being captured, and the leaf's gradient existed before the capture."""
    return watch.recording is not None and watch.recording.gradients.get(id(leaf)) is leaf.grad


def drop_unread_gradients() -> None:
    """Forget the lazy gradients that this thread has made for Tensors with `requires_grad=None`.

    This is called before the memory that they read is overwritten. Otherwise they would be computed first.
    """
    for reference in modes.unread_gradients:
        t = reference()
        if t is not None and t.grad is not None and t.requires_grad is None:
            value = t.grad.uop.base
            if value.op is not Ops.BUFFER and is_uncomputed(value):
                t.grad = None
    modes.unread_gradients.clear()
