"""A few random programs of the soak; those that failed once; and that it finds what is wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from soak.__main__ import keep, replay
from soak.program import Program, Step, generate
from soak.reduce import reduced
from soak.suites import BY_SEED, Failure, failure, run_seed

FOUND = sorted((Path(__file__).parent / "found").glob("*.json"))


@pytest.mark.parametrize("seed", range(100_000, 100_008))
def test_random_programs(seed: int) -> None:
    assert run_seed(seed, ("CPU", "WASM"), set()) == []


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("first", range(200_000, 200_300, 10))
def test_many_random_programs(first: int) -> None:
    failures = [f for seed in range(first, first + 10) for f in run_seed(seed, ("CPU", "WASM", "CC"), set())]
    assert failures == []


@pytest.mark.parametrize("path", FOUND, ids=[p.stem for p in FOUND])
def test_what_was_found_is_right_now(path: Path) -> None:
    assert replay(path) == ""


def test_a_seed_makes_one_program_and_json_keeps_it() -> None:
    p = generate(17)
    assert p == generate(17) == Program.loads(p.dumps())


def test_a_wrong_step_is_found_and_nothing_else_is_left() -> None:
    p = next(p for s in range(1000) if len((p := generate(s)).steps) == 5 and len(p.outputs) == 1)
    wrong = Step("unary", "x * 1.01", "x * 1.0", p.steps[2].x)
    p = replace(p, steps=(*p.steps[:2], wrong, *p.steps[3:]), outputs=(len(p.roots) + 2,))
    message = failure(p, "eager", "CPU")
    assert "from torch's" in message
    small, _ = reduced(p, message, lambda q: failure(q, "eager", "CPU"))
    assert small.steps == (replace(wrong, x=small.steps[0].x),)


def test_a_failure_is_kept_and_replayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    p = generate(17)
    step = p.steps[0]
    wrong = replace(step, ours=f"({step.ours}) * 1.5", theirs=step.theirs or step.ours)
    p = replace(p, steps=(wrong,), outputs=(len(p.roots),))
    message = failure(p, "eager", "CPU")
    path = keep(Failure("operations", 17, "CPU", "eager", message, p.dumps()), tmp_path)
    assert replay(path) == message != ""

    def writes(seed: int, device: str) -> None:
        raise AssertionError(f"wrong at {seed} on {device}")

    monkeypatch.setitem(BY_SEED, "writes", writes)
    (found,) = run_seed(1, ("CPU",), set())
    assert (found.suite, found.message) == ("writes", "AssertionError: wrong at 1 on CPU")
    assert replay(keep(found, tmp_path)) == found.message
