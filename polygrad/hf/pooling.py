"""Pooling: how the vectors of a text's tokens are combined, according to sentence-transformers' files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from polygrad.errors import ModelError
from polygrad.hf.files import json_fields
from polygrad.models.fields import Fields
from polygrad.tensor.tensor import Tensor

# Entries of 1_Pooling/config.json. Several of them together give vectors side by side, in this order.
_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}

_GGUF_MODES = {0: "mean", 1: "mean", 2: "cls", 3: "lasttoken"}  # by ggml's numbers; 0: it says none


@dataclass(frozen=True)
class Pooling:
    """`modes`: the pooling modes, whose results are concatenated. `normalizes`: vectors get the length 1."""

    modes: tuple[str, ...] = ("mean",)
    normalizes: bool = False

    def __call__(self, states: Tensor, mask: Tensor) -> Tensor:
        """states: (batch, length, hidden); mask: (batch, length), 0 for padding. (batch, hidden) float32,
        times the number of modes."""
        weights = mask.float().unsqueeze(-1)
        states = states.float()
        out = Tensor.cat(*(_MODES[mode](states, weights) for mode in self.modes), dim=1)
        if self.normalizes:
            out = out / out.square().sum(-1, keepdim=True).sqrt().maximum(1e-12)
        return out


def read_pooling(files: Mapping[str, bytes], metadata: Mapping[str, Any] | None = None) -> Pooling:
    """The pooling of a folder, or by the metadata of a GGUF file; the mean where it says none. Raises
    ModelError for steps that do not exist here."""
    entry = f"{(metadata or {}).get('general.architecture')}.pooling_type"
    if metadata and entry in metadata:
        number = Fields(metadata, "GGUF metadata").integer(entry, least=0)
        if number not in _GGUF_MODES:
            raise Fields(metadata, "GGUF metadata").refuse(entry, "1, the mean, 2, the first or 3, the last")
        return Pooling((_GGUF_MODES[number],))
    if "modules.json" not in files:
        return Pooling(_modes(json_fields(files, "1_Pooling/config.json", missing={})))
    modes: tuple[str, ...] = ("mean",)
    normalizes = False
    steps = Fields({"modules": _module_list(files)}, "modules.json")
    for i, values in enumerate(steps.items("modules", dict)):
        step = Fields(values, f"modules.json: {i}")
        kind = step.text("type").rpartition(".")[2]
        if kind == "Pooling":
            name = str(PurePosixPath(step.text("path")) / "config.json")
            modes = _modes(json_fields(files, name))
        elif kind == "Normalize":
            normalizes = True
        elif kind != "Transformer":
            raise step.refuse("type", "Transformer, Pooling or Normalize")
    return Pooling(modes, normalizes)


def _module_list(files: Mapping[str, bytes]) -> Any:
    """modules.json, which is a list."""
    text = b'{"modules": ' + files["modules.json"] + b"}"
    return json_fields({"modules.json": text}, "modules.json").values["modules"]


def _modes(config: Fields) -> tuple[str, ...]:
    if "pooling_mode" in config:
        return (config.choice("pooling_mode", _MODES),)
    if not any(name.startswith("pooling_mode") for name in config.values):
        return ("mean",)
    modes = tuple(mode for name, mode in _FLAGS.items() if config.flag(name, False))
    if not modes:
        raise ModelError(f"{config.where}: expected a mode of pooling, got none")
    return modes


def _mean(states: Tensor, weights: Tensor) -> Tensor:
    return (states * weights).sum(1) / weights.sum(1).maximum(1e-9)


def _mean_by_root(states: Tensor, weights: Tensor) -> Tensor:
    return (states * weights).sum(1) / weights.sum(1).maximum(1e-9).sqrt()


def _weighted_mean(states: Tensor, weights: Tensor) -> Tensor:
    """The mean with weights that grow with the position (Muennighoff, SGPT, 2022)."""
    places = Tensor.arange(1, states.shape[1] + 1, dtype="float32").reshape(1, -1, 1)
    return _mean(states, weights * places)


def _largest(states: Tensor, weights: Tensor) -> Tensor:
    return weights.ne(0).where(states, -1e9).max(1)


def _first(states: Tensor, weights: Tensor) -> Tensor:
    """The vector of the first token; padding follows the text."""
    return states[:, 0]


def _last(states: Tensor, weights: Tensor) -> Tensor:
    places = Tensor.arange(states.shape[1], dtype="float32").reshape(1, -1, 1)
    is_last = places.eq(weights.sum(1, keepdim=True) - 1)
    return is_last.where(states, 0.0).sum(1)


_MODES = {
    "cls": _first,
    "max": _largest,
    "mean": _mean,
    "mean_sqrt_len_tokens": _mean_by_root,
    "weightedmean": _weighted_mean,
    "lasttoken": _last,
}


def pooling_modes() -> list[str]:
    """The names of all modes."""
    return list(_MODES)
