"""Capturing a call: what it does on the device is written down instead of done.

The arguments' memory stands behind placeholders for the time of the call, and all else that is stored gets
new nodes, so that no value computed before is mistaken for part of the call.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from polygrad.engine.capture import Captured, merge
from polygrad.engine.normalize import uncomputed
from polygrad.engine.realize import realize
from polygrad.engine.recording import Recording, recorded, watch
from polygrad.errors import CaptureError
from polygrad.runtime.buffer import Allocation
from polygrad.tensor.aliasing import (
    Storage,
    is_constant,
    is_derived,
    memory_under,
    realize_tensors,
    rename,
    settle,
    storage_of,
)
from polygrad.tensor.arguments import Spec, tensors_in, unbound_shape
from polygrad.tensor.generator import generator
from polygrad.tensor.placeholders import LazyPlaceholders, Placeholders, memory_of
from polygrad.tensor.registry import live_tensors
from polygrad.tensor.step import Step
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops


def capture(
    call: Callable[[], Any],
    arguments: Sequence[Any],
    names: Sequence[str],
    forget: Callable[[], None] | None = None,
    written: Collection[Storage] | None = None,
) -> Step:
    """Capture `call`, which uses the Tensors `arguments`, without running anything.

    `forget` drops Tensors that `call` leaves behind, once what is wanted is computed: gradients, so that they
    are stored as in an eager call (whose kernels these then are, and so whose rounding) but need not stay.
    `written`: what an earlier call wrote to, if there was one.
    Raises CaptureError, and what `call` raises; then what it had computed has been computed after all.
    """
    unique = list({id(t): t for t in arguments}.values())
    realize_tensors([*unique, *_written()])
    storages = dict.fromkeys(storage_of(t) for t in live_tensors())
    lazy = [s for s in storages if s.node.op not in GroupOp.Memory and 0 not in s.node.shape]
    kept = [
        s for s in lazy if is_derived(s) or (written is not None and s not in written and _is_counted(s.node))
    ]
    for storage in storages:
        settle(storage)
        if storage.node.op is Ops.BUFFER:
            rename(storage)
    before = frozenset(s.node for s in lazy if not is_constant(s.node))
    recording = Recording(before, frozenset(storages), frozenset(kept))
    specs = []
    for name, t in zip(names, arguments, strict=True):
        specs.append(Spec(name, unbound_shape(t.shape, {}), t.dtype, memory_of(t).device))
    placeholders = Placeholders(unique, written)
    others = LazyPlaceholders(s for s in lazy if s not in kept)
    with placeholders, others, generator.captured() as draws, recorded(recording, others.fill):
        result = call()
        outputs = tensors_in(result)
        _give_own_memory(outputs, unique, {b.allocation for b in placeholders.buffers})
        realize_tensors([*outputs, *_written()])
        realize(draws.advances())
        buffers = [memory_of(t) for t in outputs]
        if forget is not None:
            forget()
        with watch.paused():
            others.fill(recording)
        captured = merge(recording, placeholders.buffers, buffers)
    for t, buffer in zip(outputs, buffers, strict=True):
        if t._derived:
            t.uop, t._storage = UOp(Ops.BUFFER, t.dtype, (), buffer).reshape(t.shape), None
            t.requires_grad, t._derived = False, False
        storage_of(t)
    passed = dict(zip(map(id, unique), placeholders.passed, strict=True))
    held = _holders(captured, len(placeholders.buffers))
    return Step(captured, specs, [passed[id(t)] for t in arguments], held, draws, recording.guards, result)


def _written() -> list[Any]:
    """Tensors over memory with writes that have not been carried out."""
    return [
        t
        for t in live_tensors()
        if (memory := memory_under(t.uop)) is not None and memory.op is Ops.AFTER and uncomputed(memory)
    ]


def _is_counted(uop: UOp) -> bool:
    """Whether a node is a constant range of numbers, which kernels make better use of than of memory."""
    while uop.op in GroupOp.Movement or uop.op is Ops.CAST:
        uop = uop.src[0]
    return uop.op is Ops.ARANGE


def _give_own_memory(outputs: list[Any], inputs: list[Any], placeholders: set[Allocation]) -> None:
    """Results that are views of an argument become copies.

    Raises CaptureError for an argument itself.
    """
    for t in outputs:
        memory = memory_under(t.uop)
        if memory is not None and memory.buffer.arg.allocation in placeholders:
            if any(t is x for x in inputs):
                raise CaptureError(
                    "captured function: expected new Tensors as results, got one of its arguments: return a "
                    "clone() of it, or nothing"
                )
            t.uop, t._storage = UOp(Ops.CONTIGUOUS, t.dtype, (t.uop,)), None


def _holders(captured: Captured, n_inputs: int) -> list[list[Any]]:
    """For the memory that was there before: [a Tensor over it, the Tensor's node, the position]."""
    program = captured.program
    positions = {
        b.allocation: i
        for i, b in enumerate(captured.buffers)
        if b is not None and program.buffers[i].role in ("param", "state") and i >= n_inputs
    }
    live = live_tensors()
    found: dict[int, list[Any]] = {}
    for t in live:
        memory = memory_under(t.uop)
        if memory is not None and memory.op in GroupOp.Memory:
            position = positions.get(memory.buffer.arg.allocation)
            if position is not None:
                found.setdefault(position, [t, t.uop, position])
    return list(found.values())
