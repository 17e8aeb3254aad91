"""What the tests of CUDA and METAL share: Programs of one kernel, `out = 2*x + n`, memory with floats in it,
and captured steps."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
import pytest

from polygrad import Tensor, TinyJit, Variable
from polygrad.runtime.interface import Handle, Runtime
from polygrad.runtime.program import Binding, BufferSpec, Kernel, Launch, Program
from polygrad.runtime.program import Variable as ProgramVariable

FIVE = BufferSpec(5, "float32", "input")
SCRATCH = BufferSpec(5, "float32", "scratch", 256)


def twice(language: str, text: str) -> Kernel:
    """The kernel `twice`, whose text is a language's."""
    return Kernel("twice", text.encode(), 2, ("n",), language=language, writes=(0,), workgroup=(1, 1, 1))


def programs_of(device: str, default: Kernel) -> Callable[..., Program]:
    """A function that makes a device's Programs of launches, by the numbers of their buffers."""

    def program(*bindings, buffers=(FIVE, FIVE), kernel=default, grid=(5, 1, 1)):
        launches = tuple(Launch(0, (Binding(a), Binding(b)), grid) for a, b in bindings)
        arena = 1024 if SCRATCH in buffers else 0
        variables = (ProgramVariable("n", 0, 10),)
        return Program(device, "test", tuple(buffers), (kernel,), launches, variables, arena)

    return program


def filled(runtime: Runtime, values: list[float]) -> Handle:
    handle = runtime.allocate(4 * len(values))
    runtime.write(handle, 0, memoryview(struct.pack(f"{len(values)}f", *values)))
    return handle


def floats(runtime: Runtime, handle: Handle, n: int = 5) -> list[float]:
    return list(struct.unpack(f"{n}f", runtime.read(handle, 0, 4 * n)))


def run_captured_steps(device: str, counted: Callable[[], object]) -> tuple[object, object]:
    """Attention of some matrices by a captured step: what was counted before its last call, and after."""

    @TinyJit
    def step(x):
        return ((x @ x).softmax(1) @ x).sum().realize()

    rng = np.random.default_rng(0)
    for _ in range(4):
        x = rng.standard_normal((24, 24)).astype(np.float32)
        arranged = Tensor(x, device=device).realize()
        before = counted()
        got = step(arranged).item()
        e = np.exp(x.astype(np.float64) @ x)
        assert got == pytest.approx(float((e / e.sum(1, keepdims=True) @ x).sum()), rel=1e-3)
    return before, counted()


def check_captured_steps_of_many_sizes(device: str) -> None:
    @TinyJit
    def step(x):
        return ((x * 2).sum() + x.max()).realize()

    x = np.arange(40, dtype=np.float32)
    for n in (40, 7, 1, 23, 40, 8):
        size = Variable("n", 1, 40).bind(n)
        assert step(Tensor(x, device=device)[:size]).item() == 2 * x[:n].sum() + x[:n].max()
