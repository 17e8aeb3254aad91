"""Quantization formats ("kinds"): how a matrix is stored as planes of bytes, and the expression that
dequantizes it.

A row is divided into blocks of numbers. A *plane* has one part of every block (a scale, or the bits of its
numbers) and is a Tensor (*rows, blocks, ...), so that a kernel reads contiguous memory. ggml stores blocks
consecutively, as structures of bytes. `QuantizationFormat.split` takes a block
apart, as in ggml's `ggml-common.h`: f16 d is a half, q[16] are bytes, low bits first. Planes have no more
bytes than ggml's blocks, except for scales of 6 bits (Q3_K, Q4_K, Q5_K), which become bytes: 2 to 4 % more.

`dense` never joins parts by `cat`: it shifts a number's bits out of their byte. So the expression has no
conditions, and a loop over numbers is a loop over the blocks' parts (the kernel pass split-ranges).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from polygrad.dtype import dtypes
from polygrad.errors import ArgumentError
from polygrad.nn.gguf import ENCODINGS
from polygrad.tensor.tensor import Tensor

Planes = Mapping[str, Tensor]


@dataclass(frozen=True)
class QuantizationFormat:
    """A quantization format.

    `block`: the number of elements of a block; None: a row is one block. `dense`: planes to float32 (*rows,
    blocks, ...), whose last axes are the numbers of a block. `split`: ggml's blocks (*rows, blocks, bytes) to
    planes; None: ggml does not have this format. `nbytes`: the bytes of ggml's block. `pack`: float32 (*rows,
    blocks, numbers) to planes; None: the format can only be read.
    """

    block: int | None
    dense: Callable[[Planes], Tensor]
    split: Callable[[Tensor], dict[str, Tensor]] | None = None
    nbytes: int = 0
    pack: Callable[[Tensor], dict[str, Tensor]] | None = None


def dequantize(name: str, blocks: Tensor) -> Tensor:
    """ggml's blocks of a kind (as `Q4_0`): (n, bytes of a block) uint8 to (n, numbers of a block) float32.

    Raises ArgumentError for a kind that ggml does not have.
    """
    format = KINDS.get(name.lower())
    if format is None or format.split is None:
        names = ", ".join(k.upper() for k, kind in KINDS.items() if kind.split)
        raise ArgumentError(f"dequantize: expected one of {names}, got {name!r}")
    return format.dense(format.split(blocks)).reshape(blocks.shape[0], -1)


def find_kind(name: str) -> QuantizationFormat:
    """The format with a name, as `int8` or `Q4_0`. Raises ArgumentError, which lists all names."""
    format = KINDS.get(name.lower()) if isinstance(name, str) else None
    if format is None:
        raise ArgumentError(f"kind of packed weights: expected one of {', '.join(KINDS)}, got {name!r}")
    return format


def find_kind_to_pack(name: str) -> QuantizationFormat:
    """As `find_kind`; raises ArgumentError also for a format that can only be read."""
    format = find_kind(name)
    if format.pack is None:
        names = ", ".join(k for k, other in KINDS.items() if other.pack)
        raise ArgumentError(f"quantize: {name} is only read from files: expected one of {names}")
    return format


# --- parts of expressions


def _wide(x: Tensor, axes: int = 1) -> Tensor:
    """`x` as float32, with `axes` new trailing axes of size 1."""
    return x.float().reshape(*x.shape, *[1] * axes)


def split_bits(x: Tensor, count: int, bits: int, axis: int = -2) -> Tensor:
    """Bytes to int32, with a new axis: part i of `count` has bits [i * bits, (i + 1) * bits) of each byte.
    `axis`: that axis of the result, from the end: (..., n) to (..., count, n) for -2.

    Vectors of int32 have instructions for shifts and for conversion to floats; vectors of bytes have none.
    """
    shifts = Tensor.arange(count, dtype=dtypes.int32, device=x.device) * bits
    shifts = shifts.reshape(count, *[1] * (-1 - axis))
    return (x.cast(dtypes.int32).unsqueeze(axis) >> shifts) & ((1 << bits) - 1)


_FIRST_WHOLE = 1 << 23  # floats from here to twice that are 1 apart
_FIRST_WHOLE_BITS = (127 + 23) << 23


def _subtract_offset(q: Tensor, offset: int) -> Tensor:
    """q - offset as float32, of an int32 from 0 to 2^22.

    The last bits of floats from 2^23 on are an integer. An OR and a subtraction, both exact, are faster than
    a conversion and a subtraction.
    """
    wholes = (q | _FIRST_WHOLE_BITS).bitcast(dtypes.float32)
    return wholes - (_FIRST_WHOLE + offset)


def _nibbles(x: Tensor) -> Tensor:
    """(..., n) bytes to (..., 2, n): all low halves, then all high halves."""
    return split_bits(x, 2, 4)


def _half(b: Tensor, at: int) -> Tensor:
    """The half in bytes `at` and `at + 1` of each block: (..., bytes) to (...) float16."""
    return (b[..., at].cast(dtypes.uint16) + b[..., at + 1].cast(dtypes.uint16) * 256).bitcast(dtypes.float16)


def _word(b: Tensor, at: int) -> Tensor:
    """Four bytes of each block as a number: (..., bytes) to (...) uint32."""
    out = b[..., at].cast(dtypes.uint32)
    for i in range(1, 4):
        out = out + b[..., at + i].cast(dtypes.uint32) * (1 << 8 * i)
    return out


def _pack_nibbles(q: Tensor) -> Tensor:
    """(..., n) numbers below 16 to (..., n / 2) bytes, as `_nibbles` reads them."""
    q = q.cast(dtypes.uint8).reshape(*q.shape[:-1], 2, q.shape[-1] // 2)
    return q[..., 0, :] + q[..., 1, :] * 16


def _extreme(x: Tensor) -> Tensor:
    """(..., n) to (..., 1): the element of the largest magnitude, with its sign."""
    greatest, least = x.max(-1, keepdim=True), x.min(-1, keepdim=True)
    return (greatest >= -least).where(greatest, least)


def _inverse(x: Tensor) -> Tensor:
    """1 / x, and 0 of 0."""
    return x.ne(0).where(x.ne(0).where(x, 1.0).reciprocal(), 0.0)


def _round_to_range(x: Tensor, least: int, greatest: int) -> Tensor:
    """The nearest integers within a range, halves up."""
    return (x + 0.5).floor().clip(least, greatest)


# --- kinds of our own


def _int8(p: Planes) -> Tensor:
    """scale * q."""
    return p["bits"].float() * _wide(p["scales"])


def _pack_int8(x: Tensor) -> dict[str, Tensor]:
    scale = x.abs().max(-1, keepdim=True) / 127
    bits = (x * _inverse(scale)).round().clip(-127, 127).cast(dtypes.int8)
    return {"scales": scale.squeeze(-1), "bits": bits}


_SIGN = -(1 << 31)  # of a float32, as an int32
_FP8_BITS = _SIGN + (0x7F << 20)


def _fp8(p: Planes) -> Tensor:
    """scale * q, where q is an fp8e4m3 that is not NaN.

    The bits of a normal number are those of a float32 whose exponent is 120 less. A subnormal number, m / 8 *
    2^-6, read in this way becomes t = (1 + m / 8) * 2^-7; so it equals 2 * t - 2^-6.
    """
    bits = p["bits"].bitcast(dtypes.int8).cast(dtypes.int32)  # the sign in all upper bits
    shifted_bits = bits << 20
    normal = ((shifted_bits & _FP8_BITS) + (120 << 23)).bitcast(dtypes.float32)
    least = ((shifted_bits & _SIGN) + (121 << 23)).bitcast(dtypes.float32)
    return (bits & 0x78).eq(0).where(normal * 2 - least, normal) * _wide(p["scales"])


def _pack_fp8(x: Tensor) -> dict[str, Tensor]:
    scale = x.abs().max(-1, keepdim=True) / dtypes.finfo(dtypes.fp8e4m3).max
    return {"scales": scale.squeeze(-1), "bits": (x * _inverse(scale)).cast(dtypes.fp8e4m3)}


def _int4(p: Planes) -> Tensor:
    """scale * (q - zero). The zero point is one of the 16 numbers, so 0 is represented exactly."""
    return (_nibbles(p["bits"]).float() - _wide(p["zeros"], 2)) * _wide(p["scales"], 2)


def _pack_int4(x: Tensor) -> dict[str, Tensor]:
    greatest, least = x.max(-1, keepdim=True).clip(0, None), x.min(-1, keepdim=True).clip(None, 0)
    scale = ((greatest - least) / 15).half()
    inverse = _inverse(scale.float())
    zero = _round_to_range(-least * inverse, 0, 15)
    q = _round_to_range(x * inverse + zero, 0, 15)
    return {
        "scales": scale.squeeze(-1),
        "zeros": zero.squeeze(-1).cast(dtypes.uint8),
        "bits": _pack_nibbles(q),
    }


# --- ggml's blocks of 32


def _q4_0(p: Planes) -> Tensor:
    """d * (q - 8)."""
    return _subtract_offset(_nibbles(p["bits"]), 8) * _wide(p["scales"], 2)


def _split_q4_0(b: Tensor) -> dict[str, Tensor]:
    """f16 d | q[16]."""
    return {"scales": _half(b, 0), "bits": b[..., 2:18]}


def _pack_q4_0(x: Tensor) -> dict[str, Tensor]:
    scale = _extreme(x) / -8
    q = _round_to_range(x * _inverse(scale) + 8, 0, 15)
    return {"scales": scale.squeeze(-1).half(), "bits": _pack_nibbles(q)}


def _q4_1(p: Planes) -> Tensor:
    """d * q + m."""
    return _nibbles(p["bits"]).float() * _wide(p["scales"], 2) + _wide(p["offsets"], 2)


def _split_q4_1(b: Tensor) -> dict[str, Tensor]:
    """f16 d | f16 m | q[16]."""
    return {"scales": _half(b, 0), "offsets": _half(b, 2), "bits": b[..., 4:20]}


def _pack_q4_1(x: Tensor) -> dict[str, Tensor]:
    least = x.min(-1, keepdim=True)
    scale = (x.max(-1, keepdim=True) - least) / 15
    q = _round_to_range((x - least) * _inverse(scale), 0, 15)
    halves = {"scales": scale.squeeze(-1).half(), "offsets": least.squeeze(-1).half()}
    return {**halves, "bits": _pack_nibbles(q)}


# Bit i as an int32; the last one is the sign bit. WebAssembly's SIMD shifts all lanes by one amount, so masks
# are faster than shifts.
_PLACES = [1 << i for i in range(31)] + [-(1 << 31)]


def _fifth(p: Planes) -> Tensor:
    """Bit i of each block's word, as 16, for its number i: int32 (..., 2, 16)."""
    word = p["fifth"].bitcast(dtypes.int32)
    places = Tensor(_PLACES, dtype=dtypes.int32, device=word.device).reshape(2, 16)
    return (word.reshape(*word.shape, 1, 1) & places).ne(0).where(16, 0)


def _q5_0(p: Planes) -> Tensor:
    """d * (q - 16)."""
    return _subtract_offset(_nibbles(p["bits"]) | _fifth(p), 16) * _wide(p["scales"], 2)


def _split_q5_0(b: Tensor) -> dict[str, Tensor]:
    """f16 d | u32 fifth bits | q[16]."""
    return {"scales": _half(b, 0), "fifth": _word(b, 2), "bits": b[..., 6:22]}


def _five_bits(q: Tensor) -> dict[str, Tensor]:
    """(..., 32) numbers below 32, as planes."""
    q = q.cast(dtypes.uint32)
    places = Tensor.arange(32, dtype=dtypes.uint32, device=q.device)
    return {"fifth": ((q >> 4) << places).sum(-1, dtype=dtypes.uint32), "bits": _pack_nibbles(q & 15)}


def _pack_q5_0(x: Tensor) -> dict[str, Tensor]:
    scale = _extreme(x) / -16
    q = _round_to_range(x * _inverse(scale) + 16, 0, 31)
    return {"scales": scale.squeeze(-1).half(), **_five_bits(q)}


def _q5_1(p: Planes) -> Tensor:
    """d * q + m."""
    q = _nibbles(p["bits"]) + _fifth(p)
    return q.float() * _wide(p["scales"], 2) + _wide(p["offsets"], 2)


def _split_q5_1(b: Tensor) -> dict[str, Tensor]:
    """f16 d | f16 m | u32 fifth bits | q[16]."""
    return {"scales": _half(b, 0), "offsets": _half(b, 2), "fifth": _word(b, 4), "bits": b[..., 8:24]}


def _pack_q5_1(x: Tensor) -> dict[str, Tensor]:
    least = x.min(-1, keepdim=True)
    scale = (x.max(-1, keepdim=True) - least) / 31
    q = _round_to_range((x - least) * _inverse(scale), 0, 31)
    return {"scales": scale.squeeze(-1).half(), "offsets": least.squeeze(-1).half(), **_five_bits(q)}


def _q8_0(p: Planes) -> Tensor:
    """d * q."""
    return p["bits"].float() * _wide(p["scales"])


def _split_q8_0(b: Tensor) -> dict[str, Tensor]:
    """f16 d | int8 q[32]."""
    return {"scales": _half(b, 0), "bits": b[..., 2:34].bitcast(dtypes.int8)}


def _pack_q8_0(x: Tensor) -> dict[str, Tensor]:
    scale = x.abs().max(-1, keepdim=True) / 127
    q = x * _inverse(scale)
    q = (q < 0).where((q - 0.5).ceil(), (q + 0.5).floor())  # halves away from 0, as ggml
    return {"scales": scale.squeeze(-1).half(), "bits": q.clip(-127, 127).cast(dtypes.int8)}


# ggml's 16 numbers of IQ4_NL are -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89 and 113.
# This polynomial in q - 7.5, lowest power first, is within 0.44 of each, so vector code needs no table.
_ROUNDING = 1.5 * 2**23  # float32 numbers of this magnitude are integers: adding it rounds to an integer
_IQ4_NL = (-4.301249, 11.5172086, -0.137192704, 0.0786677240, 0.00158604282)


def _iq4_nl(p: Planes) -> Tensor:
    """d * the number that q stands for."""
    at = _nibbles(p["bits"]).float() - 7.5
    value = at * _IQ4_NL[-1] + _IQ4_NL[-2]
    for factor in _IQ4_NL[-3::-1]:
        value = value * at + factor
    nearest = (value + _ROUNDING) - _ROUNDING
    return nearest * _wide(p["scales"], 2)


# --- ggml's blocks of 256


def _six_bits(b: Tensor) -> tuple[Tensor, Tensor]:
    """8 pairs of 6 bits in bytes 4 to 15: scales and offsets of 8 sub-blocks, uint8 (..., 8).

    The first four pairs are the low 6 bits of bytes 0..3 and 4..7. Of the others bytes 8..11 have the low 4
    bits, and the top 2 bits of the first eight bytes the rest.
    """
    low, middle, high = b[..., 4:8], b[..., 8:12], b[..., 12:16]
    scales = (low & 63).cat((high & 15) + (low >> 6) * 16, dim=-1)
    offsets = (middle & 63).cat((high >> 4) + (middle >> 6) * 16, dim=-1)
    return scales, offsets


def _apply_scales(p: Planes, q: Tensor) -> Tensor:
    """d * scale * q - m * offset, of q (..., 4, 2, 32) in 8 sub-blocks."""
    parts = []
    for plane_name, part in (("scales", "sub_scales"), ("offsets", "sub_offsets")):
        x = p[part].float() * _wide(p[plane_name])
        parts.append(x.reshape(*x.shape[:-1], 4, 2, 1))
    return q.float() * parts[0] - parts[1]


def _q4_k(p: Planes) -> Tensor:
    """d * scale * q - m * offset; the halves of 32 bytes are two sub-blocks."""
    return _apply_scales(p, _nibbles(p["bits"]))


def _split_q4_k(b: Tensor) -> dict[str, Tensor]:
    """f16 d | f16 m | scales and offsets[12] | q[4][32]."""
    scales, offsets = _six_bits(b)
    wholes = {"scales": _half(b, 0), "offsets": _half(b, 2), "sub_scales": scales, "sub_offsets": offsets}
    return {**wholes, "bits": b[..., 16:144].reshape(*b.shape[:-1], 4, 32)}


def _q5_k(p: Planes) -> Tensor:
    """As Q4_K; bit i of 32 bytes is the fifth bit of sub-block i."""
    fifth = split_bits(p["fifth"], 8, 1)
    fifth = fifth.reshape(*fifth.shape[:-2], 4, 2, 32)
    return _apply_scales(p, _nibbles(p["bits"]) + fifth * 16)


def _split_q5_k(b: Tensor) -> dict[str, Tensor]:
    """f16 d | f16 m | scales and offsets[12] | fifth bits[32] | q[4][32]."""
    scales, offsets = _six_bits(b)
    wholes = {"scales": _half(b, 0), "offsets": _half(b, 2), "sub_scales": scales, "sub_offsets": offsets}
    return {**wholes, "fifth": b[..., 16:48], "bits": b[..., 48:176].reshape(*b.shape[:-1], 4, 32)}


def _q6_k(p: Planes) -> Tensor:
    """d * scale * (q - 32), in sub-blocks of 16. Each half of the block has its low bits in 64 bytes, its
    high bits as four parts of 32 bytes."""
    low = _nibbles(p["bits"])  # (..., 2, 2, 64)
    lead = low.shape[:-3]
    q = low.reshape(*lead, 2, 4, 32) + split_bits(p["high"], 4, 2) * 16
    scales = p["sub_scales"].float() * _wide(p["scales"])
    return (q.float() - 32).reshape(*lead, 2, 4, 2, 16) * scales.reshape(*lead, 2, 4, 2, 1)


def _split_q6_k(b: Tensor) -> dict[str, Tensor]:
    """low bits[2][64] | high bits[2][32] | int8 scales[16] | f16 d."""
    return {
        "scales": _half(b, 208),
        "sub_scales": b[..., 192:208].bitcast(dtypes.int8),
        "bits": b[..., :128].reshape(*b.shape[:-1], 2, 64),
        "high": b[..., 128:192].reshape(*b.shape[:-1], 2, 32),
    }


def _q2_k(p: Planes) -> Tensor:
    """d * scale * q - m * offset, in sub-blocks of 16, whose scale and offset are halves of a byte. Each half
    of the block has four parts of 32 bytes."""
    q = split_bits(p["bits"], 4, 2)  # (..., 2, 4, 32)
    lead = q.shape[:-3]
    scales = (p["sub_scales"] & 15).float() * _wide(p["scales"])
    offsets = (p["sub_scales"] >> 4).float() * _wide(p["offsets"])
    sub_blocks = (*lead, 2, 4, 2, 1)
    return q.float().reshape(*lead, 2, 4, 2, 16) * scales.reshape(sub_blocks) - offsets.reshape(sub_blocks)


def _split_q2_k(b: Tensor) -> dict[str, Tensor]:
    """scales and offsets[16] | q[2][32] | f16 d | f16 m."""
    return {
        "scales": _half(b, 80),
        "offsets": _half(b, 82),
        "sub_scales": b[..., :16],
        "bits": b[..., 16:80].reshape(*b.shape[:-1], 2, 32),
    }


def _q3_k(p: Planes) -> Tensor:
    """d * scale * (q - 4), in sub-blocks of 16; q has its low bits as Q2_K, and bit i of 32 bytes is the
    third bit of part i of 8."""
    low, third = split_bits(p["bits"], 4, 2), split_bits(p["third"], 8, 1)
    lead = low.shape[:-3]
    q = (low + third.reshape(*lead, 2, 4, 32) * 4).float() - 4
    scales = p["sub_scales"].float() * _wide(p["scales"])
    return q.reshape(*lead, 2, 4, 2, 16) * scales.reshape(*lead, 2, 4, 2, 1)


def _split_q3_k(b: Tensor) -> dict[str, Tensor]:
    """third bits[32] | q[2][32] | scales[12] | f16 d.

    Scale 4 * g + i, of 6 bits, less 32, has its low bits in half g / 2 of byte 4 * (g % 2) + i, and its high
    bits in part g of byte 8 + i.
    """
    low, high = _nibbles(b[..., 96:104]), split_bits(b[..., 104:108], 4, 2)
    sub_scales = low.reshape(*b.shape[:-1], 16) + high.reshape(*b.shape[:-1], 16) * 16
    return {
        "scales": _half(b, 108),
        "sub_scales": (sub_scales - 32).cast(dtypes.int8),
        "third": b[..., :32],
        "bits": b[..., 32:96].reshape(*b.shape[:-1], 2, 32),
    }


_BLOCKS = {e.name: e for e in ENCODINGS.values()}


def _ggml(
    name: str,
    dense: Callable[[Planes], Tensor],
    split: Callable[[Tensor], dict[str, Tensor]],
    pack: Callable[[Tensor], dict[str, Tensor]] | None = None,
) -> QuantizationFormat:
    return QuantizationFormat(_BLOCKS[name].elements, dense, split, _BLOCKS[name].nbytes, pack)


KINDS: dict[str, QuantizationFormat] = {
    "int8": QuantizationFormat(None, _int8, pack=_pack_int8),
    "int4": QuantizationFormat(32, _int4, pack=_pack_int4),
    "fp8": QuantizationFormat(None, _fp8, pack=_pack_fp8),
    "q4_0": _ggml("Q4_0", _q4_0, _split_q4_0, _pack_q4_0),
    "q4_1": _ggml("Q4_1", _q4_1, _split_q4_1, _pack_q4_1),
    "q5_0": _ggml("Q5_0", _q5_0, _split_q5_0, _pack_q5_0),
    "q5_1": _ggml("Q5_1", _q5_1, _split_q5_1, _pack_q5_1),
    "q8_0": _ggml("Q8_0", _q8_0, _split_q8_0, _pack_q8_0),
    "q2_k": _ggml("Q2_K", _q2_k, _split_q2_k),
    "q3_k": _ggml("Q3_K", _q3_k, _split_q3_k),
    "q4_k": _ggml("Q4_K", _q4_k, _split_q4_k),
    "q5_k": _ggml("Q5_K", _q5_k, _split_q5_k),
    "q6_k": _ggml("Q6_K", _q6_k, _split_q6_k),
    "iq4_nl": _ggml("IQ4_NL", _iq4_nl, _split_q4_0),
}
