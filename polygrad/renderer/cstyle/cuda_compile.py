"""CUDA C++ -> code for a GPU, through NVRTC, NVIDIA's compiler as a library. It needs no GPU, but the
packages `cuda-bindings`, `nvidia-cuda-nvrtc` and, for float16 and bfloat16, the headers of
`nvidia-cuda-runtime`.

Importing this module without the first raises ImportError. Only MULACC is fused.
"""

from __future__ import annotations

import functools
from typing import Any

import cuda.pathfinder
from cuda.bindings import nvrtc

from polygrad.errors import CompileError, DeviceError

_OK = nvrtc.nvrtcResult.NVRTC_SUCCESS
_OWN = {"sm_90": "a"}  # what asks for instructions that later architectures do not have (wgmma)
_ADVICE = 'pip install "polygrad[cuda]"'


def _check(result: tuple[Any, ...]) -> Any:
    error, *values = result
    if error != _OK:
        _, text = nvrtc.nvrtcGetErrorString(error)
        raise DeviceError(f"device CUDA: NVRTC: {text.decode()}")
    return values[0] if values else None


@functools.cache
def architectures() -> tuple[int, ...]:
    """The architectures that NVRTC compiles for: 90 is sm_90. Raises DeviceError where it is not
    installed."""
    try:
        return tuple(_check(nvrtc.nvrtcGetSupportedArchs()))
    except RuntimeError as e:  # of the bindings, for a library that is not there
        if isinstance(e, DeviceError):
            raise
        raise DeviceError(f"device CUDA: NVRTC, the compiler, was not found ({e}): {_ADVICE}") from e


@functools.cache
def _headers() -> str:
    folder = cuda.pathfinder.find_nvidia_header_directory("cudart")
    if folder is None:
        raise DeviceError(f"device CUDA: the headers of CUDA (cuda_fp16.h) were not found: {_ADVICE}")
    return str(folder)


def compile_cuda(source: str, architecture: str) -> bytes:
    """Machine code of CUDA C++ for an architecture (sm_90), or PTX where this NVRTC is older than the
    architecture. Raises CompileError with the compiler's messages."""
    newest = _newest(architecture)
    if f"sm_{newest}" == architecture:
        return _compile(source, architecture, _OWN.get(architecture, ""))
    return _compile(source, f"compute_{newest}", "")


def compile_ptx(source: str, architecture: str) -> str:
    """PTX, NVIDIA's virtual assembly, of which the driver makes machine code. Raises CompileError."""
    newest = _newest(architecture)
    own = _OWN.get(architecture, "") if f"sm_{newest}" == architecture else ""
    return _compile(source, f"compute_{newest}", own).rstrip(b"\0").decode(errors="replace")


def _newest(architecture: str) -> int:
    """The newest architecture, up to `architecture`, that this NVRTC compiles for. Raises CompileError."""
    supported = architectures()
    fitting = [n for n in supported if n <= int(architecture.removeprefix("sm_"))]
    if not fitting:
        raise CompileError(
            f"CUDA: the GPU is of {architecture}, and this NVRTC compiles for sm_{min(supported)} and newer: "
            "install an older nvidia-cuda-nvrtc"
        )
    return max(fitting)


def _compile(source: str, target: str, own: str) -> bytes:
    """Code of CUDA C++ for a `target`: machine code for sm_90, PTX for compute_90. `own`: of `_OWN`. Raises
    CompileError."""
    options = [f"--gpu-architecture={target}{own}", "--fmad=false", "--std=c++17"]
    if "#include" in source:
        options.append(f"--include-path={_headers()}")
    program = _check(nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, None, None))
    try:
        (error,) = nvrtc.nvrtcCompileProgram(program, len(options), [o.encode() for o in options])
        if error == nvrtc.nvrtcResult.NVRTC_ERROR_COMPILATION:
            log = bytearray(_check(nvrtc.nvrtcGetProgramLogSize(program)))
            _check(nvrtc.nvrtcGetProgramLog(program, log))
            messages = bytes(log).rstrip(b"\0").decode(errors="replace")
            raise CompileError(f"CUDA: a kernel does not compile for {target}:\n{messages}\n{source}")
        _check((error,))
        if target.startswith("sm_"):
            code = bytearray(_check(nvrtc.nvrtcGetCUBINSize(program)))
            _check(nvrtc.nvrtcGetCUBIN(program, code))
        else:
            code = bytearray(_check(nvrtc.nvrtcGetPTXSize(program)))
            _check(nvrtc.nvrtcGetPTX(program, code))
        return bytes(code)
    finally:
        nvrtc.nvrtcDestroyProgram(program)
