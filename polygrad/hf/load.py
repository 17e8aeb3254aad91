"""`load_hf` loads a checkpoint's folder, or a repository by name, as an Instance."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polygrad import nn
from polygrad.dtype import to_dtype
from polygrad.errors import ArgumentError, ModelError
from polygrad.hf.checkpoint import SafetensorsCheckpoint, common_dtype, open_checkpoint
from polygrad.hf.download import download_hf
from polygrad.hf.files import json_fields, small_files
from polygrad.hf.four_bits import apply_quantization_config
from polygrad.hf.gguf import GGUFModel, open_gguf
from polygrad.hf.gguf_parts import map_parts
from polygrad.hf.instances import HFInstance
from polygrad.hf.tasks import instance_class
from polygrad.hf.weights import WeightReader
from polygrad.models.fields import Fields
from polygrad.models.names import Names
from polygrad.models.registry import architecture_of
from polygrad.tensor.core.base import DTypeLike


def load_hf(
    path_or_repo: str | os.PathLike[str],
    max_batch: int = 1,
    max_seq_len: int = 0,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    quantize: str | None = None,
    architecture: str | None = None,
    activations: str | None = None,
) -> HFInstance:
    """The model in a folder: config.json, weights (safetensors or pytorch_model.bin, whole or in parts) and
    a tokenizer; or in a GGUF file, whose weights in few bits stay packed, with all its parts if it is one of
    several (`name-00001-of-00003.gguf`). A name like `Qwen/Qwen2-0.5B` that
    is no folder is downloaded: see `download_hf`.

    `max_batch`: how many sequences `generate` runs side by side. `max_seq_len`: how many tokens each may
    have, prompt and answer; 0: as many as the model takes. `dtype`: of the weights; None: that of the file.
    `quantize`: a kind that the weights of products and embeddings are packed in, each when it is read: see
    `polygrad.quantize`; what the file has packed stays. `architecture`: in the place of the one that
    config.json names. `activations`: what the inputs of products with packed weights are rounded to, `int8`
    or `float32`; None: `int8` where the device multiplies bytes: see `polygrad.quantize`. On CPU and CC, the
    weights of a GGUF file that are floats stay in its mapped pages: do not shorten or overwrite it while the
    model is in use. Raises ModelError, which names the file and the entry; nothing is half loaded.
    """
    options = LoadOptions(max_batch, max_seq_len, dtype, device, quantize, architecture, activations)
    folder = Path(path_or_repo)
    if folder.is_file():
        parts = map_parts(folder, device)
        return _filled(prepare_gguf(open_gguf(parts.data, parts.is_mapped), {}, options))
    if not folder.is_dir():
        if os.fspath(path_or_repo).count("/") != 1:
            raise ModelError(
                f"{path_or_repo}: neither a folder, a GGUF file, nor the name of a repository (owner/name)"
            )
        folder = download_hf(os.fspath(path_or_repo))
    files = small_files(folder)
    config = json_fields(files, "config.json")
    return _filled(prepare_instance(config, files, open_checkpoint(folder), None, options))


def from_config(
    config: Mapping[str, Any],
    tokenizer: Mapping[str, bytes] | None = None,
    max_batch: int = 1,
    max_seq_len: int = 0,
    dtype: DTypeLike = "float32",
    device: str | None = None,
) -> HFInstance:
    """A model with random weights, to be trained from nothing: `config` is what config.json says, with the
    name of one of `polygrad.models.registry.architectures` in `architectures`. Others as of `load_hf`.

    >>> config = {"architectures": ["LlamaForCausalLM"], "vocab_size": 10, "hidden_size": 8,
    ...           "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    >>> model = from_config(config)
    >>> model.forward(input_ids=[[1, 2, 3]])["logits"].shape
    (1, 3, 10)
    """
    fields = Fields(dict(config))
    kind = architecture_of(fields)
    module = kind.build(fields)
    nn.state.model_to(module, device, dtype)
    files = dict(tokenizer or {})
    return instance_class(kind.task)(module, kind, fields, files, device, max_batch, max_seq_len)


def load_hf_bytes(
    config: bytes | Mapping[str, Any] | None,
    weights: Any,
    tokenizer: Mapping[str, bytes] | None = None,
    max_batch: int = 1,
    max_seq_len: int = 0,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    quantize: str | None = None,
    architecture: str | None = None,
    activations: str | None = None,
) -> HFInstance:
    """As `load_hf`, without a file system: `config` is config.json, `weights` the bytes of one safetensors
    file or a list of them; or `config` is None, and `weights` those of a GGUF file, or a list of its parts.
    `tokenizer`: the bytes of a tokenizer's files (and of other small files) by name."""
    options = LoadOptions(max_batch, max_seq_len, dtype, device, quantize, architecture, activations)
    files = dict(tokenizer or {})
    parts = weights if isinstance(weights, (list, tuple)) else [weights]
    if not parts:
        raise ArgumentError("weights: expected the bytes of at least one file, got none")
    named = {f"weights {i + 1}": memoryview(part).cast("B") for i, part in enumerate(parts)}
    if config is None:
        return _filled(prepare_gguf(open_gguf(named), files, options))
    files["config.json"] = json.dumps(dict(config)).encode() if isinstance(config, Mapping) else bytes(config)
    fields = json_fields(files, "config.json")
    return _filled(prepare_instance(fields, files, SafetensorsCheckpoint(named), None, options))


@dataclass(frozen=True)
class LoadOptions:
    """See `load_hf`."""

    max_batch: int = 1
    max_seq_len: int = 0
    dtype: DTypeLike | None = None
    device: str | None = None
    quantize: str | None = None
    architecture: str | None = None
    activations: str | None = None


Prepared = tuple[HFInstance, WeightReader]


def prepare_gguf(model: GGUFModel, files: dict[str, bytes], options: LoadOptions) -> Prepared:
    """See `prepare_instance`."""
    instance, reader = prepare_instance(model.config, files, model.checkpoint, model.names, options)
    instance.metadata = model.metadata
    return instance, reader


def prepare_instance(
    config: Fields, files: dict[str, bytes], checkpoint: Any, names: Names | None, options: LoadOptions
) -> Prepared:
    """The Instance, whose weights are not read yet, and their reader. `names`: the rulebook of the file;
    None: that of the architecture. Raises ModelError, ArgumentError."""
    if options.architecture is not None:
        config = Fields({**config.values, "architectures": [options.architecture]}, config.where)
    config, checkpoint = apply_quantization_config(config, checkpoint)
    kind = architecture_of(config)
    dtype = common_dtype(checkpoint) if options.dtype is None else to_dtype(options.dtype)
    if not dtype.is_float:
        raise ArgumentError(f"dtype: expected a float, got {dtype}")
    module = kind.build(config)
    o = options
    rules = kind.names if names is None else names
    reader = WeightReader(module, rules, checkpoint, dtype, o.device, o.quantize, o.activations)
    instance = instance_class(kind.task)(module, kind, config, files, o.device, o.max_batch, o.max_seq_len)
    instance.unused = sorted(set(checkpoint.shapes) - reader.used)
    return instance, reader


def _filled(prepared: Prepared) -> HFInstance:
    instance, reader = prepared
    reader.read_all()
    return instance
