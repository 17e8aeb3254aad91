"""Optimizers. A step is lazy until `step` realizes it: parameters and state together, in one Program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polygrad.dtype import dtypes
from polygrad.errors import ArgumentError, GradientError
from polygrad.helpers import dedup
from polygrad.tensor.autograd import drop_unread_gradients
from polygrad.tensor.tensor import Tensor


class Optimizer:
    """The base of optimizers: the Tensors that are trained, and the learning rate `lr`, a Tensor that may be
    assigned.
    """

    def __init__(self, params: Sequence[Tensor], lr: float, device: str | None = None) -> None:
        for x in params:
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
            return [*self._step([p.grad for p in self.params]), *self.params, *self.buffers]

    def _step(self, grads: list[Any]) -> list[Tensor]:
        """Assign to the parameters and to the state; the state."""
        raise GradientError("internal: an optimizer without a step")


class SGD(Optimizer):
    """Stochastic gradient descent, with momentum (Nesterov's if asked), weight decay added to the gradient.

    `classic`: the learning rate scales the gradient before it is added to the momentum.
    """

    def __init__(
        self,
        params: Sequence[Tensor],
        lr: float = 0.001,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        classic: bool = False,
        device: str | None = None,
    ) -> None:
        super().__init__(params, lr, device)
        self.momentum, self.weight_decay, self.nesterov, self.classic = (
            momentum,
            weight_decay,
            nesterov,
            classic,
        )
        self.b = [_zeros(p) for p in self.params] if momentum else []

    def _step(self, grads: list[Any]) -> list[Tensor]:
        for i, (p, g) in enumerate(zip(self.params, grads, strict=True)):
            g = g.cast(_wide(p))
            lr = self.lr.cast(g.dtype)
            if self.weight_decay:
                g = g + p.detach() * self.weight_decay
            if self.classic:
                g = g * lr
            if self.momentum:
                self.b[i].assign(self.b[i] * self.momentum + g)
                g = g + self.b[i] * self.momentum if self.nesterov else self.b[i]
            _write(p, p.detach() - (g if self.classic else g * lr))
        return self.b


class AdamW(Optimizer):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019)."""

    def __init__(
        self,
        params: Sequence[Tensor],
        lr: float = 0.001,
        b1: float = 0.9,
        b2: float = 0.999,
        eps: float = 1e-08,
        weight_decay: float = 0.01,
        device: str | None = None,
    ) -> None:
        super().__init__(params, lr, device)
        self.b1, self.b2, self.eps, self.weight_decay = b1, b2, eps, weight_decay
        # the powers b1^t and b2^t, kept as Tensors so that every step is the same graph
        self.b1_t, self.b2_t = (Tensor([1.0], device=self.device, dtype=dtypes.float32) for _ in range(2))
        self.m, self.v = [_zeros(p) for p in self.params], [_zeros(p) for p in self.params]

    def _step(self, grads: list[Any]) -> list[Tensor]:
        self.b1_t.assign(self.b1_t * self.b1)
        self.b2_t.assign(self.b2_t * self.b2)
        m_scale, v_scale = (1.0 - self.b1_t).reciprocal(), (1.0 - self.b2_t).reciprocal()
        for p, g, m, v in zip(self.params, grads, self.m, self.v, strict=True):
            g = g.cast(m.dtype)
            m.assign(m * self.b1 + g * (1.0 - self.b1))
            v.assign(v * self.b2 + g * g * (1.0 - self.b2))
            up = (m * m_scale) / ((v * v_scale).sqrt() + self.eps)
            old = p.detach()
            if self.weight_decay:
                up = up + old * self.weight_decay
            _write(p, old - up * self.lr)
        return [self.b1_t, self.b2_t, *self.m, *self.v]


def Adam(
    params: Sequence[Tensor],
    lr: float = 0.001,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-08,
    device: str | None = None,
) -> AdamW:
    """Adam (Kingma and Ba, 2015): AdamW without weight decay."""
    return AdamW(params, lr, b1, b2, eps, 0.0, device)


class OptimizerGroup:
    """Several optimizers as one."""

    def __init__(self, *optimizers: Optimizer) -> None:
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
        return [t for o in self.optimizers for t in o.schedule_step()]

    def step(self) -> None:
        """Every optimizer's step, in one Program."""
        tensors = self.schedule_step()
        tensors[0].realize(*tensors[1:])


def _wide(p: Tensor) -> Any:
    """The dtype of a parameter's arithmetic: at least float32."""
    return p.dtype if p.dtype.itemsize >= 4 else dtypes.float32


def _zeros(p: Tensor) -> Tensor:
    """State of a parameter's shape, in memory from the start: the first step is the graph of all steps."""
    dtype = _wide(p)
    zeros = bytes(p.numel() * dtype.itemsize)
    return Tensor(zeros, device=p.device, dtype=dtype, requires_grad=False).reshape(p.shape)


def _write(p: Tensor, value: Tensor) -> None:
    p.assign(value.cast(p.dtype))
