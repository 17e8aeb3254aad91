"""The base of optimizers, and several as one.

A step is lazy until `step` realizes it: parameters and state together, in one Program. What changes from step
to step is a Tensor, so that every step is the same graph, and a captured step goes on as an eager loop does.
"""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Iterator, Mapping, Sequence
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

    def __new__(cls, params: Any = (), *args: Any, **kwargs: Any) -> Any:
        """Of groups of parameters, dicts with "params" and other arguments, one optimizer for each."""
        if not isinstance(params, Sequence) or not params or not all(isinstance(g, Mapping) for g in params):
            return object.__new__(cls)
        names = list(inspect.signature(cls).parameters)[1:]
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        for group in params:
            unknown = [k for k in group if k != "params" and k not in names]
            if "params" not in group or unknown:
                raise ArgumentError(
                    f"{cls.__name__}: expected groups with 'params' and of {', '.join(names)}, got one with "
                    f"{', '.join(map(repr, group))}"
                )
        return OptimizerGroup(*[cls(**{**given, **group}) for group in params])

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
        # parameters that did not take part in all steps: which of `_late` counts theirs, from 1 on
        self._cohorts, self._late = [0] * len(self.params), list[dict[str, Tensor]]()
        self.params[0].realize(*self.params[1:])  # so that even the first step writes in place
        self.lr = Tensor([float(lr)], device=self.device, dtype=dtypes.float32, requires_grad=False)

    @property
    def param_groups(self) -> list[ParamGroup]:
        """Parameters and numbers of the optimizer, by name; the next step sees `group["lr"] = 0.1`."""
        return [ParamGroup(self)]

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for p in self.params:
            p.grad = None

    def step(self) -> None:
        """Change the parameters by their gradients, and compute that.

        Parameters without a gradient are left as they are, with their state. Gradients of inputs that neither
        said `requires_grad` nor were read are dropped: they would have to be computed now, from the old
        parameters. Raises GradientError when none has a gradient.
        """
        tensors = self.schedule_step()
        tensors[0].realize(*tensors[1:])

    def schedule_step(self) -> list[Tensor]:
        """`step`, lazily: the Tensors to realize."""
        if not Tensor.training:
            raise GradientError(
                "optimizer: expected training mode: use `with Tensor.train():` or Tensor.training = True"
            )
        active = [i for i, p in enumerate(self.params) if p.grad is not None]
        if not active:
            raise GradientError("optimizer: none of the parameters has a gradient: call backward() first")
        drop_unread_gradients()
        with Tensor.no_grad():
            self._clip()
            if len(active) == len(self.params) and not self._late:
                state = self._step([p.grad for p in self.params])
            else:
                state = self._step_some(active)
        return [*state, *self.params, *self.buffers]

    def _step_some(self, active: list[int]) -> list[Tensor]:
        """`_step` of the parameters `active`. Those that have taken part in the same steps share what counts
        them; it is copied when some of them stay behind."""
        state: list[Tensor] = []
        for k in range(len(self._late) + 1):
            members = [i for i, cohort in enumerate(self._cohorts) if cohort == k]
            on = [i for i in members if i in active]
            if not on:
                continue
            if len(on) < len(members):
                k = len(self._late) + 1
                self._late.append(
                    {name: t.clone() for name, t in self._counters(self._cohorts[on[0]]).items()}
                )
                for i in on:
                    self._cohorts[i] = k
            part = copy.copy(self)
            for name, value in vars(self).items():
                if isinstance(value, list) and len(value) == len(self.params) and name != "buffers":
                    setattr(part, name, [value[i] for i in on])
            for name, t in self._counters(k).items():
                setattr(part, name, t)
            state += part._step([p.grad for p in part.params])
        return state

    def _counters(self, cohort: int) -> dict[str, Tensor]:
        """The Tensors that say how many steps a cohort of parameters has taken, by name."""
        if cohort > 0:
            return self._late[cohort - 1]
        return {name: x for name, x in vars(self).items() if isinstance(x, Tensor) and name != "lr"}

    def _step(self, grads: list[Any]) -> list[Tensor]:
        """Assign to the parameters and to the state; the state."""
        raise InternalError(f"{type(self).__name__}: expected an optimizer that defines its step")


class ParamGroup(Mapping[str, Any]):
    """What an optimizer does with its parameters, by name, as a group of torch's."""

    def __init__(self, optimizer: Optimizer) -> None:
        self._optimizer = optimizer

    def _numbers(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self._optimizer).items() if isinstance(v, (int, float)) and k[0] != "_"}

    def __getitem__(self, name: str) -> Any:
        if name == "params":
            return self._optimizer.params
        return float(self._optimizer.lr.item()) if name == "lr" else self._numbers()[name]

    def __setitem__(self, name: str, value: float) -> None:
        """Raises ArgumentError for a name that is no number of the optimizer."""
        if name == "lr":
            in_range("lr", value, 0)
            self._optimizer.lr.assign(self._optimizer.lr.const_like(float(value))).realize()
        elif name in self._numbers():
            setattr(self._optimizer, name, value)
        else:
            raise ArgumentError(f"param_groups: expected one of {', '.join(self)}, got {name!r}")

    def __iter__(self) -> Iterator[str]:
        return iter(["params", "lr", *self._numbers()])

    def __len__(self) -> int:
        return 2 + len(self._numbers())


class OptimizerGroup(_Clipping):
    """Several optimizers as one."""

    def __init__(self, *optimizers: Optimizer) -> None:
        self.max_norm = self.max_value = None
        self.optimizers = optimizers
        self.params = [p for o in optimizers for p in o.params]

    def __getitem__(self, i: int) -> Optimizer:
        return self.optimizers[i]

    @property
    def param_groups(self) -> list[ParamGroup]:
        """Of each optimizer, its parameters and numbers by name."""
        return [group for o in self.optimizers for group in o.param_groups]

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for o in self.optimizers:
            o.zero_grad()

    def schedule_step(self) -> list[Tensor]:
        """Every optimizer's step, lazily: the Tensors to realize."""
        with Tensor.no_grad():
            self._clip()
        stepping = [o for o in self.optimizers if any(p.grad is not None for p in o.params)]
        if not stepping:
            raise GradientError("optimizer: none of the parameters has a gradient: call backward() first")
        return [t for o in stepping for t in o.schedule_step()]

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


def decays(b1: float, b2: float, betas: Sequence[float] | None) -> tuple[float, float]:
    """b1 and b2, or both as torch's `betas`. Raises ArgumentError unless these are two."""
    if betas is None:
        return b1, b2
    if len(betas) != 2:
        raise ArgumentError(f"betas: expected two numbers, b1 and b2, got {betas!r}")
    return betas[0], betas[1]


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
