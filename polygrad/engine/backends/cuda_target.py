"""What code generation may ask of a GPU of NVIDIA's. Apart from cuda_backend.py, which opens one."""

from __future__ import annotations

from polygrad.codegen.target import Target, Workgroups
from polygrad.runtime.cuda import ALIGNMENT
from polygrad.runtime.cuda_host import GPU


def target_of(gpu: GPU) -> Target:
    """What code generation may ask of a GPU."""
    return Target(
        "CUDA",
        simd_bytes=16,
        fma=True,
        scalar_fma=True,
        index_bits=32,
        workgroups=Workgroups(
            invocations=gpu.invocations,
            sizes=gpu.block,
            count=min(gpu.grid),
            shared_bytes=gpu.shared_bytes,
            subgroup=gpu.warp,
        ),
        alignment=ALIGNMENT,
        processor=gpu.architecture,
    )
