"""Who has started this process, by the variables of each launcher."""

from __future__ import annotations

import subprocess
import sys

import pytest
import ranks

from polygrad.distributed.launch import Launch, find_launch, first_host
from polygrad.errors import ArgumentError

TORCH = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "MASTER_ADDR": "a", "MASTER_PORT": "29500"}
SLURM = {"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "3", "SLURM_LOCALID": "1"}


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, Launch("nobody", "single")),
        ({"OMPI_COMM_WORLD_SIZE": "2", "PMIX_RANK": "1"}, Launch("mpirun", "mpi", size=2)),
        ({"PMI_SIZE": "2", "PMI_RANK": "1"}, Launch("mpirun", "mpi", size=2)),
        (TORCH | {"TORCHELASTIC_RUN_ID": "x"}, Launch("torchrun", "torch", 3, 4, 1, ("a", 29500))),
        (TORCH, Launch("RANK and WORLD_SIZE", "torch", 3, 4, 1, ("a", 29500))),
        (SLURM | {"PMIX_RANK": "3"}, Launch("srun", "mpi")),
        (
            SLURM | {"SLURM_STEP_NODELIST": "n[04-07]", "SLURM_JOB_ID": "12"},
            Launch("srun", "torch", 3, 4, 1, ("n04", 20012)),
        ),
        ({"SLURM_JOB_ID": "12", "SLURM_NTASKS": "4", "SLURM_PROCID": "0"}, Launch("nobody", "single")),
        (SLURM | {"SLURM_STEP_NUM_TASKS": "1"}, Launch("nobody", "single")),
        ({"RANK": "0"}, Launch("nobody", "single")),
    ],
    ids=[
        "alone",
        "open mpi",
        "mpich",
        "torchrun",
        "torch",
        "srun pmix",
        "srun",
        "sbatch",
        "one task",
        "half",
    ],
)
def test_the_launcher_is_found(variables: dict[str, str], expected: Launch) -> None:
    assert find_launch(variables) == expected


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        (
            {"TORCHELASTIC_RUN_ID": "x", "RANK": "0"},
            "torchrun has set no WORLD_SIZE, MASTER_ADDR, MASTER_PORT",
        ),
        (TORCH | {"RANK": "-1"}, "RANK: expected an integer from 0, got '-1'"),
        ({"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "two"}, "SLURM_STEP_NUM_TASKS: expected an integer"),
    ],
)
def test_half_of_a_launcher_is_an_error(variables: dict[str, str], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        find_launch(variables)


@pytest.mark.parametrize(
    ("nodes", "host"),
    [("a", "a"), ("a,b", "a"), ("n[3,5-7],b", "n3"), ("n[03-07]", "n03"), ("a,n[1-2]", "a")],
)
def test_the_first_host_of_a_list(nodes: str, host: str) -> None:
    assert first_host(nodes) == host


@pytest.mark.e2e
@ranks.needs_mpirun
def test_a_launcher_of_another_mpi_is_an_error() -> None:
    """Its ranks would train without each other."""
    variables = {"OMPI_COMM_WORLD_SIZE": "2"} if not ranks.IS_OPEN_MPI else {"MV2_COMM_WORLD_SIZE": "2"}
    done = subprocess.run(
        [sys.executable, "-c", "from polygrad import distributed; distributed.init()"],
        env=ranks.environment(**variables),
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    assert "mpirun has started 2 ranks, but mpi4py uses " in done.stderr and "which finds one" in done.stderr
