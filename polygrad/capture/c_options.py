"""`COptions`: how a captured step is written as C. `c_file` writes it, on native hosts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from polygrad.errors import ArgumentError

WIDTHS = (16, 32, 64)
_MAX_THREADS = 1024


@dataclass(frozen=True)
class COptions:
    """How a step is written as C: `step.save("model.c", c=COptions(vectors=(16,)))`.

    name: what all public names begin with; by default that of the file.
    vectors: the widths in bytes, of 16, 32 and 64, for which the file has vector code. Scalar code is always
        there. The compiler's target decides which is taken.
    embed: so many bytes of weights are at most in the file itself, smallest tensors first. Larger ones are in
        a safetensors file beside it.
    threads: the most threads that a run is divided among. With more than 1 the model has a `parallel_for`.
    selftest: whether the file has a test, whose results device CPU computes.

    Raises ArgumentError.
    """

    name: str = ""
    vectors: tuple[int, ...] = WIDTHS
    embed: int = 1 << 20
    threads: int = 1
    selftest: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise ArgumentError(f"COptions: name: expected a text, got {self.name!r}")
        if not isinstance(self.vectors, tuple) or not set(self.vectors) <= set(WIDTHS):
            raise ArgumentError(
                f"COptions: vectors: expected a tuple of some of {WIDTHS}, got {self.vectors}"
            )
        if type(self.embed) is not int or self.embed < 0:
            raise ArgumentError(f"COptions: embed: expected a number of bytes, got {self.embed!r}")
        if type(self.threads) is not int or not 1 <= self.threads <= _MAX_THREADS:
            raise ArgumentError(f"COptions: threads: expected 1 to {_MAX_THREADS}, got {self.threads!r}")


@dataclass(frozen=True)
class Example:
    """What a step ran on: the bytes of each input by its name, and the values of its Variables."""

    inputs: Mapping[str, memoryview]
    variables: Mapping[str, int]


def is_c_file(path: str | os.PathLike[str]) -> bool:
    """Whether a step that is saved to `path` is to be C."""
    return Path(path).suffix == ".c"
