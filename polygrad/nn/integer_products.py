"""Products of packed weights with activations in 8 bits: sums of products of bytes, in blocks.

    y[m, n] = sum over blocks b of  scale[n, b] * (s[m, b] * dot[m, n, b] - zero * t[m, b])
                                    + offset[n, b] * t[m, b]
    dot[m, n, b] = sum over i of code[n, b, i] * q[m, b, i],  exact, in int32

A block of x has a scale s and integers q of 8 bits: x = s * q but for rounding; t is s times the sum of q. A
weight is scale * (code - zero) + offset, where a code is an unsigned integer of at most 8 bits: processors
multiply unsigned bytes by signed ones. ggml's kernels for processors compute the same sums, of blocks of 32
or 256 numbers.

The last axis of codes is four bytes that are neighbours in memory: their products become one dot product
(codegen/lower/dot_words.py). The axes before it are the words of a block, in the order of its numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from polygrad.dtype import dtypes
from polygrad.helpers import prod
from polygrad.nn.quantization import Planes, split_bits
from polygrad.tensor.tensor import Tensor

WORD = 4  # bytes


class Codes(NamedTuple):
    """A matrix of some rows as unsigned integers.

    `codes`: uint8 (*rows, *blocks, *words, 4). `scales` and `offsets` (None: 0): float32 (*rows, *blocks).
    `zero`: the code that stands for 0 where there is no offset.
    """

    codes: Tensor
    scales: Tensor
    zero: int = 0
    offsets: Tensor | None = None


class Integers(NamedTuple):
    """Rows of floats as integers: `q` int8 (*rows, blocks, size), `scales` float32 (*rows, blocks), and
    `totals`, the sums of the blocks times their scales."""

    q: Tensor
    scales: Tensor
    totals: Tensor


def to_int8(x: Tensor, size: int) -> Integers:
    """Floats (*rows, columns) as integers of -127 to 127, with a scale for each block of `size`. Products
    that read the same Tensor share them."""
    blocks = x.float().reshape(*x.shape[:-1], x.shape[-1] // size, size)
    scales = (blocks.abs().max(-1) / 127).contiguous()
    inverse = scales.ne(0).where(scales.ne(0).where(scales, 1.0).reciprocal(), 0.0)
    q = (blocks * inverse.unsqueeze(-1)).round().cast(dtypes.int8).contiguous()
    totals = (q.cast(dtypes.int32).sum(-1, dtype=dtypes.int32).float() * scales).contiguous()
    return Integers(q, scales, totals)


def multiply_integers(x: Tensor, weight: Codes, row_axes: int) -> Tensor:
    """x (*lead, columns) times each row of a matrix whose rows have `row_axes` axes: float32 (*lead, *rows).

    An element of x is rounded by at most 1/254 of the largest magnitude of its block.
    """
    codes, scales, zero, offsets = weight
    lead, ones = x.shape[:-1], (1,) * row_axes
    blocks, words = scales.shape[row_axes:], codes.shape[scales.ndim :]
    quantized = to_int8(x, prod(words))
    q = quantized.q.reshape(*lead, *ones, *blocks, *words).cast(dtypes.int32)
    dots = codes.cast(dtypes.int32).mul(q).sum(tuple(range(-len(words), 0)), dtype=dtypes.int32).float()
    s, t = (part.reshape(*lead, *ones, *blocks) for part in (quantized.scales, quantized.totals))
    terms = scales * (dots * s - t * zero if zero else dots * s)
    if offsets is not None:
        terms = terms + offsets * t
    return terms.sum(tuple(range(-len(blocks), 0)))


# --- the codes of each kind, of planes as quantization.py has them, but bytes are (*rows, ..., words, 4)


def _parts(x: Tensor, count: int, bits: int) -> Tensor:
    """(..., words, 4) bytes to (..., count, words, 4): see `split_bits`."""
    return split_bits(x, count, bits, axis=-3)


def _bytes(x: Tensor) -> Tensor:
    return x.cast(dtypes.uint8)


def _offset_by_128(p: Planes) -> Tensor:
    return p["bits"].bitcast(dtypes.uint8) ^ 128


def _int8(p: Planes) -> Codes:
    """Blocks of 32 numbers of a row, which share its scale."""
    codes = _offset_by_128(p)
    *rows, _, words, _ = codes.shape
    blocks = words // 8
    scales = p["scales"].float().expand(*rows, blocks)
    return Codes(codes.reshape(*rows, blocks, 8, WORD), scales, 128)


def _int4(p: Planes) -> Codes:
    scales = p["scales"].float()
    return Codes(_bytes(_parts(p["bits"], 2, 4)), scales, offsets=-(p["zeros"].float() * scales))


def _q4_0(p: Planes) -> Codes:
    return Codes(_bytes(_parts(p["bits"], 2, 4)), p["scales"].float(), 8)


def _q4_1(p: Planes) -> Codes:
    return Codes(_bytes(_parts(p["bits"], 2, 4)), p["scales"].float(), offsets=p["offsets"].float())


def _q8_0(p: Planes) -> Codes:
    return Codes(_offset_by_128(p), p["scales"].float(), 128)


def _scale_codes(p: Planes, codes: Tensor) -> Codes:
    """Codes (*rows, blocks, 4, 2, 8, 4) in 8 sub-blocks of 32."""
    *rows, blocks, _ = p["sub_scales"].shape
    parts = [
        (p[part].float() * p[whole].float().unsqueeze(-1)).reshape(*rows, blocks, 4, 2)
        for whole, part in (("scales", "sub_scales"), ("offsets", "sub_offsets"))
    ]
    return Codes(_bytes(codes), parts[0], offsets=-parts[1])


def _q4_k(p: Planes) -> Codes:
    return _scale_codes(p, _parts(p["bits"], 2, 4))


def _q5_k(p: Planes) -> Codes:
    fifth = _parts(p["fifth"], 8, 1)
    fifth = fifth.reshape(*fifth.shape[:-3], 4, 2, 8, WORD)
    return _scale_codes(p, _parts(p["bits"], 2, 4) | (fifth << 4))


def _q6_k(p: Planes) -> Codes:
    """Sub-blocks of 16: of each half, four parts of 32."""
    low, high = _parts(p["bits"], 2, 4), _parts(p["high"], 4, 2)  # (*rows, blocks, 2, 2 or 4, 16 or 8, 4)
    lead = low.shape[:-4]
    sub_blocks = (*lead, 2, 4, 2, 4, WORD)
    codes = low.reshape(*sub_blocks) | (high.reshape(*sub_blocks) << 4)
    scales = p["sub_scales"].float() * p["scales"].float().unsqueeze(-1)
    return Codes(_bytes(codes), scales.reshape(*lead, 2, 4, 2), 32)


def _q2_k(p: Planes) -> Codes:
    codes = _parts(p["bits"], 4, 2)  # (*rows, blocks, 2, 4, 8, 4)
    lead = codes.shape[:-4]
    scales = (p["sub_scales"] & 15).float() * p["scales"].float().unsqueeze(-1)
    offsets = (p["sub_scales"] >> 4).float() * p["offsets"].float().unsqueeze(-1)
    scales, offsets = (part.reshape(*lead, 2, 4, 2) for part in (scales, offsets))
    return Codes(_bytes(codes.reshape(*lead, 2, 4, 2, 4, WORD)), scales, offsets=-offsets)


def _q3_k(p: Planes) -> Codes:
    low, third = _parts(p["bits"], 4, 2), _parts(p["third"], 8, 1)
    lead = low.shape[:-4]
    sub_blocks = (*lead, 2, 4, 2, 4, WORD)
    codes = low.reshape(*sub_blocks) | (third.reshape(*sub_blocks) << 2)
    scales = p["sub_scales"].float() * p["scales"].float().unsqueeze(-1)
    return Codes(_bytes(codes), scales.reshape(*lead, 2, 4, 2), 4)


CODES: dict[str, Callable[[Planes], Codes]] = {
    "int8": _int8,
    "int4": _int4,
    "q4_0": _q4_0,
    "q4_1": _q4_1,
    "q8_0": _q8_0,
    "q2_k": _q2_k,
    "q3_k": _q3_k,
    "q4_k": _q4_k,
    "q5_k": _q5_k,
    "q6_k": _q6_k,
}
BYTE_PLANES = frozenset({"bits", "high", "fifth", "third"})  # of these kinds, those that are read as words
