"""WEBGPU: the GPU, through WebGPU: wgpu-native under CPython, the host's own in a page and in Node.

With WEBGPU_SUBGROUPS=1 when the device is opened, neighbours exchange registers, where the adapter's
subgroups have one size. That has to be asked for: what a captured step exports then is right on GPUs of that
size only.
"""

from __future__ import annotations

from collections.abc import Callable

from polygrad.codegen.target import Target, Workgroups
from polygrad.engine.devices import Backend
from polygrad.helpers import env_int
from polygrad.renderer.emit import emit
from polygrad.renderer.wgsl import WGSLBuilder
from polygrad.runtime.webgpu import WebGPURuntime
from polygrad.runtime.webgpu_host import ALIGNMENT, Adapter
from polygrad.runtime.webgpu_lanes import neighbours_in_subgroup
from polygrad.uop.node import UOp


def target_of(adapter: Adapter, subgroup: int = 0) -> Target:
    """What code generation may ask of an adapter. `subgroup`: the neighbours that exchange values."""
    return Target(
        "WEBGPU",
        simd_bytes=16,
        index_bits=32,
        workgroups=Workgroups(
            invocations=adapter.invocations,
            count=adapter.workgroups,
            shared_bytes=adapter.shared_bytes,
            subgroup=subgroup,
            shuffle_bytes=4 if subgroup else 0,
            software=adapter.software,
        ),
        max_buffers=adapter.storage_buffers,
        alignment=ALIGNMENT,
        float64=False,
        word_memory=True,
    )


_opened = [WebGPURuntime()]
_adapter = _opened[0].adapter
_exchanges = _adapter.subgroup and env_int("WEBGPU_SUBGROUPS", 0)
_target = target_of(_adapter, neighbours_in_subgroup(_opened[0].host) if _exchanges else 0)


def _open() -> WebGPURuntime:
    """The runtime that the target is of, or another where that one is lost."""
    if _opened[0].lost:
        _opened[0] = WebGPURuntime()
    return _opened[0]


def _compile(name: str, linear: list[UOp]) -> Callable[[], bytes]:
    code = emit(name, linear, WGSLBuilder(_target)).text.encode()
    return lambda: code


BACKEND = Backend(target=_target, compile=_compile, open=_open, language="wgsl", caches_on_disk=True)
