"""The Target of Apple's GPUs. backends/metal.py opens a GPU; this module does not."""

from __future__ import annotations

from polygrad.codegen.target import Target, Workgroups
from polygrad.runtime.metal.device import ALIGNMENT
from polygrad.runtime.metal.host import MetalGPU
from polygrad.uop.tensor_cores import BY_NAME

_MAX_BUFFERS = 24  # of the 31 arguments that a kernel may have; the others are for Variables
_MAX_THREADGROUPS = (1 << 31) - 1


def target_of(gpu: MetalGPU) -> Target:
    """The Target of a GPU."""
    cores = ["simdgroup_8x8_half", "simdgroup_8x8_float"] if gpu.has_matrices else []
    if gpu.has_matrices and gpu.has_bfloat:
        cores.append("simdgroup_8x8_bfloat")
    return Target(
        "METAL",
        simd_bytes=16,
        fma=True,
        scalar_fma=True,
        index_bits=32,
        workgroups=Workgroups(
            invocations=gpu.invocations,
            sizes=gpu.threadgroup,
            count=_MAX_THREADGROUPS,
            shared_bytes=gpu.shared_bytes,
            subgroup=gpu.simdgroup,
            shuffle_bytes=4,
        ),
        max_buffers=_MAX_BUFFERS,
        alignment=ALIGNMENT,
        float64=False,
        tensor_cores=tuple(BY_NAME[name] for name in cores),
    )
