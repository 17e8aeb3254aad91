"""Properties that WGSL leaves open and code generation relies on: probe kernels determine them on the GPU."""

from __future__ import annotations

import struct
from array import array

from polygrad.errors import CompileError
from polygrad.runtime.gpu import KernelSource
from polygrad.runtime.webgpu.host import ALIGNMENT, WORD, Dispatch, Range, WebGPUHost

_BITS = 7  # of the numbers of the lanes of the largest subgroup
_SIZES = (8, 8, 4)  # of a workgroup, whose invocations are numbered along x, then y, then z
_COUNT = _SIZES[0] * _SIZES[1] * _SIZES[2]


def neighbours_in_subgroup(host: WebGPUHost) -> int:
    """The number of consecutive invocations that are the lanes of a subgroup, in order; 0 if subgroups are
    numbered otherwise. The device needs the feature of subgroups."""
    words = _run(host, _lanes())
    if words is None:
        return 0
    size = words[0] >> 16
    bits = size - 1  # the bits in which lane numbers differ; size is a power of 2
    in_order = size > 1 and not size & bits and all(w >> 16 == size and w & bits == bits for w in words)
    return size if in_order else 0


def _lanes() -> KernelSource:
    """A kernel that stores a subgroup's size and, for each bit, whether the lane whose number differs in that
    bit is the invocation whose number differs in that bit."""
    lanes = [f"  let lane{i} = subgroupShuffleXor(number, {1 << i}u);" for i in range(_BITS)]
    lines = [f"  found |= select(0u, {1 << i}u, lane{i} == (number ^ {1 << i}u));" for i in range(_BITS)]
    builtin = ", @builtin(subgroup_size) size: u32"
    return _source("enable subgroups;", builtin, [*lanes, "  var found = size << 16u;", *lines])


# float32 numbers, and the bits of their conversions to float16: ties between two numbers, the largest number
# and the least one that becomes infinite, denormal numbers, less than half of the least one, zeros and
# infinities.
_ROUNDED = (
    (1.0, 0x3C00), (-2.5, 0xC100), (0.1, 0x2E66), (1 + 2**-11, 0x3C00), (1 + 3 * 2**-11, 0x3C02),
    (1 + 2**-11 + 2**-20, 0x3C01), (2049.0, 0x6800), (2051.0, 0x6802), (65504.0, 0x7BFF), (65519.0, 0x7BFF),
    (65520.0, 0x7C00), (-1e5, 0xFC00), (3e38, 0x7C00), (2**-14, 0x0400), (2**-14 - 2**-25, 0x0400),
    (2**-15, 0x0200), (2**-24, 0x0001), (3 * 2**-25, 0x0002), (5 * 2**-25, 0x0002), (2**-25, 0x0000),
    (2**-25 + 2**-40, 0x0001), (-(2**-26), 0x8000), (0.0, 0x0000), (-0.0, 0x8000), (1e-30, 0x0000),
    (float("inf"), 0x7C00), (float("-inf"), 0xFC00),
)  # fmt: skip
_NAN = 0x7FC00000


def converts_float16(host: WebGPUHost) -> bool:
    """Whether conversions between float32 and float16 round to nearest even and keep denormal numbers,
    infinities and NaN. The device needs the feature of float16."""
    inputs = [_bits(x) for x, _ in _ROUNDED]
    words = _run(host, _conversions(), [*inputs, _NAN, *([0] * (_COUNT - len(inputs) - 1))])
    if words is None:
        return False
    *results, nan = words[: len(inputs) + 1]
    is_nan = nan & 0x7F800000 == 0x7F800000 and nan & 0x7FFFFF != 0
    return is_nan and results == [_bits(_half(bits)) for _, bits in _ROUNDED]


def _bits(x: float) -> int:
    """The bits of a float32."""
    (bits,) = struct.unpack("<I", struct.pack("<f", x))
    return int(bits)


def _half(bits: int) -> float:
    (value,) = struct.unpack("<e", struct.pack("<H", bits))
    return float(value)


def _conversions() -> KernelSource:
    """A kernel that converts float32 numbers to float16, stores these, and converts them back."""
    lines = [
        "  halves[number] = f16(bitcast<f32>(data0[number]));",
        "  workgroupBarrier();",
        "  let found = bitcast<u32>(f32(halves[number]));",
    ]
    return _source("enable f16;", "", lines, [f"var<workgroup> halves: array<f16, {_COUNT}>;"])


def _source(enable: str, builtins: str, lines: list[str], shared: list[str] | None = None) -> KernelSource:
    """A kernel of one workgroup, each of whose invocations stores its `found`."""
    text = [
        enable,
        "",
        "@group(0) @binding(0) var<storage, read_write> data0: array<u32>;",
        *(shared or []),
        "",
        f"@compute @workgroup_size({', '.join(map(str, _SIZES))})",
        f"fn probe(@builtin(local_invocation_index) number: u32{builtins}) {{",
        *lines,
        "  data0[number] = found;",
        "}",
        "",
    ]
    return KernelSource("probe", "\n".join(text), 1)


def _run(host: WebGPUHost, source: KernelSource, initial_words: list[int] | None = None) -> memoryview | None:
    """Run a kernel on memory with the words `initial_words`, and return its contents; None if the adapter
    rejects a feature that it claims to have."""
    nbytes = 4 * _COUNT
    memory, uniform = host.create_buffer(nbytes), host.create_buffer(ALIGNMENT)
    try:
        if initial_words is not None:
            host.write(memory, 0, memoryview(array(WORD, initial_words)).cast("B"))
        (pipeline,) = host.compile([source])
        commands = host.prepare([Dispatch(pipeline, (Range(0, 0, nbytes),), Range(1, 0, ALIGNMENT), 0)])
        host.submit(commands, array(WORD, [memory, uniform]), array(WORD, [1, 1, 1]))
        contents = host.read(memory, 0, nbytes).cast("I")
        host.drop(commands)
        host.drop_pipeline(pipeline)
    except CompileError:
        return None
    finally:
        for buffer in (memory, uniform):
            host.destroy_buffer(buffer)
    return contents
