"""Grids of workgroups in a Program: sizes, possibly with Variables, as plain data.

A size is a number, the name of a Variable, or `(op, operand)` and `(op, a, b)` of sizes. Knows no UOps.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

GridSize = Any  # int | str | tuple[str, GridSize] | tuple[str, GridSize, GridSize]
Grid = tuple[GridSize, GridSize, GridSize]  # the numbers of workgroups along x, y and z

_UNARY: dict[str, Callable[[int], int]] = {"NEG": operator.neg}
_BINARY: dict[str, Callable[[int, int], int]] = {
    "ADD": operator.add,
    "SUB": operator.sub,
    "MUL": operator.mul,
    "IDIV": operator.floordiv,
    "MOD": operator.mod,
    "MAX": max,
    "SHL": operator.lshift,
    "SHR": operator.rshift,
    "AND": operator.and_,
}
GRID_OPS = frozenset({*_UNARY, *_BINARY})


def grid_size(size: GridSize, variables: Mapping[str, int]) -> int:
    """Evaluate a size with these values of the Variables."""
    if isinstance(size, int):
        return size
    if isinstance(size, str):
        return variables[size]
    op, *operands = size
    values = [grid_size(x, variables) for x in operands]
    return _UNARY[op](*values) if len(values) == 1 else _BINARY[op](*values)


def is_grid_size(size: Any, variables: frozenset[str]) -> bool:
    """Whether this is a size that uses only these Variables."""
    if isinstance(size, str):
        return size in variables
    if not isinstance(size, tuple):
        return type(size) is int
    op, *operands = size or ("",)
    operations = _UNARY if len(operands) == 1 else _BINARY if len(operands) == 2 else {}
    return op in operations and all(is_grid_size(x, variables) for x in operands)


def as_tuples(size: Any) -> GridSize:
    """A size from JSON, with tuples in the place of lists."""
    return tuple(map(as_tuples, size)) if isinstance(size, list) else size
