"""The suite `distributed`: its rows, from times that are given."""

from __future__ import annotations

import bench_package  # noqa: F401
import pytest

from bench.suites import distributed


def test_rows_of_given_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step takes 1 s, and 0.1 s more on more ranks; torch's 0.2 s more; a sum of 100 MB 0.5 s, the engine's
    0.4 s."""

    def seconds_of(run: distributed.Run, seconds: float) -> float:
        _, library, kind, ranks = run
        if kind.startswith("all-reduce"):
            return 0.4 if kind.endswith("engine") else 0.5
        if kind.endswith("alone") or ranks == 1:
            return 1.0
        return 1.2 if library == "torch" else 1.1

    monkeypatch.setattr(distributed, "seconds_of", seconds_of)
    monkeypatch.setattr(distributed, "launchers", lambda: ["mpirun"])
    rows = {result.case: result for result in distributed.run(True)}
    scaling = rows["MLP, 10.5 M parameters, 256 rows: weak scaling, mpirun"]
    assert scaling.value == pytest.approx(100 / 1.1) and scaling.met
    assert scaling.peers == {"torch DDP": pytest.approx(100 / 1.2)}
    assert rows["GPT block, 4 texts of 128: step of 2 ranks, mpirun"].met
    total = rows["sum of 100 MB over 2 ranks, mpirun"]
    assert (
        total.value == pytest.approx(0.2) and total.peers == {"engine": pytest.approx(0.25)} and not total.met
    )
    alone = rows["MLP, 10.5 M parameters, 256 rows: predicted step of 1 ranks, mpirun"]
    assert alone.value == pytest.approx(1000) and alone.met
    # 42 MB of gradients take 42 % of the 0.4 s of 100 MB
    two = rows["MLP, 10.5 M parameters, 256 rows: predicted step of 2 ranks, mpirun"]
    assert two.value == pytest.approx(1000 + 0.42 * 400, rel=0.01) and two.met
    assert len(rows) == 2 * 2 + 2 * 3 + 1


def test_layers_are_those_of_the_steps() -> None:
    mlp = distributed.layers_of("mlp")
    assert sum(layer.parameters for layer in mlp) == 10_491_904
    block = distributed.layers_of("block")
    assert [layer.parameters for layer in block] == [1_771_776, 590_592, 2_362_368, 2_360_064]
