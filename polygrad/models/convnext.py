"""ConvNeXt (Liu et al., 2022) and its second version (Woo et al., 2023): depthwise convolutions, and between
them products of channels as transformers have them."""

from __future__ import annotations

from typing import Any

from polygrad import nn
from polygrad.models.activations import activation
from polygrad.models.architecture import Architecture
from polygrad.models.encoder import features
from polygrad.models.feed_forward import Activation
from polygrad.models.fields import Fields
from polygrad.models.heads import ImageHead
from polygrad.models.labels import read_labels
from polygrad.models.names import Names
from polygrad.models.resnet import check_images, read_stages
from polygrad.nn.layer import Layer
from polygrad.nn.parameter import parameter
from polygrad.tensor.tensor import Tensor

_EPS = 1e-6


class ResponseNorm(Layer):
    """Channels compete: each is weighted by its norm over the image, divided by the mean of all norms. x
    (batch, height, width, channels) to the same shape."""

    def __init__(self, channels: int) -> None:
        self.weight = parameter(Tensor.zeros(1, 1, 1, channels))
        self.bias = parameter(Tensor.zeros(1, 1, 1, channels))

    def __call__(self, x: Tensor) -> Tensor:
        norms = x.square().sum((1, 2), keepdim=True).sqrt()
        return self.weight * (x * (norms / (norms.mean(-1, keepdim=True) + _EPS))) + self.bias + x


class ConvNextLayer(Layer):
    """A convolution of each channel by itself, then two products of all channels, with the input added.

    `scale`: the initial value of each channel's weight; None: there is a ResponseNorm instead.
    """

    def __init__(self, channels: int, act: Activation, scale: float | None) -> None:
        self.dwconv = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.layernorm = nn.LayerNorm(channels, _EPS)
        self.pwconv1, self.pwconv2 = nn.Linear(channels, 4 * channels), nn.Linear(4 * channels, channels)
        self.activation = act
        self.grn = ResponseNorm(4 * channels) if scale is None else None
        self.layer_scale_parameter = parameter(Tensor.full((channels,), scale)) if scale else None

    def __call__(self, x: Tensor) -> Tensor:
        inner = self.activation(self.pwconv1(self.layernorm(self.dwconv(x).permute(0, 2, 3, 1))))
        inner = inner if self.grn is None else self.grn(inner)
        out = self.pwconv2(inner)
        if self.layer_scale_parameter is not None:
            out = out * self.layer_scale_parameter
        return x + out.permute(0, 3, 1, 2)


class ConvNextStage(Layer):
    """Layers, behind a normalisation and a convolution that halves the image, but in the first stage."""

    def __init__(self, inputs: int, outputs: int, layers: list[ConvNextLayer], halves: bool) -> None:
        self.downsampling_layer: list[Any] = []
        if halves or inputs != outputs:
            self.downsampling_layer = [nn.LayerNorm2d(inputs, _EPS), nn.Conv2d(inputs, outputs, 2, 2)]
        self.layers = layers

    def __call__(self, x: Tensor) -> Tensor:
        for layer in (*self.downsampling_layer, *self.layers):
            x = layer(x)
        return x


class ConvNextModel(Layer):
    """Maps of features, and their mean, normalised.

    >>> model = ConvNextModel(Fields({"hidden_sizes": [8, 16], "depths": [1, 1]}))
    >>> model.forward(Tensor.zeros(1, 3, 32, 32))["last_hidden_state"].shape
    (1, 16, 4, 4)
    """

    has_layer_scale = True

    def __init__(self, config: Fields) -> None:
        stages, act = read_stages(config), activation(config, "hidden_act", "gelu")
        self.channels = config.integer("num_channels", 3)
        scale = config.number("layer_scale_init_value", 1e-6) if self.has_layer_scale else None
        width, patch = stages.sizes[0], config.integer("patch_size", 4)
        self.patches = nn.Conv2d(self.channels, width, patch, patch)
        self.patch_norm = nn.LayerNorm2d(width, _EPS)
        self.stages = []
        for index, (size, depth) in enumerate(zip(stages.sizes, stages.depths)):
            layers = [ConvNextLayer(size, act, scale) for _ in range(depth)]
            self.stages.append(ConvNextStage(width, size, layers, halves=index > 0))
            width = size
        self.norm = nn.LayerNorm(width, config.number("layer_norm_eps", 1e-12))

    def forward(self, pixel_values: Tensor, output_hidden_states: bool = False) -> dict[str, Any]:
        """`last_hidden_state` (batch, channels, height, width), `pooler_output` (batch, channels), and
        `hidden_states`, what goes into the first stage and comes out of each, if asked for.

        pixel_values: (batch, channels, height, width). Raises ShapeError.
        """
        check_images(pixel_values, self.channels)
        states = [self.patch_norm(self.patches(pixel_values.float()))]
        for stage in self.stages:
            states.append(stage(states[-1]))
        return features(states, output_hidden_states, pooled=self.norm(states[-1].mean((2, 3))))


class ConvNextV2Model(ConvNextModel):
    """See `ConvNextModel`."""

    has_layer_scale = False


class ConvNextForImageClassification(ImageHead):
    """Labels of images."""

    trunk_class = ConvNextModel

    def __init__(self, config: Fields) -> None:
        self.trunk = self.trunk_class(config)
        self.labels = read_labels(config)
        self.classifier = nn.Linear(read_stages(config).sizes[-1], self.labels.count)

    def scores(self, out: dict[str, Any], attention_mask: Tensor | None) -> Tensor:
        return self.classifier(out["pooler_output"])


class ConvNextV2ForImageClassification(ConvNextForImageClassification):
    """See `ConvNextForImageClassification`."""

    trunk_class = ConvNextV2Model


def _names(prefix: str, is_whole: bool) -> Names:
    names = Names(
        renames=(
            ("patches", "embeddings.patch_embeddings"),
            ("patch_norm", "embeddings.layernorm"),
            ("norm", "layernorm"),
            ("stages.{}", "encoder.stages.{}"),
            ("trunk", prefix),
        )
    )
    return names.within(prefix, "embeddings", "encoder.stages", "layernorm") if is_whole else names


ARCHITECTURES = tuple(
    Architecture(name, task, build, _names(prefix, is_whole=name.endswith("Model")))
    for prefix, name, task, build in (
        ("convnext", "ConvNextModel", "image-features", ConvNextModel),
        (
            "convnext",
            "ConvNextForImageClassification",
            "image-classification",
            ConvNextForImageClassification,
        ),
        ("convnextv2", "ConvNextV2Model", "image-features", ConvNextV2Model),
        (
            "convnextv2",
            "ConvNextV2ForImageClassification",
            "image-classification",
            ConvNextV2ForImageClassification,
        ),
    )
)
