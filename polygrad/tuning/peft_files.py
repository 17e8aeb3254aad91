"""Adapters in the format of the package PEFT: adapter_config.json and adapter_model.safetensors.

Keys are `base_model.model.` and the checkpoint's name of a module, behind it `lora_A.weight` or
`lora_B.weight` (https://huggingface.co/docs/peft/developer_guides/checkpoint).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from polygrad import nn
from polygrad.errors import ArgumentError, ModelError
from polygrad.helpers import dedup, write_file
from polygrad.models.fields import Fields
from polygrad.nn.files import tensor_of_bytes
from polygrad.nn.safetensors import TensorEntry, read_entries
from polygrad.tensor.tensor import Tensor
from polygrad.tuning.lora import AdaptedLayer, Adapters, LoraConfig, attach, ends, places_of, trained_weights

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
_PREFIX = "base_model.model."
_A, _B = ".lora_A.weight", ".lora_B.weight"
_BASE = ".base_layer.weight"  # the weight of an output layer with an adapter, which PEFT writes, too
_TASKS = {
    "causal-lm": "CAUSAL_LM",
    "text-classification": "SEQ_CLS",
    "token-classification": "TOKEN_CLS",
    "text-features": "FEATURE_EXTRACTION",
}
# Ways to start adapters that leave the base weights as they are.
_STARTS = (None, True, False, "gaussian", "eva", "orthogonal")
# Entries that change what adapters compute, and the values for which they change nothing.
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "use_dora": (None, False),
    "use_qalora": (None, False),
    "arrow_config": (None,),
    "bias": (None, "none"),
    "lora_bias": (None, False),
    "alpha_pattern": (None, {}),
    "rank_pattern": (None, {}),
    "layer_replication": (None, []),
    "trainable_token_indices": (None, [], {}),
    "target_parameters": (None, []),
}


def adapter_files(adapters: Adapters) -> dict[str, bytes]:
    """The two files of the format, by name."""
    model, config = adapters.model, adapters.config
    modules = sorted(_shortest(adapters.places, places_of(model)))
    text = {
        "base_model_name_or_path": None,
        "bias": "none",
        "fan_in_fan_out": any(p.is_transposed for p in adapters.places.values()),
        "inference_mode": True,
        "init_lora_weights": True,
        "lora_alpha": int(config.alpha) if config.alpha == int(config.alpha) else config.alpha,
        "lora_dropout": config.dropout,
        "modules_to_save": dedup(n.rpartition(".")[0].rpartition(".")[2] for n in adapters.trained) or None,
        "peft_type": "LORA",
        "r": config.rank,
        "target_modules": modules,
        "task_type": _TASKS.get(getattr(getattr(model, "architecture", None), "task", "")),
        "use_dora": False,
        "use_rslora": config.rank_stabilized,
    }
    weights = {_PREFIX + name: t.contiguous() for name, t in adapters.weights().items()}
    return {
        CONFIG: (json.dumps(text, indent=2) + "\n").encode(),
        WEIGHTS: nn.state.safe_save(weights, metadata={"format": "pt"}),
    }


def save_adapters(adapters: Adapters, folder: str | os.PathLike[str]) -> None:
    """Write the adapters to a folder, which is made, as PEFT does. Raises OSError."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    for name, data in adapter_files(adapters).items():
        write_file(target / name, [data])


def load_adapters(model: Any, folder: str | os.PathLike[str] | Mapping[str, bytes]) -> Adapters:
    """Give `model` the adapters of a folder that PEFT or `save_adapters` wrote, or of its files as bytes.

    Nothing is changed unless all of it fits. Raises ModelError, which names file and entry, for a folder that
    is damaged, made for another model, or of a kind that is not supported (DoRA, patterns of ranks).
    """
    files = folder if isinstance(folder, Mapping) else _read(Path(folder))
    for name in (CONFIG, WEIGHTS):
        if name not in files:
            raise ModelError(f"{name}: missing")
    try:
        fields = Fields(json.loads(files[CONFIG]), CONFIG)
    except (ValueError, RecursionError) as e:
        raise ModelError(f"{CONFIG}: no JSON: {e}") from e
    config = _config(fields)
    try:
        entries = read_entries(files[WEIGHTS])
    except ArgumentError as e:
        raise ModelError(f"{WEIGHTS}: {e}") from e
    model_places = places_of(model)
    places, others = _places(entries, model_places, config)
    # PEFT names modules that the model may have
    trained = trained_weights(model, fields.items("modules_to_save", str, []))
    trained_entries: dict[str, TensorEntry] = {}
    bases: list[tuple[Tensor, TensorEntry]] = []
    for name, entry in others.items():
        if name.removesuffix(_BASE) in places and name.endswith(_BASE):
            bases.append((_base(places[name.removesuffix(_BASE)], entry), entry))
        elif name not in trained:
            raise ModelError(f"{WEIGHTS}: {_PREFIX}{name}: neither an adapter nor one of modules_to_save")
        elif entry.shape != trained[name].shape:
            raise ModelError(
                f"{WEIGHTS}: {_PREFIX}{name}: expected shape {trained[name].shape}, got {entry.shape}"
            )
        else:
            trained_entries[name] = entry
    missing = next((name for name in trained if name not in trained_entries), None)
    if missing is not None:
        raise ModelError(f"{WEIGHTS}: {_PREFIX}{missing}: missing")
    try:
        adapters = attach(model, config, places, trained)
    except ArgumentError as e:
        raise ModelError(f"{CONFIG}: {e}") from e
    _fill(adapters, entries, [(adapters.trained[n], e) for n, e in trained_entries.items()] + bases)
    return adapters


def _base(place: AdaptedLayer, entry: TensorEntry) -> Tensor:
    """The weight of the layer itself that a file also has. Raises ModelError."""
    weight = place.layers[0][1].weight
    if len(place.layers) != 1 or not isinstance(weight, Tensor) or entry.shape != weight.shape:
        raise ModelError(
            f"{WEIGHTS}: {_PREFIX}{place.name}{_BASE}: shape {entry.shape} does not fit the model"
        )
    return weight


def _config(fields: Fields) -> LoraConfig:
    fields.choice("peft_type", {"LORA"})
    for name, values in _NEUTRAL.items():
        if fields.values.get(name) not in values:
            raise fields.refuse(name, f"{values[-1]!r}: nothing else is read")
    if fields.values.get("init_lora_weights") not in _STARTS:
        raise fields.refuse("init_lora_weights", "a start that leaves the model's own weights as they are")
    dropout = fields.number("lora_dropout", 0.0)
    if not 0 <= dropout < 1:
        raise fields.refuse("lora_dropout", "a number from 0 on and below 1")
    return LoraConfig(
        fields.integer("r"), fields.number("lora_alpha"), dropout, fields.flag("use_rslora", False)
    )


def _places(
    entries: Mapping[str, TensorEntry], model_places: Mapping[str, AdaptedLayer], config: LoraConfig
) -> tuple[dict[str, AdaptedLayer], dict[str, TensorEntry]]:
    """The places that a file has adapters for, and the file's other entries. Raises ModelError."""
    places: dict[str, AdaptedLayer] = {}
    others: dict[str, TensorEntry] = {}
    for key, entry in entries.items():
        if not key.startswith(_PREFIX):
            raise ModelError(f"{WEIGHTS}: {key}: expected names that begin with {_PREFIX}")
        name = key.removeprefix(_PREFIX)
        kind = next((k for k in (_A, _B) if name.endswith(k)), None)
        if kind is None:
            others[name] = entry
            continue
        module = name.removesuffix(kind)
        if module not in model_places:
            raise ModelError(f"{WEIGHTS}: {key}: the model has no Linear layer {module}")
        place = model_places[module]
        shape = (config.rank, place.features) if kind == _A else (sum(place.rows), config.rank)
        if entry.shape != shape or not entry.dtype.is_float:
            raise ModelError(
                f"{WEIGHTS}: {key}: expected floats of shape {shape}, got {entry.dtype} of {entry.shape}"
            )
        places[module] = place
    for module in places:
        for kind in (_A, _B):
            if _PREFIX + module + kind not in entries:
                raise ModelError(f"{WEIGHTS}: {_PREFIX}{module}{kind}: missing")
    if not places:
        raise ModelError(f"{WEIGHTS}: no adapters in it")
    return places, others


def _fill(
    adapters: Adapters, entries: Mapping[str, TensorEntry], whole: list[tuple[Tensor, TensorEntry]]
) -> None:
    layers = dict(adapters.layers)
    pairs: list[tuple[Tensor, Tensor]] = []
    for module, place in adapters.places.items():
        a, b = (_tensor(entries[_PREFIX + module + kind]) for kind in (_A, _B))
        pairs.append((layers[place.layers[0][0]].lora_A, a))
        first = 0
        for (path, _), rows in zip(place.layers, place.rows):
            pairs.append((layers[path].lora_B, b[first : first + rows]))
            first += rows
    pairs += [(target, _tensor(entry)) for target, entry in whole]
    with Tensor.no_grad():
        for target, value in pairs:
            target.assign(value.to(target.device).cast(target.dtype))
    pairs[0][0].realize(*[target for target, _ in pairs[1:]])


def _tensor(entry: TensorEntry) -> Tensor:
    return tensor_of_bytes(entry.data, entry.dtype, entry.shape, None)


def _shortest(chosen: Mapping[str, AdaptedLayer], all_places: Mapping[str, AdaptedLayer]) -> list[str]:
    """The last parts of the names in `chosen`: as few as distinguish them from others in `all_places`."""
    out: list[str] = []
    for name in chosen:
        parts = name.split(".")
        for i in range(len(parts) - 1, -1, -1):
            tail = ".".join(parts[i:])
            if all(other in chosen for other in all_places if ends(other, tail)):
                break
        out.append(tail)
    return dedup(out)


def _read(folder: Path) -> dict[str, bytes]:
    try:
        return {n: (folder / n).read_bytes() for n in (CONFIG, WEIGHTS) if (folder / n).is_file()}
    except OSError as e:
        raise ModelError(f"{folder}: {e}") from e
