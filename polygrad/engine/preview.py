"""A preview of the Programs that computing an expression would run. It has no visible effects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from polygrad.engine.realize import realize
from polygrad.engine.recording import Exchange, RecordedRun, Recording, Transfer, watch
from polygrad.monitor import computing
from polygrad.runtime.buffer import Allocation, Buffer
from polygrad.uop.intern import table
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


@computing
def preview(uops: Sequence[UOp], device: str | None = None) -> list[RecordedRun | Transfer]:
    """The Programs and the copies between devices that `realize` would run for nodes, in order.

    Kernels are compiled, and kept for later runs. Constants are in the kernels' code; in a loop that computes
    the same expression with other constants, they are arguments from the second round on.
    """
    watch.forbid("a preview of what it runs", "ask before or after the call")
    recording = Recording(preview=True)
    with _restore_afterwards():
        watch.recording = recording
        try:
            realize(uops, device)
        finally:
            watch.recording = None
    return [run for run in recording.runs if not isinstance(run, Exchange)]  # `realize` makes none


@contextmanager
def _restore_afterwards() -> Iterator[None]:
    """`with _restore_afterwards():` restores the values of nodes and the versions of memory at the end of the
    block."""
    values = {node: node.value for node in _nodes()}
    buffers: set[UOp] = set()  # these are not in the intern table
    for node, value in values.items():
        buffers.update(s for s in node.src if s.op is Ops.BUFFER and isinstance(s.arg, Buffer))
        if value is not None:
            buffers.add(value)
    values |= {node: node.value for node in buffers}
    versions: dict[Allocation, int] = {}
    for node in buffers:
        for allocation in (*[part.allocation for part in node.arg.parts], node.arg.allocation):
            versions[allocation] = allocation.version
    try:
        yield
    finally:
        for node in [*_nodes(), *buffers]:
            node.value = values.get(node)
        for allocation, version in versions.items():
            allocation.version = version


def _nodes() -> list[UOp]:
    return list(table.values())
