"""Residual networks (He et al., 2015): stages of convolutions whose outputs are added to their inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from polygrad import nn
from polygrad.errors import ShapeError
from polygrad.models.activations import activation
from polygrad.models.architecture import Architecture
from polygrad.models.encoder import features
from polygrad.models.feed_forward import Activation
from polygrad.models.fields import Fields
from polygrad.models.heads import ImageHead
from polygrad.models.labels import read_labels
from polygrad.models.names import Names
from polygrad.nn.layer import Layer
from polygrad.tensor.tensor import Tensor

_LARGEST = 1 << 12  # of channels, and of layers of a stage
_REDUCTION = 4  # the factor by which a bottleneck is narrower


@dataclass(frozen=True)
class Stages:
    """The stages in the configuration of an image model: `sizes`, their channels, and `depths`, their
    layers."""

    sizes: list[int]
    depths: list[int]


def read_stages(config: Fields) -> Stages:
    """Raises ModelError."""
    sizes, depths = config.items("hidden_sizes", int), config.items("depths", int)
    for name, values in (("hidden_sizes", sizes), ("depths", depths)):
        if not values or not all(type(n) is int and 1 <= n <= _LARGEST for n in values):
            raise config.refuse(name, f"integers from 1 to {_LARGEST}")
    if len(sizes) != len(depths):
        raise config.refuse("depths", f"{len(sizes)} integers, as many as hidden_sizes")
    return Stages(sizes, depths)


def check_images(pixel_values: Tensor, channels: int) -> None:
    """Raises ShapeError for other than (batch, channels, height, width)."""
    if pixel_values.ndim != 4 or pixel_values.shape[1] != channels:
        raise ShapeError(
            f"pixel_values: expected shape (batch, {channels}, height, width), got "
            f"{tuple(pixel_values.shape)}"
        )


class NormalizedConvolution(Layer):
    """A convolution, batch normalisation, and an activation, if there is one."""

    def __init__(
        self, inputs: int, outputs: int, kernel: int = 3, stride: int = 1, act: Activation | None = None
    ) -> None:
        self.convolution = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)
        self.normalization = nn.BatchNorm(outputs)
        self.activation = act

    def __call__(self, x: Tensor) -> Tensor:
        x = self.normalization(self.convolution(x))
        return x if self.activation is None else self.activation(x)


class ResidualLayer(Layer):
    """Convolutions, and a shortcut, which has one where sizes change."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        stride: int,
        convolutions: list[NormalizedConvolution],
        act: Activation,
    ) -> None:
        changes = inputs != outputs or stride != 1
        self.shortcut = NormalizedConvolution(inputs, outputs, 1, stride) if changes else None
        self.layer, self.activation = convolutions, act

    def __call__(self, x: Tensor) -> Tensor:
        shortcut = x if self.shortcut is None else self.shortcut(x)
        for convolution in self.layer:
            x = convolution(x)
        return self.activation(x + shortcut)


class ResNetModel(Layer):
    """Maps of features, and their mean.

    >>> model = ResNetModel(Fields({"hidden_sizes": [8, 16], "depths": [1, 1]}))
    >>> model.forward(Tensor.zeros(1, 3, 32, 32))["last_hidden_state"].shape
    (1, 16, 4, 4)
    """

    def __init__(self, config: Fields) -> None:
        self.channels = config.integer("num_channels", 3)
        stages, act = read_stages(config), activation(config, "hidden_act", "relu")
        width = config.integer("embedding_size", 64)
        self.stem = NormalizedConvolution(self.channels, width, 7, 2, act)
        first_stride = 2 if config.flag("downsample_in_first_stage", False) else 1
        self.stages: list[list[ResidualLayer]] = []
        for index, (size, depth) in enumerate(zip(stages.sizes, stages.depths)):
            stride = 2 if index else first_stride
            layers = [_layer(config, width, size, stride, act)]
            self.stages.append(layers + [_layer(config, size, size, 1, act) for _ in range(depth - 1)])
            width = size

    def forward(self, pixel_values: Tensor, output_hidden_states: bool = False) -> dict[str, Any]:
        """`last_hidden_state` (batch, channels, height, width), `pooler_output` (batch, channels, 1, 1), and
        `hidden_states`, what goes into the first stage and comes out of each, if asked for.

        pixel_values: (batch, channels, height, width). Raises ShapeError.
        """
        check_images(pixel_values, self.channels)
        states = [self.stem(pixel_values.float()).max_pool2d(3, 2, padding=1)]
        for stage in self.stages:
            x = states[-1]
            for layer in stage:
                x = layer(x)
            states.append(x)
        return features(states, output_hidden_states, pooled=states[-1].mean((2, 3), keepdim=True))


def _layer(config: Fields, inputs: int, outputs: int, stride: int, act: Activation) -> ResidualLayer:
    """Two convolutions, or three of which the middle one is narrow."""
    if config.choice("layer_type", {"basic", "bottleneck"}, "bottleneck") == "basic":
        convolutions = [
            NormalizedConvolution(inputs, outputs, 3, stride, Tensor.relu),
            NormalizedConvolution(outputs, outputs),
        ]
        return ResidualLayer(inputs, outputs, stride, convolutions, act)
    inner_channels = outputs // _REDUCTION
    if not inner_channels:
        raise config.refuse("hidden_sizes", f"at least {_REDUCTION} channels for bottlenecks")
    strides = (stride, 1) if config.flag("downsample_in_bottleneck", False) else (1, stride)
    convolutions = [
        NormalizedConvolution(inputs, inner_channels, 1, strides[0], Tensor.relu),
        NormalizedConvolution(inner_channels, inner_channels, 3, strides[1], Tensor.relu),
        NormalizedConvolution(inner_channels, outputs, 1),
    ]
    return ResidualLayer(inputs, outputs, stride, convolutions, act)


class ResNetForImageClassification(ImageHead):
    """Labels of images."""

    def __init__(self, config: Fields) -> None:
        self.trunk = ResNetModel(config)
        self.labels = read_labels(config)
        self.classifier = nn.Linear(read_stages(config).sizes[-1], self.labels.count)

    def scores(self, out: dict[str, Any], attention_mask: Tensor | None) -> Tensor:
        return self.classifier(out["pooler_output"].flatten(1))


_NAMES = Names(
    renames=(
        ("stem", "embedder.embedder"),
        ("stages.{}.{}", "encoder.stages.{}.layers.{}"),
        ("classifier", "classifier.1"),
        ("trunk", "resnet"),
    ),
)

ARCHITECTURES = (
    Architecture(
        "ResNetModel", "image-features", ResNetModel, _NAMES.within("resnet", "embedder.embedder", "encoder")
    ),
    Architecture(
        "ResNetForImageClassification", "image-classification", ResNetForImageClassification, _NAMES
    ),
)
