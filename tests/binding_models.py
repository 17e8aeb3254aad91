"""The exported files that the tests of libpolygrad's bindings read, in every language the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from pgrd.corpus import FOLDER, module

from polygrad import Device, Tensor, TinyJit, Variable, compile_step, nn
from polygrad.dtype import dtypes
from polygrad.nn.safetensors import TensorEntry, write_entries
from polygrad.runtime.program import Binding, BufferSpec, Kernel, Launch, Program

# In the order of their numbers in libpolygrad.
DTYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
DTYPES += ("float16", "bfloat16", "float32", "float64")
ENDLESS = [0x03, 0x40, 0x0C, 0x00, 0x0B]  # loop, br 0, end


def write_all(folder: Path) -> None:
    """The files that `write_*` below describe, for device WASM but for `native.pgrd`, for CC."""
    default = Device.DEFAULT
    try:
        Device.DEFAULT = "WASM"
        write_training(folder / "training.pgrd")
        write_permuted(folder / "permuted.pgrd")
        write_sizes(folder / "sizes.pgrd")
        write_first(folder / "first.pgrd")
        write_endless(folder / "endless.pgrd")
        Device.DEFAULT = "CC"
        write_sizes(folder / "native.pgrd")
    finally:
        Device.DEFAULT = default
    (folder / "bundle.pgrd").write_bytes((FOLDER / "good" / "bundle_with_files.pgrd").read_bytes())


def write_training(path: Path) -> None:
    """Learns which of three classes x (4, 2) is of: x float32, y int32 (4,) -> loss."""
    Tensor.manual_seed(0)
    layer = nn.Linear(2, 3)
    optimizer = nn.optim.Adam(nn.state.get_parameters(layer), lr=0.1)
    x, y = Tensor(np.zeros((4, 2), np.float32)), Tensor(np.zeros(4, np.int32))
    step = compile_step(lambda layer, x, y: layer(x).cross_entropy(y), layer, optimizer, x, y)
    step.save(path)


def write_permuted(path: Path) -> None:
    """For each dtype `x.<dtype>` (2, 3, 4) -> `<dtype>` (4, 2, 3), the axes in the order 2, 0, 1."""
    jit = TinyJit(lambda x: {name: t.permute(2, 0, 1).contiguous() for name, t in x.items()})
    for _ in range(2):
        jit({name: Tensor.zeros(2, 3, 4).cast(name).contiguous().realize() for name in DTYPES})
    jit.save(path)


def write_sizes(path: Path) -> None:
    """x float32 (n, 3), 1 <= n <= 8 -> twice (n, 3), sum (3,)."""
    n, memory = Variable("n", 1, 8), Tensor.zeros(8, 3).contiguous().realize()
    jit = TinyJit(lambda x: {"twice": x * 2, "sum": x.sum(axis=0)})
    for size in (3, 4):
        jit(memory[: n.bind(size)])
    jit.save(path)


def write_first(path: Path) -> None:
    """x float32 (6,), and a Variable k that no input tells, 1 <= k <= 6 -> first (k,)."""
    jit = TinyJit(lambda x, k: {"first": x[:k] + 1})
    for size in (3, 4):
        jit(Tensor.zeros(6).contiguous().realize(), Variable("k", 1, 6).bind(size))
    jit.save(path)


def write_endless(path: Path) -> None:
    """A state `x` int32 (2,), and a run that does not end."""
    kernel = Kernel("f", module("f", 1, ENDLESS), 1, language="wasm", writes=(0,))
    buffer = BufferSpec(2, "int32", "state", name="x", shape=(2,))
    values = write_entries({"x": TensorEntry(dtypes.int32, (2,), bytes(8))})
    program = Program("WASM", "test", (buffer,), (kernel,), (Launch(0, (Binding(0),)),))
    path.write_bytes(program.to_bytes(values))
