"""From kernels, buffers and calls to a Program: numbers, shared kernels, the arena, barriers, threads."""

from __future__ import annotations

from polygrad.engine.assembler import Call, assemble, plan_arena
from polygrad.engine.devices import Device
from polygrad.runtime.program import Binding, BufferSpec, Kernel, Variable

COPY = Kernel("copy", b"", 2, language="object", writes=(0,))
SUM = Kernel("sum", b"", 2, ("thread", "threads"), language="object", writes=(0,), parallel=True)
X = BufferSpec(1000, "float32", "input")
OUT = BufferSpec(1000, "float32", "output")
SCRATCH = BufferSpec(1000, "float32", "scratch")


def test_buffers_are_numbered_in_their_order_and_equal_kernels_are_shared() -> None:
    calls = [Call(COPY, (("mid", 0), ("x", 64))), Call(COPY, (("out", 0), ("mid", 0)))]
    buffers = {"x": X, "out": OUT, "mid": SCRATCH}
    arena = plan_arena("CPU", buffers, [call.used for call in calls])
    program = assemble("CPU", buffers, calls, arena, [Variable("n", 1, 4)])
    assert [spec.role for spec in program.buffers] == ["input", "output", "scratch"]
    assert [spec.offset for spec in program.buffers] == [-1, -1, 0]
    assert program.kernels == (COPY,)
    assert [launch.bindings for launch in program.launches] == [
        (Binding(2), Binding(0, 64)),
        (Binding(1), Binding(2)),
    ]
    assert program.variables == (Variable("n", 1, 4),)
    assert program.arena == arena.nbytes >= 4000
    assert program.target == Device.backend("CPU").target.key
    assert [call.written for call in calls] == [["mid"], ["out"]]


def test_scratch_shares_memory_once_its_last_reader_is_done() -> None:
    buffers = {"x": X, "a": SCRATCH, "b": SCRATCH, "c": SCRATCH, "elsewhere": OUT}
    arena = plan_arena("CPU", buffers, [("x", "a"), ("a", "b"), ("memory of another device",), ("b", "c")])
    assert arena.offsets["a"] == arena.offsets["c"] != arena.offsets["b"]
    assert arena.lower_bound == 8000 <= arena.nbytes < 12000
    assert arena.offsets.keys() == {"a", "b", "c"}


def test_parallel_kernels_have_the_targets_threads_and_barriers() -> None:
    calls = [
        Call(SUM, (("a", 0), ("x", 0))),
        Call(SUM, (("b", 0), ("x", 0))),
        Call(COPY, (("x", 0), ("a", 0))),
    ]
    buffers = {"x": X, "a": OUT, "b": OUT}
    program = assemble("CPU", buffers, calls)
    assert program.threads == Device.backend("CPU").target.threads
    assert [launch.barrier for launch in program.launches] == [False, False, True]
    assert assemble("CPU", buffers, calls[2:]).threads == 1
