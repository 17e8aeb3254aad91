"""A limit on the buffers of a kernel: the number of pointers that the target has. Where an expression reads
more buffers, operands of its operations are materialised, the operands with the most buffers first.

    r = a0 + a1 + ... + a19, for 8 buffers      s = a0 + ... + a6;  t = s + a7 + ... + a12;  r = t + a13 +
    ... + a19
"""

from __future__ import annotations

from polygrad.errors import InternalError
from polygrad.schedule.fusion_partition import LEAVES
from polygrad.schedule.kernels import storage_of
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops

_LEAST = 5  # WHERE and MULACC read three buffers, and an ASSIGN what it writes


def limit_buffers(order: list[UOp], points: set[UOp], max_buffers: int) -> None:
    """Add to `points`, the materialised nodes of the toposort `order`, until no kernel has more than
    `max_buffers`. Raises InternalError for a limit that no partition meets."""
    if max_buffers < _LEAST:
        raise InternalError(f"limit_buffers: expected a limit of at least {_LEAST}, got {max_buffers}")
    limit = max_buffers - 1  # a kernel's own result is another
    reads: dict[UOp, frozenset[UOp]] = {}  # the buffers of an expression up to the materialised nodes in it
    for node in order:
        if node.op in GroupOp.Memory:
            reads[node] = frozenset((storage_of(node),))
        elif node.op is Ops.FOR:  # its trips are limited apart
            reads[node] = frozenset((node,))
        elif node.op in LEAVES:
            reads[node] = frozenset()
        elif node.op is not Ops.SINK:
            buffers = frozenset[UOp]().union(*(reads[s] for s in node.src))
            if len(buffers) > limit:
                buffers = _split(node, points, reads, limit)
            reads[node] = frozenset((storage_of(node),)) if node in points else buffers


def _split(node: UOp, points: set[UOp], reads: dict[UOp, frozenset[UOp]], limit: int) -> frozenset[UOp]:
    """The buffers that a node reads once enough of its sources are materialised."""
    for source in sorted(set(node.src), key=lambda s: -len(reads[s])):
        base, _ = source.movements()
        if base in points or base.op in LEAVES or len(reads[base]) < 2:
            continue
        points.add(base)
        while source is not base:  # and the views of it
            reads[source] = frozenset((base,))
            source = source.src[0]
        reads[base] = frozenset((base,))
        buffers = frozenset[UOp]().union(*(reads[s] for s in node.src))
        if len(buffers) <= limit:
            return buffers
    raise InternalError(f"limit_buffers: {node.op} reads more than {limit} buffers however it is divided")
