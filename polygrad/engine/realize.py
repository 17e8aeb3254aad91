"""`realize`: compute nodes of a tensor graph, now.

Each call normalises its graph, takes the Program from the schedule cache or makes it, binds buffers and runs.
What was computed is remembered on the node (`UOp.value`), so nothing is computed twice.
"""

from __future__ import annotations

import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from polygrad.dtype import DType
from polygrad.engine.compile import Compiled, compile_graph, optimizing
from polygrad.engine.devices import Device
from polygrad.engine.normalize import normalize, uncomputed, value_of
from polygrad.engine.recording import Run, watch
from polygrad.engine.running import run_program
from polygrad.engine.stats import stats
from polygrad.errors import ArgumentError, DeviceError
from polygrad.helpers import debug_level, dedup, prod
from polygrad.monitor import computing
from polygrad.runtime.buffer import Allocation, Buffer, reclaim
from polygrad.runtime.interface import Executable, Handle
from polygrad.runtime.program import Program
from polygrad.uop.node import UOp, collect
from polygrad.uop.ops import GroupOp, Ops

# Functions that list the live lazy values (of Tensors above a serial number): called before a write in place
# overwrites what these read.
live_roots: list[Callable[[int], list[UOp]]] = []

_MAX_GRAPHS = 256


@dataclass(slots=True)
class _Ready:
    compiled: Compiled
    executable: Executable | None = None  # loaded on the first run


_graphs: OrderedDict[tuple[UOp, str, bool], _Ready] = OrderedDict()
_arenas: dict[str, Allocation] = {}
reclaim.append(collect)


def clear_caches() -> None:
    """Forget every Program (kernels stay)."""
    _graphs.clear()


def buffer_from(device: str, dtype: DType, data: memoryview) -> UOp:
    """A 1-D BUFFER on `device` with a copy of `data`, whose bytes are elements of `dtype`."""
    buffer = Buffer(Device[device], data.nbytes // dtype.itemsize, dtype)
    buffer.write(data)
    return UOp(Ops.BUFFER, dtype, (), buffer)


def data_of(uop: UOp, device: str | None = None) -> memoryview:
    """The bytes of a node's value, computed if need be. `device`: where it is, if it is made of constants.

    Raises CaptureError inside a captured function.
    """
    watch.forbid(
        f"a reading of values ({uop.dtype} of shape {uop.shape}: item, tolist, numpy, data, bool)",
        "return the Tensor and read it after the call",
    )
    (done,) = realize([uop], device)
    buffer: Buffer = done.base.arg
    return buffer.read()[: int(prod(done.shape)) * done.dtype.itemsize]


@computing
def realize(uops: Sequence[UOp], device: str | None = None) -> list[UOp]:
    """Compute every node; the BUFFERs that hold them, reshaped. `device`: where graphs of constants go."""
    roots = [_base(u) for u in uops]
    todo = dedup(r for r in roots if r.op is not Ops.BUFFER and uncomputed(r))
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
    stale = _stale_values(memory, set(), since)
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
    order = _pending(todo)
    constants = _constants(order)
    copies = [n for n in order if n.op is Ops.COPY and n.src[0] not in constants]
    _copy(copies)
    places = devices_of(order)
    by_device: dict[str, list[UOp]] = {}
    for node in todo:
        if uncomputed(node):
            by_device.setdefault(places[node] or device or Device.DEFAULT, []).append(node)
    for name, nodes in by_device.items():
        _run(nodes, name)
    placeless: dict[UOp, UOp] = {}
    for node in todo:
        if node in constants:
            placeless[node], node.value = _value(node), None
    return placeless


def _pending(roots: list[UOp]) -> list[UOp]:
    return UOp.sink(*roots).toposort(uncomputed)


def _constants(order: list[UOp]) -> set[UOp]:
    """The nodes of a toposort that are made of constants alone: these are computed on any device."""
    out: set[UOp] = set()
    for node in order:
        if node.op is not Ops.BUFFER and node.value is None and all(s in out for s in node.src):
            out.add(node)
    return out


def devices_of(order: list[UOp]) -> dict[UOp, str | None]:
    """The device of each node of a toposort: that of its buffers; None where there are none. Raises
    DeviceError."""
    out: dict[UOp, str | None] = {}
    for node in order:
        if node.op is Ops.SINK:
            continue
        if node.value is not None:
            out[node] = node.value.arg.device
        elif node.op is Ops.BUFFER:
            out[node] = node.arg.device
        elif node.op is Ops.COPY:
            out[node] = node.arg
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


def _copy(copies: list[UOp]) -> None:
    """Carry out COPYs, sources first; each goes through the host."""
    for copy in copies:
        if value_of(copy) is not None:
            continue
        source = copy.src[0]
        (done,) = realize([source], copy.arg)
        old: Buffer = done.base.arg
        target = Buffer(Device[copy.arg], old.size, copy.dtype)
        if old.device == copy.arg:
            copy.value = done.base
            continue
        watch.forbid(f"a copy from {old.device} to {copy.arg}", "move it before the call")
        target.write(old.read())
        copy.value = UOp(Ops.BUFFER, copy.dtype, (), target)


def _run(todo: list[UOp], device: str) -> None:
    if watch.recording is not None:
        _compute_now([n for n in _pending(todo) if n in watch.recording.lazy_values and uncomputed(n)])
        todo = [n for n in todo if uncomputed(n)]
    stale: list[UOp] = []
    versions = _versions(todo)
    while versions:  # stale values may need writes of their own, which make others stale
        stale = _stale_values({n.buffer.arg.allocation for n in versions}, set(versions))
        separate = [n for n in stale if _is_separate(n)]
        if separate:
            with watch.paused():
                _preserve(separate)
            stale = [n for n in stale if n not in separate]
        count, versions = len(versions), _versions([*todo, *stale])
        if len(versions) == count:
            break
    # a value in memory that is overwritten moves to a buffer of its own
    moved = {n: UOp(Ops.CONTIGUOUS, n.dtype, (n,)) for n in stale if not uncomputed(n)}
    roots = dedup([*versions, *todo, *(moved.get(n, n) for n in stale)])
    normal = normalize(UOp.sink(*roots))
    key = (normal.sink, device, optimizing())
    ready = _graphs.get(key)
    if ready is None:
        ready = _graphs[key] = _Ready(compile_graph(normal.sink, device, len(normal.buffers)))
        if len(_graphs) > _MAX_GRAPHS:
            _graphs.popitem(last=False)
    else:
        _graphs.move_to_end(key)
    _execute(ready, roots, normal.buffers, normal.variables, device)
    for node, copy in moved.items():
        node.value = copy.value


def _versions(roots: list[UOp]) -> list[UOp]:
    """The pending writes, of each memory the oldest first."""
    return [n for n in _pending(roots) if n.op is Ops.AFTER and uncomputed(n)]


def _compute_now(earlier: list[UOp]) -> None:
    """Compute values that are older than the capture in progress: they are no part of it."""
    if earlier:
        with watch.paused():
            realize(earlier)


def _is_separate(node: UOp) -> bool:
    """Whether a value cannot be computed by the Program that overwrites what it reads: it is no part of the
    capture in progress, or it comes from another device."""
    recording, value = watch.recording, value_of(node)
    if recording is not None:
        if node in recording.lazy_values or (value is not None and value.arg.allocation.is_allocated):
            return True
    return value is None and any(n.op is Ops.COPY and uncomputed(n) for n in _pending([node]))


def _stale_values(memory: set[Allocation], writes: set[UOp], since: int = 0) -> list[UOp]:
    """What live lazy values read of `memory` as it is before the pending `writes` (AFTERs), whose newest
    version stays. Each is a live value, or the value of a write."""
    replaced = {n.src[0] for n in writes}
    live = dedup(b for hook in live_roots for uop in hook(since) if (b := _base(uop)).op is not Ops.BUFFER)
    if not live:
        return []
    stale: set[UOp] = set()
    wanted: dict[UOp, None] = {}
    for node in UOp.sink(*live).toposort(lambda n: n not in writes and uncomputed(n)):
        value = node if node.op is Ops.BUFFER else value_of(node)
        if value is not None:
            if value.arg.allocation in memory:
                stale.add(node)
        elif node in writes:
            if node in replaced:
                stale.add(node)
        elif node.op is Ops.ASSIGN:
            if node.src[1] in stale:
                wanted[node.src[1]] = None
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
    buffers += [None] * (len(program.buffers) - len(slots))
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
        root.value = UOp(Ops.BUFFER, root.dtype, (), buffer)


def _perform(ready: _Ready, buffers: list[Buffer | None], variables: Mapping[str, int]) -> None:
    program = ready.compiled.program
    if ready.executable is None:
        ready.executable = Device[program.device].load(program)
    handles = [b.handle if b is not None else None for b in buffers]
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
    stats.runs += 1
    stats.launches += len(program.launches)


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
