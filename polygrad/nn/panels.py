"""Panels: a plane of a packed weight with its rows innermost, in groups of 16.

A vector holds one word of each row of a panel, so the sum of a block needs no shuffles. ggml calls this
repacking. The panels of a plane (rows, ...) are (panels, ..., 16), or (panels, ..., words, 16, 4) if its last
axis is read as words of 4 bytes.
"""

from __future__ import annotations

from polygrad.helpers import ceildiv
from polygrad.nn.integer_products import WORD
from polygrad.tensor.tensor import Tensor
from polygrad.uop.shapes import Shape

PANEL = 16  # rows


def to_panels(plane: Tensor, has_words: bool) -> Tensor:
    """The panels of a plane (rows, ...), the last one with zeros where there are no rows."""
    rows, *sizes = plane.shape
    count = ceildiv(rows, PANEL)
    padding = ((0, count * PANEL - rows), *((0, 0) for _ in sizes))
    if has_words:
        sizes[-1:] = [sizes[-1] // WORD, WORD]
    split = plane.pad(padding).reshape(count, PANEL, *sizes)
    last = split.ndim - has_words
    return split.permute(0, *range(2, last), 1, *range(last, split.ndim))


def with_rows_first(panels: Tensor, has_words: bool) -> Tensor:
    """A view of panels, (panels, 16, ...)."""
    at = panels.ndim - 1 - has_words
    return panels.permute(0, at, *(i for i in range(1, panels.ndim) if i != at))


def by_rows(panels: Tensor, rows: int, has_words: bool) -> Tensor:
    """A view of panels as the plane that they were made of."""
    view = with_rows_first(panels, has_words)
    count, _, *sizes = view.shape
    if has_words:
        sizes[-2:] = [sizes[-2] * WORD]
    return view.reshape(count * PANEL, *sizes)[:rows]


def convert_layout(plane: Tensor, shape: Shape) -> Tensor:
    """A plane by rows in panels of this shape, or panels as a plane of this shape. Returns `plane` itself if
    neither has it.

    >>> from polygrad import Tensor
    >>> from polygrad.nn.panels import convert_layout
    >>> panels = convert_layout(Tensor.zeros(20, 3), (2, 3, 16))
    >>> panels.shape, convert_layout(panels, (20, 3)).shape
    ((2, 3, 16), (20, 3))
    """
    more_axes = len(shape) - plane.ndim
    has_words = abs(more_axes) == 2
    other = plane
    if more_axes in (1, 2) and plane.ndim > 1 and not (has_words and plane.shape[-1] % WORD):
        other = to_panels(plane, has_words)
    elif more_axes in (-1, -2) and shape and plane.shape[0] == ceildiv(shape[0], PANEL):
        if plane.shape[-1 - has_words] == PANEL:
            other = by_rows(plane, shape[0], has_words)
    return other if other.shape == shape else plane
