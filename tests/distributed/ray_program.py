"""A driver of Ray for `test_ray.py`: `train FOLDER STEP` or `predict FOLDER`; its answer is a file.

A worker is killed once, in a step or in a batch: a file in the folder says that it was.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import ray
import ray.data
import ray.train

from polygrad import Tensor, distributed
from polygrad.training import Callback
from polygrad.training.ray import RayCheckpoints, predict, trainer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from small_fit import fit_some

ROWS = 200


def loop(config: dict[str, Any]) -> None:
    mark = Path(config["folder"]) / "killed"

    class Kill(Callback):
        def on_step(self, run: Any) -> None:
            if run.step == config["step"] and distributed.rank() == 1 and not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)

    saves = RayCheckpoints(every=2, unit="step")
    started = saves.newest()
    history = fit_some(callbacks=[Kill(), saves], resume=started)
    if distributed.rank() == 0:
        found = {"history": history.values, "size": distributed.size(), "resumed": started is not None}
        (Path(config["folder"]) / "found.json").write_text(json.dumps(found))


def train(folder: Path, step: int) -> dict[str, Any]:
    result = trainer(
        loop,
        workers=2,
        config={"folder": str(folder), "step": step},
        run_config=ray.train.RunConfig(
            storage_path=str(folder / "storage"),
            name="run",
            failure_config=ray.train.FailureConfig(max_failures=1),
            checkpoint_config=ray.train.CheckpointConfig(num_to_keep=2),
        ),
    ).fit()
    files = sorted(p.name for p in Path(result.checkpoint.to_directory()).iterdir())
    return {"metrics": result.metrics, "files": files, **json.loads((folder / "found.json").read_text())}


def make() -> Any:
    mark, calls = Path(os.environ["MARK"]) / "killed", []

    def squares(batch: Any) -> Tensor:
        calls.append(1)
        time.sleep(0.02)
        if len(calls) == 3 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return Tensor(batch["id"].astype(np.float32)) ** 2

    return squares


def score(folder: Path) -> dict[str, Any]:
    rows = predict(ray.data.range(ROWS, override_num_blocks=20), make, workers=2, batch_size=10).take_all()
    return {"rows": [[int(row["id"]), float(row["prediction"])] for row in rows]}


if __name__ == "__main__":
    kind, folder = sys.argv[1], Path(sys.argv[2])
    os.environ["MARK"] = str(folder)
    ray.init(num_cpus=6, include_dashboard=False, log_to_driver="-v" in sys.argv)
    answer = train(folder, int(sys.argv[3])) if kind == "train" else score(folder)
    (folder / "answer.json").write_text(json.dumps(answer))
