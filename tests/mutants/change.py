"""A change of a file's text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Change:
    """Characters `start` to `end` become `text`."""

    kind: str
    start: int
    end: int
    text: str
    line: int  # 1-based
    function: int = 0  # the first line of the function that it is in; 0 for a module or a class
    name: str = ""  # of that function; of the class for its special methods

    def apply(self, source: str) -> str:
        return source[: self.start] + self.text + source[self.end :]


@dataclass(frozen=True)
class Mutant:
    """A change of a file, by its number in a sample."""

    number: int
    path: str  # relative to the checkout
    change: Change


# Is given a mutant and what tries it: this returns the test that fails, and how, or nothing.
Note = Callable[[Mutant, Callable[[], str]], None]
