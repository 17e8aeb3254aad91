"""Compiled kernels are kept on disk by what they were compiled from: a second process compiles none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from c_compiler import SLOW_CC

from polygrad.codegen.lower.passes import LoweringContext
from polygrad.codegen.opts.opt import parse_opts
from polygrad.codegen.target import Target
from polygrad.dtype import dtypes
from polygrad.engine.compiled_kernels import KernelArtefact, artefact_key
from polygrad.runtime.program import Kernel
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

STEP = """
import json
from polygrad import Tensor, Variable, compile_step, nn
from polygrad.engine.stats import stats

Tensor.manual_seed(1)
net = [nn.Linear(16, 32), nn.Linear(32, 4)]
opt = nn.optim.Adam(nn.state.get_parameters(net))
x, y = Tensor.rand(8, 16), Tensor([0, 1, 2, 3] * 2)
loss_of = lambda m, x, y: m[1](m[0](x).relu()).softmax(-1)[:, 0].mean() + y.sum() * 0
step = compile_step(loss_of, net, opt, x, y)
losses = [step.run(x, y).item() for _ in range(3)]
n = Variable("n", 1, 8).bind(3)
part = x.shrink(((0, n), None)).sum().item()
print(json.dumps([losses, part, stats.kernels_compiled, stats.kernels_found]))
"""


def run(cache: Path, device: str, **environment: str) -> tuple[list[Any], int, int]:
    """What the program above computes in a new process; how many kernels were compiled, and found."""
    own = {"POLYGRAD_CACHE": str(cache), "DEVICE": device, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", STEP],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **own, **environment},
    )
    assert done.returncode == 0, done.stderr
    *values, compiled, found = json.loads(done.stdout)
    return values, compiled, found


@pytest.mark.e2e
@pytest.mark.parametrize("device", ["CPU", "WASM", SLOW_CC])
def test_a_second_process_compiles_no_kernel_and_computes_the_same(device: str, tmp_path: Path) -> None:
    values, compiled, found = run(tmp_path, device)
    assert compiled > 5 and found == 0
    assert run(tmp_path, device) == (values, 0, compiled)
    # What is looked at is done, and what is done otherwise is another kernel.
    assert run(tmp_path, device, SPEC="1") == (values, compiled, 0)
    assert run(tmp_path, device, NOOPT="1")[2] == 0
    entries = [path for path in tmp_path.rglob("*") if path.is_file()]
    for i, path in enumerate(entries):
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 2] if i % 2 else data[:-1] + bytes([data[-1] ^ 1]))
    assert run(tmp_path, device) == (values, compiled, 0)
    assert run(tmp_path, device) == (values, 0, compiled)


def test_a_kernel_comes_back_from_bytes_as_it_was() -> None:
    target = Target("T", simd_bytes=16)
    names = ("n", "thread", "threads")
    kernel = Kernel("e_4", bytes(range(256)), 3, names, language="wasm", writes=(0, 2), parallel=True)
    plain = Kernel("x", b"", 0, language="object", writes=())
    opts = parse_opts("SIMD r1 4 2, STAGE r2 LOAD 1")
    for artefact in (
        KernelArtefact(kernel, (0, 2), (64,), LoweringContext(target, True, opts)),
        KernelArtefact(plain, (), (), LoweringContext(target, False)),
    ):
        assert KernelArtefact.from_bytes(artefact.to_bytes(), target, artefact.context.optimized) == artefact


def test_a_key_depends_on_the_ast_and_on_how_it_is_compiled() -> None:
    one, two = UOp.const(dtypes.float32, 1.0), UOp.const(dtypes.float32, 2.0)
    sinks = [UOp(Ops.SINK, src=(x,)) for x in (one, two)]
    keys = {artefact_key(sink, "target", steps) for sink in sinks for steps in (0, 1)}
    assert len(keys) == 4 and artefact_key(sinks[0], "target", 0) in keys
