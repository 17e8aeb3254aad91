"""Which Tensors are alive.

The engine asks, before it overwrites a buffer, for lazy values that still read it.
"""

from __future__ import annotations

import weakref
from typing import Any

from polygrad.uop.node import UOp

_alive: dict[weakref.ref[Any], None] = {}
_forget: Any = _alive.pop


def register(tensor: Any) -> None:
    """Remember `tensor` for as long as it lives."""
    _alive[weakref.ref(tensor, _forget)] = None


def live_tensors() -> list[Any]:
    """Every Tensor alive."""
    return [t for r in list(_alive) if (t := r()) is not None]


def live_uops() -> list[UOp]:
    """The node of every live Tensor; one entry each, so a node that two Tensors hold comes twice."""
    return [t.uop for r in list(_alive) if (t := r()) is not None]
