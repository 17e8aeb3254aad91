"""Sums in order, and bfloat16 on the wire, on ranks that are threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from polygrad.distributed.engine import Single
from polygrad.distributed.reduction import (
    from_bfloat16,
    scatter_in_order,
    sum_in_order,
    to_bfloat16,
    tree_sum,
)

torch = pytest.importorskip("torch")


class Thread(Single):
    """One of several ranks that share a table."""

    def __init__(self, rank: int, size: int, table: dict[int, Any], meeting: threading.Barrier) -> None:
        self.rank, self.size, self._table, self._meeting = rank, size, table, meeting

    def _all(self, array: Any) -> list[Any]:
        self._table[self.rank] = array
        self._meeting.wait(10)
        arrays = [self._table[i].copy() for i in range(self.size)]
        self._meeting.wait(10)
        return arrays

    def all_gather(self, array: Any, out: Any) -> None:
        out[:] = np.concatenate(self._all(array))

    def all_to_all(self, array: Any, out: Any) -> None:
        out[:] = np.concatenate([np.split(a, self.size)[self.rank] for a in self._all(array)])


def on_ranks(size: int, work: Callable[[Thread], Any]) -> list[Any]:
    results: list[Any] = [None] * size
    table: dict[int, Any] = {}
    meeting = threading.Barrier(size)

    def run(rank: int) -> None:
        results[rank] = work(Thread(rank, size, table, meeting))

    threads = [threading.Thread(target=run, args=(i,)) for i in range(size)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return results


def test_a_tree_is_a_tree() -> None:
    assert tree_sum(["a", "b", "c", "d", "e"]) == "abcde"
    x = [np.float32(v) for v in (1e8, 1.0, -1e8, 1.0)]
    assert tree_sum(x) == (x[0] + x[1]) + (x[2] + x[3])


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("length", [1, 7, 64])
def test_a_sum_in_order_is_the_tree_in_bits(size: int, length: int) -> None:
    numbers = np.random.default_rng(1).standard_normal((size, length)).astype(np.float32)

    def work(engine: Thread) -> Any:
        own = numbers[engine.rank].copy()
        sum_in_order(engine, own)
        return own

    expected = tree_sum(list(numbers))
    assert all(np.array_equal(x, expected) for x in on_ranks(size, work))


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_bfloat16_is_added_up_in_float32_and_rounded_once(size: int) -> None:
    numbers = torch.randn(size, 12, generator=torch.Generator().manual_seed(1)).bfloat16()
    bits = numbers.view(torch.int16).numpy().view(np.uint16)
    exact = tree_sum([x.numpy() for x in numbers.float()])

    def work(engine: Thread) -> Any:
        own, part = bits[engine.rank].copy(), np.zeros(12 // size, np.float32)
        scatter_in_order(engine, own, part)
        sum_in_order(engine, own)
        return own, part

    rounded = torch.from_numpy(exact).bfloat16().view(torch.int16).numpy().view(np.uint16)
    results = on_ranks(size, work)
    assert all(np.array_equal(own, rounded) for own, _ in results)
    assert np.array_equal(np.concatenate([part for _, part in results]), exact)


def test_rounding_to_bfloat16_is_that_of_torch_in_bits() -> None:
    bits = np.random.default_rng(2).integers(0, 1 << 32, 20_000, np.uint32)
    special = np.array([0, 1 << 31, 0x7F800000, 0xFF800000, 0x7F7FFFFF, 0x3F808000, 0x3F818000, 1], np.uint32)
    numbers = np.concatenate([bits, special]).view(np.float32)
    theirs = torch.from_numpy(numbers).bfloat16().view(torch.int16).numpy().view(np.uint16)
    numbers_again = from_bfloat16(to_bfloat16(numbers))
    is_number = ~np.isnan(numbers)
    assert np.array_equal(to_bfloat16(numbers)[is_number], theirs[is_number])
    assert np.isnan(numbers_again[~is_number]).all()
