"""`realize`: compute nodes of a tensor graph, now.

Each call normalises its graph, takes the Program from the schedule cache or makes it, binds buffers and runs.
What was computed is remembered on the node (`UOp.value`), so nothing is computed twice.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from polygrad.dtype import DType
from polygrad.engine.compile import Compiled, compile_graph, optimizing
from polygrad.engine.devices import Device, reopened
from polygrad.engine.normalize import normalize, uncomputed, value_of
from polygrad.engine.pending import Pending
from polygrad.engine.recording import Run, Transfer, watch
from polygrad.engine.running import run_program
from polygrad.engine.scalars import Family
from polygrad.engine.sharding import Resolved, Shards, resolve
from polygrad.engine.stats import stats
from polygrad.errors import ArgumentError, DeviceError
from polygrad.helpers import LRU, debug_level, dedup, prod
from polygrad.monitor import computing
from polygrad.runtime.buffer import Allocation, Buffer, reclaim
from polygrad.runtime.interface import Executable, Handle
from polygrad.runtime.program import Program
from polygrad.runtime.sharded import ShardedBuffer
from polygrad.uop.alu import bytes_of
from polygrad.uop.args import Sharding
from polygrad.uop.intern import collect, collect_young
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops

# Functions that list the live lazy values (of Tensors above a serial number): called before a write in place
# overwrites what these read.
live_roots: list[Callable[[int], list[UOp]]] = []

_GRAPH_BYTES = 24 << 20  # of Programs kept, ready to run
_STRUCTURE_BYTES = 8 << 20  # of the keys by which they are found
_ENTRY_BYTES = 200  # of a node in a structure, or a buffer or a launch of a Program, about
_KERNEL_BYTES = 48 << 10  # of a loaded kernel beside its code, about
_COLLECT_NODES = 1 << 10
_COLLECT_BYTES = 1 << 18


_WRITING = frozenset({Ops.AFTER, Ops.ASSIGN})
_IN_PLACE = GroupOp.Memory | GroupOp.Movement | {Ops.DETACH, Ops.NOOP}  # what may be elements in memory


@dataclass(slots=True)
class _Garbage:
    taken_bytes: int = 0  # `Allocation.taken_bytes` at the last collection


_garbage = _Garbage()


@dataclass(slots=True)
class _Ready:
    compiled: Compiled
    arguments: list[Buffer] = field(default_factory=list)  # of the constants that vary
    values: tuple[UOp, ...] = ()  # what `arguments` hold
    executable: Executable | None = None  # loaded on the first run


# by the structure of what is pending: the family of its graphs, and what Variables are bound to in it
_families: LRU[tuple[Any, ...], tuple[Family, Mapping[str, int]]] = LRU(_STRUCTURE_BYTES)
# by family, and the constants that do not vary in it
_graphs: LRU[tuple[Any, ...], _Ready] = LRU(_GRAPH_BYTES)
_arenas: dict[str, Allocation] = {}
reclaim.append(collect)


@reopened.append
def _forget_device(name: str) -> None:
    """Loaded Programs and scratch memory of a device that was lost are of no use."""
    clear_caches()
    _arenas.pop(name, None)


def clear_caches() -> None:
    """Forget every Program (kernels stay)."""
    _families.clear()
    _graphs.clear()


def collect_garbage() -> None:
    """Free what is not held any more, if many nodes were made or much memory was taken lately."""
    taken = Allocation.taken_bytes
    if taken - _garbage.taken_bytes > max(_COLLECT_BYTES, Allocation.allocated_bytes // 4):
        _garbage.taken_bytes = taken
        collect_young()
    else:
        collect_young(_COLLECT_NODES)


def buffer_from(device: str, dtype: DType, data: memoryview) -> UOp:
    """A 1-D BUFFER on `device` with a copy of `data`, whose bytes are elements of `dtype`."""
    buffer = Buffer(Device[device], data.nbytes // dtype.itemsize, dtype)
    buffer.write(data)
    return UOp.buffer_of(buffer, dtype)


def data_of(uop: UOp, device: str | None = None) -> memoryview:
    """The bytes of a node's value, computed if need be. `device`: where it is, if it is made of constants.

    Raises CaptureError inside a captured function.
    """
    buffer, nbytes = _readable(uop, device)
    return buffer.read()[:nbytes]


async def data_of_async(uop: UOp, device: str | None = None) -> memoryview:
    """`data_of`, awaited: it is computed at once, and what it was then is read."""
    buffer, nbytes = _readable(uop, device)
    return (await buffer.read_async())[:nbytes]


def _readable(uop: UOp, device: str | None) -> tuple[Buffer, int]:
    """The memory of a node, computed if need be, and how many bytes of it the node is."""
    watch.forbid(
        f"a reading of values ({uop.dtype} of shape {uop.shape}: item, tolist, numpy, data, bool)",
        "return the Tensor and read it after the call",
    )
    (done,) = realize([uop], device)
    return done.base.arg, int(prod(done.shape)) * done.dtype.itemsize


@computing
def realize(uops: Sequence[UOp], device: str | None = None) -> list[UOp]:
    """Compute every node; the BUFFERs that hold them, reshaped. `device`: where graphs of constants go."""
    roots = [_base(u) for u in uops]
    todo = [r for r in roots if r.op is not Ops.BUFFER and uncomputed(r)]
    if len(todo) > 1:
        todo = dedup(todo)
    placeless = _realize(todo, device) if todo else {}
    return [
        (r if r.op is Ops.BUFFER else placeless.get(r) or _value(r)).reshape(u.shape)
        for r, u in zip(roots, uops, strict=True)
    ]


@computing
def preserve(memory: set[Allocation], since: int = 0) -> None:
    """Compute now what live lazy values read of `memory`, which is about to be written to.

    `since`: of those owned by Tensors above this serial number.
    """
    stale = _stale_values(memory, None, since)
    if stale:
        _preserve(stale)


def _preserve(stale: list[UOp]) -> None:
    """Compute values, into memory of their own where they are computed already."""
    copies = {n: UOp(Ops.CONTIGUOUS, n.dtype, (n,)) for n in stale if not uncomputed(n)}
    realize([copies.get(n, n) for n in stale])
    for node, copy in copies.items():
        node.value = copy.value


def _base(node: UOp) -> UOp:
    while node.op in (Ops.RESHAPE, Ops.DETACH):
        node = node.src[0]
    return node


def _value(node: UOp) -> UOp:
    assert node.value is not None
    return node.value


def _realize(todo: list[UOp], device: str | None) -> dict[UOp, UOp]:
    """Compute nodes and keep their values on them. Values of those made of constants alone are only returned:
    they may be needed on another device next, or with other values of their Variables in a replay."""
    pending = Pending(todo)
    home = next(iter(pending.devices), None) or device or Device.DEFAULT
    if pending.copies or len(pending.devices) > 1 or home.__class__ is tuple:
        if pending.writes:
            todo = _written(todo)
            pending = Pending(todo)
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


def _realize_apart(todo: list[UOp], device: str | None, pending: Pending) -> None:
    """Compute nodes that take copies between devices, or lie on several."""
    constants = _made_of_constants(pending)
    while True:
        order = _pending(todo)
        waiting: set[UOp] = set()  # what takes a copy that is still to be made
        ready: list[UOp] = []
        for node in order:
            if node.op is Ops.COPY and uncomputed(node) and node.src[0] not in constants:
                if node.src[0] not in waiting:
                    ready.append(node)
                waiting.add(node)
            elif not waiting.isdisjoint(node.src):
                waiting.add(node)
        if not ready:
            break
        _copy(ready, _needed_again(order, waiting, constants))
    places = devices_of(order)
    by_device: dict[str, list[UOp]] = {}
    for node in todo:
        if uncomputed(node):
            by_device.setdefault(places[node] or device or Device.DEFAULT, []).append(node)
    for name, nodes in by_device.items():
        _run(nodes, name, Pending(nodes))


def _needed_again(order: list[UOp], waiting: set[UOp], constants: set[UOp]) -> list[UOp]:
    """The results of reductions that both what is to be copied and what waits for copies may need: they are
    computed once, with the first."""
    reduced: set[UOp] = set()
    for node in order:
        if node in waiting or node in constants or not uncomputed(node) or node.op is Ops.SINK:
            continue
        if node.op is Ops.REDUCE_AXIS or not reduced.isdisjoint(node.src):
            reduced.add(node)
    found: dict[UOp, None] = {}
    for node in order:
        if node in waiting and node.op not in (Ops.COPY, Ops.SINK):
            for s in node.src:
                base = s.base
                if base in reduced and base.op is not Ops.AFTER and base.op is not Ops.ASSIGN:
                    found[base] = None
    return list(found)


def _realize_sharded(todo: list[UOp], device: Any, pending: Pending) -> dict[UOp, UOp]:
    """Compute nodes of which some are on several devices: what each of these computes of them."""
    if _compute_earlier(pending):
        todo = [n for n in todo if uncomputed(n)]
    roots, resolved = todo, resolve(todo)
    everywhere: set[UOp] = set()  # constants, of which each device gets a copy
    if isinstance(device, tuple):
        everywhere = {r for r in _constants(roots, pending) if r.op is not Ops.COPY}
        for i, (root, result) in enumerate(zip(roots, resolved, strict=True)):
            if root in everywhere and isinstance(result, UOp):
                (resolved[i],) = resolve([root.copy_to(Sharding(device, None))])
    parts = _distinct_parts(roots, resolved)
    wanted = [p for ps in parts.values() for p in ps]
    done = dict(zip(wanted, realize(wanted, device if isinstance(device, str) else None), strict=True))
    placeless: dict[UOp, UOp] = {}
    for root, result in zip(roots, resolved, strict=True):
        values = [done[p].base for p in parts[root]]
        if isinstance(result, Shards):
            values = [_joined(result, [v.arg for v in values], root.dtype)]
        if root in everywhere or (root.value is None and parts[root] == [root]):
            placeless[root] = values[0]
        elif isinstance(result, Shards) or root.value is None:
            root.value = values[0]
    return placeless


def _joined(
    shards: Shards, parts: Sequence[Buffer], dtype: DType, allocation: Allocation | None = None
) -> UOp:
    """The BUFFER of a value on several devices, of its parts'. `allocation`: of memory that was written."""
    return UOp.buffer_of(ShardedBuffer(parts, shards.shape, shards.axis, allocation), dtype)


# --- writes among several devices


def _written(todo: list[UOp]) -> list[UOp]:
    """Those of `todo` that are still to be computed, once the writes that any waits for have been made.

    Writes that wait for no others are made together, each device's in one Program. Before, what reads the
    memory as it was is computed or, where that waits for a write itself, what it reads is copied; so nothing
    that one device overwrites is read by another any more.
    """
    while True:
        _compute_earlier(Pending(todo))
        todo = [n for n in todo if uncomputed(n)]
        pending = Pending(todo)
        if not pending.writes:
            return todo
        writes = _first_writes(pending)
        moved = _stored_before(writes, todo)
        values = [v for w in writes for v in w.src[1].src[1:] if uncomputed(v) and _takes_transfers(v)]
        _compute_apart({v: v for v in values} | moved)
        _write(writes)
        for node, copy in moved.items():
            if copy is not node:
                node.value = copy.value


def _first_writes(pending: Pending) -> list[UOp]:
    """The writes that wait for no other."""
    writes, first = set(pending.writes), []
    waiting: set[UOp] = set()
    for node in pending.order:
        if not waiting.isdisjoint(node.src) and node.value is None:
            waiting.add(node)
        elif node in writes:
            waiting.add(node)
            first.append(node)
    return first


def _stored_before(writes: list[UOp], todo: list[UOp]) -> dict[UOp, UOp]:
    """What has to be stored before `writes` are made, for `todo` and live values that read memory as it is,
    and as what: itself, or a copy of what is in memory."""
    memory = {w.buffer.arg.allocation for w in writes}
    now = {w.src[1] for w in writes}
    live = [_base(uop) for hook in live_roots for uop in hook(0)]
    roots = dedup([*todo, *live])
    reading: set[UOp] = set()  # what reads the memory
    waiting: set[UOp] = set()  # what waits for a write
    found: dict[UOp, None] = {}
    for node in UOp.sink(*roots).toposort(uncomputed):
        value = value_of(node) or (node if node.op is Ops.BUFFER else None)
        if value is not None:
            if value.arg.allocation in memory:
                reading.add(node)
            continue
        src = node.src[1:] if node.op in _WRITING else node.src  # a write's target is not read
        if node.op in _WRITING or not waiting.isdisjoint(src):
            waiting.add(node)
            if node not in now and node.op is not Ops.SINK:
                found |= {s: None for s in src if s in reading}
        elif not reading.isdisjoint(src):
            reading.add(node)
    found |= {r: None for r in roots if r in reading and r.op not in GroupOp.Memory}
    in_memory = {n for n in found if value_of(n) is not None or n.op in _IN_PLACE}
    return {n: _stored_apart(n) if n in in_memory else n for n in found}


def _takes_transfers(value: UOp) -> bool:
    """Whether what a device writes comes from others."""
    (found,) = resolve([value])
    parts = found.parts if isinstance(found, Shards) else (found,)
    return any(n.op is Ops.COPY for n in UOp.sink(*parts).toposort(uncomputed))


def _compute_apart(stored: dict[UOp, UOp]) -> None:
    """Store values: no part of a capture in progress are those that are older, and neither is what stores
    them."""
    older = [n for n in stored if n.op not in GroupOp.Memory and _is_older(n)]
    if older:
        with watch.paused():
            realize([stored[n] for n in older])
    realize([stored[n] for n in stored if n not in older])


def _write(writes: list[UOp]) -> None:
    """Make writes (AFTERs) for which nothing is to be transferred, and which wait for no others."""
    resolved = resolve(writes)
    by_device: dict[str, list[UOp]] = {}
    for result in resolved:
        for part in result.parts if isinstance(result, Shards) else (result,):
            node = _base(part)
            by_device.setdefault(node.buffer.arg.device, []).append(node)
    for name, nodes in by_device.items():
        pending = Pending(nodes)
        roots = dedup([*pending.writes, *nodes])
        ready, variables = _ready(roots, pending, name)
        _execute(ready, roots, pending.buffers, variables, name)
    for write, result in zip(writes, resolved, strict=True):
        if isinstance(result, Shards):
            buffers = [_value(_base(part)).arg for part in result.parts]
            write.value = _joined(result, buffers, write.dtype, write.buffer.arg.allocation)
        elif write.value is None:
            write.value = _value(_base(result))


def _distinct_parts(roots: list[UOp], resolved: list[Resolved]) -> dict[UOp, list[UOp]]:
    """What each device computes of each root, in memory that no other root is in."""
    parts: dict[UOp, list[UOp]] = {}
    taken: set[UOp] = set()
    for root, result in zip(roots, resolved, strict=True):
        own = parts[root] = []
        for part in result.parts if isinstance(result, Shards) else (result,):
            while root.op is not Ops.AFTER and (_base(part).op is Ops.BUFFER or part in taken):
                part = _stored_apart(part)
            taken.add(part)
            own.append(part)
    return parts


def _stored_apart(node: UOp) -> UOp:
    """A value in memory of its own."""
    return UOp(Ops.CONTIGUOUS, node.dtype, (node,))


def _pending(roots: list[UOp]) -> list[UOp]:
    return UOp.sink(*roots).toposort(uncomputed)


def _constants(todo: list[UOp], pending: Pending) -> list[UOp]:
    """Those of `todo` that are made of constants alone: these are computed on any device."""
    if not pending.buffers:
        return todo
    if len(todo) == 1:
        return []
    values = [n for n in todo if n.op is not Ops.AFTER]
    if not values:
        return values
    constants = _made_of_constants(pending)
    return [n for n in values if n in constants]


def _made_of_constants(pending: Pending) -> set[UOp]:
    out: set[UOp] = set()
    for node in pending.order:
        if node.op is not Ops.BUFFER and node.value is None and out.issuperset(node.src):
            out.add(node)
    return out


def devices_of(order: list[UOp]) -> dict[UOp, Any]:
    """The device of each node of a toposort: that of its buffers; None where there are none. Raises
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
                        f"{node.op}: expected operands on one device, got {device} and {operand}: use .to()"
                    )
                device = operand
            out[node] = device
    return out


def _copy(copies: list[UOp], others: list[UOp]) -> None:
    """Carry out COPYs, whose sources are computed together with `others`."""
    sources = dedup([*(copy.src[0] for copy in copies), *others])
    done = dict(zip(sources, realize(sources), strict=True))
    for copy in copies:
        if value_of(copy) is not None:
            continue
        source = done[copy.src[0]].base
        old: Buffer = source.arg
        if old.device == copy.arg:
            copy.value = source
            continue
        target = Buffer(Device[copy.arg], old.size, copy.dtype)
        if watch.recording is None:
            target.copy_from(old)
        else:
            watch.recording.runs.append(Transfer(old, target))
        copy.value = UOp.buffer_of(target, copy.dtype)


def _run(todo: list[UOp], device: str, pending: Pending) -> None:
    """Compute nodes, under which is `pending`, in one Program."""
    if _compute_earlier(pending):
        todo = [n for n in todo if uncomputed(n)]
        pending = Pending(todo)
    stale: list[UOp] = []
    n_versions = 0
    while (
        len(pending.writes) > n_versions
    ):  # stale values may need writes of their own: these make others stale
        n_versions = len(pending.writes)
        memory = {n.buffer.arg.allocation for n in pending.writes}
        stale = _stale_values(memory, pending)
        pending.add([n for n in stale if uncomputed(n)])
        if pending.copies:  # a live value is made of what is on other devices
            todo = _written(todo)
            if not todo:
                return
            stale, pending = [], Pending(todo)
            break
        separate = [n for n in stale if _is_older(n)] if watch.recording is not None else []
        if separate:
            with watch.paused():
                _preserve(separate)
            stale = [n for n in stale if n not in separate]
            pending = Pending(todo)
            pending.add([n for n in stale if uncomputed(n)])
    moved: dict[UOp, UOp] = {}
    roots = todo
    if pending.writes:
        # a value in memory that is overwritten moves to a buffer of its own
        moved = {n: UOp(Ops.CONTIGUOUS, n.dtype, (n,)) for n in stale if not uncomputed(n)}
        pending.add(moved.values())
        roots = dedup([*pending.writes, *todo, *(moved.get(n, n) for n in stale)])
    ready, variables = _ready(roots, pending, device)
    _execute(ready, roots, pending.buffers, variables, device)
    for node, copy in moved.items():
        node.value = copy.value


def _ready(roots: list[UOp], pending: Pending, device: str) -> tuple[_Ready, Mapping[str, int]]:
    """The Program that computes `roots`, its varying constants set, and what its Variables are bound to."""
    order, constants = pending.order, pending.constants
    ends = (*[order[root] for root in roots], device, optimizing())
    family, variables = _family(pending, ends)
    varying = family.arguments(constants) if family.varying and watch.recording is None else ()
    key = (family, *[None if i in varying else c for i, c in enumerate(constants)])
    ready = _graphs.get(key)
    if ready is None:
        if watch.recording is None:  # what is captured runs with the constants that it has
            family.compare(pending, roots)
            varying = family.arguments(constants)
            key = (family, *[None if i in varying else c for i, c in enumerate(constants)])
        ready = _made_ready(roots, pending, [constants[i] for i in varying], device)
        _graphs.put(key, ready, _bytes_of(ready))
    if varying:
        values = tuple([constants[i] for i in varying])
        if values != ready.values:
            ready.values = ()
            for buffer, value in zip(ready.arguments, values, strict=True):
                buffer.write(memoryview(bytes_of(value.dtype, value.arg)))
            ready.values = values
    return ready, variables


def _family(pending: Pending, ends: tuple[Any, ...]) -> tuple[Family, Mapping[str, int]]:
    """The family of a graph with these `ends`, and what its Variables are bound to."""
    structure = (*pending.key, *ends)
    found = _families.get(structure)
    if found is not None:
        return found
    key, variables = pending.unbound_key()
    family = _families.get((*key, *ends)) if variables else None
    found = Family() if family is None else family[0], variables
    nbytes = _ENTRY_BYTES * (len(structure) + len(pending.constants))
    if variables:
        _families.put((*key, *ends), found, nbytes)
    _families.put(structure, found, nbytes)
    return found


def _bytes_of(ready: _Ready) -> int:
    """About what a Program takes once it is loaded, the code of its kernels included."""
    program = ready.compiled.program
    code = sum(len(kernel.code) + _KERNEL_BYTES for kernel in program.kernels) + len(program.driver)
    return code + _ENTRY_BYTES * (len(program.buffers) + len(program.launches))


def _made_ready(roots: list[UOp], pending: Pending, scalars: list[UOp], device: str) -> _Ready:
    """The Program that computes `roots`, with arguments for the constants `scalars`."""
    arguments = {c: UOp.buffer_of(Buffer(Device[device], 1, c.dtype), c.dtype) for c in scalars}
    normal = normalize(UOp.sink(*roots), pending.buffers, arguments)
    compiled = compile_graph(normal.sink, device, len(normal.buffers))
    return _Ready(compiled, [node.arg for node in arguments.values()])


def _compute_earlier(pending: Pending) -> bool:
    """Compute what is older than the capture in progress: it is no part of it. Whether there was any."""
    if watch.recording is None:
        return False
    earlier = [n for n in pending.order if n in watch.recording.lazy_values and uncomputed(n)]
    if earlier:
        with watch.paused():
            realize(earlier)
    return bool(earlier)


def _is_older(node: UOp) -> bool:
    """Whether a value is no part of the capture in progress."""
    recording, value = watch.recording, value_of(node)
    if recording is None:
        return False
    return node in recording.lazy_values or (value is not None and value.arg.allocation.is_allocated)


def _stale_values(memory: set[Allocation], pending: Pending | None = None, since: int = 0) -> list[UOp]:
    """What live lazy values (of Tensors above the serial number `since`) read of `memory` as it is before
    the writes in `pending` (AFTERs), whose newest version stays. Each is a live value, or a write's value."""
    live = dedup(b for hook in live_roots for uop in hook(since) if (b := _base(uop)).op is not Ops.BUFFER)
    if not live:
        return []
    stale: set[UOp] = set()
    seen: Container[UOp] = ()
    if pending is not None and pending.writes:
        seen, writes = pending.order, set(pending.writes)
        stale.update(n for n in pending.leaves if (n.value or n).arg.allocation in memory)
        stale.update(writes.intersection(n.src[0] for n in writes))
        for node in pending.order:
            if not stale.isdisjoint(node.src) and node.value is None and node.op not in _WRITING:
                stale.add(node)
    wanted: dict[UOp, None] = {}
    for node in UOp.sink(*live).toposort(lambda n: n not in seen and uncomputed(n)):
        if node in seen:
            continue
        value = node if node.op is Ops.BUFFER else value_of(node)
        if value is not None:
            if value.arg.allocation in memory:
                stale.add(node)
        elif node.op is Ops.ASSIGN:  # of a write that is not carried out now
            wanted |= {s: None for s in node.src[1:] if s in stale}
        elif node.op is not Ops.AFTER and not stale.isdisjoint(node.src):
            stale.add(node)
    wanted |= {n: None for n in live if n in stale and n.op not in GroupOp.Memory}
    return [n for n in wanted if n.op is not Ops.BUFFER]


def _execute(
    ready: _Ready, roots: list[UOp], slots: list[UOp], variables: Mapping[str, int], device: str
) -> None:
    program, outputs = ready.compiled.program, ready.compiled.outputs
    for variable in program.variables:
        if variable.name not in variables:
            raise ArgumentError(
                f"Variable {variable.name}: expected a bound one, got no value: use .bind(value)"
            )
    runtime = Device[device]
    buffers: list[Buffer | None] = [s.arg for s in slots]
    buffers += ready.arguments
    buffers += [None] * (len(program.buffers) - len(buffers))
    for root, position in zip(roots, outputs, strict=True):
        if program.buffers[position].role == "output":
            buffers[position] = Buffer(runtime, program.buffers[position].size, root.dtype)
    if watch.recording is None:
        _perform(ready, buffers, variables)
    else:
        watch.recording.runs.append(
            Run(program, buffers, variables, lambda: _perform(ready, buffers, variables))
        )
    for root, position in zip(roots, outputs, strict=True):
        buffer = buffers[position]
        assert buffer is not None
        if root.op is Ops.AFTER:  # roots come oldest version first: each replaces the ones before it
            buffer.allocation.version += 1
            buffer = buffer.alias()
        elif position < len(slots):  # what a custom kernel has just written
            buffer = buffer.alias()
        root.value = UOp.buffer_of(buffer, root.dtype)


def _perform(ready: _Ready, buffers: list[Buffer | None], variables: Mapping[str, int]) -> None:
    program = ready.compiled.program
    if ready.executable is None:
        ready.executable = Device[program.device].load(program)
    handles = [b.allocation.handle if b is not None else None for b in buffers]
    started = time.perf_counter()
    if watch.runner is None:
        run_program(ready.executable, handles, arena_for(program), variables)
    else:
        watch.runner(program, handles, arena_for(program), variables)
    if debug_level() >= 2:
        milliseconds = (time.perf_counter() - started) * 1e3
        size = f"{len(program.launches)} launches, {len(program.kernels)} different"
        print(f"{program.device}: {size}, {milliseconds:.3f} ms", file=sys.stderr)
    watch.executed += 1
    stats.count(program)


def arena_for(program: Program) -> Handle | None:
    """The device's scratch, grown as needed: Programs run one after the other."""
    if not program.arena:
        return None
    arena = _arenas.get(program.device)
    if arena is None or arena.nbytes < program.arena:
        arena = None  # the old one is freed before the new one is allocated
        _arenas.pop(program.device, None)
        arena = _arenas[program.device] = Allocation(Device[program.device], program.arena)
    return arena.handle
