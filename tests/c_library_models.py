"""Exported files that libpolygrad's tests run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import wasmtime
from pgrd.corpus import values

from polygrad import Tensor, TinyJit, compile_step, nn
from polygrad.runtime.program import Binding, BufferSpec, Kernel, Launch, Program

RNG = np.random.default_rng(0)


class Mlp:
    def __init__(self, width: int = 32) -> None:
        self.first, self.last = nn.Linear(20, width), nn.Linear(width, 4)

    def __call__(self, x: Tensor) -> Tensor:
        return self.last(self.first(x).relu().dropout(0.25))


class Convnet:
    def __init__(self) -> None:
        self.conv, self.norm, self.last = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Linear(8 * 9, 4)

    def __call__(self, x: Tensor) -> Tensor:
        return self.last(self.norm(self.conv(x)).relu().max_pool2d(2).flatten(1))


def saved_training(path: Path, model: Any = None, shape: tuple[int, ...] = (8, 20)) -> list[dict[str, Any]]:
    """A training step with Adam and dropout in a file; batches for it."""
    Tensor.manual_seed(5)
    model = Mlp() if model is None else model
    opt = nn.optim.Adam(nn.state.get_parameters(model), 0.01)
    batches = [
        {"x": RNG.standard_normal(shape).astype(np.float32), "y": RNG.integers(0, 4, 8, dtype=np.int32)}
        for _ in range(20)
    ]
    step = compile_step(lambda m, x, y: m(x).cross_entropy(y), model, opt, *batches[0].values())
    step.save(path)
    return batches


def saved_function(path: Path, function: Any, *args: Any) -> None:
    jit = TinyJit(function)
    for _ in range(2):
        jit(*args)
    jit.save(path)


def program_of(text: str, params: int = 1) -> Program:
    """A Program of one module, whose state `s` and output `x` are two int32 each."""
    kernel = Kernel("f", bytes(wasmtime.wat2wasm(text)), params, language="wasm", writes=tuple(range(params)))
    buffers = (
        BufferSpec(2, "int32", "output", name="x", shape=(2,)),
        BufferSpec(2, "int32", "state", name="s", shape=(2,)),
    )
    bindings = tuple(Binding(i) for i in range(params))
    return Program("WASM", "t", buffers, (kernel,), (Launch(0, bindings),))


def state(*numbers: int) -> bytes:
    return values(*numbers, name="s")


STORE = '(import "env" "memory" (memory 1))'
TRAPS = f"""(module {STORE} (func (export "f") (param i32 i32)
    (i32.store (local.get 1) (i32.const 9))
    (if (i32.load offset=4 (local.get 1)) (then (unreachable)))))"""
LOOPS = f"""(module {STORE} (func (export "f") (param i32 i32)
    (i32.store (local.get 1) (i32.const 9)) (loop (br 0))))"""
