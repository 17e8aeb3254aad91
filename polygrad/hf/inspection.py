"""Describes a checkpoint, and whether it loads, without reading weights."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polygrad import nn
from polygrad.errors import ModelError
from polygrad.helpers import prod
from polygrad.hf.checkpoint import open_checkpoint
from polygrad.hf.files import has_tokenizer, json_fields, small_files
from polygrad.hf.four_bits import apply_quantization_config
from polygrad.hf.gguf import open_gguf
from polygrad.hf.gguf_parts import view_parts
from polygrad.models.fields import Fields
from polygrad.models.names import find_sources
from polygrad.models.registry import architecture_of

# The entries of a configuration that are a model's sizes.
_SIZES = (
    "vocab_size", "hidden_size", "n_embd", "d_model", "num_hidden_layers", "n_layer", "num_layers",
    "num_attention_heads", "n_head", "num_heads", "num_key_value_heads", "head_dim", "intermediate_size",
    "max_position_embeddings", "n_positions", "num_experts", "num_local_experts", "image_size", "patch_size",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class EncodingCount:
    """The number of tensors of a checkpoint with an encoding (a dtype, or a kind of blocks of few bits),
    their elements, and their bytes in the file."""

    encoding: str
    tensors: int
    elements: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class ModelInspection:
    """A description of a checkpoint. `task`: that of the architecture, or '' for an unknown one. `sizes`:
    entries of the configuration. `unused`: tensors that the architecture has no place for. `problem`: why the
    checkpoint does not load, or ''."""

    architecture: str
    task: str
    sizes: dict[str, int]
    tensors: tuple[EncodingCount, ...]
    has_tokenizer: bool
    has_chat_template: bool
    unused: tuple[str, ...]
    problem: str

    @property
    def runs(self) -> bool:
        """Whether `load_hf` takes it, if its tensors are whole."""
        return not self.problem


def inspect(path: str | os.PathLike[str]) -> ModelInspection:
    """What the checkpoint in a folder, or in a GGUF file, says of itself.

    Raises ModelError for one that has no configuration or no weights.
    """
    place = Path(path)
    if place.is_file():
        model = open_gguf(view_parts(place))
        tokenizer = "tokenizer.ggml.model" in model.metadata
        template = "tokenizer.chat_template" in model.metadata
        return _inspect_checkpoint(model.config, model.checkpoint, model.names, tokenizer, template)
    if not place.is_dir():
        raise ModelError(f"{place}: there is no such file or folder")
    files = small_files(place)
    settings = json_fields(files, "tokenizer_config.json", missing={})
    template = "chat_template" in settings or any(name.startswith("chat_template.") for name in files)
    config = json_fields(files, "config.json")
    return _inspect_checkpoint(config, open_checkpoint(place), None, has_tokenizer(files), template)


def _inspect_checkpoint(
    config: Fields, checkpoint: Any, names: Any, has_tokens: bool, has_template: bool
) -> ModelInspection:
    counts = tuple(_counts(checkpoint))
    problem, task, unused = "", "", ()
    try:
        config, checkpoint = apply_quantization_config(config, checkpoint)
        kind = architecture_of(config)
        task = kind.task
        shapes = {name: tuple(t.shape) for name, t in nn.state.get_state_dict(kind.build(config)).items()}
        sources = find_sources(shapes, names or kind.names, checkpoint.shapes, checkpoint.where)
        used_names = {name for source in sources.values() for name in source.names}
        unused = tuple(sorted(set(checkpoint.shapes) - used_names))
    except ModelError as e:
        problem = str(e)
    architectures = config.values.get("architectures")
    name = architectures[0] if isinstance(architectures, list) and architectures else "no architecture"
    sizes = {k: v for k in _SIZES if isinstance(v := config.values.get(k), int)}
    return ModelInspection(str(name), task, sizes, counts, has_tokens, has_template, unused, problem)


def _counts(checkpoint: Any) -> Iterator[EncodingCount]:
    groups: dict[str, list[tuple[int, int]]] = {}
    for name, shape in checkpoint.shapes.items():
        encoding, nbytes = checkpoint.stored(name)
        groups.setdefault(encoding, []).append((prod(shape), nbytes))
    for encoding, group in sorted(groups.items()):
        elements, nbytes = map(sum, zip(*group, strict=True))
        yield EncodingCount(encoding, len(group), elements, nbytes)
