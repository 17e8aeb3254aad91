"""The passes over the kernels of a graph: each fires on a graph that it is for, and leaves another alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polygrad import Context, Tensor, Variable
from polygrad.codegen.kernels import passes
from polygrad.codegen.kernels.passes import KERNEL_PASSES, kernels_of, schedule_graph, steps
from polygrad.codegen.target import Target
from polygrad.engine.devices import Device
from polygrad.engine.normalize import normalize
from polygrad.engine.programs import clear_caches
from polygrad.engine.stats import stats
from polygrad.errors import ArgumentError
from polygrad.uop.node import UOp
from tests.codegen.grid_kernels import data
from tests.codegen.test_keyed_scan import ranks
from tests.codegen.test_narrow_storage import two_layers
from tests.codegen.test_tensor_cores import CUDA, HOPPER

CPU = Device.backend("CPU").target
Graph = Callable[[], Any]


def of(dtype: str, *shape: int) -> Tensor:
    return data(*shape).cast(dtype).contiguous().realize()


def attention() -> Tensor:
    q, k, v = (data(1, 8, 256, 64) for _ in range(3))
    return q.scaled_dot_product_attention(k, v)


def written(rows: int) -> Tensor:
    x = data(4096, 64)
    x[Tensor([3, 5, 3]).realize()] = data(3, 64)
    return x


def centred(x: Tensor) -> Tensor:
    """The rows without their means, and the means, in one sum."""
    mean = x.mean(1, keepdim=True)
    return (x - mean).contiguous().sum(0) + mean.sum()


# Of each pass: a target, a graph that it changes, and one like it that it does not.
CASES: dict[str, tuple[Target, Graph, Graph]] = {
    "store-fp8-as-bits": (CPU, lambda: of("fp8e4m3", 64).float() + 1, lambda: of("float16", 64).float() + 1),
    "partition": (
        CPU,
        lambda: Tensor.cat(*[data(8, 256) for _ in range(5)]),
        lambda: Tensor.cat(*[data(8, 256) for _ in range(4)]),
    ),
    "keyed-scan": (CPU, lambda: ranks(of("int32", 100)), lambda: ranks(of("int32", 100), mask=-1)),
    "fuse-reductions": (CPU, lambda: data(64, 512).softmax(), lambda: data(2, 512).softmax()),
    "compute-at": (CPU, attention, lambda: data(256, 64) @ data(64, 256)),
    "index-put": (CPU, lambda: written(3), lambda: data(4096, 64) + 1),
    "scatter": (
        CPU,
        lambda: Tensor.zeros(5000, 16).scatter_add(0, of("int32", 4000, 1).expand(4000, 16), data(4000, 16)),
        lambda: data(4000, 16).sum(0),
    ),
    "fuse-positions": (
        CPU,
        lambda: of("int32", 100).scatter(0, ranks(of("int32", 100)), of("int32", 100)),
        lambda: of("int32", 100).scatter(0, ranks(of("int32", 100)).contiguous(), of("int32", 100)),
    ),
    "interchange": (CPU, lambda: data(2048, 512).sum(0), lambda: data(2048, 512).sum(1)),
    "polyphase": (
        CPU,
        lambda: data(1, 16, 32, 32).conv_transpose2d(data(16, 16, 4, 4), stride=2),
        lambda: data(1, 16, 32, 32).conv_transpose2d(data(16, 16, 4, 4)),
    ),
    "separate-windows": (
        CPU,
        lambda: data(2, 16, 64, 64).max_pool2d((3, 3), stride=2, padding=1),
        lambda: data(2, 16, 64, 64).max_pool2d((3, 3)),
    ),
    "relayout": (CPU, lambda: data(512, 512).T @ data(512, 512), lambda: data(512, 512) @ data(512, 512)),
    "split-reduce": (CPU, lambda: data(1 << 18).sum(), lambda: data(1 << 14).sum()),
    "split-k": (
        CUDA,
        lambda: data(32, 4096) @ data(4096, 32),
        lambda: data(1024, 64) @ data(64, 1024),
    ),
    "split-ranges": (
        CPU,
        lambda: data(1, 512) @ (of("int8", 64, 16, 32) * data(64, 16, 1)).reshape(64, 512).T,
        lambda: data(1, 512) @ (of("int8", 64, 128, 4) * data(64, 128, 1)).reshape(64, 512).T,
    ),
    "multi-output": (CPU, lambda: centred(data(64, 512)), lambda: centred(data(2, 512))),
    "narrow-storage": (
        CUDA,
        lambda: two_layers(),
        lambda: data(256, 256).matmul(data(256, 256)).relu() @ data(256, 256),
    ),
    "store-operands": (
        HOPPER,
        lambda: of("float16", 512, 512) @ (data(512, 512) * 2).cast("float16"),
        lambda: of("float16", 512, 512) @ of("float16", 512, 512),
    ),
    "separate-offsets": (CPU, lambda: data(256, 64)[64:128] * 2, lambda: data(256, 64) * 2),
}


def changes(graph: Graph, target: Target) -> list[str]:
    """The passes that change the kernels of a graph."""
    sink = normalize(UOp.sink(graph().uop.base)).sink
    plan, context = schedule_graph(sink, target, True)
    found, before = [], list(plan.calls)
    for step in steps(plan.calls, context):
        if step.calls != before:
            found.append(step.name)
        before = step.calls
    return found


@pytest.mark.parametrize("name", CASES)
def test_a_pass_fires_where_it_is_meant_to(name: str) -> None:
    target, yes, no = CASES[name]
    with Context(SPEC=1):
        assert name in changes(yes, target) and name not in changes(no, target)


def test_a_loop_that_looks_up_rows_is_not_split() -> None:
    """Split, it would no longer be compared with the row's number alone, and all rows would be read."""
    panels = data(1000, 64, 16).permute(0, 2, 1).reshape(16000, 64)
    index = of("int32", 3)
    assert "split-ranges" not in changes(lambda: panels[index], CPU)
    assert "split-ranges" in changes(lambda: panels.T @ data(16000, 3), CPU)


def test_statistics_of_groups_of_channels_are_computed_where_they_are_used() -> None:
    def normalised(groups: int) -> Tensor:
        x = data(2, 32, 7, 9)
        y = x.reshape(2, groups, -1).layernorm().reshape(x.shape)
        return y * data(1, 32, 1, 1)

    def kernels(graph: Tensor) -> int:
        sink = normalize(UOp.sink(graph.uop.base)).sink
        return len(kernels_of(sink, CPU, True).calls)

    assert kernels(normalised(4)) == 1
    assert kernels(normalised(2)) == 3  # few rows


def test_columns_that_lie_side_by_side_by_head_become_a_product_on_grids() -> None:
    def heads(width: int) -> Tensor:
        weights, values = data(8, 64, 64), data(64, 8 * width)
        y = weights.matmul(values.reshape(64, 8, width).transpose(0, 1)).transpose(0, 1).reshape(64, -1)
        return y.contiguous() + 1

    assert "split-ranges" in changes(lambda: heads(64), CUDA)
    assert "split-ranges" not in changes(lambda: heads(64), CPU)


def test_every_pass_has_a_case_and_a_name_of_its_own() -> None:
    names = [p.name for p in KERNEL_PASSES]
    assert len(set(names)) == len(names) and set(names) == set(CASES)


def test_the_architecture_lists_the_passes_in_order() -> None:
    text = (Path(__file__).parents[2] / "ARCHITECTURE.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `([a-z0-9-]+)` \| (all|caches|grids) \|", text, re.MULTILINE)
    kinds = {passes._always: "all", passes._optimized: "all"}
    kinds |= {passes._for_caches: "caches", passes._for_workgroups: "grids"}
    assert listed == [(p.name, kinds[p.applies]) for p in passes.KERNEL_PASSES]


def test_what_a_pass_made_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    sink = normalize(UOp.sink((data(512, 512).T @ data(512, 512)).uop.base)).sink
    with Context(DEBUG=4):
        kernels_of(sink, CPU, True)
    shown = capsys.readouterr().err
    assert shown.count("# kernel after relayout") == 2 and "after split-k" not in shown


def test_which_passes_changed_kernels_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    sink = normalize(UOp.sink((data(512, 512).T @ data(512, 512)).uop.base)).sink
    with Context(DEBUG=3):
        kernels_of(sink, CPU, True)
    assert capsys.readouterr().err == (
        '# relayout: 1 kernels, now 2, 2 of them new\n# KERNEL_OPTS="RELAYOUT k0 0 1 0"\n'
    )


OPTIONAL = [p.name for p in KERNEL_PASSES if p.applies is not passes._always]


@pytest.mark.parametrize("name", OPTIONAL)
def test_a_pass_can_be_left_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    target, graph, _ = CASES[name]
    monkeypatch.setenv("SKIP_PASSES", f"interchange, {name}")
    assert name not in changes(graph, target)


def test_a_program_is_made_anew_for_other_passes_within_1e_4(monkeypatch: pytest.MonkeyPatch) -> None:
    clear_caches()  # of Programs that other tests made with other thresholds
    x, y = np.random.default_rng(0).standard_normal((2, 512, 512)).astype(np.float32)
    kernels = []
    for skipped in ("", "relayout", ""):
        monkeypatch.setenv("SKIP_PASSES", skipped)
        a, b = Tensor(x, device="CPU"), Tensor(y, device="CPU")
        before = stats.launches
        np.testing.assert_allclose((a.T @ b).numpy(), x.T @ y, atol=1e-4, rtol=1e-4)
        kernels.append(stats.launches - before)
    assert kernels == [2, 1, 2]


@pytest.mark.parametrize("name", ["separate-offsets", "relayouts"])
def test_other_names_are_errors(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKIP_PASSES", name)
    with pytest.raises(ArgumentError, match=f"SKIP_PASSES: '{name}' is no pass that can be left out"):
        changes(lambda: data(8) + 1, CPU)


def test_unoptimised_kernels_go_through_what_every_machine_needs() -> None:
    n = Variable("n", 1, 8).bind(3)
    sink = normalize(UOp.sink((data(8)[:n] * 2).uop.base)).sink
    plan, context = schedule_graph(sink, CPU, False)
    names = [step.name for step in steps(plan.calls, context)]
    assert names == ["store-fp8-as-bits", "separate-offsets"]
