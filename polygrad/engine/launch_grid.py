"""The grid of a linear kernel as a Launch has it."""

from __future__ import annotations

from collections.abc import Iterable

from polygrad.codegen.lower.bind_workgroups import grid_of
from polygrad.errors import InternalError
from polygrad.runtime.grid import GRID_OPS, GridSize
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


def launch_grid(linear: Iterable[UOp]) -> tuple[GridSize, GridSize, GridSize]:
    """How many workgroups a linear kernel runs on along x, y and z. Raises InternalError for sizes that are
    no arithmetic of Variables."""
    x, y, z = map(_size, grid_of(linear))
    return x, y, z


def _size(size: UOp) -> GridSize:
    found: dict[UOp, GridSize] = {}
    for node in size.toposort():
        if node.op is Ops.CONST:
            found[node] = node.arg
        elif node.op is Ops.DEFINE_VAR:
            found[node] = node.arg.name
        elif node.op.name in GRID_OPS:
            found[node] = (node.op.name, *(found[s] for s in node.src))
        else:
            raise InternalError(
                f"grid: expected an expression of {', '.join(sorted(GRID_OPS))}, got {node.op}"
            )
    return found[size]
