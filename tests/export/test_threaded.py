"""Steps exported under CPython for pages with threads: WASM_THREADS."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from javascript_hosts import built

from polygrad import export
from polygrad.errors import CompileError
from polygrad.runtime.program import read_program
from polygrad.wasm.reader import read_module
from polygrad.wasm.sharing import with_own_memory, with_shared_memory
from polygrad.wasm.types import MemoryType

HERE = Path(__file__).parent
PROGRAM = """
import sys
import numpy as np
from polygrad import Device, Tensor, TinyJit, compile_step, nn

Device.DEFAULT = "WASM"
Tensor.manual_seed(0)
model = [nn.Linear(256, 512), Tensor.relu, nn.Linear(512, 10)]
opt = nn.optim.Adam(nn.state.get_parameters(model), 0.01)
folder = sys.argv[1]
x, y = (Tensor(np.load(f"{folder}/{name}.npy")) for name in "xy")
step = compile_step(lambda m, x, y: x.sequential(m).cross_entropy(y), model, opt, x, y)
step.save(f"{folder}/train.pgrd")
print([step.run(x, y).item().hex() for _ in range(4)])
"""
X = np.random.default_rng(0).standard_normal((128, 256), dtype=np.float32)
Y = np.arange(128, dtype=np.int32) % 10


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """The file of a training step for up to 4 threads, and the losses that its process computed."""
    folder = tmp_path_factory.mktemp("threaded")
    np.save(folder / "x.npy", X)
    np.save(folder / "y.npy", Y)
    environment = {**os.environ, "WASM_THREADS": "4"}
    command = [sys.executable, "-c", PROGRAM, str(folder)]
    out = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    return folder / "train.pgrd", json.loads(out.replace("'", '"'))


def losses(model: Any) -> list[str]:
    return [model.run(x=X, y=Y)["loss"].item().hex() for _ in range(4)]


def test_kernels_are_made_for_threads_and_import_a_shared_memory(exported: tuple[Path, list[str]]) -> None:
    program, _ = read_program(exported[0].read_bytes())
    assert (program.threads, program.shared_memory) == (4, True)
    assert sum(kernel.parallel for kernel in program.kernels) >= 2
    (memory,) = read_module(program.driver).imports
    assert memory.type == MemoryType(1, 65536, True)


@pytest.mark.parametrize("native", [False, True])
def test_one_thread_computes_the_same_bits(exported: tuple[Path, list[str]], native: bool) -> None:
    path, wanted = exported
    assert losses(export.load(path, native=native)) == wanted
    assert len(set(wanted)) == 4


@pytest.mark.e2e
@built
@pytest.mark.parametrize("threads", [1, 2])
def test_threads_of_node_compute_the_same_bits(exported: tuple[Path, list[str]], threads: int) -> None:
    from export.test_javascript import ENTRIES, node, write_runs

    path, wanted = exported
    runs = write_runs(path.with_name("runs"), [{"x": X, "y": Y}] * 4)
    seen = node(HERE / "run_exported.mjs", ENTRIES["esm"], path, runs, threads)
    assert seen["threads"] == threads
    got = [np.frombuffer(bytes.fromhex(x["loss"]), np.float32)[0].item().hex() for x in seen["outputs"]]
    assert got == wanted


def test_the_kind_of_memory_alone_is_changed(exported: tuple[Path, list[str]]) -> None:
    code = read_program(exported[0].read_bytes())[0].driver
    own = with_own_memory(code)
    assert [i.type for i in read_module(own).imports] == [MemoryType(1)]
    assert with_shared_memory(own, 65536) == code
    with pytest.raises(CompileError):
        with_own_memory(code[:100])
