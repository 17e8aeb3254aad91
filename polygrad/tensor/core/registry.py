"""The live Tensors, in the order in which they were made.

Before memory is overwritten, the engine looks here for lazy values that still read it.
"""

from __future__ import annotations

import itertools
import weakref
from dataclasses import dataclass
from typing import Any

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
    """Every Tensor alive with a serial number above `since`."""
    if not since:
        return [t for r in list(_alive) if (t := r()) is not None]
    while True:
        try:
            entries = list(itertools.takewhile(lambda item: item[1] > since, reversed(_alive.items())))
        except RuntimeError:  # a Tensor of another thread went in between
            continue
        return [t for r, _ in entries if (t := r()) is not None]
