"""Programs are kept on disk by their graphs: a graph that was met before is not scheduled again."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from polygrad import Tensor, Variable
from polygrad.dtype import dtypes
from polygrad.engine import compile as compiling
from polygrad.engine.cache import DiskCache
from polygrad.engine.kept_programs import graph_bytes
from polygrad.engine.programs import clear_caches
from polygrad.helpers import LRU, Context
from polygrad.uop.args import Reduction, Var
from polygrad.uop.for_loop import for_loop, placeholder
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


class Process:
    """What a new process would find: nothing in memory, and a folder."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder, self._patch, self.scheduled = folder, patch, 0
        schedule = compiling.schedule_graph

        def counted(*args: Any) -> Any:
            self.scheduled += 1
            return schedule(*args)

        patch.setattr(compiling, "schedule_graph", counted)

    def restart(self) -> None:
        clear_caches()
        for name in ("_kernels", "_kept_graphs"):
            self._patch.setattr(compiling, name, LRU(1 << 24))
        disk = DiskCache(str(self.folder))
        self._patch.setattr(DiskCache, "default", staticmethod(lambda: disk))
        self.scheduled = 0


@pytest.fixture
def process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Process]:
    found = Process(tmp_path, monkeypatch)
    found.restart()
    yield found
    clear_caches()


def compute(device: str = "CPU") -> list[float]:
    x = Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], device=device).realize()
    found: list[float] = ((x * 2).exp().sum(1) / x.sum(1)).tolist()
    return found


@pytest.mark.parametrize("device", ["CPU", "WASM"])
def test_a_known_graph_is_not_scheduled_in_another_process(process: Process, device: str) -> None:
    first = compute(device)
    assert process.scheduled > 0
    process.restart()
    assert compute(device) == first and process.scheduled == 0


def test_a_program_without_one_of_its_kernels_is_made_anew(process: Process) -> None:
    first = compute()
    for path in list(process.folder.rglob("*")):
        if path.is_file() and b"PGRD" not in path.read_bytes():  # an entry of a kernel
            path.unlink()
    process.restart()
    assert compute() == first and process.scheduled > 0
    process.restart()
    assert compute() == first and process.scheduled == 0


def test_variables_and_shapes_come_back(process: Process) -> None:
    def total(size: int) -> float:
        n = Variable("n", 1, 8).bind(size)
        found: float = (
            Tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]).realize().shrink(((0, n),)).sum().item()
        )
        return found

    assert total(3) == 6.0
    process.restart()
    assert [total(3), total(8)] == [6.0, 36.0] and process.scheduled == 0


def test_what_is_tried_or_observed_is_scheduled(process: Process) -> None:
    compute()
    for change in ({"KERNEL_OPTS": ""}, {"SKIP_PASSES": "scatter"}, {"SPEC": 1}, {"BEAM": 1}):
        process.restart()
        with Context(**change):  # type: ignore[arg-type]
            compute()
        assert (process.scheduled > 0) == (change != {"KERNEL_OPTS": ""}), change


def test_a_kept_program_tells_what_its_kernels_are_made_of(process: Process) -> None:
    compute()
    process.restart()
    compute()
    ((_, graph), *_) = compiling._kept_graphs.items()
    assert process.scheduled == 0
    for name in graph.names:
        origin = compiling.origin_of(name, "CPU")
        assert origin is not None and origin.kernel.name == name and origin.ast.op is Ops.SINK
    assert compiling.origin_of("no_such_kernel", "CPU") is None


def written(node: UOp) -> bytes | None:
    return graph_bytes(UOp(Ops.SINK, src=(node,)))


def test_the_bytes_of_a_graph_tell_all_that_matters() -> None:
    x = placeholder(0, (4, 4), dtypes.float32)
    n = UOp(Ops.DEFINE_VAR, dtypes.index, (), Var("n", 1, 4))
    wider = UOp(Ops.DEFINE_VAR, dtypes.index, (), Var("n", 1, 5))

    def total(op: Ops, axis: int) -> UOp:
        return UOp(Ops.REDUCE_AXIS, dtypes.float32, (x,), Reduction(op, (axis,)))

    different = [
        x * 2.0,
        x * 3.0,
        x * -0.0,
        x * 0.0,
        x + 2.0,
        placeholder(1, (4, 4), dtypes.float32) * 2.0,
        placeholder(0, (4, 4), dtypes.float64) * 2.0,
        total(Ops.ADD, 0),
        total(Ops.ADD, 1),
        total(Ops.MAX, 0),
        UOp(Ops.RESHAPE, dtypes.float32, (x,), (n, 4)),
        UOp(Ops.RESHAPE, dtypes.float32, (x,), (wider, 4)),
        for_loop(3, [x * 2.0], [x * 5.0])[0],
        for_loop(4, [x * 2.0], [x * 5.0])[0],
        for_loop(3, [x * 7.0], [x * 5.0])[0],
    ]
    found = [written(node) for node in different]
    assert None not in found and len(set(found)) == len(different)
    assert written(placeholder(0, (4, 4), dtypes.float32) * 2.0) == found[0]


def test_the_bytes_of_a_graph_are_the_same_in_another_process() -> None:
    program = """
from polygrad.dtype import dtypes
from polygrad.engine.kept_programs import graph_bytes
from polygrad.uop.args import Reduction, Var
from polygrad.uop.for_loop import for_loop, placeholder
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

x = placeholder(0, (4, 4), dtypes.float32)
n = UOp(Ops.DEFINE_VAR, dtypes.index, (), Var("".join(["le", "ngth"]), 1, 4))
nodes = (
    UOp(Ops.REDUCE_AXIS, dtypes.float32, (x,), Reduction(Ops.ADD, (0,))),
    UOp(Ops.RESHAPE, dtypes.float32, (x * 3.0,), (n, 4)),
    for_loop(3, [x * 2.0], [x * 5.0])[0],
)
data = graph_bytes(UOp(Ops.SINK, src=nodes))
"""
    names: dict[str, Any] = {}
    exec(program, names)
    command = [sys.executable, "-c", f"{program}\nprint(data.hex())"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == names["data"].hex()


def test_a_graph_with_an_object_in_it_has_no_bytes() -> None:
    assert (
        written(UOp(Ops.CONTIGUOUS, dtypes.float32, (placeholder(0, (4,), dtypes.float32),), object()))
        is None
    )
