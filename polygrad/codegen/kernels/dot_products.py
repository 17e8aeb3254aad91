"""Dot products: a sum of products of narrow numbers, several of them in each 32-bit lane.

    sum(int32(a[m, k]) * int32(b[k, n]) for k < K)  ->  sum(DOT(a'[m, k], b'[k, n], 0) for k < K / 4)

DOT(x, y, z) is z + the sum of x[i] * y[i], over the elements that the words x and y hold: x86's VNNI and
AVX512_BF16, the dot products of WebAssembly. `Target.dots` lists the dtypes of elements. The operands are
copied to words first (relayout.py): an operand whose k are neighbours in memory keeps its order, in others
the k of a word are brought together. Where an instruction multiplies an unsigned operand by a signed one, a
signed a becomes the unsigned a' = a + 128, and 128 times the sums of b are subtracted again.

Integers are exact modulo 2^32. Products of bfloat16 are exact in float32, so only the order of the sum
differs; but AVX512_BF16 takes subnormal numbers for 0.

For matrix registers (`Target.matrices`) the sums end in whole tiles of words, and the product's kernel makes
the words of the columns itself, as it copies them to panels.

An operand whose words lie in memory already, as the channels of a pixel do with channels last, is not copied.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from polygrad.codegen.opts import cost
from polygrad.codegen.target import Target
from polygrad.dtype import DType, dtypes
from polygrad.helpers import ceildiv, prod
from polygrad.schedule.index_maps import flat_index
from polygrad.schedule.kernel_info import Access, Sum
from polygrad.uop.args import MATRIX_SIDE, Axis, AxisKind, Dot, Param
from polygrad.uop.linear import linear_terms, sum_of
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

_BYTES = (dtypes.int8, dtypes.uint8)
MIXED = Dot(dtypes.uint8, dtypes.int8)
_WORDS = Dot(dtypes.int16, dtypes.int16)
_HALVES = Dot(dtypes.bfloat16, dtypes.bfloat16)
NARROW = (*_BYTES, dtypes.int16, dtypes.bfloat16)
_TOTALS = (dtypes.int32, dtypes.uint32, dtypes.float32)


class Packed(NamedTuple):
    """An operand in memory: `value` for all rounds of the `loops`, which are outermost first. The product
    reads it as `size` elements of `dtype`."""

    value: UOp
    loops: tuple[UOp, ...]
    dtype: DType
    size: int


class DotForm(NamedTuple):
    """A sum of DOTs, and the operands that it reads. The numbers of their PARAMs follow the kernel's."""

    total: UOp
    packed: tuple[Packed, ...]


class _Operand(NamedTuple):
    """A factor: a load of narrow numbers. `outer`: its ranges without the summed one, in the order of its
    memory; `step`: elements from one value of the summed range to the next."""

    load: UOp
    outer: tuple[UOp, ...]
    step: int

    @property
    def dtype(self) -> DType:
        return self.load.dtype


def find_dot_form(
    total: Sum, lanes: UOp, first: int, target: Target, bytewise: Collection[int] = ()
) -> DotForm | None:
    """The sum `total` as a sum of DOTs; None if it is not of products of narrow numbers, or the target has no
    such DOT.

    `lanes`: the range of the SIMD lanes; `first`: the number of the first new PARAM; `bytewise`: the PARAMs
    that the kernel reads elsewhere, element by element.
    """
    dtype = total.node.dtype
    if len(total.loops) != 1 or dtype not in _TOTALS or total.factors is None:
        return None
    (k,) = total.loops
    a, b = (_operand(factor, k) for factor in total.factors)
    if a is None or b is None or a.dtype.is_float is not dtype.is_float:
        return None
    if (kinds := dot_of(a.dtype, b.dtype, target)) is None:
        return None
    if kinds is MIXED and not a.dtype.is_unsigned and b.dtype.is_unsigned:
        a, b = b, a
    words = UOp.range(_word_count(a, b, k, kinds, target), k.arg)
    panels = _find_panels(a, b, lanes, k, words, kinds, target)
    sides = []
    packed: list[Packed] = []
    for x, kind in ((a, kinds.a), (b, kinds.b)):
        stored = _load_stored_words(x, k, words, kind, kinds.elements)
        if stored is not None and x.load.src[0].src[0].arg.slot not in bytewise:
            sides.append(stored)
            continue
        if lanes in x.outer and x.step != 1 and x is panels:
            at = {r: r for r in (*x.outer, words)}
            sides.append(_interleave(x, k, at, words, kind, kinds.elements))
            continue
        if lanes in x.outer and x.step != 1:
            outer = (*(r for r in x.outer if r is not lanes), words, lanes)
            packed.append(_pack_interleaved(x, k, words, lanes, kind, kinds.elements))
        else:
            outer = (*x.outer, words)
            packed.append(_pack_in_order(x, k, words, kind, kinds.elements))
        sides.append(load_packed(first + len(packed) - 1, packed[-1], outer))
    product = UOp(Ops.DOT, kinds.total, (*sides, UOp.const(kinds.total, 0)), kinds)
    out = UOp(Ops.REDUCE, kinds.total, (product, words), Ops.ADD)
    if kinds is MIXED and a.dtype.is_unsigned is b.dtype.is_unsigned:
        other, sign = (a, 128) if a.dtype.is_unsigned else (b, -128)
        packed.append(_pack_sums(other, k, sign))
        out = out + load_packed(first + len(packed) - 1, packed[-1], other.outer)
    return DotForm(out.bitcast(dtype) if dtype is not out.dtype else out, tuple(packed))


def dot_of(a: DType, b: DType, target: Target) -> Dot | None:
    """The target's DOT of elements of these dtypes, one of them converted if need be; None: there is none."""
    if a in _BYTES and b in _BYTES and MIXED in target.dots:
        return MIXED
    if all(x in (*_BYTES, dtypes.int16) for x in (a, b)) and _WORDS in target.dots:
        return _WORDS
    return _HALVES if a is b is dtypes.bfloat16 and _HALVES in target.dots else None


def _word_count(a: _Operand, b: _Operand, k: UOp, kinds: Dot, target: Target) -> int:
    """The words of a sum: whole tiles, where matrix registers may compute the product."""
    count = ceildiv(k.src[0].arg, kinds.elements)
    sides = [
        max(_sizes(tuple(r for r in x.outer if r not in y.outer)), default=1) for x, y in ((a, b), (b, a))
    ]
    tiles = kinds in target.matrices and min(*sides, 2 * count) >= MATRIX_SIDE
    return ceildiv(count, MATRIX_SIDE) * MATRIX_SIDE if tiles else count


def _find_panels(
    a: _Operand, b: _Operand, lanes: UOp, k: UOp, words: UOp, kinds: Dot, target: Target
) -> _Operand | None:
    """The operand of the columns, if matrix registers compute the product: its own kernel copies
    that to panels, and makes words of it there."""
    columns, other = (a, b) if lanes in a.outer else (b, a)
    own = [r.src[0].arg for r in other.outer if r not in columns.outer]
    size = words.src[0].arg
    if kinds not in target.matrices or lanes in other.outer or not own or size % MATRIX_SIDE:
        return None
    if size * kinds.elements != k.src[0].arg:
        return None
    around = int(prod(own)) // max(own)
    is_large = cost.has_matrix_panels(max(own), lanes.src[0].arg, size, around, target)
    return columns if is_large else None


def _operand(factor: UOp, k: UOp) -> _Operand | None:
    load = factor.src[0] if factor.op is Ops.CAST else factor
    if load.op is not Ops.LOAD or len(load.src[0].src) != 2 or load.dtype not in NARROW:
        return None
    terms = Access(load).terms
    if not terms.get(k) or any(r.op is not Ops.RANGE for r in terms):
        return None
    outer = sorted((r for r in terms if r is not k), key=lambda r: -abs(terms[r]))
    return _Operand(load, tuple(outer), terms[k])


def _load_stored_words(x: _Operand, k: UOp, words: UOp, kind: DType, count: int) -> UOp | None:
    """The word of an operand in its own memory; None if that has no such words, because the elements of a
    word are no neighbours or have another dtype, or because it has fewer words.

    x[64*r + k]  ->  x'[16*r + k'],  where x' is the memory as uint32
    """
    pointer, (terms, offset) = x.load.src[0].src[0], linear_terms(x.load.src[0].src[1])
    if (
        x.dtype is not kind
        or x.step != 1
        or k.src[0].arg != words.src[0].arg * count
        or pointer.op is not Ops.PARAM
    ):
        return None
    if pointer.arg.size % count or offset % count or any(terms[r] % count for r in x.outer):
        return None
    memory = UOp(Ops.PARAM, dtypes.uint32, (), Param(pointer.arg.slot, pointer.arg.size // count))
    steps = {r: terms[r] // count for r in x.outer} | {words: 1}
    at = UOp.index(sum_of(steps, offset // count))
    return UOp(Ops.LOAD, dtypes.uint32, (UOp(Ops.INDEX, dtypes.uint32, (memory, at)),))


def load_packed(slot: int, packed: Packed, ranges: tuple[UOp, ...]) -> UOp:
    """The element of packed memory for these ranges."""
    memory = UOp(Ops.PARAM, packed.dtype, (), Param(slot, packed.size))
    at = flat_index(tuple(r.src[0].arg for r in ranges), ranges)
    return UOp(Ops.LOAD, packed.dtype, (UOp(Ops.INDEX, packed.dtype, (memory, at)),))


def _loops(sizes: list[int]) -> list[UOp]:
    return [UOp.range(n, i) if n > 1 else UOp.index(0) for i, n in enumerate(sizes)]


def _sizes(ranges: tuple[UOp, ...]) -> list[int]:
    return [r.src[0].arg for r in ranges]


def _pack_in_order(x: _Operand, k: UOp, words: UOp, kind: DType, count: int) -> Packed:
    """The elements of `x` with the summed axis innermost, padded to whole words."""
    length = words.src[0].arg * count
    loops = _loops([*_sizes(x.outer), length])
    value = _load_element(x, dict(zip((*x.outer, k), loops, strict=True)), k, length, kind)
    return Packed(value, tuple(loops), dtypes.uint32, int(prod(_sizes(x.outer))) * words.src[0].arg)


def _pack_interleaved(x: _Operand, k: UOp, words: UOp, lanes: UOp, kind: DType, count: int) -> Packed:
    """Words of elements that are neighbours on the summed axis, with the lanes innermost."""
    others = tuple(r for r in x.outer if r is not lanes)
    loops = _loops([*_sizes(others), words.src[0].arg, lanes.src[0].arg])
    at = dict(zip((*others, words, lanes), loops, strict=True))
    value = _interleave(x, k, at, words, kind, count)
    return Packed(value, tuple(loops), dtypes.uint32, int(prod(_sizes((*x.outer, words)))))


def _interleave(x: _Operand, k: UOp, at: dict[UOp, UOp], words: UOp, kind: DType, count: int) -> UOp:
    """The word of elements that are neighbours on the summed axis, at these places on the axes."""
    value: UOp | None = None
    for i in range(count):
        ranges = {**at, k: at[words] * count + i}
        part = _load_element(x, ranges, k, words.src[0].arg * count, kind).cast(dtypes.uint32)
        value = part if value is None else value | (part << (i * kind.bits))
    assert value is not None
    return value


def _load_element(x: _Operand, ranges: dict[UOp, UOp], k: UOp, length: int, kind: DType) -> UOp:
    """The bits of an element of `x`, converted to `kind`; offset by 128 if the two dtypes only differ in
    being signed. Beyond the end of the summed axis the element is a converted 0, which may be 128: the other
    operand has a plain 0 there."""
    pointer, position = x.load.src[0].src
    at = position.substitute({r: v for r, v in ranges.items() if r in position.ranges})
    index: tuple[UOp, ...] = (pointer, at)
    other: tuple[UOp, ...] = ()
    if length > k.src[0].arg:
        gate = ranges[k] < k.src[0].arg
        index, other = (*index, gate), (UOp.const(x.dtype, 0),)
    return bits_as(UOp(Ops.LOAD, x.dtype, (UOp(Ops.INDEX, x.dtype, index), *other)), kind)


def bits_as(x: UOp, kind: DType) -> UOp:
    """The bits of an element converted to `kind`; offset by 128 if the dtypes only differ in being signed."""
    unsigned = dtypes.uint8 if kind.itemsize == 1 else dtypes.uint16
    if kind.itemsize > x.dtype.itemsize:
        return x.cast(kind).bitcast(unsigned)
    bits = x.bitcast(unsigned)
    return bits if x.dtype.is_unsigned is kind.is_unsigned else bits ^ 128


def _pack_sums(x: _Operand, k: UOp, factor: int) -> Packed:
    """`factor` times the sums of `x` over the summed axis."""
    loops = _loops(_sizes(x.outer))
    summed = k.replace(arg=Axis((len(loops),), AxisKind.REDUCE))
    load = x.load.substitute({**dict(zip(x.outer, loops, strict=True)), k: summed})
    total = UOp(Ops.REDUCE, dtypes.int32, (load.cast(dtypes.int32), summed), Ops.ADD)
    return Packed(total * factor, tuple(loops), dtypes.int32, int(prod(_sizes(x.outer))))
