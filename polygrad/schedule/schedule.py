"""`schedule`: a tensor graph to kernels in an order that respects data and in-place writes.

    prepare -> split_scans -> materialization_points -> make_kernel for each

The graph is a SINK over the requested nodes. Its BUFFERs are leaves. Afterwards every node of the SINK has a
buffer: a BUFFER (of which it may be a later version), or the output of a kernel.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from polygrad.errors import InternalError
from polygrad.schedule.buffer_limit import limit_buffers
from polygrad.schedule.for_loops import loop_body, unroll_trips
from polygrad.schedule.fusion_partition import MATERIALIZED, materialization_points
from polygrad.schedule.isolated_products import isolate_products
from polygrad.schedule.kernels import KernelCall, make_kernel, storage_of, written_memory
from polygrad.schedule.split_scan import CORES, SideBySide, split_scans
from polygrad.uop.alu import identity_element
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops
from polygrad.uop.origins import watch


@dataclass(frozen=True, slots=True)
class Schedule:
    """Kernels in order. `roots[i]` is the node whose storage holds the SINK's source i; `apart`: those whose
    kernels should move into no other."""

    calls: tuple[KernelCall, ...]
    roots: tuple[UOp, ...]
    apart: frozenset[UOp] = frozenset()


def schedule(
    sink: UOp, optimized: bool = False, max_buffers: int = 0, grid: bool = False, scans: SideBySide = CORES
) -> Schedule:
    """Kernels that compute every source of `sink`, each of which is stored whole. `optimized`: matrix
    products get kernels that have no other sum. `max_buffers`: of a kernel; 0: any number. `grid`: for a
    machine with workgroups. `scans`: how the machine divides running values."""
    again = partial(schedule, optimized=optimized, max_buffers=max_buffers, grid=grid, scans=scans)
    sink = prepare(sink)
    if optimized:
        sink = split_scans(sink, scans)
    sink = sink.replace(src=tuple(_in_memory(s) for s in sink.src))
    for _ in range(3):
        order = sink.toposort()
        outputs = {s for s in sink.src if s.op not in GroupOp.Memory}
        stored = materialization_points(order, outputs, optimized)
        apart = isolate_products(order, stored, grid) if optimized else set()
        if max_buffers:
            limit_buffers(order, stored, max_buffers)
        produced = [n for n in order if n in stored and 0 not in n.shape]  # no elements need no kernel
        positions = _toposort(_dependencies(produced, stored))
        if len(positions) < len(produced):
            sink = _copy_old_values(sink)
            continue
        calls, hazards = _kernels([produced[i] for i in positions], stored, again, apart)
        if not hazards:
            return Schedule(tuple(calls), tuple(storage_of(s) for s in sink.src), frozenset(apart))
        sink = _store_values_first(sink, hazards)
    raise InternalError("the kernels of this graph depend on each other in a cycle")


def _in_memory(root: UOp) -> UOp:
    """The node whose buffer holds `root` whole: for a reshape of a node with a buffer, that node."""
    node = root
    while node.op is Ops.RESHAPE:
        node = node.src[0]
    return node if node.op in MATERIALIZED else root


def _kernels(
    produced: list[UOp], stored: set[UOp], schedule_body: Callable[[UOp], Schedule], apart: set[UOp]
) -> tuple[list[KernelCall], set[UOp]]:
    """The kernels of `produced`, and the nodes among these that are hazards. `schedule_body`: schedules a
    loop's body; the nodes that are apart in it are added to `apart`."""
    calls: list[KernelCall] = []
    hazards: set[UOp] = set()
    done: set[tuple[tuple[UOp, ...], int, UOp]] = set()
    for node in produced:
        if node.op is Ops.FOR:
            loop = (node.src, node.arg.trips, node.arg.body)
            if loop not in done:  # its results come together
                done.add(loop)
                body = schedule_body(loop_body(node))
                calls += _placed(unroll_trips(node, body.calls, body.roots), node, stored)
                apart |= {c.args[0] for c in calls if c.args[0].src and c.args[0].src[0] in body.apart}
            continue
        (call,) = _placed([make_kernel(node, stored)], node, stored)
        calls.append(call)
        if _is_hazard(node, call):
            hazards.add(node)
    return calls, hazards


def _placed(calls: list[KernelCall], node: UOp, stored: set[UOp]) -> list[KernelCall]:
    """Kernels of `node` with the lines that made what they compute, if lines are recorded: of operations
    that are more than an index, where there are any."""
    if watch.origins is None:
        return calls
    computed, todo = dict.fromkeys([node]), [node]
    while todo:
        for s in todo.pop().src:
            if s not in computed and s not in stored and s.op not in GroupOp.Memory:
                computed[s] = None
                todo.append(s)
    movements = GroupOp.Movement | {Ops.CONST}
    operations = [n for n in computed if n.op not in movements] or computed
    places = tuple(dict.fromkeys(filter(None, map(watch.origins.of, operations))))
    return [replace(call, places=places) for call in calls]


_MERGED = frozenset({Ops.RESHAPE, Ops.EXPAND})


def prepare(sink: UOp) -> UOp:
    """The graph without nodes that have no meaning for a schedule, and with empty reductions folded.

    DETACH(x), NOOP(x, ...)        ->  x
    RESHAPE(RESHAPE(x, a), b)      ->  RESHAPE(x, b)
    REDUCE_AXIS of no elements     ->  CONST, the identity element
    """
    new: dict[UOp, UOp] = {}
    for node in sink.toposort():
        src = tuple([new[s] for s in node.src])
        op = node.op
        if op is Ops.DETACH or op is Ops.NOOP:
            new[node] = src[0]
            continue
        if op in _MERGED and src[0].op is op:  # reshape of reshape, expand of expand
            src = src[0].src
        elif op is Ops.REDUCE_AXIS and 0 in node.src[0].shape and 0 not in node.shape:
            new[node] = node.const_like(identity_element(node.arg.op, node.dtype))
            continue
        new[node] = node.over(src)
    return new[sink]


def _is_hazard(node: UOp, call: KernelCall) -> bool:
    """Whether a node is an ASSIGN whose kernel reads other elements of its target than the one it writes."""
    if node.op is not Ops.ASSIGN or node.arg is not None:
        return False
    nodes = call.ast.toposort()
    written = next(n.src[0].src[1] for n in nodes if n.op is Ops.STORE)
    return any(n.op is Ops.INDEX and n.src[0].arg.slot == 0 and n.src[1] is not written for n in nodes)


def _store_values_first(sink: UOp, hazards: set[UOp]) -> UOp:
    """The graph with the values of these ASSIGNs in separate buffers.

    ASSIGN(target, value)  ->  ASSIGN(target, CONTIGUOUS(value))
    """
    new: dict[UOp, UOp] = {}
    for node in sink.toposort():
        src = tuple([new[s] for s in node.src])
        if node in hazards:
            src = (src[0], src[1].clone())
        new[node] = node.over(src)
    return new[sink]


def _dependencies(produced: list[UOp], stored: set[UOp]) -> list[set[int]]:
    """For each stored node, the positions of those that must be computed first: what it reads, and for an
    in-place write every reader of the value that it overwrites."""
    writer = {node: i for i, node in enumerate(produced)}
    dependencies: list[set[int]] = []
    readers: dict[UOp, list[int]] = {}
    for i, node in enumerate(produced):
        reads = _reads(node, stored)
        written = [r.src[1] if r.op is Ops.AFTER else r for r in reads]
        dependencies.append({writer[w] for w in written if w in writer})
        for r in reads:
            readers.setdefault(r, []).append(i)
    for i, node in enumerate(produced):
        if node.op is Ops.ASSIGN:
            dependencies[i].update(r for r in readers[written_memory(node)] if r != i)
    return dependencies


def _reads(node: UOp, stored: set[UOp]) -> set[UOp]:
    """The memory and the stored nodes whose values the kernel of `node` reads."""
    values: set[UOp] = set()
    seen: set[UOp] = set()
    stack = list(node.src)
    while stack:
        n = stack.pop()
        if n in stored or n.op in GroupOp.Memory:
            values.add(n)
        elif n not in seen:
            seen.add(n)
            stack.extend(n.src)
    return values


def _copy_old_values(sink: UOp) -> UOp:
    """Readers of a version of memory that is overwritten read a copy: for graphs that need the values before
    and after a write at once.

    m + 1, AFTER(m, ASSIGN(m, v))  ->  CONTIGUOUS(m) + 1, AFTER(m, ASSIGN(m, v))
    """
    order = sink.toposort()
    overwritten = {written_memory(n) for n in order if n.op is Ops.ASSIGN}
    read: dict[UOp, UOp] = {}  # by node: its replacement where its value is read
    target: dict[UOp, UOp] = {}  # by node: its replacement where it is written to
    for node in order:
        if node.op is Ops.ASSIGN or node.op is Ops.AFTER:
            src: tuple[UOp, ...] = (target[node.src[0]], read[node.src[1]])
        elif node.op is Ops.SINK:
            src = tuple([target.get(s, read[s]) if s.op in GroupOp.Memory else read[s] for s in node.src])
        else:
            src = tuple([read[s] for s in node.src])
        new = read[node] = node.over(src)
        if node.op in GroupOp.Memory:
            target[node] = new
            if node in overwritten:
                read[node] = new.clone()
        elif node.op in GroupOp.Movement and node.src[0] in target:
            target[node] = UOp(node.op, node.dtype, (target[node.src[0]],), node.arg)
    return read[sink]


def _toposort(dependencies: list[set[int]]) -> list[int]:
    """Positions in an order that respects `dependencies`, the smallest first; those on a cycle are left
    out."""
    dependents: list[list[int]] = [[] for _ in dependencies]
    waiting = [len(d) for d in dependencies]
    for i, needed in enumerate(dependencies):
        for j in needed:
            dependents[j].append(i)
    ready = [i for i, n in enumerate(waiting) if n == 0]
    heapq.heapify(ready)
    out = []
    while ready:
        i = heapq.heappop(ready)
        out.append(i)
        for j in dependents[i]:
            waiting[j] -= 1
            if waiting[j] == 0:
                heapq.heappush(ready, j)
    return out
