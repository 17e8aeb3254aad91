"""Kernels for machines with workgroups, as CUDA and WGSL: what was chosen, the grid, and the text."""

from __future__ import annotations

from dataclasses import replace

from polygrad import Tensor
from polygrad.codegen.lower.passes import UNOPTIMIZED, LoweringContext, lower, run_passes
from polygrad.codegen.lower.workgroup_dimensions import workgroup_of
from polygrad.codegen.opts.heuristics import choose
from polygrad.codegen.opts.opt import render_opts
from polygrad.codegen.target import Target, Workgroups
from polygrad.dtype import dtypes
from polygrad.engine.launch_grid import launch_grid
from polygrad.engine.normalize import normalize
from polygrad.renderer.cstyle.cuda import CUDABuilder
from polygrad.renderer.cstyle.msl import MSLBuilder
from polygrad.renderer.emit import emit
from polygrad.renderer.wgsl.builder import PACKED, WGSLBuilder
from polygrad.tensor.variable import Variable
from polygrad.uop.node import UOp
from polygrad.uop.tensor_cores import BY_NAME
from tests.schedules import schedule

WEBGPU = Target(
    "WEBGPU",
    simd_bytes=16,
    index_bits=32,
    workgroups=Workgroups(),
    max_buffers=8,
    alignment=256,
    float64=False,
    packed=PACKED,
)
GPU = Target("GPU", simd_bytes=16, index_bits=32, workgroups=Workgroups(), alignment=256)


def data(*shape, dtype="float32"):
    return Tensor.zeros(*shape, dtype=dtype, device="INTERP").contiguous().realize()


PROGRAMS = {
    "add": lambda: data(4096) + data(4096),
    "add_odd": lambda: data(1001) + data(1001),
    "matmul": lambda: data(64, 64) @ data(64, 64),
    "matmul_odd": lambda: data(50, 40) @ data(40, 33),
    "matmul_small_grid": lambda: data(16, 512) @ data(512, 16),
    "convolution": lambda: data(1, 8, 20, 20).conv2d(data(16, 8, 3, 3), padding=1),
    "sum_rows": lambda: data(40, 512).sum(1),
    "sum_columns": lambda: data(512, 40).sum(0),
    "max_rows": lambda: data(9, 32).max(1),
    "symbolic": lambda: data(100).shrink(((0, Variable("n", 1, 100).bind(7)),)) + 1,
}


# What WGSL has not, and lies in words or in pairs of them there.
NARROW = {
    "bools_and_bytes": lambda: data(100, dtype="int8") < data(100, dtype="int8"),
    "halves": lambda: data(64, dtype="float16") * data(64, dtype="bfloat16").half(),
    "bytes_by_fours": lambda: data(4096, dtype="int8") < data(4096, dtype="uint8").cast("int8"),
    "halves_by_fours": lambda: data(4096, dtype="bfloat16") * 2,
    "long_integers": lambda: data(10, dtype="int64") * 3 // data(10, dtype="int64"),
    "special_numbers": lambda: (data(10).log2() * float("inf")).maximum(data(10)).isnan(),
}


CORES = replace(GPU, workgroups=Workgroups(subgroup=32), tensor_cores=(BY_NAME["mma_m16n8k16_half"],))
EXCHANGE = replace(GPU, workgroups=Workgroups(subgroup=32, shuffle_bytes=4))
SIMDGROUPS = replace(CORES, tensor_cores=(BY_NAME["simdgroup_8x8_half"],))


def text_of(name, tensor, target=GPU, builder=CUDABuilder):
    parts = []
    for call in schedule(normalize(UOp.sink(tensor.uop.base)).sink, True).calls:
        kernel = run_passes(call.ast.replace(arg=None), LoweringContext(target), through=UNOPTIMIZED)
        linear = lower(call.ast, target)
        parts.append(f"// {name}: {render_opts(choose(kernel, target))}")
        parts.append(f"// grid {launch_grid(linear)}, workgroups of {workgroup_of(linear)}")
        parts.append(str(emit(name, linear, builder(target, aligned=True))))
    return "\n".join(parts)


def test_kernels(golden):
    golden("workgroups.cu", "\n".join(text_of(name, make()) for name, make in PROGRAMS.items()))


def test_tensor_cores(golden):
    for name, target, builder in (("cu", CORES, CUDABuilder), ("metal", SIMDGROUPS, MSLBuilder)):
        product = data(32, 64, dtype="float16") @ data(64, 16, dtype="float16")
        golden(f"tensor_cores.{name}", text_of("product", product, target, builder))


def test_sums_that_subgroups_exchange(golden):
    languages = {"cu": CUDABuilder, "metal": MSLBuilder, "wgsl": WGSLBuilder}
    for name, builder in languages.items():
        golden(f"shuffles.{name}", text_of("max_rows", data(9, 256).max(1), EXCHANGE, builder))


def test_kernels_in_wgsl(golden):
    programs = (PROGRAMS | NARROW).items()
    golden("workgroups.wgsl", "\n".join(text_of(n, make(), WEBGPU, WGSLBuilder) for n, make in programs))


def test_kernels_in_wgsl_with_float16(golden):
    x, y = data(40, 64, dtype="float16"), data(64, 24, dtype="float16")
    programs = {
        "add": x + x.flip(1),
        "product": x @ y,
        "conversions": (x > 0.5).where(x.bitcast("uint16").cast("int32").half(), float("-inf")),
        "softmax": x.softmax(1),
    }
    target = replace(WEBGPU, packed=tuple(d for d in PACKED if d is not dtypes.float16))
    texts = [text_of(name, x, target, WGSLBuilder) for name, x in programs.items()]
    golden("float16.wgsl", "\n".join(texts))
