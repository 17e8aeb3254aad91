"""The key-value cache: keys and values of past tokens, so that the model processes each token once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from polygrad import nn
from polygrad.models.attention import Visibility
from polygrad.tensor.core.base import DTypeLike
from polygrad.tensor.tensor import Tensor


def device_of(model: Any) -> str | None:
    """The device that a model's weights are on; None for a model without any."""
    parameter = next(iter(nn.state.get_parameters(model)), None)
    return None if parameter is None else parameter.device


class KeyValueCache:
    """For each layer keys and values of `slots` sequences of up to `capacity` tokens, as buffers (slots,
    heads, capacity, size) of `dtype`, on `device`."""

    def __init__(
        self,
        layers: int,
        slots: int,
        heads: int,
        capacity: int,
        size: int,
        dtype: DTypeLike = "float32",
        device: str | None = None,
    ) -> None:
        self.slots, self.capacity, self.device = slots, capacity, device

        def buffers() -> list[Tensor]:
            shape = (slots, heads, capacity, size)
            zeros = Tensor.zeros(*shape, dtype=dtype, device=device)
            return [nn.Buffer(zeros, persistent=False) for _ in range(layers)]

        self.keys, self.values = buffers(), buffers()

    def arange(self, count: int) -> Tensor:
        """0 to `count - 1`, int32, on the cache's device."""
        return Tensor.arange(count, dtype="int32", device=self.device)

    @property
    def nbytes(self) -> int:
        """Bytes of all buffers."""
        return sum(t.nbytes() for t in (*self.keys, *self.values))


@dataclass(frozen=True)
class TokenSpan:
    """A span of `length` tokens of one sequence, from position `start` on, in the cache's `slot`.

    `start` and `slot` are ints or Variables. Positions from `start` on count as empty.
    """

    cache: KeyValueCache
    slot: Any
    start: Any
    length: int

    @property
    def positions(self) -> Tensor:
        """The positions of the tokens, int32 (1, length)."""
        return (self.cache.arange(self.length) + self.start).unsqueeze(0)

    @property
    def visibility(self) -> Visibility:
        end = self.start + self.length
        return Visibility(self.positions, self.cache.arange(self.cache.capacity)[:end])

    def rows(self, x: Tensor) -> Tensor:
        """The row of this sequence in x (slots, ...)."""
        return x[self.slot : self.slot + 1]

    def extend(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """See `CacheView`."""
        slot, end = self.slot, self.start + self.length
        results = []
        for buffer, new in ((self.cache.keys[layer], key), (self.cache.values[layer], value)):
            buffer[slot : slot + 1, :, self.start : end].assign(new.cast(buffer.dtype))
            results.append(buffer[slot : slot + 1, :, :end].cast(new.dtype))
        return results[0], results[1]


@dataclass(frozen=True)
class NextTokens:
    """One token of each sequence, at `positions`, int32 (slots,). The first `length` positions are read: an
    int or a Variable that is above all positions."""

    cache: KeyValueCache
    token_positions: Tensor
    length: Any

    @property
    def positions(self) -> Tensor:
        """The positions of the tokens, int32 (slots, 1)."""
        return self.token_positions.unsqueeze(1)

    @property
    def visibility(self) -> Visibility:
        return Visibility(self.positions, self.cache.arange(self.cache.capacity)[: self.length])

    def rows(self, x: Tensor) -> Tensor:
        """The rows of these sequences in x (slots, ...): all of them."""
        return x

    def extend(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """See `CacheView`."""
        slots, heads = key.shape[:2]
        slot = self.cache.arange(slots).reshape(slots, 1)
        head = self.cache.arange(heads).reshape(1, heads)
        at = self.token_positions.reshape(slots, 1)
        results = []
        for buffer, new in ((self.cache.keys[layer], key), (self.cache.values[layer], value)):
            buffer[slot, head, at] = new.squeeze(2).cast(buffer.dtype)
            results.append(buffer[:, :, : self.length].cast(new.dtype))
        return results[0], results[1]
