"""Which names of which places have a proof."""

from __future__ import annotations

from proofs import elementwise, movement, networks, reductions
from proofs.calls import TENSOR_PLACES, Call

TABLES = (elementwise.CALLS, reductions.CALLS, movement.CALLS, networks.CALLS)


def calls_of(place: str, name: str) -> list[Call]:
    """The calls that prove a name, in an order that has nothing to do with the table's."""
    if place not in TENSOR_PLACES:
        return []
    found = [c for t in TABLES for c in t.of(name, place)]
    return sorted(found, key=lambda c: c.order)
