"""Loops of one's own that go on from a checkpoint, to the last bit."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polygrad import Tensor, compile_step, distributed, nn
from polygrad.errors import ArgumentError
from polygrad.training import SavedState
from polygrad.training.checkpoint_files import CheckpointFolder

pytestmark = pytest.mark.usefixtures("default_device")


def train(folder: Path, until: int = 12, terminate: int = -1, fail: int = -1, **more: Any) -> Any:
    """Steps of a captured function with dropout, Adam and a schedule, and a draw after each."""
    Tensor.manual_seed(3)
    model = nn.Linear(3, 1)
    optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=0.05)
    schedule = nn.optim.CosineAnnealingLR(optimizer, 12)
    x = Tensor(np.random.default_rng(0).standard_normal((16, 3)).astype(np.float32))
    seen = []
    parts = {"model": model, "optimizer": optimizer, "schedule": schedule} | more
    with SavedState(folder, every=2, keep=2, **parts) as saved:
        loss = lambda model, x: (model(x.dropout(0.3)) - x.sum(1, keepdim=True)).square().mean()
        step = compile_step(loss, model, optimizer, x[:4])
        for (rows,) in nn.data.batches(x, 4, seed=1, epochs=3, start=saved.step):
            step.run(rows)
            schedule.step()
            seen.append((step.loss_value(), Tensor.rand(2).tolist()))
            if saved.step + 1 == terminate:
                os.kill(os.getpid(), signal.SIGTERM)
            if saved.step + 1 == fail:
                raise KeyboardInterrupt
            saved.advance()
            if saved.step == until:
                break
    return seen


def test_a_loop_goes_on_to_the_last_bit(tmp_path: Path) -> None:
    whole = train(tmp_path / "whole")
    assert len(whole) == 12
    for fail in (3, 6, 11):
        folder = tmp_path / str(fail)
        with pytest.raises(KeyboardInterrupt):
            train(folder, fail=fail)
        done = (fail - 1) // 2 * 2
        assert list(CheckpointFolder(folder).complete())[-1] == done
        assert train(folder) == whole[done:]
        assert train(folder) == []


def test_the_end_of_a_block_saves_the_last_step(tmp_path: Path) -> None:
    whole = train(tmp_path / "whole")
    assert train(tmp_path / "a", until=5) == whole[:5]
    assert list(CheckpointFolder(tmp_path / "a").complete()) == [4, 5]
    assert train(tmp_path / "a") == whole[5:]


def test_sigterm_saves_the_step_and_reaches_its_handler(tmp_path: Path) -> None:
    whole = train(tmp_path / "whole")
    came: list[list[int]] = []
    handler = lambda *_: came.append(list(CheckpointFolder(tmp_path / "a").complete()))
    before = signal.signal(signal.SIGTERM, handler)
    try:
        train(tmp_path / "a", until=5, terminate=5)
        assert came == [[4, 5]] and signal.getsignal(signal.SIGTERM) is handler
    finally:
        signal.signal(signal.SIGTERM, before)
    assert train(tmp_path / "a") == whole[5:]


def test_an_optimizer_that_is_divided_before_the_block_is_refused(tmp_path: Path) -> None:
    model = nn.Linear(3, 1)
    optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=0.05)
    loss = lambda model, x: model(x).square().mean()
    distributed.DataParallel(loss, model, optimizer, Tensor.ones(4, 3), shard_optimizer=True)
    with pytest.raises(
        ArgumentError, match="SavedState: optimizer: expected an optimizer that is not divided"
    ):
        SavedState(tmp_path, model=model, optimizer=optimizer).__enter__()


def test_what_is_refused(tmp_path: Path) -> None:
    train(tmp_path / "a", until=2)
    with pytest.raises(ArgumentError, match=r"expected the parts .*'schedule', 'more'"):
        train(tmp_path / "a", more=nn.Linear(1, 1))
    with pytest.raises(ArgumentError, match="every: expected at least 1"):
        SavedState(tmp_path, every=0)
    (path,) = CheckpointFolder(tmp_path / "a").complete()[2]
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(ArgumentError, match="damaged"):
        train(tmp_path / "a")
