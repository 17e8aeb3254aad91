"""The state of a training run as one file, from which it goes on to the last bit.

Random numbers are a function of the seed and the number of the step, so the state has no generators. It has
the weights that are trained, the optimizer, the number of steps, the measured losses, and the settings.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from polygrad.errors import ArgumentError, ModelError, ShapeError
from polygrad.models.fields import Fields
from polygrad.nn.sealed_files import Snapshot, read_sealed, take_snapshot
from polygrad.tensor.tensor import Tensor
from polygrad.tuning.texts import Example

FILE = "checkpoint.safetensors"
_VERSION = "2"


@dataclass
class RunState:
    """`step`: the number of steps done. `losses`: of each step. `validation`: (step, loss) pairs. `settings`:
    those that the run was started with, as JSON."""

    settings: Mapping[str, Any]
    step: int = 0
    losses: list[float] = field(default_factory=list)
    validation: list[tuple[int, float]] = field(default_factory=list)


def snapshot_of(state: RunState, weights: Mapping[str, Tensor], optimizer: Any) -> Snapshot:
    """Copies of the state, for a file."""
    tensors = {f"weights.{k}": t.detach() for k, t in weights.items()}
    tensors |= {f"optimizer.{k}": t.detach() for k, t in optimizer.state_dict().items()}
    text = json.dumps(
        {
            "settings": state.settings,
            "step": state.step,
            "losses": state.losses,
            "validation": state.validation,
        }
    )
    return take_snapshot(tensors, {"polygrad_run": _VERSION, "state": text})


def load_state(
    path: Path, settings: Mapping[str, Any], weights: Mapping[str, Tensor], optimizer: Any
) -> RunState:
    """Give weights and optimizer the values in the file. Raises ArgumentError where the run was started with
    other settings, ModelError for a file that is damaged or of another model."""
    try:
        tensors, metadata = read_sealed(path, str(path))
    except ArgumentError as e:
        raise ModelError(str(e)) from e
    if metadata.get("polygrad_run") != _VERSION:
        raise ModelError(f"{path}: no state of a training run, or of another version than {_VERSION}")
    try:
        fields = Fields(json.loads(metadata.get("state", "")), str(path))
    except (ValueError, RecursionError) as e:
        raise ModelError(f"{path}: state: no JSON: {e}") from e
    before = fields.section("settings").values
    for name in {*settings, *before}:
        if before.get(name) != settings.get(name):
            raise ArgumentError(
                f"resume: the run in {path} was started with another {name}: {before.get(name)!r}, "
                f"not {settings.get(name)!r}"
            )
    state = RunState(
        settings,
        fields.integer("step", least=0),
        [float(x) for x in fields.items("losses", (int, float))],
        _pairs(fields),
    )
    for name, t in weights.items():
        tensor = tensors.get(f"weights.{name}")
        if tensor is None or tensor.shape != t.shape or tensor.dtype is not t.dtype:
            raise ModelError(f"{path}: weights.{name}: expected {t.dtype} of shape {t.shape}")
    start = "optimizer."
    optimizer_state = {k.removeprefix(start): t for k, t in tensors.items() if k.startswith(start)}
    try:
        optimizer.load_state_dict(optimizer_state)
    except (ArgumentError, ShapeError) as e:
        raise ModelError(f"{path}: {e}") from e
    with Tensor.no_grad():
        for name, t in weights.items():
            t.assign(tensors[f"weights.{name}"].to(t.device))
    if weights:
        first, *others = weights.values()
        first.realize(*others)
    return state


def _pairs(fields: Fields) -> list[tuple[int, float]]:
    """The validation losses with their steps. Raises ModelError."""
    pairs = fields.items("validation", list)
    for pair in pairs:
        if len(pair) != 2 or type(pair[0]) is not int or type(pair[1]) not in (int, float):
            raise fields.refuse("validation", "pairs of a step and a loss")
    return [(step, float(loss)) for step, loss in pairs]


def digest(examples: Sequence[Example]) -> str:
    """A digest of tokens and labels that differs for different data."""
    hasher = hashlib.sha256()
    for x in examples:
        hasher.update(repr((x.ids, x.labels)).encode())
    return hasher.hexdigest()[:16]
