"""Programs on several ranks, started by mpirun or torchrun; each rank has one thread."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

LAUNCHERS = ("mpirun", "torchrun")
# PyPI's MPICH beside Python, whose library mpi4py loads then, or the machine's MPI.
_BESIDE = Path(sys.prefix) / "bin" / "mpirun"
MPIRUN = str(_BESIDE) if _BESIDE.exists() else shutil.which("mpirun")
IS_OPEN_MPI = MPIRUN is not None and not (Path(MPIRUN).parent / "mpiexec.hydra").exists()
_MISSING = {
    "mpirun": "no mpirun is installed" if MPIRUN is None
    else "mpi4py is not installed" if importlib.util.find_spec("mpi4py") is None else "",
    "torchrun": "torch is not installed" if importlib.util.find_spec("torch") is None else "",
}  # fmt: skip
# Open MPI refuses root, and more ranks than cores; other MPIs do not know these variables.
_OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}

launcher = pytest.mark.parametrize(
    "launcher",
    [pytest.param(x, marks=pytest.mark.skipif(bool(_MISSING[x]), reason=_MISSING[x])) for x in LAUNCHERS],
)
needs_mpirun = pytest.mark.skipif(bool(_MISSING["mpirun"]), reason=_MISSING["mpirun"])
needs_torchrun = pytest.mark.skipif(bool(_MISSING["torchrun"]), reason=_MISSING["torchrun"])


def command(
    launcher: str,
    ranks: int,
    program: Path,
    *arguments: object,
    restarts: int = 0,
    options: tuple[str, ...] = (),
) -> list[str]:
    """What starts a program. `restarts`: torchrun starts all ranks again so often when one has failed.
    `options`: of mpirun."""
    last = [str(program), *map(str, arguments)]
    if launcher == "mpirun":
        assert MPIRUN is not None
        return [MPIRUN, *options, "-n", str(ranks), sys.executable, *last]
    agent = [
        "--standalone",
        f"--nproc-per-node={ranks}",
        f"--max-restarts={restarts}",
        "--monitor-interval=0.1",
    ]
    return [sys.executable, "-m", "torch.distributed.run", *agent, *last]


def environment(**more: str) -> dict[str, str]:
    paths = {
        "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
        "POLYGRAD_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }
    return {**os.environ, **_OPEN_MPI, **paths, **more}


def run(
    launcher: str,
    ranks: int,
    program: Path,
    *arguments: object,
    restarts: int = 0,
    options: tuple[str, ...] = (),
    timeout: float = 200,
) -> subprocess.CompletedProcess[str]:
    """Run a program on some ranks to its end."""
    return subprocess.run(
        command(launcher, ranks, program, *arguments, restarts=restarts, options=options),
        env=environment(),
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def run_by_hand(ranks: int, program: Path, *arguments: object, timeout: float = 200) -> list[int]:
    """Run a program on ranks that communicate by torch, with no launcher that would end them all when one is
    killed; their exit statuses."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(ranks)}
    started = [
        subprocess.Popen(
            [sys.executable, str(program), *map(str, arguments)], env=environment(RANK=str(rank), **where)
        )
        for rank in range(ranks)
    ]
    try:
        return [process.wait(timeout) for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
