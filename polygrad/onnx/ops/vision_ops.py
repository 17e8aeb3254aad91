"""Resampling of images, regions of interest, and boxes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from polygrad.dtype import dtypes
from polygrad.errors import OnnxError
from polygrad.onnx.op_table import Float, Floats, Int, Ints, op
from polygrad.onnx.values import Constant, numbers_of
from polygrad.tensor.tensor import Tensor


def linear_at(x: Tensor, places: Sequence[Tensor]) -> Tensor:
    """x (n, channels, *spatial) at positions (n, *out) of each spatial axis, linear between elements, 0
    outside.
    """
    sizes = list(x.shape[2:])
    taps = []
    for place in places:
        low = place.floor()
        part = place - low
        taps.append([(low, 1.0 - part), (low + 1.0, part)])
    total = None
    for corner in itertools.product(*taps):
        value = x._at_places([place for place, _ in corner], sizes)
        for _, weight in corner:
            value = value * weight.unsqueeze(1)
        total = value if total is None else total + value
    assert total is not None
    return total


# --- grids

_MODES = {
    "linear": "bilinear",
    "bilinear": "bilinear",
    "nearest": "nearest",
    "cubic": "bicubic",
    "bicubic": "bicubic",
}


@op("GridSample", 20, 22)
def grid_sample(
    x: Tensor, grid: Tensor, *, align_corners: int = 0, mode: str = "linear", padding_mode: str = "zeros"
) -> Tensor:
    if mode not in _MODES:
        raise OnnxError(f"expected mode linear, nearest or cubic, got {mode!r}")
    return x.grid_sample(grid, _MODES[mode], padding_mode, bool(align_corners))


@op("GridSample", 16)
def grid_sample_16(
    x: Tensor, grid: Tensor, *, align_corners: int = 0, mode: str = "bilinear", padding_mode: str = "zeros"
) -> Tensor:
    return grid_sample(x, grid, align_corners=align_corners, mode=mode, padding_mode=padding_mode)


@op("AffineGrid", 20)
def affine_grid(theta: Tensor, size: Ints, *, align_corners: int = 0) -> Tensor:
    return theta.affine_grid(size, bool(align_corners))


# --- regions


def _samples(start: Tensor, size: Tensor, bins: int, ratio: int) -> tuple[Tensor, Tensor, int]:
    """Positions (regions, bins, samples) along an axis, the number of samples that count, and the greatest
    such number.
    """
    step = size / bins
    counts = Tensor.full(start.shape, float(ratio)) if ratio > 0 else step.ceil()
    max_count = ratio if ratio > 0 else max(int(counts.max().item()), 1)
    i = Tensor.arange(bins).float().reshape(1, -1, 1)
    j = Tensor.arange(max_count).float().reshape(1, 1, -1)
    start, step, inner = (t.reshape(-1, 1, 1) for t in (start, step, step / counts.maximum(1.0)))
    return start + i * step + (j + 0.5) * inner, counts, max_count


def _corners(place: Tensor, n: int) -> tuple[list[tuple[Tensor, Tensor]], Tensor]:
    """The elements before and behind positions with their weights, and whether a position is near the
    image."""
    is_near = (place >= -1.0) & (place <= n)
    bounded = place.clamp(0.0, n - 1.0)
    low = bounded.floor()
    part = bounded - low
    return [(low, 1.0 - part), ((low + 1.0).minimum(n - 1.0), part)], is_near


def _roi_align(
    x: Tensor,
    rois: Tensor,
    batch: Tensor,
    offset: float,
    mode: str,
    output_height: int,
    output_width: int,
    sampling_ratio: int,
    spatial_scale: float,
) -> Tensor:
    """The means (or maxima) of samples in the bins of regions (He et al., 2017). rois: (regions, 4)."""
    if mode not in ("avg", "max"):
        raise OnnxError(f"expected mode avg or max, got {mode!r}")
    rois = rois.float() * spatial_scale - offset
    starts = [rois[:, 1], rois[:, 0]]
    sizes = [rois[:, 3] - starts[0], rois[:, 2] - starts[1]]
    if not offset:  # regions are of at least one element
        sizes = [n.maximum(1.0) for n in sizes]
    (height, width), bins = x.shape[2:], (output_height, output_width)
    ys, count_y, most_y = _samples(starts[0], sizes[0], bins[0], sampling_ratio)
    xs, count_x, most_x = _samples(starts[1], sizes[1], bins[1], sampling_ratio)
    regions = rois.shape[0]
    corners_y, near_y = _corners(ys.reshape(regions, -1, 1), height)
    corners_x, near_x = _corners(xs.reshape(regions, 1, -1), width)
    images = x[batch]
    values = []
    for (y, wy), (z, wx) in itertools.product(corners_y, corners_x):
        shape = (regions, bins[0] * most_y, bins[1] * most_x)
        value = images._at_places([y.expand(shape), z.expand(shape)], [height, width])
        values.append(value * (near_y & near_x).where(wy * wx, 0.0).unsqueeze(1))
    used_y = Tensor.arange(most_y) < count_y.reshape(-1, 1)
    used_x = Tensor.arange(most_x) < count_x.reshape(-1, 1)
    used = used_y.reshape(-1, 1, 1, most_y, 1, 1) & used_x.reshape(-1, 1, 1, 1, 1, most_x)
    grid = (regions, x.shape[1], bins[0], most_y, bins[1], most_x)
    if mode == "max":
        top = values[0].maximum(values[1]).maximum(values[2].maximum(values[3]))
        return used.where(top.reshape(grid), -math.inf).max((3, 5)).cast(x.dtype)
    total = used.where((values[0] + values[1] + values[2] + values[3]).reshape(grid), 0.0).sum((3, 5))
    return (total / (count_y * count_x).maximum(1.0).reshape(-1, 1, 1, 1)).cast(x.dtype)


@op("RoiAlign", 16, 22)
def roi_align(
    x: Tensor,
    rois: Tensor,
    batch: Tensor,
    *,
    coordinate_transformation_mode: str = "half_pixel",
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Tensor:
    offset = 0.5 if coordinate_transformation_mode == "half_pixel" else 0.0
    return _roi_align(
        x, rois, batch, offset, mode, output_height, output_width, sampling_ratio, spatial_scale
    )


@op("RoiAlign", 10)
def roi_align_10(
    x: Tensor,
    rois: Tensor,
    batch: Tensor,
    *,
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Tensor:
    return _roi_align(x, rois, batch, 0.0, mode, output_height, output_width, sampling_ratio, spatial_scale)


@op("MaxRoiPool", 1, 22)
def max_roi_pool(x: Tensor, rois: Floats, *, pooled_shape: list[int], spatial_scale: float = 1.0) -> Tensor:
    """The greatest element in each bin of a region. rois: rows of (image, x1, y1, x2, y2), ends included."""
    out = []
    for at in range(0, len(rois), 5):
        image, *box = rois[at : at + 5]
        x1, y1, x2, y2 = (math.floor(n * spatial_scale + 0.5) for n in box)
        part = x[int(image)]
        for axis, (start, end) in ((1, (y1, y2)), (2, (x1, x2))):
            part = _bin_maxima(part, axis, start, max(end - start + 1, 1), pooled_shape[axis - 1])
        out.append(part)
    return out[0].stack(*out[1:]) if out else Tensor.zeros(0, x.shape[1], *pooled_shape, dtype=x.dtype)


def _bin_maxima(x: Tensor, axis: int, start: int, size: int, bins: int) -> Tensor:
    n = x.shape[axis]
    parts = []
    for i in range(bins):
        low = min(max(start + math.floor(i * size / bins), 0), n)
        high = min(max(start + math.ceil((i + 1) * size / bins), 0), n)
        cut = x.shrink([(low, max(high, low)) if k == axis else None for k in range(x.ndim)])
        empty = Tensor.zeros([1 if k == axis else m for k, m in enumerate(x.shape)], dtype=x.dtype)
        parts.append(cut.max(axis, keepdim=True) if high > low else empty)
    return parts[0].cat(*parts[1:], dim=axis)


# --- boxes


@op("NonMaxSuppression", 10, 11)
def non_max_suppression(
    boxes: Tensor,
    scores: Tensor,
    max_boxes: Int | None = None,
    iou_threshold: Float | None = None,
    score_threshold: Float | None = None,
    *,
    center_point_box: int = 0,
) -> Constant:
    """The box with the greatest score among boxes that overlap: rows of (image, class, box), on the host."""
    batch, count = boxes.shape[:2]
    classes = scores.shape[1]
    flat, marks = numbers_of(boxes), numbers_of(scores)
    limit = max(max_boxes or 0, 0)
    rows: list[int] = []
    for b, c in itertools.product(range(batch), range(classes)):
        class_scores = marks[(b * classes + c) * count : (b * classes + c + 1) * count]
        order = [i for i in range(count) if score_threshold is None or class_scores[i] > score_threshold]
        order.sort(key=lambda i: (-class_scores[i], i))
        kept: list[tuple[int, tuple[float, float, float, float]]] = []
        for i in order:
            if len(kept) == limit:
                break
            box = _corners_of(flat[(b * count + i) * 4 : (b * count + i) * 4 + 4], center_point_box)
            if all(_overlap(box, other) <= (iou_threshold or 0.0) for _, other in kept):
                kept.append((i, box))
        rows += [n for i, _ in kept for n in (b, c, i)]
    return Constant(dtypes.int64, (len(rows) // 3, 3), rows)


def _corners_of(box: Sequence[float], centred: int) -> tuple[float, float, float, float]:
    """(least y, least x, greatest y, greatest x)."""
    if centred:
        x, y, width, height = box
        return y - height / 2, x - width / 2, y + height / 2, x + width / 2
    y1, x1, y2, x2 = box
    return min(y1, y2), min(x1, x2), max(y1, y2), max(x1, x2)


def _overlap(a: Sequence[float], b: Sequence[float]) -> float:
    """Intersection over union."""
    height, width = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    if height <= 0 or width <= 0:
        return 0.0
    both = height * width
    union = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (a, b)) - both
    return both / union if union > 0 else 0.0
