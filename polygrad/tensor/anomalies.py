"""Finds the origin of a NaN: with `ANOMALY=1` each result and each gradient is computed and checked at once.

While the mode is on, `_call_watched` calls the methods of Tensor. It records which call made which nodes, so
that an error about the gradient of a node can name that call.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from polygrad import gradient
from polygrad.engine.realize import realize
from polygrad.errors import AnomalyError
from polygrad.helpers import Context, env_int
from polygrad.monitor import observe, stop_observing
from polygrad.tensor.core.base import TensorBase
from polygrad.tensor.core.checks import Explain, at_line, has_value, is_immediate, position_text, require
from polygrad.tensor.core.registry import live_tensors
from polygrad.tensor.origins import tensors_in
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp
from polygrad.uop.origins import Origins

_NODES_KEPT = 1 << 13


class _Depth(threading.local):
    """State of a thread. `is_inside`: whether it executes a watched method."""

    is_inside = False


_depth = _Depth()


class _Calls(Origins[str]):
    """Which call made which nodes, those of Tensors that are alive; "": no call made it."""

    def __init__(self) -> None:
        super().__init__()
        self._limit = _NODES_KEPT

    def note(self, root: UOp, origin: str) -> bool:
        is_new = super().note(root, origin)
        if len(self._origins) > self._limit:
            self._forget()
        return is_new

    def _forget(self) -> None:
        alive = UOp.sink(*[t.uop for t in live_tensors()]).toposort()
        self._origins = {n: self._origins[n] for n in alive if n in self._origins}
        self._limit = 2 * len(self._origins) + _NODES_KEPT


_origins = _Calls()


def _call_watched(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call a method of Tensor. If it is the outermost call, look for NaN in its result."""
    if _depth.is_inside:
        return function(*args, **kwargs)
    _depth.is_inside = True
    try:
        if function.__name__ == "__init__":  # data, which no operation made
            return function(*args, **kwargs)
        operands = tensors_in((args, kwargs))
        for x in operands:
            _origins.note(x.uop, "")
        out = function(*args, **kwargs)
        call = f"{function.__name__.strip('_')}{at_line()}"
        for t in tensors_in(args[:1] if out is None else out):
            if t.dtype.is_float and 0 not in t.shape and _origins.note(t.uop, call):
                _require_numbers(t, call, operands)
        return out
    finally:
        _depth.is_inside = False


def _require_numbers(t: Any, call: str, operands: list[Any]) -> None:
    shape = t.shape
    sources = [x for x in operands if x is not t and x.dtype.is_float and 0 not in x.shape]
    if not is_immediate():
        sources = []

    def explain(element: int) -> AnomalyError:
        had = [x for x in sources if x.isnan().any().item()]
        hint = f"; operands of shape {', '.join(str(x.shape) for x in had)} had one before" if had else ""
        return AnomalyError(f"{call}: the result has a NaN at position {position_text(element, shape)}{hint}")

    _look_for_nan(t, explain)


def _look_for_nan(t: Any, explain: Explain) -> None:
    if not has_value(t.uop):
        return
    if is_immediate() and t.uop.op not in GroupOp.Memory:
        realize([t.uop], t._device)  # kept on the node: what is computed of it starts from there
    require(t.isnan(), None, explain)


def _look_at_gradient(tensor_class: type[TensorBase], node: UOp, source: UOp, g: UOp) -> None:
    """Look for NaN in a gradient that flows from one call's nodes to another call's or to a leaf. Nodes of
    unknown origin are always checked."""
    call = _origins.of(node)
    if (call and call == _origins.of(source)) or 0 in g.shape:
        return
    name = call or f"an operation {node.op} that was made before NaN were looked for"

    def explain(element: int) -> AnomalyError:
        return AnomalyError(
            f"the gradient of {name}: what it gives its operand of shape {source.shape} has a NaN at "
            f"position {position_text(element, g.shape)}"
        )

    was_inside, _depth.is_inside = _depth.is_inside, True
    try:
        home: Any = gradient.device_of(g)
        _look_for_nan(tensor_class._of(g, home), explain)
    finally:
        _depth.is_inside = was_inside


def follow_mode(tensor_class: type[TensorBase]) -> None:
    """From now on, while `ANOMALY=1`, watch the methods of `tensor_class`, and gradients."""

    look = functools.partial(_look_at_gradient, tensor_class)

    def follow() -> None:
        is_on = env_int("ANOMALY", 0) > 0
        if is_on is (look in gradient.watch.observers):
            return
        if is_on:
            observe(_call_watched)
            gradient.watch.observers += (look,)
        else:
            _origins.clear()
            stop_observing(_call_watched)
            gradient.watch.observers = tuple(x for x in gradient.watch.observers if x is not look)

    Context.listeners.append(follow)
    follow()
