"""The gradients that a captured call reads and sets. A replay runs no Python, so they are kept here.

During a capture, a backward adds to a leaf's `.grad` in its memory, so replays add to it as eager calls do.
If the call sets a leaf's `.grad` to another Tensor or to None, each replay does, too. At the start of each
call, leaves must have the `.grad` with which the captured call began.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from polygrad.capture.guards import Change
from polygrad.engine.recording import Recording
from polygrad.tensor.core.aliasing import memory_under
from polygrad.tensor.core.registry import is_set_aside, live_tensors

_REMEDY = (
    "call zero_grad() and step() in the function too, or keep one gradient: zero_grad(set_to_none=False)"
)


@dataclass(frozen=True, slots=True)
class Gradient:
    """`gradient`, None or a Tensor: the value of `leaf().grad` before the call, or after it."""

    leaf: weakref.ref[Any]
    gradient: Any

    def is_there(self) -> bool:
        """Whether the leaf has this gradient, or does not exist any more."""
        leaf = self.leaf()
        return leaf is None or leaf.grad is self.gradient


class LeftGradients:
    """The gradients of one captured call."""

    __slots__ = ("_before", "_left", "_read")

    def __init__(self) -> None:
        self._before: list[tuple[Any, Any]] = []
        self._read: list[Gradient] = []  # those that it begins with
        self._left: list[Gradient] = []  # those that it sets

    def begin(self, recording: Recording, arguments: Sequence[Any]) -> None:
        """Note the gradients of all leaves other than `arguments`, which differ from call to call. A backward
        adds to these gradients in place."""
        argument_ids = set(map(id, arguments))
        leaves = [t for t in live_tensors() if t._requires_grad and t.is_leaf and id(t) not in argument_ids]
        self._before = [(t, t.grad) for t in leaves]
        recording.gradients.update((id(t), g) for t, g in self._before if g is not None)

    def new_gradients(self) -> list[Any]:
        """The gradients that the call has made."""
        return [t.grad for t, before in self._before if t.grad is not None and t.grad is not before]

    def end(self, recording: Recording) -> None:
        """Note the gradients after the call, when everything is recorded."""
        used_memory = recording.memory()
        for t, before in self._before:
            memory = None if before is None or is_set_aside(before) else memory_under(before.uop)
            is_used = memory is not None and memory.buffer.arg.allocation in used_memory
            if t.grad is not before:
                self._left.append(Gradient(weakref.ref(t), t.grad))
            if is_used or (before is None and t.grad is not None):  # a backward that found None made one
                self._read.append(Gradient(weakref.ref(t), before))
        self._before = []

    def __bool__(self) -> bool:
        return bool(self._read or self._left)

    def is_same(self) -> bool:
        """Whether leaves have the gradients that the captured call began with."""
        return all(g.is_there() for g in self._read)

    def change(self) -> Change | None:
        """The first gradient that differs."""
        for g in self._read:
            leaf = g.leaf()
            if leaf is not None and not g.is_there():
                label = f"the gradient of a Tensor of shape {leaf.shape} that requires one"
                return Change(label, g.gradient, leaf.grad, remedy=_REMEDY)
        return None

    def leave(self) -> None:
        """After a replay: give leaves the gradients that the call gives them."""
        for g in self._left:
            leaf = g.leaf()
            if leaf is not None:
                leaf.grad = g.gradient
