"""CUDA: NVIDIA's GPUs, through the driver and NVRTC."""

from __future__ import annotations

import functools
from collections.abc import Callable

from polygrad.engine.backends.cuda_target import target_of
from polygrad.engine.backends.native import with_disk_cache
from polygrad.engine.devices import Backend
from polygrad.renderer.cstyle.cuda import CUDABuilder
from polygrad.renderer.cstyle.cuda_compile import architectures, compile_cuda, compile_ptx
from polygrad.renderer.emit import emit
from polygrad.runtime.cuda.device import CUDARuntime
from polygrad.runtime.cuda.native import open_host
from polygrad.uop.node import UOp


def _make() -> CUDARuntime:
    host = open_host()
    compile = functools.partial(compile_cuda, architecture=host.gpu.architecture)
    return CUDARuntime(host, with_disk_cache(compile, target_of(host.gpu).key))


_opened = [_make()]
_target = target_of(_opened[0].host.gpu)
architectures()  # raises DeviceError without a compiler


def _open() -> CUDARuntime:
    """The runtime for which the target was made, or a new one if that is lost."""
    if _opened[0].lost:
        _opened[0] = _make()
    return _opened[0]


def _compile(name: str, linear: list[UOp]) -> Callable[[], bytes]:
    return _source(name, linear).encode


def _source(name: str, linear: list[UOp]) -> str:
    return str(emit(name, linear, CUDABuilder(_target, aligned=True)))


BACKEND = Backend(
    target=_target,
    compile=_compile,
    open=_open,
    language="cuda",
    caches_on_disk=True,
    packages=("cuda-bindings", "nvidia-cuda-nvrtc"),
    source=_source,
    source_name="CUDA C++",
    assembly=functools.partial(compile_ptx, architecture=_opened[0].host.gpu.architecture),
)
