"""The GPU suite's own figures: bytes, counts and times of what pages say, and what makes a goal missed."""

from __future__ import annotations

import sys
from typing import Any

import bench_package  # noqa: F401
import pytest

from bench.channel import Channel
from bench.hosts import Unavailable
from bench.suites import gpu
from polygrad.codegen.lower.passes import LoweringContext, run_passes


class Pages:
    """Stands for a contest: says what each library's page did, or why there is none."""

    def __init__(self, **found: Any) -> None:
        self.found = found

    def prepared(self, library: str, case: Any) -> Any:
        seen = self.found.get(library.replace("-", "_").replace(" ", "_"))
        if seen is None:
            raise Unavailable("no adapter")

        def answer(request: Any) -> dict[str, Any]:
            if request["op"] == "calls":
                return self.found["calls"]
            return {k: v if isinstance(v, list) else v * request["steps"] for k, v in seen.items()}

        return answer


def test_a_product_of_1024_reads_a_32nd_of_what_the_naive_kernel_does() -> None:
    found = gpu.bytes_read()
    assert (found.value, found.met, found.peers) == (1 / 32, True, {})


def test_traffic_counts_both_operands_of_every_term_and_each_store_once() -> None:
    kernel = gpu.product_kernel(64)
    naive = gpu.traffic_of(run_passes(kernel, LoweringContext(gpu.DEFAULT_TARGET, True, ())))
    assert naive == (2 * 4 * 64**3, 4 * 64**2)


@pytest.mark.parametrize(("again", "met"), [(0, True), (1, False)])
def test_counts_are_those_of_one_step(again: int, met: bool) -> None:
    ours = {"submits": 1, "pipelinesAgain": 0, "bindGroupsAgain": again}
    pages: Any = Pages(polygrad=ours, jax_js=ours | {"submits": 30})
    submits, pipelines, groups = gpu.counts(pages)
    assert (submits.value, submits.met, submits.peers) == (1, True, {"jax-js": 30})
    assert (pipelines.value, groups.value, groups.met) == (0, again, met)
    assert submits.skipped == {"onnxruntime-web": "does not train", "tfjs-webgpu": "no adapter"}


def test_without_ours_no_goal_is_met() -> None:
    assert [(r.value, r.met) for r in gpu.counts(Pages())] == [(None, False)] * 3  # type: ignore[arg-type]


@pytest.mark.parametrize(("milliseconds", "met"), [((0.07, 0.05), True), ((0.09, 0.07), False)])
@pytest.mark.parametrize("row", [1, 10])
def test_the_hosts_part_is_that_of_the_quickest_step(
    row: int, milliseconds: tuple[float, ...], met: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu, "tinygrad_host_seconds", lambda: 0.5)
    ours = {"handed": list(milliseconds), "recorded": [0.03, 0.04]}
    pages: Any = Pages(
        polygrad=ours, by_hand={"handed": [0.02, 0.03], "recorded": [0.02]}, calls={"submit": 1.25}
    )
    found = gpu.host_time(pages, row, {})
    assert found.value == pytest.approx(1e3 * min(milliseconds)) and found.met is met
    assert found.peers == {"tinygrad": 500_000}
    assert "recording and submit 30 µs of it; the same calls by hand 20 µs" in found.target
    assert ("of that submit 1.2" in found.target) is (row > 1)


def test_who_asks_a_process_that_was_ended_is_told_so() -> None:
    channel = Channel([sys.executable, "-c", "input()"], {})
    channel.close()
    with pytest.raises(Unavailable, match="gave no answer in time"):
        channel.ask({"op": "sample"})
