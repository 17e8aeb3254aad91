"""A rank of `test_training.py`: a loop with `DataParallel` and `SavedState`. Rank 0 prints its losses.

Arguments: a folder, the step in which rank 1 is killed once, and "sharded" for ZeRO-1.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import numpy as np

from polygrad import Tensor, distributed, nn
from polygrad.training import SavedState

folder, victim_step, sharded = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "sharded"
distributed.init(timeout=20)
rank, size = distributed.rank(), distributed.size()
Tensor.manual_seed(5 + rank)
model = nn.Linear(3, 1)
optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=0.05)
x = Tensor(np.random.default_rng(0).standard_normal((32, 3)).astype(np.float32))
losses = []
with SavedState(folder, every=2, model=model, optimizer=optimizer) as saved:
    first, mark = saved.step, folder / "killed"
    step = distributed.DataParallel(
        lambda model, x: (model(x.dropout(0.2)) - x.sum(1, keepdim=True)).square().mean(),
        model,
        optimizer,
        x[: 8 // size],
        shard_optimizer=sharded,
    )
    for (rows,) in nn.data.batches(x, 8, seed=1, epochs=3, rank=rank, ranks=size, start=first):
        step.run(rows)
        losses.append(step.loss_value())
        if saved.step + 1 == victim_step and rank == 1 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        saved.advance()
if rank == 0:
    print(json.dumps({"first": first, "losses": losses}))
