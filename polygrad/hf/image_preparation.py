"""Preprocessing of pictures for image models, according to preprocessor_config.json.

Pictures are resized as PIL resizes them: a filter along the width, then one along the height, with weights
that are whole numbers, and sums that are rounded to bytes. Where PIL takes the axes in the other order, as
newer versions do for some sizes, a byte may differ by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from polygrad.errors import ArgumentError, ShapeError
from polygrad.hf.files import json_fields
from polygrad.models.fields import Fields
from polygrad.tensor.tensor import Tensor

FILE = "preprocessor_config.json"
_WARPED = 384  # ConvNeXt's pictures of this size and above keep their margins, and lose their proportions
_BITS = 22  # of a weight behind the point: a sum of bytes fits into 32 bits
_LARGEST = 1 << 14  # pixels of a side


@dataclass(frozen=True)
class Filter:
    """How much a pixel counts by its distance, in pixels of the smaller picture; 0 from `support` on."""

    support: float
    weight: Callable[[float], float]


def _bilinear(x: float) -> float:
    return max(0.0, 1.0 - abs(x))


def _bicubic(x: float) -> float:
    """Keys' cubic with a = -1/2."""
    x = abs(x)
    if x < 1:
        return (1.5 * x - 2.5) * x * x + 1
    return ((-0.5 * x + 2.5) * x - 4) * x + 2 if x < 2 else 0.0


_FILTERS = {2: Filter(1.0, _bilinear), 3: Filter(2.0, _bicubic)}  # by PIL's numbers


def resize_weights(size: int, new_size: int, kernel: Filter) -> list[list[int]]:
    """How much each of `size` pixels counts in each of `wanted`: weights that add up to about 1 << 22.

    >>> [[w / (1 << 22) for w in row] for row in resize_weights(2, 4, _FILTERS[2])]
    [[1.0, 0.0], [0.75, 0.25], [0.25, 0.75], [0.0, 1.0]]
    """
    ratio = size / new_size
    stretch = max(ratio, 1.0)
    reach, inverse = kernel.support * stretch, 1 / stretch
    rows = []
    for i in range(new_size):
        center = (i + 0.5) * ratio
        first, end = max(0, int(center - reach + 0.5)), min(size, int(center + reach + 0.5))
        row = [kernel.weight((j - center + 0.5) * inverse) for j in range(first, end)]
        part = 1 / sum(row)
        integer_row = [math.floor(abs(w * part) * (1 << _BITS) + 0.5) * (1 if w > 0 else -1) for w in row]
        rows.append([0] * first + integer_row + [0] * (size - end))
    return rows


def resize(image: Tensor, height: int, width: int, kernel: Filter) -> Tensor:
    """A picture (channels, height, width) of int32 from 0 to 255 at another size."""
    for new_size, axis in ((width, 2), (height, 1)):
        size = int(image.shape[axis])
        if size != new_size:
            weights = Tensor(resize_weights(size, new_size, kernel), image.device, dtype="int32")
            sums = weights @ image if axis == 1 else image @ weights.transpose(0, 1)
            image = ((sums + (1 << (_BITS - 1))) >> _BITS).clamp(0, 255)
    return image


@dataclass(frozen=True)
class Preparation:
    """What is done to a picture, in this order. `size`: height and width; `shortest`: of the shorter side,
    in the place of it, unless the other would then have more than `longest`; `crop`: height and width of the
    middle that stays; `scale`: what bytes are multiplied by; `mean`, `std`: of each channel, which are
    subtracted and divided by."""

    size: tuple[int, int] | None = None
    shortest: int | None = None
    longest: int | None = None
    kernel: Filter = _FILTERS[2]
    crop: tuple[int, int] | None = None
    scale: float = 1.0
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()

    def __call__(self, image: Tensor, where: str = "image") -> Tensor:
        """A picture of integers from 0 to 255, (height, width) or (height, width, channels), as float32
        (channels, height, width). Raises ArgumentError, ShapeError."""
        if not image.dtype.is_int:
            raise ArgumentError(f"{where}: expected integers from 0 to 255, got {image.dtype}")
        if image.ndim == 2:
            image = image.unsqueeze(-1).expand(*image.shape, len(self.mean) or 1)
        if image.ndim != 3 or (self.mean and image.shape[2] != len(self.mean)):
            channels = f", {len(self.mean)}" if self.mean else ", channels"
            raise ShapeError(f"{where}: expected shape (height, width{channels}), got {tuple(image.shape)}")
        x = image.cast("int32").permute(2, 0, 1)
        height, width = (int(n) for n in x.shape[1:])
        size = self.size
        if self.shortest is not None:
            size = _sides(height, width, self.shortest, self.longest)
        if size is not None:
            x = resize(x, *size, self.kernel)
        if self.crop is not None:
            x = _middle(x, self.crop, where)
        x = x.cast("float32") * self.scale
        if self.mean:
            mean, std = (Tensor(list(v), x.device).reshape(-1, 1, 1) for v in (self.mean, self.std))
            x = (x - mean) / std
        return x


def _sides(height: int, width: int, shortest: int, longest: int | None) -> tuple[int, int]:
    """The height and width of a picture at another size, in the same proportions.

    >>> _sides(480, 640, 240, None), _sides(640, 480, 240, 300), _sides(100, 300, 200, 400)
    ((240, 320), (300, 225), (133, 400))
    """
    short, long = min(height, width), max(height, width)
    side: float = shortest
    if longest is not None and long / short * shortest > longest:
        side = longest * short / long
        shortest = round(side)
    other = int(side * long / short)
    return (shortest, other) if height <= width else (other, shortest)


def _middle(x: Tensor, crop: tuple[int, int], where: str) -> Tensor:
    places = []
    for size, crop_size in zip(x.shape[1:], crop):
        if crop_size > size:
            raise ShapeError(f"{where}: expected at least {crop[0]}x{crop[1]} pixels to crop, got {size}")
        first = (int(size) - crop_size) // 2
        places.append(slice(first, first + crop_size))
    return x[:, places[0], places[1]]


def read_preparation(files: Mapping[str, bytes], is_alone: bool = False) -> Preparation:
    """What a model's preprocessor_config.json says. Raises ModelError where it is missing, damaged, or asks
    for something else than resizing, cropping and scaling. `is_alone`: pictures come one by one, so none is
    padded to the size of others.

    >>> files = {"preprocessor_config.json": b'{"size": {"height": 8, "width": 8}, "do_normalize": false}'}
    >>> read_preparation(files)(Tensor.full((16, 12, 3), 255, dtype="uint8")).shape
    (3, 8, 8)
    """
    config = json_fields(files, FILE)
    kind = str(config.values.get("image_processor_type", config.values.get("feature_extractor_type", "")))
    is_convnext = kind.startswith("ConvNext")
    if config.flag("do_pad", False) and not is_alone:
        raise config.refuse("do_pad", "false: pictures are not padded")
    out = Preparation()
    if config.flag("do_resize", "size" in config):
        out = _read_size(config, out, is_convnext, kind.startswith("CLIP"))
    if config.flag("do_center_crop", False):
        out = replace(out, crop=_read_sides(config, "crop_size"))
    if config.flag("do_rescale", True):
        out = replace(out, scale=config.number("rescale_factor", 1 / 255))
    if config.flag("do_normalize", "image_mean" in config):
        numbers = [config.items(name, (int, float)) for name in ("image_mean", "image_std")]
        mean, std = (tuple(map(float, row)) for row in numbers)
        if not mean or len(mean) != len(std) or not all(0 < s < math.inf for s in std):
            raise config.refuse("image_std", "a number above 0 for each of image_mean")
        out = replace(out, mean=mean, std=std)
    return out


def _read_size(config: Fields, out: Preparation, is_convnext: bool, is_clip: bool) -> Preparation:
    """A lone number is both sides, or for CLIP, and with a `max_size`, the shorter side."""
    number = config.integer("resample", 3 if is_convnext else 2, least=0)
    if number not in _FILTERS:
        raise config.refuse("resample", "2, bilinear, or 3, bicubic")
    out = replace(out, kernel=_FILTERS[number])
    value: Any = config.values.get("size")
    if isinstance(value, dict) and "shortest_edge" not in value:
        return replace(out, size=_read_sides(config, "size"))
    is_number = type(value) is int
    place, name = (config, "size") if is_number else (config.section("size"), "shortest_edge")
    side = place.integer(name, largest=_LARGEST)
    if not is_convnext:
        if is_number and not is_clip and "max_size" not in config:
            return replace(out, size=(side, side))
        limits, name = (config, "max_size") if is_number else (place, "longest_edge")
        return replace(out, shortest=side, longest=limits.integer(name, None, largest=_LARGEST))
    if side >= _WARPED:
        return replace(out, size=(side, side))
    part = config.number("crop_pct", 224 / 256)
    if not 0 < part <= 1:
        raise config.refuse("crop_pct", "a number above 0 and up to 1")
    return replace(out, shortest=int(side / part), crop=(side, side))


def _read_sides(config: Fields, name: str) -> tuple[int, int]:
    if type(config.values.get(name)) is int:
        side = config.integer(name, largest=_LARGEST)
        return side, side
    section = config.section(name)
    return section.integer("height", largest=_LARGEST), section.integer("width", largest=_LARGEST)
