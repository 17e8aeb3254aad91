"""Instances that tell what is in pictures."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

from polygrad.capture.jit import TinyJit
from polygrad.hf.image_reader import ImageReader, stack_padded
from polygrad.models.labels import label_names
from polygrad.tensor.tensor import Tensor

_BATCH = 32  # pictures in one Program, unless max_batch is more


class ImageClassifier(ImageReader):
    """A model that gives the labels of pictures."""

    @cached_property
    def labels(self) -> list[str]:
        """The names of the labels, by `id2label` of config.json."""
        return label_names(self.config)

    def classify(self, images: Iterable[Any]) -> list[dict[str, float]]:
        """The probability of each label, for each picture; see `ImageReader` for what a picture is.

        Labels exclude each other unless config.json's `problem_type` says that several may hold; a model of
        one number gives that. Raises ArgumentError, ModelError, ShapeError.
        """
        pixels = self.pixels(images)
        size = max(_BATCH, self.max_batch)
        with Tensor.no_grad():
            rows = [row for i in range(0, len(pixels), size) for row in self._run(pixels[i : i + size])]
        return [dict(zip(self.labels, row, strict=True)) for row in rows]

    def _run(self, pixels: list[Tensor]) -> list[list[float]]:
        """Each size of batches is one captured Program."""
        x = stack_padded(pixels)
        program = self._programs.setdefault(tuple(x.shape), TinyJit(self._outputs))
        rows: list[list[float]] = program(x).tolist()
        return rows[: len(pixels)]

    def _outputs(self, pixels: Tensor) -> Tensor:
        logits = self.module.forward(pixel_values=pixels)["logits"].float()
        return self.module.labels.probabilities(logits).contiguous()
