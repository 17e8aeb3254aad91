"""Gradients that a captured call reads and leaves behind, which a replay, that runs no Python, would not.

A backward adds to the `.grad` that a leaf has, in its memory while a call is captured; so replays add to it,
as eager calls do. Where the call gives a leaf another `.grad`, or takes it away, so does each replay. A
`.grad` that the call began with has to be the same again.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from polygrad.capture.guards import Change
from polygrad.engine.recording import Recording
from polygrad.tensor.core.aliasing import memory_under
from polygrad.tensor.core.registry import live_tensors

_REMEDY = (
    "call zero_grad() and step() in the function too, or keep one gradient: zero_grad(set_to_none=False)"
)


@dataclass(frozen=True, slots=True)
class Gradient:
    """`gradient`, None or a Tensor: what `leaf().grad` is before the call, or after it."""

    leaf: weakref.ref[Any]
    gradient: Any

    def is_there(self) -> bool:
        """Whether the leaf has it, or is no more."""
        leaf = self.leaf()
        return leaf is None or leaf.grad is self.gradient


class LeftGradients:
    """Of one captured call."""

    __slots__ = ("_before", "_left", "_read")

    def __init__(self) -> None:
        self._before: list[tuple[Any, Any]] = []
        self._read: list[Gradient] = []  # what it begins with
        self._left: list[Gradient] = []  # what it sets

    def begin(self, recording: Recording, arguments: Sequence[Any]) -> None:
        """Note the gradients of all leaves but `arguments`, which are others in each call. A backward adds to
        them in place."""
        given = set(map(id, arguments))
        leaves = [t for t in live_tensors() if t.requires_grad and t.is_leaf and id(t) not in given]
        self._before = [(t, t.grad) for t in leaves]
        recording.gradients.update((id(t), g) for t, g in self._before if g is not None)

    def changed(self) -> list[Any]:
        """The gradients that the call has made."""
        return [t.grad for t, before in self._before if t.grad is not None and t.grad is not before]

    def end(self, recording: Recording) -> None:
        """Note what has become of them, when all that the call made is recorded."""
        used = recording.memory()
        for t, before in self._before:
            memory = None if before is None else memory_under(t.grad.uop if t.grad is before else before.uop)
            is_used = memory is not None and memory.buffer.arg.allocation in used
            if t.grad is not before:
                self._left.append(Gradient(weakref.ref(t), t.grad))
            if is_used or (before is None and t.grad is not None):  # a backward that found none began anew
                self._read.append(Gradient(weakref.ref(t), before))
        self._before = []

    def __bool__(self) -> bool:
        return bool(self._read or self._left)

    def is_same(self) -> bool:
        """Whether leaves have the gradients that the captured call began with."""
        return all(g.is_there() for g in self._read)

    def change(self) -> Change | None:
        """The first that is another."""
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
