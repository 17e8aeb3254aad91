"""Which names of which places have a proof, and which calls it consists of."""

from __future__ import annotations

from proofs import elementwise, movement, networks, objects, reductions
from proofs.calls import TENSOR_PLACES, Call, Calls

_TENSOR = (elementwise.CALLS, reductions.CALLS, movement.CALLS, networks.CALLS)
TABLES: dict[str, tuple[Calls, ...]] = {
    **dict.fromkeys(TENSOR_PLACES, _TENSOR),
    **dict.fromkeys(("tinygrad.nn", "torch.nn"), (objects.LAYERS,)),
    **dict.fromkeys(("tinygrad.nn.optim", "torch.optim"), (objects.OPTIMIZERS,)),
    "torch.optim.lr_scheduler": (objects.SCHEDULERS,),
    "torch.nn.init": (objects.INITIALISERS,),
    "tinygrad.nn.state": (objects.STATES,),
    "tinygrad.dtypes": (objects.DTYPES,),
    "tinygrad": (objects.PACKAGE,),
}


def calls_of(place: str, name: str) -> list[Call]:
    """The calls that prove a name, in an order that has nothing to do with the table's."""
    found = [c for table in TABLES.get(place, ()) for c in table.of(name, place)]
    return sorted(found, key=lambda c: c.order)
