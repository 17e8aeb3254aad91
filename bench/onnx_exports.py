"""Writes ONNX models as torch exports them, with random weights, in the peers' environment:

    python -m bench.onnx_exports NAME TARGET

Architectures are transformers' classes or written here in torch.nn, in the sizes of their papers. The first
axis of each input is the batch, which stays symbolic.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch
import transformers
from torch import Tensor, nn

OPSET = 17


class Outputs(nn.Module):
    """A model of transformers whose output is one tensor."""

    def __init__(self, model: nn.Module, name: str) -> None:
        super().__init__()
        self.model, self.name = model, name

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.model(x)[self.name]
        return found


def resnet(depths: list[int], widths: list[int], layer: str) -> nn.Module:
    config = transformers.ResNetConfig(depths=depths, hidden_sizes=widths, layer_type=layer)
    return Outputs(transformers.ResNetForImageClassification(config), "logits")


def efficientnet() -> nn.Module:
    config = transformers.EfficientNetConfig(
        width_coefficient=1.0, depth_coefficient=1.0, image_size=224, hidden_dim=1280
    )
    return Outputs(transformers.EfficientNetForImageClassification(config), "logits")


def vit() -> nn.Module:
    config = transformers.ViTConfig(attn_implementation="eager")
    return Outputs(transformers.ViTForImageClassification(config), "logits")


def bert() -> nn.Module:
    return Outputs(
        transformers.BertModel(transformers.BertConfig(attn_implementation="eager")), "last_hidden_state"
    )


def minilm() -> nn.Module:
    config = transformers.BertConfig(
        hidden_size=384,
        num_hidden_layers=6,
        num_attention_heads=12,
        intermediate_size=1536,
        attn_implementation="eager",
    )
    return Outputs(transformers.BertModel(config), "last_hidden_state")


def whisper() -> nn.Module:
    config = transformers.WhisperConfig(attn_implementation="eager")  # tiny's sizes
    return Outputs(transformers.WhisperModel(config).encoder, "last_hidden_state")


class Decoder(nn.Module):
    """GPT-2 124M's shape: a token, and keys and values of what came before, one tensor of all layers."""

    def __init__(self) -> None:
        super().__init__()
        config = transformers.GPT2Config(attn_implementation="eager")
        self.model = transformers.GPT2LMHeadModel(config)

    def forward(self, ids: Tensor, past: Tensor) -> tuple[Tensor, Tensor]:
        layers = [(past[:, 2 * i], past[:, 2 * i + 1]) for i in range(past.shape[1] // 2)]
        cache = transformers.DynamicCache(layers)
        found = self.model(ids, past_key_values=cache, use_cache=True)
        kept = [t for layer in found.past_key_values.layers for t in (layer.keys, layer.values)]
        return found.logits, torch.stack(kept, 1)


# --- MobileNetV3, large (Howard et al., 2019), and a neck of feature pyramids as YOLO's have


class SqueezeExcite(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        inner = -(-channels // 32) * 8
        self.down, self.up = nn.Conv2d(channels, inner, 1), nn.Conv2d(inner, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        scale = self.down(x.mean((2, 3), keepdim=True)).relu()
        return x * nn.functional.hardsigmoid(self.up(scale))


def block(
    inputs: int, outputs: int, kernel: int, stride: int, act: type[nn.Module], groups: int = 1
) -> nn.Module:
    conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), act())


class Bottleneck(nn.Module):
    def __init__(
        self, inputs: int, wide: int, outputs: int, kernel: int, stride: int, se: bool, act: Any
    ) -> None:
        super().__init__()
        self.residual = inputs == outputs and stride == 1
        layers = [block(inputs, wide, 1, 1, act)] if wide != inputs else []
        layers.append(block(wide, wide, kernel, stride, act, wide))
        if se:
            layers.append(SqueezeExcite(wide))
        self.layers = nn.Sequential(*layers, block(wide, outputs, 1, 1, nn.Identity))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.layers(x)
        return x + y if self.residual else y


# kernel, expanded, out, squeeze-excite, hard-swish, stride
LARGE = (
    (3, 16, 16, 0, 0, 1), (3, 64, 24, 0, 0, 2), (3, 72, 24, 0, 0, 1),
    (5, 72, 40, 1, 0, 2), (5, 120, 40, 1, 0, 1), (5, 120, 40, 1, 0, 1),
    (3, 240, 80, 0, 1, 2), (3, 200, 80, 0, 1, 1), (3, 184, 80, 0, 1, 1), (3, 184, 80, 0, 1, 1),
    (3, 480, 112, 1, 1, 1), (3, 672, 112, 1, 1, 1),
    (5, 672, 160, 1, 1, 2), (5, 960, 160, 1, 1, 1), (5, 960, 160, 1, 1, 1),
)  # fmt: skip


def mobilenet() -> nn.Module:
    layers, inputs = [block(3, 16, 3, 2, nn.Hardswish)], 16
    for kernel, wide, outputs, se, hard, stride in LARGE:
        act = nn.Hardswish if hard else nn.ReLU
        layers.append(Bottleneck(inputs, wide, outputs, kernel, stride, bool(se), act))
        inputs = outputs
    head = [
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(960, 1280),
        nn.Hardswish(),
        nn.Linear(1280, 1000),
    ]
    return nn.Sequential(*layers, block(160, 960, 1, 1, nn.Hardswish), *head)


class Neck(nn.Module):
    """Three maps of features, from the smallest up and down again, and a prediction of each."""

    def __init__(self, widths: tuple[int, ...] = (64, 128, 256), predictions: int = 85) -> None:
        super().__init__()
        a, b, c = widths
        self.stem = nn.Sequential(
            block(3, 32, 3, 2, nn.SiLU), block(32, a, 3, 2, nn.SiLU), block(a, a, 3, 2, nn.SiLU)
        )
        self.down = nn.ModuleList([block(a, b, 3, 2, nn.SiLU), block(b, c, 3, 2, nn.SiLU)])
        self.pool = nn.MaxPool2d(5, 1, 2)
        self.join = block(4 * c, c, 1, 1, nn.SiLU)
        self.up = nn.ModuleList([block(c + b, b, 3, 1, nn.SiLU), block(b + a, a, 3, 1, nn.SiLU)])
        self.back = nn.ModuleList([block(a, b, 3, 2, nn.SiLU), block(2 * b, c, 3, 2, nn.SiLU)])
        self.heads = nn.ModuleList([nn.Conv2d(n, predictions, 1) for n in (a, 2 * b, 2 * c)])

    def forward(self, x: Tensor) -> Tensor:
        small = self.stem(x)
        middle = self.down[0](small)
        large = self.down[1](middle)
        pools = [large]
        for _ in range(3):
            pools.append(self.pool(pools[-1]))
        large = self.join(torch.cat(pools, 1))
        up = self.up[0](torch.cat([nn.functional.interpolate(large, scale_factor=2.0), middle], 1))
        first = self.up[1](torch.cat([nn.functional.interpolate(up, scale_factor=2.0), small], 1))
        second = torch.cat([self.back[0](first), up], 1)
        third = torch.cat([self.back[1](second), large], 1)
        maps = [head(y).flatten(2) for head, y in zip(self.heads, (first, second, third))]
        return torch.cat(maps, 2).sigmoid()


IMAGE: dict[str, Any] = {"x": (2, 3, 224, 224)}
MODELS: dict[str, tuple[Callable[[], nn.Module], dict[str, Any]]] = {
    "ResNet-18": (lambda: resnet([2, 2, 2, 2], [64, 128, 256, 512], "basic"), IMAGE),
    "ResNet-50": (lambda: resnet([3, 4, 6, 3], [256, 512, 1024, 2048], "bottleneck"), IMAGE),
    "MobileNetV3": (mobilenet, IMAGE),
    "EfficientNet": (efficientnet, IMAGE),
    "ViT": (vit, IMAGE),
    "YOLO neck": (Neck, {"x": (2, 3, 320, 320)}),
    "BERT": (bert, {"ids": (2, 128)}),
    "MiniLM": (minilm, {"ids": (2, 128)}),
    "GPT-2 with past": (Decoder, {"ids": (2, 1), "past": (2, 24, 12, 64, 64)}),
    "Whisper encoder": (whisper, {"x": (2, 80, 3000)}),
}


def main(name: str, target: str) -> None:
    make, shapes = MODELS[name]
    torch.manual_seed(0)
    model = make().eval()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):  # as after some training
            module.running_mean.normal_(0, 0.1)  # type: ignore[union-attr]
            module.running_var.uniform_(0.5, 1.5)  # type: ignore[union-attr]
    inputs = tuple(
        torch.randint(0, 1000, shape) if name == "ids" else torch.rand(shape)
        for name, shape in shapes.items()
    )
    outputs = ["y", "kept"] if name == "GPT-2 with past" else ["y"]
    axes = {key: {0: "batch"} for key in (*shapes, *outputs)}
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            model,
            inputs,
            target,
            input_names=list(shapes),
            output_names=outputs,
            dynamic_axes=axes,
            opset_version=OPSET,
            dynamo=False,
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
