"""The base of optimizers, and groups of optimizers.

A step is lazy until `step` realizes parameters and state together, in one Program. Values that change from
step to step are Tensors, so that every step has the same graph, and a captured step behaves as an eager loop.

A parameter without a gradient is skipped, as in torch: neither it nor its state changes. So parameters may
have taken different numbers of steps. Parameters that have taken the same steps share a `clock`, the state
that counts steps; the clock is split when some of them are skipped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from polygrad.dtype import dtypes
from polygrad.engine.recording import watch
from polygrad.errors import ArgumentError, CaptureError, GradientError, InternalError
from polygrad.helpers import dedup
from polygrad.nn.clipping import clip_grad_norm_, clip_grad_value_
from polygrad.nn.param_groups import GroupRecord, ParamGroup
from polygrad.nn.parameter import is_buffer
from polygrad.nn.state import get_state_dict, load_state_dict
from polygrad.tensor.autograd import drop_unread_gradients
from polygrad.tensor.core.aliasing import all_or_none, memory_under, storage_of
from polygrad.tensor.core.convert import pack
from polygrad.tensor.core.modes import GradMode
from polygrad.tensor.tensor import Tensor
from polygrad.uop.ops import Ops

# Tensors; or dicts with "params" and the options of that group (see `Optimizer.param_groups`).
Params = Iterable[Any]
Clock = dict[str, Tensor]


@dataclass(frozen=True, slots=True)
class Part:
    """Parameters with gradients that a step treats alike: of one group, with one clock.

    `members`: the position of each in `Optimizer.params`, the parameter and its gradient."""

    group: ParamGroup
    clock: Clock
    members: list[tuple[int, Tensor, Any]]


class _Clipping:
    """Gradient clipping within an optimizer."""

    params: list[Tensor]
    max_norm: float | None = None
    max_value: float | None = None

    def clip_gradients(self, max_norm: float | None = None, max_value: float | None = None) -> None:
        """From now on, scale the gradients of every step so that their joint 2-norm is at most `max_norm`,
        and clamp their elements to ±max_value; None: no limit.

        This also works in captured steps. Raises ArgumentError for negative numbers.

        >>> w = nn.Parameter(Tensor([3.0, 4.0]))
        >>> optimizer = nn.optim.SGD([w], lr=1.0)
        >>> optimizer.clip_gradients(max_norm=1.0)
        >>> with Tensor.train():
        ...     (w * w).sum().backward()
        ...     optimizer.step()
        <Tensor () float32 on CPU, lazy: tolist() shows it>
        >>> [round(x, 4) for x in w.tolist()]
        [2.4, 3.2]
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
    """The base of optimizers: the trained Tensors, and the learning rate `lr`, a Tensor that may be assigned.

    `params`: Tensors, or dicts as {"params": Tensors, "lr": 0.01} with the options of a parameter group; `lr`
    is the rate of the first group. A frozen Tensor (`requires_grad=False`) is trained as soon as it requires
    a gradient. `initial_lr`: the value of `lr` when its first scheduler was made. Raises ArgumentError if no
    parameter requires a gradient, for a buffer (`nn.Buffer`), and for invalid numbers: a negative learning
    rate, momentum or weight decay, a decay of moments outside of [0, 1).

    >>> w, b = nn.Parameter(Tensor([1.0])), nn.Parameter(Tensor([0.0]))
    >>> optimizer = nn.optim.SGD([{'params': [w], 'lr': 0.5}, {'params': [b]}], lr=0.1)
    >>> [round(group['lr'].item(), 2) for group in optimizer.param_groups]
    [0.5, 0.1]
    """

    # The options that a group may override: attributes of the optimizer.
    _options: tuple[str, ...] = ()
    # The Tensors of a clock, of shape (1,), by name, with their values before the first step.
    _counters: Mapping[str, float] = {}
    # The state of parameters: attributes that are lists as long as `params`, or empty.
    _state_names: tuple[str, ...] = ()

    def __init__(self, params: Params, lr: float, device: str | None = None) -> None:
        self.max_norm = self.max_value = None
        self._first_lr = lr
        self.params: list[Tensor] = []
        self.buffers: list[Tensor] = []
        self.group_lr: dict[int, Tensor] = {}
        self.clocks: dict[int, Clock] = {}
        self._clock_of: list[int] = []
        self._records: list[GroupRecord] = []
        in_range(f"{type(self).__name__}: lr", lr, 0)
        groups = self._read_groups(params)
        trained = [x for g in groups for x in g["params"] if _is_trained(x)]
        if not trained:
            raise ArgumentError("optimizer: no parameter requires a gradient")
        self.device = device or trained[0].device
        trained[0].realize(*trained[1:])  # so that even the first step writes in place
        for g in groups:
            self._add(g)

    # --- groups

    @property
    def param_groups(self) -> list[ParamGroup]:
        """The parameter groups. Their options may be changed: `group["lr"] = 0.01`."""
        return [ParamGroup(self, i) for i in range(len(self._records))]

    @property
    def initial_lr(self) -> float | None:
        """The value of `lr` when its first scheduler was made."""
        return self._records[0].initial_lr

    def add_param_group(self, group: Mapping[str, Any]) -> None:
        """Train more Tensors: {"params": Tensors, "lr": 0.01, ...}. Other options are the optimizer's. Raises
        ArgumentError, also for Tensors that it trains already.
        """
        (new_group,) = self._read_groups([group])
        new = [x for x in new_group["params"] if _is_trained(x)]
        if new:
            new[0].realize(*new[1:])
        self._add(new_group)

    def _read_groups(self, params: Params) -> list[dict[str, Any]]:
        """`params` as a list of groups, each with a list of parameters. Raises ArgumentError."""
        name = type(self).__name__
        if isinstance(params, (Tensor, Mapping)):
            raise ArgumentError(f"{name}: params: expected a sequence of Tensors or of groups, got one alone")
        items = list(params)
        groups = [dict(x) for x in items] if items and isinstance(items[0], Mapping) else [{"params": items}]
        known_ids = {id(x) for record in self._records for x in record.params}
        for i, g in enumerate(groups):
            if "params" not in g:
                raise ArgumentError(f"{name}: param group {i}: expected 'params', got {list(g)}")
            group_params = g["params"]
            group_params = [group_params] if isinstance(group_params, Tensor) else list(group_params)
            for x in group_params:
                if not isinstance(x, Tensor):
                    raise ArgumentError(
                        f"{name}: params: expected a sequence of Tensors, got one with a {type(x).__name__}"
                    )
                if is_buffer(x):
                    raise ArgumentError(
                        f"{name}: params: expected parameters, got a buffer {x.shape}, which is not trained: "
                        "use nn.state.get_parameters(model)"
                    )
                if x.requires_grad is None and x.dtype.is_float:
                    x.requires_grad = True
            g["params"] = dedup(group_params)
            if not known_ids.isdisjoint(map(id, g["params"])):
                raise ArgumentError(f"{name}: param group {i}: expected Tensors that are in no other group")
            known_ids.update(map(id, g["params"]))
        return groups

    def _add(self, group: dict[str, Any]) -> None:
        index, params = len(self._records), group["params"]
        numbers = {k: v for k, v in group.items() if k not in ("params", "lr", "initial_lr")}
        rate = group.get("lr", self._first_lr)
        rate = float(rate.item()) if isinstance(rate, Tensor) else rate
        in_range(f"{type(self).__name__}: lr", rate, 0)
        self._records.append(GroupRecord(params, {}, float(rate)))
        try:
            ParamGroup(self, index).set_numbers(numbers)
        except ArgumentError:
            self._records.pop()
            raise
        lr = Tensor([float(rate)], device=self.device, dtype=dtypes.float32, requires_grad=False)
        if index:
            self.group_lr[index] = lr
        else:
            self.lr = lr
        if not index:
            for name, start in self._counters.items():
                setattr(self, name, self._counter(start))
        self._find_params(self._new_clock() if index else 0)

    def _check(self, group: ParamGroup) -> None:
        """Raises ArgumentError for invalid options of a group."""

    # --- trained parameters and their state

    def _find_params(self, clock: int) -> None:
        """Set `params` to the Tensors that require a gradient, in order, and `buffers` to the others. New
        parameters get initial state, and clock number `clock`.
        """
        clock_by_id = {id(p): c for p, c in zip(self.params, self._clock_of, strict=True)}
        all_params = [x for record in self._records for x in record.params]
        trained = [x for x in all_params if id(x) in clock_by_id or _is_trained(x)]
        for name in self._state_names:
            state = self.__dict__.setdefault(name, [])
            if self._keeps(name) and len(state) == len(self.params):
                for i, x in enumerate(trained):
                    if id(x) not in clock_by_id:
                        state.insert(i, self._initial(name, x))
        self.params = trained
        self.buffers = [x for x in all_params if all(x is not p for p in trained)]
        self._clock_of = [clock_by_id.get(id(p), clock) for p in trained]

    def _keeps(self, name: str) -> bool:
        """Whether any group's options need the state `name`."""
        return True

    def _initial(self, name: str, p: Tensor) -> Tensor:
        """The state `name` of a parameter before its first step."""
        return zeros(p)

    def _group_of(self, p: Tensor) -> ParamGroup:
        return next(g for g in self.param_groups if any(p is x for x in g.params))

    def _prepare(self) -> None:
        """Add parameters that were frozen and have a gradient now, and state that changed options need."""
        if any(_is_trained(x) and x.grad is not None for x in self.buffers):
            self._find_params(self._new_clock())
        for name in self._state_names:
            state = getattr(self, name)
            if self._keeps(name) and not state:
                state.extend(self._initial(name, p) for p in self.params)

    # --- clocks

    def _clock(self, number: int) -> Clock:
        return self.clocks[number] if number else {name: getattr(self, name) for name in self._counters}

    def _new_clock(self, like: Clock | None = None) -> int:
        """Make a clock, a copy of `like` or a new one; return its number."""
        if not self._counters:
            return 0
        number = len(self.clocks) + 1
        self.clocks[number] = {
            name: self._counter(start) if like is None else _copy_counter(like[name])
            for name, start in self._counters.items()
        }
        return number

    def _counter(self, start: float) -> Tensor:
        return keep_in_memory(Tensor([start], device=self.device, dtype=dtypes.float32, requires_grad=False))

    def _split_clocks(self) -> None:
        """Give skipped parameters a clock that is separate from the others'."""
        for number in range(len(self.clocks) + 1 if self._counters else 0):
            positions = [i for i, c in enumerate(self._clock_of) if c == number]
            skipped = [i for i in positions if self.params[i].grad is None]
            if skipped and len(skipped) < len(positions):
                apart = self._new_clock(self._clock(number))
                for i in skipped:
                    self._clock_of[i] = apart

    def _parts(self) -> list[Part]:
        members: dict[tuple[int, int], list[tuple[int, Tensor, Any]]] = {}
        groups = self.param_groups
        group_of = {id(p): g.index for g in groups for p in g.params}
        for i, (p, clock) in enumerate(zip(self.params, self._clock_of, strict=True)):
            if p.grad is not None:
                members.setdefault((group_of[id(p)], clock), []).append((i, p, p.grad))
        return [Part(groups[g], self._clock(c), part_members) for (g, c), part_members in members.items()]

    # --- steps

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Discard the gradients; with `set_to_none=False`, set existing ones to 0, in place.

        >>> w = nn.Parameter(Tensor([1.0]))
        >>> optimizer = nn.optim.SGD([w], lr=0.1)
        >>> _ = (w * w).sum().backward()
        >>> optimizer.zero_grad(set_to_none=False)
        >>> w.grad.tolist()
        [0.0]
        """
        for p in self.params:
            if set_to_none or p.grad is None:
                p.grad = None
            elif p.grad.requires_grad:
                p.grad = p.grad.detach().zeros_like()
            else:
                p.grad.assign(p.grad.zeros_like())

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters by their gradients, and compute the update. If `closure` is given, it is
        called first, and its result is returned.

        Parameters without a gradient are skipped. Unread gradients of inputs with `requires_grad=None` are
        dropped, as they would have to be computed now, from the old parameters. Raises GradientError outside
        of training mode, and when no parameter has a gradient.

        >>> w = nn.Parameter(Tensor([1.0]))
        >>> optimizer = nn.optim.SGD([w], lr=0.1)
        >>> with Tensor.train():
        ...     (w * w).sum().backward()
        ...     optimizer.step()
        <Tensor () float32 on CPU, lazy: tolist() shows it>
        >>> [round(x, 4) for x in w.tolist()]
        [0.8]
        """
        self._check_mode()
        loss = None if closure is None else closure()
        tensors = self.schedule_step()
        tensors[0].realize(*tensors[1:])
        return loss

    def schedule_step(self) -> list[Tensor]:
        """`step`, lazily: returns the Tensors to realize.

        >>> w = nn.Parameter(Tensor([1.0]))
        >>> optimizer = nn.optim.SGD([w], lr=0.5)
        >>> _ = (w * 1.0).sum().backward()
        >>> with Tensor.train():
        ...     updates = optimizer.schedule_step()
        >>> [t.tolist() for t in updates]
        [[0.5]]
        """
        self._check_mode()
        self._prepare()
        if all(p.grad is None for p in self.params):
            raise GradientError(
                f"{type(self).__name__}: expected gradients, got none for any of {len(self.params)} "
                "parameters: call backward() on a loss computed from them, outside of Tensor.no_grad()"
            )
        drop_unread_gradients()
        return all_or_none(self._write_step)  # an interrupted step leaves no state ahead of parameters

    @GradMode(False)
    def _write_step(self) -> list[Tensor]:
        self._clip()
        self._split_clocks()
        state = [t for part in self._parts() for t in self._step(part)]
        return [*state, *self.params, *self.buffers]

    def _check_mode(self) -> None:
        if not Tensor.training:
            raise GradientError(
                f"{type(self).__name__}.step: expected training mode, got Tensor.training = False: put the "
                "loop in `with Tensor.train():`, or set Tensor.training = True, which dropout and BatchNorm "
                "look at, too"
            )

    def _step(self, part: Part) -> list[Tensor]:
        """Assign to the parameters of a part, its clock and its state; return clock and state."""
        raise InternalError(f"{type(self).__name__}: expected an optimizer that defines its step")

    # --- checkpoints

    def state_dict(self) -> dict[str, Tensor]:
        """The state that steps change besides the parameters, and learning rates; other options are not
        included. To be saved (`nn.state.safe_save`) and passed to `load_state_dict`.

        >>> state = nn.optim.SGD([nn.Parameter(Tensor([1.0]))], lr=0.5).state_dict()
        >>> state['lr'].item()
        0.5
        """
        out = self._own_state()
        if self.clocks:
            out["clock_of"] = Tensor(self._clock_of, dtype=dtypes.int32)
        first = [g.initial_lr for g in self._records if g.initial_lr is not None]
        if len(first) == len(self._records):
            out["initial_lr"] = Tensor(first, dtype=dtypes.float32)
        return out

    def _own_state(self) -> dict[str, Tensor]:
        state: dict[str, Tensor] = get_state_dict(self)
        return {k: t for k, t in state.items() if k.split(".")[0] not in ("params", "buffers")}

    def load_state_dict(self, state_dict: Mapping[str, Tensor]) -> None:
        """Restore the state that `state_dict` returned for an optimizer with the same number of parameters,
        in the same order.

        Raises ArgumentError, ShapeError.

        >>> state = nn.optim.SGD([nn.Parameter(Tensor([1.0]))], lr=0.5).state_dict()
        >>> optimizer = nn.optim.SGD([nn.Parameter(Tensor([2.0]))], lr=0.1)
        >>> optimizer.load_state_dict(state)
        >>> optimizer.lr.item()
        0.5
        """
        state = dict(state_dict)
        clock_of, first = state.pop("clock_of", None), state.pop("initial_lr", None)
        clocks = [0] * len(self.params) if clock_of is None else clock_of.tolist()
        if len(clocks) != len(self.params):
            raise ArgumentError(
                f"load_state_dict: expected the state of {len(self.params)} parameters, got {len(clocks)}"
            )
        while len(self.clocks) < max(clocks):
            self._new_clock()
        self._clock_of = clocks
        load_state_dict(self._own_state(), state, verbose=False)
        for record, value in zip(self._records, [] if first is None else first.tolist(), strict=False):
            record.initial_lr = value


class OptimizerGroup(_Clipping):
    """Several optimizers that step together.

    >>> w, b = nn.Parameter(Tensor([1.0])), nn.Parameter(Tensor([0.0]))
    >>> optimizer = nn.optim.OptimizerGroup(nn.optim.SGD([w], lr=0.1), nn.optim.Adam([b], lr=0.1))
    >>> with Tensor.train():
    ...     (w * 3 + b).sum().backward()
    ...     optimizer.step()
    <Tensor () float32 on CPU, lazy: tolist() shows it>
    >>> [round(p.item(), 2) for p in (w, b)]
    [0.7, -0.1]
    """

    def __init__(self, *optimizers: Optimizer) -> None:
        self.max_norm = self.max_value = None
        self.optimizers = optimizers
        self.params = [p for o in optimizers for p in o.params]

    def __getitem__(self, i: int) -> Optimizer:
        return self.optimizers[i]

    @property
    def param_groups(self) -> list[ParamGroup]:
        """The parameter groups of all optimizers."""
        return [g for o in self.optimizers for g in o.param_groups]

    @property
    def lr(self) -> Tensor:
        """The learning rate of the first optimizer. What is assigned, a number or a Tensor of one element, is
        written to the rates of all parameter groups. Raises ArgumentError for a number below 0."""
        return self.optimizers[0].lr

    @lr.setter
    def lr(self, value: Any) -> None:
        for group in self.param_groups:
            group["lr"] = value

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Discard the gradients; with `set_to_none=False`, set existing ones to 0."""
        for o in self.optimizers:
            o.zero_grad(set_to_none)

    def schedule_step(self) -> list[Tensor]:
        """Every optimizer's step, lazily: returns the Tensors to realize. Optimizers without gradients are
        skipped."""
        with Tensor.no_grad():
            self._clip()
        ready = [o for o in self.optimizers if any(p.grad is not None for p in (*o.params, *o.buffers))]
        return [t for o in ready or self.optimizers for t in o.schedule_step()]

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Every optimizer's step, in one Program. If `closure` is given, it is called first, and its result
        is returned. Raises GradientError.
        """
        loss = None if closure is None else closure()
        tensors = self.schedule_step()
        tensors[0].realize(*tensors[1:])
        return loss

    def state_dict(self) -> dict[str, Tensor]:
        """The optimizers' states, by number: `0.lr`."""
        return {f"{i}.{k}": t for i, o in enumerate(self.optimizers) for k, t in o.state_dict().items()}

    def load_state_dict(self, state_dict: Mapping[str, Tensor]) -> None:
        """Restore the state that `state_dict` returned. Raises ArgumentError, ShapeError."""
        for i, o in enumerate(self.optimizers):
            start = f"{i}."
            o.load_state_dict({k[len(start) :]: t for k, t in state_dict.items() if k.startswith(start)})


def in_range(what: str, x: float, low: float, below: float = math.inf) -> None:
    """Raises ArgumentError unless low <= x < below, which is false for NaN."""
    if not isinstance(x, (int, float)) or not low <= x < below:
        bounds = f"a number of at least {low}" if below == math.inf else f"a number in [{low}, {below})"
        raise ArgumentError(f"{what}: expected {bounds}, got {x}")


def check_numbers(group: ParamGroup, names: Iterable[str]) -> None:
    """Raises ArgumentError unless the numbers of a group are at least 0."""
    for name in names:
        in_range(f"{group.owner}: {name}", group[name], 0)


def check_moments(group: ParamGroup) -> None:
    """Raises ArgumentError unless b1 and b2 are in [0, 1), and the others at least 0."""
    in_range(f"{group.owner}: b1", group["b1"], 0, 1)
    in_range(f"{group.owner}: b2", group["b2"], 0, 1)
    check_numbers(group, ("eps", "weight_decay"))


def decays(b1: float, b2: float, betas: tuple[float, float] | None) -> tuple[float, float]:
    """b1 and b2, or torch's name for both."""
    if betas is None:
        return b1, b2
    if len(betas) != 2:
        raise ArgumentError(f"betas: expected two numbers, b1 and b2, got {betas}")
    return betas[0], betas[1]


def wide(p: Tensor) -> Any:
    """The dtype of a parameter's arithmetic: at least float32."""
    return p.dtype if p.dtype.itemsize >= 4 else dtypes.float32


def zeros(p: Tensor, value: float = 0.0) -> Tensor:
    """State of a parameter's shape, `value` everywhere, stored in memory so that the first step has the same
    graph as later ones."""
    dtype = wide(p)
    raw = bytes(pack([value], dtype)) * p.numel()  # written by the host, without a launch
    is_sharded = isinstance(p.device, tuple)
    home = p.device[0] if is_sharded else p.device
    out = Tensor(raw, device=home, dtype=dtype, requires_grad=False).reshape(p.shape)
    return keep_in_memory(out.shard_like(p).realize() if is_sharded else out)


def write(p: Tensor, value: Tensor) -> None:
    value = value.cast(p.dtype)
    p.assign(value if p.ndim else value.reshape(()))  # rates have one axis, and so has the update of a scalar


def keep_in_memory(state: Tensor) -> Tensor:
    """`state`, made during a capture, as memory that persists between calls."""
    if watch.recording is not None:
        watch.recording.storages.add(storage_of(state))
    return state


def _copy_counter(counter: Tensor) -> Tensor:
    """A copy of a counter. Raises CaptureError if its value is not known yet."""
    if watch.recording is None:
        return counter.clone().realize()
    memory = memory_under(counter.uop)
    if memory is None or memory.op is not Ops.BUFFER or isinstance(counter.device, tuple):
        raise CaptureError(
            "captured function: expected the same parameters to have gradients in all steps of one "
            "optimizer: take one such step before it is captured, or use an optimizer for each"
        )
    raw = bytes(memory.arg.read())
    return keep_in_memory(Tensor(raw, counter.device, counter.dtype, requires_grad=False))


def _is_trained(x: Tensor) -> bool:
    return x.requires_grad is not False and x.dtype.is_float
