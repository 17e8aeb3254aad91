"""THREEFRY: known answers, any counter and key against a plain reference, and what folds away."""

from __future__ import annotations

import numpy as np
import pytest
from codegen.vectorised import evaluate

from polygrad.codegen.lower.decompose import decompose
from polygrad.codegen.target import Target
from polygrad.dtype import dtypes
from polygrad.uop.args import Param
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.rewrite import graph_rewrite

MASK = 0xFFFFFFFF
COUNTER, KEY = (UOp(Ops.PARAM, dtypes.uint64, (), Param(slot, 1)) for slot in (0, 1))
BITS = UOp(Ops.THREEFRY, dtypes.uint64, (COUNTER, KEY))

# Random123's kat_vectors, threefry2x32 20: counter, key, answer (words in order, the first is the low one)
KNOWN = [
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((MASK, MASK), (MASK, MASK), (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
]


def lowered(node: UOp) -> UOp:
    return graph_rewrite(node, decompose(Target("test")))


def word(pair: tuple[int, int]) -> int:
    return pair[0] | pair[1] << 32


def reference(counter: int, key: int) -> int:
    """The paper's text, one rotation at a time."""
    x = [counter & MASK, counter >> 32]
    keys = [key & MASK, key >> 32]
    keys.append(keys[0] ^ keys[1] ^ 0x1BD11BDA)
    x = [(x[0] + keys[0]) & MASK, (x[1] + keys[1]) & MASK]
    for i in range(20):
        rotation = (13, 15, 26, 6, 17, 29, 16, 24)[i % 8]
        x[0] = (x[0] + x[1]) & MASK
        x[1] = ((x[1] << rotation | x[1] >> (32 - rotation)) & MASK) ^ x[0]
        if i % 4 == 3:
            s = i // 4 + 1
            x = [(x[0] + keys[s % 3]) & MASK, (x[1] + keys[(s + 1) % 3] + s) & MASK]
    return x[0] | x[1] << 32


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN)
def test_known_answers(counter: tuple[int, int], key: tuple[int, int], answer: tuple[int, int]) -> None:
    inputs = {COUNTER: np.array([word(counter)], np.uint64), KEY: np.array([word(key)], np.uint64)}
    assert int(evaluate(lowered(BITS), inputs)[0]) == word(answer)
    assert reference(word(counter), word(key)) == word(answer)


def test_equals_the_reference_on_random_counters_and_keys() -> None:
    generator = np.random.default_rng(0)
    counters, keys = generator.integers(0, 2**64, (2, 200), dtype=np.uint64)
    actual = evaluate(lowered(BITS), {COUNTER: counters, KEY: keys})
    assert actual.tolist() == [reference(int(c), int(k)) for c, k in zip(counters, keys, strict=True)]


@pytest.mark.parametrize("shift", [32, 40, 63])
def test_halves_need_no_64_bit_arithmetic(shift: int) -> None:
    inputs = {COUNTER: np.arange(5, dtype=np.uint64), KEY: np.full(5, 7, np.uint64)}
    whole = evaluate(lowered(BITS), inputs)
    for node, expected in (
        (BITS.cast(dtypes.uint32), whole.astype(np.uint32)),
        ((BITS >> shift).cast(dtypes.uint32), (whole >> np.uint64(shift)).astype(np.uint32)),
        ((BITS >> shift).cast(dtypes.float32), (whole >> np.uint64(shift)).astype(np.float32)),
    ):
        out = lowered(node)
        wide = [n for n in out.toposort() if n.dtype is dtypes.uint64 and n.op in (Ops.OR, Ops.SHL, Ops.CAST)]
        assert wide == []
        np.testing.assert_array_equal(evaluate(out, inputs), expected)


@pytest.mark.parametrize("shift", [1, 11, 31])
def test_a_shift_into_the_low_word_stays_64_bit(shift: int) -> None:
    inputs = {COUNTER: np.arange(5, dtype=np.uint64), KEY: np.full(5, 7, np.uint64)}
    whole = evaluate(lowered(BITS), inputs)
    np.testing.assert_array_equal(evaluate(lowered(BITS >> shift), inputs), whole >> np.uint64(shift))


def test_a_counter_below_2_to_the_32_has_no_high_word() -> None:
    small = UOp(Ops.PARAM, dtypes.uint32, (), Param(0, 1))
    out = lowered(UOp(Ops.THREEFRY, dtypes.uint64, (small.cast(dtypes.uint64), UOp.const(dtypes.uint64, 7))))
    inputs = {small: np.arange(5, dtype=np.uint32)}
    assert evaluate(out, inputs).tolist() == [reference(c, 7) for c in range(5)]
    assert sum(n.dtype is dtypes.uint64 for n in out.toposort()) <= 5
