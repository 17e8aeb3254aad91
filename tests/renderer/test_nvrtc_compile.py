"""CUDA C++ by NVRTC, which needs no GPU. The whole device suite goes through it on EMULATED_DRIVER."""

from __future__ import annotations

import concurrent.futures
import importlib.util
import re
from pathlib import Path

import pytest

pytest.importorskip("cuda.bindings", reason="cuda-bindings is not installed")

from polygrad.errors import CompileError
from polygrad.renderer.nvrtc_compile import architectures, compile_cuda

GOLDEN = Path(__file__).parents[1] / "golden"
KERNEL = 'extern "C" __global__ void k(float *x) { x[threadIdx.x] = 1.0f; }'


def goldens() -> list[tuple[str, str]]:
    """The kernels of the golden files, each with what stands before it."""
    kernels = re.split(r"^(?=//)", (GOLDEN / "workgroups.cu").read_text(encoding="utf-8"), flags=re.M)
    out = [(text.split(":")[0], text) for text in kernels if "__global__" in text]
    out += [("kernels.cu", (GOLDEN / "kernels.cu").read_text(encoding="utf-8"))]
    return out


def test_the_golden_kernels_compile() -> None:
    texts = dict(goldens())
    assert len(texts) > 10
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        codes = list(pool.map(lambda text: compile_cuda(text, "sm_90"), texts.values()))
    assert all(code.startswith(b"\x7fELF") for code in codes)


def test_what_is_wrong_is_said_with_the_line() -> None:
    with pytest.raises(CompileError, match=r"expected a kernel that compiles for sm_90, got\nkernel.cu\(2\)"):
        compile_cuda("// a kernel\nnonsense", "sm_90")


def test_an_architecture_that_is_newer_gets_ptx() -> None:
    code = compile_cuda(KERNEL, "sm_999")
    assert f".target sm_{max(architectures())}".encode() in code
    with pytest.raises(CompileError, match="expected a GPU of sm_75 or newer"):
        compile_cuda(KERNEL, "sm_20")


def test_halves_need_the_headers() -> None:
    assert importlib.util.find_spec("nvidia")
    assert compile_cuda(f"#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n{KERNEL}", "sm_80")
