"""ggml's blocks of quantized numbers as float32 Tensors, lazily, on any device.

A block is a row of bytes: small integers, and the scales (and offsets) of its sub-blocks. What each kind
holds is said above its function, as in ggml's `ggml-common.h`: f16 d is a half, q[16] are bytes, 4 bits of
each are a number, low bits first.
"""

from __future__ import annotations

from collections.abc import Callable

from polygrad.dtype import dtypes
from polygrad.errors import ArgumentError
from polygrad.tensor.tensor import Tensor


def dequantize(name: str, blocks: Tensor) -> Tensor:
    """Numbers of the kind `name` (as `Q4_0`): (n, bytes of a block) uint8 to (n, numbers of a block) float32.

    Raises ArgumentError for an unknown kind.
    """
    if name not in _KINDS:
        raise ArgumentError(f"dequantize: expected one of {', '.join(_KINDS)}, got {name!r}")
    return _KINDS[name](blocks)


def _half(b: Tensor, at: int) -> Tensor:
    """The half in bytes `at` and `at + 1`, (n, 1) float32."""
    bits = b[:, at : at + 1].cast(dtypes.uint16) + b[:, at + 1 : at + 2].cast(dtypes.uint16) * 256
    return bits.bitcast(dtypes.float16).float()


def _nibbles(q: Tensor) -> Tensor:
    """Along the last axis, the low 4 bits of all bytes, then the high ones."""
    return (q & 15).cat(q >> 4, dim=-1)


def _fifth_bits(b: Tensor, at: int) -> Tensor:
    """32 bits in 4 bytes, as 16 where one is set: the fifth bits of 32 numbers."""
    shifts = Tensor([1, 2, 4, 8, 16, 32, 64, 128], dtype=dtypes.uint8, device=b.device)
    bits = (b[:, at : at + 4].unsqueeze(-1) & shifts).ne(0)
    return bits.reshape(-1, 32).cast(dtypes.uint8) * 16


def _q4_0(b: Tensor) -> Tensor:
    """f16 d | q[16]: d * (q - 8)."""
    return (_nibbles(b[:, 2:18]).float() - 8) * _half(b, 0)


def _q4_1(b: Tensor) -> Tensor:
    """f16 d | f16 m | q[16]: d * q + m."""
    return _nibbles(b[:, 4:20]).float() * _half(b, 0) + _half(b, 2)


def _q5_0(b: Tensor) -> Tensor:
    """f16 d | fifth bits[4] | q[16]: d * (q - 16)."""
    return ((_nibbles(b[:, 6:22]) + _fifth_bits(b, 2)).float() - 16) * _half(b, 0)


def _q5_1(b: Tensor) -> Tensor:
    """f16 d | f16 m | fifth bits[4] | q[16]: d * q + m."""
    return (_nibbles(b[:, 8:24]) + _fifth_bits(b, 4)).float() * _half(b, 0) + _half(b, 2)


def _q8_0(b: Tensor) -> Tensor:
    """f16 d | int8 q[32]: d * q."""
    return b[:, 2:34].bitcast(dtypes.int8).float() * _half(b, 0)


def _scales_and_offsets(b: Tensor) -> tuple[Tensor, Tensor]:
    """f16 d | f16 m | 8 pairs of 6 bits in 12 bytes: d * scale and m * offset of 8 sub-blocks, (n, 8, 1).

    The first four pairs are the low 6 bits of bytes 0..3 and 4..7. Of the others bytes 8..11 have the low 4
    bits, and the top 2 bits of the first eight bytes the rest.
    """
    low, middle, high = b[:, 4:8], b[:, 8:12], b[:, 12:16]
    scales = (low & 63).cat((high & 15) + (low >> 6) * 16, dim=1)
    offsets = (middle & 63).cat((high >> 4) + (middle >> 6) * 16, dim=1)
    return (scales.float() * _half(b, 0)).unsqueeze(-1), (offsets.float() * _half(b, 2)).unsqueeze(-1)


def _q4_k(b: Tensor) -> Tensor:
    """scales and offsets[16] | q[4][32], whose low and high halves are sub-blocks: d * q - m."""
    scales, offsets = _scales_and_offsets(b)
    q = _nibbles(b[:, 16:144].reshape(-1, 4, 32)).reshape(-1, 8, 32)
    return (q.float() * scales - offsets).reshape(-1, 256)


def _q5_k(b: Tensor) -> Tensor:
    """scales and offsets[16] | fifth bits[32], bit i of each for sub-block i | q[4][32]: d * q - m."""
    scales, offsets = _scales_and_offsets(b)
    q = _nibbles(b[:, 48:176].reshape(-1, 4, 32)).reshape(-1, 8, 32)
    shifts = Tensor([1, 2, 4, 8, 16, 32, 64, 128], dtype=dtypes.uint8, device=b.device).reshape(8, 1)
    fifth = (b[:, 16:48].unsqueeze(1) & shifts).ne(0).cast(dtypes.uint8) * 16
    return ((q + fifth).float() * scales - offsets).reshape(-1, 256)


def _q6_k(b: Tensor) -> Tensor:
    """low 4 bits[2][64] | high 2 bits[2][32] | int8 scales[16] | f16 d: d * scale * (q - 32).

    Each half of 128 numbers has its low bits as nibbles of 64 bytes, its high bits as four 2-bit parts of 32.
    """
    low = _nibbles(b[:, :128].reshape(-1, 2, 64))  # (n, 2, 128)
    parts = b[:, 128:192].reshape(-1, 2, 32)
    high = (parts & 3).cat((parts >> 2) & 3, (parts >> 4) & 3, parts >> 6, dim=-1)
    q = (low + high * 16).float() - 32
    scales = b[:, 192:208].bitcast(dtypes.int8).float() * _half(b, 208)
    return (q.reshape(-1, 16, 16) * scales.unsqueeze(-1)).reshape(-1, 256)


_KINDS: dict[str, Callable[[Tensor], Tensor]] = {
    "Q4_0": _q4_0,
    "Q4_1": _q4_1,
    "Q5_0": _q5_0,
    "Q5_1": _q5_1,
    "Q8_0": _q8_0,
    "Q4_K": _q4_k,
    "Q5_K": _q5_k,
    "Q6_K": _q6_k,
}
