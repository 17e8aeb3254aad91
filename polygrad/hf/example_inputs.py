"""Example inputs of a model for its export, where only names, dtypes and shapes matter."""

from __future__ import annotations

from polygrad.errors import ArgumentError
from polygrad.hf.instances import HFInstance
from polygrad.tensor.tensor import Tensor

_IMAGE = 224  # pixels of a side, if the configuration has none


def example_inputs(model: HFInstance, batch: int = 1, length: int = 64) -> dict[str, Tensor]:
    """Inputs of `model.forward`: tokens (batch, length) int32, with a mask where the model reads in both
    directions, pictures (batch, channels, height, width) or spectra (batch, bands, frames) float32.

    Raises ArgumentError for sizes below 1.
    """
    for name, value in (("batch", batch), ("length", length)):
        if value < 1:
            raise ArgumentError(f"{name}: expected at least 1, got {value}")
    settings = model.config.section("vision_config") if "vision_config" in model.config else model.config
    side = settings.integer("image_size", _IMAGE)
    frames = 2 * model.config.integer("max_source_positions", 1500)
    tokens, pictures = (batch, length), (batch, settings.integer("num_channels", 3), side, side)
    shapes = {
        "input_ids": ("int32", tokens),
        "attention_mask": ("int32", tokens),
        "decoder_input_ids": ("int32", tokens),
        "pixel_values": ("float32", pictures),
        "input_features": ("float32", (batch, model.config.integer("num_mel_bins", 80), frames)),
    }
    names = [name for name in shapes if name in model.input_names]
    if model.architecture.task == "causal-lm":
        names.remove("attention_mask")  # padding after a text does not change a causal model's logits
    return {name: Tensor.ones(*shapes[name][1], dtype=shapes[name][0]) for name in names}
