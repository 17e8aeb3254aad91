"""What a proof is made of: calls of a public name, on operands, that are evaluated here and by a peer.

An expression is text. In it `f` is the name under test as the place has it (`Tensor.exp`, `torch.exp`), x, y,
z and w are the operands, `dt` has the peer's dtypes, and `make` makes a Tensor of an array. The same text is
evaluated on both sides, so that a call that has to be said otherwise is a difference.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tensor.tables.rows import Operand, bools, floats, given, ints

# Places whose functions are methods of Tensor here: one table of calls is for all of them.
TENSOR_PLACES = ("tinygrad.Tensor", "torch.Tensor", "torch", "torch.nn.functional")


@dataclass(frozen=True)
class Call:
    """One call. `place`: what it is for, "" for each that has the name. `is_refused`: both refuse it."""

    name: str
    expression: str
    operands: tuple[Operand, ...] = ()
    place: str = ""
    gradient: bool = True
    tolerance: float = 2e-5
    is_refused: bool = False

    def __str__(self) -> str:
        where = f" [{self.place}]" if self.place else ""
        return "; ".join([f"{self.name}: {self.expression}{where}", *map(str, self.operands)])

    @property
    def order(self) -> int:
        """A number that puts calls in an order that has nothing to do with the table's."""
        return zlib.crc32(repr(self).encode())

    def is_for(self, place: str) -> bool:
        """Whether it is meant for the place. Of NaN, infinities and numbers whose square is one tinygrad says
        nothing: it takes what the device makes of them."""
        if not place.startswith(self.place):
            return False
        given = [v for o in self.operands for v in o.given or ()]
        return not place.startswith("tinygrad") or all(abs(v) < 1e18 for v in given)


class Calls:
    """A table of calls."""

    def __init__(self) -> None:
        self.by_name: dict[str, list[Call]] = {}

    def add(
        self,
        names: str,
        expressions: str | Iterable[str],
        *operands: Operand | tuple[Operand, ...],
        place: str = "",
        gradient: bool = True,
        tolerance: float = 2e-5,
        is_refused: bool = False,
    ) -> None:
        """Each of `names` with each of `expressions`: arguments, or with a leading "=" the expression itself.

        `operands`: each in turn is x, or all of a tuple are x, y, z.
        """
        texts = [expressions] if isinstance(expressions, str) else list(expressions)
        for name in names.split():
            calls = self.by_name.setdefault(name, [])
            for text in texts:
                text = text[1:] if text.startswith("=") else f"f({text})"
                call = Call(name, text, (), place, gradient, tolerance, is_refused)
                for chosen in operands or ((),):
                    chosen = distinct(chosen if isinstance(chosen, tuple) else (chosen,))
                    made = replace(call, operands=chosen)
                    if made not in calls:
                        calls.append(made)

    def of(self, name: str, place: str) -> list[Call]:
        """The calls that prove a name of a place, in an order of their own."""
        return sorted((c for c in self.by_name.get(name, ()) if c.is_for(place)), key=lambda c: c.order)


def distinct(operands: tuple[Operand, ...]) -> tuple[Operand, ...]:
    """The operands; those that would have the elements of an earlier one have others."""
    return tuple(
        o if o.given is not None or o not in operands[:i] else replace(o, high=o.high + 0.125 * i)
        for i, o in enumerate(operands)
    )


def laid(operand: Operand, layout: str) -> Operand:
    """The operand as a view of other memory."""
    return replace(operand, layout=layout)


def numbers(low: float = -3.0, high: float = 3.0) -> tuple[Operand, ...]:
    """Floats of several shapes, dtypes and layouts."""
    matrix = floats(3, 4, low=low, high=high)
    return (
        matrix, laid(matrix, "transposed"), laid(matrix, "strided"), floats(low=low, high=high),
        floats(0, 3, low=low, high=high), replace(matrix, dtype="float64"), replace(matrix, dtype="float16"),
    )  # fmt: skip


def integers(low: int = -9, high: int = 9) -> tuple[Operand, ...]:
    return (
        ints(3, 4, low=low, high=high), ints(3, 4, low=low, high=high, dtype="int64"),
        ints(3, 4, low=max(low, 0), high=max(high, 1), dtype="uint8"), ints(low=low, high=high), ints(0, 3),
    )  # fmt: skip


BOOLS = (bools(3, 4), laid(bools(3, 4), "transposed"), bools())
SPECIALS = given((math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, 1e30, -1e30, 1e-30))
# One short row each: a NaN, infinities, ties.
ROWS = given(
    [
        [1, math.nan, 3, 0],
        [math.inf, 1, 2, 0],
        [-math.inf, 1, 2, 5],
        [math.inf, -math.inf, 1, 2],
        [2, 1, 2, 1],
    ]
)
TIES = given([[1, 2, 2, 0], [0, 0, 0, 0], [5, -5, 5, -5]])
