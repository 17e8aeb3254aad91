"""Which nodes of a tensor graph get a buffer: the fusion decision.

Three passes over the graph; the first two are after tinygrad's rangeify:

1. From consumers to producers, each node gets the indices at which it is needed. A node that is needed
   at different indices by different consumers, or that is broadcast after being reduced, is a *candidate*:
   fusing it would compute it more than once.
2. From producers to consumers, a candidate is stored when computing it again is dear: it contains a
   reduction over memory, or reads more than three buffers; otherwise its expression is repeated in every
   consumer. With optimisation, so is a short reduction to a scalar: it costs less than a launch; and
   what is broadcast widely, as an operand of a matrix product is, is stored unless it is next to no work.
3. What one kernel would still compute at very many indices is stored too.

Asked-for outputs, CONTIGUOUS and ASSIGN are always stored.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from polygrad.helpers import prod
from polygrad.schedule.movement import TRUE, ZERO, Indices, input_indices
from polygrad.uop.node import AxisKind, UOp, sint_max
from polygrad.uop.ops import GroupOp, Ops

MAX_BUFFERS = 3  # a cheap candidate reads at most this many
MAX_DEPTH = 1000  # of a fused expression
MAX_COPIES = 32  # a kernel computes a node at no more indices than this
MAX_BROADCAST = 1 << 18  # operations that a broadcast may do again
CHEAP = 4  # operations to a value that may be done again for any broadcast
MAX_REPEATED = 256  # elements that a reduction to a scalar may read for every kernel that needs it
STORED = frozenset({Ops.CONTIGUOUS, Ops.ASSIGN})
LEAVES = GroupOp.Memory | {Ops.CONST, Ops.DEFINE_VAR, Ops.ARANGE}
_SLOW = GroupOp.Transcendental | {Ops.THREEFRY}
_ENDS_RANGES = GroupOp.Elementwise | {Ops.REDUCE_AXIS}


def output_ranges(node: UOp) -> Indices:
    """Fresh loops over a node's elements, numbered from 0; axes of size 1 need none."""
    number = itertools.count()
    return tuple(
        ZERO if isinstance(n, int) and n == 1 else UOp.range(n, next(number), AxisKind.LOOP)
        for n in node.shape
    )


def reduced_indices(node: UOp, indices: Indices, first_id: int) -> Indices:
    """The indices at which a REDUCE_AXIS reads its input: loops over its axes, numbered from `first_id`."""
    inner = list(indices)
    for i, axis in enumerate(node.arg.axes):
        inner[axis] = UOp.range(node.src[0].shape[axis], first_id + i, AxisKind.REDUCE)
    return tuple(inner)


@dataclass(slots=True)
class _Use:
    """At which indices a consumer needs a node: those of the kernel that stores `owner`."""

    owner: UOp
    indices: Indices
    valid: UOp


def choose_stored(order: list[UOp], roots: set[UOp], optimized: bool) -> set[UOp]:
    """The nodes of `order` (a toposort) that get a buffer; `roots` always do."""
    forced = {n for n in order if n in roots or n.op in STORED}
    candidates, again = _find_candidates(order, forced)
    if optimized:
        stored, suspects = _keep_dear(order, forced, candidates, again, MAX_REPEATED)
    else:
        stored, suspects = _keep_dear(order, forced, candidates, {}, 0)
    _limit_copies(stored, suspects)
    return stored


def _find_candidates(order: list[UOp], forced: set[UOp]) -> tuple[dict[UOp, int], dict[UOp, int]]:
    """Candidates, with how many different uses each has; and how many values a broadcast adds to those of
    each that is below one."""
    uses: dict[UOp, list[_Use]] = {n: [] for n in order}
    ended: dict[UOp, int] = {}  # nodes below broadcasts, with no store between: how often each is repeated
    next_id: dict[UOp, int] = {}
    candidates: dict[UOp, int] = {}
    again: dict[UOp, int] = {}
    for node in reversed(order):
        op = node.op
        if op in LEAVES or op is Ops.SINK:
            continue
        mine = uses.pop(node)
        distinct = {(u.owner, u.indices) for u in mine}
        if node in forced:
            use = _new_use(node, next_id)
            ended.pop(node, None)
        else:
            if not mine:
                continue
            use = mine[0]
            if len(distinct) > 1 or (node in ended and op in _ENDS_RANGES):
                candidates[node] = len(distinct)
                again[node] = (ended.pop(node, 1) - 1) * _elements(node)
                use = _new_use(node, next_id)
            elif len(mine) > 1 and any(u.valid is not use.valid for u in mine):
                use = _Use(use.owner, use.indices, TRUE)
        indices, valid = use.indices, use.valid
        if op in GroupOp.Movement:
            indices, valid = input_indices(node, indices, valid)
        elif op is Ops.REDUCE_AXIS:
            indices = reduced_indices(node, indices, next_id[use.owner])
            next_id[use.owner] += len(node.arg.axes)
        repeats = ended.get(node, 1)
        if op is Ops.EXPAND:
            repeats *= max(_elements(node) // max(_elements(node.src[0]), 1), 2)
        passed = _Use(use.owner, indices, valid)
        for s in node.src:
            if s.op not in LEAVES:
                uses[s].append(passed)
                if repeats > 1:
                    ended[s] = max(repeats, ended.get(s, 1))
    return candidates, again


def _new_use(node: UOp, next_id: dict[UOp, int]) -> _Use:
    next_id[node] = len(node.shape)
    return _Use(node, output_ranges(node), TRUE)


def _keep_dear(
    order: list[UOp],
    forced: set[UOp],
    candidates: dict[UOp, int],
    broadcast: dict[UOp, int],
    max_repeated: int,
) -> tuple[set[UOp], list[UOp]]:
    """The stored nodes, and those of them whose kernel may compute a node at more than MAX_COPIES indices."""
    stored = set(forced)
    suspects: list[UOp] = []
    reads: dict[UOp, frozenset[UOp]] = {}  # the buffers an expression reads, up to one more than allowed
    reduces: set[UOp] = set()  # expressions with a reduction over memory
    work: dict[UOp, int] = {}  # about how many operations an expression takes
    repeated: dict[UOp, int] = {}  # elements read by an expression's reductions, all to scalars
    depth: dict[UOp, int] = {}
    copies: dict[UOp, int] = {}  # at most this often is a node of the expression in it
    nothing: frozenset[UOp] = frozenset()
    for node in order:
        op = node.op
        if op in GroupOp.Memory:
            reads[node], depth[node], copies[node] = frozenset((node,)), 1, 1
            continue
        if not node.src:
            reads[node], depth[node], copies[node] = nothing, 1, 1
            continue
        if op is Ops.SINK:
            continue
        read, deepest, most, again, effort = nothing, 0, 1, 0, 0
        for s in node.src:
            if reads[s] is not read:
                read = reads[s] if not read else read if len(read) > MAX_BUFFERS else read | reads[s]
            deepest, most = max(deepest, depth[s]), max(most, copies[s])
            if s in reduces:
                reduces.add(node)
            elif s in repeated:
                again = max(again, repeated[s])
            effort += work.get(s, 0)
        if op in _ENDS_RANGES:
            effort += 20 if op in _SLOW else 1
        if op is Ops.REDUCE_AXIS and read:
            again += _elements_of_short(node)
            if again > max_repeated:
                reduces.add(node)
        if node not in stored and (
            (node in candidates and (node in reduces or len(read) > MAX_BUFFERS))
            or (effort > CHEAP and effort * broadcast.get(node, 0) > MAX_BROADCAST)
            or (deepest >= MAX_DEPTH and op in _ENDS_RANGES)
        ):
            stored.add(node)
        if node in stored:
            if most > MAX_COPIES:
                suspects.append(node)
            reads[node], depth[node], copies[node] = frozenset((node,)), 1, 1
            reduces.discard(node)
        else:
            reads[node], depth[node], work[node] = read, deepest + 1, min(effort, MAX_BROADCAST)
            copies[node] = min(most * candidates.get(node, 1), 1 << 30)
            if again:
                repeated[node] = again
    return stored, suspects


def _elements(node: UOp) -> int:
    """How many elements a node has, at most."""
    return int(prod(sint_max(n) for n in node.shape))


def _elements_of_short(reduction: UOp) -> int:
    """How many elements a reduction to a scalar reads; more than MAX_REPEATED for any other."""
    size = _elements(reduction.src[0])
    return size if all(isinstance(n, int) and n == 1 for n in reduction.shape) else MAX_REPEATED + 1


def _limit_copies(stored: set[UOp], suspects: list[UOp]) -> None:
    """Store what the kernels of `suspects` would compute at more than MAX_COPIES indices, as a stencil of a
    stencil of a stencil would."""
    while suspects:
        root = suspects.pop()
        next_id = len(root.shape)
        wanted: dict[UOp, dict[tuple[Indices, UOp], None]] = {root: {(output_ranges(root), TRUE): None}}
        for node in reversed(root.toposort(lambda n, root=root: n is root or n not in stored)):  # type: ignore[misc]
            at = wanted.pop(node, None)
            op = node.op
            if at is None or op in LEAVES or (node in stored and node is not root):
                continue
            if len(at) > MAX_COPIES and op in _ENDS_RANGES:
                stored.add(node)
                suspects.append(node)
                continue
            for indices, valid in at:
                if op in GroupOp.Movement:
                    indices, valid = input_indices(node, indices, valid)
                elif op is Ops.REDUCE_AXIS:
                    indices, next_id = reduced_indices(node, indices, next_id), next_id + len(node.arg.axes)
                for s in node.src:
                    wanted.setdefault(s, {})[indices, valid] = None
