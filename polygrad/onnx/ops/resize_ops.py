"""Resize and Upsample: axis by axis, each element is a weighted sum of a few. The host computes weights."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from polygrad.dtype import dtypes, rounded
from polygrad.errors import OnnxError
from polygrad.onnx.op_table import Floats, Ints, op
from polygrad.tensor.core.sizes import same_size
from polygrad.tensor.tensor import Tensor


@dataclass(frozen=True)
class Rules:
    """How positions and weights are computed: the attributes of Resize."""

    mode: str = "nearest"
    coordinates: str = "half_pixel"
    nearest: str = "round_prefer_floor"
    cubic: float = -0.75
    exclude_outside: bool = False
    antialias: bool = False
    extrapolation: float = 0.0


@dataclass(frozen=True)
class Taps:
    """For each element of the result, the elements that it is made of, and their weights. `outside`: whether
    it is outside of the image."""

    places: list[list[int]]
    weights: list[list[float]]
    outside: list[bool]


def _quotient(a: float, b: float) -> float:
    """a / b as a float32, like the scales: 3 / 0.33333334 is 9, and not an element less."""
    return rounded(dtypes.float32, a / b)


def _origin(y: int, n: int, count: int, scale: float, roi: tuple[float, float], rules: Rules) -> float:
    """The position of element y of the result among the n elements."""
    wide = scale * n
    match rules.coordinates:
        case "half_pixel":
            return _quotient(y + 0.5, scale) - 0.5
        case "half_pixel_symmetric":
            return n / 2 * (1 - count / wide) + _quotient(y + 0.5, scale) - 0.5
        case "pytorch_half_pixel":
            return _quotient(y + 0.5, scale) - 0.5 if wide != 1 else -0.5
        case "align_corners":
            return _quotient(y * (n - 1), wide - 1) if wide != 1 else 0.0
        case "asymmetric":
            return _quotient(y, scale)
        case "tf_half_pixel_for_nn":
            return _quotient(y + 0.5, scale)
        case "tf_crop_and_resize":
            start, end = roi
            middle = (end - start) * (n - 1) / 2 if wide == 1 else y * (end - start) * (n - 1) / (wide - 1)
            return start * (n - 1) + middle
    raise OnnxError(f"unknown coordinate_transformation_mode {rules.coordinates!r}")


def _cubic(x: float, a: float) -> float:
    """Keys' kernel (1981)."""
    x = abs(x)
    if x <= 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a if x < 2 else 0.0


def _weights(ratio: float, scale: float, rules: Rules) -> list[float]:
    """The weights of the elements around a position, which is `ratio` in (0, 1] behind the one before it."""
    if rules.mode == "nearest":
        is_second = {
            "round_prefer_floor": ratio > 0.5,
            "round_prefer_ceil": ratio >= 0.5,
            "floor": ratio == 1.0,
            "ceil": True,
        }.get(rules.nearest)
        if is_second is None:
            raise OnnxError(f"unknown nearest_mode {rules.nearest!r}")
        return [float(not is_second), float(is_second)]
    if rules.mode not in ("linear", "cubic"):
        raise OnnxError(f"expected mode nearest, linear or cubic, got {rules.mode!r}")
    reach = 1 if rules.mode == "linear" else 2
    shrink = min(scale, 1.0) if rules.antialias else 1.0
    first = math.floor(-reach / shrink) + 1
    at = [(i - ratio) * shrink for i in range(first, 2 - first)]
    if rules.mode == "linear":
        out = [max(1.0 - abs(x), 0.0) for x in at]
    else:
        out = [_cubic(x, rules.cubic) for x in at]
    total = sum(out) if rules.antialias else 1.0
    return [w / total for w in out]


@functools.lru_cache(maxsize=64)
def taps_of(n: int, count: int, scale: float, roi: tuple[float, float], rules: Rules) -> Taps:
    """The taps of an axis of n elements resized to `count`."""
    places, weights, outside = [], [], []
    for y in range(count):
        x = _origin(y, n, count, scale, roi, rules)
        low = math.ceil(x) - 1  # the element before x; at an integer position x is the second element
        ws = _weights(x - low, scale, rules)
        start = low - (len(ws) // 2 - 1)
        row = range(start, start + len(ws))
        if rules.exclude_outside:
            ws = [w if 0 <= i < n else 0.0 for i, w in zip(row, ws)]
            total = sum(ws) or 1.0
            ws = [w / total for w in ws]
        bounded = [min(max(i, 0), n - 1) for i in row]
        if rules.mode == "nearest":
            bounded, ws = [bounded[ws.index(1.0)]], [1.0]
        places.append(bounded)
        weights.append(ws)
        outside.append(rules.coordinates == "tf_crop_and_resize" and not 0 <= x <= n - 1)
    return Taps(places, weights, outside)


def _pick(x: Tensor, axis: int, places: list[int]) -> Tensor:
    """The elements at `places` of an axis: without an index where they are repeated, or in equal steps."""
    lead = (slice(None),) * axis
    repeats = len(places) // x.shape[axis]
    if repeats and places == [i // repeats for i in range(len(places))]:
        return x.repeat_interleave(repeats, axis)
    first, last, step = places[0], places[-1], max(places[-1] - places[0], 1) // max(len(places) - 1, 1)
    if step and places == list(range(first, last + 1, step)):
        return x._with(x[(*lead, slice(first, last + 1, step))].uop)  # a value, as where there is an index
    return x[(*lead, Tensor(places, x.device, dtypes.int32))]


def _is_between_neighbours(n: int, count: int, scale: float, rules: Rules) -> bool:
    """Whether each of n elements becomes a whole number of them, which are linear between centres of
    pixels."""
    is_half_pixel = rules.coordinates in ("half_pixel", "pytorch_half_pixel") and not rules.exclude_outside
    return rules.mode == "linear" and is_half_pixel and count == scale * n and count % n == 0 and count > 1


_LONGEST_AXIS = 1 << 20  # of a result


def _resize_axis(
    x: Tensor, axis: int, count: int, scale: float, roi: tuple[float, float], rules: Rules
) -> Tensor:
    if not 0 <= count <= _LONGEST_AXIS:
        raise OnnxError(f"axis {axis} of shape {x.shape} would have {count} elements")
    if not count:
        return x.shrink([(0, 0) if i == axis else None for i in range(x.ndim)])
    taps = taps_of(x.shape[axis], count, scale, roi, rules)
    lead = (slice(None),) * axis
    column = [-1 if i == axis else 1 for i in range(x.ndim)]
    if rules.mode == "nearest":
        out = _pick(x, axis, [row[0] for row in taps.places])
    elif _is_between_neighbours(x.shape[axis], count, scale, rules):
        out = x._between_neighbours(axis, count // x.shape[axis])
    else:
        wide = [count if i == axis else 1 for i in range(axis + 1)] + [-1] + [1] * (x.ndim - axis - 1)
        out = x[(*lead, Tensor(taps.places, x.device, dtypes.int32))]
        out = (out * Tensor(taps.weights, x.device, x.dtype).reshape(wide)).sum(axis + 1)
    if any(taps.outside):
        is_outside = Tensor(taps.outside, x.device).reshape(column)
        out = is_outside.where(rules.extrapolation, out).cast(out.dtype)
    return out


def _resize(
    x: Tensor,
    rules: Rules,
    scales: Sequence[float] | None,
    sizes: Sequence[int] | None,
    roi: Sequence[float] | None,
    axes: Sequence[int] | None,
    policy: str = "stretch",
) -> Tensor:
    chosen = list(range(x.ndim)) if axes is None else [x._axis(a) for a in axes]
    scales_or_sizes = scales if scales else sizes
    if not scales_or_sizes or len(scales_or_sizes) != len(chosen):
        raise OnnxError(f"expected a scale or size for each of axes {chosen}, got {scales_or_sizes}")
    old_sizes = [x.shape[a] for a in chosen]
    kept = [s == 1 if scales else same_size(s, n) for s, n in zip(scales_or_sizes, old_sizes)]
    for axis, size, stays in zip(chosen, old_sizes, kept):
        if not (stays or isinstance(size, int)):
            raise OnnxError(
                f"axis {axis} has the symbolic size {size}: only an axis of a fixed size is resized"
            )
    if scales:
        counts = [n if stays else math.floor(n * s) for n, s, stays in zip(old_sizes, scales, kept)]
        factors = list(scales)
    else:
        assert sizes
        factors = [1.0 if stays else m / n for m, n, stays in zip(sizes, old_sizes, kept)]
        counts = list(sizes)
        if policy != "stretch":
            if policy not in ("not_larger", "not_smaller"):
                raise OnnxError(f"unknown keep_aspect_ratio_policy {policy!r}")
            factor = min(factors) if policy == "not_larger" else max(factors)
            factors, counts = [factor] * len(old_sizes), [int(factor * n + 0.5) for n in old_sizes]
    region = list(roi) if roi else [0.0] * len(chosen) + [1.0] * len(chosen)
    out = x if rules.mode == "nearest" or x.dtype is dtypes.float64 else x.float()
    for i, (axis, count, factor) in enumerate(zip(chosen, counts, factors)):
        part = (region[i], region[i + len(chosen)])
        if factor == 1.0 and same_size(count, x.shape[axis]) and part == (0.0, 1.0):
            continue
        out = _resize_axis(out, axis, count, factor, part, rules)
    if x.dtype.is_float or out.dtype is x.dtype:
        return out.cast(x.dtype)
    return out.round().clamp(x.dtype.min, x.dtype.max).cast(x.dtype)


@op("Resize", 18, 19)
def resize(
    x: Tensor,
    roi: Floats | None = None,
    scales: Floats | None = None,
    sizes: Ints | None = None,
    *,
    antialias: int = 0,
    axes: list[int] | None = None,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch",
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> Tensor:
    rules = Rules(
        mode,
        coordinate_transformation_mode,
        nearest_mode,
        cubic_coeff_a,
        bool(exclude_outside),
        bool(antialias),
        extrapolation_value,
    )
    crops = coordinate_transformation_mode == "tf_crop_and_resize"
    return _resize(x, rules, scales, sizes, roi if crops else None, axes, keep_aspect_ratio_policy)


@op("Resize", 11, 13)
def resize_11(
    x: Tensor,
    roi: Floats | None = None,
    scales: Floats | None = None,
    sizes: Ints | None = None,
    *,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> Tensor:
    return resize(
        x,
        roi,
        scales,
        sizes,
        coordinate_transformation_mode=coordinate_transformation_mode,
        cubic_coeff_a=cubic_coeff_a,
        exclude_outside=exclude_outside,
        extrapolation_value=extrapolation_value,
        mode=mode,
        nearest_mode="floor" if coordinate_transformation_mode == "tf_half_pixel_for_nn" else nearest_mode,
    )


_MODES = {"nearest": "nearest", "linear": "linear", "bilinear": "linear"}


@op("Resize", 10)
def resize_10(x: Tensor, scales: Floats, *, mode: str = "nearest") -> Tensor:
    """Positions are multiples of the step from the first element on, without half-pixel offsets."""
    if mode not in _MODES:
        raise OnnxError(f"expected mode nearest or linear, got {mode!r}")
    return _resize(x, Rules(_MODES[mode], "asymmetric", "floor"), scales, None, None, None)


op("Upsample", 9, 10)(resize_10)


@op("Upsample", 7)
def upsample_7(x: Tensor, *, scales: list[float], mode: str = "nearest") -> Tensor:
    return resize_10(x, scales, mode=mode)


@op("Upsample", 1)
def upsample_1(x: Tensor, *, height_scale: float, width_scale: float, mode: str = "nearest") -> Tensor:
    return resize_10(x, [1.0, 1.0, height_scale, width_scale], mode=mode)
