"""Files of checkpoints: whole or not there, whatever ends the process or fills the disk; shards of ranks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polygrad import Tensor, dtypes, nn
from polygrad.errors import ArgumentError
from polygrad.nn import sealed_files
from polygrad.nn.sealed_files import Snapshot, read_sealed, take_snapshot
from polygrad.training import Callback, Checkpoints, TrainingRun, checkpoint_files, fit
from polygrad.training.checkpoint import read_parts
from polygrad.training.checkpoint_files import CheckpointFolder, shares
from polygrad.training.writing import BackgroundWriter

pytestmark = pytest.mark.usefixtures("default_device")


def snapshot(value: float, **metadata: str) -> Snapshot:
    tensors = {"a": Tensor.full((5, 3), value), "b": Tensor([1, 2], dtype=dtypes.int64), "c": Tensor.zeros(0)}
    return take_snapshot(tensors, metadata)


def value_in(files: list[Path]) -> float:
    tensors, _ = read_sealed(files[0], "a file")
    return float(tensors["a"].numpy()[0, 0])


def newest_value(folder: Path) -> float:
    return value_in(list(CheckpointFolder(folder).complete().values())[-1])


# --- processes that end, disks that are full

_WRITES = """
import json, os, resource, signal, sys
from polygrad import Tensor
from polygrad.nn.sealed_files import take_snapshot
from polygrad.training.checkpoint_files import CheckpointFolder

snapshot = take_snapshot({"a": Tensor.full((500, 1), 2.0)}, {})

def write(path, shards, calls, size, kills):
    folder = CheckpointFolder(path, 1, shards - 1, shards)
    folder.begin(1)
    if size is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL if kills else signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    def dies(event, arguments):
        nonlocal calls
        if event in ("open", "os.mkdir", "os.rename", "os.listdir", "os.remove"):
            calls -= 1
            if calls < 0:
                os._exit(9)

    sys.addaudithook(dies)
    try:
        folder.write(2, snapshot)
    except OSError:
        return 3
    return 0

statuses = []
for case in json.loads(sys.argv[1]):
    child = os.fork()
    if child == 0:
        os._exit(write(**case))
    statuses.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(statuses)
"""


def write_in_processes(cases: list[dict[str, Any]]) -> list[int]:
    """The status of a process for each case: it writes the last file of the checkpoint of step 2, and is
    killed after a number of calls of the file system or at a byte of the file, or the disk is full there."""
    defaults = {"shards": 1, "calls": 1000, "size": None, "kills": True}
    command = [sys.executable, "-c", _WRITES, json.dumps([defaults | case for case in cases])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.e2e
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes of this system have no fork")
@pytest.mark.parametrize("shards", [1, 2])
def test_a_process_that_is_killed_at_any_call_leaves_the_checkpoint_before_whole(
    tmp_path: Path, shards: int
) -> None:
    """With two shards it is the rank that writes last."""
    folders = [tmp_path / str(calls) for calls in range(12)]
    for folder in folders:
        for shard in range(shards):
            CheckpointFolder(folder, 1, shard, shards).write(1, snapshot(1.0))
        if shards == 2:
            CheckpointFolder(folder, 1, 0, 2).write(2, snapshot(2.0))
    statuses = write_in_processes(
        [{"path": str(folder), "shards": shards, "calls": i} for i, folder in enumerate(folders)]
    )
    values = [newest_value(folder) for folder in folders]
    assert set(zip(statuses, values)) == {(9, 1.0), (9, 2.0), (0, 2.0)}
    for folder in folders:
        for shard in range(shards):
            later = CheckpointFolder(folder, 1, shard, shards)
            later.begin(2)
            later.write(3, snapshot(3.0))
        assert newest_value(folder) == 3.0
        assert len(list(folder.iterdir())) == shards, "what was left is gone"


@pytest.mark.e2e
@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="the system has no limit of a file's size")
@pytest.mark.parametrize("kills", [True, False])
def test_at_any_byte_of_a_file_the_process_is_killed_or_the_disk_is_full(tmp_path: Path, kills: bool) -> None:
    whole = len(b"".join(take_snapshot({"a": Tensor.full((500, 1), 2.0)}, {}).parts()))
    sizes = [0, 1, 8, 100, whole // 2, whole - 1, whole]
    folders = [tmp_path / str(size) for size in sizes]
    for folder in folders:
        CheckpointFolder(folder).write(1, snapshot(1.0))
    statuses = write_in_processes(
        [{"path": str(folder), "size": size, "kills": kills} for folder, size in zip(folders, sizes)]
    )
    assert statuses == [-signal.SIGXFSZ if kills else 3] * (len(sizes) - 1) + [0]
    assert [newest_value(folder) for folder in folders] == [1.0] * (len(sizes) - 1) + [2.0]
    for folder in folders[:-1]:
        assert len(list(folder.iterdir())) == (2 if kills else 1), "an error removes what it wrote"
        CheckpointFolder(folder).begin(1)
        assert [p.name for p in folder.iterdir()] == ["step-000000001.safetensors"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("this system has no mount")
    if done.returncode:
        pytest.skip(f"this user cannot mount a small disk: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.e2e
def test_a_run_on_a_disk_that_fills_ends_with_the_error_and_a_whole_checkpoint(small_disk: Path) -> None:
    model = nn.Linear(64, 64)  # 17 KB, so a few fit
    x = np.ones((8, 64), np.float32)
    saves = Checkpoints(small_disk, unit="step", keep=9)
    optimizer = nn.optim.SGD(nn.state.get_parameters(model), lr=0.01)
    with pytest.raises(OSError, match="No space left"):
        fit(model, (x, x), loss="mse", epochs=30, optimizer=optimizer, callbacks=[saves], progress=False)
    steps = list(CheckpointFolder(small_disk).complete())
    assert steps == list(range(1, 1 + len(steps))) and 2 <= len(steps) <= 3
    assert len(list(small_disk.iterdir())) == len(steps), "nothing unfinished is left"
    again = nn.Linear(64, 64)
    fit(again, (x, x), loss="mse", epochs=steps[-1], optimizer=optimizer_of(again), resume=saves.newest(),
        progress=False)  # fmt: skip


def optimizer_of(model: Any) -> Any:
    return nn.optim.SGD(nn.state.get_parameters(model), lr=0.01)


# --- files of several ranks


def test_a_checkpoint_is_there_when_all_ranks_have_written(tmp_path: Path) -> None:
    ranks = [CheckpointFolder(tmp_path, 2, shard, 3) for shard in range(3)]
    for step in (4, 8, 12):
        for i in (1, 0, 2):
            assert step not in ranks[0].complete()
            ranks[i].write(step, snapshot(step))
        files = ranks[0].complete()[step]
        assert [p.name for p in files] == [f"step-{step:09d}-{i:05d}-of-00003.safetensors" for i in (1, 2, 3)]
    assert list(ranks[0].complete()) == [8, 12], "the last two are kept"
    ranks[1].write(16, snapshot(16))
    assert list(ranks[0].complete()) == [8, 12]
    assert checkpoint_files.checkpoint_files(tmp_path) == ranks[0].complete()[12]
    assert checkpoint_files.checkpoint_files(ranks[0].complete()[8][1]) == ranks[0].complete()[8]
    with pytest.raises(ArgumentError, match="expected the other ranks' files beside it"):
        checkpoint_files.checkpoint_files(tmp_path / "step-000000016-00002-of-00003.safetensors")


def test_a_run_with_another_number_of_ranks_goes_on_in_the_folder(tmp_path: Path) -> None:
    for shard in range(3):
        CheckpointFolder(tmp_path, 1, shard, 3).write(4, snapshot(4))
    CheckpointFolder(tmp_path, 1, 2, 3).write(6, snapshot(6))  # and the others were killed
    (tmp_path / "step-000000006-00001-of-00003.safetensors.0123456789ab").touch()  # of `write_file`
    for name in ("step-notes.safetensors", "step-000000004.safetensors.bad"):  # of the user
        (tmp_path / name).touch()
    alone = CheckpointFolder(tmp_path, 1)
    CheckpointFolder(tmp_path, 1, 1, 2).begin(4)
    assert len(list(tmp_path.iterdir())) == 7, "rank 0 removes what is left"
    alone.begin(4)
    assert len(list(tmp_path.iterdir())) == 5
    alone.write(6, snapshot(6))
    names = sorted(p.name for p in tmp_path.iterdir())
    assert names == ["step-000000004.safetensors.bad", "step-000000006.safetensors", "step-notes.safetensors"]


def test_later_checkpoints_are_refused(tmp_path: Path) -> None:
    for shard in range(2):
        CheckpointFolder(tmp_path, 1, shard, 2).write(4, snapshot(4))
    with pytest.raises(ArgumentError, match=r"steps after 3, got .*step-000000004-00001-of-00002"):
        CheckpointFolder(tmp_path).begin(3)
    assert len(CheckpointFolder(tmp_path).complete()[4]) == 2


def test_files_are_written_with_fsync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []
    monkeypatch.setattr(sealed_files, "write_file", lambda path, parts, sync: asked.append(sync))
    CheckpointFolder(tmp_path).write(1, snapshot(1.0))
    assert asked == [True]


def test_files_of_different_runs_are_no_checkpoint() -> None:
    files = [b"".join(snapshot(1, attempt=x).parts()) for x in ("a", "a", "b")]
    assert set(read_parts(files[:2], "it")[0]) == {"a", "b", "c"}
    with pytest.raises(ArgumentError, match="it: its files were written by different runs"):
        read_parts(files, "it")


def test_shares_are_all_names_once_and_about_even() -> None:
    sizes = {f"t{i}": size for i, size in enumerate([100, 1, 1, 50, 49, 30, 30, 40])}
    parts = shares(sizes, 3)
    assert sorted(name for part in parts for name in part) == sorted(sizes)
    totals = [sum(sizes[name] for name in part) for part in parts]
    assert max(totals) <= 4 / 3 * sum(totals) / 3 and [len(x) for x in shares(sizes, 1)] == [len(sizes)]
    assert shares({"a": 1}, 3) == [["a"], [], []]


# --- in the background


def trained(folder: Path, *callbacks: Callback, **options: Any) -> Any:
    """Six steps of a model; the model."""
    model = nn.Linear(2, 1)
    x = np.ones((12, 2), np.float32)
    optimizer = nn.optim.SGD(nn.state.get_parameters(model), lr=0.1)
    fit(model, (x, x[:, :1]), loss="mse", batch_size=2, optimizer=optimizer, progress=False,
        callbacks=[*callbacks, Checkpoints(folder, every=4, unit="step", **options)])  # fmt: skip
    return model


class AtStep(Callback):
    def __init__(self, step: int, act: Callable[[TrainingRun], object]) -> None:
        self.step, self.act = step, act

    def on_step(self, run: TrainingRun) -> None:
        if run.step == self.step:
            self.act(run)


def test_steps_go_on_while_a_file_is_written_of_the_state_before_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_write, write_file, weights = threading.Event(), sealed_files.write_file, []

    def slow(path: Path, parts: Any, sync: bool) -> None:
        assert may_write.wait(60)
        write_file(path, parts, sync)

    monkeypatch.setattr(sealed_files, "write_file", slow)

    def look(run: TrainingRun) -> None:
        assert list(tmp_path.iterdir()) == []
        may_write.set()

    keep = AtStep(4, lambda run: weights.append(run.model.weight.tolist()))
    model = trained(tmp_path, keep, AtStep(6, look))
    (fourth,), (last,) = CheckpointFolder(tmp_path).complete().values()
    values = [read_sealed(path, "it")[0]["weights.weight"].tolist() for path in (fourth, last)]
    assert values == [weights[0], model.weight.tolist()] and values[0] != values[1]


def fails(path: Path, parts: Any, sync: bool) -> None:
    raise OSError("no room")


def test_what_cannot_be_written_is_an_error_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealed_files, "write_file", fails)
    steps: list[int] = []
    watch = [AtStep(step, lambda run: steps.append(run.step)) for step in (5, 6)]
    with pytest.raises(OSError, match="no room"):
        trained(tmp_path, *watch)
    assert steps == [5, 6], "of the next checkpoint, here that of the end"
    steps.clear()
    with pytest.raises(OSError, match="no room"):
        trained(tmp_path, *watch, background=False)
    assert steps == []


def test_another_error_is_the_one_that_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealed_files, "write_file", fails)

    def interrupt(run: TrainingRun) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as error:
        trained(tmp_path, AtStep(5, interrupt))
    assert error.value.__notes__ == ["Checkpoints: OSError: no room"]


def test_a_writer_does_one_thing_at_a_time_and_raises_an_error_once() -> None:
    done: list[int] = []
    with BackgroundWriter() as files:
        files.start(lambda: done.append(1))
        files.start(lambda: done.append(2 if done == [1] else -1))
    assert done == [1, 2]
    files.start(lambda: done.append(1 // 0))
    with pytest.raises(ZeroDivisionError):
        files.start(lambda: done.append(3))
    files.wait()
    assert done == [1, 2]
    with pytest.raises(ZeroDivisionError), files:
        files.start(lambda: 1 // 0)
    with pytest.raises(KeyError) as error, files:
        files.start(lambda: 1 // 0)
        raise KeyError("x")
    assert error.value.__notes__ == ["ZeroDivisionError: integer division or modulo by zero"]
