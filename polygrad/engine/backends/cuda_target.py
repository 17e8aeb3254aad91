"""The Target of NVIDIA's GPUs. backends/cuda.py opens a GPU; this module does not."""

from __future__ import annotations

from polygrad.codegen.target import Target, Workgroups
from polygrad.helpers import env_int
from polygrad.runtime.cuda.device import ALIGNMENT
from polygrad.runtime.cuda.host import GPU
from polygrad.uop.tensor_cores import BY_NAME


def _cores(gpu: GPU) -> list[str]:
    """The tensor cores whose results are as accurate as float32 arithmetic on the same operands. If
    ALLOW_TF32=1 when the device is opened, also those of float32, which keep 10 bits of the operands'
    fractions."""
    if gpu.capability < (8, 0):
        return []
    tf32 = ["mma_m16n8k8_tf32"] if env_int("ALLOW_TF32", 0) else []
    wgmma = [f"wgmma_m64n{n}k64_{name}" for name in ("half", "bfloat") for n in (128, 64)]
    hopper = wgmma if gpu.capability[0] == 9 else []
    return [*hopper, "mma_m16n8k16_half", "mma_m16n8k16_bfloat", *tf32]


def target_of(gpu: GPU) -> Target:
    """The Target of a GPU."""
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
            shuffle_bytes=8,
            copies=gpu.capability >= (8, 0),
        ),
        alignment=ALIGNMENT,
        tensor_cores=tuple(BY_NAME[name] for name in _cores(gpu)),
        processor=gpu.architecture,
    )
