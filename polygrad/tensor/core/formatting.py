"""Formats values as numpy prints arrays: many elements are shortened, columns are aligned.

Knows Python numbers and shapes, no Tensors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

SHORTENED = 1000  # more elements than this are shortened
_EDGE = 3  # how many elements are printed at each end
_DIGITS = 4  # after the decimal point
_WIDTH = 100


def printed_positions(n: int, shortened: bool) -> list[int]:
    """The positions along an axis of n elements that are printed."""
    return list(range(n)) if not shortened or n <= 2 * _EDGE else [*range(_EDGE), *range(n - _EDGE, n)]


def text_of(shape: tuple[int, ...], row_of: Callable[[tuple[int, ...]], Sequence[Any]], indent: int) -> str:
    """The elements of an array of `shape` as nested brackets, its lines indented by `indent`.

    `row_of(index)` returns the printed elements of the last axis, for an index of the other axes.
    """
    shortened = math.prod(shape) > SHORTENED
    indices: list[tuple[int, ...]] = [()]
    for n in shape[:-1]:
        indices = [(*i, k) for i in indices for k in printed_positions(n, shortened)]
    if 0 in shape:
        return "[]"
    rows = {index: list(row_of(index)) for index in indices}
    formatter = _formatter([x for row in rows.values() for x in row])
    texts = {index: [formatter(x) for x in row] for index, row in rows.items()}
    width = max(len(t) for row in texts.values() for t in row)
    padded_texts = {index: [t.rjust(width) for t in row] for index, row in texts.items()}
    if not shape:
        return texts[()][0]

    def block(index: tuple[int, ...], column: int) -> str:
        n = shape[len(index)]
        cut = shortened and n > 2 * _EDGE
        if len(index) == len(shape) - 1:
            parts = (
                [*padded_texts[index][:_EDGE], "...", *padded_texts[index][_EDGE:]]
                if cut
                else padded_texts[index]
            )
            return "[" + _wrap_lines(parts, column + 1) + "]"
        parts = [block((*index, k), column + 1) for k in printed_positions(n, shortened)]
        parts = [*parts[:_EDGE], "...", *parts[_EDGE:]] if cut else parts
        between = "," + "\n" * (len(shape) - len(index) - 1) + " " * (column + 1)
        return "[" + between.join(parts) + "]"

    return block((), indent)


def _wrap_lines(parts: list[str], column: int) -> str:
    lines, line = [], ""
    for i, part in enumerate(parts):
        item = part + ("," if i < len(parts) - 1 else "")
        if line and column + len(line) + len(item) + 1 > _WIDTH:
            lines.append(line)
            line = item
        else:
            line = f"{line} {item}" if line else item
    return ("\n" + " " * column).join([*lines, line])


def _formatter(values: list[Any]) -> Callable[[Any], str]:
    """A function that formats these values: floats with as many digits as they need, or as powers of ten."""
    if not isinstance(values[0], float):
        return str
    finite = [abs(v) for v in values if math.isfinite(v) and v != 0]
    if finite and (max(finite) >= 1e8 or min(finite) < 1e-4 or max(finite) / min(finite) > 1e6):
        return lambda v: f"{v:.{_DIGITS}e}" if math.isfinite(v) else str(v)
    digits = max([len(f"{v:.{_DIGITS}f}".rstrip("0").partition(".")[2]) for v in finite], default=0)
    return lambda v: (f"{v:.{digits}f}" + ("" if digits else ".")) if math.isfinite(v) else str(v)
