"""LBFGS: a quasi-Newton method, for deterministic functions.

Liu and Nocedal, 1989; the line search is Nocedal and Wright's (2006, algorithms 3.5 and 3.6) with Schmidt's
safeguards (minFunc), as in torch. Its control flow depends on computed numbers, so it cannot be captured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from polygrad.dtype import dtypes
from polygrad.engine.recording import watch
from polygrad.errors import ArgumentError
from polygrad.nn.optimizer import Optimizer, Params, check_numbers, in_range, wide
from polygrad.nn.param_groups import ParamGroup
from polygrad.tensor.tensor import Tensor

_HOST = "INTERP"  # has float64 everywhere
_ARMIJO, _CURVATURE = 1e-4, 0.9  # Wolfe's conditions: c1 and c2


@dataclass(frozen=True, slots=True)
class _Point:
    """A point of a line search: the step length, the loss, its gradient (flat), and its slope along the
    line."""

    t: float
    loss: float
    gradient: Tensor
    slope: float


class LBFGS(Optimizer):
    """The limited-memory method of Broyden, Fletcher, Goldfarb and Shanno, as torch.optim.LBFGS.

    A step gets a function that discards the gradients, computes the loss and its gradients, and returns the
    loss. It makes up to `max_iter` iterations and calls the closure up to `max_eval` times (1.25 * max_iter
    unless given). It ends early if no gradient is over `tolerance_grad`, or if loss and parameters change by
    less than `tolerance_change`. `history_size`: the number of past steps that approximate the curvature.
    `line_search_fn`: None for steps of length `lr`, or 'strong_wolfe'. Only one parameter group. Raises
    ArgumentError.

    >>> w = nn.Parameter(Tensor([1.0, -2.0]))
    >>> optimizer = nn.optim.LBFGS([w], line_search_fn='strong_wolfe')
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((w - 3) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> with Tensor.train():
    ...     loss = optimizer.step(closure)
    >>> [round(x, 3) for x in w.tolist()]
    [3.0, 3.0]
    """

    _options = (
        "max_iter", "max_eval", "tolerance_grad", "tolerance_change", "history_size", "line_search_fn",
    )  # fmt: skip

    def __init__(
        self,
        params: Params,
        lr: float = 1.0,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-07,
        tolerance_change: float = 1e-09,
        history_size: int = 100,
        line_search_fn: str | None = None,
        device: str | None = None,
    ) -> None:
        self.max_iter, self.max_eval = max_iter, max_iter * 5 // 4 if max_eval is None else max_eval
        self.tolerance_grad, self.tolerance_change = tolerance_grad, tolerance_change
        self.history_size, self.line_search_fn = history_size, line_search_fn
        super().__init__(params, lr, device)
        self.n_iter = self.func_evals = 0
        self._t = self._scale = (
            1.0  # of the last iteration: the step length, and the initial guess of the curvature
        )
        self.steps: list[Tensor] = []  # changes of the parameters, flat, and of the gradients
        self.changes: list[Tensor] = []
        self._inverses: list[float] = []  # 1 / (step @ change)
        self.last: list[Tensor] = []  # direction and gradient of the last iteration

    def _check(self, group: ParamGroup) -> None:
        if group.index:
            raise ArgumentError("LBFGS: expected one parameter group, got more")
        in_range("LBFGS: max_iter", group["max_iter"], 1)
        in_range("LBFGS: history_size", group["history_size"], 1)
        check_numbers(group, ("max_eval", "tolerance_grad", "tolerance_change"))
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            raise ArgumentError(
                f"LBFGS: expected line_search_fn 'strong_wolfe' or None, got {group['line_search_fn']!r}"
            )

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Iterate; returns the loss that the first call of `closure` returned.

        `closure` clears the gradients, computes the loss and its gradients, and returns the loss. Raises
        GradientError outside of training mode, CaptureError in a captured function, ArgumentError without a
        closure.
        """
        self._check_mode()
        watch.forbid("a step of LBFGS, which reads numbers", "take it outside of the captured function")
        if closure is None:
            raise ArgumentError("LBFGS.step: expected a closure that computes loss and gradients, got none")
        self._prepare()
        loss_tensor = closure()
        self._iterate(closure, float(loss_tensor.item()), self._gradient())
        return loss_tensor

    def schedule_step(self) -> list[Tensor]:
        """Raises ArgumentError: a step calls its closure, and is never lazy."""
        raise ArgumentError(
            "LBFGS: expected step(closure), outside of captured functions and OptimizerGroups"
        )

    def _iterate(self, closure: Callable[[], Any], loss: float, gradient: Tensor) -> None:
        group = self.param_groups[0]
        max_iter, max_eval, tolerance_grad, tolerance_change, _, search = (group[k] for k in self._options)
        rate, evaluations = group.lr.item(), 1
        self.func_evals += 1
        if _largest(gradient) <= tolerance_grad:
            return
        for i in range(1, max_iter + 1):
            direction = self._direction(gradient, group["history_size"])
            first = self.n_iter == 1
            self._t = min(1.0, 1.0 / gradient.abs().sum().item()) * rate if first else rate
            self.last, before = [direction, gradient], loss
            slope = _dot(gradient, direction)
            if slope > -tolerance_change:
                return
            calls = 0
            if search is not None:
                start, origin = [p.detach().clone() for p in self.params], _Point(0.0, loss, gradient, slope)
                start[0].realize(*start[1:])

                def evaluate(t: float, start: list[Tensor] = start, direction: Tensor = direction) -> _Point:
                    self._move(start, direction, t)
                    loss, gradient = self._evaluate(closure)
                    return _Point(t, loss, gradient, _dot(gradient, direction))

                best_point, calls = _strong_wolfe(
                    evaluate, self._t, origin, _largest(direction), tolerance_change, max_eval - evaluations
                )
                self._t, loss, gradient = best_point.t, best_point.loss, best_point.gradient
                self._move(start, direction, self._t)
            else:
                self._move([p.detach() for p in self.params], direction, self._t)
                if i != max_iter:
                    (loss, gradient), calls = self._evaluate(closure), 1
            evaluations += calls
            self.func_evals += calls
            if i == max_iter or evaluations >= max_eval or _largest(gradient) <= tolerance_grad:
                return
            if _largest(direction) * self._t <= tolerance_change or abs(loss - before) < tolerance_change:
                return

    def _direction(self, gradient: Tensor, history_size: int) -> Tensor:
        """The search direction at a point with this gradient, by the two-loop recursion of L-BFGS."""
        self.n_iter += 1
        if self.n_iter == 1:
            return (-gradient).realize()
        direction, before = self.last
        change, step = (gradient - before).realize(), (direction * self._t).realize()
        curvature = _dot(change, step)
        if curvature > 1e-10:
            self.changes.append(change)
            self.steps.append(step)
            self._inverses.append(1.0 / curvature)
            for entries in (self.changes, self.steps, self._inverses):
                del entries[:-history_size]
            self._scale = curvature / _dot(change, change)
        history = list(zip(self.steps, self.changes, self._inverses, strict=True))
        out, parts = -gradient, []
        for step, change, inverse in reversed(history):
            parts.append(_dot(step, out) * inverse)
            out = (out - change * parts[-1]).realize()
        out = out * self._scale
        for (step, change, inverse), part in zip(history, reversed(parts), strict=True):
            out = (out + step * (part - _dot(change, out) * inverse)).realize()
        return out.realize()

    def _evaluate(self, closure: Callable[[], Any]) -> tuple[float, Tensor]:
        loss = closure()
        return float(loss.item()), self._gradient()

    def _gradient(self) -> Tensor:
        """The gradients of all parameters, flat; zeros where there is none."""
        parts = []
        for p in self.params:
            if p.grad is None:
                parts.append(Tensor.zeros(p.numel(), dtype=wide(p), device=p.device))
            else:
                parts.append(p.grad.detach().reshape(-1).cast(wide(p)))
        flat = parts[0].cat(*parts[1:]) if len(parts) > 1 else parts[0].clone()
        return flat.realize(*[p.grad for p in self.params if p.grad is not None])

    def _move(self, start: list[Tensor], direction: Tensor, t: float) -> None:
        """Set the parameters to `start` + `t` * `direction`."""
        at = 0
        for p, x in zip(self.params, start, strict=True):
            n = int(p.numel())
            p.assign((x + direction[at : at + n].reshape(p.shape) * t).cast(p.dtype))
            at += n
        self.params[0].realize(*self.params[1:])

    # --- checkpoints

    def state_dict(self) -> dict[str, Tensor]:
        """History and counts, to be saved and passed to `load_state_dict`."""
        numbers = [float(self.n_iter), float(self.func_evals), self._t, self._scale, *self._inverses]
        return {**super().state_dict(), "numbers": Tensor(numbers, device=_HOST, dtype=dtypes.float64)}

    def load_state_dict(self, state_dict: Mapping[str, Tensor]) -> None:
        """Restore the state that `state_dict` returned. Raises ArgumentError, ShapeError."""
        state = dict(state_dict)
        if "numbers" not in state or state["numbers"].shape < (4,):
            raise ArgumentError("load_state_dict: expected the state of an LBFGS, with 'numbers', got none")
        n_iter, func_evals, self._t, self._scale, *self._inverses = state.pop("numbers").tolist()
        self.n_iter, self.func_evals = int(n_iter), int(func_evals)
        size = sum(int(p.numel()) for p in self.params)
        for name in ("steps", "changes", "last"):
            count = sum(k.startswith(f"{name}.") for k in state)
            like = [Tensor.zeros(size, dtype=wide(self.params[0]), device=self.device) for _ in range(count)]
            setattr(self, name, like)
        super().load_state_dict(state)


def _strong_wolfe(
    evaluate: Callable[[float], _Point],
    t: float,
    origin: _Point,
    largest: float,
    tolerance_change: float,
    max_evaluations: int,
) -> tuple[_Point, int]:
    """A point along the line from `origin` that meets the strong Wolfe conditions, or the best one in
    `max_evaluations`; and the number of evaluations. `largest`: the greatest magnitude in the direction.
    """

    def is_too_high(x: _Point) -> bool:
        return x.loss > origin.loss + _ARMIJO * x.t * origin.slope

    def is_flat(x: _Point) -> bool:
        return abs(x.slope) <= -_CURVATURE * origin.slope

    before, new = origin, evaluate(t)
    calls, rounds, low, high = 1, 0, origin, origin
    while rounds < max_evaluations:  # bracket
        if is_too_high(new) or (rounds > 1 and new.loss >= before.loss):
            low, high = before, new
            break
        if is_flat(new):
            return new, calls
        if new.slope >= 0:
            low, high = before, new
            break
        t = _cubic_minimum(before, new, new.t + 0.01 * (new.t - before.t), new.t * 10)
        before, new = new, evaluate(t)
        calls, rounds = calls + 1, rounds + 1
    else:
        low, high = origin, new
    low, high = (low, high) if low.loss <= high.loss else (high, low)
    stalled = False
    while rounds < max_evaluations:  # zoom
        left, right = min(low.t, high.t), max(low.t, high.t)
        if (right - left) * largest < tolerance_change:
            break
        t = _cubic_minimum(low, high, left, right)
        margin = 0.1 * (right - left)
        if min(right - t, t - left) < margin:  # too near to an end
            if stalled or t >= right or t <= left:
                t = right - margin if abs(t - right) < abs(t - left) else left + margin
                stalled = False
            else:
                stalled = True
        else:
            stalled = False
        new = evaluate(t)
        calls, rounds = calls + 1, rounds + 1
        if is_too_high(new) or new.loss >= low.loss:
            low, high = (low, new) if low.loss <= new.loss else (new, low)
            continue
        if is_flat(new):
            return new, calls
        if new.slope * (high.t - low.t) >= 0:
            high = low
        low = new
    return low, calls


def _cubic_minimum(a: _Point, b: _Point, low: float, high: float) -> float:
    """The least of the cubic through two points with their slopes, between `low` and `high`.

    Nocedal and Wright, equation 3.59.
    """
    if a.t > b.t:
        a, b = b, a
    if a.t == b.t:
        return (low + high) / 2
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d1 * d1 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2
    d2 = math.sqrt(square)
    return min(max(b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2)), low), high)


def _dot(a: Tensor, b: Tensor) -> float:
    return float((a * b).sum().item())


def _largest(x: Tensor) -> float:
    return float(x.abs().max().item())
