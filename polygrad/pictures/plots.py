"""Numbers as pictures: how often they occur, a matrix as colours, pixels."""

from __future__ import annotations

import base64
import binascii
import math
import struct
import zlib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from polygrad.errors import ArgumentError
from polygrad.pictures.curves import round_ticks
from polygrad.pictures.svg import GRID, MUTED, SERIES, document, element, text
from polygrad.pictures.svg import title as tooltip

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 640, 300, 64, 16, 40, 40
_SIDE = 320  # the longer side of a picture of pixels
_SCALE_WIDTH = 120  # what the scale of colours takes
# Viridis, of matplotlib, at equal distances: each step is as visible as any other, also without colours.
_COLORS = (
    (68, 1, 84), (72, 40, 120), (62, 74, 137), (49, 104, 142), (38, 130, 142),
    (31, 158, 137), (53, 183, 121), (110, 206, 88), (181, 222, 43), (253, 231, 37),
)  # fmt: skip


def histogram(values: Any, bins: int = 30, title: str = "") -> str:
    """How many of the `values` are in each of `bins` intervals of equal width, as SVG text.

    `values`: a Tensor, an array or nested lists, of any shape. Numbers that are not finite are left out.
    Raises ArgumentError where no number is finite, or for less than one bin.

    >>> histogram([1.0, 2.0, 2.0, 3.0], bins=2).count("<title>")
    2
    """
    numbers = [x for x in _flat(_listed(values)) if math.isfinite(x)]
    if not numbers or bins < 1:
        raise ArgumentError(f"histogram: expected finite numbers and bins, got {len(numbers)} and {bins}")
    low, high = min(numbers), max(numbers)
    if low == high:
        low, high = low - 0.5, high + 0.5
    counts = [0] * bins
    for x in numbers:
        counts[min(int((x - low) / (high - low) * bins), bins - 1)] += 1
    across, down = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    ticks = round_ticks(0, max(counts))
    parts = _heading(title)
    for tick in ticks:
        y = _TOP + down * (1 - tick / ticks[-1])
        parts.append(element("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=y, y2=y, stroke=GRID))
        parts.append(text(_LEFT - 8, y + 4, f"{tick:g}", fill=MUTED, text_anchor="end"))
    edges = [low + (high - low) * i / bins for i in range(bins + 1)]
    for i, (count, (left, right)) in enumerate(zip(counts, pairwise(edges), strict=True)):
        height = down * count / ticks[-1]
        place = {"x": _LEFT + across * i / bins, "y": _TOP + down - height, "height": height}
        label = tooltip(f"{count} from {left:g} to {right:g}")
        parts.append(element("rect", label, width=max(across / bins - 1, 0.5), fill=SERIES[0], **place))
    for tick in round_ticks(low, high):
        if low <= tick <= high:
            x = _LEFT + across * (tick - low) / (high - low)
            parts.append(text(x, _HEIGHT - _BOTTOM + 18, f"{tick:g}", fill=MUTED, text_anchor="middle"))
    return document(_WIDTH, _HEIGHT, parts)


def heat_map(values: Any, title: str = "") -> str:
    """A matrix as colours, from its least number, dark, to its greatest, as SVG text.

    `values`: a Tensor, an array or lists, of shape (rows, columns). Numbers that are not finite are white.
    Raises ArgumentError for another shape, and where no number is finite.

    >>> heat_map([[0.0, 1.0], [2.0, 3.0]]).startswith("<svg")
    True
    """
    rows = _rectangle("heat_map", _listed(values), depth=2)
    numbers = [x for row in rows for x in row if math.isfinite(x)]
    if not numbers:
        raise ArgumentError("heat_map: expected finite numbers, got none")
    low, high = min(numbers), max(numbers)
    span = high - low or 1.0
    colors = [
        b"".join(_color((x - low) / span) if math.isfinite(x) else b"\xff" * 3 for x in row) for row in rows
    ]
    width, height, parts = _pixels(colors, len(rows[0]), 3, title)
    left, down = width + 8, height - _TOP - 8
    scale = [_color(1 - i / 63) for i in range(64)]
    parts.append(_image(scale, 3, x=left, y=_TOP, width=14, height=down))
    parts += [text(left + 20, y, f"{x:.4g}", fill=MUTED) for x, y in ((high, _TOP + 9), (low, _TOP + down))]
    return document(width + _SCALE_WIDTH, height, parts)


def image(pixels: Any, title: str = "") -> str:
    """Pixels as a picture, as SVG text.

    `pixels`: a Tensor, an array or lists, of shape (height, width) or (height, width, channels): grey, grey
    with alpha, RGB, or RGB with alpha. Integers are from 0 to 255, floats from 0 to 1; what is beyond is cut.
    Raises ArgumentError for another shape.

    >>> image([[0.0, 1.0]]).startswith("<svg")
    True
    """
    listed = _listed(pixels)
    depth = 3 if _depth(listed) == 3 else 2
    rows = _rectangle("image", listed, depth)
    if depth == 2:
        rows = [[[x] for x in row] for row in rows]
    channels = len(rows[0][0])
    if not 1 <= channels <= 4:
        raise ArgumentError(f"image: expected 1 to 4 channels, the last axis, got {channels}")
    flat = [[x for pixel in row for x in pixel] for row in rows]
    factor = 255 if any(isinstance(x, float) for row in flat for x in row) else 1
    lines = [bytes(_byte(x * factor) for x in row) for row in flat]
    width, height, parts = _pixels(lines, len(rows[0]), channels, title)
    return document(width, height, parts)


def _byte(x: float) -> int:
    return 0 if math.isnan(x) else round(min(max(x, 0), 255))


def _color(part: float) -> bytes:
    """The colour at a place from 0 to 1 of the scale."""
    at = part * (len(_COLORS) - 1)
    i = min(int(at), len(_COLORS) - 2)
    return bytes(round(a + (b - a) * (at - i)) for a, b in zip(_COLORS[i], _COLORS[i + 1], strict=True))


def _heading(content: str) -> list[str]:
    return [text(16, 22, content, font_weight="bold", font_size=13)] if content else []


def _pixels(
    lines: Sequence[bytes], columns: int, channels: int, heading: str
) -> tuple[float, float, list[str]]:
    """Width, height and parts of a picture of these lines of pixels, below its title."""
    size = _SIDE / max(columns, len(lines))
    width, height = columns * size, len(lines) * size
    parts = _heading(heading)
    parts.append(_image(lines, channels, x=8, y=_TOP, width=width, height=height))
    return width + 16, height + _TOP + 8, parts


def _image(lines: Sequence[bytes], channels: int, **place: float) -> str:
    """An element with these lines of pixels, as a PNG file (RFC 2083)."""
    kind = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    header = struct.pack(">IIBBBBB", len(lines[0]) // channels, len(lines), 8, kind, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + line for line in lines))
    chunks = ((b"IHDR", header), (b"IDAT", data), (b"IEND", b""))
    png = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", binascii.crc32(name + body))
        for name, body in chunks
    )
    address = f"data:image/png;base64,{base64.b64encode(png).decode()}"
    return element(
        "image", "", href=address, preserveAspectRatio="none", style="image-rendering: pixelated", **place
    )


def _listed(values: Any) -> Any:
    """Nested lists of the numbers of a Tensor or an array; lists as they are."""
    return values.tolist() if hasattr(values, "tolist") else values


def _flat(values: Any) -> Iterator[float]:
    if isinstance(values, (list, tuple)):
        for part in values:
            yield from _flat(part)
    else:
        yield float(values)


def _depth(values: Any) -> int:
    return 1 + _depth(values[0]) if isinstance(values, (list, tuple)) and len(values) > 0 else 0


def _rectangle(name: str, values: Any, depth: int) -> Any:
    """Nested lists of numbers. Raises ArgumentError unless they have `depth` axes, of one size each."""
    if _depth(values) != depth:
        raise ArgumentError(f"{name}: expected {depth} axes with elements, got {_depth(values)}")
    level = [values]
    for _ in range(depth):
        level = [part for parts in level for part in parts]
        if len({len(part) if isinstance(part, (list, tuple)) else None for part in level}) > 1:
            raise ArgumentError(f"{name}: expected rows of one length, got several")
    return values
