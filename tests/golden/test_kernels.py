"""A dozen small programs, from kernel AST to WebAssembly, as text: `make bless` rewrites it, and the diff is
reviewed.

Each file has, for every kernel of one program: the AST that the scheduler made; its linear form for a Target
without vectors, not optimised; the optimised one for WebAssembly's; and the module. `captured_step.txt` has a
captured training step: its buffers, its launches, and the driver without the kernels. `kernels.c`,
`kernels.cu` and `kernels.metal` have the optimised kernels of all programs in the languages of the C family.
"""

from __future__ import annotations

import dataclasses
import re

import pytest

from polygrad import Device, Tensor, TinyJit
from polygrad.codegen.lower.passes import lower
from polygrad.codegen.target import Target
from polygrad.engine.devices import Backend
from polygrad.engine.normalize import normalize
from polygrad.renderer.cstyle.base import module as source_module
from polygrad.renderer.cstyle.c import CBuilder
from polygrad.renderer.cstyle.cuda import CUDABuilder
from polygrad.renderer.cstyle.msl import MSLBuilder
from polygrad.renderer.emit import emit
from polygrad.renderer.wasm.builder import WASM_DOTS, WasmBuilder, wasm_module
from polygrad.tensor.variable import Variable
from polygrad.uop.node import UOp
from polygrad.uop.printer import render
from polygrad.wasm.wat import print_module
from tests.schedules import schedule

PLAIN = Target("PLAIN")
# WebAssembly's, but for what hosts differ in: relaxed instructions and threads. The same text everywhere.
SIMD = Target(
    "WASM",
    simd_bytes=16,
    registers=15,
    fma=True,
    scalar_fma=True,
    threads=4,
    index_bits=32,
    dots=WASM_DOTS,
    adding_dots=False,
)


def data(*shape, dtype="float32"):
    return Tensor.zeros(*shape, dtype=dtype, device="INTERP").contiguous().realize()


def conv():
    return data(1, 2, 6, 6).conv2d(data(3, 2, 3, 3), padding=1)


def in_place():
    x = data(12)
    return x.assign(x.flip(0) + x)


def prefix():
    return data(16).shrink(((0, Variable("n", 1, 16).bind(7)),)).sum()


def normalised_rows():
    """Tiles of a row overlap, so that it does not lie in the output."""
    powers = data(16, 60).exp2()
    return powers / powers.sum(1, keepdim=True)


PROGRAMS = {
    "add": lambda: data(10) + data(10),
    "broadcast": lambda: data(4, 1) * data(1, 9) + 1,
    "sum_rows": lambda: data(5, 18).sum(1),
    "max_columns": lambda: data(6, 8).max(0),
    "matmul": lambda: data(8, 12) @ data(12, 8),
    "softmax": lambda: data(3, 20).softmax(),
    "transpose_pad": lambda: data(4, 6).permute(1, 0).pad(((1, 0), (0, 2))),
    "gather": lambda: data(50, 4)[data(3, dtype="int32")],
    "half": lambda: data(8, dtype="float16") * 3 + 1,
    "integers": lambda: (data(9, dtype="int32") // 3) % data(9, dtype="int32"),
    "convolution": conv,
    "assign": in_place,
    "symbolic": prefix,
    "local_memory": normalised_rows,
    "threads": lambda: data(1 << 17) + data(1 << 17),
}


def text_of(tensor):
    """Every stage of every kernel of a Tensor's program."""
    sink = normalize(UOp.sink(tensor.uop.base)).sink
    parts: list[str] = []
    for form, target in (("unoptimised", PLAIN), ("optimised", SIMD)):
        optimized = target is SIMD
        for i, call in enumerate(schedule(sink, optimized).calls):
            linear = lower(call.ast, target, optimized)
            ast = render(call.ast)
            if ast not in parts:  # fusion is the same, most often
                parts += [f";; {form} kernel {i}: AST", ast]
            parts += [f";; {form} kernel {i}: linear", render(linear)]
            if optimized:
                module = wasm_module([emit("kernel", linear, WasmBuilder(relaxed=True))])
                parts += [f";; optimised kernel {i}: WebAssembly", print_module(module).rstrip()]
    return "\n".join(parts)


# One builder for each language of the C family, with a Target that there is.
AVX2 = Target("CC", simd_bytes=32, registers=16, fma=True, scalar_fma=True, threads=4)
GPU = Target("GPU", simd_bytes=16, registers=64, fma=True, scalar_fma=True, index_bits=32)
FAMILY = {
    "kernels.c": (AVX2, lambda: CBuilder(AVX2, native_half=True)),
    "kernels.cu": (GPU, lambda: CUDABuilder(GPU, aligned=True)),
    "kernels.metal": (GPU, lambda: MSLBuilder(GPU, aligned=True)),
}


def source_of(target, builder):
    """Every kernel of every program."""
    functions = []
    for name, program in PROGRAMS.items():
        sink = normalize(UOp.sink(program().uop.base)).sink
        for i, call in enumerate(schedule(sink, True).calls):
            functions.append(emit(f"{name}_{i}", lower(call.ast, target, True), builder()))
    return source_module(functions)


@pytest.mark.parametrize("name", FAMILY)
def test_sources(name, golden):
    golden(name, source_of(*FAMILY[name]))


@pytest.mark.parametrize("name", PROGRAMS)
def test_stages(name, golden):
    golden(f"{name}.txt", text_of(PROGRAMS[name]()))


def test_the_target_is_that_of_the_wasm_device():
    target = Device.backend("WASM").target
    given = {name: getattr(SIMD, name) for name in ("fma", "scalar_fma", "threads", "dots")}
    known = dataclasses.replace(target, **given)
    assert known == SIMD


def training_step():
    """A step of a linear model without bias, captured on WASM for four threads."""
    w = Tensor.zeros(512).contiguous().realize()

    def step(x):
        loss = ((x * w).sum(1) - 1).square().mean()
        (gradient,) = loss.gradient(w)
        w.assign(w - 0.1 * gradient)
        return loss.realize()

    captured = TinyJit(step)
    for _ in range(3):
        captured(Tensor.zeros(256, 512).contiguous().realize())
    return captured.program


def test_a_captured_step(golden, monkeypatch):
    def compile_relaxed(name, linear):
        code = wasm_module([emit(name, linear, WasmBuilder(relaxed=True))])
        return lambda: code

    device = Device.backend("WASM")
    fixed = Backend(SIMD, compile_relaxed, device.open, "wasm", link=device.link)
    monkeypatch.setitem(Device._backends, "WASM", fixed)
    monkeypatch.setattr(Device, "_default", "WASM")
    program = training_step()
    parts = [";; buffers"]
    for i, b in enumerate(program.buffers):
        where = f" at byte {b.offset} of {program.arena}" if b.role == "scratch" else ""
        parts.append(f"{i:4} {b.role:<8} {b.dtype} {b.size}{where}")
    parts.append(";; launches")
    for launch in program.launches:
        kernel = program.kernels[launch.kernel]
        arguments = [b.buffer for b in launch.bindings]
        if launch.barrier:
            parts.append("   barrier")
        parts.append(
            " ".join(map(str, ("  ", kernel.name.rpartition("_")[0], *arguments, *kernel.variables)))
        )
    driver = print_module(program.driver)
    functions = re.split(r"(?m)^(?=  \(func \()", driver)
    parts += [";; driver, without the kernels", functions[0].rstrip()]
    parts += [f.rstrip() for f in functions[1 + len(program.kernels) :]]
    golden("captured_step.txt", "\n".join(parts))
