"""CLIP (Radford et al., 2021): an encoder of texts and an encoder of images, whose vectors are close if text
and image match."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from polygrad import nn
from polygrad.models.architecture import Architecture
from polygrad.models.attention import CausalSelfAttention
from polygrad.models.blocks import run_layers
from polygrad.models.dropout import LayerDropout, dropout
from polygrad.models.encoder import (
    PreNormLayer,
    check_length,
    features,
    read_encoder,
    whole_sequence,
)
from polygrad.models.fields import Fields
from polygrad.models.names import Names
from polygrad.models.positions import PositionTable
from polygrad.models.vit import Patches
from polygrad.nn.layer import Layer
from polygrad.nn.parameter import parameter
from polygrad.tensor.tensor import Tensor

_ACTIVATION, _EPS = "quick_gelu", 1e-5
# Older files have this wrong id of the end token; there the end of a text is its greatest token.
_WRONG_END = 2


def _part(config: Fields, name: str) -> Fields:
    """A part of the configuration of a whole CLIP, or the configuration of that part alone."""
    return config.section(name) if name in config else config


class CLIPTextModel(Layer):
    """Hidden states of tokens, each of which sees those before it, and that of the end of the text."""

    def __init__(self, config: Fields) -> None:
        config = _part(config, "text_config")
        c = read_encoder(config, act=_ACTIVATION, eps=_EPS, dropout=LayerDropout(dropout(config)))
        c = replace(c, attention_class=CausalSelfAttention)
        self.longest = config.integer("max_position_embeddings", 77)
        self.end = config.integer("eos_token_id", 49407, least=0)
        self.words = nn.Embedding(config.integer("vocab_size", 49408), c.hidden)
        self.positions = PositionTable(self.longest, c.hidden)
        self.layers = [PreNormLayer(c) for _ in range(c.layers)]
        self.final_norm = nn.LayerNorm(c.hidden, c.eps)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        output_hidden_states: bool = False,
    ) -> dict[str, Any]:
        """`last_hidden_state` (batch, length, hidden), `pooler_output` (batch, hidden), and `hidden_states`,
        not normalised, if asked for.

        input_ids: (batch, length); attention_mask: the same, 0 for padding. Raises ArgumentError, ShapeError.
        """
        check_length("input_ids", input_ids, self.longest)
        positions = self.positions.weight[: input_ids.shape[1]]
        if position_ids is not None:
            positions = self.positions(position_ids)
        step = whole_sequence(input_ids, attention_mask)
        states = run_layers(self.layers, self.words(input_ids).float() + positions, step)
        last = self.final_norm(states[-1])
        ends = input_ids if self.end == _WRONG_END else (input_ids == self.end).cast("int32")
        rows = Tensor.arange(input_ids.shape[0], dtype="int32", device=input_ids.device)
        return features(states, output_hidden_states, last, last[rows, ends.argmax(1)])


class CLIPVisionModel(Layer):
    """Hidden states of patches, behind one that stands for the whole image, and that one normalised."""

    def __init__(self, config: Fields) -> None:
        config = _part(config, "vision_config")
        c = read_encoder(config, act=_ACTIVATION, eps=_EPS, dropout=LayerDropout(dropout(config)))
        image, patch = config.integer("image_size", 224), config.integer("patch_size", 32)
        self.patches = Patches(config, c.hidden, image, patch, bias=False)
        self.class_embedding = parameter(Tensor.zeros(c.hidden))
        self.positions = PositionTable(self.patches.count + 1, c.hidden)
        self.first_norm = nn.LayerNorm(c.hidden, c.eps)
        self.layers = [PreNormLayer(c) for _ in range(c.layers)]
        self.final_norm = nn.LayerNorm(c.hidden, c.eps)

    def forward(self, pixel_values: Tensor, output_hidden_states: bool = False) -> dict[str, Any]:
        """`last_hidden_state` (batch, 1 + patches, hidden), `pooler_output` (batch, hidden), and
        `hidden_states`, if asked for.

        pixel_values: (batch, channels, height, width). Raises ShapeError.
        """
        patches = self.patches(pixel_values)
        first = self.class_embedding.float().expand(patches.shape[0], 1, patches.shape[2])
        x = self.first_norm(first.cat(patches, dim=1) + self.positions.weight)
        states = run_layers(self.layers, x, whole_sequence(x))
        return features(states, output_hidden_states, pooled=self.final_norm(states[-1][:, 0]))


class CLIPModel(Layer):
    """Texts and images, with a score for each pair of them.

    >>> sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    >>> vision = {**sizes, "image_size": 8, "patch_size": 4}
    >>> model = CLIPModel(Fields({"text_config": sizes, "vision_config": vision, "projection_dim": 6}))
    >>> model.forward(Tensor([[2, 7, 3]]), Tensor.zeros(4, 3, 8, 8))["logits_per_image"].shape
    (4, 1)
    """

    def __init__(self, config: Fields) -> None:
        text, vision = config.section("text_config"), config.section("vision_config")
        size = config.integer("projection_dim", 512)
        self.text_model, self.vision_model = CLIPTextModel(text), CLIPVisionModel(vision)
        self.text_projection = nn.Linear(text.integer("hidden_size"), size, bias=False)
        self.visual_projection = nn.Linear(vision.integer("hidden_size"), size, bias=False)
        scale = config.number("logit_scale_init_value", 2.6592)
        self.logit_scale = parameter(Tensor(scale, dtype="float32"))

    def text_features(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, position_ids: Tensor | None = None
    ) -> Tensor:
        """The vector of each text, (batch, size), not normalised. See `CLIPTextModel.forward`."""
        out = self.text_model.forward(input_ids, attention_mask, position_ids)
        return self.text_projection(out["pooler_output"])

    def image_features(self, pixel_values: Tensor) -> Tensor:
        """The vector of each image, (batch, size), not normalised. See `CLIPVisionModel.forward`."""
        return self.visual_projection(self.vision_model.forward(pixel_values)["pooler_output"])

    def forward(
        self,
        input_ids: Tensor,
        pixel_values: Tensor,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        return_loss: bool = False,
    ) -> dict[str, Any]:
        """`logits_per_image` (images, texts), `logits_per_text`, `text_embeds` and `image_embeds`, of length
        1, and with `return_loss` `loss`: text and image of the same number belong together.

        input_ids: (texts, length); pixel_values: (images, channels, height, width).
        """
        texts = _normalize(self.text_features(input_ids, attention_mask, position_ids))
        images = _normalize(self.image_features(pixel_values))
        per_text = texts.dot(images.transpose()) * self.logit_scale.float().exp()
        out: dict[str, Any] = {
            "logits_per_image": per_text.transpose().contiguous(),  # each output has memory of its own
            "logits_per_text": per_text,
            "text_embeds": texts,
            "image_embeds": images,
        }
        if not return_loss:
            return out
        at = Tensor.arange(per_text.shape[0], dtype="int32", device=per_text.device)
        losses = [scores.sparse_categorical_crossentropy(at) for scores in (per_text, per_text.transpose())]
        return {"loss": (losses[0] + losses[1]) / 2} | out


def _normalize(x: Tensor) -> Tensor:
    return x / x.square().sum(-1, keepdim=True).sqrt()


class CLIPTextModelWithProjection(Layer):
    """The half of a CLIPModel that reads texts; of a whole one's configuration, too."""

    def __init__(self, config: Fields) -> None:
        self.text_model = CLIPTextModel(config)
        size, hidden = (
            config.integer("projection_dim", 512),
            _part(config, "text_config").integer("hidden_size"),
        )
        self.text_projection = nn.Linear(hidden, size, bias=False)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        output_hidden_states: bool = False,
    ) -> dict[str, Any]:
        """`text_embeds` (batch, size), `last_hidden_state`, and `hidden_states`, if asked for. See
        `CLIPTextModel.forward`."""
        out = self.text_model.forward(input_ids, attention_mask, position_ids, output_hidden_states)
        return {"text_embeds": self.text_projection(out.pop("pooler_output"))} | out


class CLIPVisionModelWithProjection(Layer):
    """The half of a CLIPModel that sees images; of a whole one's configuration, too."""

    def __init__(self, config: Fields) -> None:
        self.vision_model = CLIPVisionModel(config)
        size, hidden = (
            config.integer("projection_dim", 512),
            _part(config, "vision_config").integer("hidden_size"),
        )
        self.visual_projection = nn.Linear(hidden, size, bias=False)

    def forward(self, pixel_values: Tensor, output_hidden_states: bool = False) -> dict[str, Any]:
        """`image_embeds` (batch, size), `last_hidden_state`, and `hidden_states`, if asked for. See
        `CLIPVisionModel.forward`."""
        out = self.vision_model.forward(pixel_values, output_hidden_states)
        return {"image_embeds": self.visual_projection(out.pop("pooler_output"))} | out


_RENAMES = (
    ("attention_norm", "layer_norm1"),
    ("layers.{}.norm", "layers.{}.layer_norm2"),
    ("attention", "self_attn"),
    ("o_proj", "out_proj"),
    ("feed_forward.up_proj", "mlp.fc1"),
    ("feed_forward.down_proj", "mlp.fc2"),
    ("layers.{}", "encoder.layers.{}"),
    ("words", "embeddings.token_embedding"),
    ("positions", "embeddings.position_embedding"),
    ("patches.projection", "embeddings.patch_embedding"),
    ("class_embedding", "embeddings.class_embedding"),
    ("first_norm", "pre_layrnorm"),  # sic
)
_NAMES = Names(
    renames=(
        *_RENAMES,
        ("text_model.final_norm", "text_model.final_layer_norm"),
        ("vision_model.final_norm", "vision_model.post_layernorm"),
    )
)
# Without their projections they have no prefix in newer files.
_TEXT_NAMES = Names(renames=(*_RENAMES, ("final_norm", "final_layer_norm"))).within(
    "text_model", "embeddings", "encoder", "final_layer_norm"
)
_VISION_NAMES = Names(renames=(*_RENAMES, ("final_norm", "post_layernorm"))).within(
    "vision_model", "embeddings", "encoder", "pre_layrnorm", "post_layernorm"
)

ARCHITECTURES = (
    Architecture("CLIPModel", "image-text", CLIPModel, _NAMES),
    Architecture("CLIPTextModel", "text-features", CLIPTextModel, _TEXT_NAMES),
    Architecture("CLIPVisionModel", "image-features", CLIPVisionModel, _VISION_NAMES),
    Architecture("CLIPTextModelWithProjection", "text-features", CLIPTextModelWithProjection, _NAMES),
    Architecture("CLIPVisionModelWithProjection", "image-features", CLIPVisionModelWithProjection, _NAMES),
)
