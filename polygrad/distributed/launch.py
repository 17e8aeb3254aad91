"""Where this process runs: what launchers leave in the environment.

Knows the variables of each launcher, and no engine.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass

from polygrad.errors import ArgumentError

# Set by mpirun and by srun with a plugin for MPI: the number of ranks, of Open MPI, MPICH and its relatives,
# PMIx.
_MPI_SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE")
_MPI_RANKS = ("PMIX_RANK", "PMI_RANK")
_TORCH = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True, slots=True)
class Launch:
    """`launcher`: for people. `engine`: that of its ranks, "mpi", "torch" or "single". `rank`: where the
    engine has to be told. `size`: likewise, and with MPI where the launcher says it. `address`: of rank 0's
    machine, where the engine has to be told. `restarts`: how often the launcher has started all ranks
    again."""

    launcher: str
    engine: str
    rank: int = 0
    size: int = 1
    local_rank: int = 0
    address: tuple[str, int] | None = None
    restarts: int = 0


def find_launch(variables: Mapping[str, str]) -> Launch:
    """Who has started this process. Raises ArgumentError for half of what a launcher sets."""
    if "TORCHELASTIC_RUN_ID" in variables:
        return _of_torch("torchrun", variables)
    for name in _MPI_SIZES:
        if name in variables:
            return Launch("mpirun", "mpi", size=_integer(variables, name))
    steps = "SLURM_STEP_ID" in variables and _integer(variables, "SLURM_STEP_NUM_TASKS") > 1
    if any(name in variables for name in _MPI_RANKS):
        return Launch("srun" if steps else "mpirun", "mpi")
    if all(name in variables for name in _TORCH):
        return _of_torch("Ray" if _is_ray() else "RANK and WORLD_SIZE", variables)
    if steps:
        return _of_slurm(variables)
    return Launch("nobody", "single")


def _is_ray() -> bool:
    return "ray.train" in sys.modules


def _of_torch(launcher: str, variables: Mapping[str, str]) -> Launch:
    missing = [name for name in _TORCH if name not in variables]
    if missing:
        raise ArgumentError(
            f"init: {launcher} has set no {', '.join(missing)}: start the program with torchrun"
        )
    rank, size, port = (_integer(variables, name) for name in ("RANK", "WORLD_SIZE", "MASTER_PORT"))
    local = _integer(variables, "LOCAL_RANK") if "LOCAL_RANK" in variables else rank
    restarts = "TORCHELASTIC_RESTART_COUNT"
    count = _integer(variables, restarts) if restarts in variables else 0
    return Launch(launcher, "torch", rank, size, local, (variables["MASTER_ADDR"], port), count)


def _of_slurm(variables: Mapping[str, str]) -> Launch:
    """Of srun without a plugin for MPI: the ranks meet on the first machine, at a port that the job
    decides."""
    names = ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID")
    rank, size, local = (_integer(variables, name) for name in names)
    host = variables.get("MASTER_ADDR") or first_host(variables.get("SLURM_STEP_NODELIST", "localhost"))
    job = _integer(variables, "SLURM_JOB_ID") if "SLURM_JOB_ID" in variables else 0
    port = _integer(variables, "MASTER_PORT") if "MASTER_PORT" in variables else 20000 + job % 20000
    return Launch("srun", "torch", rank, size, local, (host, port))


def first_host(nodes: str) -> str:
    """The first of SLURM's list of hosts.

    >>> first_host("gpu[007-012,15],login")
    'gpu007'
    """
    prefix, bracket, rest = nodes.partition("[")
    if not bracket or "," in prefix:
        return nodes.split(",")[0]
    return prefix + rest.split("]")[0].split(",")[0].split("-")[0]


def _integer(variables: Mapping[str, str], name: str) -> int:
    text = variables.get(name, "")
    if not text.isdigit():
        raise ArgumentError(f"init: environment variable {name}: expected an integer from 0, got {text!r}")
    return int(text)
