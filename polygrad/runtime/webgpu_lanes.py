"""Which invocations of a workgroup share a subgroup. WGSL leaves that open, so the GPU is asked: code
generation counts on neighbours (codegen/bind.py), and has none where there are others."""

from __future__ import annotations

from array import array

from polygrad.runtime.webgpu_host import WORD, Dispatch, Range, Source, WebGPUHost

_BITS = 7  # of the numbers of the lanes of the largest subgroup
_SIZES = (8, 8, 4)  # of a workgroup, whose invocations are numbered along x, then y, then z


def _text() -> str:
    """A kernel that stores a subgroup's size and, for each bit of a lane's number, whether the lane that
    differs by it is the invocation whose number does."""
    sizes = ", ".join(map(str, _SIZES))
    lines = [f"  found |= select(0u, {1 << i}u, lane{i} == (number ^ {1 << i}u));" for i in range(_BITS)]
    lanes = [f"  let lane{i} = subgroupShuffleXor(number, {1 << i}u);" for i in range(_BITS)]
    return "\n".join(
        [
            "enable subgroups;",
            "",
            "@group(0) @binding(0) var<storage, read_write> data0: array<u32>;",
            "",
            f"@compute @workgroup_size({sizes})",
            "fn lanes(@builtin(local_invocation_index) number: u32, @builtin(subgroup_size) size: u32) {",
            *lanes,
            "  var found = size << 16u;",
            *lines,
            "  data0[number] = found;",
            "}",
            "",
        ]
    )


def neighbours_in_subgroup(host: WebGPUHost) -> int:
    """How many invocations that follow each other are the lanes of a subgroup, in order; 0 where they are
    not. For a host whose device has the feature of subgroups."""
    count = _SIZES[0] * _SIZES[1] * _SIZES[2]
    (pipeline,) = host.compile([Source("lanes", _text(), 1)])
    memory, uniform = host.create_buffer(4 * count), host.create_buffer(256)
    commands = host.prepare([Dispatch(pipeline, (Range(0, 0, 4 * count),), Range(1, 0, 256), 0)])
    host.submit(commands, array(WORD, [memory, uniform]), array(WORD, [1, 1, 1]))
    words = host.read(memory, 0, 4 * count).cast("I")
    host.drop(commands)
    host.drop_pipeline(pipeline)
    for buffer in (memory, uniform):
        host.destroy_buffer(buffer)
    size = words[0] >> 16
    bits = size - 1  # of a power of 2: those that lanes differ by
    in_order = size > 1 and not size & bits and all(w >> 16 == size and w & bits == bits for w in words)
    return size if in_order else 0
