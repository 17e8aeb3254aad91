"""The base of Instances that see pictures."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

from polygrad.capture.jit import TinyJit
from polygrad.errors import ArgumentError, ShapeError
from polygrad.hf.image_preparation import Preparation, read_preparation
from polygrad.hf.instances import HFInstance
from polygrad.tensor.tensor import Tensor


class ImageReader(HFInstance):
    """A model of pictures. A picture is an array or a Tensor of integers from 0 to 255, (height, width,
    channels) or (height, width), as `numpy.asarray` makes it of one of PIL, and is resized and scaled as
    preprocessor_config.json says; or one of floats, (channels, height, width), which goes to the model as it
    is."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._programs: dict[tuple[Any, ...], TinyJit] = {}

    @cached_property
    def preparation(self) -> Preparation:
        """What is done to a picture before the model sees it, by preprocessor_config.json. Raises
        ModelError."""
        return read_preparation(self._files)

    def forget_captures(self) -> None:
        super().forget_captures()
        self._programs = {}

    def pixels(self, images: Iterable[Any]) -> list[Tensor]:
        """Pictures as the model sees them, float32 (channels, height, width), all of one shape. Raises
        ArgumentError, ModelError, ShapeError."""
        if isinstance(images, (str, bytes)):
            raise ArgumentError(f"images: expected a list of pictures, got {type(images).__name__}")
        with Tensor.no_grad():
            pixels = [self.prepare(image, f"images[{i}]") for i, image in enumerate(images)]
        if not pixels:
            raise ArgumentError("images: expected at least one, got none")
        for i, x in enumerate(pixels):
            if x.shape != pixels[0].shape:
                raise ShapeError(
                    f"images[{i}]: expected shape {tuple(pixels[0].shape)}, as the first has, got "
                    f"{tuple(x.shape)}"
                )
        return pixels

    def prepare(self, image: Any, where: str) -> Tensor:
        """A picture as the model sees it. Raises ArgumentError, ModelError, ShapeError."""
        x = image if isinstance(image, Tensor) else Tensor(image)
        x = x if self.device is None else x.to(self.device)
        if x.dtype.is_int:
            return self.preparation(x, where)
        if x.ndim != 3:
            raise ShapeError(
                f"{where}: expected floats of shape (channels, height, width), got {tuple(x.shape)}"
            )
        return x.cast("float32")


def stack_padded(pixels: list[Tensor]) -> Tensor:
    """Pictures as one batch, of a power of two: so few sizes are compiled for."""
    count = 1 << (len(pixels) - 1).bit_length()
    return Tensor.stack(*pixels, *[pixels[0]] * (count - len(pixels))).contiguous().realize()
