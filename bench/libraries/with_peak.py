"""What a processor's multiply-add units can reach: independent sums in vector registers and nothing else."""

from __future__ import annotations

from bench.libraries.shapes import Program
from polygrad.dtype import dtypes
from polygrad.engine import peak_flops as peak
from polygrad.engine.devices import Device
from polygrad.runtime.buffer import Buffer

DEVICE = "CPU"


def native_flops() -> float:
    """Of one step."""
    return peak.flops(DEVICE)


def make(kind: str, sizes: dict[str, int]) -> Program:
    del kind, sizes
    program = peak.multiply_adds(DEVICE)
    buffer = Buffer(Device[DEVICE], program.buffers[0].size, dtypes.float32)
    buffer.write(memoryview(bytes(buffer.nbytes)))
    executable = Device[DEVICE].load(program)
    return Program(lambda: executable.run([buffer.handle], None, {}), list)
