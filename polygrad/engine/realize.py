"""`realize`: compute nodes of a tensor graph, now.

Each call looks its graph's Program up or makes it, binds buffers and runs it. A computed value is kept on its
node (`UOp.value`), so nothing is computed twice.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Any

from polygrad.dtype import DType
from polygrad.engine.devices import Device
from polygrad.engine.normalize import is_uncomputed, stored_value, value_of
from polygrad.engine.pending import PendingGraph
from polygrad.engine.programs import prepare, run
from polygrad.engine.recording import Transfer, watch
from polygrad.engine.sharding import Resolved, Shards, resolve
from polygrad.engine.write_hazards import (
    buffers_of_gradients,
    first_writes,
    stale_values,
    stored_node,
    values_to_store,
)
from polygrad.errors import DeviceError
from polygrad.helpers import dedup, prod, set_all
from polygrad.monitor import computing
from polygrad.runtime.buffer import NEW_MEMORY, Allocation, Buffer, reclaim
from polygrad.runtime.sharded import ShardedBuffer
from polygrad.uop.args import Sharding
from polygrad.uop.intern import collect, collect_young
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops

_COLLECT_NODES = 1 << 10
_COLLECT_BYTES = 1 << 18


@dataclass(slots=True)
class _Garbage:
    taken_bytes: int = 0  # `Allocation.taken_bytes` at the last collection


_garbage = _Garbage()


reclaim.append(collect)


def collect_garbage() -> None:
    """Free nodes that nothing holds, if many nodes were made or much memory was allocated lately."""
    taken_bytes = Allocation.taken_bytes
    if taken_bytes - _garbage.taken_bytes > max(_COLLECT_BYTES, Allocation.allocated_bytes // 4):
        _garbage.taken_bytes = taken_bytes
        collect_young()
    else:
        collect_young(_COLLECT_NODES)


def buffer_from(device: str, dtype: DType, data: memoryview) -> UOp:
    """A 1-D BUFFER on `device` with a copy of `data`, whose bytes are elements of `dtype`."""
    buffer = Buffer(Device[device], data.nbytes // dtype.itemsize, dtype)
    buffer.write(data)
    return UOp.buffer_of(buffer, dtype)


@computing
def data_of(uop: UOp, device: str | None = None) -> memoryview:
    """The bytes of a node's value, computed if necessary. `device`: for a graph of constants.

    Raises CaptureError inside a captured function.
    """
    buffer, nbytes = _memory_of(uop, device)
    return buffer.read()[:nbytes]


def data_of_async(uop: UOp, device: str | None = None) -> Awaitable[memoryview]:
    """`data_of`, awaitable. The value is computed at once; later writes do not change the result."""
    return _read_async(*_memory_of(uop, device))


async def _read_async(buffer: Buffer, nbytes: int) -> memoryview:
    return (await buffer.read_async())[:nbytes]


def _memory_of(uop: UOp, device: str | None) -> tuple[Buffer, int]:
    """The memory of a node, computed if necessary, and the number of bytes of the node's value in it."""
    watch.forbid(
        f"a reading of values ({uop.dtype} of shape {uop.shape}: item, tolist, numpy, data, bool)",
        "return the Tensor and read it after the call",
    )
    (done,) = realize([uop], device)
    return done.base.arg, int(prod(done.shape)) * done.dtype.itemsize


@computing
def realize(uops: Sequence[UOp], device: str | None = None) -> list[UOp]:
    """Compute every node; the results are BUFFERs, reshaped. `device`: for graphs of constants."""
    roots = [stored_node(u) for u in uops]
    todo = [r for r in roots if r.op is not Ops.BUFFER and is_uncomputed(r)]
    if len(todo) > 1:
        todo = dedup(todo)
    placeless = _realize(todo, device) if todo else {}
    return [
        (r if r.op is Ops.BUFFER else placeless.get(r) or _value(r)).reshape(u.shape)
        for r, u in zip(roots, uops, strict=True)
    ]


@computing
def preserve(memory: set[Allocation], since: int = 0) -> None:
    """Compute the live lazy values that read `memory`, which is about to be written.

    `since`: only values of Tensors above this serial number.
    """
    stale = [*stale_values(memory, None, since), *buffers_of_gradients(memory, since)]
    if stale:
        _preserve(stale)


def _preserve(stale: list[UOp]) -> None:
    """Compute values. Values that are computed already are copied to memory of their own."""
    copies = {n: n.clone() for n in stale if stored_value(n) is not None}
    realize([copies.get(n, n) for n in stale])
    for node, copy in copies.items():
        node.value = copy.value


def _value(node: UOp) -> UOp:
    assert node.value is not None
    return node.value


def _realize(todo: list[UOp], device: str | None) -> dict[UOp, UOp]:
    """Compute nodes and keep their values on them. Values of graphs of constants are returned instead, and
    not kept: they may be needed on another device next, or in a replay with other values of their
    Variables."""
    pending = PendingGraph(todo)
    home = next(iter(pending.devices), None) or device or Device.DEFAULT
    if pending.copies or len(pending.devices) > 1 or home.__class__ is tuple:
        if pending.writes:
            todo = _newest_writes(todo)
            pending = PendingGraph(todo)
        if pending.is_sharded or home.__class__ is tuple:
            return _realize_sharded(todo, device, pending)
        constants = _constants(todo, pending)
        _realize_apart(todo, device, pending)
    else:
        constants = _constants(todo, pending)
        _run(todo, home, pending)
    placeless: dict[UOp, UOp] = {}
    for node in constants:
        placeless[node], node.value = _value(node), None
    return placeless


def _realize_apart(todo: list[UOp], device: str | None, pending: PendingGraph) -> None:
    """Compute nodes that need copies between devices, or that are on different devices."""
    constants = _nodes_of_constants(pending)
    while True:
        order = _pending(todo)
        waiting: set[UOp] = set()  # nodes that depend on a COPY that is not made yet
        ready: list[UOp] = []
        for node in order:
            if node.op is Ops.COPY and is_uncomputed(node) and node.src[0] not in constants:
                if node.src[0] not in waiting:
                    ready.append(node)
                waiting.add(node)
            elif not waiting.isdisjoint(node.src):
                waiting.add(node)
        if not ready:
            break
        _copy(ready, _shared_reductions(order, waiting, constants))
    places = devices_of(order)
    by_device: dict[str, list[UOp]] = {}
    for node in todo:
        if is_uncomputed(node):
            by_device.setdefault(places[node] or device or Device.DEFAULT, []).append(node)
    for name, nodes in by_device.items():
        _run(nodes, name, PendingGraph(nodes))


def _shared_reductions(order: list[UOp], waiting: set[UOp], constants: set[UOp]) -> list[UOp]:
    """Results of reductions that the sources of the copies and the nodes that wait for the copies may both
    need. They are computed with the sources, once."""
    reduced: set[UOp] = set()
    for node in order:
        if node in waiting or node in constants or not is_uncomputed(node) or node.op is Ops.SINK:
            continue
        if node.op is Ops.REDUCE_AXIS or not reduced.isdisjoint(node.src):
            reduced.add(node)
    shared: dict[UOp, None] = {}
    for node in order:
        if node in waiting and node.op not in (Ops.COPY, Ops.SINK):
            for s in node.src:
                base = s.base
                if base in reduced and base.op is not Ops.AFTER and base.op is not Ops.ASSIGN:
                    shared[base] = None
    return list(shared)


def _realize_sharded(todo: list[UOp], device: Any, pending: PendingGraph) -> dict[UOp, UOp]:
    """Compute nodes, some of which are on several devices, by the graphs of each device."""
    if _compute_earlier(pending):
        todo = [n for n in todo if is_uncomputed(n)]
    roots, resolved = todo, resolve(todo)
    everywhere: set[UOp] = set()  # graphs of constants: each device gets a copy
    if isinstance(device, tuple):
        everywhere = {r for r in _constants(roots, pending) if r.op is not Ops.COPY}
        for i, (root, result) in enumerate(zip(roots, resolved, strict=True)):
            if root in everywhere and isinstance(result, UOp):
                (resolved[i],) = resolve([root.copy_to(Sharding(device, None))])
    parts = _distinct_parts(roots, resolved)
    nodes = [p for ps in parts.values() for p in ps]
    computed = dict(zip(nodes, realize(nodes, device if isinstance(device, str) else None), strict=True))
    placeless: dict[UOp, UOp] = {}
    for root, result in zip(roots, resolved, strict=True):
        values = [computed[p].base for p in parts[root]]
        if isinstance(result, Shards):
            values = [_join(result, [v.arg for v in values], root.dtype)]
        if root in everywhere or (root.value is None and parts[root] == [root]):
            placeless[root] = values[0]
        elif isinstance(result, Shards) or root.value is None:
            _keep(root, values[0])
    return placeless


def _keep(node: UOp, value: UOp) -> None:
    """Keep the value of a COPY, or a value on several devices, on its node."""
    node.value = value
    if watch.recording is not None and not any(n.op is Ops.BUFFER for n in node.toposort()):
        watch.recording.constants.append(node)


def _join(shards: Shards, parts: Sequence[Buffer], dtype: DType, allocation: Allocation | None = None) -> UOp:
    """The BUFFER of a value on several devices, from those of its parts. `allocation`: of written memory."""
    return UOp.buffer_of(ShardedBuffer(parts, shards.shape, shards.axis, allocation), dtype)


# --- writes among several devices


def _newest_writes(todo: list[UOp]) -> list[UOp]:
    """Make the writes below `todo`; the nodes of `todo` that are then still to be computed.

    Writes that wait for no others are made together, in one Program for each device. Before that, readers of
    the old elements are computed. If a reader waits for a write itself, the elements that it reads are
    copied. So no device reads memory that another overwrites.
    """
    while True:
        _compute_earlier(PendingGraph(todo))
        todo = [n for n in todo if is_uncomputed(n)]
        pending = PendingGraph(todo)
        if not pending.writes:
            return todo
        writes = first_writes(pending)
        copies = values_to_store(writes, todo)
        values = [v for w in writes for v in w.src[1].src[1:] if is_uncomputed(v) and _takes_transfers(v)]
        _compute_apart({v: v for v in values} | copies)
        try:
            _write(writes)
        finally:  # writes that an exception ends may be made
            overwritten = [n for n in copies if (v := stored_value(n)) is None or v.arg.is_overwritten]
            set_all(overwritten, ["value"] * len(overwritten), [copies[n].value for n in overwritten])


def _takes_transfers(value: UOp) -> bool:
    """Whether a value that a device writes is computed from values of other devices."""
    (resolved,) = resolve([value])
    parts = resolved.parts if isinstance(resolved, Shards) else (resolved,)
    return any(n.op is Ops.COPY for n in UOp.sink(*parts).toposort(is_uncomputed))


def _compute_apart(stored: dict[UOp, UOp]) -> None:
    """Store values. Those that are older than the capture in progress are stored outside of the capture."""
    older = [n for n in stored if n.op not in GroupOp.Memory and _is_older(n)]
    if older:
        watch.paused(lambda: realize([stored[n] for n in older]))
    realize([stored[n] for n in stored if n not in older])


def _write(writes: list[UOp]) -> None:
    """Make writes (AFTERs) that need no transfers and wait for no other writes. What cannot be compiled,
    loaded or allocated is an error before any device writes. After an exception all devices have written, or
    none, or the contents of the memory are lost, and marked so."""
    resolved = resolve(writes)
    by_device: dict[str, list[UOp]] = {}
    for result in resolved:
        for part in result.parts if isinstance(result, Shards) else (result,):
            node = stored_node(part)
            by_device.setdefault(node.buffer.arg.device, []).append(node)
    runs = []
    for name, nodes in by_device.items():
        pending = PendingGraph(nodes)
        runs.append((dedup([*pending.writes, *nodes]), pending, name))
    for arguments in runs:
        prepare(*arguments)
    try:
        for arguments in runs:
            run(*arguments)
        _keep_written(writes, resolved)
    except BaseException as error:
        unmade = [arguments for arguments in runs if any(map(is_uncomputed, arguments[0]))]
        if len(unmade) < len(runs):
            try:
                for arguments in unmade:
                    run(*arguments)
            finally:
                _mark_lost(resolved, error)
                _keep_written(writes, resolved)
        raise


def _mark_lost(resolved: list[Resolved], error: BaseException) -> None:
    """Of writes that some devices have made and others have not, mark the contents of the memory as lost."""
    for result in resolved:
        nodes = [stored_node(part) for part in result.parts] if isinstance(result, Shards) else []
        missing = [node for node in nodes if is_uncomputed(node)]
        if not 0 < len(missing) < len(nodes):
            continue
        failed = ", ".join([node.buffer.arg.device for node in missing])
        for node in nodes:
            node.buffer.arg.allocation.damage(
                f"its contents are lost, as {failed} did not write when other devices had written "
                f"({type(error).__name__}: {error}): {NEW_MEMORY}"
            )
        for node in missing:
            buffer = node.buffer.arg.alias()
            buffer.version = buffer.allocation.version = buffer.version + 1
            node.value = UOp.buffer_of(buffer, node.dtype)


def _keep_written(writes: list[UOp], resolved: list[Resolved]) -> None:
    """Keep the values of the writes that all devices have made."""
    versions: dict[Allocation, int] = {}
    kept: dict[UOp, UOp] = {}
    for write, result in zip(writes, resolved, strict=True):
        nodes = [stored_node(part) for part in (result.parts if isinstance(result, Shards) else (result,))]
        if not is_uncomputed(write) or any(map(is_uncomputed, nodes)):
            continue
        kept[write] = _value(nodes[0])
        if isinstance(result, Shards):
            allocation = write.buffer.arg.allocation
            kept[write] = _join(result, [_value(node).arg for node in nodes], write.dtype, allocation)
            kept[write].arg.version = versions[allocation] = allocation.version + 1
    names = ["version"] * len(versions) + ["value"] * len(kept)
    set_all([*versions, *kept], names, [*versions.values(), *kept.values()])


def _distinct_parts(roots: list[UOp], resolved: list[Resolved]) -> dict[UOp, list[UOp]]:
    """For each root, the node that each device computes; no two roots share memory."""
    parts: dict[UOp, list[UOp]] = {}
    used_parts: set[UOp] = set()
    for root, result in zip(roots, resolved, strict=True):
        root_parts = parts[root] = []
        for part in result.parts if isinstance(result, Shards) else (result,):
            while root.op is not Ops.AFTER and (stored_node(part).op is Ops.BUFFER or part in used_parts):
                part = part.clone()
            used_parts.add(part)
            root_parts.append(part)
    return parts


def _pending(roots: list[UOp]) -> list[UOp]:
    return UOp.sink(*roots).toposort(is_uncomputed)


def _constants(todo: list[UOp], pending: PendingGraph) -> list[UOp]:
    """The nodes of `todo` that depend on constants only: any device may compute them."""
    if not pending.buffers:
        return todo
    if len(todo) == 1:
        return []
    values = [n for n in todo if n.op is not Ops.AFTER]
    if not values:
        return values
    constants = _nodes_of_constants(pending)
    return [n for n in values if n in constants]


def _nodes_of_constants(pending: PendingGraph) -> set[UOp]:
    out: set[UOp] = set()
    for node in pending.order:
        if node.op is Ops.BIND:  # no order has its sources
            out.add(node)
        elif node.op is not Ops.BUFFER and node.value is None and out.issuperset(node.src):
            out.add(node)
    return out


def devices_of(order: list[UOp]) -> dict[UOp, Any]:
    """The device of each node of a toposort: the device of its buffers, or None if it has none. Raises
    DeviceError."""
    out: dict[UOp, Any] = {}
    for node in order:
        if node.op is Ops.SINK:
            continue
        if node.value is not None:
            out[node] = node.value.arg.device
        elif node.op is Ops.BUFFER:
            out[node] = node.arg.device
        elif node.op is Ops.COPY:
            out[node] = node.arg.devices if isinstance(node.arg, Sharding) else node.arg
        else:
            device: str | None = None
            for s in node.src:
                operand = out[s]
                if operand is None or operand == device:
                    continue
                if device is not None:
                    raise DeviceError(
                        f"{node.op}: operands on {device} and {operand}: expected one device: use .to()"
                    )
                device = operand
            out[node] = device
    return out


def _copy(copies: list[UOp], others: list[UOp]) -> None:
    """Make COPYs. Their sources are computed together with `others`."""
    sources = dedup([*(copy.src[0] for copy in copies), *others])
    computed = dict(zip(sources, realize(sources), strict=True))
    for copy in copies:
        if value_of(copy) is not None:
            continue
        source = computed[copy.src[0]].base
        old: Buffer = source.arg
        if old.device == copy.arg:
            _keep(copy, source)
            continue
        target = Buffer(Device[copy.arg], old.size, copy.dtype)
        if watch.recording is None:
            target.copy_from(old)
        else:
            watch.recording.runs.append(Transfer(old, target))
        _keep(copy, UOp.buffer_of(target, copy.dtype))


def _run(todo: list[UOp], device: str, pending: PendingGraph) -> None:
    """Compute nodes in one Program. `pending`: of these nodes."""
    if _compute_earlier(pending):
        todo = [n for n in todo if is_uncomputed(n)]
        pending = PendingGraph(todo)
    stale: list[UOp] = []
    n_versions = 0
    # Stale values may depend on writes, which make other values stale.
    while len(pending.writes) > n_versions:
        n_versions = len(pending.writes)
        memory = {n.buffer.arg.allocation for n in pending.writes}
        stale = stale_values(memory, pending)
        pending.add([n for n in stale if is_uncomputed(n)])
        if pending.copies:  # a live value depends on other devices
            todo = _newest_writes(todo)
            if not todo:
                return
            stale, pending = [], PendingGraph(todo)
            break
        separate = [n for n in stale if _is_older(n)] if watch.recording is not None else []
        if separate:
            watch.paused(functools.partial(_preserve, separate))
            stale = [n for n in stale if n not in separate]
            pending = PendingGraph(todo)
            pending.add([n for n in stale if is_uncomputed(n)])
    copies: dict[UOp, UOp] = {}
    roots = todo
    if pending.writes:
        # a value in memory that is overwritten is copied to a buffer of its own
        recording = watch.recording
        if recording is None or not recording.preview:
            stale += buffers_of_gradients(memory, recording.since if recording is not None else 0)
        copies = {n: n.clone() for n in stale if stored_value(n) is not None}
        pending.add(copies.values())
        roots = dedup([*pending.writes, *todo, *(copies.get(n, n) for n in stale)])
    try:
        run(roots, pending, device)
    finally:  # a run that an exception ends may be whole
        for node, copy in copies.items():
            if copy.value is not None:
                node.value = copy.value


def _compute_earlier(pending: PendingGraph) -> bool:
    """Compute values that are older than the capture in progress, outside of it. Whether there were any."""
    if watch.recording is None:
        return False
    earlier = [n for n in pending.order if n in watch.recording.lazy_values and is_uncomputed(n)]
    if earlier:
        watch.paused(lambda: realize(earlier))
    return bool(earlier)


def _is_older(node: UOp) -> bool:
    """Whether a value is older than the capture in progress, and so is no part of it."""
    recording, value = watch.recording, value_of(node)
    if recording is None or recording.preview:
        return False
    return node in recording.lazy_values or (value is not None and value.arg.allocation.is_allocated)
