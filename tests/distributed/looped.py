"""A rank of `test_training.py`: a loop with `DataParallel` and `SavedState`. Rank 0 prints its losses.

Arguments: a folder, and options as JSON. `kill`: the step in which rank 1 is killed once. `full`: the step in
which its disk is full from then on. `until`: the last step. `sharded`: ZeRO-1. `parts`: a batch is that many
parts, added up in order, whatever the number of ranks.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np

from polygrad import Tensor, distributed, nn
from polygrad.training import SavedState

BATCH = 8


def loss(model: Any, x: Tensor) -> Tensor:
    return (model[1](model[0](x).tanh()) - x.sum(1, keepdim=True)).square().mean()


def loss_with_dropout(model: Any, x: Tensor) -> Tensor:
    return loss(model, x.dropout(0.2))


def fill_disk() -> None:
    """From now on this process cannot write a file to its end, as on a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def train(
    folder: Path, kill: int = -1, full: int = -1, until: int = 12, sharded: bool = False, parts: int = 0
) -> Any:
    distributed.init(timeout=20)
    rank, size = distributed.rank(), distributed.size()
    Tensor.manual_seed(5 + rank)
    model = [nn.Linear(3, 7), nn.Linear(7, 1)]
    optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=0.05)
    x = Tensor(np.random.default_rng(0).standard_normal((32, 3)).astype(np.float32))
    runs = parts // size or 1
    losses = []
    with SavedState(folder, every=2, model=model, optimizer=optimizer) as saved:
        first, mark = saved.step, folder / "killed"
        step = distributed.DataParallel(
            loss if parts else loss_with_dropout,
            model,
            optimizer,
            x[: BATCH // size // runs],
            shard_optimizer=sharded,
            in_order=parts > 0,
            accumulate=runs,
        )
        for (rows,) in nn.data.batches(x, BATCH, seed=1, epochs=3, rank=rank, ranks=size, start=first):
            for part in rows.chunk(runs):
                step.run(part)
            losses.append(step.loss_value())
            if saved.step + 1 == kill and rank == 1 and not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            if saved.step + 1 == full and rank == 1:
                saved._writer.wait()  # the checkpoint before is whole
                fill_disk()
            saved.advance()
            if saved.step == until:
                break
    return {"first": first, "losses": losses, "rank": rank}


if __name__ == "__main__":
    found = train(Path(sys.argv[1]), **json.loads(sys.argv[2]))
    if found["rank"] == 0:
        print(json.dumps(found))
