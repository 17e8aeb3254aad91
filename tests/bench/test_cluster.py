"""The model of a step on N ranks: what can be worked out by hand, and what must not get better or worse."""

from __future__ import annotations

import bench_package  # noqa: F401
import pytest

from bench.cluster import (
    LINKS,
    MB,
    WORKLOADS,
    Layer,
    Link,
    Plan,
    Workload,
    accumulation,
    all_reduce,
    best_bucket,
    gpt2,
    resnet50,
    simulate,
    table,
)

# Two layers of 10 MB; forward takes 1 s in each, backward 2 s, the optimizer nothing.
TWO = Workload("two", [Layer("first", 2_500_000, 1.0), Layer("second", 2_500_000, 1.0)], 1, 1.0, 1e30)
SMALL = Plan(bucket=5 * MB)


def test_models_have_the_parameters_and_operations_of_the_real_ones() -> None:
    """torchvision says 25,557,032 and 4.09 GMAC, OpenAI's files 124,439,808."""
    assert sum(x.parameters for x in gpt2()) == 124_439_808
    assert sum(x.parameters for x in resnet50()) == 25_557_032
    assert sum(x.flops for x in resnet50()) / 2e9 == pytest.approx(4.09, abs=0.005)
    per_token = sum(x.flops for x in gpt2()) / 1024
    assert per_token == pytest.approx(2 * 124e6 + 12 * 4 * 1024 * 768, rel=0.01)


def test_a_collective_takes_what_its_algorithm_takes() -> None:
    link = Link("", 1e6, 0.5)
    assert all_reduce(1, 1e6, link) == 0
    assert all_reduce(4, 1e6, link, "ring") == pytest.approx(2 * 3 * (0.5 + 1 / 4))
    assert all_reduce(4, 1e6, link, "halving") == pytest.approx(2 * 2 * 0.5 + 2 * 3 / 4)
    assert all_reduce(5, 1e6, link, "halving") == pytest.approx(2 * 3 * 0.5 + 2 * 4 / 5)
    assert all_reduce(4, 1e6, link) == all_reduce(4, 1e6, link, "halving")


@pytest.mark.parametrize(
    ("bandwidth", "plan", "seconds"),
    [
        (1e30, SMALL, 6.0),  # the network is no limit
        (10 * MB, SMALL, 7.0),  # the first bucket is hidden behind 2 s, the last one takes 1 s
        (10 * MB, Plan(bucket=5 * MB, overlap=False), 8.0),
        (2.5 * MB, SMALL, 12.0),  # 4 s each, from second 4 on
        (2.5 * MB, Plan(bucket=5 * MB, wire=2), 8.0),
        (10 * MB, Plan(bucket=5 * MB, zero=True), 7.5),  # 0.5 s to the part, 1 s to gather 20 MB
        (2.5 * MB, Plan(bucket=5 * MB, accumulate=3), 24.0),
        (10 * MB, Plan(), 7.0),  # the first bucket is small, so it has the second layer alone
        (10 * MB, Plan(edge=30 * MB), 8.0),
    ],
)
def test_a_step_of_two_layers(bandwidth: float, plan: Plan, seconds: float) -> None:
    """Of two ranks, so each sends as many bytes as it has."""
    found = simulate(TWO, Link("", bandwidth, 0.0), 2, plan)
    assert found.seconds == pytest.approx(seconds)
    assert found.compute == 6 * plan.accumulate
    assert found.efficiency == pytest.approx(found.compute / seconds)
    assert found.exposed == pytest.approx(seconds - found.compute)


def test_communication_that_takes_the_processor_is_not_hidden() -> None:
    whole = simulate(TWO, Link("", 10 * MB, 0.0, takes=0.999999), 2, SMALL)
    assert whole.seconds == pytest.approx(8.0, rel=1e-3)
    half = simulate(TWO, Link("", 10 * MB, 0.0, takes=0.5), 2, SMALL)
    assert half.seconds == pytest.approx(7.5)


@pytest.mark.parametrize("work", WORKLOADS, ids=lambda x: x.name)
@pytest.mark.parametrize("link", LINKS, ids=lambda x: x.name)
def test_more_ranks_are_no_faster_and_better_plans_no_slower(work: Workload, link: Link) -> None:
    times = [simulate(work, link, n).seconds for n in (1, 2, 4, 8, 16, 64, 256, 1024)]
    assert times == sorted(times)
    assert times[0] == pytest.approx(simulate(work, link, 1).compute)
    usual = times[-1]
    assert simulate(work, link, 1024, Plan(wire=2)).seconds <= usual
    assert simulate(work, link, 1024, Plan(overlap=False)).seconds >= usual
    assert simulate(work, link, 1024, Plan(algorithm="ring")).seconds >= usual
    best = best_bucket(work, link, 1024)
    assert simulate(work, link, 1024, Plan(bucket=best)).seconds <= usual
    batches = accumulation(work, link, 1024, 0.9)
    assert batches is not None
    assert simulate(work, link, 1024, Plan(accumulate=batches)).efficiency >= 0.9
    assert batches == 1 or simulate(work, link, 1024, Plan(accumulate=batches - 1)).efficiency < 0.9


def test_the_table_has_a_row_for_each_model_and_link() -> None:
    lines = table().splitlines()
    assert len(lines) == 2 + len(WORKLOADS) * len(LINKS) and len({len(line) for line in lines}) == 1
