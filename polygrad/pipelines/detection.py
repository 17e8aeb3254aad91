"""Objects in pictures, by models like DETR (Carion et al., 2020) and YOLOS: each of some queries tells a
label, or that there is nothing, and a box."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

from polygrad.errors import ModelError
from polygrad.hf.image_preparation import Preparation, read_preparation
from polygrad.hf.image_reader import ImageReader
from polygrad.models.labels import label_names
from polygrad.tensor.tensor import Tensor


class ObjectDetector(ImageReader):
    """A model whose outputs are `logits` (1, queries, labels and one for nothing) and `pred_boxes` (1,
    queries, 4): middle, width and height, as parts of the picture's."""

    @cached_property
    def labels(self) -> list[str]:
        """The names of the labels, by `id2label` of config.json."""
        return label_names(self.config)

    @cached_property
    def preparation(self) -> Preparation:
        return read_preparation(self._files, is_alone=True)

    def detect(self, image: Any, threshold: float = 0.5) -> list[dict[str, Any]]:
        """The objects in a picture whose scores are above `threshold`, the likeliest first: `label`, `score`,
        and `box`, its `xmin`, `ymin`, `xmax` and `ymax` in pixels. See `ImageReader` for what a picture is.
        Raises ArgumentError, ModelError, ShapeError."""
        picture = image if isinstance(image, Tensor) else Tensor(image)
        axes = (0, 1) if picture.dtype.is_int else (1, 2)
        with Tensor.no_grad():
            pixels = self.prepare(picture, "image").unsqueeze(0).contiguous().realize()
            out = self.module.forward(pixel_values=pixels)
            missing = [name for name in ("logits", "pred_boxes") if name not in out]
            if missing:
                raise ModelError(
                    f"object-detection: expected the outputs logits and pred_boxes, as DETR and YOLOS have "
                    f"them, got {', '.join(out)}"
                )
            rows, boxes = out["logits"][0].float().tolist(), out["pred_boxes"][0].float().tolist()
        height, width = (int(picture.shape[axis]) for axis in axes)
        detections = []
        for row, box in zip(rows, boxes, strict=True):
            scores = _softmax(row)[:-1]  # the last label is that nothing is there
            score = max(scores)
            if score > threshold:
                label = self.labels[scores.index(score)]
                detections.append({"label": label, "score": score, "box": _corners(box, width, height)})
        return sorted(detections, key=lambda object: -object["score"])


def _softmax(row: list[float]) -> list[float]:
    largest = max(row)
    weights = [math.exp(x - largest) for x in row]
    return [w / sum(weights) for w in weights]


def _corners(box: list[float], width: int, height: int) -> dict[str, float]:
    """
    >>> _corners([0.5, 0.5, 0.5, 1.0], 100, 10)
    {'xmin': 25.0, 'ymin': 0.0, 'xmax': 75.0, 'ymax': 10.0}
    """
    x, y, w, h = box
    return {
        "xmin": (x - w / 2) * width,
        "ymin": (y - h / 2) * height,
        "xmax": (x + w / 2) * width,
        "ymax": (y + h / 2) * height,
    }
