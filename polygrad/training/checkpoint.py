"""Checkpoints: the state of a run as safetensors files, from which it goes on to the last bit.

Random numbers are a function of the seed and the number of the step. So there are no generators in it: it
has weights, the optimizer, the scheduler, sums of the epoch that has begun, the history, and the callbacks'
state.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from polygrad import nn
from polygrad.distributed.zero import Piece
from polygrad.errors import ArgumentError, PolygradError
from polygrad.nn.sealed_files import Snapshot, read_sealed, take_snapshot
from polygrad.tensor.tensor import Tensor
from polygrad.training.checkpoint_files import checkpoint_files, shares
from polygrad.training.ranks import gathered, of_rank_0, rank, size
from polygrad.training.steps import Sums

if TYPE_CHECKING:
    from polygrad.training.run import TrainingRun

_VERSION = "2"


def seed_of(seed: int, *position: int) -> int:
    """The seed of the random numbers at a position of a run: a step, or an epoch and a batch."""
    text = "/".join(map(str, (seed, *position)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "little")


@dataclass(frozen=True)
class Contents:
    """What a checkpoint has: Tensors, equal on all ranks, the metadata of this rank's file, and its pieces of
    Tensors that are divided between ranks."""

    tensors: Mapping[str, Tensor]
    metadata: Mapping[str, str]
    pieces: Mapping[str, Piece] = field(default_factory=dict)

    def share(self, rank: int, ranks: int, attempt: str = "") -> Snapshot:
        """A copy of what is in the file of a rank. `attempt`: equal in all files of a checkpoint."""
        names = shares({name: int(t.nbytes()) for name, t in self.tensors.items()}, ranks)[rank]
        tensors = {k: self.tensors[k] for k in names} | {k: x.elements for k, x in self.pieces.items()}
        places = {k: [x.start, x.shape] for k, x in self.pieces.items()}
        divided = {"pieces": json.dumps(places)} if places else {}
        return take_snapshot(tensors, {"attempt": attempt, **divided, **self.metadata})

    def to_bytes(self) -> bytes:
        """The only file of a run of one process."""
        return b"".join(self.share(0, 1).parts())


def contents_of(run: TrainingRun) -> Contents:
    """The state of a run; all ranks call it in the same step."""
    trained = run.steps.trained
    sums = gathered([trained.rows, *trained.values.tolist()], "checkpoint")
    tensors = {f"weights.{name}": t.detach() for name, t in nn.state.get_state_dict(run.model).items()}
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
            "ranks": size(),
            "sums": sums,
            "history": run.history.values,
            "plain": plain,
        }
    )
    return Contents(tensors, {"polygrad_training": _VERSION, "state": text})


def load_checkpoint(source: str | os.PathLike[str], run: TrainingRun) -> None:
    """Bring a run to the state in a checkpoint, or in the newest one of a folder, of any number of ranks.
    Raises ArgumentError for a folder without any, and as `restore` does."""
    files = of_rank_0([str(path) for path in checkpoint_files(source)], "resume")
    restore(files, run, files[0])


def read_parts(files: Sequence[Any], where: str) -> tuple[dict[str, Tensor], list[dict[str, str]]]:
    """The Tensors of a checkpoint, whole, and the metadata of each file: paths, or bytes, called `where` in
    errors. Raises ArgumentError for damaged ones, and those of several runs."""
    parts = [read_sealed(file, f"resume: {where}") for file in files]
    if len({metadata.get("attempt") for _, metadata in parts}) > 1:
        raise ArgumentError(f"resume: {where}: its files were written by different runs: choose an older one")
    out: dict[str, Tensor] = {}
    pieces: dict[str, list[Piece]] = {}
    for tensors, metadata in parts:
        places = _places(metadata, where)
        for name, t in tensors.items():
            if name in places:
                pieces.setdefault(name, []).append(Piece(t, *places[name]))
            else:
                out[name] = t
    whole = {name: _joined(members, f"resume: {where}: {name}") for name, members in pieces.items()}
    return out | whole, [metadata for _, metadata in parts]


def _places(metadata: Mapping[str, str], where: str) -> dict[str, tuple[int, tuple[int, ...]]]:
    """Where the pieces in a file begin, and the shapes of what they are pieces of. Raises ArgumentError."""
    try:
        places = json.loads(metadata.get("pieces", "{}"))
        return {name: (int(start), tuple(map(int, shape))) for name, (start, shape) in places.items()}
    except (TypeError, ValueError, AttributeError, RecursionError) as e:
        raise ArgumentError(f"resume: {where}: the list of pieces is damaged: {e!r}") from e


def _joined(pieces: Sequence[Piece], where: str) -> Tensor:
    """The Tensor of all its pieces. Raises ArgumentError unless they have each of its elements once."""
    ordered = sorted(pieces, key=lambda piece: piece.start)
    shape, end = ordered[0].shape, 0
    for piece in ordered:
        if piece.shape != shape or piece.start != end or piece.elements.ndim != 1:
            raise ArgumentError(
                f"{where}: expected a piece of {shape} from element {end} on, got {piece.elements.shape} of "
                f"{piece.shape} from {piece.start} on"
            )
        end += piece.elements.numel()
    if end != math.prod(shape):
        raise ArgumentError(f"{where}: expected pieces of all {math.prod(shape)} elements, got {end}")
    first, *others = [piece.elements for piece in ordered]
    return (first.cat(*others) if others else first).reshape(shape)


def restore(files: Sequence[Any], run: TrainingRun, where: str) -> None:
    """Bring a run to the state in the files of a checkpoint: paths, or their bytes, called `where` in errors.

    Raises ArgumentError where one is damaged, or belongs to a run with another model, other data or other
    settings; then the model is as it was.
    """
    tensors, (metadata, *_) = read_parts(files, where)
    if "polygrad_training" not in metadata:
        raise ArgumentError(f"resume: {where}: the file is no checkpoint of a training")
    if (version := metadata["polygrad_training"]) != _VERSION:
        raise ArgumentError(f"resume: {where}: expected a checkpoint of version {_VERSION}, got {version!r}")
    try:
        state = json.loads(metadata["state"])
        settings, plain = dict(state["settings"]), dict(state["plain"])
        counts = [int(state[name]) for name in ("epoch", "position", "step")]
        history = {str(k): [float(x) for x in v] for k, v in state["history"].items()}
        sums = [[float(x) for x in row] for row in state["sums"]]
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
    _restore_sums(run.steps.trained, sums)
    run.epoch, run.position, run.step = counts
    run.history.values.clear()
    run.history.values.update(history)


def _restore_sums(sums: Sums, of_ranks: list[list[float]]) -> None:
    """Go on with this rank's sums; of another number of ranks, rank 0 has those of all."""
    total = [math.fsum(column) for column in zip(*of_ranks, strict=True)]
    of_rank = of_ranks if len(of_ranks) == size() else [total]
    sums.rows, *values = of_rank[rank()] if rank() < len(of_rank) else [0.0] * len(total)
    sums.values.assign(Tensor(values, dtype=sums.values.dtype, device=sums.values.device)).realize()


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
