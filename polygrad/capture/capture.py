"""Capturing a call: what it does on the device is recorded instead of done.

Placeholders replace the arguments' memory during the call. Other Tensors that are older than the call become
part of it when it meets them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from polygrad.capture.arguments import Spec, replace_arguments, tensors_in, unbind_shape
from polygrad.capture.gradients import LeftGradients
from polygrad.capture.merge import Merged, merge
from polygrad.capture.placeholders import OlderTensors, Placeholders, memory_of
from polygrad.capture.replay import BufferReference, CapturedStep, UsedTensor
from polygrad.engine.normalize import is_uncomputed
from polygrad.engine.realize import realize
from polygrad.engine.recording import Recording, record, watch
from polygrad.monitor import exclusive
from polygrad.runtime.buffer import Allocation, Buffer
from polygrad.tensor.core.aliasing import (
    Storage,
    memory_under,
    realize_tensors,
    rename,
    settle,
    storage_of,
)
from polygrad.tensor.core.generator import CapturedDraws, generator
from polygrad.tensor.core.registry import live_tensors, newest
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops


@exclusive
def capture(
    call: Callable[[], Any],
    arguments: Sequence[Any],
    names: Sequence[str],
    forget: Callable[[], None] | None = None,
    written: Collection[Storage] | None = None,
    prune: bool = False,
    gradients: LeftGradients | None = None,
) -> CapturedStep:
    """Capture `call`, which uses the Tensors `arguments`, without running anything.

    `forget` drops Tensors that `call` leaves behind, once all results are computed: gradients, so that they
    are stored as in an eager call (whose kernels, and so whose rounding, are the same) but are not kept.
    `written`: what an earlier call wrote to, if there was one. `prune`: constant work runs once (see
    `TinyJit`). `gradients`: is told which gradients the call reads and leaves behind.
    Raises CaptureError, and what `call` raises; then its work has been carried out eagerly.
    """
    unique = list({id(t): t for t in arguments}.values())
    realize_tensors([*unique, *tensors_with_writes()])
    recording = Recording(newest())
    older, drawing = OlderTensors(unique, recording, written), generator.captured()
    recorder = record(recording, older.fill)
    placeholders: Placeholders | None = None
    try:
        older.add_arguments()
        if gradients is not None:
            gradients.begin(recording, arguments)
        specs = []
        for name, t in zip(names, arguments, strict=True):
            specs.append(Spec(name, unbind_shape(t.shape, {}), t.dtype, memory_of(t).device))
        placeholders = Placeholders(unique, written)
        with placeholders, older, drawing as draws:
            try:
                with recorder:
                    recorded = _record(
                        call, arguments, recording, older, placeholders, draws, forget, prune, gradients
                    )
            except BaseException:
                recorder.gen.close()
                raise
    except BaseException:  # a signal's handler may have raised where one of the blocks begins to end
        drawing.gen.close()
        older.close()
        if placeholders is not None:
            placeholders.close(failed=True)
        raise
    captured = recorded.captured
    nodes: dict[Buffer, UOp] = {}  # results in one buffer share its node
    for t, buffer in zip(recorded.outputs, recorded.buffers, strict=True):
        if t._derived:
            node = nodes.setdefault(buffer, UOp.buffer_of(buffer, t.dtype))
            t.uop, t._storage = node.reshape(t.shape), None
            t._requires_grad, t._derived = False, False
        storage_of(t)
    for storage in dict.fromkeys(storage_of(t) for t in recorded.live):
        settle(storage)
        if storage.node.op is Ops.BUFFER:  # its contents are recorded, not computed yet
            rename(storage)
    memory_of_tensor = dict(zip(map(id, unique), placeholders.argument_memory, strict=True))
    return CapturedStep(
        captured,
        specs,
        [memory_of_tensor[id(t)] for t in arguments],
        placeholders.buffers,
        _used_tensors(captured, recorded.n_inputs, recorded.live),
        draws,
        recording.guards,
        recorded.youngest,
        recorded.result,
        recording.checks,
        recorded.returns_arguments,
    )


@dataclass(frozen=True, slots=True)
class _Recorded:
    """A recorded call. `outputs`: its Tensors, in `buffers`. `live`: all Tensors that it has met or made."""

    captured: Merged
    n_inputs: int
    outputs: list[Any]
    buffers: list[Buffer]
    live: list[Any]
    youngest: int
    result: Any
    returns_arguments: bool


def _record(
    call: Callable[[], Any],
    arguments: Sequence[Any],
    recording: Recording,
    older: OlderTensors,
    placeholders: Placeholders,
    draws: CapturedDraws,
    forget: Callable[[], None] | None,
    prune: bool,
    gradients: LeftGradients | None,
) -> _Recorded:
    """Make the call, while the recording is active, and merge what it records."""
    result = call()
    places = {id(t): i for i, t in reversed(list(enumerate(arguments)))}
    result_tensors = [t for t in tensors_in(result) if id(t) not in places]
    result, returns_arguments = replace_arguments(result, places)
    outputs = [*result_tensors, *[check.result for check in recording.checks]]
    _give_own_memory(outputs, {b.allocation for b in placeholders.buffers})
    realize_tensors(
        [*outputs, *(() if gradients is None else gradients.new_gradients()), *tensors_with_writes()]
    )
    realize(draws.advances())
    if gradients is not None:
        gradients.end(recording)
    buffers = [memory_of(t) for t in outputs]
    if forget is not None:
        forget()
    watch.paused(lambda: older.fill(recording))
    inputs = [part for b in placeholders.buffers for part in b.parts]
    captured = merge(recording, inputs, [part for b in buffers for part in b.parts], prune, returns_arguments)
    youngest = 0 if older.have_new_values() else recording.since
    return _Recorded(
        captured, len(inputs), outputs, buffers, live_tensors(), youngest, result, returns_arguments
    )


def tensors_with_writes() -> list[Any]:
    """Tensors over memory with pending writes that can be made."""
    return [
        t
        for t in live_tensors()
        if (memory := memory_under(t.uop)) is not None
        and memory.op is Ops.AFTER
        and is_uncomputed(memory)
        and not memory.buffer.arg.allocation.is_damaged
    ]


def _give_own_memory(outputs: list[Any], placeholders: set[Allocation]) -> None:
    """Results that are views of an argument become copies."""
    for t in outputs:
        memory = memory_under(t.uop)
        if memory is not None and memory.buffer.arg.allocation in placeholders:
            t.uop, t._storage = t.uop.clone(), None


def _used_tensors(captured: Merged, n_inputs: int, live: list[Any]) -> list[UsedTensor]:
    """One of the `live` Tensors over each memory that the Programs use and that is older than the capture."""
    places: dict[Allocation, list[BufferReference]] = {}
    for program, first in ((captured.program, n_inputs), (captured.once, 0)):
        if program is not None:
            for i, (buffer, role) in enumerate(zip(program.buffers, program.roles, strict=True)):
                if buffer is not None and role in ("param", "state") and i >= first:
                    places.setdefault(buffer.allocation, []).append(BufferReference(program, i))
    used_tensors: dict[Allocation, UsedTensor] = {}
    for t in live:
        memory = memory_under(t.uop)
        if memory is not None and memory.op in GroupOp.Memory:
            buffer = memory.buffer.arg
            tensors_of_parts = [places.get(part.allocation, []) for part in buffer.parts]
            if any(tensors_of_parts):
                used_tensors.setdefault(buffer.allocation, UsedTensor(t, t.uop, tensors_of_parts))
    return list(used_tensors.values())
