"""Two ranks or more, of which rank 1 fails in the way that the first argument names, in the middle of
training.

The second argument is a folder for the ranks' errors: a launcher may not show them after one was killed.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from polygrad import Tensor, distributed, nn
from polygrad.errors import RankError

way = sys.argv[1]
distributed.init()
rank = distributed.rank()
model = nn.Linear(8, 4)
opt = nn.optim.SGD(nn.state.get_parameters(model), lr=0.1)
step = distributed.DataParallel(lambda model, x: model(x).square().mean(), model, opt, Tensor.ones(2, 8))


def fail() -> None:
    if way == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif way == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif way == "hang":
        time.sleep(100)
    elif way == "interrupt":
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)
    elif way == "raise":
        raise ValueError("bad data")
    elif way == "leave":
        sys.exit(0)
    elif way == "other":
        distributed.broadcast(Tensor([1.0, 2.0]))


for i in range(10):
    step.run()
    if i == 3:
        print(f"rank {rank} is at {i}", flush=True)
        if rank == 1:
            fail()
        started = time.monotonic()
        try:
            step.run()
        except RankError as error:
            seconds = time.monotonic() - started
            (Path(sys.argv[2]) / str(rank)).write_text(f"{seconds:.1f} seconds, {error.ranks}: {error}")
            raise
print(f"rank {rank} is at its end", flush=True)
