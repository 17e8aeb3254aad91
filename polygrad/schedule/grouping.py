"""Which nodes of a tensor graph get a buffer: the fusion decision.

Two passes over the graph, after tinygrad's rangeify:

1. From consumers to producers, each node gets the indices at which it is needed. A node that is needed
   at different indices by different consumers, or that is broadcast after being reduced, is a *candidate*:
   fusing it would compute it more than once.
2. From producers to consumers, a candidate is stored when computing it again is dear: it contains a
   reduction over memory, or reads more than three buffers, or has grown too large; otherwise its expression
   is repeated in every consumer.

Asked-for outputs, CONTIGUOUS and ASSIGN are always stored.
"""

from __future__ import annotations

from dataclasses import dataclass

from polygrad.schedule.movement import TRUE, ZERO, Indices, input_indices
from polygrad.uop.node import AxisKind, UOp
from polygrad.uop.ops import GroupOp, Ops

MAX_BUFFERS = 3  # a cheap candidate reads at most this many
MAX_WEIGHT = 1000  # a fused expression is at most about this deep, duplicates counted
STORED = frozenset({Ops.CONTIGUOUS, Ops.ASSIGN})
LEAVES = frozenset({Ops.BUFFER, Ops.CONST, Ops.DEFINE_VAR, Ops.ARANGE})
_ENDS_RANGES = GroupOp.Elementwise | {Ops.REDUCE_AXIS}


def output_ranges(node: UOp) -> Indices:
    """Fresh loops over a node's elements, numbered from 0."""
    return tuple(
        ZERO if isinstance(n, int) and n == 1 else UOp.range(n, i, AxisKind.LOOP)
        for i, n in enumerate(node.shape)
    )


@dataclass(slots=True)
class _Use:
    """At which indices a consumer needs a node: those of the kernel that stores `owner`."""

    owner: UOp
    indices: Indices
    valid: UOp


def choose_stored(order: list[UOp], roots: set[UOp]) -> set[UOp]:
    """The nodes of `order` (a toposort) that get a buffer; `roots` always do."""
    forced = {n for n in order if n in roots or n.op in STORED}
    candidates = _find_candidates(order, forced)
    return _keep_dear(order, forced, candidates)


def _find_candidates(order: list[UOp], forced: set[UOp]) -> dict[UOp, int]:
    """Candidates, with how many different uses each has."""
    uses: dict[UOp, list[_Use]] = {n: [] for n in order}
    ended: set[UOp] = set()  # nodes below a broadcast, with no store between
    next_id: dict[UOp, int] = {}
    candidates: dict[UOp, int] = {}
    for node in reversed(order):
        op = node.op
        if op in LEAVES or op is Ops.SINK:
            if op is Ops.SINK:
                continue
            continue
        mine = uses.pop(node)
        distinct = {(u.owner, u.indices) for u in mine}
        if node in forced:
            use = _new_use(node, next_id)
            ended.discard(node)
        else:
            if not mine:
                continue
            use = mine[0]
            if len(distinct) > 1 or (node in ended and op in _ENDS_RANGES):
                candidates[node] = len(distinct)
                use = _new_use(node, next_id)
                ended.discard(node)
            elif len(mine) > 1 and any(u.valid is not use.valid for u in mine):
                use = _Use(use.owner, use.indices, TRUE)
        indices, valid = use.indices, use.valid
        if op in GroupOp.Movement:
            indices, valid = input_indices(node, indices, valid)
        elif op is Ops.REDUCE_AXIS:
            inner = list(indices)
            for axis in node.arg.axes:
                inner[axis] = UOp.range(node.src[0].shape[axis], next_id[use.owner], AxisKind.REDUCE)
                next_id[use.owner] += 1
            indices = tuple(inner)
        below = node in ended or op is Ops.EXPAND
        passed = _Use(use.owner, indices, valid)
        for s in node.src:
            if s.op not in LEAVES:
                uses[s].append(passed)
                if below:
                    ended.add(s)
    return candidates


def _new_use(node: UOp, next_id: dict[UOp, int]) -> _Use:
    next_id[node] = len(node.shape)
    return _Use(node, output_ranges(node), TRUE)


def _keep_dear(order: list[UOp], forced: set[UOp], candidates: dict[UOp, int]) -> set[UOp]:
    stored = set(forced)
    reads: dict[UOp, frozenset[UOp]] = {}  # the buffers an expression reads, up to one more than allowed
    reduces: set[UOp] = set()  # expressions with a reduction over memory
    weight: dict[UOp, int] = {}
    nothing: frozenset[UOp] = frozenset()
    for node in order:
        op = node.op
        if op is Ops.BUFFER:
            reads[node], weight[node] = frozenset((node,)), 1
            continue
        if not node.src:
            reads[node], weight[node] = nothing, 1
            continue
        if op is Ops.SINK:
            continue
        read, heaviest = nothing, 0
        for s in node.src:
            if reads[s] is not read:
                read = reads[s] if not read else read if len(read) > MAX_BUFFERS else read | reads[s]
            heaviest = max(heaviest, weight[s])
            if s in reduces:
                reduces.add(node)
        if op is Ops.REDUCE_AXIS and read:
            reduces.add(node)
        count = candidates.get(node, 1)
        heavy = (heaviest + 1) * count
        if node not in stored and (
            (node in candidates and (node in reduces or len(read) > MAX_BUFFERS))
            or (heavy > MAX_WEIGHT and op in _ENDS_RANGES)
        ):
            stored.add(node)
        if node in stored:
            reads[node], weight[node] = frozenset((node,)), 1
            reduces.discard(node)
        else:
            reads[node], weight[node] = read, heavy
    return stored
