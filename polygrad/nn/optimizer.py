"""The base of optimizers, and several as one.

A step is lazy until `step` realizes it: parameters and state together, in one Program. What changes from step
to step is a Tensor, so that every step is the same graph, and a captured step goes on as an eager loop does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from polygrad.dtype import dtypes
from polygrad.errors import ArgumentError, GradientError, InternalError
from polygrad.helpers import dedup
from polygrad.nn.clipping import clip_grad_norm_, clip_grad_value_
from polygrad.tensor.autograd import drop_unread_gradients
from polygrad.tensor.tensor import Tensor


class _Clipping:
    """What an optimizer does to gradients before it uses them."""

    params: list[Tensor]
    max_norm: float | None = None
    max_value: float | None = None

    def clip_gradients(self, max_norm: float | None = None, max_value: float | None = None) -> None:
        """From now on, scale the gradients of every step so that their 2-norm, of all together, is at most
        `max_norm`, and clamp their elements to ±max_value; None: as they are.

        Part of a captured step, too. Raises ArgumentError for negative numbers.
        """
        for name, x in (("max_norm", max_norm), ("max_value", max_value)):
            if x is not None:
                in_range(f"clip_gradients: {name}", x, 0)
        self.max_norm, self.max_value = max_norm, max_value

    def _clip(self) -> None:
        if self.max_value is not None:
            clip_grad_value_(self.params, self.max_value)
        if self.max_norm is not None:
            clip_grad_norm_(self.params, self.max_norm)


class Optimizer(_Clipping):
    """The base of optimizers: the Tensors that are trained, and the learning rate `lr`, a Tensor that may be
    assigned.

    `initial_lr`: what `lr` was when the first scheduler was made for it. Raises ArgumentError where no
    parameter requires a gradient, and for numbers that make no sense: a negative learning rate, momentum or
    weight decay, moments' decay outside of [0, 1).
    """

    initial_lr: float | None

    def __init__(self, params: Sequence[Tensor], lr: float, device: str | None = None) -> None:
        in_range(f"{type(self).__name__}: lr", lr, 0)
        self.max_norm = self.max_value = self.initial_lr = None
        for x in params:
            if not isinstance(x, Tensor):
                raise ArgumentError(
                    f"{type(self).__name__}: params: expected a sequence of Tensors, got one with a "
                    f"{type(x).__name__}"
                )
            if x.requires_grad is None:
                x.requires_grad = True
        self.params = [x for x in dedup(params) if x.requires_grad]
        self.buffers = [x for x in dedup(params) if not x.requires_grad]
        if not self.params:
            raise ArgumentError(
                "optimizer: expected at least one parameter that requires a gradient, got none"
            )
        self.device = device or self.params[0].device
        self.params[0].realize(*self.params[1:])  # so that even the first step writes in place
        self.lr = Tensor([float(lr)], device=self.device, dtype=dtypes.float32, requires_grad=False)

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for p in self.params:
            p.grad = None

    def step(self) -> None:
        """Change the parameters by their gradients, and compute that.

        Gradients of inputs that neither said `requires_grad` nor were read are dropped: they would have to be
        computed now, from the old parameters. Raises GradientError when one has none.
        """
        tensors = self.schedule_step()
        tensors[0].realize(*tensors[1:])

    def schedule_step(self) -> list[Tensor]:
        """`step`, lazily: the Tensors to realize."""
        if not Tensor.training:
            raise GradientError(
                "optimizer: expected training mode: use `with Tensor.train():` or Tensor.training = True"
            )
        missing = [i for i, p in enumerate(self.params) if p.grad is None]
        if missing:
            raise GradientError(f"optimizer: parameters {missing} have no gradient: call backward() first")
        drop_unread_gradients()
        with Tensor.no_grad():
            self._clip()
            return [*self._step([p.grad for p in self.params]), *self.params, *self.buffers]

    def _step(self, grads: list[Any]) -> list[Tensor]:
        """Assign to the parameters and to the state; the state."""
        raise InternalError(f"{type(self).__name__}: expected an optimizer that defines its step")


class OptimizerGroup(_Clipping):
    """Several optimizers as one."""

    def __init__(self, *optimizers: Optimizer) -> None:
        self.max_norm = self.max_value = None
        self.optimizers = optimizers
        self.params = [p for o in optimizers for p in o.params]

    def __getitem__(self, i: int) -> Optimizer:
        return self.optimizers[i]

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for o in self.optimizers:
            o.zero_grad()

    def schedule_step(self) -> list[Tensor]:
        """Every optimizer's step, lazily: the Tensors to realize."""
        if all(p.grad is not None for p in self.params):
            with Tensor.no_grad():
                self._clip()
        return [t for o in self.optimizers for t in o.schedule_step()]

    def step(self) -> None:
        """Every optimizer's step, in one Program."""
        tensors = self.schedule_step()
        tensors[0].realize(*tensors[1:])


def in_range(what: str, x: float, low: float, below: float = math.inf) -> None:
    """Raises ArgumentError unless low <= x < below; NaN is not."""
    if not isinstance(x, (int, float)) or not low <= x < below:
        bounds = f"a number of at least {low}" if below == math.inf else f"a number in [{low}, {below})"
        raise ArgumentError(f"{what}: expected {bounds}, got {x}")


def check_moments(name: str, b1: float, b2: float, eps: float, weight_decay: float) -> None:
    """Raises ArgumentError unless b1 and b2 are in [0, 1), and the others at least 0."""
    in_range(f"{name}: b1", b1, 0, 1)
    in_range(f"{name}: b2", b2, 0, 1)
    in_range(f"{name}: eps", eps, 0)
    in_range(f"{name}: weight_decay", weight_decay, 0)


def wide(p: Tensor) -> Any:
    """The dtype of a parameter's arithmetic: at least float32."""
    return p.dtype if p.dtype.itemsize >= 4 else dtypes.float32


def zeros(p: Tensor) -> Tensor:
    """State of a parameter's shape, in memory from the start: the first step is the graph of all steps."""
    dtype = wide(p)
    zeros = bytes(p.numel() * dtype.itemsize)
    if isinstance(p.device, tuple):
        whole = Tensor(zeros, device=p.device[0], dtype=dtype, requires_grad=False).reshape(p.shape)
        return whole.shard_like(p).realize()
    return Tensor(zeros, device=p.device, dtype=dtype, requires_grad=False).reshape(p.shape)


def write(p: Tensor, value: Tensor) -> None:
    p.assign(value.cast(p.dtype))
