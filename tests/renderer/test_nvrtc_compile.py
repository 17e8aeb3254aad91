"""CUDA C++ by NVRTC, which needs no GPU. The whole device suite goes through it on EMULATED_DRIVER."""

from __future__ import annotations

import concurrent.futures
import importlib.util
import re
from pathlib import Path

import pytest

pytest.importorskip("cuda.bindings", reason="cuda-bindings is not installed")

from polygrad import Tensor
from polygrad.codegen.lower.passes import lower
from polygrad.codegen.opts.opt import parse_opts
from polygrad.codegen.target import Target, Workgroups
from polygrad.engine.normalize import normalize
from polygrad.errors import CompileError
from polygrad.renderer.cstyle.cuda import CUDABuilder
from polygrad.renderer.cstyle.cuda_compile import architectures, compile_cuda
from polygrad.renderer.emit import emit
from polygrad.uop.node import UOp
from polygrad.uop.tensor_cores import TENSOR_CORES, TensorCore
from tests.schedules import schedule

GOLDEN = Path(__file__).parents[1] / "golden"
KERNEL = 'extern "C" __global__ void k(float *x) { x[threadIdx.x] = 1.0f; }'


def goldens() -> list[tuple[str, str]]:
    """The kernels of the golden files, each with what stands before it."""
    texts = (GOLDEN / name for name in ("workgroups.cu", "shuffles.cu"))
    whole = "\n".join(path.read_text(encoding="utf-8") for path in texts)
    kernels = re.split(r"^(?=//)", whole, flags=re.M)
    out = [(text.split(":")[0], text) for text in kernels if "__global__" in text]
    out += [("kernels.cu", (GOLDEN / "kernels.cu").read_text(encoding="utf-8"))]
    return out


def test_the_golden_kernels_compile() -> None:
    texts = dict(goldens())
    assert len(texts) > 10
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        codes = list(pool.map(lambda text: compile_cuda(text, "sm_90"), texts.values()))
    assert all(code.startswith(b"\x7fELF") for code in codes)


@pytest.mark.parametrize("core", TENSOR_CORES[:3], ids=lambda core: core.name)
def test_tensor_cores_compile(core: TensorCore) -> None:
    target = Target(
        "CUDA", simd_bytes=16, index_bits=32, workgroups=Workgroups(subgroup=32), tensor_cores=TENSOR_CORES
    )
    x = Tensor.zeros(64, 64, dtype=core.operands, device="INTERP").contiguous().realize()
    (call,) = schedule(normalize(UOp.sink((x @ x).uop.base)).sink, True).calls
    number = TENSOR_CORES.index(core)
    opts = f"GLOBAL r0, GLOBAL r1, TENSOR_CORE r0 r1 r2 {number}, LOCAL r0.0 4, UPCAST r0.0.1 2"
    text = str(emit("k", lower(call.ast, target, opts=parse_opts(opts)), CUDABuilder(target, aligned=True)))
    assert compile_cuda(text, "sm_80").startswith(b"\x7fELF")
    with pytest.raises(CompileError, match="sm_8"):  # what older ones have not
        compile_cuda(text, "sm_75")


def test_what_is_wrong_is_said_with_the_line() -> None:
    with pytest.raises(CompileError, match=r"a kernel does not compile for sm_90:\nkernel.cu\(2\)"):
        compile_cuda("// a kernel\nnonsense", "sm_90")


def test_an_architecture_that_is_newer_gets_ptx() -> None:
    code = compile_cuda(KERNEL, "sm_999")
    assert f".target sm_{max(architectures())}".encode() in code
    with pytest.raises(CompileError, match="compiles for sm_75 and newer"):
        compile_cuda(KERNEL, "sm_20")


def test_halves_need_the_headers() -> None:
    assert importlib.util.find_spec("nvidia")
    assert compile_cuda(f"#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n{KERNEL}", "sm_80")
