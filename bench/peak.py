"""A WebAssembly module that does multiply-adds in registers and nothing else: what an engine can reach.

Twelve independent sums of four columns, as many as hide the latency and fit the sixteen vector registers.
"""

from __future__ import annotations

from polygrad.wasm.body import FunctionBody
from polygrad.wasm.module import Export, Module
from polygrad.wasm.types import F32, I32, V128

SUMS, LANES, UNROLL = 12, 4, 4
ROUNDS = 100_000  # what a step asks for
FLOPS = 2 * SUMS * LANES * UNROLL * ROUNDS


def peak_module() -> bytes:
    """`peak(rounds: i32) -> f32`; each round adds 0.5 * 0.25 to every sum UNROLL times, starting from 0."""
    body = FunctionBody("peak", (I32,), (F32,))
    sums = [body.local(V128) for _ in range(SUMS)]
    x, y = body.local(V128), body.local(V128)
    body.op("f32.const", 0.5).op("f32x4.splat").op("local.set", x)
    body.op("f32.const", 0.25).op("f32x4.splat").op("local.set", y)
    body.op("loop")
    for _ in range(UNROLL):
        for s in sums:
            body.op("local.get", x).op("local.get", y).op("local.get", s).op("f32x4.relaxed_madd")
            body.op("local.set", s)
    body.op("local.get", 0).op("i32.const", 1).op("i32.sub").op("local.tee", 0).op("br_if", 0).op("end")
    for s in sums:
        body.op("local.get", s)
    for _ in sums[1:]:
        body.op("f32x4.add")
    body.op("f32x4.extract_lane", 0)
    return Module(functions=(body.finish(),), exports=(Export("peak", "func", 0),)).to_bytes()
