"""The Vision Transformer (Dosovitskiy et al., 2021): patches of an image are its tokens."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from polygrad import nn
from polygrad.errors import ShapeError
from polygrad.models.activations import activation
from polygrad.models.architecture import Architecture
from polygrad.models.blocks import run_layers
from polygrad.models.dropout import hidden_dropout
from polygrad.models.encoder import PreNormLayer, features, read_encoder, whole_sequence
from polygrad.models.fields import Fields
from polygrad.models.heads import ImageHead
from polygrad.models.labels import read_labels
from polygrad.models.names import Names
from polygrad.nn.layer import Layer
from polygrad.nn.parameter import parameter
from polygrad.tensor.tensor import Tensor


class Patches(Layer):
    """Images (batch, channels, height, width) cut into patches, each of which becomes a vector: (batch,
    patches, hidden)."""

    def __init__(self, config: Fields, hidden: int, image: int, patch: int, bias: bool = True) -> None:
        if image % patch:
            raise config.refuse("patch_size", f"a divisor of image_size, {image}")
        channels = config.integer("num_channels", 3)
        self.shape, self.count = (channels, image, image), (image // patch) ** 2
        self.projection = nn.Conv2d(channels, hidden, patch, patch, bias=bias)

    def __call__(self, pixel_values: Tensor) -> Tensor:
        """Raises ShapeError for other images than the model was made for."""
        if tuple(pixel_values.shape[1:]) != self.shape:
            sizes = ", ".join(str(n) for n in self.shape)
            raise ShapeError(
                f"pixel_values: expected shape (batch, {sizes}), got {tuple(pixel_values.shape)}"
            )
        return self.projection(pixel_values.float()).flatten(2).transpose(1, 2)


class ViTModel(Layer):
    """Hidden states of patches, behind one that stands for the whole image, and one made of that, if
    `has_pooler`.

    >>> sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    >>> model = ViTModel(Fields({**sizes, "image_size": 8, "patch_size": 4}))
    >>> model.forward(Tensor.zeros(1, 3, 8, 8))["last_hidden_state"].shape
    (1, 5, 8)
    """

    def __init__(self, config: Fields, has_pooler: bool = True) -> None:
        c = read_encoder(config, dropout=hidden_dropout(config, 0.0))
        c = replace(c, attention=replace(c.attention, qkv_bias=config.flag("qkv_bias", True)))
        image, patch = config.integer("image_size", 224), config.integer("patch_size", 16)
        self.patches = Patches(config, c.hidden, image, patch)
        self.cls_token = parameter(0.02 * Tensor.randn(1, 1, c.hidden))
        self.positions = parameter(0.02 * Tensor.randn(1, self.patches.count + 1, c.hidden))
        self.dropout = c.dropout.feed_forward
        self.layers = [PreNormLayer(c) for _ in range(c.layers)]
        self.final_norm = nn.LayerNorm(c.hidden, c.eps)
        self.pooler = None
        if has_pooler:
            self.pooler = nn.Linear(c.hidden, config.integer("pooler_output_size", c.hidden))
            self.pooler_activation = activation(config, "pooler_act", "tanh")

    def forward(self, pixel_values: Tensor, output_hidden_states: bool = False) -> dict[str, Any]:
        """`last_hidden_state` (batch, 1 + patches, hidden), `pooler_output` (batch, size), if there is a
        pooler, and `hidden_states`, not normalised, if asked for.

        pixel_values: (batch, channels, height, width). Raises ShapeError.
        """
        patches = self.patches(pixel_values)
        first = self.cls_token.float().expand(patches.shape[0], 1, patches.shape[2])
        x = (first.cat(patches, dim=1) + self.positions).dropout(self.dropout)
        states = run_layers(self.layers, x, whole_sequence(x))
        last = self.final_norm(states[-1])
        pooled = None if self.pooler is None else self.pooler_activation(self.pooler(last[:, 0]))
        return features(states, output_hidden_states, last, pooled)


class ViTForImageClassification(ImageHead):
    """Labels of images."""

    def __init__(self, config: Fields) -> None:
        self.trunk = ViTModel(config, has_pooler=False)
        self.labels = read_labels(config)
        self.classifier = nn.Linear(config.integer("hidden_size"), self.labels.count)

    def scores(self, out: dict[str, Any], attention_mask: Tensor | None) -> Tensor:
        return self.classifier(out["last_hidden_state"][:, 0])


_RENAMES = (
    ("attention.q_proj", "attention.attention.query"),
    ("attention.k_proj", "attention.attention.key"),
    ("attention.v_proj", "attention.attention.value"),
    ("attention.o_proj", "attention.output.dense"),
    ("feed_forward.up_proj", "intermediate.dense"),
    ("feed_forward.down_proj", "output.dense"),
    ("attention_norm", "layernorm_before"),
    ("layers.{}.norm", "layers.{}.layernorm_after"),
    ("layers.{}", "encoder.layer.{}"),
    ("final_norm", "layernorm"),
    ("pooler", "pooler.dense"),
    ("patches", "embeddings.patch_embeddings"),
    ("cls_token", "embeddings.cls_token"),
    ("positions", "embeddings.position_embeddings"),
    ("trunk", "vit"),
)
_NAMES = Names(renames=_RENAMES)

ARCHITECTURES = (
    Architecture(
        "ViTModel",
        "image-features",
        ViTModel,
        _NAMES.within("vit", "embeddings", "encoder", "layernorm", "pooler"),
    ),
    Architecture("ViTForImageClassification", "image-classification", ViTForImageClassification, _NAMES),
)
