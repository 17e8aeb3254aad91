"""SIGTERM during `fit`: the checkpoint that was asked for is written, and the run goes on to the last bit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polygrad import Tensor, nn
from polygrad.training import Callback, Checkpoints, TrainingRun, fit
from polygrad.training.checkpoint_files import CheckpointFolder
from polygrad.training.termination import termination

pytestmark = [
    pytest.mark.usefixtures("default_device"),
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM to send"),
]


def train(*callbacks: Callback, resume: Path | None = None, validation: Any = 0.25) -> tuple[Any, ...]:
    """Twelve steps in three epochs; the weights and the history."""
    Tensor.manual_seed(3)
    model = nn.Linear(3, 1)
    Tensor.realize(*nn.state.get_parameters(model))
    x = np.random.default_rng(0).standard_normal((32, 3)).astype(np.float32)
    history = fit(model, (x, x.sum(1, keepdims=True)), loss="mse", epochs=3, batch_size=6, resume=resume,
                  validation=validation, callbacks=callbacks, progress=False)  # fmt: skip
    return [t.tolist() for t in nn.state.get_parameters(model)], history.values


class Terminate(Callback):
    """Sends the signal to this process in a step."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_step(self, run: TrainingRun) -> None:
        if run.step == self.step:
            os.kill(os.getpid(), signal.SIGTERM)


@pytest.fixture
def received() -> Iterator[list[int]]:
    """The signals that a program's own handler got."""
    came: list[int] = []
    handler = lambda number, _: came.append(number)
    before = signal.signal(signal.SIGTERM, handler)
    yield came
    assert signal.getsignal(signal.SIGTERM) is handler, "it is the program's again"
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("step", [1, 4, 7, 12])
def test_the_step_is_finished_the_checkpoint_written_and_the_handler_called(
    tmp_path: Path, received: list[int], step: int
) -> None:
    whole = train()
    assert received == []
    _, history = train(Terminate(step), Checkpoints(tmp_path, every=2))
    assert received == [signal.SIGTERM]
    assert list(CheckpointFolder(tmp_path).complete())[-1] == step
    assert len(history.get("loss", [])) == (step - 1) // 4, "the epoch of its last step has not ended"
    assert train(Checkpoints(tmp_path), resume=tmp_path) == whole
    assert received == [signal.SIGTERM]


def test_in_a_validation_it_ends_after_a_batch_and_the_validation_is_made_again(
    tmp_path: Path, received: list[int]
) -> None:
    x = np.ones((4, 3), np.float32)
    batches: list[int] = []

    class Measured:
        def __init__(self, at: int) -> None:
            self.at = at

        def __iter__(self) -> Iterator[Any]:
            for _ in range(4):
                batches.append(1)
                if len(batches) == self.at:
                    os.kill(os.getpid(), signal.SIGTERM)
                yield x, x[:, :1]

    whole = train(validation=Measured(0))
    batches.clear()
    train(Checkpoints(tmp_path), validation=Measured(6))
    assert received == [signal.SIGTERM] and len(batches) == 6
    assert train(Checkpoints(tmp_path), resume=tmp_path, validation=Measured(0)) == whole
    assert len(batches) == 14


def test_without_checkpoints_the_signal_does_what_it_did(received: list[int]) -> None:
    whole = train()
    assert train(Terminate(2)) == whole and received == [signal.SIGTERM]


def test_a_run_in_another_thread_leaves_the_signal_alone(tmp_path: Path, received: list[int]) -> None:
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(train(Terminate(2), Checkpoints(tmp_path))))
    thread.start()
    thread.join()
    assert results == [train()] and received == [signal.SIGTERM]


def test_a_block_hides_the_signal_and_an_exception_gives_it_back(received: list[int]) -> None:
    with pytest.raises(KeyError), termination() as came:
        assert not came()
        signal.raise_signal(signal.SIGTERM)
        assert came() and received == []
        raise KeyError
    signal.raise_signal(signal.SIGTERM)
    assert received == [signal.SIGTERM]


_RUNS = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_termination import train
from polygrad.training import Callback, Checkpoints

class Begun(Callback):
    def on_step(self, run):
        print(run.step, flush=True)
        sys.stdin.readline()  # so the signal comes in this step

train(Begun(), Checkpoints(Path(sys.argv[1])))
print("not reached")
"""


@pytest.mark.e2e
def test_a_process_ends_by_the_signal_after_its_checkpoint(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _RUNS, str(tmp_path), str(Path(__file__).parent)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    child = subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdin is not None and child.stdout is not None
    for step in (1, 2):
        assert child.stdout.readline() == f"{step}\n"
        if step == 2:
            child.send_signal(signal.SIGTERM)
        child.stdin.write("\n")
        child.stdin.flush()
    out, _ = child.communicate(timeout=100)
    assert (child.returncode, out) == (-signal.SIGTERM, "")
    assert list(CheckpointFolder(tmp_path).complete()) == [2]
    assert train(Checkpoints(tmp_path), resume=tmp_path) == train()
