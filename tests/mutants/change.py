"""A change of a file's text."""

from __future__ import annotations

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
    name: str = ""  # of that function, or of the one around that

    def apply(self, source: str) -> str:
        return source[: self.start] + self.text + source[self.end :]
