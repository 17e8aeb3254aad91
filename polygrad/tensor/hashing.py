"""Hashes and random bits of integers: Keccak (SHA-3), a tree hash, threefry.

"FIPS 202: SHA-3 standard" (2015). Every device computes the same bits, because all arithmetic is on integers.
"""

from __future__ import annotations

from typing import Any, Self

from polygrad.dtype import dtypes
from polygrad.errors import ArgumentError, DTypeError, ShapeError
from polygrad.helpers import ceildiv, prod
from polygrad.tensor.indexing import IndexingMixin
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

# name: bytes of a block, the byte that ends a message, bytes of the result
_KINDS = {
    "sha3_224": (144, 0x06, 28),
    "sha3_256": (136, 0x06, 32),
    "sha3_384": (104, 0x06, 48),
    "sha3_512": (72, 0x06, 64),
    "shake_128": (168, 0x1F, 16),
    "shake_256": (136, 0x1F, 32),
}
_LANES, _ROUNDS = 25, 24
_CHUNK, _LEAVES = 4096, 256  # of `hash`: bytes of a leaf, leaves of a node


def _round_constants() -> list[int]:
    """The constants of the rounds, from the linear feedback shift register that defines them."""
    out, register = [], 1
    for _ in range(_ROUNDS):
        word = 0
        for j in range(7):
            if register & 1:
                word |= 1 << ((1 << j) - 1)
            register = (register << 1) ^ (0x171 if register & 0x80 else 0)
        out.append(word)
    return out


def _places() -> tuple[list[int], list[int]]:
    """For each lane after a round's permutation: the lane that it comes from, and its rotation in bits."""
    shifts, source = [0] * _LANES, [0] * _LANES
    x, y = 1, 0
    for t in range(_ROUNDS):
        shifts[x + 5 * y] = (t + 1) * (t + 2) // 2 % 64
        x, y = y, (2 * x + 3 * y) % 5
    for x in range(5):
        for y in range(5):
            source[y + 5 * ((2 * x + 3 * y) % 5)] = x + 5 * y
    return source, [shifts[i] for i in source]


class HashingMixin(IndexingMixin):
    """Hashes and random bits."""

    __slots__ = ()

    def threefry(self, seed: Self) -> Self:
        """Random bits (uint64): a hash of this counter and the key `seed`, both uint64. Raises DTypeError.

        20 rounds of Threefry-2x32 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).

        >>> Tensor([1], dtype="uint64").threefry(Tensor([2], dtype="uint64")).dtype.name
        'uint64'
        """
        if self.dtype is not dtypes.uint64 or seed.dtype is not dtypes.uint64:
            raise DTypeError(f"threefry: expected uint64 tensors, got {self.dtype} and {seed.dtype}")
        a, b = self._pair(seed)
        return self._join(UOp(Ops.THREEFRY, dtypes.uint64, (a, b)), seed)

    @classmethod
    def random_bits(cls, key: Self, counter: Self, num: int) -> Self:
        """`num` random words (uint32) of a key and a counter, two uint32 words each. Raises ArgumentError.

        The bits are tinygrad's.

        >>> Tensor.random_bits(Tensor([1, 2], dtype="uint32"), Tensor([0, 0], dtype="uint32"), 3).shape
        (3,)
        """
        if num < 0 or num >= 1 << 32 or key.shape != (2,) or counter.shape != (2,):
            raise ArgumentError(
                "random_bits: expected a key and a counter of shape (2,) and 0 <= num < 2**32, got "
                f"{key.shape}, {counter.shape} and {num}"
            )
        draw_key = key._threefry_words(counter.shrink([(0, 1)]), counter.shrink([(1, 2)]))
        half = ceildiv(num, 2)
        index = key._of(UOp(Ops.ARANGE, dtypes.uint32, (), half), key._device)
        return draw_key._threefry_words(index, index + half).shrink([(0, num)])

    def _threefry_words(self, low: Self, high: Self) -> Self:
        """threefry of the counters high << 32 | low by this key, the low words before the high ones."""
        words = [x.cast(dtypes.uint64) for x in (low, high)]
        key = [self.shrink([(i, i + 1)]).cast(dtypes.uint64) for i in (0, 1)]
        bits = ((words[1] << 32) | words[0]).threefry((key[1] << 32) | key[0])
        return bits.cast(dtypes.uint32).cat((bits >> 32).cast(dtypes.uint32))

    def keccak(self, cfg: str | tuple[int, int] = "sha3_256") -> Self:
        """The SHA-3 hash of the bytes of each row: (..., n) gives (..., size), uint8.

        `cfg`: 'sha3_224', 'sha3_256', 'sha3_384', 'sha3_512', 'shake_128' (16 bytes), 'shake_256' (32), or
        the bytes of a block and the byte that ends a message. Raises ArgumentError, ShapeError.

        >>> Tensor([97, 98, 99], dtype="uint8").keccak().shrink(((0, 4),)).tolist()
        [58, 152, 93, 167]
        """
        if isinstance(cfg, str):
            if cfg not in _KINDS:
                raise ArgumentError(f"keccak: expected one of {', '.join(_KINDS)}, got {cfg!r}")
            rate, end, size = _KINDS[cfg]
        else:
            (rate, end), size = cfg, (200 - cfg[0]) // 2
        if not self.shape or not all(isinstance(n, int) for n in self.shape):
            raise ShapeError(f"keccak: expected rows of fixed sizes, got shape {self.shape}")
        lead = self.shape[:-1]
        rows = self._as_bytes().reshape(prod(lead), int(self.shape[-1]) * self.dtype.itemsize)
        count, n = int(rows.shape[0]), int(rows.shape[1])
        blocks = n // rate + 1
        padding = [0] * (blocks * rate - n)
        padding[0] ^= end
        padding[-1] ^= 0x80
        tail = self._table(padding, dtypes.uint8).reshape(1, -1).expand(count, len(padding))
        message = rows.cat(tail, dim=1).reshape(count, blocks, rate)
        words = message._join_elements(8).reshape(count, blocks, rate // 8)
        source, shifts = _places()
        order = self._table(source, dtypes.int32)
        left, right = (self._table([(s if i else -s) % 64 for s in shifts], dtypes.uint64) for i in (1, 0))
        constants = self._table(_round_constants(), dtypes.uint64)
        state = words._of(UOp.const(dtypes.uint64, 0).reshape((1, 1)).expand((count, _LANES)), self._device)
        for i in range(blocks):
            block = words.shrink([None, (i, i + 1), None]).squeeze(1)
            state = (state ^ block.pad([None, (0, _LANES - rate // 8)]))._compute_once()
            turning = constants
            for _ in range(_ROUNDS):
                state = state._keccak_round(order, left, right, turning.shrink([(0, 1)]))._compute_once()
                turning = turning.roll(-1)._compute_once()
        shift = self._of(UOp(Ops.ARANGE, dtypes.uint64, (), 8), self._device) * 8
        out = (state.unsqueeze(-1) >> shift).cast(dtypes.uint8).flatten(1)
        return out.shrink([None, (0, size)]).reshape(*lead, size)

    def _keccak_round(self, order: Self, left: Self, right: Self, constant: Self) -> Self:
        """One of the 24 rounds of the permutation of 25 words."""
        count = self.shape[0]
        lanes = self.reshape(count, 5, 5)  # y, x
        rows = [lanes.shrink([None, (y, y + 1), None]) for y in range(5)]
        parity = rows[0] ^ rows[1] ^ rows[2] ^ rows[3] ^ rows[4]
        parity = parity._compute_once()
        after = parity.roll(-1, 2)
        mixed = (lanes ^ parity.roll(1, 2) ^ ((after << 1) | (after >> 63))).reshape(count, _LANES)
        permuted = mixed._compute_once()[:, order]
        # a shift by 0 on both sides leaves the lane as it is
        rotated_lanes = ((permuted << left) | (permuted >> right)).reshape(count, 5, 5)._compute_once()
        chi = rotated_lanes ^ ((rotated_lanes.roll(-1, 2) ^ ((1 << 64) - 1)) & rotated_lanes.roll(-2, 2))
        first = constant.pad([(0, _LANES - 1)])
        return chi.reshape(count, _LANES) ^ first

    def hash(self) -> Self:
        """A hash of 16 bytes (uint8) of all bytes of this Tensor, in row-major order: tinygrad's.

        A tree of SHAKE128 over pieces of 4,096 bytes, padded with zeros to a multiple of 2**20.

        >>> Tensor([1, 2, 3]).hash().shape
        (16,)
        """
        data = self._as_bytes().flatten()
        size = _CHUNK * _LEAVES
        while True:
            n = int(data.shape[0])
            count = max(ceildiv(n, size), 1)
            leaves = data.pad([(0, count * size - n)]).reshape(-1, _CHUNK).keccak("shake_128")
            data = leaves.reshape(count, -1).keccak("shake_128").flatten()
            if count == 1:
                return data

    def _as_bytes(self) -> Self:
        """The bytes of each row (uint8)."""
        if self.dtype is dtypes.uint8:
            return self
        return self.cast(dtypes.uint8) if self.dtype.is_bool else self.bitcast(dtypes.uint8)

    def _table(self, values: list[int], dtype: Any) -> Self:
        """Integers as a stored Tensor on this device."""
        return type(self)(values, device=self.device, dtype=dtype)  # type: ignore[call-arg]
