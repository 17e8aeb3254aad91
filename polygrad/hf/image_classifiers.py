"""Instances that tell what is in pictures."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

from polygrad.capture.jit import TinyJit
from polygrad.errors import ArgumentError, ShapeError
from polygrad.hf.image_preparation import Preparation, read_preparation
from polygrad.hf.instances import HFInstance
from polygrad.models.labels import label_names
from polygrad.tensor.tensor import Tensor

_BATCH = 32  # pictures in one Program, unless max_batch is more


class ImageClassifier(HFInstance):
    """A model that gives the labels of pictures."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._programs: dict[tuple[Any, ...], TinyJit] = {}

    @cached_property
    def labels(self) -> list[str]:
        """The names of the labels, by `id2label` of config.json."""
        return label_names(self.config)

    @cached_property
    def preparation(self) -> Preparation:
        """What is done to a picture before the model sees it, by preprocessor_config.json. Raises
        ModelError."""
        return read_preparation(self._files)

    def forget_captures(self) -> None:
        super().forget_captures()
        self._programs = {}

    def classify(self, images: Iterable[Any]) -> list[dict[str, float]]:
        """The probability of each label, for each picture.

        A picture is an array or a Tensor of integers from 0 to 255, (height, width, channels) or (height,
        width), as `numpy.asarray` makes it of one of PIL, and is resized and scaled as
        preprocessor_config.json says; or one of floats, (channels, height, width), which goes to the model as
        it is. Labels exclude each other unless config.json's `problem_type` says that several may hold; a
        model of one number gives that. Raises ArgumentError, ModelError, ShapeError.
        """
        if isinstance(images, (str, bytes)):
            raise ArgumentError(f"images: expected a list of pictures, got {type(images).__name__}")
        with Tensor.no_grad():
            pixels = [self._pixels(image, f"images[{i}]") for i, image in enumerate(images)]
            if not pixels:
                raise ArgumentError("images: expected at least one, got none")
            for i, x in enumerate(pixels):
                if x.shape != pixels[0].shape:
                    raise ShapeError(
                        f"images[{i}]: expected shape {tuple(pixels[0].shape)}, as the first has, got "
                        f"{tuple(x.shape)}"
                    )
            size = max(_BATCH, self.max_batch)
            rows = [row for i in range(0, len(pixels), size) for row in self._run(pixels[i : i + size])]
        return [dict(zip(self.labels, row, strict=True)) for row in rows]

    def _pixels(self, image: Any, where: str) -> Tensor:
        x = image if isinstance(image, Tensor) else Tensor(image)
        x = x if self.device is None else x.to(self.device)
        if x.dtype.is_int:
            return self.preparation(x, where)
        if x.ndim != 3:
            raise ShapeError(
                f"{where}: expected floats of shape (channels, height, width), got {tuple(x.shape)}"
            )
        return x.cast("float32")

    def _run(self, pixels: list[Tensor]) -> list[list[float]]:
        """Batches are padded to powers of two, and each size is one captured Program."""
        count = 1 << (len(pixels) - 1).bit_length()
        x = Tensor.stack(*pixels, *[pixels[0]] * (count - len(pixels))).contiguous().realize()
        program = self._programs.setdefault(tuple(x.shape), TinyJit(self._outputs))
        rows: list[list[float]] = program(x).tolist()
        return rows[: len(pixels)]

    def _outputs(self, pixels: Tensor) -> Tensor:
        logits = self.module.forward(pixel_values=pixels)["logits"].float()
        return self.module.labels.probabilities(logits).contiguous()
