"""`fit` on several ranks beside one process, its checkpoints on other numbers of ranks, and runs that lose a
rank beside unbroken ones."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ranks

from polygrad.training.checkpoint_files import CheckpointFolder

PROGRAM = Path(__file__).parent / "trained.py"
SLOW = pytest.mark.slow
pytestmark = [pytest.mark.e2e, pytest.mark.usefixtures("default_device")]


def result(done: Any) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def train(launcher: str, count: int, restarts: int = 0, **options: Any) -> Any:
    return ranks.run(launcher, count, PROGRAM, json.dumps(options), restarts=restarts)


def assert_same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    """To 1e-5, as sums of gradients are added up in another order."""
    for part in ("history", "weights"):
        for name, values in expected[part].items():
            np.testing.assert_allclose(found[part][name], values, rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.fixture(scope="module")
def alone() -> dict[str, Any]:
    return result(train("mpirun", 1))


@ranks.needs_mpirun
@pytest.mark.parametrize(
    ("count", "loader"),
    [(2, False), *(pytest.param(*x, marks=SLOW) for x in ((3, False), (2, True), (3, True)))],
)
def test_ranks_train_as_one_process_to_1e_5(alone: dict[str, Any], count: int, loader: bool) -> None:
    """Of 45 rows the last batch has 9, which two ranks cannot divide, and they measure 7 rows."""
    if loader:
        alone = result(train("mpirun", 1, loader=True))
    found = result(train("mpirun", count, loader=loader))
    assert found["ranks"] == count
    assert_same(found, alone)


@SLOW
@ranks.needs_torchrun
def test_torchrun_trains_as_one_process_to_1e_5(alone: dict[str, Any]) -> None:
    assert_same(result(train("torchrun", 2)), alone)


@ranks.needs_mpirun
def test_checkpoints_go_on_with_any_number_of_ranks(tmp_path: Path, alone: dict[str, Any]) -> None:
    for epochs, count in ((1, 2), (2, 3), (3, 1)):
        found = result(train("mpirun", count, folder=str(tmp_path), epochs=epochs))
        last = list(CheckpointFolder(tmp_path).complete().values())[-1]
        assert len(last) == count and len(list(tmp_path.glob("*.safetensors*"))) <= 2 * 3
    assert_same(found, alone)


# --- elastic


@ranks.needs_mpirun
@pytest.mark.parametrize("victim", [pytest.param(0, marks=SLOW), 1])
def test_mpirun_starts_again_after_a_rank_was_killed(tmp_path: Path, victim: int) -> None:
    """At a step between two checkpoints; to the last bit."""
    unbroken = result(train("mpirun", 2, dropout=0.2))
    options = {"folder": str(tmp_path), "dropout": 0.2, "kill": [victim, 5, int(signal.SIGKILL)]}
    broken = train("mpirun", 2, **options)
    assert broken.returncode != 0  # MPICH writes to standard output, too
    assert list(CheckpointFolder(tmp_path).complete())[-1] in (2, 4)
    again = result(train("mpirun", 2, **options))
    assert again == unbroken


@SLOW
@ranks.needs_torchrun
@pytest.mark.parametrize("victim", [0, 1])
def test_torchrun_starts_again_after_a_rank_was_killed(tmp_path: Path, victim: int) -> None:
    unbroken = result(train("torchrun", 2, dropout=0.2))
    step = int(np.random.default_rng(victim).integers(2, 11))
    options = {"folder": str(tmp_path), "dropout": 0.2, "kill": [victim, step, int(signal.SIGKILL)]}
    again = train("torchrun", 2, restarts=1, **options)
    assert (tmp_path / "killed").exists() and result(again) == unbroken


@ranks.needs_mpirun
def test_sigterm_of_one_rank_ends_all_after_the_same_step(tmp_path: Path) -> None:
    unbroken = result(train("mpirun", 2, dropout=0.2))
    options = {"folder": str(tmp_path), "dropout": 0.2, "kill": [1, 5, int(signal.SIGTERM)]}
    ended = train("mpirun", 2, **options)
    assert ended.returncode != 0
    files = list(CheckpointFolder(tmp_path).complete().items())[-1]
    assert files[0] == 5 and len(files[1]) == 2
    assert result(train("mpirun", 2, **options)) == unbroken


def loop(folder: Path, count: int, **options: Any) -> Any:
    return ranks.run("mpirun", count, PROGRAM.with_name("looped.py"), folder, json.dumps(options))


@ranks.needs_mpirun
@pytest.mark.parametrize("sharded", [False, pytest.param(True, marks=SLOW)])
def test_a_loop_of_ones_own_goes_on_to_the_last_bit(tmp_path: Path, sharded: bool) -> None:
    """With dropout, whose random numbers each rank has of its own."""
    unbroken = result(loop(tmp_path / "whole", 2, sharded=sharded))
    assert loop(tmp_path / "broken", 2, kill=7, sharded=sharded).returncode != 0
    again = result(loop(tmp_path / "broken", 2, kill=7, sharded=sharded))
    assert again["first"] in (4, 6) and again["losses"] == unbroken["losses"][again["first"] :]


@ranks.needs_mpirun
@pytest.mark.parametrize("sharded", [False, pytest.param(True, marks=SLOW)])
def test_a_full_disk_of_one_rank_ends_all_and_leaves_the_checkpoint_before(
    tmp_path: Path, sharded: bool
) -> None:
    unbroken = result(loop(tmp_path / "whole", 2, sharded=sharded))
    folder = tmp_path / "full"
    ended = loop(folder, 2, full=5, sharded=sharded)
    assert ended.returncode != 0 and "rank 1: OSError: " in ended.stderr, ended.stderr
    assert list(CheckpointFolder(folder).complete()) == [2, 4]
    assert {path.name for path in folder.glob("step-000000006*")} == {
        "step-000000006-00001-of-00002.safetensors"
    }
    again = result(loop(folder, 2, sharded=sharded))
    assert again["first"] == 4 and again["losses"] == unbroken["losses"][4:]


@ranks.needs_mpirun
@pytest.mark.parametrize(
    "counts",
    [
        [(2, True), (1, False)],
        pytest.param([(2, True), (4, True), (2, False), (1, True)], marks=SLOW),
        pytest.param([(4, True), (2, True), (1, True), (4, False)], marks=SLOW),
    ],
    ids=["2-1", "2-4-2-1", "4-2-1-4"],
)
def test_any_number_of_ranks_goes_on_with_a_divided_optimizer_to_the_last_bit(
    tmp_path: Path, counts: list[tuple[int, bool]]
) -> None:
    """Gradients are added up in order, so the bits do not depend on the ranks. `counts`: ranks, and whether
    they divide the state."""
    unbroken = result(loop(tmp_path / "whole", 1, parts=4))
    losses = []
    for i, (count, sharded) in enumerate(counts, 1):
        until = 12 if i == len(counts) else 3 * i
        found = result(loop(tmp_path / "run", count, parts=4, sharded=sharded, until=until))
        assert found["first"] == len(losses)
        losses += found["losses"]
    assert losses == unbroken["losses"] and len(losses) == 12
