"""A rank of `test_training.py`: `fit` on few rows. Options as JSON; rank 0 prints history and weights."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np

from polygrad import Tensor, distributed, nn
from polygrad.training import Callback, Checkpoints, TrainingRun, fit

ROWS, FEATURES, CLASSES = 45, 5, 3


class Net:
    def __init__(self, dropout: float) -> None:
        self.first, self.second, self.dropout = nn.Linear(FEATURES, 8), nn.Linear(8, CLASSES), dropout

    def __call__(self, x: Tensor) -> Tensor:
        return self.second(self.first(x).tanh().dropout(self.dropout))


class Kill(Callback):
    """Once in a folder, a rank ends in a step: killed, or by a signal to it alone."""

    def __init__(self, folder: Path, rank: int, step: int, number: int) -> None:
        self.mark, self.rank, self.step, self.number = folder / "killed", rank, step, number

    def on_step(self, run: TrainingRun) -> None:
        if run.step == self.step and distributed.rank() == self.rank and not self.mark.exists():
            self.mark.touch()
            os.kill(os.getpid(), self.number)


def train(
    folder: Path | None = None,
    dropout: float = 0.0,
    epochs: int = 3,
    kill: tuple[int, int, int] | None = None,
    loader: bool = False,
) -> dict[str, Any]:
    Tensor.manual_seed(7 + distributed.rank())  # weights are those of rank 0
    model = Net(dropout)
    random = np.random.default_rng(0)
    x = random.standard_normal((ROWS, FEATURES)).astype(np.float32)
    y = (x[:, 0] > x[:, 1]).astype(np.int32) + (x[:, 2] > 1)
    data: Any = [(x[i : i + 12], y[i : i + 12]) for i in range(0, ROWS, 12)] if loader else (x, y)
    optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=0.02)
    callbacks: list[Callback] = []
    if folder is not None:
        callbacks.append(Checkpoints(folder, every=2, unit="step", keep=2))
    if kill is not None and folder is not None:
        callbacks.append(Kill(folder, *kill))
    history = fit(
        model,
        data,
        loss="cross_entropy",
        metrics=["accuracy"],
        optimizer=optimizer,
        epochs=epochs,
        batch_size=12,
        validation=(x[:7], y[:7]),
        callbacks=callbacks,
        resume=callbacks[0].newest() if callbacks else None,  # type: ignore[attr-defined]
        progress=False,
    )
    weights = {name: t.tolist() for name, t in nn.state.get_state_dict(model).items()}
    return {"history": history.values, "weights": weights, "ranks": distributed.size()}


def main(text: str) -> None:
    options = json.loads(text)
    if options.get("folder"):
        options["folder"] = Path(options["folder"])
    distributed.init(timeout=20)
    found = train(**options)
    if distributed.rank() == 0:
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # launchers may have it ignored
    main(sys.argv[1])
