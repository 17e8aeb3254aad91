"""Random graphs: every device, optimised and not, agrees with INTERP, and INTERP with numpy."""

from __future__ import annotations

import functools
import os
import random
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

hypothesis = pytest.importorskip("hypothesis", reason="it makes the graphs")
np = pytest.importorskip("numpy", reason="it judges INTERP")

from graphs import Graph, graphs  # noqa: E402
from hypothesis import HealthCheck, assume, given, note, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from plain import dtypes_of  # noqa: E402

from polygrad.codegen.lower import passes as lower  # noqa: E402
from polygrad.codegen.opts import cost  # noqa: E402
from polygrad.codegen.opts.opt import apply, render_opts  # noqa: E402
from polygrad.codegen.opts.search_space import actions  # noqa: E402
from polygrad.dtype import dtypes  # noqa: E402
from polygrad.engine import compile  # noqa: E402
from polygrad.engine.devices import Device  # noqa: E402
from polygrad.engine.programs import clear_caches  # noqa: E402
from polygrad.engine.realize import data_of, realize  # noqa: E402
from polygrad.errors import OptError  # noqa: E402
from polygrad.helpers import LRU  # noqa: E402
from polygrad.schedule import cost as schedule_cost  # noqa: E402
from polygrad.uop.node import UOp  # noqa: E402
from polygrad.uop.printer import render  # noqa: E402

sys.path.append(str(Path(__file__).parent.parent / "tensor"))
import oracle  # noqa: E402

thorough = settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    report_multiple_bugs=False,
)


@contextmanager
def form(optimised: bool):
    os.environ["NOOPT"] = "0" if optimised else "1"
    try:
        yield
    finally:
        del os.environ["NOOPT"]


def arrays(graph, device):
    """What the outputs are worth, computed together on a device."""
    out = []
    for u in realize(graph.on(device), device):
        raw = np.frombuffer(data_of(u), np.uint8)
        if u.dtype == "bfloat16":
            out.append((raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32).reshape(u.shape))
        else:
            out.append(raw.view(oracle.dtype_of(u.dtype)).reshape(u.shape))
    return out


def show(graph: Graph) -> str:
    return render(UOp.sink(*(n.uop for n in graph.outputs)))


def agree(graph, got, expected, who):
    """Equal, but for floats that are not exact: those within the error that arithmetic may have made."""
    for node, a, b in zip(graph.outputs, got, expected, strict=True):
        if node.exact:
            same = np.array_equal(a, b)
        else:
            same = np.allclose(a, b, rtol=0, atol=4 * node.error)
        assert same, f"{who}: expected\n{b}\ngot\n{a}\nwithin {node.error}"


@thorough
@given(graph=graphs())
def test_interp_agrees_with_numpy_exactly_or_within_the_tracked_error(graph):
    note(show(graph))
    got = arrays(graph, "INTERP")
    expected = [oracle.evaluate(u) for u in graph.on("CPU")]
    agree(graph, got, expected, "INTERP")


@pytest.mark.parametrize("device", ["CPU", "WASM"])
@thorough
@given(graph=graphs(), seed=st.integers(0, 1 << 30))
def test_random_opts_agree_exactly_or_within_the_tracked_error(device, graph, seed):
    chance = random.Random(seed)
    note(show(graph))
    expected = arrays(graph, "INTERP")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lower, "optimize", functools.partial(random_opts, chance))
        patch.setenv("SPEC", "1")
        patch.setattr(compile, "_kernels", LRU(1 << 24))
        clear_caches()
        got = arrays(graph, device)
    clear_caches()
    agree(graph, got, expected, device)


def random_opts(chance, kernel, target):
    """Up to five Opts and what each makes of a kernel: instead of what the heuristics choose."""
    steps = []
    for _ in range(chance.randrange(6)):
        possible = actions(kernel, target)
        if not possible:
            break
        kind = chance.choice(sorted({a.kind for a in possible}))
        opt = chance.choice([a for a in possible if a.kind is kind])
        try:
            kernel = apply(kernel, opt)
        except OptError:
            continue
        steps.append((opt, kernel))
    note(render_opts(opt for opt, _ in steps))
    return steps


# What the cost model asks for before it does something to a kernel; the graphs here are too small for most.
THRESHOLDS = (
    "MIN_PART", "MIN_ROW", "MIN_BLOCK_ROWS", "MIN_STAGED_ROWS", "MIN_ROW_TILES", "MIN_CONFLICTING_ROW_TILES",
    "MIN_GATHERED_ROW_TILES", "STAGED_READS", "MIN_ROW_BLOCKS", "MIN_FAR_ROW", "MIN_INTERCHANGED",
    "ROWS_AT_A_TIME", "PRODUCT_ROWS_AT_A_TIME", "MIN_PARTED", "MIN_SCATTERED",
    "MIN_COPIED_FOR", "MIN_COPIED_READS", "MIN_BLOCKS", "MIN_WINDOW_ROWS", "MIN_WINDOW_GAIN", "PARALLEL",
)  # fmt: skip


@pytest.mark.parametrize("device", ["CPU", "WASM"])
@thorough
@given(graph=graphs(), data=st.data())
def test_heuristics_for_which_little_is_much(device, graph, data):
    note(show(graph))
    expected = arrays(graph, "INTERP")
    backend = Device.backend(device)
    cache = data.draw(st.sampled_from([(64, 256), (256, 4096), backend.target.cache]))
    threads = data.draw(st.sampled_from([1, backend.target.threads]))
    target = replace(backend.target, cache=cache, threads=threads)
    operations = data.draw(st.sampled_from([2, 8, schedule_cost.MAX_OPERATIONS]))
    least = data.draw(st.fixed_dictionaries({name: st.sampled_from([1, 2, 4]) for name in THRESHOLDS}))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in least.items():
            patch.setattr(cost, name, min(value, getattr(cost, name)))
        parts = cost.COLUMN_PARTS._replace(min_terms=data.draw(st.sampled_from([1, 2, 4])), least=2)
        patch.setattr(cost, "COLUMN_PARTS", parts)
        patch.setattr(schedule_cost, "MAX_OPERATIONS", operations)
        patch.setitem(Device._backends, device, replace(backend, target=target, caches_on_disk=False))
        patch.setattr(compile, "_kernels", LRU(1 << 24))
        patch.setenv("SPEC", "1")
        clear_caches()
        got = arrays(graph, device)
    clear_caches()
    agree(graph, got, expected, device)


@pytest.mark.parametrize("optimised", [True, False], ids=["optimised", "plain"])
@thorough
@given(graph=graphs())
def test_devices_agree_exactly_or_within_the_tracked_error(device, optimised, graph):
    if device == "INTERP":
        pytest.skip("it is the judge")
    used = {n.dtype for node in graph.outputs for n in node.uop.toposort()} - {dtypes.void}
    assume(used.issubset({*dtypes_of(device), dtypes.index}))
    note(show(graph))
    expected = arrays(graph, "INTERP")
    with form(optimised):
        got = arrays(graph, device)
    agree(graph, got, expected, f"{device}, {'optimised' if optimised else 'plain'}")
