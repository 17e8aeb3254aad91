"""Checkpoints: the state of a run as safetensors files, from which it goes on to the last bit.

Random numbers are a function of the seed and the number of the step. So there are no generators in it: it
has weights, the optimizer, the scheduler, sums of the epoch that has begun, the history, and the callbacks'
state.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from polygrad import nn
from polygrad.errors import ArgumentError, PolygradError
from polygrad.nn.sealed_files import Snapshot, read_sealed, take_snapshot
from polygrad.tensor.tensor import Tensor
from polygrad.training.checkpoint_files import checkpoint_files, joined, shares

if TYPE_CHECKING:
    from polygrad.training.run import TrainingRun

_VERSION = "2"


def seed_of(seed: int, *position: int) -> int:
    """The seed of the random numbers at a position of a run: a step, or an epoch and a batch."""
    text = "/".join(map(str, (seed, *position)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "little")


def snapshot_of(run: TrainingRun, shard: int = 0, shards: int = 1) -> Snapshot:
    """The state of a run, or the part of it that is in the file of rank `shard` of `shards`."""
    tensors: dict[str, Tensor] = {"sums": run.steps.trained.values.detach()}
    tensors |= {f"weights.{name}": t.detach() for name, t in nn.state.get_state_dict(run.model).items()}
    plain: dict[str, Any] = {}
    for owner, stateful in _owners(run).items():
        for name, value in stateful.state_dict().items():
            if isinstance(value, Tensor):
                tensors[f"{owner}.{name}"] = value.detach()
            else:
                plain[f"{owner}.{name}"] = value
    text = json.dumps(
        {
            "settings": _settings(run),
            "epoch": run.epoch,
            "position": run.position,
            "step": run.step,
            "rows": run.steps.trained.rows,
            "history": run.history.values,
            "plain": plain,
        }
    )
    names = shares({name: int(t.nbytes()) for name, t in tensors.items()}, shards)[shard]
    mine = {name: t for name, t in tensors.items() if name in names}
    return take_snapshot(mine, {"polygrad_training": _VERSION, "state": text})


def load_checkpoint(source: str | os.PathLike[str], run: TrainingRun) -> None:
    """Bring a run to the state in a file, or in the newest checkpoint of a folder. Raises ArgumentError for a
    folder without any, and as `restore` does."""
    files = checkpoint_files(source)
    restore(files, run, str(files[0]))


def restore(files: Sequence[Any], run: TrainingRun, where: str) -> None:
    """Bring a run to the state in the files of a checkpoint: paths, or their bytes, called `where` in errors.

    Raises ArgumentError where one is damaged, or belongs to a run with another model, other data or other
    settings; then the model is as it was.
    """
    parts = [read_sealed(file, f"resume: {where}") for file in files]
    tensors, metadata = joined(parts, where), parts[0][1]
    if "polygrad_training" not in metadata:
        raise ArgumentError(f"resume: {where}: the file is no checkpoint of a training")
    if (version := metadata["polygrad_training"]) != _VERSION:
        raise ArgumentError(f"resume: {where}: expected a checkpoint of version {_VERSION}, got {version!r}")
    try:
        state = json.loads(metadata["state"])
        settings, plain = dict(state["settings"]), dict(state["plain"])
        counts = [int(state[name]) for name in ("epoch", "position", "step", "rows")]
        history = {str(k): [float(x) for x in v] for k, v in state["history"].items()}
        sums = tensors["sums"]
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as e:
        raise ArgumentError(f"resume: {where}: the state is damaged: {e!r}") from e
    expected = _settings(run)
    for name in sorted({*settings, *expected}):
        if settings.get(name) != expected.get(name):
            raise ArgumentError(
                f"resume: the run in {where} was started with another {name}: {settings.get(name)!r}, "
                f"not {expected.get(name)!r}"
            )
    weights = _part(tensors, "weights")
    for name, t in nn.state.get_state_dict(run.model).items():
        if name not in weights:
            raise ArgumentError(f"resume: {where}: it has no weights.{name}: it is of another model")
        if weights[name].shape != t.shape:
            raise ArgumentError(
                f"resume: {where}: weights.{name}: expected shape {t.shape}, got {weights[name].shape}"
            )
    try:
        for owner, stateful in _owners(run).items():
            saved = _part(tensors, owner) | _part(plain, owner)
            if saved:
                stateful.load_state_dict(saved)
    except (PolygradError, KeyError, TypeError, ValueError) as e:
        raise ArgumentError(f"resume: {where}: {owner}: {e}") from e
    nn.state.load_state_dict(run.model, weights, verbose=False)
    trained = run.steps.trained
    trained.values.assign(sums.to(trained.values.device)).realize()
    run.epoch, run.position, run.step, trained.rows = counts
    run.history.values.clear()
    run.history.values.update(history)


def _settings(run: TrainingRun) -> dict[str, Any]:
    """The settings that must be the same in a run that is continued."""
    return {
        "seed": run.seed,
        "optimizer": type(run.optimizer).__name__,
        "scheduler": type(run.scheduler).__name__,
        "scheduler_interval": run.interval,
        "list of measured values": run.names,
        **run.data.settings,
    }


def _owners(run: TrainingRun) -> dict[str, Any]:
    """The objects beside the model that have a state, by a name for each."""
    out: dict[str, Any] = {"optimizer": run.optimizer}
    if run.scheduler is not None:
        out["scheduler"] = run.scheduler
    for callback in run.callbacks:
        kind = f"callback.{type(callback).__name__}"
        out[f"{kind}.{sum(name.startswith(kind) for name in out)}"] = callback
    return out


def _part(values: Mapping[str, Any], owner: str) -> dict[str, Any]:
    start = f"{owner}."
    return {name.removeprefix(start): value for name, value in values.items() if name.startswith(start)}
