"""backward and gradient: from Tensors to the table of gradient.py and back."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Self

from polygrad.engine.normalize import uncomputed
from polygrad.engine.recording import watch
from polygrad.errors import GradientError, ShapeError
from polygrad.gradient import differentiable, gradient, hooked, is_freed, is_leaf, uniform_value
from polygrad.helpers import Context
from polygrad.tensor.core.aliasing import as_value, cut
from polygrad.tensor.core.base import TensorBase, filled
from polygrad.tensor.core.leaves import above_leaves, check_versions, is_stored, leaves_of, positions, spend
from polygrad.tensor.core.modes import GradMode, modes
from polygrad.tensor.core.registry import changes, live_tensors
from polygrad.uop.args import Hooks, Leaf
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


class AutogradMixin(TensorBase):
    """Gradients."""

    __slots__ = ()

    @staticmethod
    def detect_anomaly() -> Context:
        """`with Tensor.detect_anomaly():` the first NaN in a result, or in a gradient, is an AnomalyError
        that names the operation and the line: `Context(ANOMALY=1)`, by torch's name for it.

        Every operation is computed at once and looked at, so it is slow. A function that is captured inside
        is looked at after each of its runs.

        >>> with Tensor.detect_anomaly():
        ...     Tensor([1.0, -1.0]).log()
        Traceback (most recent call last):
        polygrad.errors.AnomalyError: log...: the result has a NaN at position 1
        """
        return Context(ANOMALY=1)

    def gradient(self, *targets: Self, gradient: Self | None = None) -> list[Self]:
        """The gradient of this Tensor with respect to each target, lazy and differentiable again.

        `gradient` flows into this Tensor (its shape); needed unless this Tensor is a scalar. A target that
        this Tensor does not depend on, or only through integers or `detach`, has gradient 0. What was
        computed before a write has the gradient at the values that it was computed from. A gradient that is
        constant, be it in pieces (of `abs`, `relu`, `where`), is data: it has `requires_grad=False`.

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
        present = positions(self.uop.toposort(), list(targets))
        # If all targets require a gradient, this Tensor would be known not to depend on them.
        has_undeclared = any(t.requires_grad is None for t in targets)
        if has_undeclared and not present and is_stored(self.uop):
            raise GradientError(
                f"gradient: a Tensor of shape {self.shape} has no graph to differentiate: it was computed "
                "from Tensors none of which requires a gradient, and read: use requires_grad=True there"
            )
        grads = self._gradients(list(targets), into, differentiable(self.uop), present)
        uops = [
            filled(t.dtype, 0.0, t.shape) if g is None else as_value(g)
            for t, g in zip(targets, grads, strict=True)
        ]
        derived = above_leaves(uops) if modes.grad_enabled else set()
        out = []
        for t, uop in zip(targets, uops, strict=True):
            g = t._of(uop if modes.grad_enabled else cut(uop), t._device or self._device)
            if self.requires_grad:  # else it is not known what leads to this Tensor
                g._requires_grad = g._derived = uop in derived
            out.append(g)
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
            if g is None:
                continue
            new, is_derived = as_value(g), g in derived
            if t.grad is not None:
                is_derived = is_derived or (create_graph and t.grad._derived)
                new = UOp(Ops.ADD, new.dtype, (t.grad.uop, new))
            elif t.requires_grad is None:
                modes.unread_gradients.append(weakref.ref(t))
            total = t._of(new if create_graph else cut(new), t._device or self._device, None)
            total._requires_grad = total._derived = is_derived
            if t.grad is not None and _is_kept(t) and not create_graph:
                t.grad.assign(total)  # type: ignore[attr-defined]
            else:
                t.grad = total
        if not (retain_graph or create_graph):
            spend(self, order, live)
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
        for n, wanted in present.items():
            for i in wanted:
                shape = targets[i].shape
                g = found[n].reshape(shape) if n in found else None
                old = out[i]
                if g is None:
                    out[i] = old if old is not None else filled(targets[i].dtype, 0.0, shape)
                else:
                    out[i] = g if old is None or uniform_value(old) == 0 else UOp(Ops.ADD, g.dtype, (old, g))
        for i, t in enumerate(targets):
            if t._is_marked() and (g := out[i]) is not None:
                out[i] = hooked(g, t._role)
        check_versions(order, [g for g in out if g is not None])
        return out

    def register_hook(self, hook: Callable[[Self], Self | None]) -> HookHandle:
        """Have `hook` called with each gradient of this Tensor, when a backward has all of it; what it
        returns, unless None, takes the place of the gradient. A handle, whose `remove()` ends that.

        For what is computed from others it concerns the uses after this call. Raises GradientError when no
        gradient is wanted of this Tensor.

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
            given = hook(make(g, device))
            if given is None:
                return g
            if not isinstance(given, TensorBase) or given.shape != shape:
                got = given.shape if isinstance(given, TensorBase) else type(given).__name__
                raise GradientError(f"hook: expected a Tensor of shape {shape} or None, got {got}")
            return given.uop.cast(g.dtype)

        mark = self.uop.arg
        if not isinstance(mark, (Leaf, Hooks)):
            mark = Hooks()
            self.uop = self.uop.detach(mark)
            changes.count += 1
        mark.hooks.append(change)
        return HookHandle(mark.hooks, change)

    def retain_grad(self) -> Self:
        """Have backward fill `.grad` of this Tensor though it is no leaf; self.

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


class HookHandle:
    """What `register_hook` returns."""

    def __init__(self, hooks: list[Callable[[UOp], UOp]], hook: Callable[[UOp], UOp]) -> None:
        self._hooks, self._hook = hooks, hook

    def remove(self) -> None:
        """Call the hook no more."""
        if self._hook in self._hooks:
            self._hooks.remove(self._hook)


def _is_kept(leaf: Any) -> bool:
    """Whether a function is being captured, and the leaf's gradient is that which it had before."""
    return watch.recording is not None and watch.recording.gradients.get(id(leaf)) is leaf.grad


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
