"""The intern table's collections: what they free, what they keep, and how much of the table they look at."""

from __future__ import annotations

import gc
import sys

import pytest

from polygrad.dtype import dtypes
from polygrad.uop import intern
from polygrad.uop.intern import collect, collect_young, generations
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


class Storage:
    """A runtime buffer, as far as a BUFFER looks at it."""

    def __init__(self, size: int) -> None:
        self.size = size


@pytest.fixture(autouse=True)
def _collected():
    gc.collect()
    collect()
    yield
    collect()


_FRACTION = 0.013671875  # of the constants of chains


def chain(n: int, seed: int) -> UOp:
    """2 * n nodes in the table that no other test makes."""
    out = UOp.buffer_of(Storage(4), dtypes.float32)
    for i in range(n):
        out = UOp(Ops.ADD, dtypes.float32, (out, UOp.const(dtypes.float32, seed + i + _FRACTION)))
    return out


def chain_nodes() -> int:
    """The number of nodes of chains in the table: what other tests left there may go at any time."""

    def is_constant(node: UOp) -> bool:
        return node.op is Ops.CONST and isinstance(node.arg, float) and node.arg % 1 == _FRACTION

    return sum(
        is_constant(n) or (n.op is Ops.ADD and any(map(is_constant, n.src)))
        for n in list(intern.table.values())
    )


def test_a_collection_frees_what_nothing_holds_and_keeps_what_is_held() -> None:
    kept, dropped = chain(10, 100), chain(1000, 1000)
    assert chain_nodes() == 2 * 1010
    del dropped
    assert collect_young() >= 2000 and chain_nodes() == 20
    order = kept.toposort()
    assert [n.op for n in order].count(Ops.ADD) == 10
    again = UOp(kept.op, kept.dtype, kept.src, kept.arg)
    assert again is kept  # still interned


def test_a_young_collection_waits_for_as_many_new_nodes_as_it_is_told() -> None:
    collect_young()
    x = chain(20, 0)
    del x
    assert collect_young(1000) == 0
    assert collect_young(40) >= 40 and chain_nodes() == 0


def test_a_chain_of_100000_is_freed_without_recursion() -> None:
    x = chain(100_000, 0)
    collect_young()
    collect_young()  # old by now
    del x
    for _ in range(2000):
        collect_young()
    assert chain_nodes() == 0


def test_what_grows_old_and_dies_is_found_by_later_collections() -> None:
    lives = [chain(50, i * 50) for i in range(100)]
    for _ in range(3):
        collect_young()
    assert chain_nodes() == 10_000
    del lives[::2]
    freed = sum(collect_young() for _ in range(100))
    assert freed >= 5000 and chain_nodes() == 5000


def test_a_loop_with_a_large_live_graph_looks_at_few_nodes_a_time() -> None:
    """The longest collection, in nodes: not in proportion to the 60,000 that live."""
    live = chain(30_000, 0)
    collect_young()
    collect_young()
    most = 0
    state = chain(1, -1)
    for i in range(400):
        for j in range(50):
            state_next = chain(1, -2 - 50 * i - j)
        state = state_next
        before = generations.examined
        collect_young(50)
        most = max(most, generations.examined - before)
    assert chain_nodes() >= 60_000 and live.op is Ops.ADD and state.op is Ops.ADD
    assert most <= 1000
    assert chain_nodes() < 60_000 + 2000


def test_a_buffer_goes_with_the_last_that_holds_it() -> None:
    freed = []

    class Noted(Storage):
        def __del__(self) -> None:
            freed.append(self.size)

    x = UOp.buffer_of(Noted(7), dtypes.float32)
    y = x.reshape((7, 1))
    y.value = UOp.buffer_of(Noted(8), dtypes.float32)
    del x
    assert not freed
    del y
    collect_young()
    assert sorted(freed) == [7, 8]


def test_an_interrupted_collection_loses_no_node(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = chain(300, 0)
    collect_young()
    more = chain(300, 5000)
    count, refcount = 0, sys.getrefcount

    class Interrupted:
        @staticmethod
        def getrefcount(x: object) -> int:
            nonlocal count
            count += 1
            if count == 700:
                raise KeyboardInterrupt
            return refcount(x) - 1  # this function's argument

    monkeypatch.setattr(intern, "sys", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        collect_young()
    monkeypatch.undo()
    for root in (kept, more):
        for node in root.toposort()[1:]:
            assert UOp(node.op, node.dtype, node.src, node.arg) is node
    del kept, more, root, node
    for _ in range(50):
        collect_young()
    collect()
    assert collect() == 0
