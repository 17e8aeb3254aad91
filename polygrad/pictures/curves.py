"""Curves over steps, on axes with round numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from polygrad.errors import ArgumentError
from polygrad.pictures.svg import CHARACTER, GRID, INK, LINE, MUTED, SERIES, document, element, text

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 640, 360, 64, 16, 40, 40
_MOST_POINTS = 600


def chart(
    series: Mapping[str, Sequence[float]],
    title: str = "",
    x_label: str = "step",
    log: bool = False,
    x_range: tuple[float, float] | None = None,
) -> str:
    """The curves of `series`, numbers by name, over their positions, as SVG text.

    `x_range`: what the first and the last position of the longest are called, if not 0 and so on.

    Numbers that are not finite leave gaps; long curves show the mean of neighbours. `log`: a logarithmic
    scale, for numbers above 0. Raises ArgumentError where there is no finite number, or one that a
    logarithmic scale does not have, or for an x_range that is none.

    >>> chart({"loss": [2.0, 1.0, 0.5]}).startswith("<svg")
    True
    """
    numbers = [v for values in series.values() for v in values if math.isfinite(v)]
    if not numbers:
        raise ArgumentError(f"chart: expected finite numbers, got none in {', '.join(series) or 'no series'}")
    if x_range is not None and not x_range[0] < x_range[1]:
        raise ArgumentError(f"chart: expected an x_range of a number and a greater one, got {x_range}")
    if log and min(numbers) <= 0:
        raise ArgumentError(f"chart: expected numbers above 0 on a logarithmic scale, got {min(numbers)}")
    ticks = _powers(min(numbers), max(numbers)) if log else round_ticks(min(numbers), max(numbers))
    scale = math.log10 if log else float
    low, high = scale(ticks[0]), scale(ticks[-1])
    longest = max(len(values) for values in series.values())
    across, down = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM

    def x_of(step: float) -> float:
        return _LEFT + across * step / max(longest - 1, 1)

    def y_of(value: float) -> float:
        return _TOP + down * (1 - (scale(value) - low) / (high - low))

    parts = [text(_LEFT, 22, title, font_weight="bold", font_size=13)] if title else []
    for tick in ticks:
        y = y_of(tick)
        parts.append(element("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=y, y2=y, stroke=GRID))
        parts.append(text(_LEFT - 8, y + 4, f"{tick:g}", fill=MUTED, text_anchor="end"))
    first, last = x_range or (0, max(longest - 1, 1))
    for tick in round_ticks(first, last):
        if first <= tick <= last:
            x = _LEFT + across * (tick - first) / (last - first)
            parts.append(text(x, _HEIGHT - _BOTTOM + 18, f"{tick:g}", fill=MUTED, text_anchor="middle"))
    parts.append(text(_WIDTH - _RIGHT, _HEIGHT - 6, x_label, fill=MUTED, text_anchor="end"))
    legend = _WIDTH - _RIGHT - sum(len(name) * CHARACTER + 30 for name in series)
    for i, (name, values) in enumerate(series.items()):
        color = SERIES[i % len(SERIES)]
        for run in _runs(values):
            points = [(x_of(x), y_of(y)) for x, y in run]
            path = "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in points)
            if len(points) == 1:
                parts.append(element("circle", cx=points[0][0], cy=points[0][1], r=2.5, fill=color))
            else:
                parts.append(element("path", d=path, fill="none", stroke=color, stroke_width=1.8))
        parts.append(element("rect", x=legend, y=LINE - 1, width=12, height=3, fill=color))
        parts.append(text(legend + 16, 18, name, fill=INK))
        legend += len(name) * CHARACTER + 30
    return document(_WIDTH, _HEIGHT, parts)


def round_ticks(low: float, high: float, max_count: int = 6) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten, from one up to `low` to one down to `high`."""
    span = high - low or abs(high) or 1.0
    size = 10.0 ** math.floor(math.log10(span / max_count))
    step = next(size * k for k in (1, 2, 5, 10) if span / (size * k) <= max_count)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    last = max(last, first + 1)
    return [float(f"{i * step:.12g}") for i in range(first, last + 1)]


def _powers(low: float, high: float) -> list[float]:
    """Powers of ten around low and high."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    last = max(last, first + 1)
    step = -(-(last - first) // 8)
    return [10.0**i for i in range(first, last + step, step)]


def _runs(values: Sequence[float]) -> list[list[tuple[float, float]]]:
    """The points of a curve, in parts that have no gap: each the mean of as many neighbours as needed."""
    width = -(-len(values) // _MOST_POINTS)
    runs: list[list[tuple[float, float]]] = [[]]
    for start in range(0, len(values), width):
        part = [v for v in values[start : start + width] if math.isfinite(v)]
        if part:
            runs[-1].append((start + (min(width, len(values) - start) - 1) / 2, sum(part) / len(part)))
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]
