"""Sums of products of neighbouring bytes: which become dot products of words, how such products are tiled,
and that they are exact."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from polygrad import Tensor
from polygrad.codegen.lower.dot_words import form_dot_products
from polygrad.codegen.opts.heuristics import choose
from polygrad.codegen.opts.opt import render_opts
from polygrad.codegen.target import Target
from polygrad.dtype import dtypes
from polygrad.uop.args import Dot
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.spec import verify
from tests.codegen.test_split import ast_of

VNNI = Target(
    "test", simd_bytes=64, registers=32, fma=True, dots=frozenset({Dot(dtypes.uint8, dtypes.int8)}), threads=1
)
RELAXED = Target(
    "test", simd_bytes=16, registers=15, dots=frozenset({Dot(dtypes.uint8, dtypes.int8, bits=7)}), threads=1
)
NEITHER = Target("test", simd_bytes=64, registers=32, fma=True)
Operand = Callable[[Tensor], Tensor]


def ints(x: Tensor) -> Tensor:
    return x.cast(dtypes.int32)


def row_masks(w: Tensor) -> Tensor:
    """A number in memory for each row of `w`, which is the same for all bytes of a word."""
    return memory(np.array([[0], [15], [85], [129], [255]], np.uint8), w.device)


# name, an expression of bytes
WORDS: list[tuple[str, Operand]] = [
    ("as they are", ints),
    ("high halves", lambda w: ints(w) >> 4),
    ("low halves", lambda w: ints(w) & 15),
    ("middle bits", lambda w: (ints(w) >> 3) & 3),
    ("bits beyond the shifted byte", lambda w: (ints(w) >> 4) & 255),
    ("shifted left", lambda w: ((ints(w) & 3) << 4) | (ints(w) & 12)),
    ("a sum that fits", lambda w: (ints(w) & 15) + (ints(w) >> 7) * 16),
    ("an offset sign", lambda w: ints(w.bitcast(dtypes.int8).bitcast(dtypes.uint8) ^ 128)),
    ("back to bytes", lambda w: ints((ints(w) >> 5).cast(dtypes.uint8))),
    ("a sum of uint8 that fits", lambda w: ints((w >> 1) + (w & 127))),
    ("a multiple of uint8 that fits", lambda w: ints((w & 15) * 17)),
    ("bits that a number of the row selects", lambda w: ints(w) & ints(row_masks(w))),
]
# name, an expression that has no words
OTHERS: list[tuple[str, Operand]] = [
    ("a sum beyond a byte", lambda w: ints(w) + 1),
    ("a difference below 0", lambda w: (ints(w) & 15) - 8),
    ("a product beyond a byte", lambda w: ints(w) * 2),
    ("a sum of uint8 that wraps around", lambda w: ints(w + 200)),
    ("a difference of uint8 that wraps around", lambda w: ints(w - 3)),
    ("a product of uint8 that wraps around", lambda w: ints(w * 3)),
    ("bytes in reversed order", lambda w: ints(w.flip(1))),
    ("positions", lambda w: (ints(w) & 15) + (Tensor.arange(24, dtype=dtypes.int32, device=w.device) & 15)),
    ("a shift of what is wider", lambda w: (ints(w) * 3 >> 4) & 15),
    ("a quotient", lambda w: ints(w) // 3),
    ("a choice", lambda w: (w < 100).where(ints(w), 0)),
]


def memory(array: np.ndarray, device: str | None = None) -> Tensor:
    return Tensor(array, device=device).realize()


def arrays(rows: int = 5, columns: int = 24) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(rows)
    return (
        rng.integers(0, 256, (rows, columns)).astype(np.uint8),
        rng.integers(-128, 128, (3, columns)).astype(np.int8),
    )


def product(operand: Operand, w: Tensor, x: Tensor) -> Tensor:
    terms = operand(w).unsqueeze(0) * ints(x).unsqueeze(1)
    return terms.sum(-1, dtype=dtypes.int32)


def dots(ast: UOp, target: Target = VNNI) -> int:
    formed = form_dot_products(ast, target)
    verify(formed.toposort(), "kernel")
    return sum(n.op is Ops.DOT for n in formed.toposort())


@pytest.mark.parametrize("operand", [w for _, w in WORDS], ids=[name for name, _ in WORDS])
def test_bytes_computed_alike_are_words(operand: Operand, device: str) -> None:
    w, x = arrays()
    assert dots(ast_of(product(operand, memory(w), memory(x)))) == 1
    assert not dots(ast_of(product(operand, memory(w), memory(x))), NEITHER)
    expected = operand(memory(w, "INTERP")).numpy().astype(np.int64) @ x.T.astype(np.int64)
    got = product(operand, memory(w, device), memory(x, device)).numpy()
    np.testing.assert_array_equal(got, expected.T)


@pytest.mark.parametrize("operand", [w for _, w in OTHERS], ids=[name for name, _ in OTHERS])
def test_others_are_not(operand: Operand, device: str) -> None:
    w, x = arrays()
    assert not dots(ast_of(product(operand, memory(w), memory(x))))
    expected = operand(memory(w, "INTERP")).numpy().astype(np.int64) @ x.T.astype(np.int64)
    got = product(operand, memory(w, device), memory(x, device)).numpy()
    np.testing.assert_array_equal(got, expected.T)


def test_bytes_of_8_bits_are_two_halves_where_the_target_takes_7() -> None:
    w, x = (memory(a) for a in arrays())
    assert dots(ast_of(product(ints, w, x)), RELAXED) == 2
    assert dots(ast_of(product(lambda w: ints(w) >> 1, w, x)), RELAXED) == 1


@pytest.mark.parametrize("value", [0, 127, 128, 255])
@pytest.mark.parametrize("other", [-128, -1, 127])
def test_no_sum_saturates(value: int, other: int, device: str) -> None:
    w, x = np.full((2, 64), value, np.uint8), np.full((1, 64), other, np.int8)
    got = product(ints, memory(w, device), memory(x, device)).numpy()
    np.testing.assert_array_equal(got, np.full((1, 2), 64 * value * other))


def test_rows_of_no_whole_words_are_not() -> None:
    w, x = arrays(columns=26)
    assert not dots(ast_of(product(ints, memory(w), memory(x))))


def test_bytes_that_begin_within_a_word_are_not() -> None:
    w, x = arrays(columns=32)
    assert not dots(ast_of(product(ints, memory(w)[:, 2:26], memory(x)[:, 2:26])))
    assert dots(ast_of(product(ints, memory(w)[:, 4:28], memory(x)[:, 4:28]))) == 1


def test_two_signed_or_two_unsigned_operands_are_not() -> None:
    w, x = (memory(a) for a in arrays())
    assert not dots(ast_of(product(ints, w, w[:3])))
    assert not dots(ast_of(product(ints, x, x)))


def test_sums_beside_them_keep_their_bytes_if_they_read_the_same_buffer() -> None:
    w, x, y = memory(arrays()[0]), memory(arrays()[1]), memory(arrays()[1])
    both = product(ints, w, x) + (w.unsqueeze(0).float() * y.unsqueeze(1).float()).sum(-1).cast(dtypes.int32)
    assert dots(ast_of(both)) == 0


# --- sums of blocks


def blocks(rows: int, columns: int = 512, panels: int = 32) -> Tensor:
    """Rows of bytes times a matrix of 4 bits, with a scale for 32 numbers, in panels of 16 rows."""
    count = columns // 32
    bits = Tensor.empty(panels, count, 4, 16, 4, dtype="uint8").contiguous().realize()
    scales = Tensor.empty(panels, count, 16).contiguous().realize()
    q = Tensor.empty(rows, count, 2, 4, 4, dtype="int8").contiguous().realize()
    s = Tensor.empty(rows, count).contiguous().realize()
    shifts = Tensor.arange(2, dtype="int32").reshape(2, 1, 1, 1) * 4
    codes = ((ints(bits).unsqueeze(2) >> shifts) & 15).permute(0, 4, 1, 2, 3, 5)
    terms = codes.unsqueeze(0) * ints(q).reshape(rows, 1, 1, count, 2, 4, 4)
    sums = terms.sum((-3, -2, -1), dtype=dtypes.int32).float()
    return (scales.permute(0, 2, 1) * sums * s.reshape(rows, 1, 1, count)).sum(-1)


@pytest.mark.parametrize("rows", [1, 2, 9, 128])
def test_a_product_of_blocks_is_one_kernel_of_dots(rows: int) -> None:
    """However many rows: bytes are unpacked in registers, and a block's sum is not stored."""
    assert dots(ast_of(blocks(rows))) == 1


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (1, "SIMD r1 16 1, UNROLL r4 4, UNROLL r3 2"),  # memory as one stream
        (2, "SIMD r2 16 1, UPCAST r0 2, UPCAST r1 4"),
        (128, "SIMD r2 16 1, UPCAST r0 3, UPCAST r1 4"),  # two registers for each element of the tile
    ],
)
def test_tiles_of_blocks(rows: int, expected: str) -> None:
    kernel = form_dot_products(ast_of(blocks(rows)), VNNI)
    assert render_opts(choose(kernel, VNNI)) == expected
