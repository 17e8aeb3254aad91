"""An ONNX file in the place of a family's module: the Instances of `polygrad.hf` call its `forward`.

Exporters name inputs and outputs as transformers does: `input_ids`, `attention_mask`, `pixel_values`;
`last_hidden_state`, `logits`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from polygrad.errors import ModelError
from polygrad.hf.files import json_fields
from polygrad.hf.instances import HFInstance
from polygrad.models.architecture import Architecture
from polygrad.models.fields import Fields
from polygrad.models.labels import read_labels
from polygrad.onnx.instance import Instance
from polygrad.tensor.tensor import Tensor

_LIKE_ROBERTA = ("camembert", "roberta", "xlm-roberta")  # positions are counted from behind the padding's


class OnnxModule:
    """A model with `forward`. `max_length`: the most tokens of a text."""

    def __init__(self, instance: Instance, config: Fields) -> None:
        self._instance, self._ports = instance, {port.name: port for port in instance.inputs}
        self.max_length = _max_length(config)
        self.longest = self.max_length
        self.labels = read_labels(config)

    def forward(self, **given: Any) -> dict[str, Any]:
        """The outputs by name. Inputs that the file does not have are left out; those that others imply are
        made. Raises ModelError for a file with other inputs."""
        values = {name: value for name, value in given.items() if name in self._ports}
        like = next(iter(given.values()))
        for name in self._ports:
            if name not in values:
                values[name] = self._implied(name, like)
        inputs = {name: self._convert(name, value) for name, value in values.items()}
        out = dict(self._instance.forward(inputs))
        if "last_hidden_state" not in out and "token_embeddings" in out:
            out["last_hidden_state"] = out["token_embeddings"]
        return out

    def _implied(self, name: str, like: Tensor) -> Tensor:
        """The value of an input that says nothing new. `like`: one that is given."""
        if name == "token_type_ids":
            return Tensor.zeros(*like.shape, dtype="int32", device=like.device)
        if name == "position_ids":
            row = Tensor.arange(like.shape[1], dtype="int32", device=like.device)
            return row.unsqueeze(0).expand(*like.shape)
        if name == "pixel_mask":
            sizes = (self._ports[name].shape or (None, None, None))[1:]
            height, width = (n if isinstance(n, int) else m for n, m in zip(sizes, like.shape[2:]))
            return Tensor.ones(like.shape[0], height, width, dtype="int32", device=like.device)
        raise ModelError(f"the ONNX file has an input {name!r}, which this task does not give")

    def _convert(self, name: str, value: Tensor) -> Tensor:
        dtype = self._ports[name].dtype
        return value if dtype is None else value.cast(dtype)


def onnx_instance(
    kind: type[HFInstance],
    task: str,
    instance: Instance,
    files: Mapping[str, bytes],
    device: str | None,
    max_batch: int,
) -> HFInstance:
    """An Instance of class `kind` whose module is an ONNX file. Raises ModelError."""
    config = json_fields(files, "config.json")
    module = OnnxModule(instance, config)
    architecture = Architecture(f"ONNX {config.text('model_type', 'model')}", task, lambda _: module)
    return kind(module, architecture, config, files, device, max_batch)


def _max_length(config: Fields) -> int | None:
    place = config.section("text_config") if "text_config" in config else config
    limit = place.integer("max_position_embeddings", None)
    if limit is not None and config.text("model_type", "") in _LIKE_ROBERTA:
        limit -= 1 + config.integer("pad_token_id", 1, least=0)
    return limit
