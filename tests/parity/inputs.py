"""Inputs of the comparison programs, equal in every library: numbers from Python's generator, realized."""

from __future__ import annotations

import math
import random
from typing import Any


class Inputs:
    """Makes realized tensors of `lib`, the module `polygrad` or `tinygrad`, equal ones in equal order."""

    def __init__(self, lib: Any) -> None:
        self.lib, self.random = lib, random.Random(0)

    def normal(self, *shape: int, scale: float = 1.0) -> Any:
        """float32 of mean 0."""
        return self._of([self.random.gauss(0, scale) for _ in range(math.prod(shape))], shape, "float32")

    def positive(self, *shape: int) -> Any:
        """float32 in 0.5 .. 1.5."""
        return self._of([self.random.uniform(0.5, 1.5) for _ in range(math.prod(shape))], shape, "float32")

    def integers(self, high: int, *shape: int) -> Any:
        """int32 in 0 .. high - 1."""
        return self._of([self.random.randrange(high) for _ in range(math.prod(shape))], shape, "int32")

    def zeros(self, *shape: int) -> Any:
        """float32."""
        return self._of([0.0] * math.prod(shape), shape, "float32")

    def flags(self, *shape: int) -> Any:
        """bool, half of them true."""
        return self._of([self.random.random() < 0.5 for _ in range(math.prod(shape))], shape, "bool")

    def _of(self, values: list[Any], shape: tuple[int, ...], dtype: str) -> Any:
        return self.lib.Tensor(values, dtype=dtype).reshape(*shape).realize()
