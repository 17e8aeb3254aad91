"""What a processor's multiply-add units can reach: independent sums in vector registers and nothing else."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable

import llvmlite.binding as llvm

from bench.libraries.shapes import Program
from polygrad.renderer.llvm_compile import host_target

SUMS, ROUNDS = 12, 100_000  # as many sums as hide the latency


def native_flops() -> float:
    """Of one step."""
    return 2.0 * SUMS * (host_target().simd_bytes // 4) * ROUNDS


def make(kind: str, sizes: dict[str, int]) -> Program:
    del kind, sizes
    run = _compiled()[0]
    return Program(lambda: run(ROUNDS), list)


@functools.cache
def _compiled() -> tuple[Callable[[int], float], llvm.ExecutionEngine]:
    """The function, and what its code lives in."""
    lanes = host_target().simd_bytes // 4
    v = f"<{lanes} x float>"
    half = "<" + ", ".join(["float 0.5"] * lanes) + ">"
    first = [f"%s{i} = phi {v} [zeroinitializer, %entry], [%t{i}, %loop]" for i in range(SUMS)]
    step = [f"%t{i} = call {v} @llvm.fma.v{lanes}f32({v} %x, {v} %x, {v} %s{i})" for i in range(SUMS)]
    total = [f"%u{i} = fadd {v} {'%t0' if i == 1 else f'%u{i - 1}'}, %t{i}" for i in range(1, SUMS)]
    text = "\n".join([
        f"declare {v} @llvm.fma.v{lanes}f32({v}, {v}, {v})",
        "define float @peak(i64 %rounds) {",
        "entry:", f"%x = call {v} asm sideeffect \"\", \"=x,0\"({v} {half})", "br label %loop",
        "loop:", "%i = phi i64 [0, %entry], [%next, %loop]", *first, *step,
        "%next = add i64 %i, 1", "%more = icmp ult i64 %next, %rounds",
        "br i1 %more, label %loop, label %done",
        "done:", *total, f"%r = extractelement {v} %u{SUMS - 1}, i32 0", "ret float %r", "}",
    ])  # fmt: skip
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    machine = llvm.Target.from_default_triple().create_target_machine(
        llvm.get_host_cpu_name(), features, opt=2
    )
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
    engine.finalize_object()
    return ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_int64)(engine.get_function_address("peak")), engine
