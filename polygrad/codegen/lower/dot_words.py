"""Sums of products of bytes that are neighbours in memory, as dot products of words of four.

    sum(int32(a[4*p + i] >> 4 & 15) * int32(b[4*q + i]) for i < 4)
        ->  DOT(a'[p] >> 4 & 0x0f0f0f0f, b'[q], 0),  where a' and b' are the memory of a and b as uint32

An operand is an expression of bytes: the bytes of weights that are packed in few bits, unpacked. The same
operations on whole words unpack four at a time (SIMD within a register). No bit may get from one byte into
another: a shift is followed by a mask, and a sum or a multiple has words only if the bounds of its sources
say that it fits in a byte. A sum of uint8 that may wrap around has none. No operand is copied, so this is for
sums of any size; dot_products.py, a kernel pass, copies the operands of large products whose bytes are not
neighbours.

`Target.dots` says which dot products there are. That of WebAssembly's relaxed SIMD takes 7 bits of `a`: bytes
that have 8 are multiplied as two halves. The first element of a word is in its least significant bits.
"""

from __future__ import annotations

from collections.abc import Iterator

from polygrad.codegen.target import Target
from polygrad.dtype import dtypes
from polygrad.helpers import dedup
from polygrad.uop.args import Dot, Param
from polygrad.uop.linear import linear_terms, sum_of
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

_BYTES = (dtypes.int8, dtypes.uint8)
_COUNT = 4  # bytes of a word
_ONES = 0x01010101  # a word whose bytes are 1

Words = dict[UOp, UOp | None]  # expressions of bytes, and the same of words; None where there is none


def form_dot_products(kernel: UOp, target: Target) -> UOp:
    """A kernel whose sums of products of bytes are sums of DOTs, if the target has such a DOT.

    REDUCE(int32(a[4*p + i]) * int32(b[4*q + i]), i < 4)  ->  DOT(a'[p], b'[q], 0)
    """
    kinds = next((d for d in target.dots if d.a is dtypes.uint8 and d.b is dtypes.int8), None)
    if kinds is None:
        return kernel
    dots = {n: dot for n in kernel.toposort() if (dot := _find_dot(n, kinds)) is not None}
    while dots:
        changed = kernel.substitute(dots)
        if not (twofold := _read_both_ways(changed)):
            return changed
        dots = {n: dot for n, dot in dots.items() if twofold.isdisjoint(_slots(dot))}
    return kernel


def _read_both_ways(kernel: UOp) -> set[int]:
    """The slots of buffers that a kernel accesses as words, and as elements of their own dtype, too."""
    params = dedup(n for n in kernel.toposort() if n.op is Ops.PARAM)
    slots = [p.arg.slot for p in params]
    return {slot for slot in slots if slots.count(slot) > 1}


def _slots(node: UOp) -> Iterator[int]:
    return (n.arg.slot for n in node.toposort() if n.op is Ops.PARAM and n.dtype is dtypes.uint32)


def _find_dot(total: UOp, kinds: Dot) -> UOp | None:
    """A sum of products of adjacent bytes as a sum of DOTs; None for other nodes.

    REDUCE(a * b, r < 4*n)  ->  REDUCE(DOT(words of a, words of b, 0), r < n)
    """
    if total.op is not Ops.REDUCE or total.arg is not Ops.ADD or total.dtype is not dtypes.int32:
        return None
    if total.src[0].op is not Ops.MUL:
        return None
    a, b = total.src[0].src
    if not (_fits(a, 0, 255) and _fits(b, -128, 127)):
        a, b = b, a
        if not (_fits(a, 0, 255) and _fits(b, -128, 127)):
            return None
    for r in reversed(total.src[1:]):
        if not r.src[0].is_const or r.src[0].arg % _COUNT:
            continue
        words = UOp.range(r.src[0].arg // _COUNT, r.arg)
        sides = [_words_of(x, r, words) for x in (a, b)]
        if sides[0] is None or sides[1] is None:
            continue
        dot = _dot(sides[0], sides[1], a.vmax, kinds)
        loops = [words if k is r else k for k in total.src[1:] if k is not r or words.vmax > 0]
        return UOp(Ops.REDUCE, dtypes.int32, (dot, *loops), Ops.ADD) if loops else dot
    return None


def _dot(a: UOp, b: UOp, max_a: int, kinds: Dot) -> UOp:
    """The dot product of two words; that of the halves of `a` where its bytes have too many bits."""
    zero = UOp.const(dtypes.int32, 0)
    if max_a <= kinds.max_a:
        return UOp(Ops.DOT, dtypes.int32, (a, b, zero), kinds)
    low, high = a & 0x0F * _ONES, (a >> 4) & 0x0F * _ONES
    sixteenth = UOp(Ops.DOT, dtypes.int32, (high, b, zero), kinds)
    return UOp(Ops.DOT, dtypes.int32, (low, b, sixteenth << 4), kinds)


def _fits(x: UOp, low: int, high: int) -> bool:
    return x.dtype.is_int and low <= x.vmin and x.vmax <= high


def _words_of(value: UOp, r: UOp, words: UOp) -> UOp | None:
    """The words of an expression: byte i of one is the low byte of `value` where `r` is 4 * `words` + i. None
    where `value` is not computed alike for all bytes of a word."""
    of_node: Words = {}
    for node in value.toposort(lambda n: n.op is not Ops.LOAD and n.dtype is not dtypes.index):
        if node.dtype is not dtypes.index:
            of_node[node] = _splat(node) if r not in node.ranges else _word_of(node, r, words, of_node)
    return of_node[value]


def _splat(x: UOp) -> UOp | None:
    """The word of four bytes that are alike."""
    if not x.dtype.is_int:
        return None
    if x.is_const:
        return UOp.const(dtypes.uint32, (x.arg & 0xFF) * _ONES)
    return (x.cast(dtypes.uint32) & 0xFF) * _ONES


def _word_of(node: UOp, r: UOp, words: UOp, of_node: Words) -> UOp | None:
    """The word of a node that depends on `r`, by those of its sources."""
    op = node.op
    if op is Ops.LOAD:
        return _load_word(node, r, words)
    if not node.dtype.is_int:
        return None
    if op in (Ops.CAST, Ops.BITCAST):
        return of_node.get(node.src[0])  # positions have no words
    if len(node.src) != 2 or (x := of_node.get(node.src[0])) is None:
        return None
    a, b = node.src
    if op in (Ops.AND, Ops.OR, Ops.XOR):
        y = of_node[b]
        if op is Ops.AND and b.is_const and a.op is Ops.SHR and 0 <= b.arg <= 0xFF >> min(a.src[1].vmax, 8):
            x = x.src[0]  # what the shift moves from byte to byte is taken away here
        return None if y is None else UOp(op, dtypes.uint32, (x, y))
    if op in (Ops.SHR, Ops.SHL):
        return _shifted(op, x, a, b) if r not in b.ranges else None
    if op is Ops.ADD and a.vmin >= 0 and b.vmin >= 0 and a.vmax + b.vmax <= 0xFF:
        y = of_node[b]
        return None if y is None else x + y
    if op is Ops.MUL and b.is_const and a.vmin >= 0 and b.arg >= 0 and a.vmax * b.arg <= 0xFF:
        return x * b.arg
    return None


def _shifted(op: Ops, x: UOp, a: UOp, count: UOp) -> UOp | None:
    """The words `x` of `a` shifted by `count`, which is the same for all bytes.

    a >> count  ->  (x >> count) & (0xff >> count in each byte)
    """
    if count.vmin < 0 or count.vmax > 7 or not (op is Ops.SHL or _fits(a, 0, 255)):
        return None
    by = count.cast(dtypes.uint32)
    if op is Ops.SHL:
        mask = (UOp.const(dtypes.uint32, 0xFF) << by) & 0xFF
        return (x << by) & (mask * _ONES)
    mask = UOp.const(dtypes.uint32, 0xFF) >> by
    return (x >> by) & (mask * _ONES)


def _load_word(load: UOp, r: UOp, words: UOp) -> UOp | None:
    """The word of adjacent bytes that begins at a multiple of 4; None if they are not adjacent or aligned.

    LOAD(p: uint8[4*i + r]), r = 4*w + byte  ->  LOAD(p: uint32[i + w])
    """
    index = load.src[0]
    if load.dtype not in _BYTES or len(index.src) != 2 or index.src[0].op is not Ops.PARAM:
        return None
    param, (terms, constant) = index.src[0], linear_terms(index.src[1])
    if terms.pop(r, 0) != 1 or param.arg.size % _COUNT or constant % _COUNT:
        return None
    if any(f % _COUNT or r in atom.ranges for atom, f in terms.items()):
        return None
    memory = UOp(Ops.PARAM, dtypes.uint32, (), Param(param.arg.slot, param.arg.size // _COUNT))
    steps = {atom: f // _COUNT for atom, f in terms.items()}
    if words.vmax > 0:
        steps[words] = 1
    at = UOp.index(sum_of(steps, constant // _COUNT))
    return UOp(Ops.LOAD, dtypes.uint32, (UOp(Ops.INDEX, dtypes.uint32, (memory, at)),))
