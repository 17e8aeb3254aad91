"""Ranks that die, hang, leave or are interrupted: all others get an error within 10 seconds that names
them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, cast

import pytest
from ranks import LAUNCHERS, PROGRAMS, command, environment, mpi_launcher, needs_mpi, run_ranks

pytestmark = pytest.mark.slow
SECONDS = 10.0


def assert_named(folder: Path, message: str) -> None:
    """Ranks 0 and 2 got an error about rank 1."""
    for rank in (0, 2):
        text = (folder / str(rank)).read_text()
        found = re.fullmatch(rf"([\d.]+) seconds, \(1,\): .*{message}.*", text)
        assert found and float(found[1]) < SECONDS, text


@pytest.mark.parametrize("launcher", LAUNCHERS)
@pytest.mark.parametrize(
    ("way", "message"),
    [
        ("stop", "rank 1 does not answer"),
        ("hang", r"rank 1 has not called it for \d+ seconds: rank 1 is at failures.py:\d+ in fail"),
        ("raise", "rank 1: ValueError: bad data"),
        ("interrupt", "rank 1: KeyboardInterrupt"),
        ("leave", "rank 1: it has ended"),
        ("other", "rank 1 makes broadcast of 2 float32 instead, at failures.py"),
    ],
    ids=["stop", "hang", "raise", "interrupt", "leave", "other"],
)
def test_all_others_get_an_error_that_names_the_rank(
    launcher: str, way: str, message: str, tmp_path: Path
) -> None:
    if launcher == "torch" and way not in ("hang", "raise"):
        pytest.skip("torchrun takes long to start: the guards are the same, and tested under mpirun")
    ended = run_ranks(launcher, 3, "failures.py", way, str(tmp_path))
    assert ended.code != 0, ended.text
    assert_named(tmp_path, message)
    assert "is at its end" not in ended.text


@needs_mpi
@pytest.mark.skipif(
    "mpirun" not in "".join(mpi_launcher()[:1]), reason="MPICH's launcher ends all ranks at once"
)
def test_a_rank_that_is_killed_is_named_by_the_others(tmp_path: Path) -> None:
    """Ranks that go on, as Open MPI's do if it is told so."""
    run_ranks("mpi", 3, "failures.py", "kill", str(tmp_path), options=("--enable-recovery",))
    assert_named(tmp_path, "rank 1 does not answer")


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_after_a_kill_the_launcher_ends_all(launcher: str, tmp_path: Path) -> None:
    ended = run_ranks(launcher, 2, "failures.py", "kill", str(tmp_path))
    assert ended.code != 0 and "is at its end" not in ended.text
    assert re.search(r"signal 9|SIGKILL|exitcode *: -9|EXIT CODE: 9", ended.text), ended.text


@needs_mpi
def test_ctrl_c_at_the_launcher_ends_all(tmp_path: Path) -> None:
    ranks = subprocess.Popen(
        [*command("mpi", 2), str(PROGRAMS / "failures.py"), "hang", str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment(),
        start_new_session=True,
    )
    output = cast(IO[str], ranks.stdout)
    try:
        while "rank 1 is at 3" not in output.readline():
            assert ranks.poll() is None
        started = time.monotonic()
        os.killpg(ranks.pid, signal.SIGINT)
        text = output.read()
        assert ranks.wait(timeout=SECONDS) != 0 and time.monotonic() - started < SECONDS, text
    finally:
        if ranks.poll() is None:
            os.killpg(ranks.pid, signal.SIGKILL)
    assert (
        sys.executable
        not in subprocess.run(
            ["ps", "-o", "args=", "-g", str(ranks.pid)], capture_output=True, text=True
        ).stdout
    )
