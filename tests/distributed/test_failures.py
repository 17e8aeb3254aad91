"""Ranks that die, hang, leave or are interrupted: all others get an error within 10 seconds that names
them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import IO, cast

import pytest
import ranks

pytestmark = pytest.mark.slow
PROGRAM = Path(__file__).parent / "failing.py"
SECONDS = 10.0


def assert_named(folder: Path, message: str) -> None:
    """Ranks 0 and 2 got an error about rank 1."""
    for rank in (0, 2):
        text = (folder / str(rank)).read_text()
        found = re.fullmatch(rf"([\d.]+) seconds, \(1,\): .*{message}.*", text)
        assert found and float(found[1]) < SECONDS, text


@ranks.launcher
@pytest.mark.parametrize(
    ("way", "message"),
    [
        ("stop", "rank 1 does not answer"),
        ("hang", r"rank 1 has not called it for \d+ seconds: rank 1 is at failing.py:\d+ in fail"),
        ("raise", "rank 1: ValueError: bad data"),
        ("interrupt", "rank 1: KeyboardInterrupt"),
        ("leave", "rank 1: it has ended"),
        ("other", "rank 1 makes broadcast of 2 float32 instead, at failing.py"),
    ],
    ids=["stop", "hang", "raise", "interrupt", "leave", "other"],
)
def test_all_others_get_an_error_that_names_the_rank(
    launcher: str, way: str, message: str, tmp_path: Path
) -> None:
    if launcher == "torchrun" and way not in ("hang", "raise"):
        pytest.skip("torchrun takes long to start: the guards are the same, and tested under mpirun")
    done = ranks.run(launcher, 3, PROGRAM, way, tmp_path)
    assert done.returncode != 0, done.stderr
    assert_named(tmp_path, message)
    assert "is at its end" not in done.stdout


@ranks.needs_mpirun
@pytest.mark.skipif(not ranks.IS_OPEN_MPI, reason="MPICH's launcher ends all ranks at once")
def test_a_rank_that_is_killed_is_named_by_the_others(tmp_path: Path) -> None:
    """Ranks that go on, as Open MPI's do if it is told so."""
    ranks.run("mpirun", 3, PROGRAM, "kill", tmp_path, options=("--enable-recovery",))
    assert_named(tmp_path, "rank 1 does not answer")


@ranks.needs_torchrun
def test_a_rank_that_is_killed_is_named_by_others_without_a_launcher(tmp_path: Path) -> None:
    first, killed, last = ranks.run_by_hand(3, PROGRAM, "kill", tmp_path)
    assert killed == -signal.SIGKILL and first > 0 and last > 0
    assert_named(tmp_path, "rank 1 does not answer")


@ranks.launcher
def test_after_a_kill_the_launcher_ends_all(launcher: str, tmp_path: Path) -> None:
    done = ranks.run(launcher, 2, PROGRAM, "kill", tmp_path)
    assert done.returncode != 0 and "is at its end" not in done.stdout
    text = done.stdout + done.stderr
    assert re.search(r"signal 9|SIGKILL|exitcode *: -9|EXIT CODE: 9", text), text


@ranks.needs_mpirun
def test_ctrl_c_at_the_launcher_ends_all(tmp_path: Path) -> None:
    started = subprocess.Popen(
        ranks.command("mpirun", 2, PROGRAM, "hang", tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=ranks.environment(),
        start_new_session=True,
    )
    output = cast(IO[str], started.stdout)
    try:
        while "rank 1 is at 3" not in output.readline():
            assert started.poll() is None
        begin = time.monotonic()
        os.killpg(started.pid, signal.SIGINT)
        text = output.read()  # to its end: no rank has it open any more
        assert started.wait(timeout=SECONDS) != 0 and time.monotonic() - begin < SECONDS, text
    finally:
        if started.poll() is None:
            os.killpg(started.pid, signal.SIGKILL)
