"""The live Tensors, in the order in which they were made.

Before memory is overwritten, the engine looks here for lazy values that still read it. While a function is
captured, the Tensors that it has not used yet are set aside.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from polygrad.helpers import set_all

_serial = itertools.count(1).__next__
_alive: dict[weakref.ref[Any], int] = {}  # in the order in which they were made, each with its serial number
_forget: Any = _alive.pop


@dataclass(slots=True)
class _Changes:
    """`count`: the number of times that a live Tensor got another node."""

    count: int = 0


changes = _Changes()


def register(tensor: Any) -> None:
    """Remember `tensor` for as long as it lives."""
    _alive[weakref.ref(tensor, _forget)] = _serial()


def newest() -> int:
    """The serial number of the youngest live Tensor; 0 when there is none."""
    while True:
        try:
            return next(reversed(_alive.values()), 0)
        except RuntimeError:  # a Tensor of another thread went in between
            continue


def live_tensors(since: int = 0) -> list[Any]:
    """Every Tensor alive with a serial number above `since`, except those that are set aside."""
    aside = _Aside.current
    if aside is not None and since < aside.newest:
        met = sorted((serial, r) for r in aside.met if (serial := _alive.get(r, 0)) > since)
        return [t for _, r in met if (t := r()) is not None] + live_tensors(aside.newest)
    if not since:
        return [t for r in list(_alive) if (t := r()) is not None]
    while True:
        try:
            entries = list(itertools.takewhile(lambda item: item[1] > since, reversed(_alive.items())))
        except RuntimeError:  # a Tensor of another thread went in between
            continue
        return [t for r, _ in entries if (t := r()) is not None]


class SetAside:
    """Between `begin` and `end` all live Tensors but those that are `present` are set aside.

    The `uop` of a Tensor that is set aside is empty. When this thread reads it, the Tensor gets its node
    back, is listed among the live Tensors from then on, and `meet` is called with it. So what the block does
    not use costs nothing but this. At the end all others get their nodes back.

    `newest`: the serial number of the youngest Tensor that is older than the block. `met`: references to the
    older ones that are not set aside.
    """

    def __init__(self, meet: Callable[[Any], None]) -> None:
        self.newest = newest()
        self.met: list[weakref.ref[Any]] = []
        self._nodes: dict[int, Any] = {}  # of the Tensors that are set aside, by id
        self._references: dict[int, weakref.ref[Any]] = {}
        self._meet, self._thread = meet, threading.get_ident()
        self._outer: SetAside | None = None

    def begin(self, present: Iterable[Any]) -> None:
        """Set all live Tensors aside but `present`; none if it raises."""
        references = list(_alive)
        tensors = [t for r in references if (t := r()) is not None]
        ids = list(map(id, tensors))
        alive = [r for r in references if r() is not None]
        nodes = [t.uop for t in tensors]
        self._references, self._nodes = dict(zip(ids, alive, strict=True)), dict(zip(ids, nodes, strict=True))
        self._outer, _Aside.current = _Aside.current, self
        try:
            deque(map(delattr, tensors, itertools.repeat("uop")), maxlen=0)
            for tensor in present:
                self._bring_back(tensor)
        except BaseException:
            self.end()
            raise

    def end(self) -> None:
        """Give all others their nodes back. May be called again, as after an exception at its beginning."""
        tensors = [t for t in self.tensors() if id(t) in self._nodes]
        nodes = [self._nodes[id(t)] for t in tensors]
        set_all(tensors, itertools.repeat("uop"), nodes)
        if _Aside.current is self:
            _Aside.current = self._outer
        self._nodes.clear()
        self._references.clear()
        self._meet = _meet_nothing  # the other one may refer to this object

    def __contains__(self, tensor: Any) -> bool:
        reference = self._references.get(id(tensor))
        return reference is not None and reference() is tensor

    def tensors(self) -> list[Any]:
        """The Tensors that are set aside."""
        return [t for r in self._references.values() if (t := r()) is not None]

    def node_of(self, tensor: Any) -> Any:
        """The node of a Tensor that is set aside."""
        return self._nodes[id(tensor)]

    def meet(self, tensor: Any) -> Any:
        """The node of a Tensor that is set aside, and, on the thread of the block, no longer is."""
        if threading.get_ident() != self._thread:
            return self.node_of(tensor)
        self._bring_back(tensor)
        self._meet(tensor)
        return tensor.uop

    def _bring_back(self, tensor: Any) -> None:
        key = id(tensor)
        tensor.uop = self._nodes[key]
        self.met.append(self._references[key])
        del self._references[key], self._nodes[key]


def _meet_nothing(tensor: Any) -> None:
    """What to do with a Tensor that is met after the block."""


class _Aside:
    current: SetAside | None = None


def node_set_aside(tensor: Any) -> Any:
    """The node of a Tensor whose `uop` is empty. Raises AttributeError if it is not set aside."""
    aside = _Aside.current
    if aside is not None and tensor in aside:
        return aside.meet(tensor)
    return object.__getattribute__(tensor, "uop")  # another thread has put it back in the meantime


def is_set_aside(tensor: Any) -> bool:
    """Whether a Tensor is set aside."""
    return _Aside.current is not None and tensor in _Aside.current
