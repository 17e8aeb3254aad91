"""Device EMULATED_DRIVER: the CUDA device itself (runtime/cuda/device.py, cuda/native.py, the package
cuda-bindings), on a driver that runs kernels on the processor (libcuda.cpp)."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import cuda.pathfinder

from polygrad.engine.backends.cuda_target import target_of
from polygrad.engine.devices import Backend
from polygrad.renderer.cstyle.cuda import CUDABuilder
from polygrad.renderer.cstyle.cuda_compile import architectures, compile_cuda
from polygrad.renderer.emit import emit
from polygrad.runtime.cuda.device import CUDARuntime
from polygrad.runtime.cuda.native import open_host
from polygrad.runtime.program import Kernel
from polygrad.uop.node import UOp
from tests.gpu_emulation.device import CACHE, HERE, compile_kernel, machine, waits

NVRTC_ARCHITECTURE = "sm_90"
_KERNEL = re.compile(r'extern "C" __global__ void (\w+)\(([^)]*)\)')


@functools.cache
def library() -> ctypes.CDLL:
    """libcuda.cpp, loaded under the driver's name, before anything looks for the real one."""
    headers = cuda.pathfinder.find_nvidia_header_directory("cudart")
    source = HERE / "libcuda.cpp"
    CACHE.mkdir(exist_ok=True)
    # the name by which cuda-bindings looks for it is that of the file it was linked as
    stamp = f"{source.stat().st_mtime_ns}-{Path(headers, 'cuda.h').stat().st_size}"
    path = CACHE / f"libcuda-{stamp}.so"
    if not path.exists():
        made = path.with_suffix(f".{os.getpid()}")
        flags = ["-std=c++20", "-O1", "-fPIC", "-shared", "-w", "-I", headers, "-Wl,-soname,libcuda.so.1"]
        subprocess.run(["g++", *flags, source, "-o", made, "-ldl"], check=True)
        os.replace(made, path)
    machine()  # what runs kernels
    return ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)


def check_with_nvrtc(text: str) -> None:
    """Compile CUDA C++ for a real GPU, once for all. Raises CompileError."""
    digest = hashlib.sha256(f"{architectures()}{text}".encode()).hexdigest()[:24]
    passed = CACHE / f"{digest}.{NVRTC_ARCHITECTURE}"
    if not passed.exists():
        compile_cuda(text, NVRTC_ARCHITECTURE)
        passed.touch()


def compile_emulated(text: str) -> bytes:
    """A kernel's CUDA C++ as the code that this driver loads. NVRTC has to take it, too."""
    check_with_nvrtc(text)
    found = _KERNEL.search(text)
    assert found is not None, text
    name, parameters = found[1], [p for p in found[2].split(",") if p.strip()]
    pointers = sum("*" in p for p in parameters)
    kernel = Kernel(name, text.encode(), pointers, language="cuda", writes=(), workgroup=(1, 1, 1))
    path = compile_kernel(kernel, checked=False)
    barriers = int(waits(text))
    return f"EMULATED {pointers} {len(parameters) - pointers} {barriers} {path}\n\0".encode()


class EmulatedDriverRuntime(CUDARuntime):
    """The CUDA device under another name."""

    name = "EMULATED_DRIVER"


def open_runtime() -> EmulatedDriverRuntime:
    """A device of its own on this driver."""
    library()
    return EmulatedDriverRuntime(open_host(), compile_emulated)


_opened: list[EmulatedDriverRuntime] = []


def _open() -> EmulatedDriverRuntime:
    if not _opened or _opened[0].lost:
        _opened[:] = [open_runtime()]
    return _opened[0]


def _backend() -> Backend:
    target = replace(target_of(_open().host.gpu), name="EMULATED_DRIVER")

    def compile_(name: str, linear: list[UOp]) -> Callable[[], bytes]:
        return str(emit(name, linear, CUDABuilder(target, aligned=True))).encode

    return Backend(target=target, compile=compile_, open=_open, language="cuda")


BACKEND = _backend()
