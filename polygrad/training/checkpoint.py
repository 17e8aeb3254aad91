"""Checkpoints: the state of a run as one safetensors file, from which it goes on to the last bit.

Random numbers are a function of the seed and the number of the step. So a file has no generators: it has
weights, the optimizer, the scheduler, sums of the epoch that has begun, the history, and the callbacks'
state.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polygrad import nn
from polygrad.errors import ArgumentError, PolygradError
from polygrad.nn.files import file_bytes
from polygrad.tensor.tensor import Tensor

if TYPE_CHECKING:
    from polygrad.training.run import TrainingRun

_VERSION = "1"
_NAMES = f"step-{'[0-9]' * 9}.safetensors"


def seed_of(seed: int, *position: int) -> int:
    """The seed of the random numbers at a position of a run: a step, or an epoch and a batch."""
    text = "/".join(map(str, (seed, *position)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "little")


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that there is the old one or the new one at any time. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def check_folder(folder: Path, step: int) -> None:
    """Raises ArgumentError for a folder with checkpoints of later steps: a run that is at `step` would count
    them as its newest."""
    names = sorted(path.name for path in folder.glob(_NAMES))
    if names and names[-1] > checkpoint_name(step):
        raise ArgumentError(
            f"Checkpoints: expected a folder without checkpoints of steps after {step}, got {folder} with "
            f"{names[-1]}: go on from there by resume={str(folder)!r}, or choose another folder"
        )


def save_checkpoint(folder: Path, run: TrainingRun, keep: int) -> Path:
    """Write the state of a run; of older files, the last keep - 1 stay. Raises OSError."""
    path = folder / checkpoint_name(run.step)
    write_whole(path, checkpoint_bytes(run))
    for old in sorted(folder.glob(_NAMES))[:-keep]:
        old.unlink(missing_ok=True)
    return path


def checkpoint_bytes(run: TrainingRun) -> bytes:
    """The state of a run as a safetensors file."""
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
    data: bytes = nn.state.safe_save(tensors, metadata={"polygrad_training": _VERSION, "state": text})
    return data


def load_checkpoint(source: str | os.PathLike[str], run: TrainingRun) -> None:
    """Bring a run to the state in a file, or in the newest one of a folder. Raises ArgumentError for a folder
    without any, and as `restore` does."""
    path = Path(source)
    if path.is_dir():
        files = sorted(path.glob(_NAMES))
        if not files:
            raise ArgumentError(f"resume: expected a folder with checkpoints, got {path}, which has none")
        path = files[-1]
    restore(path, run, str(path))


def restore(source: Any, run: TrainingRun, where: str) -> None:
    """Bring a run to the state in a file: a path, or its bytes, called `where` in errors.

    Raises ArgumentError where it is damaged, or belongs to a run with another model, other data or other
    settings; then the model is as it was.
    """
    try:
        data = file_bytes(source, "resume")
        _, header = nn.state.safe_load_metadata(data)
        tensors = nn.state.safe_load(data)
    except (PolygradError, OSError) as e:
        raise ArgumentError(f"resume: {where}: {e}") from e
    metadata = header.get("__metadata__")
    if not isinstance(metadata, dict) or "polygrad_training" not in metadata:
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


def checkpoint_name(step: int) -> str:
    """The name of the file of a step; names sort as steps do."""
    return f"step-{step:09d}.safetensors"


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
