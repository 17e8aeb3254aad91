"""Small random checkpoints that `transformers` writes, models of ours that are filled from them, and the
comparison of what both compute."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from polygrad import Tensor, nn
from polygrad.models.fields import Fields
from polygrad.models.names import find_sources
from polygrad.models.registry import architecture_of


def randomize(model: Any, seed: int = 0) -> Any:
    """A torch model with random weights and running statistics, none of which is 0 or 1, ready to predict."""
    generator = torch.Generator().manual_seed(seed)

    def normal(like: torch.Tensor) -> torch.Tensor:
        return torch.randn(like.shape, generator=generator)

    for parameter in model.parameters():
        noise = normal(parameter)
        parameter.data = noise * 0.15 if parameter.ndim > 1 else parameter.data + noise * 0.1
    for name, buffer in model.named_buffers():
        if name.endswith("running_mean"):
            buffer.copy_(normal(buffer) * 0.1)
        if name.endswith("running_var"):
            buffer.copy_(normal(buffer).abs() + 0.5)
    model.tie_weights()
    return model.eval()


def save(model: Any, folder: Path) -> Path:
    """The folder, with the checkpoint in it."""
    model.save_pretrained(folder)
    return folder


def load(folder: Path) -> tuple[Any, dict[str, str]]:
    """Our model, with the weights of a folder, and for each of its weights the name in the file."""
    config = Fields(json.loads((folder / "config.json").read_text()))
    architecture = architecture_of(config)
    model = architecture.build(config)
    file = nn.state.safe_load(str(folder / "model.safetensors"))
    parameters = nn.state.get_state_dict(model)
    shapes = {name: tuple(t.shape) for name, t in file.items()}
    own_shapes = {name: tuple(t.shape) for name, t in parameters.items()}
    sources = find_sources(own_shapes, architecture.names, shapes, "model.safetensors")
    for name, source in sources.items():
        parameters[name].replace(source.read([file[n] for n in source.names]).clone())
    return model, {own_name: source.names[0] for own_name, source in sources.items()}


def unused(folder: Path, places: dict[str, str]) -> set[str]:
    """The tensors of a file that no weight is read from."""
    return set(nn.state.safe_load(str(folder / "model.safetensors"))) - set(places.values())


def torch_inputs(inputs: dict[str, Any]) -> dict[str, Any]:
    """Arrays as torch tensors."""
    return {k: torch.tensor(v) if isinstance(v, np.ndarray) else v for k, v in inputs.items()}


def own_inputs(inputs: dict[str, Any]) -> dict[str, Any]:
    """Arrays as Tensors; int64 as int32."""

    def convert(x: Any) -> Any:
        if not isinstance(x, np.ndarray):
            return x
        return Tensor(x.astype(np.int32) if x.dtype == np.int64 else x)

    return {k: convert(v) for k, v in inputs.items()}


def difference(ours: Any, theirs: Any, rows: np.ndarray | None = None) -> float:
    """The largest difference, by the largest value. `rows`: bool (batch, length), which tokens count."""
    a, b = ours.numpy(), theirs.detach().numpy()
    assert a.shape == b.shape, f"shape {a.shape}, but {b.shape} there"
    if rows is not None and a.ndim > 2 and a.shape[:2] == rows.shape:
        a, b = a[rows], b[rows]
    return float(np.abs(a - b).max() / np.abs(b).max())


def store_in(model: Any, dtype: str) -> None:
    """Convert the parameters of a model of ours."""
    for name, value in nn.state.get_state_dict(model, buffers=False).items():
        *path, last = name.split(".")
        owner = model
        for part in path:
            owner = owner[int(part)] if isinstance(owner, list) else getattr(owner, part)
        if value.requires_grad:
            setattr(owner, last, value.detach().cast(dtype).realize())
