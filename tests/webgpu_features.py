"""Programs whose kernels use optional features of WEBGPU, and their results for a Target with the feature and
for one without it. Plain Python, so it runs inside Pyodide, too."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterable
from dataclasses import replace

from polygrad import Device, Tensor
from polygrad.codegen.target import Target
from polygrad.engine.devices import Backend
from polygrad.engine.programs import clear_caches
from polygrad.runtime.interface import Executable
from polygrad.runtime.program import Kernel, Program

Work = Callable[[Tensor], Tensor]  # of a Tensor of 40 x 256

GROUPED: dict[str, Work] = {
    "rows": lambda x: x.sum(1),
    "maxima": lambda x: x.max(1),
    "columns": lambda x: x.sum(0),
    "a softmax": lambda x: x.softmax(1),
    "a layernorm": lambda x: x.layernorm(),
    "integers": lambda x: (x * 100).cast("int32").sum(1),
    "long integers": lambda x: (x * 100).cast("int64").sum(1),
}
NOT_EXCHANGED = ("columns", "long integers")

HALVES: dict[str, Work] = {
    "arithmetic": lambda x: (x * 3 + 1) / (x - x.flip(1)),
    "numbers too large and too small": lambda x: (x * 1e6).cat(x * 1e-7, x / 0, x * 0 / 0),
    "conversions": lambda x: x.cat(
        *((x.float() * 90).cast(d).half() for d in ("bool", "int8", "uint16", "int32", "uint32", "int64")),
        x.bfloat16().half(),
        x.relu().cast("uint64").half(),
    ),
    "bits": lambda x: x.bitcast("uint16").bitcast("float16").cat(x.bitcast("int16").half()),
    "selections": lambda x: (x > 0).where(x, -2.5).maximum(x.flip(0)),
    "reductions": lambda x: x.sum(0).cat(x.max(1), x.softmax(1).reshape(-1)),
    "a product": lambda x: x @ x.T,
    "a convolution": lambda x: x.reshape(1, 1, 40, 256).conv2d(x[:3, :3].reshape(1, 1, 3, 3), padding=1),
    "odd shapes": lambda x: x[1:36:5, 3:250:7].pad(((1, 2), (0, 3))).T.contiguous() + 0.125,
    "a sort": lambda x: x.sort(1)[0].cat(x.gather(1, x.argsort(1)[:, :5]), dim=1),
    "a state": lambda x: _written(x),
}


def _written(x: Tensor) -> Tensor:
    """A buffer after writes to parts of it, at odd places and of odd sizes."""
    x = x.clone()
    x[1:4, 3:8] = 7.0
    x[:, ::5] += x[:, ::5]
    return x


def target_of(**features: bool | int) -> Target:
    """The Target of this adapter with these features."""
    module = importlib.import_module("polygrad.engine.backends.webgpu")  # which opens the device
    target: Target = module.target_of(Device["WEBGPU"].adapter, **features)
    return target


def exchanging(subgroup: int, nbytes: int) -> Target:
    """The Target of a GPU whose subgroups exchange values of `nbytes` bytes."""
    target = target_of(subgroup=subgroup)
    assert target.workgroups is not None
    limits = replace(target.workgroups, shuffle_bytes=nbytes, software=False)
    return replace(target, workgroups=limits)


def run(work: Work, dtype: str, targets: Iterable[Target]) -> list[tuple[bytes, list[Kernel]]]:
    """The bytes of a result, and the kernels that made it, for each Target."""
    return [_run(work, dtype, target) for target in targets]


def _run(work: Work, dtype: str, target: Target) -> tuple[bytes, list[Kernel]]:
    values = [[math.sin(0.7 * (256 * i + k)) for k in range(256)] for i in range(40)]
    runtime, usual = Device["WEBGPU"], Device.backend("WEBGPU")
    module = importlib.import_module("polygrad.engine.backends.webgpu")
    backend: Backend = replace(module.backend_of(target), caches_on_disk=False)
    adapter, load, kernels = runtime.adapter, runtime.load, []

    def loaded(program: Program) -> Executable:
        kernels.extend(program.kernels)
        return load(program)

    assert target.workgroups is not None
    runtime.adapter, runtime.load = replace(adapter, subgroup=target.workgroups.subgroup), loaded
    Device._backends["WEBGPU"] = backend
    clear_caches()
    try:
        return bytes(work(Tensor(values, dtype=dtype, device="WEBGPU")).data()), kernels
    finally:
        Device._backends["WEBGPU"] = usual
        runtime.adapter = adapter
        del runtime.load
        clear_caches()
