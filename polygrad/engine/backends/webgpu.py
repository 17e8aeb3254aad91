"""WEBGPU: the GPU, through WebGPU: wgpu-native under CPython, the host's own in a page and in Node.

Two things are used where the adapter has them, with the same results: float16 as a dtype of memory (the
feature shader-f16), and subgroups of one size, in which neighbours exchange registers. A step that was
captured with them can be exported to such adapters only, and says so where it is loaded; WEBGPU_F16=0 and
WEBGPU_SUBGROUPS=0, set before the device is opened, do without.
"""

from __future__ import annotations

from collections.abc import Callable

from polygrad.codegen.target import Target, Workgroups
from polygrad.dtype import dtypes
from polygrad.engine.devices import Backend
from polygrad.helpers import env_int
from polygrad.renderer.emit import emit
from polygrad.renderer.wgsl.builder import PACKED, WGSLBuilder
from polygrad.runtime.webgpu.device import WebGPURuntime
from polygrad.runtime.webgpu.host import ALIGNMENT, FLOAT16, Adapter, WebGPUHost
from polygrad.runtime.webgpu.probes import converts_float16, neighbours_in_subgroup
from polygrad.uop.node import UOp


def target_of(adapter: Adapter, subgroup: int = 0, float16: bool = False) -> Target:
    """The Target of an adapter. `subgroup`: how many neighbouring invocations exchange values. `float16`:
    whether memory has elements of that dtype."""
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
        packed=tuple(d for d in PACKED if not (float16 and d == dtypes.float16)),
    )


def backend_of(target: Target) -> Backend:
    """The Backend that makes kernels for `target`."""

    def source(name: str, linear: list[UOp]) -> str:
        return str(emit(name, linear, WGSLBuilder(target)).text)

    def compile(name: str, linear: list[UOp]) -> Callable[[], bytes]:
        code = source(name, linear).encode()
        return lambda: code

    return Backend(
        target=target,
        compile=compile,
        open=_open,
        language="wgsl",
        caches_on_disk=True,
        packages=("wgpu",),
        source=source,
        source_name="WGSL",
    )


def _best_target(host: WebGPUHost) -> Target:
    """The Target of a host's adapter with all features that the environment allows and the probes confirm."""
    adapter = host.adapter
    # Subgroups of a software adapter exchange values through memory, which gains nothing.
    exchanges = adapter.subgroup and env_int("WEBGPU_SUBGROUPS", 1) and not adapter.software
    float16 = FLOAT16 in adapter.features and env_int("WEBGPU_F16", 1) and converts_float16(host)
    return target_of(adapter, neighbours_in_subgroup(host) if exchanges else 0, bool(float16))


_opened = [WebGPURuntime()]


def _open() -> WebGPURuntime:
    """The runtime for which the target was made, or a new one if that is lost."""
    if _opened[0].lost:
        _opened[0] = WebGPURuntime()
    return _opened[0]


BACKEND = backend_of(_best_target(_opened[0].host))
