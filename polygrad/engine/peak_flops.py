"""The peak of a device in operations on float32 per second, with which the speed of kernels is compared.

It is measured, not looked up. The function that is timed consists of independent multiply-adds in registers.
The Builder of the device's kernels writes it, and their runtime runs it, on as many threads.
"""

from __future__ import annotations

import functools
import time
from typing import Any

from polygrad.dtype import dtypes
from polygrad.engine.assembler import Call, assemble
from polygrad.engine.devices import Device
from polygrad.errors import DeviceError
from polygrad.helpers import THREAD, THREADS
from polygrad.renderer.builder import Address, Builder
from polygrad.runtime.buffer import Buffer
from polygrad.runtime.interface import Executable
from polygrad.runtime.program import BufferSpec, Kernel, Program
from polygrad.uop.ops import Ops

_NAME = "multiply_adds"
_SUMS = 12  # independent: enough for two units with a latency of four or five; they fit in 16 registers
_UNROLLED = 4
_ROUNDS = 1 << 18
MULTIPLY_ADDS = _SUMS * _UNROLLED * _ROUNDS
_WARM_SECONDS, _SECONDS = 0.15, 0.15  # engines compile a function again, better, once it has run for a while
_MIN_RUNS = 3  # even if one takes longer than _SECONDS on a busy machine


@functools.cache
def peak_flops(device: str) -> float:
    """float32 operations per second of `device`, a multiply-add counted as two; measured once, in 0.3 s.

    Raises DeviceError for a device whose kernels are not made of instructions (INTERP).
    """
    program = multiply_adds(device)
    buffer = Buffer(Device[device], program.buffers[0].size, dtypes.float32)
    buffer.write(memoryview(bytes(buffer.nbytes)))
    executable = Device[device].load(program)
    _times(executable, buffer, _WARM_SECONDS)
    return flops(device) / min(_times(executable, buffer, _SECONDS))


def _times(executable: Executable, buffer: Buffer, seconds: float) -> list[float]:
    """The times of all runs that start within `seconds`, and of at least `_MIN_RUNS` runs."""
    times: list[float] = []
    started = now = time.perf_counter()
    while len(times) < _MIN_RUNS or now < started + seconds:
        executable.run([buffer.handle], None, {})
        times.append(time.perf_counter() - now)
        now = time.perf_counter()
    return times


def flops(device: str) -> float:
    """The float32 operations of one run of `multiply_adds(device)`."""
    return 2.0 * _lanes(device) * MULTIPLY_ADDS


def multiply_adds(device: str) -> Program:
    """The Program that `peak_flops` times: `MULTIPLY_ADDS` in every lane of a vector.

    Its one buffer holds as many float32 as there are lanes, f, then for each thread as many again: f*f times
    the multiply-adds of that thread. Raises DeviceError.
    """
    backend = Device.backend(device)
    if backend.assemble is None:
        raise DeviceError(f"peak: device {device} runs no instructions of its own: use CPU or WASM")
    lanes, threads = _lanes(device), backend.target.threads
    code = backend.assemble(lambda builder: _write(builder, lanes))
    kernel = Kernel(_NAME, code, 1, (THREAD, THREADS), language=backend.language, writes=(0,), parallel=True)
    memory = BufferSpec(lanes * (1 + threads), "float32", "state")
    return assemble(device, {0: memory}, [Call(kernel, ((0, 0),))])


def _lanes(device: str) -> int:
    return max(Device.backend(device).target.simd_bytes // dtypes.float32.itemsize, 1)


def _write(builder: Builder, lanes: int) -> Any:
    """Write the function. Its threads share the rounds, and each stores the total of its sums."""
    dtype, index = dtypes.float32, dtypes.index
    (memory,), (thread, threads) = builder.begin(_NAME, [dtype], [THREAD, THREADS])
    factor = builder.load(Address(memory), dtype, lanes)
    sums = [builder.register(dtype, lanes) for _ in range(_SUMS)]
    for sum_ in sums:
        builder.set(sum_, builder.const(dtype, 0.0, lanes))
    builder.loop(builder.alu(Ops.IDIV, index, [builder.const(index, _ROUNDS, 1), threads], 1))
    for _ in range(_UNROLLED):
        for sum_ in sums:
            builder.set(sum_, builder.alu(Ops.MULACC, dtype, [factor, factor, builder.get(sum_)], lanes))
    builder.end_loop()
    total = builder.get(sums[0])
    for sum_ in sums[1:]:
        total = builder.alu(Ops.ADD, dtype, [total, builder.get(sum_)], lanes)
    place = builder.alu(Ops.MUL, index, [thread, builder.const(index, lanes, 1)], 1)
    builder.store(Address(memory, place, lanes), total, dtype, lanes)
    return builder.finish()
