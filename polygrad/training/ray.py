"""Ray: `fit` in the workers of ray.train, with Ray's checkpoints and reports; `predict` over ray.data.

    from polygrad.training.ray import RayCheckpoints, trainer

    def train(config):  # in each worker
        saves = RayCheckpoints(every=2)
        fit(make_model(), data, loss="cross_entropy", epochs=10, callbacks=[saves], resume=saves.newest())

    trainer(train, workers=4, run_config=ray.train.RunConfig(storage_path="/shared", name="first")).fit()

Needs `polygrad[ray]`, and torch, over which workers exchange gradients.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import ray.train
from ray.data import ActorPoolStrategy
from ray.train.torch import TorchConfig, TorchTrainer

from polygrad import distributed
from polygrad.errors import ShapeError
from polygrad.nn.sealed_files import write_snapshot
from polygrad.tensor.tensor import Tensor
from polygrad.training.callbacks import Checkpoints
from polygrad.training.checkpoint import contents_of
from polygrad.training.checkpoint_files import checkpoint_files, checkpoint_name
from polygrad.training.ranks import rank, size
from polygrad.training.run import TrainingRun


class TrainWorker:
    """What each worker of a data-parallel trainer of Ray runs: it joins the others, then calls `loop`, with
    the trainer's `train_loop_config`."""

    def __init__(self, loop: Callable[[Mapping[str, Any]], object], timeout: float = 60.0) -> None:
        self.loop, self.timeout = loop, timeout

    def __call__(self, config: Mapping[str, Any]) -> None:
        distributed.init(timeout=self.timeout)
        self.loop(config)


def trainer(
    loop: Callable[[Mapping[str, Any]], object],
    workers: int,
    *,
    config: Mapping[str, Any] | None = None,
    gpu: bool = False,
    **options: Any,
) -> Any:
    """ray.train's trainer of `workers` processes, each of which calls `loop(config)`.

    `gpu`: a GPU for each. `options`: as of `ray.train.torch.TorchTrainer`. Its `run_config` says where
    checkpoints go, how many are kept, and how many failures are followed by a restart.
    """
    backend = TorchConfig(backend="nccl" if gpu else "gloo")
    options.setdefault("scaling_config", ray.train.ScalingConfig(num_workers=workers, use_gpu=gpu))
    return TorchTrainer(
        TrainWorker(loop), train_loop_config=dict(config or {}), torch_config=backend, **options
    )


class RayCheckpoints(Checkpoints):
    """Checkpoints that Ray keeps: each worker hands its share to `ray.train.report`, with the values of the
    last epoch and the step. `RunConfig` says how many stay.

    `every`: epochs, or steps with `unit="step"`. Raises ArgumentError.
    """

    def __init__(self, every: int = 1, unit: str = "epoch") -> None:
        super().__init__(".", every, unit)

    def newest(self) -> Path | None:
        """The checkpoint from which Ray says that the run goes on; None: it begins."""
        checkpoint = ray.train.get_checkpoint()
        return None if checkpoint is None else checkpoint_files(checkpoint.to_directory())[0]

    def on_begin(self, run: TrainingRun) -> None:
        """A run that goes on has a checkpoint of this step."""
        self._saved = run.step

    def _save(self, run: TrainingRun) -> None:
        self._saved = run.step
        name = checkpoint_name(run.step, rank(), size())
        metrics = {k: values[-1] for k, values in run.history.values.items()}
        metrics |= {"step": run.step, "epoch": run.epoch}
        with tempfile.TemporaryDirectory() as folder:
            write_snapshot(Path(folder) / name, contents_of(run).share(rank(), size()))
            ray.train.report(metrics, checkpoint=ray.train.Checkpoint.from_directory(folder))

    def __repr__(self) -> str:
        return f"RayCheckpoints(every={self.every}, unit={self.unit!r})"


class _Predictor:
    """A worker of `predict`: makes its model once."""

    def __init__(self, make: Callable[[], Callable[[Mapping[str, Any]], Any]]) -> None:
        self.function = make()

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        rows = len(next(iter(batch.values())))
        result = self.function(batch)
        named = result if isinstance(result, Mapping) else {"prediction": result}
        out = {**batch}
        for name, value in named.items():
            out[name] = value.numpy() if isinstance(value, Tensor) else np.asarray(value)
            if out[name].shape[:1] != (rows,):
                raise ShapeError(
                    f"predict: {name}: expected a row for each of {rows}, got shape {out[name].shape}"
                )
        return out


def predict(
    dataset: Any,
    make: Callable[[], Callable[[Mapping[str, Any]], Any]],
    *,
    workers: int = 1,
    batch_size: int = 256,
    **options: Any,
) -> Any:
    """A data set of ray.data with a column for what is predicted, lazily: each row once, also where a worker
    is lost, whose batches another one computes.

    make: called once in each worker, as it loads a model; gives a function of a batch, numpy arrays by
        column, whose result has a row for each: a Tensor or array, the column "prediction", or several by
        name.
    workers: processes, of which each has a model. options: of `Dataset.map_batches`, as `num_gpus=1`.

    Raises ShapeError in a worker, which Ray reports.
    """
    return dataset.map_batches(
        _Predictor,
        fn_constructor_args=(make,),
        batch_size=batch_size,
        batch_format="numpy",
        compute=ActorPoolStrategy(size=workers),
        **options,
    )
