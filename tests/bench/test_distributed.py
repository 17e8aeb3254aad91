"""The suite `distributed`: its rows, from times that are given, and from ranks of small sizes."""

from __future__ import annotations

import contextlib
import math
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

import bench_package  # noqa: F401
import pytest
import ranks

from bench import namespaces
from bench.distributed_rank import LARGE
from bench.hosts import Unavailable
from bench.namespaces import linked
from bench.report import Result
from bench.suites import distributed
from bench.suites.distributed import ALONE, FAST, GLOO, MPI, SLOW


def given(run: distributed.Run, options: distributed.Options) -> dict[str, float]:
    """A step takes 1 s, and 0.1 s more on more ranks; torch's 0.2 s more; over 1 Gbit/s both 1 s more. A sum
    of 100 MB takes 0.5 s, by the engine itself 0.4 s. A third is hidden."""

    def of(kind: str) -> float:
        if kind == "hidden":
            return 1 / 3
        if kind.startswith("all-reduce"):
            return 0.4 if kind.endswith("engine") else 0.5
        if kind.endswith("alone") or run.ranks == 1:
            return 1.0
        return (1.2 if run.library == "torch" else 1.1) + (run.way == SLOW)

    return {kind: of(kind) for kind in run.kinds}


def rows_of(
    monkeypatch: pytest.MonkeyPatch, ways: list[distributed.Way], reason: str = ""
) -> dict[str, Result]:
    monkeypatch.setattr(distributed, "measure", given)
    monkeypatch.setattr(distributed, "possible_ways", lambda: (ways, reason))
    return {result.case: result for result in distributed.run(True)}


def test_rows_of_given_times(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = rows_of(monkeypatch, [MPI, GLOO, FAST, SLOW])
    scaling = rows["MLP, 10.5 M parameters, 256 rows: weak scaling, MPI"]
    assert scaling.value == pytest.approx(100 / 1.1) and scaling.met
    assert scaling.peers == {"torch DDP": pytest.approx(100 / 1.2)}
    assert rows["GPT block, 4 texts of 128: step of 2 ranks, MPI"].met
    slow = rows["GPT block, 4 texts of 128: weak scaling, gloo, 1 Gbit/s"]
    assert slow.value == pytest.approx(100 / 2.1) and slow.met and slow.target == "not behind torch DDP"
    total = rows["sum of 100 MB over 2 ranks, gloo, 10 Gbit/s"]
    assert total.value == pytest.approx(0.2) and total.peers == {"engine": pytest.approx(0.25)}
    assert not total.met
    hidden = rows["MLP in buckets of 4 MB: communication that a Program hides, gloo, 1 Gbit/s"]
    assert hidden.value == pytest.approx(100 / 3) and not hidden.met
    alone = rows["MLP, 10.5 M parameters, 256 rows: predicted step of 1 rank"]
    assert alone.value == pytest.approx(1000) and alone.met
    # 42 MB of gradients take 42 % of the 0.4 s of 100 MB
    two = rows["MLP, 10.5 M parameters, 256 rows: predicted step of 2 ranks, MPI"]
    assert two.value == pytest.approx(1000 + 0.42 * 400, rel=0.01) and two.met
    assert len(rows) == 4 * 4 + 4 + 1 + 2 * (1 + 2 * 2 + 2)
    assert all(row.value is not None for row in rows.values())


def test_four_ranks_take_their_turn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[int] = []

    def counted(run: distributed.Run, options: distributed.Options) -> dict[str, float]:
        turns.append(run.ranks)
        return given(run, options)

    monkeypatch.setattr(distributed, "measure", counted)
    monkeypatch.setattr(distributed, "possible_ways", lambda: ([GLOO], ""))
    list(distributed.run(False))
    assert sorted(turns) == [1, 1, 1, 1, 2, 2, 2, 2, 4]


def test_a_link_that_cannot_be_made_is_a_row_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = rows_of(monkeypatch, [GLOO], "no namespaces: not root")
    missing = rows["2 ranks over a link of 10 Gbit/s"]
    assert (
        missing.value is None and missing.skipped == {"link": "no namespaces: not root"} and not missing.met
    )
    assert "MLP in buckets of 4 MB: communication that a Program hides, gloo" in rows
    assert not any("MPI" in case for case in rows)


def test_a_link_takes_as_much_of_a_rank_as_memory_for_the_same_bytes() -> None:
    times = {(GLOO, "polygrad", 2, "all-reduce-engine"): 0.1, (SLOW, "polygrad", 2, "all-reduce-engine"): 0.8}
    memory, slow = (distributed.link_of(way, 2, times, LARGE) for way in (GLOO, SLOW))
    assert memory.bandwidth == pytest.approx(1e9) and memory.takes == pytest.approx(0.999)
    assert slow.bandwidth == pytest.approx(1.25e8) and slow.takes == pytest.approx(1 / 8)
    assert distributed.link_of(ALONE, 1, {}, LARGE).takes == 0


def test_layers_are_those_of_the_steps() -> None:
    mlp = distributed.layers_of("mlp", LARGE)
    assert sum(layer.parameters for layer in mlp) == 10_491_904
    block = distributed.layers_of("block", LARGE)
    assert [layer.parameters for layer in block] == [1_771_776, 590_592, 2_362_368, 2_360_064]


def test_a_rank_that_fails_ends_the_others_with_its_words() -> None:
    fails = [sys.executable, "-c", "raise SystemExit('no data')"]
    waits = [sys.executable, "-c", "import time; time.sleep(100)"]
    started = time.monotonic()
    with pytest.raises(RuntimeError, match="no data"):
        distributed._answer([(waits, {}), (fails, {})])
    assert time.monotonic() - started < 50


# --- the link

_RECEIVES = """
import socket, time
with socket.create_server(("{address}", 5555)) as server:
    print("ready", flush=True)
    found, _ = server.accept()
    start, count = time.monotonic(), 0
    while data := found.recv(1 << 20):
        count += len(data)
print(count, time.monotonic() - start)
"""
_SENDS = """
import socket
with socket.create_connection(("{address}", 5555)) as to:
    to.sendall(bytes({count}))
"""


@contextlib.contextmanager
def link_or_skip(bits: float) -> Iterator[tuple[namespaces.Side, namespaces.Side]]:
    with contextlib.ExitStack() as stack:
        try:
            sides = stack.enter_context(linked(bits))
        except Unavailable as reason:
            pytest.skip(str(reason))
        yield sides


@pytest.mark.e2e
def test_a_link_has_its_bandwidth_and_is_removed() -> None:
    count = 5_000_000
    with link_or_skip(1e8) as (a, b):
        receiver = subprocess.Popen(
            [*a.command, sys.executable, "-c", _RECEIVES.format(address=a.address)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert receiver.stdout is not None and receiver.stdout.readline() == "ready\n"
        subprocess.run(
            [*b.command, sys.executable, "-c", _SENDS.format(address=a.address, count=count)], check=True
        )
        received, seconds = receiver.communicate()[0].split()
    assert int(received) == count and float(seconds) >= 0.8 * 8 * count / 1e8
    left = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True)
    assert a.name not in left.stdout and b.name not in left.stdout


def test_tools_that_are_missing_are_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(Unavailable, match="no namespaces: ip is not on PATH"), linked(1e9):
        pass


def test_what_the_kernel_says_is_the_reason_and_nothing_is_left(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for tool, status in (("ip", 0), ("tc", 2)):
        program = tmp_path / tool
        program.write_text(
            f'#!/bin/sh\nprintf "%s\\n" "$*" >> {tmp_path}/log\necho "Unknown qdisc" >&2\nexit {status}\n'
        )
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    with pytest.raises(Unavailable, match=r"no namespaces: tc .*: Unknown qdisc"), linked(1e9):
        pass
    calls = (tmp_path / "log").read_text().splitlines()
    added = [line.split()[-1] for line in calls if line.startswith("netns add")]
    assert sorted(line.split()[-1] for line in calls if line.startswith("netns del")) == sorted(added)
    assert len(added) == 2


# --- all of it


@pytest.mark.slow
@pytest.mark.e2e
@pytest.mark.timeout(900)
@ranks.needs_torchrun
def test_all_rows_of_small_sizes(tmp_path: Path) -> None:
    """They mean nothing, but all are there, and the timeline is drawn."""
    picture = tmp_path / "overlap.svg"
    rows = list(distributed.run(True, small=True, picture=picture))
    ways, reason = distributed.possible_ways()
    links = [way for way in ways if way.bits is not None]
    steps = 2 * (1 + 2 * (len(ways) - len(links)) + len(links))
    assert len(rows) == 5 * len(ways) + 1 + steps + bool(reason)
    measured = [row for row in rows if not row.skipped]
    assert all(row.value is not None and math.isfinite(row.value) and row.value >= 0 for row in measured)
    assert ElementTree.fromstring(picture.read_text()).tag.endswith("svg")
