"""What a table of cases is made of: rows of two expressions, ours and torch's, and the operands of both.

A row is data: its expressions are text in which x, y, z and w are the operands, so that it names itself when
it fails. An operand is a shape, a dtype, a range and a layout; its elements follow from those alone.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

# How an operand lies in memory: the same shape as a view of other memory.
VIEWS = ("transposed", "flipped", "expanded", "sliced", "strided")
ROUGH = {"float16": 5e-3, "bfloat16": 4e-2}  # tolerances of floats of 16 bits


@dataclass(frozen=True)
class Operand:
    """Random elements, the same in every process, or those that are `given`."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    low: float = -2.0
    high: float = 2.0
    layout: str = "plain"
    given: tuple[Any, ...] | None = None

    def __str__(self) -> str:
        text = f"{self.dtype}{list(self.shape)}"
        if self.given is not None:
            text += f" = {','.join(map(str, self.given))}"
        return text + ("" if self.layout == "plain" else f" {self.layout}")

    def base(self) -> np.ndarray:
        """What lies in memory, of which the operand is a view."""
        shape = list(self.shape)
        match self.layout:
            case "transposed":
                shape = shape[::-1]
            case "expanded":
                shape = [1, *shape[1:]]
            case "sliced":
                shape = [n + 2 for n in shape]
            case "strided":
                shape = [*shape[:-1], 2 * shape[-1]]
        if self.given is not None:
            return np.array(self.given, self.dtype).reshape(shape)
        rng = np.random.default_rng(zlib.crc32(repr(self).encode()))
        if self.dtype == "bool":
            return rng.integers(0, 2, shape).astype(bool)
        if self.dtype.startswith(("int", "uint")):
            return rng.integers(int(self.low), int(self.high) + 1, shape).astype(self.dtype)
        return rng.uniform(self.low, self.high, shape).astype("float32").astype(self.dtype)

    def view(self, t: Any) -> Any:
        """The operand in a Tensor, ours or torch's, of what lies in memory."""
        match self.layout:
            case "transposed":
                return t.permute(*range(len(self.shape))[::-1])
            case "flipped":
                return t.flip(tuple(range(len(self.shape))))
            case "expanded":
                return t.expand(self.shape)
            case "sliced":
                return t[tuple([slice(1, n + 1) for n in self.shape])]
            case "strided":
                return t[..., ::2]
        return t


def floats(*shape: int, low: float = -2.0, high: float = 2.0, dtype: str = "float32") -> Operand:
    return Operand(shape, dtype, low, high)


def ints(*shape: int, low: int = -9, high: int = 9, dtype: str = "int32") -> Operand:
    return Operand(shape, dtype, low, high)


def bools(*shape: int) -> Operand:
    return Operand(shape, "bool")


def given(values: Any, dtype: str = "float32") -> Operand:
    array = np.array(values, dtype)
    return Operand(array.shape, dtype, given=tuple(array.ravel().tolist()))


@dataclass(frozen=True)
class Row:
    """One case. `tolerance`: relative and absolute, of the value; ten times that of the gradient, fifty times
    that of the second one. `signs`: zeros must have the same sign."""

    ours: str
    theirs: str
    operands: tuple[Operand, ...]
    tolerance: float
    gradient: bool
    second: bool
    signs: bool

    @property
    def name(self) -> str:
        return "; ".join([self.ours, *map(str, self.operands)])

    def is_in(self, part: int, offset: int = 0) -> bool:
        """Whether it is in one `part`-th of a table, the same in every process."""
        return zlib.crc32(self.name.encode()) % part == offset


class Table:
    """Rows of one family."""

    def __init__(self, family: str) -> None:
        self.family = family
        self.rows: list[Row] = []
        self._known: set[tuple[str, str, bool]] = set()

    def add(
        self,
        ours: str,
        theirs: str,
        *operands: Operand,
        tolerance: float = 2e-5,
        gradient: bool = True,
        second: bool = False,
        signs: bool = False,
        views: Sequence[str] = (),
        dtypes: Iterable[str] = (),
    ) -> None:
        """A row, one more for each of `views` of the first operand, and for each of `dtypes` of all floats
        (or of all integers) among the operands. `theirs`: "" where torch's expression is ours."""
        row = Row(ours, theirs or ours, operands, tolerance, gradient, second, signs)
        self._append(row)
        for layout in views:
            self._append(
                replace(row, operands=(replace(operands[0], layout=layout), *operands[1:]), second=False)
            )
        for dtype in dtypes:
            kind = "float" if "float" in dtype else "int"
            changed = tuple(replace(o, dtype=dtype) if kind in o.dtype else o for o in operands)
            rough = max(tolerance, ROUGH.get(dtype, 0.0))
            self._append(replace(row, operands=changed, second=False, tolerance=rough))

    def _append(self, row: Row) -> None:
        """A case that is there already is not added again: loops over arguments meet some twice."""
        case = row.name, row.theirs, row.gradient
        if case not in self._known:
            self._known.add(case)
            self.rows.append(row)
